//! A study as each contender runs it, on the split that a seed draws, and where prompts are measured afresh.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::contender::Contender;

/// Caution κ and probability p of a cautious search, chosen on seeds 500 to 529.
const CAUTION: (f64, f64) = (1.64, 0.8);

/// How many tasks a prompt is measured on at last, which no search has seen, or how many rollouts at least where there are
/// no others than the held-out ones.
const FRESH: i64 = 1000;
/// What is added there to the seed of the models.
const OTHER_DRAWS: u64 = 1_000_000;

/// Of the help desk's 285,000 tasks the second half is fresh: seeds below [`END_OF_SEEDS`] draw splits of 114 from the first.
const FIRST_FRESH_TASK: i64 = 142_500;
pub(super) const END_OF_SEEDS: u64 = FIRST_FRESH_TASK.cast_unsigned() / 114;

/// Batch of the first round, its growth, and the size of the pool, chosen on seeds 600 to 623.
const GROWING: (i64, f64, i64) = (8, 1.5, 3);

pub(in crate::bench) fn read(study: &Path) -> Result<toml::Table> {
    let text = std::fs::read_to_string(study).with_context(|| format!("cannot read {}", study.display()))?;
    Ok(toml::from_str(&text)?)
}

/// Puts other thresholds in place of a study's, by metric.
///
/// # Errors
/// The study has no constraint on one of them.
pub(super) fn move_thresholds(study: &mut toml::Table, thresholds: &[(String, f64)]) -> Result<()> {
    let mut none = Vec::new();
    let constraints = study
        .get_mut("constraint")
        .and_then(toml::Value::as_array_mut)
        .unwrap_or(&mut none);
    for (metric, threshold) in thresholds {
        let mut tables = constraints.iter_mut().filter_map(toml::Value::as_table_mut);
        let constraint = tables
            .find(|table| table.get("metric").and_then(toml::Value::as_str) == Some(metric.as_str()))
            .with_context(|| format!("the study has no constraint on `{metric}`"))?;
        constraint.remove("relative_to_seed");
        constraint.insert("threshold".to_owned(), (*threshold).into());
    }
    Ok(())
}

pub(in crate::bench) fn is_help_desk(study: &toml::Table) -> bool {
    let kind = study.get("workload").and_then(|workload| workload.get("kind"));
    kind.and_then(toml::Value::as_str) == Some("desk")
}

/// Says where a study of tau2 finds its tasks, and has each seed draw which are searched on.
pub(in crate::bench) fn play_on(study: &mut toml::Table, data: &Path) -> Result<()> {
    let data = data
        .canonicalize()
        .with_context(|| format!("no {}", data.display()))?;
    let data = data.to_str().context("--data is no UTF-8")?;
    let workload = table(study, "workload")?;
    workload.insert("data".to_owned(), data.into());
    workload.insert("split".to_owned(), "drawn".into());
    Ok(())
}

/// The study as a contender runs it.
///
/// # Errors
/// The text is no study, or names files relative to its own place, which a copy elsewhere would not find.
pub(super) fn edited(study: &str, contender: Contender) -> Result<String> {
    use Contender::{
        Capo, Cautious, CautiousFixed, CautiousUntilBudget, Fixed, GepaHinge, GepaSigned, Growing,
        GrowingSmallPool, Incautious, SmallPool,
    };
    let mut study: toml::Table = toml::from_str(study)?;
    if table(&mut study, "prompt")?.contains_key("file") {
        bail!("its prompt must be in the study, not in a file beside it");
    }
    let (caution, probability) = match contender {
        Cautious | CautiousFixed | CautiousUntilBudget | Growing | GrowingSmallPool | SmallPool => CAUTION,
        _ => (0.0, 0.0),
    };
    // The paper's search, from which contenders differ.
    let settings = table(&mut study, "study")?;
    for ours in ["batch", "batch_growth"] {
        settings.remove(ours);
    }
    if settings.get("rounds").is_some_and(toml::Value::is_str) {
        settings.remove("rounds");
    }
    settings.insert("caution".to_owned(), caution.into());
    settings.insert("choice_probability".to_owned(), probability.into());
    if let Some(method) = study.get_mut("method").and_then(toml::Value::as_table_mut) {
        method.remove("pool");
    }
    match contender {
        Capo | Cautious => {}
        Fixed | CautiousFixed => {
            let method = table(&mut study, "method")?;
            method.insert("dual_step".to_owned(), "fixed".into());
            method.insert("lambda_init".to_owned(), 1.0.into());
        }
        CautiousUntilBudget | Growing | GrowingSmallPool | SmallPool | Incautious => {
            let settings = table(&mut study, "study")?;
            settings.insert("rounds".to_owned(), "until-budget".into());
            let (batch, growth, pool) = GROWING;
            if !matches!(contender, CautiousUntilBudget | SmallPool) {
                settings.insert("batch".to_owned(), batch.into());
                settings.insert("batch_growth".to_owned(), growth.into());
            }
            if matches!(contender, GrowingSmallPool | SmallPool | Incautious) {
                table(&mut study, "method")?.insert("pool".to_owned(), pool.into());
            }
        }
        // Its program counts for itself, and may go over it in its last step.
        GepaSigned | GepaHinge => {
            study.remove("budget");
        }
    }
    Ok(toml::to_string(&study)?)
}

/// The study on the split that a seed draws: at the help desk of 114 tasks of its own.
pub(super) fn on_split(study: &str, seed: u64) -> Result<String> {
    let mut study: toml::Table = toml::from_str(study)?;
    let is_help_desk = is_help_desk(&study);
    let workload = table(&mut study, "workload")?;
    workload.insert("seed".to_owned(), seed.cast_signed().into());
    if is_help_desk {
        workload.insert("skip".to_owned(), (114 * seed.cast_signed()).into());
    }
    Ok(toml::to_string(&study)?)
}

