//! `capo init`: a study to begin with.

mod answers;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use capo_core::study::nearest;
use capo_workloads::data::{ASKED, EXPECTED, Format, Look, guess, template};
use capo_workloads::files::{FileError, Files, MemoryFiles};
use capo_workloads::{BuildError, KINDS, Kind};
use clap::builder::PossibleValuesParser;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use self::answers::{at_terminal, chosen, examples_at, model};
use super::Outside;
use super::chats::Chats;
use super::failure::{Ending, Failure, print};
use super::layout::quoted;
use super::steering::setting;
use crate::files::{Reach, StudyFolder, write_new, write_whole};
use crate::session::{SessionError, StudyFile};
use crate::stderr::warn;

/// Write a study to begin with, on examples of your own or any kind of workload; at a terminal, ask for what is not given.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct InitArgs {
    /// The study's file, which ends in `.toml`, or a folder for `study.toml` [default: study.toml].
    #[arg(value_name = "PLACE", default_value = "study.toml", hide_default_value = true)]
    place: PathBuf,
    /// What prompts are measured on: a CSV, TSV or JSONL file with a row for each example, or a log of chats, JSON or JSONL,
    /// of which rows are made; of the tau2 benchmark its folder data/tau2.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Kind of workload [default: table with --from, else desk].
    #[arg(long, value_parser = PossibleValuesParser::new(KINDS.iter().map(|kind| kind.name)))]
    kind: Option<String>,
    /// Who answers [default: simulated/sim-medium].
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// How answers are compared with those expected [default: f1 for chats; else numeric or normalized, as they look].
    #[arg(long, value_name = "TYPE", value_parser = COMPARED)]
    metric: Option<String>,
    /// What a mean cost is to stay at or below; may be given several times [default: prompt_length=5, unless the kind
    /// begins with others].
    #[arg(long = "threshold", value_name = "METRIC=VALUE", value_parser = setting)]
    thresholds: Vec<(String, f64)>,
    /// Replace a study that is there; rows that are there are kept.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    outside: Outside,
}

const MODEL: &str = "simulated/sim-medium";
const THRESHOLD: &str = "prompt_length=5";

/// Rows that stand for a person's own.
const EXAMPLES: (&str, &str) = (
    "examples.csv",
    "question,answer\nWhat is 17 + 25?,42\nWhat is 9 * 8?,72\nWhat is 100 - 37?,63\nWhat is 144 / 12?,12\n\
     What is 6 * 15?,90\nWhat is 58 + 67?,125\n",
);

/// The address of an agent of one's own, until somebody writes another.
const ENDPOINT: &str = "http://127.0.0.1:8765/";

/// Rows that are searched on, at most.
const MOST_SEARCHED: usize = 100;

/// Rows that are held out, at most; a third of all if that is less.
const MOST_HELD_OUT: usize = 200;

/// Rollouts that the search may spend for each row, and at most.
const ROLLOUTS_A_ROW: usize = 50;
const MOST_ROLLOUTS: usize = 2000;

/// Rows that are left out because another one asks the same, at most.
const MOST_TWINS: usize = 100;

/// The metrics that need no more than the answer expected.
const COMPARED: [&str; 7] = [
    "exact",
    "normalized",
    "contains",
    "numeric",
    "f1",
    "rouge",
    "judge",
];

/// What a judge grades by, before the answer expected.
const RUBRIC: &str = "Does the answer tell the user what this reference tells, in whatever words?";

