//! `capo-measure`: whether the rewriter computes on a device what PyTorch does, and how fast.
//!
//! `cargo xtask bench gpu` packs it for machines that have a GPU and no Rust.

mod campaign;
mod device;
mod error;
mod memory;
mod parity;
mod speed;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use capo_rewriter::device::DeviceChoice;
use clap::{Parser, Subcommand};

/// Measure the rewriter on a device
#[derive(Parser)]
#[command(name = "capo-measure", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Name the devices that this program can use
    Devices,
    /// Compare what a device computes with PyTorch's numbers
    Parity {
        /// cpu, wgpu, cuda, cuda:1 or auto
        #[arg(long, default_value = "auto")]
        device: DeviceChoice,
        /// The folder of the reference files
        #[arg(long)]
        reference: PathBuf,
    },
    /// Time one thing and print a JSON line
    Speed(speed::Arguments),
    /// Parity, then every speed beside PyTorch's where it is installed, as JSON lines and a table
    #[command(args_override_self = true)]
    All(campaign::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Devices => {
            device::list();
            Ok(())
        }
        Task::Parity { device, reference } => parity::run(&device, &reference),
        Task::Speed(arguments) => speed::run(&arguments),
        Task::All(arguments) => campaign::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
