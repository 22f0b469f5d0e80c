//! A small study over a table of word problems, in a folder of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::arithmetic::{Arithmetic, LONG};
use crate::program::command;
use crate::stub::Stub;

/// A study of rows, asked of simulated models.
pub const SUMS: &str = r#"
[study]
name = "sums"
rounds = 1

[workload]
kind = "table"
data = "rows.csv"
user = "{{ question }}"
evaluate = 1

[[workload.metric]]
type = "normalized"
name = "correct"
expected = "{{ answer }}"

[prompt]
text = "Add."

[objective]
metric = "correct"

[models.agent]
provider = "simulated"

[budget]
rollouts = 20
"#;

/// The variable that holds the key in every study here.
pub const KEY: &str = "CAPO_TEST_KEY";

/// Problems in the data file.
const PROBLEMS: usize = 18;

/// A folder with `study.toml` and `problems.jsonl`; gone when dropped.
#[derive(Debug)]
pub struct Study {
    folder: TempDir,
    text: String,
}

impl Study {
    /// Twelve problems to search on and six held out, one limit on long answers, four rounds, at
    /// most four calls at once, every role served at `base_url` by a model called `stub`.
    ///
    /// # Panics
    /// When this machine has no room for temporary files.
    pub fn new(base_url: &str) -> Self {
        let text = format!(
            r#"[study]
name = "word problems"
seed = 7
rounds = 4

[workload]
kind = "table"
data = "problems.jsonl"
optimize = 12
evaluate = 6
user = "{{{{ question }}}}"

[[workload.metric]]
type = "numeric"
name = "correct"
expected = "{{{{ answer }}}}"

[[workload.metric]]
type = "length"
name = "too_long"
limit = {}

[prompt]
text = "Solve the problem. End with #### and the number."

[objective]
metric = "correct"

[[constraint]]
metric = "too_long"
threshold = 0.2

[models.agent]
provider = "openai-compatible"
base_url = "{base_url}"
model = "stub"
api_key_env = "{KEY}"
concurrency = 4

[method]
parents = 2
children = 2

[budget]
"#,
            LONG / 2
        );
        let study = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            text,
        };
        fs::write(study.file("problems.jsonl"), problems()).expect("a file in it");
        study.save();
        study
    }

    /// The same with one part of the study file replaced.
    ///
    /// # Panics
    /// When the study file has no such part.
    #[must_use]
    pub fn with(mut self, part: &str, replacement: &str) -> Self {
        self.replace(part, replacement);
        self
    }

    /// Replaces a part of the study file.
    ///
    /// # Panics
    /// When the study file has no such part.
    #[track_caller]
    pub fn replace(&mut self, part: &str, replacement: &str) {
        assert!(self.text.contains(part), "no {part:?} in the study file");
        self.text = self.text.replacen(part, replacement, 1);
        self.save();
    }

    /// The same with another `[workload]` table.
    ///
    /// # Panics
    /// When the study file has none before its prompt.
    #[must_use]
    pub fn with_workload(mut self, table: &str) -> Self {
        let from = self.text.find("[workload]").expect("a workload");
        let to = self.text.find("[prompt]").expect("a prompt");
        self.text
            .replace_range(from..to, &format!("[workload]\n{table}\n\n"));
        self.save();
        self
    }

    /// The same with a line in its last section, `[budget]`.
    #[must_use]
    pub fn with_budget(self, line: &str) -> Self {
        self.with("[budget]\n", &format!("[budget]\n{line}\n"))
    }

    /// The same with a line in `[models.agent]`.
    #[must_use]
    pub fn with_agent(self, line: &str) -> Self {
        self.with("concurrency = 4\n", &format!("concurrency = 4\n{line}\n"))
    }

    /// The same of `http://unused`, served by a stub that answers at once; and the stub.
    pub fn on_stub(self) -> (Self, Stub) {
        self.on_stub_with(Duration::ZERO, None)
    }

    /// The same of `http://unused`, served by a stub of this latency and key, see [`Stub::start_with`]; and the stub.
    pub fn on_stub_with(self, latency: Duration, key: Option<&str>) -> (Self, Stub) {
        let stub = Stub::start_with(latency, key, self.models().script());
        (self.with("http://unused", &stub.base_url), stub)
    }

    fn save(&self) {
        fs::write(self.path(), &self.text).expect("a file in a temporary folder");
    }

    /// A path in the study's folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The study file.
    pub fn path(&self) -> PathBuf {
        self.file("study.toml")
    }

    /// The journal that [`Study::optimize`] writes.
    pub fn journal(&self) -> PathBuf {
        self.file("run.jsonl")
    }

    /// `capo optimize` on this study, with its journal, `--json` and a key.
    pub fn optimize(&self) -> Command {
        self.optimize_to(&self.journal())
    }

    /// [`Study::optimize`] with another journal.
    pub fn optimize_to(&self, journal: &Path) -> Command {
        let mut command = command(["optimize"]);
        command
            .arg(self.path())
            .arg("--journal")
            .arg(journal)
            .arg("--json")
            .env(KEY, "key-of-this-test");
        command
    }

    /// The agent, critic and rewriter for these problems.
    pub fn models(&self) -> Arithmetic {
        Arithmetic::from_jsonl(&self.file("problems.jsonl"))
    }
}

/// Word problems of our own, in GSM8K's form.
pub fn problems() -> String {
    let mut lines = String::new();
    for number in 1..=PROBLEMS {
        let (boxes, pens) = (number + 2, 3 * number % 11 + 2);
        let question = format!("A shop has {boxes} boxes of {pens} pens. How many pens is that?");
        let answer = format!("{boxes} times {pens} is {0}.\n#### {0}", boxes * pens);
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{}", json!({"question": question, "answer": answer}));
    }
    lines
}
