//! `capo certify`: test a prompt on examples that nothing else touched.

use std::path::{Path, PathBuf};

use capo_core::certificate::{Certificate, Confirm, Verdict};
use capo_core::certify::Tested;
use capo_core::ids::sha256_hex;
use capo_core::summary::{Failures, Spend};
use serde::Serialize;

use super::command_line::CommandLine;
use super::evaluate::{carry_out, stopped};
use super::failure::{Ending, Failure, print, print_json};
use super::layout::counted;
use super::{OutputArgs, StudyArgument, report};
use crate::files::read_prompt;
use crate::interrupt::Interrupts;
use crate::progress::LogFormat;
use crate::session::Session;
use crate::stderr::warn;

/// Test whether a prompt keeps every threshold, on examples kept aside for it.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CertifyArgs {
    #[command(flatten)]
    study: StudyArgument,
    /// File with the prompt, UTF-8; one line break at its end is no part of it.
    #[arg(long, value_name = "FILE")]
    prompt: PathBuf,
    /// How many of each workload's held-out examples are kept for the test [default: the study's `confirm.examples`].
    #[arg(long, value_name = "N")]
    examples: Option<usize>,
    /// Confidence of the certificate, such as 0.95 [default: the study's `confirm.confidence`].
    #[arg(long, value_name = "SHARE")]
    confidence: Option<f64>,
    /// Journal that keeps the rollouts; none that is in it already is paid again. All prompts tested with a study belong in
    /// one: after one that is not certified, its examples certify no other. Another number of examples or confidence is
    /// another study [default: runs/STUDY-SEED.certify-KEY.journal.jsonl, KEY from the study].
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// The object of `--json`.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    certificate: Option<&'a Certificate>,
    /// How many examples beyond the reserve would be needed at these costs; null unless it is undecided, or where no number
    /// would do.
    more: Option<usize>,
    /// Of everything in the journal.
    usage: Spend,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<&'a Failures>,
    journal: String,
}

/// Runs the command.
pub(crate) fn run(args: &CertifyArgs) -> Result<Ending, Failure> {
    args.output.log.take_effect();
    let mut file = args.study.read()?;
    let prompt = read_prompt(&args.prompt)?;
    if prompt.trim().is_empty() {
        return Err(Failure::usage(format!(
            "{}: the prompt is empty",
            args.prompt.display()
        )));
    }
    let confirm = file.study.confirm.take();
    let Some(mut confirm) = confirm.or_else(|| args.examples.map(Confirm::of)) else {
        return Err(Failure::usage(format!(
            "{} keeps no examples for a test; say how many with --examples, or in the study: [confirm] examples = …",
            file.name
        )));
    };
    confirm.examples = args.examples.unwrap_or(confirm.examples);
    confirm.confidence = args.confidence.unwrap_or(confirm.confidence);
    file.study.confirm = Some(confirm);
    file.study = file
        .study
        .checked()
        .map_err(|error| crate::session::SessionError::Study {
            study: file.name.clone(),
            error,
        })?;
    let session = Session::new(&file, &file.keys(), args.output.prices.table()?)?;
    let path = args.journal.clone().unwrap_or_else(|| {
        let key = sha256_hex(file.study.identity().to_string());
        let ending = format!("certify-{}.journal.jsonl", &key[..8]);
        args.study.default_journal(file.study.study.seed, &ending)
    });
    let resume = resume_command(args);
    let interrupts = Interrupts::of_run(resume.to_string())?;
    let tested = carry_out(
        args.output.log,
        session,
        &path,
        &interrupts,
        async |session, journal, _| session.certify(journal, &prompt).await,
    )?;
    let Some(tested) = tested else {
        warn(&format!(
            "stopped at once: what was under way is in no account. What is finished is kept; to go on, run: {resume}"
        ));
        return Ok(Ending::Stopped);
    };
    if args.output.json {
        print_json(&Output {
            certificate: tested.certificate.as_ref(),
            more: tested.certificate.as_ref().and_then(Certificate::more),
            usage: Spend::new(tested.rollouts, tested.usage.clone()),
            failures: tested.failures.as_ref(),
            journal: path.display().to_string(),
        })?;
    } else {
        print(&render(&tested, &path))?;
    }
    Ok(match (&tested.halt, &tested.certificate) {
        (Some(halt), _) => {
            let kept = format!("{} kept in the journal", counted(tested.rollouts, "rollout"));
            stopped(halt, &kept, &resume)
        }
        (None, Some(certificate)) if certificate.verdict == Verdict::Certified => Ending::Done,
        _ => Ending::Infeasible,
    })
}

/// The command that tests what is still to be tested.
fn resume_command(args: &CertifyArgs) -> CommandLine {
    args.study
        .typed("certify")
        .path("prompt", Some(&args.prompt))
        .option("examples", args.examples)
        .option("confidence", args.confidence)
        .path("journal", args.journal.as_deref())
        .path("prices", args.output.prices.prices.as_deref())
        .flag("json", args.output.json)
        .option("log", (args.output.log == LogFormat::Json).then_some("json"))
}

fn render(tested: &Tested, journal: &Path) -> String {
    let certificate = tested.certificate.as_ref();
    let shown = certificate.map(report::certificate);
    format!(
        "{}{}{} in {}\n",
        shown.unwrap_or_default(),
        report::failures(tested.failures.as_ref()),
        counted(tested.rollouts, "rollout"),
        journal.display(),
    )
}
