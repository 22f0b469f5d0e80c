//! The command line of `capo`.
#![expect(
    clippy::format_push_string,
    reason = "pages for people, read far more often than written"
)]

mod certify;
mod chats;
mod command_line;
mod compare;
mod data;
mod dry_run;
mod embed;
mod evaluate;
mod experiment;
pub(crate) mod failure;
#[cfg(not(feature = "train"))]
mod feature_missing;
mod from;
mod init;
mod journal;
pub(crate) mod layout;
mod oidc;
mod optimize;
mod outcome;
mod place;
mod projects;
mod prompts;
mod report;
mod report_page;
mod reuse;
#[cfg(feature = "train")]
mod rewriter;
mod runs;
mod schema;
mod serve;
mod shell;
mod steering;
#[cfg(feature = "train")]
mod train;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use capo_core::study::Setting;
use capo_models::prices::PriceTable;
use clap::Parser as _;
use clap::error::ErrorKind;
use console::Term;

use self::command_line::CommandLine;
use self::failure::{Ending, Failure, print};
use crate::files::{Reach, read_text};
use crate::progress::LogFormat;
use crate::session::{SessionError, StudyFile, block_on};
use crate::simulate;
use crate::terminal::columns;

/// Finds the system prompt that scores best inside explicit thresholds.
#[derive(Debug, clap::Parser)]
#[command(name = "capo", version, after_help = EXIT_CODES, term_width = help_columns())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done and feasible, on held-out examples where there are some, 1 error, 2 done but no prompt found that \
holds there, 3 stopped by the budget or an interrupt (journal kept), 64 bad usage or study file.";

/// Columns that help fills at most: longer lines are hard to read.
const MOST_OF_HELP: usize = 100;

fn help_columns() -> usize {
    columns(&Term::stdout()).min(MOST_OF_HELP)
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Optimize(optimize::OptimizeArgs),
    Evaluate(evaluate::EvaluateArgs),
    Certify(certify::CertifyArgs),
    Compare(compare::CompareArgs),
    Journal(journal::JournalArgs),
    Embed(embed::EmbedArgs),
    Experiment(experiment::ExperimentArgs),
    Report(report_page::ReportArgs),
    Simulate(simulate::SimulateArgs),
    Init(init::InitArgs),
    /// Print the JSON Schema of study files, for editors.
    Schema,
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
    Watch(runs::watch::WatchArgs),
    Runs(runs::RunsArgs),
    Projects(projects::ProjectsArgs),
    Prompts(prompts::PromptsArgs),
    Data(data::DataArgs),
    Serve(Box<serve::ServeArgs>),
    Worker(serve::WorkerArgs),
    Admin(serve::AdminArgs),
    #[cfg(feature = "train")]
    Train(train::TrainArgs),
    #[cfg(feature = "train")]
    Rewriter(rewriter::RewriterArgs),
    #[cfg(not(feature = "train"))]
    Train(feature_missing::Anything),
    #[cfg(not(feature = "train"))]
    Rewriter(feature_missing::Anything),
}

/// The study a command works on.
#[derive(Debug, Clone, clap::Args)]
struct StudyArgument {
    /// Study file: TOML, or JSON when it ends in `.json`.
    #[arg(value_name = "STUDY")]
    study: PathBuf,
    /// Seed to use instead of the study's.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Set a key of the study to another value, such as budget.usd=2 or constraint.turns.threshold=5; may be given
    /// several times. The value is written as in TOML, a bare word is a text.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    #[command(flatten)]
    outside: Outside,
}

/// Which files studies may name.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Outside {
    /// Let the study read files outside its own folder; what they hold goes into the journal and to
    /// providers.
    #[arg(long)]
    allow_outside: bool,
}

impl Outside {
    fn reach(self) -> Reach {
        if self.allow_outside {
            Reach::Anywhere
        } else {
            Reach::Folder
        }
    }

    fn read(self, study: &Path) -> Result<StudyFile, SessionError> {
        StudyFile::read_with(study, self.reach(), &[])
    }
}

impl StudyArgument {
    fn read(&self) -> Result<StudyFile, Failure> {
        let mut file = StudyFile::read_with(&self.study, self.outside.reach(), &self.set)?;
        if let Some(seed) = self.seed {
            file.study.study.seed = seed;
        }
        Ok(file)
    }

