//! Every experiment, from a base study to tables and plots, on made-up runs.

use std::collections::BTreeSet;

use super::*;

#[test]
fn names_and_variant_keys_are_unique_and_safe_in_file_names() {
    let safe = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
    };
    let names: BTreeSet<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
    assert_eq!(names.len(), EXPERIMENTS.len());
    for experiment in EXPERIMENTS {
        let variants = experiment.variants(&fixture::study()).unwrap();
        let keys: BTreeSet<&str> = variants.iter().map(|variant| variant.key.as_str()).collect();
        assert_eq!(keys.len(), variants.len(), "{}", experiment.name);
        assert!(
            safe(experiment.name) && keys.into_iter().all(safe),
            "{}",
            experiment.name
        );
    }
}

#[test]
fn variants_differ_from_each_other() {
    for experiment in EXPERIMENTS {
        let variants = experiment.variants(&fixture::study()).unwrap();
        for (at, variant) in variants.iter().enumerate() {
            assert!(
                variants[..at].iter().all(|other| other.study != variant.study),
                "{}",
                experiment.name
            );
        }
    }
}

#[test]
fn every_study_file_of_an_experiment_fits_it() {
    for experiment in EXPERIMENTS {
        let file = experiment.study.read().unwrap();
        experiment
            .variants(&file.study)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn what_ships_is_compared_with_the_papers_search_and_every_method() {
    let study = Study::parse(HELP_DESK.text, capo_core::study::Format::Toml).unwrap();
    assert!(study.study.batch_growth.is_some());
    for experiment in [&choice::CHOICE, &feasible::FEASIBLE] {
        assert_eq!(experiment.study.read().unwrap().study, study);
        let variants = experiment.variants(&study).unwrap();
        let of = |key: &str| &variants.iter().find(|variant| variant.key == key).unwrap().study;
        let (paper, shipped) = (of("paper"), of("shipped"));
        assert_eq!((paper.study.caution, paper.study.batch_growth), (0.0, None));
        assert_eq!(shipped.study, study.study, "{}", experiment.name);
    }
    let searches = choice::CHOICE.variants(&study).unwrap();
    assert_eq!(searches[0].study.study.rounds, Rounds::default());
    let variants = feasible::FEASIBLE.variants(&study).unwrap();
    let of = |key: &str| &variants.iter().find(|variant| variant.key == key).unwrap().study;
    let (paper, plain, mut shipped) = (of("paper"), of("plain"), of("shipped").clone());
    assert_eq!(
        (paper.study.rounds, &paper.budget),
        (study.study.rounds, &shipped.budget)
    );
    caution::set(&mut shipped, caution::PAPER);
    assert_eq!(*plain, shipped, "caution alone");
    let methods: BTreeSet<&str> = variants
        .iter()
        .map(|variant| &*variant.study.study.method)
        .collect();
    for variant in &variants {
        if matches!(&*variant.key, "plain" | "shipped" | "fixed" | "count" | "capo-ea") {
            let pool = &variant.study.method["pool"];
            assert_eq!(pool, &study.method["pool"], "{}", variant.key);
        }
    }
    let known = capo_core::methods::ALL.iter().map(|entry| entry.name);
    let known: BTreeSet<&str> = known.filter(|name| *name != "dcapo").collect();
    assert_eq!(methods, known);
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    assert_eq!(
        find("tresholds").unwrap_err().to_string(),
        "there is no experiment `tresholds`; the experiments are beta, threshold, noise, progressive, \
         nine-constraints, feedback, dual-step, caution, choice, \
         feasible\ndid you mean `threshold`?"
    );
}

#[test]
fn every_published_variant_is_one_of_ours() {
    for (experiment, table) in [
        (&beta::BETA, "tab:lambda_lr_sweep"),
        (&noise::NOISE, "tab:noise_robustness"),
        (&feedback::FEEDBACK, "tab:trainable_rewriter_main"),
        (&dual_step::DUAL_STEP, "tab:ablations_alt_retail_telecom"),
    ] {
        let variants = experiment.variants(&fixture::study()).unwrap();
        for figure in paper_figures(table) {
            assert!(
                variants.iter().any(|variant| variant.key == figure.variant),
                "{}: {}",
                table,
                figure.variant
            );
        }
    }
}

#[test]
fn every_experiment_reports_its_runs() {
    for experiment in EXPERIMENTS {
        let report = fixture::report(experiment);
        let text: Vec<String> = report.tables.iter().map(Table::markdown).collect();
        insta::assert_snapshot!(format!("tables-{}", experiment.name), text.join("\n"));
        let names: BTreeSet<&str> = report.figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(
            names.len(),
            report.figures.len(),
            "{}: two plots of one name",
            experiment.name
        );
        for figure in &report.figures {
            assert!(
                figure.panels.iter().all(|panel| !panel.series.is_empty()),
                "{} {}",
                experiment.name,
                figure.name
            );
            svg(figure).unwrap();
        }
    }
}

#[test]
fn each_variant_alone_is_reported() {
    let base = fixture::study();
    for experiment in EXPERIMENTS {
        let whole = fixture::report(experiment);
        for variant in experiment.variants(&base).unwrap() {
            let keys = [variant.key.clone()];
            assert_eq!(experiment.variants_among(&base, &keys).unwrap().len(), 1);
            fixture::with_runs(experiment, |runs| {
                let records: Vec<RunRecord> = runs.of(&variant).cloned().collect();
                let report = (experiment.report)(&Runs {
                    variants: std::slice::from_ref(&variant),
                    records: &records,
                    ..*runs
                });
                let names_it = |report: &Report| report.tables[0].markdown().contains(&variant.label);
                assert_eq!(names_it(&report), names_it(&whole), "{}", experiment.name);
                for figure in &report.figures {
                    svg(figure).unwrap();
                }
            });
        }
    }
    let unknown = feasible::FEASIBLE.variants_among(&base, &["shiped".into()]);
    let said = unknown.unwrap_err().to_string();
    assert!(said.contains("has no variant `shiped`"), "{said}");
    assert!(said.ends_with("did you mean `shipped`?"), "{said}");
}

#[test]
fn a_run_without_a_result_counts_as_not_holding() {
    fixture::with_runs(&feasible::FEASIBLE, |runs| {
        let shares = |cut: usize| {
            let mut records = runs.records.to_vec();
            for record in &mut records {
                record.fresh = record.optimize.clone();
            }
            for record in &mut records[..cut] {
                (record.optimize, record.evaluate, record.fresh) = (None, None, None);
            }
            let cut = Runs {
                records: &records,
                ..*runs
            };
            let report = feasible::FEASIBLE.report;
            let is_share = |cell: &&Cell| matches!(cell, Cell::Share(_));
            let rows = &report(&cut).tables[0].rows;
            let row = rows[1].iter().filter(is_share).cloned();
            row.collect::<Vec<_>>()
        };
        let of_three = |count| vec![Cell::Share(Share { count, of: 3 }); 3];
        // The first three runs are those of the first variant.
        assert_eq!(shares(0), of_three(3));
        assert_eq!(shares(1), of_three(2));
        assert_eq!(shares(3), of_three(0));
    });
}

#[test]
fn where_fresh_examples_are_the_held_out_ones_again_the_table_says_so() {
    fixture::with_runs(&choice::CHOICE, |runs| {
        let mut base = runs.base.clone();
        let note = |base: &Study| (choice::CHOICE.report)(&Runs { base, ..*runs }).tables[0].notes[0].clone();
        assert!(note(&base).ends_with("otherwise, on new examples."));
        base.workload.insert("kind".into(), "tau2".into());
        let again = "on no new examples but the held-out ones of each run again (40), under another seed.";
        assert!(note(&base).ends_with(again), "{}", note(&base));
    });
}

#[test]
fn runs_that_never_reached_an_end_leave_cells_empty() {
    for experiment in EXPERIMENTS {
        let base = fixture::study();
        let variants = experiment.variants(&base).unwrap();
        let report = (experiment.report)(&Runs {
            base: &base,
            variants: &variants,
            metrics: &[],
            records: &[],
        });
        for figure in &report.figures {
            svg(figure).unwrap();
        }
        assert!(report.tables[0].markdown().contains("–"), "{}", experiment.name);
    }
}

#[test]
fn a_study_with_too_few_constraints_is_refused() {
    let mut study = fixture::study();
    study.constraints.truncate(1);
    assert!(find("threshold").unwrap().variants(&study).is_ok());
    assert_eq!(
        find("progressive")
            .unwrap()
            .variants(&study)
            .unwrap_err()
            .to_string(),
        "the experiment `progressive` does not fit the study `fixture`: it has 1 of the 2 constraints this takes; add \
         more under [[constraint]]"
    );
    study.constraints.clear();
    for experiment in EXPERIMENTS {
        assert_eq!(
            experiment.variants(&study).is_err(),
            experiment.least_constraints > 0,
            "{}",
            experiment.name
        );
    }
}
