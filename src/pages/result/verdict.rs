//! The outcome of the run, in a sentence.

use capo_core::study::certificate::{Certificate, Confirm, MOST_EXAMPLES};
use capo_core::study::{LARGEST_CAUTION, Study};
use leptos::prelude::*;

use crate::components::{BranchDialog, Rerun, Words, use_forbidden};
use crate::live::Run;
use crate::run::outcome::{self, Outcome};
use crate::storage::is_report;

/// The verdict, the gate, and what qualifies both.
#[component]
pub(super) fn Verdict(run: Run, outcome: Memo<Option<Outcome>>) -> impl IntoView {
    let branching = RwSignal::new(false);
    let forbidden = use_forbidden(run);
    // How many examples are held out, where there can be more.
    let held_out = Memo::new(move |_| {
        run.read(|folded| {
            let event = folded.state.study()?;
            let held_out: usize = event.workloads.values().map(|record| record.evaluate.len()).sum();
            test_on_more(&event.study, held_out, None).map(|_| held_out)
        })
    });
    let tested = Callback::new(move |study: Study| {
        let held_out = held_out.get_untracked().unwrap_or_default();
        let needed = outcome.with_untracked(|outcome| {
            let certificates = &outcome.as_ref()?.certificates;
            certificates.iter().filter_map(needed).max()
        });
        test_on_more(&study, held_out, needed).unwrap_or(study)
    });
    let cautious = Callback::new(|mut study: Study| {
        with_caution(&mut study);
        study
    });
    let has_rounds = Memo::new(move |_| run.read(|folded| !folded.state.rounds().is_empty()));
    let verdict = move || {
        let sentence = outcome.with(|outcome| outcome.as_ref().map(|outcome| outcome.verdict.clone()));
        sentence.map(|sentence| view! { <Words sentence/> })
    };
    let tag = move || {
        let feasibility = outcome.with(|outcome| Some(outcome.as_ref()?.feasibility))?;
        let (class, mark) = if feasibility.is_borne_out() {
            ("tag is-f", "m f")
        } else {
            ("tag is-i", "m i")
        };
        let words = feasibility.words().trim_start_matches("is ");
        Some(view! { <span class=class><span class=mark aria-hidden="true"></span>{words}</span> })
    };
    let notes =
        move || outcome.with(|outcome| outcome.as_ref().map(|outcome| outcome::notes(outcome).join(" ")));
    view! {
        <section class="verdict" aria-label="Verdict">
            <p>{verdict}</p>
            <div class="row">
                {tag} <span class="note">{notes}</span>
                <Show when=move || held_out.with(Option::is_some) && !is_report()>
                    <Rerun run words="Search again, with a test…" change=tested/>
                </Show>
                <Show when=|| !is_report()>
                    <Rerun run words="Search again, with more caution…" change=cautious/>
                </Show>
                <Show when=move || has_rounds.get() && !is_report()>
                    <button
                        type="button"
                        disabled=move || forbidden.with(Option::is_some)
                        title=move || forbidden.get()
                        on:click=move |_| branching.set(true)
                    >
                        "Branch from a round…"
                    </button>
                </Show>
            </div>
        </section>
        <BranchDialog run asked=branching/>
    }
}

/// One-sided 95 % of a normal mean, and how probably the prompt returned is to hold.
const CAUTION: f64 = 1.64;
const PROBABILITY: f64 = 0.8;

/// Examples of a test that is asked for after a run without one.
const EXAMPLES: usize = 300;

/// How many examples a test would need that came to no decision; none where no number would do.
fn needed(certificate: &Certificate) -> Option<usize> {
    Some((certificate.reserve + certificate.more()?).min(MOST_EXAMPLES))
}

/// The study with as many held-out examples beside those of a test, which has as many as are needed, all of them others
/// than before: on those somebody has seen results. None where it makes no examples, or no others.
fn test_on_more(study: &Study, held_out: usize, needed: Option<usize>) -> Option<Study> {
    let kind = capo_workloads::of(&study.workload)?;
    (kind.fresh)(&study.workload, 1, 0)?;
    let mut study = study.clone();
    let before = study.confirm.as_ref().map_or(0, |confirm| confirm.examples);
    let examples = needed.unwrap_or(before.max(EXAMPLES));
    study.workload = (kind.drawn)(&study.workload, 1)?;
    let evaluate = held_out.saturating_sub(before) + examples;
    study.workload.insert("evaluate".into(), evaluate.into());
    study.confirm.get_or_insert_with(|| Confirm::of(0)).examples = examples;
    Some(study)
}

/// The study with costs taken for larger than they are measured.
fn with_caution(study: &mut Study) {
    study.study.caution = (study.study.caution + CAUTION).min(LARGEST_CAUTION);
    study.study.choice_probability = study.study.choice_probability.max(PROBABILITY);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use capo_core::study::Format;
    use capo_core::workload::Split;
    use capo_workloads::files::MemoryFiles;

    use super::*;

    #[test]
    fn a_study_searched_again_keeps_as_many_held_out_examples_beside_those_of_the_test() {
        let text = include_str!("../../../studies/help-desk.toml");
        let mut study = Study::parse(text, Format::Toml).unwrap();
        let kept = |study: &Study| {
            let confirm = study.confirm.as_ref().map(|confirm| confirm.examples);
            (confirm, study.workload["evaluate"].as_u64())
        };
        let first = test_on_more(&study, 40, None).unwrap();
        assert_eq!(kept(&first), (Some(300), Some(340)));
        let second = test_on_more(&first, 340, Some(450)).unwrap();
        assert_eq!(kept(&second), (Some(450), Some(490)));
        let as_many = test_on_more(&second, 490, None).unwrap();
        assert_eq!(kept(&as_many), kept(&second), "none is known to be needed");
        let examples = |study: &Study| -> HashSet<String> {
            let workloads = capo_workloads::build(&study.workload, &MemoryFiles::new(), 0).unwrap();
            let splits = [Split::Optimize, Split::Evaluate];
            let all = splits.iter().flat_map(|split| workloads[0].examples(*split));
            all.cloned().collect()
        };
        let (before, then, now) = (examples(&study), examples(&first), examples(&second));
        assert!(before.is_disjoint(&then) && now.is_disjoint(&then) && now.is_disjoint(&before));
        let rows = study.workload.clone();
        study.workload =
            serde_json::from_value(serde_json::json!({ "kind": "table", "evaluate": 40 })).unwrap();
        assert!(test_on_more(&study, 40, None).is_none(), "rows are what they are");
        study.workload = rows;

        let before = study.study.caution;
        with_caution(&mut study);
        assert!(study.study.caution > before && study.checked().is_ok());
    }
}