    /// The beginning of a command on this study, as a person would type it.
    fn typed(&self, command: &str) -> CommandLine {
        let line = CommandLine::new(command, &self.study)
            .option("seed", self.seed)
            .flag("allow-outside", self.outside.allow_outside);
        let typed = |line: CommandLine, setting| line.option("set", Some(setting));
        self.set.iter().fold(line, typed)
    }

    /// Where a command keeps its journal when nobody says; `ending` tells the commands apart.
    fn default_journal(&self, seed: u64, ending: &str) -> PathBuf {
        let stem = self
            .study
            .file_stem()
            .map_or_else(|| "study".into(), |stem| stem.to_string_lossy());
        Path::new("runs").join(format!("{stem}-{seed}.{ending}"))
    }
}

/// How a measurement is told, and at which prices.
#[derive(Debug, Clone, clap::Args)]
struct OutputArgs {
    /// Print one JSON object instead of what people read.
    #[arg(long)]
    json: bool,
    /// How progress is written to standard error; the fields of JSON: docs/log.md.
    #[arg(long, value_enum, default_value_t)]
    log: LogFormat,
    #[command(flatten)]
    prices: Prices,
}

/// Prices of models.
#[derive(Debug, Clone, clap::Args)]
struct Prices {
    /// TOML file with prices of models, used before the built-in ones.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
}

impl Prices {
    /// The file of them, if one is named, by what it is.
    fn read_files(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.prices.iter().map(|path| ("the price file", path.as_path()))
    }

    fn table(&self) -> Result<PriceTable, Failure> {
        let shipped = PriceTable::shipped();
        let Some(path) = &self.prices else {
            return Ok(shipped);
        };
        let own = PriceTable::parse(&read_text("price file", path)?)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        Ok(shipped.overridden_by(own))
    }
}

/// Runs the command line of this process and returns its exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match run(cli.command) {
        Ok(ending) => ending.into(),
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<Ending, Failure> {
    match command {
        Command::Optimize(args) => optimize::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Certify(args) => certify::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Journal(args) => journal::run(&args),
        Command::Embed(args) => embed::run(&args),
        Command::Experiment(args) => experiment::run(&args),
        Command::Report(args) => report_page::run(&args),
        #[cfg(feature = "train")]
        Command::Train(args) => train::run(&args),
        #[cfg(feature = "train")]
        Command::Rewriter(args) => rewriter::run(args),
        #[cfg(not(feature = "train"))]
        Command::Train(args) | Command::Rewriter(args) => Err(args.refused()),
        Command::Init(args) => init::run(&args),
        Command::Schema => schema::run(),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
        Command::Watch(args) => runs::watch::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::Projects(args) => projects::run(&args),
        Command::Prompts(args) => prompts::run(&args),
        Command::Data(args) => data::run(&args),
        Command::Serve(args) => serve::run(*args),
        Command::Worker(args) => serve::join(args),
        Command::Admin(args) => serve::administer(args),
        Command::Simulate(args) => {
            block_on(simulate::run(args))?.map_err(|error| Failure::new(error.to_string()))?;
            Ok(Ending::Done)
        }
    }
}

/// Answers a command line that is not to be run: help as it is, mistakes in a few lines.
fn refuse(error: &clap::Error) -> ExitCode {
    let rendered = error.render();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match print(&rendered.to_string()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(),
        };
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Failure::usage(what_there_is(&rendered.to_string())).report();
    }
    Failure::usage(condensed(&rendered.to_string())).report()
}

/// What may follow a command that stands alone: the names in its help.
fn what_there_is(help: &str) -> String {
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: "));
    let command = usage.and_then(|usage| usage.split(" <").next()).unwrap_or("capo");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names: Vec<&str> = commands
        .take_while(|line| line.starts_with("  "))
        // What hangs further in goes on with a description.
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    format!(
        "`{command}` needs to be told what to do: {}\nSee `{command} --help`.",
        names.join(", ")
    )
}

