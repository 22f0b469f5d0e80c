//! The table of a certificate: what a test said of a prompt, constraint by constraint.

use capo_core::certificate::{Certificate, Finding, Verdict};
use leptos::prelude::*;

use crate::charts::bullet::{Bullet, BulletData};
use crate::charts::unit::Unit;
use crate::format::{Quantity, label};

/// The test of a prompt on the examples kept for it.
#[component]
pub fn CertificateTable<Q>(
    certificate: Certificate,
    /// What it is called.
    #[prop(into)]
    name: String,
    /// How a metric's values are written.
    quantity: Q,
) -> impl IntoView
where
    Q: Fn(&str) -> Quantity,
{
    let title = name + ": " + &certificate.sentence();
    let row = |(metric, finding): (String, Finding)| {
        let quantity = quantity(&metric);
        let bullet = bullet(label(&metric), quantity, &finding);
        view! {
            <tr>
                <th scope="row">{label(&metric)}</th>
                <td class="nw">{verdict_words(finding.verdict)}</td>
                <td class="num">{quantity.optional(finding.mean)}</td>
                <td class="num">{quantity.optional(finding.upper)}</td>
                <td class="num">{quantity.optional(finding.simultaneous)}</td>
                <td class="num">{quantity.limit(finding.threshold)}</td>
                <td class="col-range">
                    <Bullet data=bullet/>
                </td>
            </tr>
        }
    };
    let rows = certificate.constraints.into_iter().map(row).collect_view();
    view! {
        <div class="scroll" tabindex="0" role="group" aria-label="Test, scrolls sideways">
            <table class="mid sticky-1 held-out">
                <caption>{title}</caption>
                <thead>
                    <tr>
                        <th scope="col">"Constraint"</th>
                        <th scope="col">"Verdict"</th>
                        <th scope="col" class="num">"Mean"</th>
                        <th scope="col" class="num">"At most, by itself"</th>
                        <th scope="col" class="num">"At most, all at once"</th>
                        <th scope="col" class="num">"Threshold"</th>
                        <th scope="col" class="col-range">
                            "Mean, bound, threshold" <small>"bar: to the bound by itself"</small>
                        </th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

/// What a test says of a constraint, in words.
fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Certified => "certified",
        Verdict::Refuted => "refuted",
        Verdict::Undecided => "not decided",
    }
}

fn bullet(name: String, quantity: Quantity, finding: &Finding) -> BulletData {
    let values = [finding.mean, finding.upper, Some(finding.threshold)];
    let furthest = 1.15 * values.into_iter().flatten().fold(0.0, f64::max);
    BulletData {
        name,
        unit: Unit(quantity),
        value: finding.mean,
        error: finding.mean.zip(finding.upper).map(|(mean, upper)| upper - mean),
        threshold: Some(finding.threshold),
        feasible: finding.verdict == Verdict::Certified,
        reference: None,
        reach: match quantity {
            Quantity::Rate => furthest.max(1.0),
            _ => furthest,
        },
    }
}
