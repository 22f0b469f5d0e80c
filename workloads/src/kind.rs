//! What a kind of workload says of itself before one is built: lists, forms and screens ask nobody else.

use capo_core::llm::{Message, Role};
use capo_core::metric::MetricSpec;
use capo_core::study::Table;
use schemars::Schema;
use serde_json::Value;

use crate::embeddings::Wanted;
use crate::files::Files;
use crate::outside::Written;
use crate::settings::{BuildError, Settings, Workloads};

/// A kind of workload. Those of [`crate::KINDS`] are all there are.
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Kind {
    /// Its name in study files.
    pub name: &'static str,
    /// Its name on screens.
    pub title: &'static str,
    /// What a prompt is measured on, in a sentence or two; may be empty.
    pub summary: &'static str,
    /// A study to begin with, as TOML; it need not run before somebody has filled it in.
    pub beginning: &'static str,
    /// The settings that name files which a study brings along; `data` among them where those are rows.
    pub files: &'static [&'static str],
    /// Whether an agent of the user's own does the examples, and no model of the role `agent`.
    pub own_agent: bool,
    /// Whether an example is one call of the agent: the prompt, then the message that the setting `user` is a template of.
    pub one_call: bool,
    /// Whether simulated models can play everybody in it.
    pub simulated: bool,
    /// Whether it reads files that every study of it shares, too large to be brought along by each.
    pub shares_files: bool,
    /// What tells a study of it from others in a line about a run, such as "own table"; none where nothing need.
    pub about: fn(&Table) -> Option<String>,
    /// What the answers of a tool begin with that failed; none where it has no tools.
    pub failed: Option<&'static str>,
    /// Metrics, by name and unit, that count what seldom happens twice in an example: their means are shown as shares.
    pub shown_as_share: &'static [(&'static str, &'static str)],
    /// Words of settings that older studies have, as (setting, old word, word).
    pub former_words: &'static [(&'static str, &'static str, &'static str)],
    /// Settings under which a number draws the examples that are searched on and held out: for 0 those that are given,
    /// none where nothing is drawn.
    pub drawn: fn(&Table, u64) -> Option<Table>,
    /// Settings with so many held-out examples that no search with the given settings sees, others for another number as
    /// long as there are; none where examples are given, not made.
    pub fresh: fn(&Table, u32, u64) -> Option<Table>,
    /// What [`capo_core::workload::Trace::details`] of its rollouts say.
    pub view: fn(&Value) -> TraceView,
    /// The names of its settings.
    pub(crate) settings: fn() -> Vec<&'static str>,
    /// The tables among its settings that name a program or an address of the study's author, which rollouts ask.
    pub(crate) outside: fn(&Table) -> Vec<Written<'_>>,
}

impl Kind {
    /// A kind with the names of its settings that needs nothing else said.
    pub(crate) const fn new(
        name: &'static str,
        title: &'static str,
        beginning: &'static str,
        settings: fn() -> Vec<&'static str>,
    ) -> Self {
        Self {
            name,
            title,
            summary: "",
            beginning,
            files: &[],
            own_agent: false,
            one_call: false,
            simulated: true,
            shares_files: false,
            about: |_| None,
            failed: None,
            shown_as_share: &[],
            former_words: &[],
            drawn: |_, _| None,
            fresh: |_, _, _| None,
            view: |_| TraceView::default(),
            settings,
            outside: |_| Vec::new(),
        }
    }

    /// Whether it has a setting of this name.
    pub fn has(&self, setting: &str) -> bool {
        (self.settings)().contains(&setting)
    }

    /// Whether its examples are rows that a study brings along.
    pub fn takes_rows(&self) -> bool {
        self.files.contains(&"data")
    }
}

/// The settings with the seed of their split moved on by a number.
pub(crate) fn reseeded(settings: &Table, number: u64) -> Table {
    let mut drawn = settings.clone();
    if number > 0 {
        let own = settings.get("seed").and_then(Value::as_u64).unwrap_or(0);
        drawn.insert("seed".into(), own.wrapping_add(number).into());
    }
    drawn
}

/// The same of a user's rows, unless they are taken in the order of the file.
pub(crate) fn drawn_rows(settings: &Table, number: u64) -> Option<Table> {
    let in_order = settings.get("shuffle").and_then(Value::as_bool) == Some(false);
    (!in_order).then(|| reseeded(settings, number))
}

pub(crate) type Build = fn(Settings, &dyn Files, u64) -> Result<Workloads, BuildError>;
type TextsToEmbed = fn(Settings, &dyn Files) -> Result<Wanted, BuildError>;

/// How workloads of a kind come about. Apart from [`Kind`], so that a form links no workload.
pub(crate) struct Making {
    /// Makes them of settings, the files they name, and the study's seed.
    pub(crate) build: Build,
    /// What they would measure that cannot be built before there are data; none where building says it.
    pub(crate) declared: fn(&Table) -> Option<Declared>,
    /// The texts that they want vectors of; none where they want no vectors.
    pub(crate) texts_to_embed: Option<TextsToEmbed>,
}

impl Making {
    /// Of a kind that is built and nothing else.
    pub(crate) const fn by(build: Build) -> Self {
        Self {
            build,
            declared: |_| None,
            texts_to_embed: None,
        }
    }
}

/// Makes the schema of a kind's settings.
pub(crate) type MakeSchema = fn() -> Schema;

/// What workloads measure and whom they ask.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declared {
    /// The metrics of all of them, each name once.
    pub metrics: Vec<MetricSpec>,
    /// The roles of the models that their rollouts ask.
    pub roles: Vec<Role>,
}

impl Declared {
    /// Those of workloads that were built.
    pub fn of(workloads: &Workloads) -> Self {
        let mut declared = Self::default();
        for workload in workloads {
            for metric in workload.metrics() {
                if declared.metrics.iter().all(|known| known.name != metric.name) {
                    declared.metrics.push(metric.clone());
                }
            }
            for (role, _) in workload.max_calls() {
                if !declared.roles.contains(&role) {
                    declared.roles.push(role);
                }
            }
        }
        declared
    }
}

/// The details of a rollout in terms that every screen knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceView {
    /// What the result is made of, its parts below it.
    pub facts: Vec<Fact>,
    /// What was changed in the states of both sides; none where nothing can be.
    pub changes: Option<Changes>,
    /// The conversation as a user with tools of its own saw it; empty where it made no calls.
    pub user: Vec<Message>,
}

/// One line about a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub name: String,
    /// How it came out; none where that does not count.
    pub value: Option<String>,
    /// What else is to be said of it; may be empty.
    pub note: String,
}

/// What a rollout changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// In the order they were made.
    pub made: Vec<Change>,
    /// How many more were not recorded.
    pub left_out: u64,
}

/// A value that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// In whose state.
    pub side: Side,
    /// Where it stands there.
    pub path: String,
    /// What it was; none where there was nothing.
    pub before: Option<String>,
    /// What it became; none where it was removed.
    pub after: Option<String>,
}

/// Whose state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The agent's.
    Agent,
    /// The user's.
    User,
}
