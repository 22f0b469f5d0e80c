//! Everything in one call: parity, then each speed, Capo's and PyTorch's in turn.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capo_rewriter::device::DeviceChoice;
use capo_rewriter::flops::peak_flops;
use clap::Args;
use serde_json::{Value, json};

use crate::device::Chosen;
use crate::error::Error;
use crate::speed::NumberType;
use crate::{memory, table};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// cpu, wgpu, cuda, cuda:1 or auto
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// Type of the computation
    #[arg(long, default_value = "bf16")]
    dtype: NumberType,
    /// The folder of parity's reference files; without it there is no parity
    #[arg(long)]
    reference: Option<PathBuf>,
    /// Folders with config.json, one for each shape
    #[arg(long, required = true, num_args = 1..)]
    shapes: Vec<PathBuf>,
    /// The PyTorch program to measure beside, if python3 has torch
    #[arg(long)]
    torch: Option<PathBuf>,
    /// Rows that are decoded together
    #[arg(long, value_delimiter = ',', default_value = "1,8,64")]
    decode: Vec<usize>,
    /// Rows and tokens of a training step, as in 8x512
    #[arg(long, value_parser = rows_and_tokens, default_value = "8x512")]
    train: (usize, usize),
    /// Both programs compute each layer again in the backward pass
    #[arg(long)]
    grad_ckpt: bool,
    /// Tokens that each row is answered with
    #[arg(long, default_value_t = 128)]
    new_tokens: usize,
    /// Repetitions that count
    #[arg(long, default_value_t = 3)]
    reps: usize,
    /// Operations per second in 10¹² that the device can do, where its name does not tell
    #[arg(long)]
    peak_tflops: Option<f64>,
    /// An empty or new folder for results.jsonl and table.md
    #[arg(long)]
    out: PathBuf,
}

fn rows_and_tokens(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once('x').and_then(|(rows, tokens)| {
        let pair: (usize, usize) = (rows.parse().ok()?, tokens.parse().ok()?);
        (pair.0 > 0 && pair.1 > 1).then_some(pair)
    });
    parsed.ok_or_else(|| "write rows x tokens, as in 8x512".to_owned())
}

/// One thing that both programs do.
struct Item<'a> {
    shape: &'a Path,
    /// What both programs call its settings.
    settings: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let chosen = Chosen::of(&arguments.device)?;
    std::fs::create_dir_all(&arguments.out).map_err(Error::io(&arguments.out.display()))?;
    let path = arguments.out.join("results.jsonl");
    let mut results = File::create_new(&path).map_err(Error::io(&path.display()))?;
    let mut lines = Vec::new();
    let mut keep = |line: Value| {
        writeln!(results, "{line}").map_err(Error::io(&path.display()))?;
        lines.push(line);
        Ok::<_, Error>(())
    };
    if let Some(reference) = &arguments.reference {
        keep(parity(&chosen, reference)?)?;
    }
    let torch = arguments.torch.as_deref().filter(|_| has_torch());
    for item in items(arguments) {
        keep(capo(&chosen, arguments, &item)?)?;
        if let Some(torch) = torch {
            keep(pytorch(&chosen, arguments, torch, &item)?)?;
        }
    }
    let listed = || Some(peak_flops(&chosen.name, arguments.dtype.float())? / 1e12);
    let peak = arguments.peak_tflops.or_else(listed);
    let text = table::render(&chosen.name, peak, &lines);
    let path = arguments.out.join("table.md");
    std::fs::write(&path, &text).map_err(Error::io(&path.display()))?;
    println!("{text}");
    let failed: Vec<_> = lines
        .iter()
        .filter(|line| line["program"] == "capo" && !line["error"].is_null())
        .map(|line| format!("{} {}: {}", line["config"], line["mode"], line["error"]))
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Error::Failed(failed.join("\n")))
}

fn items(arguments: &Arguments) -> impl Iterator<Item = Item<'_>> {
    let decodes = arguments.decode.iter().map(|batch| {
        format!(
            "--mode decode --batch {batch} --prompt 128 --new-tokens {}",
            arguments.new_tokens
        )
    });
    let (rows, tokens) = arguments.train;
    let all: Vec<_> = decodes
        .chain([format!("--mode train --batch {rows} --seq {tokens}")])
        .map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    arguments
        .shapes
        .iter()
        .flat_map(move |shape| all.clone().into_iter().map(|settings| Item { shape, settings }))
}