/// Runs the command.
pub(crate) fn run(args: &InitArgs) -> Result<Ending, Failure> {
    let (place, named) = (&args.place, args.place.to_string_lossy());
    let extension = place.extension().and_then(OsStr::to_str);
    let holds_data = Format::of_path(&named).is_some() || extension == Some("json");
    let place = if place.is_dir() {
        place.join("study.toml")
    } else if extension == Some("toml") {
        place.clone()
    } else if holds_data || place.exists() {
        let named = quoted(&named);
        let instead = if holds_data && place.exists() && args.from.is_none() {
            format!("for one on what it holds: capo init --from {named}")
        } else {
            "name a folder, or a file that ends in .toml".to_owned()
        };
        return Err(Failure::usage(format!(
            "{named} is no place for a study; {instead}"
        )));
    } else {
        place.join("study.toml")
    };
    refuse_to_replace(&place, args.force)?;
    let mut draft = Draft::begin(args, place)?;
    draft.read(args)?;
    draft.complete(args)?;
    let text = draft.checked(args)?;
    draft.write(&text, args.force)?;
    if !draft.assumed.is_empty() {
        let assumed = draft.assumed.join("; ");
        warn(&format!("assumed, as nothing else was said: {assumed}"));
    }
    let place = draft.place.to_string_lossy();
    let next = quoted(&place);
    print(&format!(
        "{}{place} is written. Next: capo optimize {next} --dry-run\n",
        draft.told
    ))?;
    Ok(Ending::Done)
}

/// A study that is being put together.
struct Draft {
    kind: &'static Kind,
    /// Where it is to lie.
    place: PathBuf,
    document: DocumentMut,
    rows: Option<Rows>,
    /// How answers are compared, where that is said.
    metric: Option<String>,
    /// What nobody said.
    assumed: Vec<String>,
    /// What was made of a log of chats, in a line.
    told: String,
}

/// A file of rows as the study names it.
struct Rows {
    name: String,
    bytes: Vec<u8>,
    count: usize,
    /// Whether it is still to be put beside the study.
    is_new: bool,
}

