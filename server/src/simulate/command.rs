//! The command line of `capo simulate`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use capo_world::simulated::parameters::MODELS;

use crate::stderr::warn;

use super::{FaultRates, ServeOptions, SimulateError, required_key, serve_until_interrupted, simulated};

/// Serve the simulated models over an OpenAI-compatible API on this machine.
#[derive(Debug, Clone, clap::Args)]
pub struct SimulateArgs {
    /// Port to listen on; 0 takes any free one.
    #[arg(long, default_value_t = 8321)]
    pub port: u16,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Models to serve.
    #[arg(long = "model", value_name = "NAME", num_args = 1.., value_delimiter = ',',
          default_values_t = MODELS.iter().map(|model| model.name.to_owned()), value_parser = known)]
    pub models: Vec<String>,
    /// Seed of the simulated world.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Real seconds per simulated second of thinking; 0 answers at once.
    #[arg(long, default_value_t = 0.0, value_name = "SCALE", value_parser = seconds, allow_negative_numbers = true)]
    pub latency: f64,
    /// Failures to inject, such as `429=0.05,500=0.02,timeout=0.01,malformed=0.01,empty=0.01`.
    #[arg(long = "fault", value_name = "FAULT=PROBABILITY,…", default_value = "")]
    pub faults: FaultRates,
    /// Seed of the injected failures.
    #[arg(long, default_value_t = 0)]
    pub fault_seed: u64,
    /// Seconds an injected 429 asks the client to wait.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub retry_after: f64,
    /// Seconds an injected timeout keeps the client waiting before it gets a 504.
    #[arg(long, default_value_t = 600.0, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub hang: f64,
    /// Demand the key held by this environment variable; without, any key or none will do.
    #[arg(long, value_name = "VARIABLE")]
    pub require_key: Option<String>,
    /// Append one JSON line for every request served to this file.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// Seconds that a wait can take.
fn seconds(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok();
    number
        .filter(|&number| Duration::try_from_secs_f64(number).is_ok())
        .ok_or_else(|| "it must be a number of at least 0".into())
}

/// The name of a simulated model.
fn known(name: &str) -> Result<String, String> {
    let names = || MODELS.iter().map(|model| model.name);
    if names().any(|known| known == name) {
        Ok(name.to_owned())
    } else {
        Err(format!("there are {}", names().collect::<Vec<_>>().join(", ")))
    }
}

/// Runs the command until it is interrupted: once to let requests under way end, for a few seconds;
/// twice to leave at once.
///
/// The first line on standard output is `listening on http://HOST:PORT/v1`; at the end, standard
/// error gets the number of requests by outcome.
///
/// # Errors
/// When the port is taken, the key unset or the log not writable.
pub async fn run(args: SimulateArgs) -> Result<(), SimulateError> {
    let seed = args.seed;
    let options = ServeOptions {
        seed,
        latency: args.latency,
        faults: args.faults,
        fault_seed: args.fault_seed,
        retry_after: Duration::from_secs_f64(args.retry_after),
        hang: Duration::from_secs_f64(args.hang),
        key: required_key(args.require_key)?,
        log: args.log,
        models: args.models,
        ..ServeOptions::default()
    };
    let open = move |name: &str| simulated(name, seed);
    let tally = serve_until_interrupted((args.host, args.port), options, open).await?;
    let counts: Vec<String> = tally
        .iter()
        .map(|(outcome, count)| format!("{outcome} {count}"))
        .collect();
    let counts = if counts.is_empty() {
        "none".into()
    } else {
        counts.join(", ")
    };
    warn(&format!("requests by outcome: {counts}"));
    Ok(())
}
