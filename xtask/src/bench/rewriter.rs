//! The learned rewriter on the CPU beside PyTorch: a small Qwen3 with random weights, one thread.
//!
//! Both programs run in turn, so that the load of a shared machine meets both, and the best of
//! several turns counts. Tokens per second of CPU time are compared first: other jobs change them least.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::test::shared_data;
use crate::workspace::Workspace;
use crate::{build, command};

/// What is timed, and how much faster than PyTorch it is meant to be.
struct Case {
    name: &'static str,
    /// Of the example.
    own: &'static [&'static str],
    /// Of the script.
    other: &'static [&'static str],
    aim: f64,
}

const CASES: [Case; 4] = [
    Case {
        name: "prefill, 1 x 512",
        own: &["prefill", "--tokens", "512"],
        other: &["--mode", "prefill", "--batch", "1", "--seq", "512"],
        aim: 1.0,
    },
    Case {
        name: "decode, batch 1",
        own: &["decode", "--rows", "1", "--tokens", "128", "--new-tokens", "32"],
        other: &[
            "--mode",
            "decode",
            "--batch",
            "1",
            "--prompt",
            "128",
            "--new-tokens",
            "32",
        ],
        aim: 2.5,
    },
    Case {
        name: "decode, batch 8",
        own: &["decode", "--rows", "8", "--tokens", "128", "--new-tokens", "32"],
        other: &[
            "--mode",
            "decode",
            "--batch",
            "8",
            "--prompt",
            "128",
            "--new-tokens",
            "32",
        ],
        aim: 1.2,
    },
    Case {
        name: "LoRA step, 2 x 256",
        own: &["train", "--rows", "2", "--tokens", "256"],
        other: &["--mode", "train", "--batch", "2", "--seq", "256"],
        aim: 1.0,
    },
];

/// Tokens per second, the best so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Speed {
    #[serde(rename = "tokens_per_cpu_s")]
    cpu: f64,
    #[serde(rename = "tokens_per_s")]
    wall: f64,
}

impl Speed {
    fn faster_of(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.max(other.cpu),
            wall: self.wall.max(other.wall),
        }
    }
}

/// One line of the table.
#[derive(Serialize)]
struct Line {
    name: &'static str,
    capo: Speed,
    pytorch: Option<Speed>,
    aim: f64,
}

/// The script and its interpreter, which has torch, transformers and peft.
struct Peer {
    python: PathBuf,
    script: PathBuf,
}

pub(super) fn run(workspace: &Workspace, python: Option<&Path>, turns: u64) -> Result<()> {
    let folder = shared_data::find(&workspace.root).join("bench");
    let config = folder.join("configs/nano.json");
    if !config.is_file() {
        bail!(
            "there is no {}: set CAPO_SHARED to the shared data",
            config.display()
        );
    }
    let peer = python.map(|python| Peer::new(python, &folder)).transpose()?;
    let example = build::example(workspace, "capo-rewriter", "speed")?;
    let mut lines: Vec<_> = CASES
        .iter()
        .map(|case| Line {
            name: case.name,
            capo: Speed::default(),
            pytorch: peer.as_ref().map(|_| Speed::default()),
            aim: case.aim,
        })
        .collect();
    for _ in 0..turns {
        for (case, line) in CASES.iter().zip(&mut lines) {
            line.capo = line.capo.faster_of(own(&example, &config, case)?);
            if let (Some(peer), Some(best)) = (&peer, &mut line.pytorch) {
                *best = best.faster_of(peer.run(&config, case)?);
            }
        }
    }
    println!("one thread, best of {turns} turns; tokens per second of CPU time and of wall time\n");
    print!("{}", table(&lines));
    if peer.is_none() {
        println!("\nCapo's own figures alone: name a Python with torch, transformers and peft with --python");
    }
    println!("\n{}", serde_json::to_string(&lines)?);
    Ok(())
}

fn own(example: &Path, config: &Path, case: &Case) -> Result<Speed> {
    let mut command = Command::new(example);
    command.arg(config).args(case.own).env("RAYON_NUM_THREADS", "1");
    speed(&mut command)
}

impl Peer {
    fn new(python: &Path, folder: &Path) -> Result<Self> {
        let script = folder.join("torch_qwen3.py");
        if !script.is_file() {
            bail!(
                "there is no {}: set CAPO_SHARED to the shared data",
                script.display()
            );
        }
        let imports = "import torch, transformers, peft";
        command::output(Command::new(python).args(["-c", imports]))
            .with_context(|| format!("{} does not run `{imports}`", python.display()))?;
        Ok(Self {
            python: python.to_owned(),
            script,
        })
    }

    fn run(&self, config: &Path, case: &Case) -> Result<Speed> {
        let mut command = Command::new(&self.python);
        command
            .arg(&self.script)
            .arg("--config")
            .arg(config)
            .args(case.other)
            .args(["--threads", "1", "--reps", "10", "--lora-impl", "peft"]);
        speed(&mut command)
    }
}

/// What the last line of the program's output says.
fn speed(command: &mut Command) -> Result<Speed> {
    let output = command::output(command)?;
    let line = output.trim().lines().next_back().unwrap_or_default();
    serde_json::from_str(line)
        .with_context(|| format!("`{}` printed no speeds: {line}", command::line(command)))
}

fn table(lines: &[Line]) -> String {
    let mut table = format!(
        "{:<20} {:>9} {:>9} {:>11} {:>9} {:>9} {:>9}  {}\n",
        "", "Capo CPU", "wall", "PyTorch CPU", "wall", "CPU ratio", "wall", "aim"
    );
    for Line {
        name,
        capo,
        pytorch,
        aim,
    } in lines
    {
        table += &format!("{name:<20} {:>9.0} {:>9.0}", capo.cpu, capo.wall);
        if let Some(pytorch) = pytorch {
            let ratio = capo.cpu / pytorch.cpu;
            table += &format!(
                " {:>11.0} {:>9.0} {ratio:>9.2} {:>9.2}  {aim:.1}: {}",
                pytorch.cpu,
                pytorch.wall,
                capo.wall / pytorch.wall,
                if ratio >= *aim { "reached" } else { "MISSED" },
            );
        }
        table += "\n";
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aims_are_judged_by_cpu_time() {
        let speed = |cpu, wall| Speed { cpu, wall };
        let line = |capo, pytorch| Line {
            name: "decode",
            capo,
            pytorch,
            aim: 2.5,
        };
        let judged = |cpu| table(&[line(speed(cpu, 1.0), Some(speed(100.0, 50.0)))]);
        assert!(judged(250.0).contains("2.5: reached"));
        assert!(judged(249.0).contains("2.5: MISSED"));
        let alone = table(&[line(speed(250.0, 1.0), None)]);
        assert!(!alone.contains("2.5"), "{alone}");
    }

    #[test]
    fn the_best_turn_counts_for_each_clock() {
        let slow = Speed { cpu: 2.0, wall: 1.0 };
        let busy = Speed { cpu: 1.0, wall: 3.0 };
        assert_eq!(slow.faster_of(busy), Speed { cpu: 2.0, wall: 3.0 });
    }

    #[test]
    fn a_program_that_prints_no_speeds_is_quoted() {
        let printed = |text: &str| speed(Command::new("echo").arg(text));
        let line = r#"{"tokens_per_s": 2.5, "tokens_per_cpu_s": 3.0, "more": null}"#;
        assert_eq!(printed(line).unwrap(), Speed { cpu: 3.0, wall: 2.5 });
        let error = printed("no figures").unwrap_err();
        assert!(error.to_string().ends_with("printed no speeds: no figures"));
    }
}