impl Draft {
    /// The beginning of the kind that is asked for.
    fn begin(args: &InitArgs, place: PathBuf) -> Result<Self, Failure> {
        let mut assumed = Vec::new();
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let question = format!("What are prompts measured on: {}?", names.join(", "));
        let given = args.kind.as_deref().or(args.from.as_ref().map(|_| "table"));
        let of_name = |name: &str| {
            KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
                let near =
                    nearest(name, names.iter().copied()).map(|near| format!("did you mean `{near}`? "));
                let near = near.unwrap_or_default();
                format!("there is no kind `{name}`; {near}there are {}", names.join(", "))
            })
        };
        let kind = chosen(given, &question, ("--kind", "desk"), &mut assumed, of_name)?;
        if args.metric.is_some() && !(kind.has("user") && kind.has("metric")) {
            let problem = format!("--metric: `{}` has metrics of its own", kind.name);
            return Err(Failure::usage(problem));
        }
        let shipped = "cargo capo optimize studies/help-desk.toml";
        let own = format!("capo optimize {}", quoted(&place.to_string_lossy()));
        let document: Result<DocumentMut, _> = kind.beginning.replace(shipped, &own).parse();
        Ok(Self {
            kind,
            place,
            document: document.map_err(|error| Failure::new(error.to_string()))?,
            rows: None,
            metric: args.metric.clone(),
            assumed,
            told: String::new(),
        })
    }

    /// Sets a key of `[workload]`.
    fn set(&mut self, key: &str, to: Item) {
        self.document["workload"][key] = to;
    }

    /// Takes in what prompts are measured on.
    fn read(&mut self, args: &InitArgs) -> Result<(), Failure> {
        let from = if args.from.is_none() && self.kind.takes_rows() && at_terminal() {
            let question = "Which file holds your examples: CSV, TSV, JSONL or a log of chats?";
            let usual = ("--from", EXAMPLES.0);
            chosen(None, question, usual, &mut self.assumed, |typed| {
                examples_at(typed, EXAMPLES.0)
            })?
        } else {
            args.from.clone()
        };
        let rows = match &from {
            Some(from) if self.kind.takes_rows() => self.take(from, args.outside)?,
            Some(from) if self.kind.has("data") => {
                let path = named(&self.place, from).unwrap_or_else(|| from.display().to_string());
                self.set("data", value(path));
                return Ok(());
            }
            Some(_) => {
                let problem = format!("--from: `{}` reads no files", self.kind.name);
                return Err(Failure::usage(problem));
            }
            None if self.kind.takes_rows() => {
                let (name, rows) = EXAMPLES;
                self.assumed
                    .push(format!("the rows in {name}, until yours take their place"));
                (name.to_owned(), rows.into(), true)
            }
            None => return Ok(()),
        };
        let (name, mut bytes, mut is_new) = rows;
        if is_new {
            let place = self.place.with_file_name(&name);
            match StudyFolder::of(&self.place, args.outside.reach()).read(&name) {
                Err(FileError::NotFound(_)) => {}
                Err(error) => return Err(Failure::usage(error.to_string())),
                Ok(there) if from.is_none() || there == bytes => (bytes, is_new) = (there, false),
                Ok(_) => {
                    return Err(Failure::usage(format!(
                        "{} is there already and holds other rows, which are not replaced; give one of the files \
                         another name",
                        place.display()
                    )));
                }
            }
        }
        let look = Look::at_table(&name, &bytes, usize::MAX);
        let look = look.map_err(|error| Failure::usage(error.to_string()))?;
        if self.kind.has("user") {
            self.use_columns(&look, &String::from_utf8_lossy(&bytes))
                .map_err(|problem| Failure::usage(format!("{name}: {problem}; see docs/own-table.md")))?;
        }
        if self.kind.has("endpoint") {
            self.set("endpoint", value(ENDPOINT));
            self.assumed.push(format!("an agent that is asked at {ENDPOINT}"));
        }
        let stem = Path::new(&name).file_stem().unwrap_or_default();
        self.document["study"]["name"] = value(stem.to_string_lossy().replace(['_', '-'], " "));
        self.set("data", value(&name));
        let count = look.count;
        self.rows = Some(Rows {
            name,
            bytes,
            count,
            is_new,
        });
        Ok(())
    }

    /// A file of rows as the study names it, what it holds, and whether it is to be copied: a study reads none elsewhere.
    fn take(&mut self, from: &Path, outside: Outside) -> Result<(String, Vec<u8>, bool), Failure> {
        let file_name = from.file_name().filter(|_| from.is_file());
        let Some(file_name) = file_name.map(|name| name.to_string_lossy().into_owned()) else {
            return Err(Failure::usage(format!("--from: {} is no file", from.display())));
        };
        let bytes = StudyFolder::of(from, Reach::Anywhere).read(&file_name);
        let bytes = bytes.map_err(|error| Failure::usage(error.to_string()))?;
        if self.kind.has("user")
            && let Some(chats) = Chats::read(&bytes)
        {
            return self.take_chats(&file_name, chats);
        }
        if let Some(name) = named(&self.place, from) {
            return Ok((name, bytes, false));
        }
        if outside.allow_outside {
            return Ok((fs::canonicalize(from)?.display().to_string(), bytes, false));
        }
        self.assumed
            .push(format!("a copy of {} beside the study", from.display()));
        Ok((file_name, bytes, true))
    }

    /// The rows that are made of a log of chats, as [`Self::take`] has them.
    fn take_chats(&mut self, log: &str, chats: Chats) -> Result<(String, Vec<u8>, bool), Failure> {
        if chats.rows.is_empty() {
            return Err(Failure::usage(format!(
                "{log}: {}; see docs/own-table.md",
                chats.told
            )));
        }
        let stem = Path::new(log).file_stem().unwrap_or_default();
        let name = format!("{}-rows.jsonl", stem.to_string_lossy());
        self.told = format!("{name}: {}\n", chats.told);
        if let Some(system) = chats.system {
            self.document["prompt"]["text"] = value(system);
        }
        let question = "How are answers compared with those of the chats: f1, judge?";
        let compared = |metric: &str| {
            let metric = COMPARED.contains(&metric).then(|| metric.to_owned());
            metric.ok_or_else(|| format!("there are {}", COMPARED.join(", ")))
        };
        let metric = chosen(
            self.metric.as_deref(),
            question,
            ("--metric", "f1"),
            &mut self.assumed,
            compared,
        )?;
        self.metric = Some(metric);
        Ok((name, chats.rows.into_bytes(), true))
    }

    /// Chooses which column is asked, which holds the answer expected, and how answers are compared.
    fn use_columns(&mut self, look: &Look, text: &str) -> Result<(), String> {
        let mut columns = look.columns.clone();
        columns.retain(|column| template(column).is_some());
        let expected = guess(&columns, EXPECTED).or(columns.last()).cloned();
        columns.retain(|column| Some(column) != expected.as_ref() && !column.eq_ignore_ascii_case("id"));
        let asked = guess(&columns, ASKED).or(columns.first());
        let (Some(asked), Some(expected)) = (asked, expected) else {
            return Err(format!(
                "a question and an answer need a column each, named by letters, digits and _, and there are {}",
                look.columns.join(", ")
            ));
        };
        let place = look.columns.iter().position(|column| *column == expected);
        let mut answers = look.first.iter().filter_map(|row| row.get(place?));
        let is_number = |answer: &String| {
            let digits = answer.trim().trim_start_matches('$').replace(',', "");
            digits.parse::<f64>().is_ok()
        };
        // Worked solutions end in `#### 72`, which the beginning of a long one does not show.
        let is_numeric = text.matches("#### ").count() >= look.count || answers.all(is_number);
        let by_looks = if is_numeric { "numeric" } else { "normalized" };
        let way = self.metric.clone().unwrap_or_else(|| by_looks.to_owned());
        let template = |column: &str| template(column).unwrap_or_default();
        let metric = &mut self.document["workload"]["metric"][0];
        metric["type"] = value(&way);
        if way == "judge" {
            metric["rubric"] = value(format!("{RUBRIC}\n\n{}", template(&expected)));
            if let Some(table) = metric.as_table_mut() {
                table.remove("expected");
            }
        } else {
            metric["expected"] = value(template(&expected));
        }
        self.set("user", value(template(asked)));
        self.assumed.push(format!(
            "`{asked}` is asked and `{expected}` expected, compared by `{way}`"
        ));
        Ok(())
    }

    /// Puts in who answers and thresholds, where the beginning has none.
    fn complete(&mut self, args: &InitArgs) -> Result<(), Failure> {
        let lacks = |document: &DocumentMut, key: &str| {
            let item = document.get(key);
            item.is_none_or(|item| item.as_table().is_some_and(Table::is_empty))
        };
        let question = "Who answers, as PROVIDER/MODEL?";
        let (provider, name) = chosen(
            args.model.as_deref(),
            question,
            ("--model", MODEL),
            &mut self.assumed,
            model,
        )?;
        if lacks(&self.document, "models") || format!("{provider}/{name}") != MODEL {
            self.put_model(&provider, &name);
        }
        if args.thresholds.is_empty() && lacks(&self.document, "constraint") {
            self.choose_threshold(args)?;
        }
        for (metric, threshold) in &args.thresholds {
            self.put_threshold(metric, *threshold);
        }
        Ok(())
    }

    /// Puts in a threshold that nobody gave.
    fn choose_threshold(&mut self, args: &InitArgs) -> Result<(), Failure> {
        let question = "Which mean cost is to stay at or below what, as METRIC=VALUE?";
        let is_asked = at_terminal();
        if is_asked {
            // What is wrong without a threshold is no wrong answer.
            self.try_out(args)?;
        }
        let mut assumed = mem::take(&mut self.assumed);
        let put = |typed: &str| {
            let (metric, threshold) = setting(typed)?;
            self.put_threshold(&metric, threshold);
            let tried = if is_asked { self.try_out(args) } else { Ok(()) };
            tried.map_err(|failure| {
                self.document.remove("constraint");
                failure.message().to_owned()
            })
        };
        let put = chosen(None, question, ("--threshold", THRESHOLD), &mut assumed, put);
        self.assumed = assumed;
        put
    }

    /// Whether a run could begin with it as it is.
    fn try_out(&mut self, args: &InitArgs) -> Result<(), Failure> {
        let before = self.document.clone();
        let checked = self.checked(args);
        self.document = before;
        checked.map(drop)
    }

    fn put_model(&mut self, provider: &str, name: &str) {
        // An agent of one's own is no model; what rewrites its prompts is one.
        let role = if self.kind.own_agent { "rewriter" } else { "agent" };
        let mut table = Table::new();
        table
            .decor_mut()
            .set_prefix("\n# Who answers: docs/providers.md. Roles without a table fall back on others.\n");
        table["provider"] = value(provider);
        if !name.is_empty() {
            table["model"] = value(name);
        }
        let mut models = Table::new();
        models.set_implicit(true);
        models.insert(role, Item::Table(table));
        self.document["models"] = Item::Table(models);
    }

    fn put_threshold(&mut self, metric: &str, threshold: f64) {
        let constraints = self.document["constraint"].or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let Some(constraints) = constraints.as_array_of_tables_mut() else {
            return;
        };
        let of_metric = |table: &&mut Table| table.get("metric").and_then(Item::as_str) == Some(metric);
        if let Some(known) = constraints.iter_mut().find(of_metric) {
            known["threshold"] = value(threshold);
            return;
        }
        let mut table = Table::new();
        if constraints.is_empty() {
            table.decor_mut().set_prefix(
                "\n# What to keep at or below a threshold, on the mean over all examples; `prompt_length` is thousands of\n\
                 # characters. Any other cost that is measured may stand in a [[constraint]] of its own.\n",
            );
        }
        table["metric"] = value(metric);
        table["threshold"] = value(threshold);
        constraints.push(table);
    }

    /// Its text, once a run could begin with it.
    fn checked(&mut self, args: &InitArgs) -> Result<String, Failure> {
        let mut twins: Vec<String> = Vec::new();
        let mut memory = MemoryFiles::new();
        if let Some(rows) = &self.rows {
            memory.insert(&rows.name, rows.bytes.as_slice());
        }
        loop {
            if let Some(count) = self.rows.as_ref().map(|rows| rows.count) {
                self.split(count.saturating_sub(twins.len()));
            }
            let text = self.document.to_string();
            let file = StudyFile::parse_with(&text, &self.place, args.outside.reach(), &[])?;
            let files: &dyn Files = if self.rows.is_some() {
                &memory
            } else {
                &file.folder
            };
            match file.setup_from(files) {
                Ok(_) => return Ok(text),
                Err(SessionError::Workload {
                    error: BuildError::Overlap { ids, .. },
                    ..
                }) if twins.len() < MOST_TWINS => {
                    twins.extend(ids);
                    let ids: Array = twins.iter().map(String::as_str).collect();
                    self.set("exclude", value(ids));
                }
                Err(error) if args.from.is_none() && self.kind.has("data") => {
                    return Err(Failure::usage(format!(
                        "{error}\nName what it reads with --from."
                    )));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Holds a third of so many rows out, and lets few of them cost less.
    fn split(&mut self, rows: usize) {
        let held_out = (rows / 3).min(MOST_HELD_OUT);
        let whole = |count: usize| value(i64::try_from(count).unwrap_or(i64::MAX));
        self.set("evaluate", whole(held_out));
        if rows - held_out > MOST_SEARCHED {
            self.set("optimize", whole(MOST_SEARCHED));
        }
        self.document["budget"]["rollouts"] = whole((rows * ROLLOUTS_A_ROW).min(MOST_ROLLOUTS));
    }

    fn write(&self, text: &str, force: bool) -> Result<(), Failure> {
        let put: fn(&Path, &[u8]) -> io::Result<()> = if force { write_whole } else { write_new };
        let folder = self
            .place
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let made = folder.map_or(Ok(()), fs::create_dir_all);
        let copied = made.and_then(|()| match &self.rows {
            Some(rows) if rows.is_new => write_new(&self.place.with_file_name(&rows.name), &rows.bytes),
            _ => Ok(()),
        });
        copied
            .and_then(|()| put(&self.place, text.as_bytes()))
            .map_err(|error| Failure::new(format!("{} cannot be written: {error}", self.place.display())))
    }
}

fn refuse_to_replace(path: &Path, force: bool) -> Result<(), Failure> {
    if path.exists() && !force {
        let problem = "is there already; name another place, or replace it with --force";
        return Err(Failure::usage(format!("{} {problem}", path.display())));
    }
    Ok(())
}

/// How a study names what lies in its folder or below; none for what lies elsewhere.
fn named(study: &Path, file: &Path) -> Option<String> {
    let folder = study.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
    let file = fs::canonicalize(file).ok()?;
    let below = file.strip_prefix(folder).ok()?.components();
    let parts: Option<Vec<&str>> = below.map(|part| part.as_os_str().to_str()).collect();
    Some(parts?.join("/"))
}