/// What stands for itself in the settings of a training step.
fn checkpointing(arguments: &Arguments, item: &Item) -> Option<&'static str> {
    let is_training = item.settings.iter().any(|word| word == "train");
    (is_training && arguments.grad_ckpt).then_some("--grad-ckpt")
}

/// A process for each measurement: peaks of memory are its own, and a failure leaves the others standing.
fn capo(chosen: &Chosen, arguments: &Arguments, item: &Item) -> Result<Value, Error> {
    let mut command = own()?;
    command
        .args(["speed", "--device", &chosen.choice.to_string()])
        .args(["--dtype", arguments.dtype.name()])
        .args(["--reps", &arguments.reps.to_string()])
        .args(&item.settings)
        .args(checkpointing(arguments, item))
        .arg("--shape")
        .arg(item.shape);
    measure("capo", chosen, item, command)
}

fn pytorch(chosen: &Chosen, arguments: &Arguments, program: &Path, item: &Item) -> Result<Value, Error> {
    let device = match &chosen.choice {
        DeviceChoice::Named { backend: "cuda", .. } => chosen.choice.to_string(),
        _ => "cpu".to_owned(),
    };
    let mut command = Command::new("python3");
    command
        .arg(program)
        .args(["--device", &device, "--dtype", arguments.dtype.name()])
        .args(["--reps", &arguments.reps.to_string()])
        .args(&item.settings)
        .args(checkpointing(arguments, item))
        .arg("--config")
        .arg(item.shape.join("config.json"));
    measure("pytorch", chosen, item, command)
}

fn parity(chosen: &Chosen, reference: &Path) -> Result<Value, Error> {
    let mut command = own()?;
    command
        .args(["parity", "--device", &chosen.choice.to_string(), "--reference"])
        .arg(reference);
    let status = command.status().map_err(Error::io(&"capo-measure"))?;
    let mut line = json!({ "program": "capo", "mode": "parity", "device_name": chosen.name });
    if !status.success() {
        line["error"] = json!("parity failed; what differs stands above");
    }
    Ok(line)
}

fn own() -> Result<Command, Error> {
    std::env::current_exe()
        .map(Command::new)
        .map_err(Error::io(&"this program's own path"))
}

/// The last line that the command prints, with the program's name, the shape's and the peak of the
/// device's memory; or with an `error` when it fails.
fn measure(program: &str, chosen: &Chosen, item: &Item, mut command: Command) -> Result<Value, Error> {
    let shape = item.shape.file_name().unwrap_or_default().to_string_lossy();
    eprintln!("{program} {shape} {}", item.settings.join(" "));
    let output = std::env::temp_dir().join(format!("capo-measure-{}", std::process::id()));
    let file = File::create(&output).map_err(Error::io(&output.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .spawn()
        .map_err(Error::io(&program))?;
    let peak = match &chosen.choice {
        DeviceChoice::Named {
            backend: "cuda",
            index,
        } => memory::peak_device_mib(*index, &mut child),
        _ => child.wait().map(|_| None),
    }
    .map_err(Error::io(&program))?;
    let status = child.wait().map_err(Error::io(&program))?;
    let printed = std::fs::read_to_string(&output).map_err(Error::io(&output.display()))?;
    std::fs::remove_file(&output).map_err(Error::io(&output.display()))?;
    let last = printed.lines().last().unwrap_or_default();
    let mut line = serde_json::from_str::<Value>(last)
        .ok()
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({}));
    if !status.success() && line["error"].is_null() {
        line["error"] = json!(format!(
            "{program} ended with {status}; what it said stands above"
        ));
    }
    line["program"] = json!(program);
    line["config"] = json!(shape);
    for pair in item.settings.chunks(2) {
        let name = pair[0].trim_start_matches('-').replace('-', "_");
        line[name] = pair[1]
            .parse::<u64>()
            .map_or_else(|_| json!(pair[1]), |number| json!(number));
    }
    if let Some(peak) = peak {
        line["peak_device_mib"] = json!(peak);
    }
    Ok(line)
}

fn has_torch() -> bool {
    let found = Command::new("python3")
        .args(["-c", "import torch, transformers"])
        .stderr(Stdio::null())
        .status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        eprintln!("python3 has no torch with transformers here: Capo is measured alone");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_training_step_is_rows_by_tokens() {
        assert_eq!(rows_and_tokens("8x512"), Ok((8, 512)));
        for text in ["8", "8x", "x512", "0x512", "8x1", "8*512"] {
            assert!(rows_and_tokens(text).is_err(), "{text}");
        }
    }
}
