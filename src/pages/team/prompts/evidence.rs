//! Evidence for a version, in numbers.

use capo_core::reading::evidence::Evidence;
use leptos::prelude::*;

use crate::components::{CertificateTable, HeldOutGate};
use crate::format::{NOTHING, Quantity, count, label};
use crate::run::outcome::ended;

/// The held-out table of a version beside the seed prompt, and its certificate; or that there is no evidence.
#[component]
pub(super) fn Speaks(evidence: Option<Evidence>) -> impl IntoView {
    let Some(evidence) = evidence else {
        return view! {
            <p>
                <b>"No evidence."</b>
                " This text was not taken from a run: nothing measured it, and no threshold is known to hold."
            </p>
        }
        .into_any();
    };
    let (class, mark) = if evidence.holds {
        ("tag is-f", "m f")
    } else {
        ("tag is-i", "m i")
    };
    let verdict = evidence.feasibility.words().trim_start_matches("is ");
    let table = if evidence.evaluation.is_empty() {
        view! { <p>"It was not measured on held-out examples."</p> }.into_any()
    } else {
        view! { <HeldOut evidence=evidence.clone()/> }.into_any()
    };
    let elsewhere = evidence.measured_elsewhere.then(|| {
        view! {
            <p>
                <b>"Measured elsewhere."</b>
                " The run, or the one it branched from, was pushed to this server: its numbers follow from its journal, and this server asked no model for them."
            </p>
        }
    });
    let tested = evidence.certificate.clone().map(|certificate| {
        let evidence = evidence.clone();
        let quantity = move |metric: &str| quantity(&evidence, metric);
        view! { <CertificateTable certificate name="Test" quantity/> }
    });
    view! {
        <div class="row">
            <span class=class><span class=mark aria-hidden="true"></span>{verdict}</span>
            <span class="note">{format!("Study {}, {}.", evidence.study, ended(evidence.status))}</span>
        </div>
        {elsewhere}
        {table}
        {tested}
    }
    .into_any()
}

/// How a metric's values are written; as plain numbers where nothing is known of it.
fn quantity(evidence: &Evidence, metric: &str) -> Quantity {
    let mut known = evidence.metrics.iter();
    known
        .find(|spec| spec.name == metric)
        .map_or(Quantity::Ratio, Quantity::of)
}

/// A metric of a version and of the seed prompt, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    metric: String,
    this: String,
    threshold: String,
    gate: Gate,
    seed: String,
}

/// What a metric has to do with the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Objective,
    Holds(bool),
    Measured,
}

fn lines(evidence: &Evidence) -> Vec<Line> {
    let line = |metric: &String| {
        let quantity = quantity(evidence, metric);
        let threshold = evidence.thresholds.get(metric).copied();
        let this = evidence.evaluation.get(metric);
        let seed = evidence.seed_evaluation.get(metric);
        let none = || NOTHING.to_owned();
        Line {
            metric: label(metric),
            this: this.map_or_else(none, |this| match threshold {
                Some(threshold) => quantity.estimate_against(this, threshold),
                None => quantity.estimate(this),
            }),
            threshold: threshold.map_or_else(none, |threshold| quantity.limit(threshold)),
            gate: match evidence.keeps(metric) {
                Some(holds) => Gate::Holds(holds),
                None if *metric == evidence.objective => Gate::Objective,
                None => Gate::Measured,
            },
            seed: seed.map_or_else(none, |seed| quantity.estimate(seed)),
        }
    };
    evidence.evaluation.keys().map(line).collect()
}

#[component]
fn HeldOut(evidence: Evidence) -> impl IntoView {
    let examples = evidence.evaluation.values().map(|estimate| estimate.n).max();
    let examples = format!("{} examples", count(examples.unwrap_or_default() as u64));
    let row = |line: Line| {
        let gate = match line.gate {
            Gate::Objective => view! { <span class="quiet">"objective"</span> }.into_any(),
            Gate::Holds(holds) => view! { <HeldOutGate holds/> }.into_any(),
            Gate::Measured => view! { <span class="quiet">"only measured"</span> }.into_any(),
        };
        view! {
            <tr>
                <th scope="row">{line.metric}</th>
                <td class="nw">{gate}</td>
                <td class="num"><b>{line.this}</b></td>
                <td class="num">{line.threshold}</td>
                <td class="num quiet">{line.seed}</td>
            </tr>
        }
    };
    view! {
        <div class="scroll" tabindex="0" role="group" aria-label="Held-out evaluation, scrolls sideways">
            <table class="mid sticky-1">
                <caption>"Held-out evaluation; ± is one standard error"</caption>
                <thead>
                    <tr>
                        <th scope="col">{examples}</th>
                        <th scope="col">"Gate"</th>
                        <th scope="col" class="num">"Mean ± SE"</th>
                        <th scope="col" class="num">"Threshold"</th>
                        <th scope="col" class="num">"Seed prompt"</th>
                    </tr>
                </thead>
                <tbody>{lines(&evidence).into_iter().map(row).collect_view()}</tbody>
            </table>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use capo_core::estimate::Estimate;
    use capo_core::journal::Status;
    use capo_core::metric::MetricSpec;
    use capo_core::reading::feasibility::Feasibility;

    use super::*;

    #[test]
    fn held_out_means_stand_with_their_errors_beside_thresholds_and_the_seed_prompt() {
        let of = |success, refusals| {
            let estimate = |mean| Estimate {
                mean,
                standard_error: 0.05,
                n: 40,
            };
            let of = [("success", success), ("refusals", refusals)];
            let of = of.map(|(metric, mean)| (metric.to_owned(), estimate(mean)));
            of.into_iter().collect()
        };
        let mut evidence = Evidence {
            study: "desk".into(),
            status: Status::Feasible,
            objective: "success".into(),
            metrics: vec![
                MetricSpec::objective("success", ""),
                MetricSpec::event("refusals", "rate", ""),
            ],
            thresholds: [("refusals".to_owned(), 0.35)].into_iter().collect(),
            evaluation: of(0.7, 0.3),
            seed_evaluation: of(0.5, 0.4),
            feasibility: Feasibility::default(),
            holds: true,
            certificate: None,
            measured_elsewhere: false,
        };
        let shown = lines(&evidence);
        let objective = Line {
            metric: "Success".into(),
            this: "70.0% ± 5.0".into(),
            threshold: NOTHING.into(),
            gate: Gate::Objective,
            seed: "50.0% ± 5.0".into(),
        };
        assert_eq!(shown[0], objective);
        let refusals = (shown[1].threshold.as_str(), shown[1].gate);
        assert_eq!(refusals, ("≤ 35%", Gate::Holds(true)));
        evidence.evaluation = of(0.7, 0.36);
        assert_eq!(lines(&evidence)[1].gate, Gate::Holds(false));
        evidence.metrics.clear();
        assert_eq!(
            lines(&evidence)[1].this,
            "0.36 ± 0.05",
            "plain numbers without units"
        );
    }
}