/// The study, a split of it and a seed on which nothing was measured: tasks that no search has, or, where there are no
/// others, the `held_out` ones with other draws of the models, often.
pub(super) fn fresh(study: &str, seed: u64, held_out: usize) -> Result<(String, &'static str, u64)> {
    let mut study: toml::Table = toml::from_str(&on_split(study, seed)?)?;
    // A search until the budget is spent must have one; that of the search may be smaller than this.
    study.insert("budget".to_owned(), toml::toml! { rollouts = 1_000_000 }.into());
    if !is_help_desk(&study) {
        let repeats = FRESH.cast_unsigned().div_ceil(held_out.max(1) as u64);
        table(&mut study, "study")?.insert("repeats".to_owned(), repeats.cast_signed().into());
        return Ok((toml::to_string(&study)?, "evaluate", seed + OTHER_DRAWS));
    }
    // Splits are drawn from 114 tasks each below these.
    let stretch = FIRST_FRESH_TASK + (seed.cast_signed() % 142) * (FRESH + 1);
    let workload = table(&mut study, "workload")?;
    for (key, number) in [("skip", stretch), ("optimize", 1), ("evaluate", FRESH)] {
        workload.insert(key.to_owned(), number.into());
    }
    Ok((toml::to_string(&study)?, "evaluate", seed))
}

/// A table of the study, which is made where there is none.
pub(super) fn table<'a>(study: &'a mut toml::Table, name: &str) -> Result<&'a mut toml::Table> {
    let entry = study.entry(name).or_insert_with(|| toml::Table::new().into());
    entry
        .as_table_mut()
        .with_context(|| format!("`{name}` is not a table"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_differ_from_the_study_in_what_they_are_named_for() {
        let study = "
            [study]
            name = 'desk'
            caution = 0.0
            choice_probability = 0.0
            [prompt]
            text = 'Be kind.'
            [method]
            beta = 4.0
            [budget]
            rollouts = 4000
        ";
        let original: toml::Table = toml::from_str(study).unwrap();
        let ours = study
            .replace(
                "caution = 0.0",
                "caution = 1.0\nbatch = 8\nbatch_growth = 2.0\nrounds = 'until-budget'",
            )
            .replace("beta = 4.0", "beta = 4.0\npool = 3");
        let paper = edited(&ours, Contender::Capo).unwrap();
        assert_eq!(toml::from_str::<toml::Table>(&paper).unwrap(), original);
        let of = |contender| toml::from_str::<toml::Table>(&edited(study, contender).unwrap()).unwrap();
        assert_eq!(of(Contender::Capo), original);

        let mut fixed = of(Contender::Fixed);
        let method = fixed["method"].as_table_mut().unwrap();
        assert_eq!(method.remove("dual_step"), Some("fixed".into()));
        assert_eq!(method.remove("lambda_init"), Some(1.0.into()));
        assert_eq!(fixed, original);

        let mut cautious = of(Contender::CautiousFixed);
        let settings = cautious["study"].as_table_mut().unwrap();
        assert_eq!(
            settings.insert("caution".to_owned(), 0.0.into()),
            Some(1.64.into())
        );
        let probability = settings.insert("choice_probability".to_owned(), 0.0.into());
        assert_eq!(probability, Some(0.8.into()));
        assert_eq!(cautious, of(Contender::Fixed));

        let until_budget = of(Contender::CautiousUntilBudget);
        let mut until = until_budget.clone();
        let rounds = until["study"].as_table_mut().unwrap().remove("rounds");
        assert_eq!(rounds, Some("until-budget".into()));
        assert_eq!(until, of(Contender::Cautious));

        let mut growing = of(Contender::Growing);
        let settings = growing["study"].as_table_mut().unwrap();
        assert_eq!(settings.remove("batch"), Some(8.into()));
        assert_eq!(settings.remove("batch_growth"), Some(1.5.into()));
        assert_eq!(growing, until_budget);

        let mut small = of(Contender::GrowingSmallPool);
        let pool = small["method"].as_table_mut().unwrap().remove("pool");
        assert_eq!(pool, Some(3.into()));
        assert_eq!(small, of(Contender::Growing));

        let mut whole = of(Contender::SmallPool);
        whole["method"].as_table_mut().unwrap().remove("pool");
        assert_eq!(whole, until_budget);
        let mut incautious = of(Contender::Incautious);
        let settings = incautious["study"].as_table_mut().unwrap();
        settings.insert("caution".to_owned(), 1.64.into());
        settings.insert("choice_probability".to_owned(), 0.8.into());
        assert_eq!(incautious, of(Contender::GrowingSmallPool));

        let mut gepa = of(Contender::GepaHinge);
        gepa.insert("budget".to_owned(), original["budget"].clone());
        assert_eq!(gepa, original);
    }

    #[test]
    fn prompts_are_measured_in_a_thousand_fresh_rollouts() {
        let repeats = |held_out| {
            let (study, split, seed) = fresh("[workload]\nkind = 'tau2'", 3, held_out).unwrap();
            assert_eq!((split, seed), ("evaluate", 1_000_003));
            toml::from_str::<toml::Table>(&study).unwrap()["study"]["repeats"].as_integer()
        };
        assert_eq!([40, 11].map(repeats), [Some(25), Some(91)]);
    }

    #[test]
    fn a_prompt_beside_the_study_is_refused() {
        assert!(edited("[prompt]\nfile = 'seed.md'", Contender::Capo).is_err());
        assert!(edited("prompt = 3", Contender::Capo).is_err());
    }
}