/// What the parsers of numbers say, and what is meant.
const JARGON: [(&str, &str); 8] = [
    (
        "invalid digit found in string",
        "it must be a whole number of at least 0",
    ),
    (
        "cannot parse integer from empty string",
        "it must be a whole number of at least 0",
    ),
    ("number would be zero for non-zero type", "it must be at least 1"),
    (
        "number too large to fit in target type",
        "it is too large a number",
    ),
    ("invalid float literal", "it must be a number"),
    (" is not in ", " is not within "),
    ("..=", " to "),
    (
        "invalid IP address syntax",
        "it must be an IP address, such as 127.0.0.1",
    ),
];

/// A message of the argument parser in at most three lines.
fn condensed(message: &str) -> String {
    let message = message.trim_start_matches("error: ");
    let (what, usage) = message.split_once("Usage: ").unwrap_or((message, ""));
    let words = what
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let what = words.collect::<Vec<_>>().join("; ").replace(":; ", ": ");
    // What stands before it was written by who is told.
    let (written, why) = what.split_at(what.rfind("': ").unwrap_or(what.len()));
    let mut what = why.to_owned();
    for (jargon, words) in JARGON {
        what = what.replace(jargon, words);
    }
    what.insert_str(0, written);
    match usage.lines().next() {
        Some(usage) => format!("{what}\nUsage: {usage}\nSee `capo --help`."),
        None => format!("{what}\nSee `capo --help`."),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn runs_are_kept_by_study_and_seed() {
        let study = StudyArgument {
            study: "studies/help-desk.toml".into(),
            seed: None,
            set: Vec::new(),
            outside: Outside { allow_outside: false },
        };
        assert_eq!(
            study.default_journal(3, "journal.jsonl"),
            Path::new("runs/help-desk-3.journal.jsonl")
        );
    }

    #[test]
    fn a_command_alone_names_what_may_follow_it() {
        for (line, expected) in [
            (
                &["capo"][..],
                "`capo` needs to be told what to do: optimize, evaluate, certify, compare, journal, embed, experiment",
            ),
            (
                &["capo", "journal"],
                "`capo journal` needs to be told what to do: show, verify, export, branch\nSee `capo journal --help`.",
            ),
        ] {
            let error = Cli::try_parse_from(line).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
            let message = what_there_is(&error.render().to_string());
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn wrong_values_are_told_without_the_words_of_parsers() {
        for (line, part) in [
            (&["capo", "optimize", "a.toml", "--seed", "x"][..], "whole number"),
            (&["capo", "experiment", "beta", "--jobs", "0"], "at least 1"),
            (&["capo", "simulate", "--seed", "1e3"], "whole number"),
            (&["capo", "simulate", "--latency", "-1"], "at least 0"),
            (&["capo", "simulate", "--latency", "nan"], "at least 0"),
            (&["capo", "simulate", "--hang", "inf"], "at least 0"),
            (&["capo", "simulate", "--host", "here"], "such as 127.0.0.1"),
            (&["capo", "simulate", "--port", "1..=2"], "'1..=2'"),
            (&["capo", "simulate", "--model", "gpt-5"], "sim-small, sim-medium"),
        ] {
            let error = Cli::try_parse_from(line).unwrap_err();
            let message = condensed(&error.render().to_string());
            assert!(message.contains(part), "{message}");
            for jargon in ["digit found", "non-zero", "literal", "syntax"] {
                assert!(!message.contains(jargon), "{message}");
            }
        }
    }

    #[test]
    fn mistakes_are_told_in_three_lines() {
        for (line, part) in [
            (&["capo", "optimise"][..], "optimize"),
            (&["capo", "optimize"], "<STUDY>"),
            (&["capo", "optimize", "a.toml", "--jsn"], "--json"),
            (&["capo", "optimize", "a.toml", "--seed", "-1"], "--seed"),
            (&["capo", "journal", "show"], "<JOURNAL>"),
            (&["capo", "serv"], "serve"),
            (&["capo", "serve", "--adr", "x"], "--addr"),
        ] {
            let error = Cli::try_parse_from(line).unwrap_err();
            let message = condensed(&error.render().to_string());
            assert!(
                message.contains(part) && message.lines().count() <= 3,
                "{message}"
            );
        }
    }
}
