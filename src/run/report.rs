//! The result of a run as text and as a Markdown report, for taking away.

#![expect(
    clippy::format_push_string,
    reason = "a report, written once when somebody asks for it"
)]

use capo_core::journal::StudyEvent;
use capo_core::reading::comparison::{self, Difference};
use capo_core::run_state::RunState;
use capo_core::table::Table;
use capo_core::workload::Split;

use super::outcome::{self, MetricRow, Outcome};
use super::rounds::written_in;
use crate::format::{self, NOTHING, count, counted, dollars, tokens};
use crate::run::paired;
use crate::run::studied::Shown as _;

/// A Markdown report of a run that has ended: study, verdict, best prompt, held-out table, paired
/// differences against the seed prompt, costs by role. `None` while it goes on.
pub fn markdown(state: &RunState) -> Option<String> {
    let report = Report::new(state)?;
    let mut text = format!("# {}\n\n{}\n\n**{}**", report.title, report.about, report.verdict);
    for sentence in &report.sentences {
        text += &format!(" {sentence}");
    }
    text += "\n";
    for section in &report.sections {
        text += &format!("\n## {}\n\n", section.heading);
        match &section.body {
            Body::Prompt(prompt) => {
                let fence = fence(prompt);
                text += &format!("{fence}text\n{prompt}\n{fence}\n");
            }
            Body::Table(table) => text += &table.markdown(),
        }
        if let Some(note) = section.note {
            text += &format!("\n{note}\n");
        }
    }
    Some(text)
}

/// The same as plain text, in columns.
pub fn text(state: &RunState) -> Option<String> {
    let report = Report::new(state)?;
    let mut text = format!("{}\n{}\n\n{}\n", report.title, report.about, report.verdict);
    for sentence in &report.sentences {
        text += &format!("{sentence}\n");
    }
    for section in &report.sections {
        text += &format!("\n{}\n\n", section.heading);
        match &section.body {
            Body::Prompt(prompt) => text += &format!("{prompt}\n"),
            Body::Table(table) => text += &table.text(0),
        }
        if let Some(note) = section.note {
            text += &format!("\n{note}\n");
        }
    }
    Some(text)
}

/// What both forms say.
struct Report {
    title: String,
    about: String,
    verdict: String,
    sentences: Vec<String>,
    sections: Vec<Section>,
}

struct Section {
    heading: String,
    body: Body,
    note: Option<&'static str>,
}

enum Body {
    Prompt(String),
    Table(Table),
}

impl Section {
    fn table(heading: impl Into<String>, table: Table) -> Self {
        Self {
            heading: heading.into(),
            body: Body::Table(table),
            note: None,
        }
    }
}

impl Report {
    fn new(state: &RunState) -> Option<Self> {
        let (outcome, study) = (Outcome::new(state)?, state.study()?);
        let mut sections: Vec<Section> = best(state, &outcome).into_iter().collect();
        if outcome.rows.iter().any(|row| row.best.is_some()) {
            let table = Table::new(HELD_OUT).rows(outcome.rows.iter().map(held_out_row));
            let examples = counted(outcome.examples, "example");
            sections.push(Section {
                note: Some("± is one standard error."),
                ..Section::table(format!("Held-out evaluation on {examples}"), table)
            });
        }
        let differences = comparison::best_minus_seed(state, Split::Evaluate).metrics;
        if !differences.is_empty() {
            let table = Table::new(PAIRED).rows(differences.iter().map(paired_row));
            sections.push(Section::table("Best prompt minus seed prompt", table));
        }
        let rollouts = count(state.ledger().rollouts());
        sections.push(Section::table(
            format!("What it cost: {rollouts} rollouts"),
            Table::new(COSTS).rows(outcome::costs(state).into_iter().map(cost_row)),
        ));
        Some(Self {
            title: study.study.study.name.clone(),
            about: about(state, study),
            verdict: outcome.verdict.to_string(),
            sentences: outcome::notes(&outcome),
            sections,
        })
    }
}

const HELD_OUT: [&str; 6] = ["", "Gate", "Mean ± SE", "Threshold", "Slack", "Seed prompt"];
const PAIRED: [&str; 4] = ["Paired by example", "Difference", "95% interval", "Reading"];
const COSTS: [&str; 4] = ["Role", "Calls", "Tokens", "Dollars"];

fn about(state: &RunState, study: &StudyEvent) -> String {
    let search = &study.study.study;
    let rounds = counted(state.rounds().len(), "round");
    let status = state
        .finished()
        .map_or("running", |finished| outcome::ended(finished.status));
    let started = study.started_at.as_str();
    let when = if started.is_empty() {
        String::new()
    } else {
        format!(" Started {started}.")
    };
    format!(
        "Method {}, seed {}, {rounds}, {status}.{when}",
        search.method, search.seed
    )
}

fn best(state: &RunState, outcome: &Outcome) -> Option<Section> {
    let id = outcome.best?;
    let candidate = state.candidate(&id)?;
    let finished = state.finished()?;
    let feasible = finished.final_scores.get(&id).is_some_and(|score| score.feasible);
    let kind = if feasible {
        "Best prompt, feasible on the search examples:"
    } else {
        "Closest prompt, not feasible on the search examples:"
    };
    let origin = match written_in(candidate) {
        0 => "the seed prompt itself".to_owned(),
        round => format!("from round {round}"),
    };
    let heading = format!(
        "{kind} {}, {origin}, {} characters",
        format::id(&id),
        count(candidate.characters as u64)
    );
    Some(Section {
        heading,
        body: Body::Prompt(candidate.prompt.trim_end().to_owned()),
        note: None,
    })
}

fn held_out_row(row: &MetricRow) -> Vec<String> {
    let quantity = row.metric.quantity();
    let gate = match (row.metric.is_constraint(), row.is_kept()) {
        (false, _) => "objective",
        (true, Some(true)) => "holds",
        (true, Some(false)) => "does not hold",
        (true, None) => NOTHING,
    };
    let estimate = |estimate: Option<&capo_core::estimate::Estimate>| {
        estimate.map_or_else(|| NOTHING.to_owned(), |estimate| quantity.estimate(estimate))
    };
    let best = row.best.as_ref().zip(row.threshold).map_or_else(
        || estimate(row.best.as_ref()),
        |(best, threshold)| quantity.estimate_against(best, threshold),
    );
    let slack = row.slack().map_or_else(
        || NOTHING.to_owned(),
        |slack| {
            let close = if row.is_close() { ", within 1 SE" } else { "" };
            let over = if slack < 0.0 { "over by " } else { "" };
            format!("{over}{}{close}", quantity.distance(slack))
        },
    );
    vec![
        row.metric.label(),
        gate.to_owned(),
        best,
        row.threshold
            .map_or_else(|| NOTHING.to_owned(), |threshold| quantity.limit(threshold)),
        slack,
        estimate(row.seed.as_ref()),
    ]
}

fn paired_row(difference: &Difference) -> Vec<String> {
    vec![
        difference.metric.label(),
        paired::mean(difference),
        paired::interval(difference),
        paired::words(difference.verdict()).to_owned(),
    ]
}

fn cost_row(cost: outcome::Cost) -> Vec<String> {
    let usage = cost.usage;
    vec![
        cost.name,
        count(usage.calls),
        tokens(usage.input_tokens.saturating_add(usage.output_tokens)),
        dollars(usage.usd),
    ]
}

/// A fence of back-ticks longer than any run of them in the text.
fn fence(text: &str) -> String {
    let longest = text
        .split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}
