//! Published figures of the paper, for the columns beside our own figures.
//!
//! The figures stand in `paper.toml`, each with the label of the table it is printed in.

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::Deserialize;

/// One row of one of the paper's tables.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Label of the table in the paper.
    pub table: String,
    /// Benchmark domain, such as `Airline`.
    pub setting: String,
    /// Which of an experiment's variants the row corresponds to: the variant's key.
    pub variant: String,
    /// Held-out objective, in [0, 1].
    pub objective: f64,
    /// Held-out mean costs by metric.
    pub costs: IndexMap<String, f64>,
    /// Final multipliers, where printed.
    #[serde(default)]
    pub multipliers: IndexMap<String, f64>,
    /// The table's own verdict, where it prints one.
    all_sat: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Paper {
    figure: Vec<Figure>,
    thresholds: IndexMap<String, IndexMap<String, f64>>,
}

static PAPER: LazyLock<Paper> =
    LazyLock::new(|| toml::from_str(include_str!("paper.toml")).expect("paper.toml is checked by a test"));

impl Figure {
    /// Whether the row met every threshold: the table's verdict, else its printed costs compared
    /// with the setting's thresholds.
    pub fn all_sat(&self) -> bool {
        self.all_sat.unwrap_or_else(|| {
            let thresholds = &PAPER.thresholds[&self.setting];
            self.costs
                .iter()
                .all(|(metric, cost)| *cost <= thresholds[metric])
        })
    }
}

/// The rows of a table, in its order; empty when the paper has no figures for it.
pub fn figures(table: &str) -> impl Iterator<Item = &'static Figure> {
    PAPER.figure.iter().filter(move |figure| figure.table == table)
}

/// The settings a table reports, in its order.
pub(super) fn settings(table: &str) -> Vec<&'static str> {
    let mut settings = Vec::new();
    for figure in figures(table) {
        if !settings.contains(&figure.setting.as_str()) {
            settings.push(&figure.setting);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row without a verdict of its table's own has a threshold for every cost it prints.
    #[test]
    fn every_row_has_a_verdict() {
        assert!(!PAPER.figure.is_empty());
        for figure in PAPER.figure.iter().filter(|figure| figure.all_sat.is_none()) {
            let thresholds = PAPER.thresholds.get(&figure.setting);
            let without: Vec<_> = figure
                .costs
                .keys()
                .filter(|metric| !thresholds.is_some_and(|thresholds| thresholds.contains_key(*metric)))
                .collect();
            assert!(
                without.is_empty(),
                "{} {}: {without:?}",
                figure.table,
                figure.setting
            );
        }
    }

    /// The captions say so: β = 4 is the only rate feasible in both domains, and nonzero noise
    /// breaks Airline and Telecom while mild noise keeps Retail.
    #[test]
    fn verdicts_computed_from_costs_agree_with_the_captions() {
        let feasible = |table: &str, setting: &str| -> Vec<&str> {
            figures(table)
                .filter(|figure| figure.setting == setting && figure.all_sat())
                .map(|figure| figure.variant.as_str())
                .collect()
        };
        assert_eq!(feasible("tab:lambda_lr_sweep", "Airline"), ["4"]);
        assert_eq!(feasible("tab:lambda_lr_sweep", "Telecom"), ["4", "8"]);
        assert_eq!(feasible("tab:noise_robustness", "Airline"), ["0"]);
        assert_eq!(feasible("tab:noise_robustness", "Telecom"), ["0"]);
        assert_eq!(feasible("tab:noise_robustness", "Retail"), ["0", "0.5"]);
    }

    /// Every figure is printed in the table it names, as a fraction or in percent.
    #[test]
    fn every_figure_is_printed_in_the_paper() {
        let Some(paper) = capo_tests::shared::shared("paper/capo-paper.tex") else {
            return;
        };
        let source = std::fs::read_to_string(paper).unwrap();
        for figure in &PAPER.figure {
            let label = source
                .find(&format!("\\label{{{}}}", figure.table))
                .expect("the table exists");
            let end = label + source[label..].find("\\end{tabular}").unwrap();
            let printed: Vec<f64> = source[label..end]
                .split(|letter: char| !(letter.is_ascii_digit() || letter == '.' || letter == '-'))
                .filter_map(|number| number.parse().ok())
                .collect();
            let values = figure
                .costs
                .values()
                .chain(figure.multipliers.values())
                .chain([&figure.objective]);
            for value in values {
                assert!(
                    printed
                        .iter()
                        .any(|number| (number - value).abs() < 1e-9 || (number - 100.0 * value).abs() < 1e-9),
                    "{value} is not in {}",
                    figure.table
                );
            }
        }
    }
}
