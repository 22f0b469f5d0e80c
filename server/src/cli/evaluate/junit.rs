//! Verdicts as JUnit XML, which build servers read: a suite for each prompt, a case for each thing that it has to keep.

use std::path::Path;
use std::{io, iter};

use capo_core::metric::PROMPT_LENGTH;
use capo_core::reading::examples::Examples;
use capo_core::reading::{measured, metrics};
use capo_core::workload::Split;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::bars::Bar;
use super::trials::{Name, Tried};
use crate::cli::failure::Failure;
use crate::cli::{layout::number, place};
use crate::terminal::harmless;

/// Examples that a failure names at most.
const SHOWN: usize = 10;

/// Why a prompt has no verdict where nothing else is known.
const UNMEASURED: &str = "it was not measured to its end";

/// What is told of the prompts of a study.
pub(super) struct Verdicts<'a> {
    pub(super) tried: &'a [Tried],
    /// Those that came to no end.
    pub(super) unmeasured: &'a [Name],
    /// What stopped the first of them.
    pub(super) why: Option<&'a str>,
    pub(super) split: Split,
}

/// A document under construction.
type Document = Writer<Vec<u8>>;

impl Verdicts<'_> {
    /// Writes them for a study.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn write(&self, path: &Path, study: &str) -> Result<(), Failure> {
        let document = self
            .document(study)
            .map_err(|error| Failure::new(format!("{} cannot be written: {error}", path.display())))?;
        place::write(path, &String::from_utf8_lossy(&document))
    }

    fn document(&self, study: &str) -> io::Result<Vec<u8>> {
        let mut writer = Document::new_with_indent(Vec::new(), b' ', 2);
        writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        let [tests, failures, errors] = counts(self.tried, self.unmeasured.len());
        writer
            .create_element("testsuites")
            .with_attribute(("name", legal(study).as_str()))
            .with_attribute(("tests", tests.as_str()))
            .with_attribute(("failures", failures.as_str()))
            .with_attribute(("errors", errors.as_str()))
            .write_inner_content(|writer| {
                let mut tried = self.tried.iter();
                tried.try_for_each(|one| suite(writer, one, self.split))?;
                let whys = self.why.into_iter().chain(iter::repeat(UNMEASURED));
                let mut unmeasured = self.unmeasured.iter().zip(whys);
                unmeasured.try_for_each(|(name, why)| unmeasured_suite(writer, name, why))
            })?;
        let mut document = writer.into_inner();
        document.push(b'\n');
        Ok(document)
    }
}

/// How many cases there are, failed and not measured, with one for each that came to no end.
fn counts(tried: &[Tried], unmeasured: usize) -> [String; 3] {
    let mut counts = [unmeasured, 0, unmeasured];
    for one in tried {
        let broken = one.bars.iter().filter(|bar| bar.is_broken()).count();
        let found = match one.evaluation.halt {
            Some(_) => [1, 0, 1],
            None => [one.bars.len(), broken, 0],
        };
        for (count, more) in counts.iter_mut().zip(found) {
            *count += more;
        }
    }
    counts.map(|count: usize| count.to_string())
}

fn unmeasured_suite(writer: &mut Document, name: &Name, why: &str) -> io::Result<()> {
    let name = legal(&name.to_string());
    writer
        .create_element("testsuite")
        .with_attribute(("name", name.as_str()))
        .with_attribute(("tests", "1"))
        .with_attribute(("failures", "0"))
        .with_attribute(("errors", "1"))
        .with_attribute(("time", "0.000"))
        .write_inner_content(|writer| unmeasured_case(writer, &name, why))?;
    Ok(())
}

fn unmeasured_case(writer: &mut Document, name: &str, why: &str) -> io::Result<()> {
    case(
        writer,
        [name, "measured"],
        Some(["error", "not measured", why, ""]),
    )
}

fn suite(writer: &mut Document, one: &Tried, split: Split) -> io::Result<()> {
    let name = legal(&one.name.to_string());
    let [tests, failures, errors] = counts(std::slice::from_ref(one), 0);
    writer
        .create_element("testsuite")
        .with_attribute(("name", name.as_str()))
        .with_attribute(("tests", tests.as_str()))
        .with_attribute(("failures", failures.as_str()))
        .with_attribute(("errors", errors.as_str()))
        .with_attribute(("time", format!("{:.3}", one.seconds).as_str()))
        .write_inner_content(|writer| match &one.evaluation.halt {
            Some(halt) => unmeasured_case(writer, &name, &halt.to_string()),
            None => one.bars.iter().try_for_each(|bar| {
                let kind = if bar.is_demanded() {
                    "fail-under"
                } else {
                    "threshold"
                };
                let (told, furthest) = (bar.told(), furthest(one, bar, split).unwrap_or_default());
                let fault = ["failure", kind, told.as_str(), furthest.as_str()];
                let names = [name.as_str(), &bar.name()];
                case(writer, names, bar.is_broken().then_some(fault))
            }),
        })?;
    Ok(())
}

/// A case of a class with its name, and why it did not pass: element, type, message and more.
fn case(writer: &mut Document, [class, name]: [&str; 2], fault: Option<[&str; 4]>) -> io::Result<()> {
    let case = writer
        .create_element("testcase")
        .with_attribute(("classname", class))
        .with_attribute(("name", legal(name).as_str()));
    let Some([element, kind, message, more]) = fault else {
        case.write_empty()?;
        return Ok(());
    };
    case.write_inner_content(|writer| {
        writer
            .create_element(element)
            .with_attribute(("type", kind))
            .with_attribute(("message", legal(message).as_str()))
            .write_text_content(BytesText::new(&legal(more)))?;
        Ok(())
    })?;
    Ok(())
}

/// The examples that lie furthest beyond a bar, a line each. The length of a prompt is that of all.
fn furthest(one: &Tried, bar: &Bar, split: Split) -> Option<String> {
    let (prompt, run) = (one.prompt()?, one.run.as_ref()?);
    let metric = metrics::named(prompt.state, &bar.metric).filter(|metric| metric.name() != PROMPT_LENGTH)?;
    let record = run.study.workloads.values().nth(usize::from(metric.workload))?;
    let examples = Examples::whole(prompt.state, split);
    let mut values = measured::by_example(prompt.state, &prompt.candidate, &metric, &examples)?;
    values.retain(|(_, value)| bar.bound.excess(*value) > 0.0);
    values.sort_by(|(_, one), (_, other)| bar.bound.excess(*other).total_cmp(&bar.bound.excess(*one)));
    let names = record.split(split);
    let shown = values.iter().take(SHOWN);
    let lines = shown.map(|(place, value)| format!("{} of example {}", number(*value), names[*place]));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// A text without what XML has no way to write.
fn legal(text: &str) -> String {
    harmless(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
