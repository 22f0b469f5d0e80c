//! The log of `--log json` on standard error: one JSON object a line.

use capo_core::ids::CandidateId;
use capo_core::journal::{Event, FinishedEvent, RoundEvent};
use capo_core::run_state::RunState;
use capo_core::summary::Saved;
use capo_models::Notice;
use serde_json::{Map, Value, json};

use crate::now::now;
use crate::terminal::harmless_json;

/// What a line says.
pub(super) type Fields = Map<String, Value>;

/// A line: its kind, now, and what it says. Characters that steer terminals are escaped.
pub(super) fn line(kind: &str, fields: &Fields) -> String {
    let mut line = Fields::new();
    line.insert("log".into(), kind.into());
    line.insert("at".into(), now().into());
    line.extend(fields.clone());
    harmless_json(&Value::Object(line).to_string()).into_owned()
}

/// [`line`] of an object.
fn written(kind: &str, fields: Value) -> String {
    match fields {
        Value::Object(fields) => line(kind, &fields),
        _ => line(kind, &Fields::new()),
    }
}

/// What is said in words, with a level as a server's log has it.
pub(crate) fn message(level: &str, text: &str) -> String {
    written("message", json!({ "level": level, "text": text }))
}

/// How far the run is.
pub(super) fn progress(state: &RunState) -> Fields {
    let mut fields = spent(state);
    fields.insert("rounds".into(), state.rounds().len().into());
    fields.insert("failures".into(), state.failures().values().sum::<u64>().into());
    fields
}

/// What an event says; `None` of one that is told by [`progress`].
pub(super) fn of_event(event: &Event, state: &RunState) -> Option<String> {
    match event {
        Event::Round(round) => Some(of_round(round, state)),
        Event::Finished(finished) => Some(of_end(finished, state)),
        Event::Failure(failure) => Some(written(
            "failure",
            json!({
                "of": failure.of, "kind": failure.kind,
                "message": failure.message, "attempt": failure.attempt,
            }),
        )),
        _ => None,
    }
}

/// That a model is waited for, or answers again.
pub(super) fn of_notice(notice: &Notice) -> String {
    match notice {
        Notice::Waiting(wait) => written(
            "wait",
            json!({
                "model": wait.model, "host": wait.host, "kind": wait.kind, "message": wait.message,
                "seconds": wait.seconds, "is_asked": wait.is_asked,
                "try": wait.next_try.map(|(next, _)| next), "of": wait.next_try.map(|(_, most)| most),
                "text": wait.to_string(),
            }),
        ),
        Notice::Answered { model, host } => written("answered", json!({ "model": model, "host": host })),
        Notice::Batch(batch) => written(
            "batch",
            json!({
                "model": batch.model, "id": batch.id, "calls": batch.calls, "text": batch.to_string(),
            }),
        ),
    }
}

fn of_round(round: &RoundEvent, state: &RunState) -> String {
    let best = round.best.first();
    let score = best.and_then(|id| round.scores.get(id));
    let mut fields = spent(state);
    fields.extend([
        ("round".into(), round.round.into()),
        ("best".into(), id(best)),
        ("objective".into(), score.map(|score| score.objective).into()),
        ("feasible".into(), score.map(|score| score.feasible).into()),
        ("multipliers".into(), json!(round.next_multipliers)),
    ]);
    line("round", &fields)
}

fn of_end(finished: &FinishedEvent, state: &RunState) -> String {
    let mut fields = spent(state);
    fields.extend([
        ("status".into(), json!(finished.status)),
        ("best".into(), id(finished.best.as_ref())),
        ("reason".into(), json!(finished.reason)),
        ("rounds".into(), state.rounds().len().into()),
    ]);
    line("finished", &fields)
}

fn id(candidate: Option<&CandidateId>) -> Value {
    candidate.map(ToString::to_string).into()
}

/// Rollouts and usage of the whole run so far.
fn spent(state: &RunState) -> Fields {
    let usage = state.ledger().usage().total();
    let mut spent = json!({
        "rollouts": state.ledger().rollouts(), "calls": usage.calls,
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "usd": usage.usd,
    });
    let reused = state.ledger().reused();
    if reused.effects() > 0 {
        spent["reused"] = json!(Saved::of(reused));
    }
    match spent {
        Value::Object(spent) => spent,
        _ => Fields::new(),
    }
}
