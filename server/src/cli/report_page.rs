//! `capo report`: what came of runs, for people who have no `capo`.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capo_core::journal::{in_report, without_conversations};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::failure::{Ending, Failure, print, print_data};
use super::layout::counted;
use super::{place, report};
use crate::recorded::RecordedRun;
use crate::serve::embedded_file;

/// What reports are made of, among the files of a built page.
const PAGE: &str = "report.txt";

/// Tell what came of runs: as text, or as the page that shows them, in one file that opens offline.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReportArgs {
    /// Journals of runs; the page compares several.
    #[arg(value_name = "JOURNAL", required = true, num_args = 1..)]
    journals: Vec<PathBuf>,
    /// Write an HTML page with the journals in it, which loads nothing from elsewhere.
    #[arg(long)]
    html: bool,
    /// File for the page, replaced if it is there unless it is a journal; standard output unless given.
    #[arg(long, value_name = "FILE", requires = "html")]
    out: Option<PathBuf>,
    /// Put the conversations of rollouts into the page, too; they are most of a journal's size. Critiques, which may quote
    /// them, are in it either way.
    #[arg(long, requires = "html")]
    traces: bool,
    /// Folder of a built page to use in place of the one inside this program.
    #[arg(long, value_name = "DIR", requires = "html")]
    page: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &ReportArgs) -> Result<Ending, Failure> {
    let out = args.out.as_deref();
    if let Some(path) = out {
        let journals = args.journals.iter().map(|path| ("a journal", path.as_path()));
        let page = args.page.as_ref().map(|folder| folder.join(PAGE));
        let page = page.iter().map(|path| ("of the page", path.as_path()));
        place::check("--out", path, journals.chain(page))?;
    }
    let out = out.filter(|path| !place::is_stdout(path));
    if args.html && out.is_none() && io::stdout().is_terminal() {
        return Err(Failure::usage(
            "a page is nothing to read on a terminal; name a file for it with --out FILE",
        ));
    }
    let journals = args.journals.iter();
    if !args.html {
        let told = journals.map(|path| RecordedRun::read(path).map(|run| told(&run)));
        print(&told.collect::<Result<Vec<_>, _>>()?.join("\n"))?;
        return Ok(Ending::Done);
    }
    let runs = journals.map(|path| RecordedRun::read_with_lines(path));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let page = page(args.page.as_deref())?;
    let journals = runs.iter().map(|(run, text)| packed(run, text, args.traces));
    let journals = journals.collect::<Result<Vec<_>, Failure>>()?;
    let report = in_report(&page, &journals).ok_or_else(|| {
        Failure::new(format!(
            "the page's {PAGE} has no place for journals; build it anew"
        ))
    })?;
    let Some(path) = out else {
        print_data(&report)?;
        return Ok(Ending::Done);
    };
    place::write(path, &report)?;
    let is_unended = |(run, _): &&(RecordedRun, String)| run.state.finished().is_none();
    let unended = runs.iter().filter(is_unended).count();
    let unended = match unended {
        0 => String::new(),
        unended => format!(", {unended} of them not ended"),
    };
    print(&format!(
        "{}: {}{unended}, {:.1} MB. It opens in a browser, without a network.\n",
        path.display(),
        counted(runs.len() as u64, "run"),
        report.len() as f64 / 1e6,
    ))?;
    Ok(Ending::Done)
}

fn told(run: &RecordedRun) -> String {
    match run.state.finished() {
        Some(finished) => report::result(&run.state, finished, &run.path.display()),
        None => format!(
            "{}: not ended; see how far it is by `capo journal show`\n",
            run.path.display()
        ),
    }
}

/// What reports are made of: from a folder, or from inside this program.
fn page(folder: Option<&Path>) -> Result<Cow<'static, str>, Failure> {
    if let Some(folder) = folder {
        let path = folder.join(PAGE);
        return std::fs::read_to_string(&path).map(Cow::Owned).map_err(|error| {
            Failure::new(format!(
                "{} cannot be read: {error}; name the folder of a page that `cargo xtask build` built",
                path.display()
            ))
        });
    }
    let page = embedded_file(PAGE).and_then(|bytes| std::str::from_utf8(bytes).ok());
    page.map(Cow::Borrowed).ok_or_else(|| {
        Failure::new(
            "this `capo` was built without the page; name the folder of a built one with --page DIR, or build both by \
             `cargo xtask build`",
        )
    })
}

/// A journal's lines by its file's name, as a report has it.
fn packed(run: &RecordedRun, text: &str, with_traces: bool) -> Result<(String, String), Failure> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    for line in text.lines() {
        let line = if with_traces {
            Cow::Borrowed(line)
        } else {
            without_conversations(line)
        };
        packed.write_all(line.as_bytes())?;
        packed.write_all(b"\n")?;
    }
    let name = run.path.file_name().unwrap_or_default().to_string_lossy();
    Ok((name.into_owned(), STANDARD.encode(packed.finish()?)))
}
