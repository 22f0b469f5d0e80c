//! Whether what is handed over holds on fresh examples: with caution, with a certificate, and with other methods.

use capo_core::certificate::Confirm;
use capo_core::methods;
use capo_core::study::Study;
use serde_json::{Map, json};

use super::caution::{CAUTIOUS, PAPER, set};
use super::fresh::makes_examples;
use super::sweep::{self, Sweep};
use super::{Experiment, SHIPPED_HELP_DESK, Variant};

/// Caution, certificates, and every method with the same caution.
pub(super) const FEASIBLE: Experiment = Experiment {
    name: "feasible",
    title: "Feasible on fresh examples",
    explanation: "Without caution costs are taken as they are measured, and what keeps every threshold on the examples it \
                  was chosen on is returned; the paper's search also measures on whole batches and keeps a pool of its size. \
                  All may spend as many rollouts. The shipped studies are cautious; a certificate is a test on examples \
                  that nothing else touched. Fixed multipliers and every other method search with the \
                  same caution. Where the workload makes examples as many as are asked for, 600 are held out, of which \
                  the test keeps 300; else nothing is tested.",
    study: SHIPPED_HELP_DESK,
    least_constraints: 1,
    truth_of: None,
    vary,
    report: |runs| sweep::report(runs, SWEEP),
};

const SHIPPED_KEY: &str = "shipped";
const SWEEP: Sweep = Sweep {
    axis: "search",
    reference: SHIPPED_KEY,
    paper: None,
};

/// Examples kept for the test, and as many held out beside them.
const EXAMPLES: u32 = 300;

/// What costs of the help desk are said to be at most, for the test. Larger ones were not measured in 11,000 dialogues of
/// seeds 500 to 539, and one would leave a prompt without a certificate.
const BOUNDS: [(&str, f64); 7] = [
    ("excess_tools", 12.0),
    ("repeated_calls", 30.0),
    ("turns", 30.0),
    ("latency", 60.0),
    ("verbosity", 10.0),
    ("tool_errors", 8.0),
    ("policy_violations", 8.0),
];

fn vary(base: &Study) -> Vec<Variant> {
    let makes_examples = makes_examples(base, EXAMPLES);
    let variant = |key: &str, label: &str, settings, edit: &dyn Fn(&mut Study)| {
        Variant::of(base, key, label, |study| {
            set(study, settings);
            edit(study);
            if makes_examples {
                study.workload.insert("evaluate".into(), json!(2 * EXAMPLES));
                // Beside what the search may spend: two prompts on what is held out, three on what is kept for the test.
                let measured = if study.confirm.is_some() { 2 + 3 } else { 2 * 2 };
                if let Some(rollouts) = &mut study.budget.rollouts {
                    *rollouts += u64::from(EXAMPLES) * measured;
                }
            }
        })
    };
    let mut variants = vec![
        variant("paper", "capo, the paper's search", PAPER, &|study| {
            let (rounds, rollouts) = (study.study.rounds, study.budget.rollouts);
            study.use_paper_preset();
            (study.study.rounds, study.budget.rollouts) = (rounds, rollouts);
        }),
        variant("plain", "capo, without caution", PAPER, &|_| ()),
        variant(SHIPPED_KEY, "capo, cautious", CAUTIOUS, &|_| ()),
        variant("fixed", "fixed multipliers, cautious", CAUTIOUS, &|study| {
            study.method.insert("dual_step".into(), json!("fixed"));
        }),
    ];
    // Of a study that states no more of what is ours than caution, it is the paper's search.
    if variants[0].study == variants[1].study {
        variants.remove(1);
    }
    // Without a rewriter that learns, DCAPO is CAPO.
    variants.extend(methods::ALL.iter().filter_map(|entry| {
        let usual = methods::complete(entry.name, &Map::new()).ok()?;
        let method = methods::build(entry.name, &usual).ok()?;
        let is_another = entry.name != "capo" && !method.learns();
        let label = format!("{}, cautious", entry.name);
        is_another.then(|| {
            variant(entry.name, &label, CAUTIOUS, &|study| {
                entry.name.clone_into(&mut study.study.method);
                // What is CAPO but for one thing differs in nothing else.
                let is_primal_dual = method.primal_dual().is_some();
                study
                    .method
                    .retain(|key, _| is_primal_dual && usual.contains_key(key));
                if !method.takes_batches() {
                    (study.study.batch, study.study.batch_growth) = (None, None);
                }
            })
        })
    }));
    if makes_examples {
        variants.push(variant(
            "certified",
            "capo, cautious, tested",
            CAUTIOUS,
            &|study| {
                let is_constrained = |metric: &str| study.constraints.iter().any(|one| one.metric == metric);
                let bounds = BOUNDS.iter().filter(|(metric, _)| is_constrained(metric));
                study.confirm = Some(Confirm {
                    bounds: bounds
                        .map(|(metric, bound)| ((*metric).to_owned(), *bound))
                        .collect(),
                    ..Confirm::of(EXAMPLES as usize)
                });
            },
        ));
    }
    variants
}
