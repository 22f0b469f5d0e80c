//! Plate B: the held-out table.

use capo_core::certificate::Certificate;
use capo_core::estimate::Estimate;
use leptos::prelude::*;

use super::other_model::OtherModels;
use crate::charts::bullet::{Bullet, BulletData};
use crate::charts::unit::Unit;
use crate::components::{CertificateTable, HeldOutGate, Plate, Term};
use crate::format::{NOTHING, Quantity, count};
use crate::live::Run;
use crate::run::outcome::{MetricRow, Outcome};
use crate::run::studied::Shown as _;
use crate::run::word::Word;

/// Means with standard errors of the best prompt against thresholds, the seed prompt beside, and both under other models.
#[component]
pub(super) fn HeldOutPlate(run: Run, outcome: Memo<Option<Outcome>>) -> impl IntoView {
    let examples = Signal::derive(move || {
        outcome.with(|outcome| outcome.as_ref().map_or(0, |outcome| outcome.examples))
    });
    let rows = Memo::new(move |_| {
        let rows = outcome.with(|outcome| outcome.as_ref().map(|outcome| outcome.rows.clone()));
        rows.unwrap_or_default()
    });
    let certificates = move || {
        let found = outcome.with(|outcome| {
            outcome
                .as_ref()
                .map(|outcome| (outcome.certificates.clone(), outcome.rows.clone()))
        });
        let (certificates, rows) = found.unwrap_or_default();
        let of_one = |certificate: Certificate| {
            let rows = rows.clone();
            let quantity = move |metric: &str| {
                let row = rows.iter().find(|row| row.metric.name() == metric);
                row.map_or(Quantity::Ratio, |row| row.metric.quantity())
            };
            let name = format!("Test of {}", certificate.candidate.short());
            view! { <CertificateTable certificate name quantity/> }
        };
        certificates.into_iter().map(of_one).collect_view()
    };
    view! {
        <Plate
            letter="B"
            title=|| "Held-out evaluation"
            beside=|| view! { <span class="now quiet">"± is one standard error"</span> }
        >
            <HeldOutTable rows examples name="Held-out evaluation"/>
            {certificates}
            <OtherModels run/>
        </Plate>
    }
}

/// A prompt against thresholds, the seed prompt beside.
#[component]
pub(super) fn HeldOutTable(
    rows: Memo<Vec<MetricRow>>,
    /// On how many examples.
    examples: Signal<usize>,
    /// What it is of.
    #[prop(into)]
    name: Signal<String>,
) -> impl IntoView {
    let examples = move || format!("{} examples", count(examples.get() as u64));
    let rows = move || {
        rows.get()
            .into_iter()
            .map(|row| view! { <Row row/> })
            .collect_view()
    };
    view! {
        <div class="scroll" tabindex="0" role="group" aria-label=move || format!("{}, scrolls sideways", name.get())>
            <table class="mid sticky-1 held-out">
                <thead>
                    <tr>
                        <th scope="col">{examples}</th>
                        <th scope="col">"Gate"</th>
                        <th scope="col" class="num">"Mean ± SE"</th>
                        <th scope="col" class="num">"Threshold"</th>
                        <th scope="col" class="num"><Term word=Word::SLACK shown="Slack"/></th>
                        <th scope="col" class="col-range">
                            "Mean, SE, threshold" <small>"dashed: seed prompt"</small>
                        </th>
                        <th scope="col" class="num">"Seed prompt"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

#[component]
fn Row(row: MetricRow) -> impl IntoView {
    let quantity = row.metric.quantity();
    let gate = match (row.metric.is_constraint(), row.is_kept()) {
        (false, _) => view! { <span class="quiet">"objective"</span> }.into_any(),
        (true, Some(holds)) => view! { <HeldOutGate holds/> }.into_any(),
        (true, None) => NOTHING.into_any(),
    };
    let mean = row.best.map(|best| {
        let value = match row.threshold {
            Some(threshold) => quantity.against(best.mean, threshold),
            None => quantity.value(best.mean),
        };
        view! { <b>{value}</b> " " <span class="se">{error(quantity, &best)}</span> }
    });
    let threshold = row
        .threshold
        .map_or_else(|| NOTHING.to_owned(), |threshold| quantity.limit(threshold));
    let slack = row.slack().map_or_else(
        || NOTHING.to_owned(),
        |slack| {
            let over = if slack < 0.0 { "over by " } else { "" };
            format!("{over}{}", quantity.distance(slack))
        },
    );
    let close = row
        .is_close()
        .then(|| view! { <span class="note">"within 1 SE"</span> });
    let seed = row
        .seed
        .as_ref()
        .map_or_else(|| NOTHING.to_owned(), |seed| quantity.estimate(seed));
    let bullet = bullet(&row);
    view! {
        <tr>
            <th scope="row">{row.metric.label()}</th>
            <td class="nw">{gate}</td>
            <td class="num">{mean}</td>
            <td class="num">{threshold}</td>
            <td class="num">{slack} {close}</td>
            <td class="col-range">
                <Bullet data=bullet/>
            </td>
            <td class="num quiet">{seed}</td>
        </tr>
    }
}

/// "± 6.1"; nothing of a value that does not vary.
fn error(quantity: Quantity, estimate: &Estimate) -> Option<String> {
    (estimate.standard_error > 1e-12 * estimate.mean.abs())
        .then(|| format!("± {}", quantity.error(estimate.standard_error)))
}

fn bullet(row: &MetricRow) -> BulletData {
    let ends = |estimate: Option<Estimate>| estimate.map(|one| one.mean + one.standard_error);
    let furthest = [ends(row.best), ends(row.seed), row.threshold]
        .into_iter()
        .flatten()
        .fold(0.0, f64::max);
    BulletData {
        name: row.metric.label(),
        unit: Unit(row.metric.quantity()),
        value: row.best.map(|best| best.mean),
        error: row.best.map(|best| best.standard_error),
        threshold: row.threshold,
        feasible: row.is_kept() != Some(false),
        reference: row.seed.map(|seed| seed.mean),
        reach: match row.metric.quantity() {
            Quantity::Rate => 1.0,
            _ => furthest * 1.15,
        },
    }
}
