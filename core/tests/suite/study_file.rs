//! Study files: what is refused, and in which words.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::rc::Rc;

use crate::world::{EFFORT, Probe, World, resume, run, study};
use capo_core::arena::RunOptions;
use capo_core::ids::sha256_hex;
use capo_core::llm::Role;
use capo_core::problem::Problem;
use capo_core::study::{Format, Rounds, Setting, Study, UntilBudget};
use capo_core::verify;

const HEAD: &str = "[study]\nname = \"n\"\n[workload]\nkind = \"world\"\n[prompt]\ntext = \"Act.\"\n[objective]\nmetric = \"success\"\n[models.agent]\nprovider = \"x\"\n";

fn refusal(text: &str) -> String {
    Study::parse(text, Format::Toml).unwrap_err().to_string()
}

fn problem_refusal(text: &str) -> String {
    let study = Study::parse(text, Format::Toml).unwrap();
    let world = Rc::new(World::new(&Rc::new(Probe::default())));
    Problem::new(study, vec![world])
        .err()
        .expect("a refusal")
        .to_string()
}

#[test]
fn the_smallest_study_has_the_papers_defaults() {
    let study = Study::parse(HEAD, Format::Toml).unwrap();
    assert_eq!(study.study.method, "capo");
    for (key, value) in [
        ("parents", 4.0),
        ("children", 2.0),
        ("pool", 6.0),
        ("best", 1.0),
        ("beta", 4.0),
    ] {
        assert_eq!(study.method[key].as_f64(), Some(value), "{key}");
    }
    for (key, value) in [("lambda_max", 10.0), ("lambda_init", 1.0), ("gamma", 1.0)] {
        assert_eq!(study.method[key].as_f64(), Some(value), "{key}");
    }
    assert_eq!(serde_json::to_value(study.study.rounds).unwrap(), 6);
}

#[test]
fn unknown_keys_name_themselves_and_the_nearest() {
    for (extra, key, nearest) in [
        ("[budget]\nrolouts = 3\n", "rolouts", "rollouts"),
        ("[feedback]\nfrom = \"none\"\n", "from", "form"),
        (
            "[[constraint]]\nmetric = \"effort\"\ntreshold = 1.0\n",
            "treshold",
            "threshold",
        ),
        ("[method]\nparent = 3\n", "parent", "parents"),
        ("[buget]\nrollouts = 3\n", "buget", "budget"),
    ] {
        let error = refusal(&format!("{HEAD}{extra}"));
        assert!(
            error.contains(&format!("`{key}`")) && error.contains(&format!("did you mean `{nearest}`")),
            "{error}"
        );
    }
    let error = refusal(&HEAD.replace("name = \"n\"", "name = \"n\"\nmethod = \"cappo\""));
    assert!(
        error.contains("`study.method`") && error.contains("did you mean `capo`"),
        "{error}"
    );
}

#[test]
fn impossible_values_name_their_key() {
    let constraint = |keys: &str| format!("{HEAD}[[constraint]]\nmetric = \"effort\"\n{keys}\n");
    for (text, words) in [
        (
            constraint("threshold = 1.0\n[[constraint]]\nmetric = \"effort\"\nthreshold = 2.0"),
            "constrained twice",
        ),
        (
            constraint(""),
            "exactly one of `threshold` and `relative_to_seed`",
        ),
        (
            constraint("threshold = 1.0\nrelative_to_seed = 0.5"),
            "exactly one of `threshold` and `relative_to_seed`",
        ),
        (constraint("threshold = nan"), "`nan` is no number to reckon with"),
        (
            constraint("threshold = 1e13"),
            "`threshold` must lie between -1e12 and 1e12",
        ),
        (
            constraint("threshold = 1.0\nscale = 0.0"),
            "`scale` must lie between 1e-9 and 1e9",
        ),
        (
            constraint("threshold = 1.0\nscale = 1e-320"),
            "`scale` must lie between 1e-9 and 1e9",
        ),
        (constraint("threshold = 1.0\nfrom_round = 6"), "never comes"),
        (constraint("relative_to_seed = -1.0"), "at least 0"),
        (format!("{HEAD}[budget]\nrollouts = 0\n"), "budget of 0"),
        (format!("{HEAD}[budget]\nusd = -1.0\n"), "above 0"),
        (format!("{HEAD}[method]\nbeta = -1.0\n"), "`beta`"),
        (
            format!("{HEAD}[method]\nlambda_init = 12.0\n"),
            "above `lambda_max`",
        ),
        (format!("{HEAD}[method]\npool = 0\n"), "`pool` must be at least 1"),
        (
            HEAD.replace("name = \"n\"", "name = \"n\"\nbatch_growth = 1.5"),
            "`study.batch_growth`: says how `batch` grows; set `batch`",
        ),
        (
            HEAD.replace("name = \"n\"", "name = \"n\"\nbatch = 8\nbatch_growth = 0.5"),
            "`study.batch_growth`: must be between 1 and 1000, not 0.5",
        ),
        (
            HEAD.replace("name = \"n\"", "name = \"n\"\ncaution = -0.5"),
            "`study.caution`: must be between 0 and 10, not -0.5",
        ),
        (
            HEAD.replace("name = \"n\"", "name = \"n\"\nchoice_probability = 1.0"),
            "`study.choice_probability`: must be between 0 and 0.999, not 1",
        ),
        (
            HEAD.replace("name = \"n\"", "name = \"n\"\nrounds = 0"),
            "0 rounds",
        ),
        (
            HEAD.replace("name = \"n\"", "name = \"n\"\nrounds = \"until-budget\""),
            "never ends without a budget",
        ),
        (
            HEAD.replace("name = \"n\"", "name = \"n\"\nrepeats = 0"),
            "at least 1",
        ),
        (
            HEAD.replace("[objective]\nmetric = \"success\"\n", ""),
            "objective",
        ),
        (
            HEAD.replace("name = \"n\"", "name = \"n\"\nrepeats = 4294967295"),
            "`study.repeats`: must be at least 1 and at most 1000, not 4294967295",
        ),
        (
            HEAD.replace("name = \"n\"", "name = \"n\"\nrounds = 4294967295"),
            "`study.rounds`: must be at most 100000, not 4294967295",
        ),
        (
            format!("{HEAD}[failures]\ntries = 1001\n"),
            "`failures.tries`: must be at least 1 and at most 1000, not 1001",
        ),
        (
            format!("{HEAD}[method]\nparents = 1000\npool = 1000\nchildren = 1000\n"),
            "up to 1000000 rewrites, and at most 20000 are possible",
        ),
        (
            format!("{HEAD}[feedback]\nform = \"sumary\"\n"),
            "`feedback.form`: unknown value `sumary`",
        ),
        (
            format!("{HEAD}[method]\ndual_step = \"pdi\"\n"),
            "`dual_step`: unknown value `pdi`",
        ),
    ] {
        let error = refusal(&text);
        assert!(error.contains(words), "{words}: {error}");
    }
    for (method, keys) in [
        ("capo", "parents mask children pool best"),
        ("capo-ea", "children pool best"),
        ("count", "parents children pool best"),
        ("dcapo", "parents depth children pool best"),
        ("sampling", "k"),
        ("gepa", "minibatch merges"),
        ("mopo", "children pool"),
        ("evoprompt-ga", "pool"),
        ("evoprompt-de", "pool"),
        ("apo", "beam"),
    ] {
        for key in keys.split(' ') {
            let head = HEAD.replace("name = \"n\"", &format!("name = \"n\"\nmethod = \"{method}\""));
            let error = refusal(&format!("{head}[method]\n{key} = 4294967295\n"));
            let words = "and at most 1000, not 4294967295";
            assert!(
                error.contains(&format!("`{key}` must be at least")) && error.contains(words),
                "{error}"
            );
        }
    }
    assert!(refusal("[study\nname = 1").contains("line 1"));
}

#[test]
fn numbers_that_are_not_finite_are_refused_by_key_and_place() {
    for (number, tables, key) in [
        (
            "nan",
            "[[workload.metric]]\ntype = \"length\"\nlimit = @",
            "workload.metric[0].limit",
        ),
        (
            "inf",
            "[models.rewriter]\nprovider = \"x\"\ntemperature = @",
            "models.rewriter.temperature",
        ),
        (
            "-inf",
            "[models.judge]\nprovider = \"x\"\nprice = { input = 1, output = @ }",
            "models.judge.price.output",
        ),
        ("+nan", "[method]\ngamma = @", "method.gamma"),
        (
            "nan",
            "[[constraint]]\nmetric = \"effort\"\nscale = @",
            "constraint[0].scale",
        ),
        ("inf", "[budget]\nusd = @", "budget.usd"),
        (
            "nan",
            "[workload.deep]\n\"a b\" = [1.0, [{ c = @ }]]",
            "workload.deep.a b[1][0].c",
        ),
        // The first of the file, not of the alphabet.
        ("inf", "[workload.deep]\nz = @\na = nan", "workload.deep.z"),
    ] {
        let text = format!("{HEAD}{}\n", tables.replace('@', number));
        let line = text
            .lines()
            .position(|line| line.contains(&format!("= {number}")))
            .unwrap()
            + 1;
        let error = refusal(&text);
        assert!(
            error.starts_with(&format!("`{key}`: line {line}, column ")),
            "{error}"
        );
        assert!(
            error.contains(&format!("`{number}`")) && error.contains("finite"),
            "{error}"
        );
    }
    // As texts they are texts, and beyond the range of numbers they are refused as before.
    let text = "[workload.deep]\na = \"nan\"\nb = 1e308\n";
    assert!(Study::parse(&format!("{HEAD}{text}"), Format::Toml).is_ok());
    assert!(refusal(&format!("{HEAD}[workload.deep]\na = 1e999\n")).contains("1e999"));
}

#[test]
fn a_study_in_json_is_refused_by_key_and_place_as_one_in_toml() {
    let whole = serde_json::to_string(&Study::parse(HEAD, Format::Toml).unwrap()).unwrap();
    Study::parse(&whole, Format::Json).unwrap();
    let caution = |number: &str| whole.replacen("\"name\":", &format!("\"caution\":{number},\"name\":"), 1);
    let deep = |number: &str| whole.replacen("\"kind\":", &format!("\"deep\":[1,{number}],\"kind\":"), 1);
    for (text, begin) in [
        (
            caution("1e999"),
            "`study.caution`: the number is too large to reckon with at line 1 column ",
        ),
        (
            caution("null"),
            "`study.caution`: expected a number, found nothing at line 1 column ",
        ),
        (
            caution("NaN"),
            "`study.caution`: expected a value at line 1 column ",
        ),
        (
            deep("-1e999"),
            "`workload.deep[1]`: the number is too large to reckon with",
        ),
        (
            whole.replace("\"seed\":0", "\"seed\":-1"),
            "`study.seed`: expected a whole number of at least 0, found -1",
        ),
        (whole.replace("\"seed\"", "\"sed\""), "unknown field `sed`"),
        ("[]".into(), "expected a table, found a list of 0"),
        (
            "{\"study\":".into(),
            "`study`: the text ends in the middle of a value at line 1 column 9",
        ),
        (format!("{whole}]"), "trailing characters"),
    ] {
        let error = Study::parse(&text, Format::Json).unwrap_err().to_string();
        assert!(error.starts_with(begin), "{error}");
    }
}

#[test]
fn what_does_not_fit_the_workload_is_refused() {
    let metric = |metric: &str, threshold: f64| {
        format!("{HEAD}[[constraint]]\nmetric = \"{metric}\"\nthreshold = {threshold}\n")
    };
    for (text, words) in [
        (metric("efort", 1.0), "did you mean `effort`"),
        (metric("effort", -0.5), "never be met"),
        (
            HEAD.replace("metric = \"success\"", "metric = \"effort\""),
            "is a cost",
        ),
        (
            HEAD.replace("text = \"Act.\"", "text = \"  \""),
            "seed prompt is empty",
        ),
        (
            HEAD.replace("text = \"Act.\"", ""),
            "exactly one of `text` and `file`",
        ),
        (
            HEAD.replace("name = \"n\"", "name = \"n\"\nbatch = 25"),
            "larger than the 24 examples",
        ),
    ] {
        let error = problem_refusal(&text);
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn budget_and_operational_keys_are_no_part_of_the_identity_and_everything_else_is() {
    let id = |study: Study| {
        let world = Rc::new(World::new(&Rc::new(Probe::default())));
        Problem::new(study, vec![world]).unwrap().id()
    };
    let base = id(study(1, "capo", EFFORT, ""));
    assert_eq!(base, id(study(1, "capo", EFFORT, "[budget]\nrollouts = 9\n")));
    assert_eq!(
        base,
        id(study(1, "capo", EFFORT, "[method]\nbeta = 4.0\n")),
        "a default written out"
    );
    let with = |table: &str, key: &str, value: serde_json::Value| {
        let mut study = study(1, "capo", EFFORT, "");
        let (agent, workload) = (&mut study.models[&Role::Agent], &mut study.workload);
        let table = if table == "models" {
            agent.as_object_mut().unwrap()
        } else {
            workload
        };
        table.insert(key.into(), value);
        id(study)
    };
    for key in [
        "abort_after",
        "api_key_env",
        "concurrency",
        "latency",
        "retries",
        "timeout_seconds",
    ] {
        assert_eq!(base, with("models", key, 3.into()), "{key}");
    }
    for key in ["bearer_env", "concurrency", "retries", "timeout"] {
        assert_eq!(base, with("workload", key, 3.into()), "{key}");
    }
    for key in [
        "temperature",
        "model",
        "base_url",
        "max_tokens",
        "headers",
        "price",
        "seed",
    ] {
        assert_ne!(base, with("models", key, 3.into()), "{key}");
    }
    assert_ne!(base, with("workload", "format", 3.into()));
    for other in [
        study(2, "capo", EFFORT, ""),
        study(1, "capo-ea", EFFORT, ""),
        study(1, "capo", EFFORT, "[method]\nbeta = 3.0\n"),
        study(1, "capo", "", ""),
        study(1, "capo", EFFORT, "[feedback]\nform = \"none\"\n"),
    ] {
        assert_ne!(base, id(other));
    }
}

#[test]
fn a_journal_goes_on_with_other_operational_keys_whatever_they_were() {
    let mut patient = study(1, "capo", EFFORT, "");
    patient.models[&Role::Agent]["timeout_seconds"] = 600.into();
    let (whole, lines) = run(study(1, "capo", EFFORT, ""), &Rc::new(Probe::default()));
    let resumed = |lines: Vec<String>| {
        let (again, now) = resume(
            patient.clone(),
            &Rc::new(Probe::default()),
            lines.clone(),
            RunOptions::default(),
        );
        assert_eq!((&again.finished, now), (&whole.finished, lines));
    };
    resumed(lines.clone());

    // As the first journals of schema 1 stated their id: with operational keys counted in.
    let mut header: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    header["study"]["models"]["agent"]["retries"] = 7.into();
    let mut identity = header["study"].clone();
    identity.as_object_mut().unwrap().shift_remove("budget");
    let hashed = serde_json::json!({ "fingerprints": { "world": "world-1" }, "study": identity });
    header["id"] = sha256_hex(sorted(&hashed).to_string()).into();
    let mut former = lines;
    former[0] = header.to_string();
    futures::executor::block_on(verify(&former)).unwrap();
    resumed(former.clone());
    former[0] = former[0].replace("\"retries\":7", "\"retries\":8");
    futures::executor::block_on(verify(&former)).unwrap_err();
}

/// With the keys of every object in order.
fn sorted(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(fields) => {
            let mut fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            serde_json::Value::Object(fields.into_iter().collect())
        }
        serde_json::Value::Array(items) => items.iter().map(sorted).collect(),
        scalar => scalar.clone(),
    }
}

#[test]
fn a_study_survives_export_to_toml_and_json() {
    let study = study(1, "capo", EFFORT, "[budget]\nusd = 2.5\n[method]\nmask = 3\n");
    assert_eq!(
        Study::parse(&study.to_toml().unwrap(), Format::Toml).unwrap(),
        study
    );
    assert_eq!(
        Study::parse(&serde_json::to_string(&study).unwrap(), Format::Json).unwrap(),
        study
    );
}

#[test]
fn a_measured_threshold_is_not_exported() {
    let relative = "[[constraint]]\nmetric = \"effort\"\nrelative_to_seed = 0.9\n";
    let written = study(1, "capo", relative, "");
    let mut frozen = written.clone();
    frozen.constraints[0].threshold = Some(1.5);
    assert_eq!(
        Study::parse(&frozen.to_toml().unwrap(), Format::Toml).unwrap(),
        written
    );
}

#[test]
fn a_held_out_example_that_the_search_would_see_is_refused() {
    let mut leaking = World::new(&Rc::new(Probe::default()));
    leaking.evaluate.push("o3".into());
    let error = Problem::new(study(1, "capo", EFFORT, ""), vec![Rc::new(leaking)]);
    let error = error.err().expect("a refusal").to_string();
    assert!(
        error.contains("example `o3` of workload `world` comes twice"),
        "{error}"
    );
}

#[test]
fn a_metric_that_results_would_confuse_with_what_stands_beside_it_is_refused() {
    for name in ["all_sat", "seed", "effort.standard_error"] {
        let mut world = World::new(&Rc::new(Probe::default()));
        world.metrics[1].name = name.into();
        let error = Problem::new(study(1, "capo", EFFORT, ""), vec![Rc::new(world)]);
        let error = error.err().expect("a refusal").to_string();
        assert!(
            error.contains(name) && error.contains("give it another name"),
            "{error}"
        );
    }
}

#[test]
fn brackets_without_end_are_refused_and_those_of_texts_are_not_counted() {
    for open in ["{ a = ", "[", "{"] {
        let error = refusal(&format!("{HEAD}[method]\nbeta = {}", open.repeat(20_000)));
        assert!(
            error.contains("line 12, column") && error.contains("brackets are open"),
            "{error}"
        );
    }
    let prompt = "{ [ ".repeat(200);
    let text = HEAD.replace("\"Act.\"", &format!("'''{prompt}'''"));
    assert_eq!(
        Study::parse(&text, Format::Toml).unwrap().seed_prompt().unwrap(),
        prompt
    );
}

#[test]
fn the_paper_s_search_is_left_of_a_study_that_states_what_is_ours() {
    let text = format!("{HEAD}[method]\nbeta = 2.0\n");
    let mut plain = Study::parse(&text, Format::Toml).unwrap();
    let mut ours = plain.clone();
    (ours.study.caution, ours.study.choice_probability) = (1.64, 0.8);
    (ours.study.batch, ours.study.batch_growth) = (Some(8), Some(1.5));
    ours.method.insert("pool".into(), 3.into());
    ours.use_paper_preset();
    plain.use_paper_preset();
    assert_eq!(ours, plain);
    ours.budget.rollouts = Some(100);
    ours.use_paper_preset();
    assert_eq!(ours.budget.rollouts, Some(100), "it has counted rounds");
    ours.study.rounds = Rounds::Open(UntilBudget::UntilBudget);
    ours.use_paper_preset();
    assert_eq!(
        (ours.study.rounds, ours.budget.rollouts),
        (Rounds::Count(6), None)
    );
}

#[test]
fn a_preset_leaves_the_paper_s_search_within_the_stated_budget() {
    let ours = "preset = \"paper\"\nrounds = \"until-budget\"\nbatch = 8\nbatch_growth = 1.5\ncaution = 1.0\n[workload]";
    let named = HEAD.replace("[workload]", ours) + "[method]\npool = 3\n[budget]\nrollouts = 500\n";
    let named = Study::parse(&named, Format::Toml).unwrap();
    let paper = format!("{HEAD}[budget]\nrollouts = 500\n");
    assert_eq!(named, Study::parse(&paper, Format::Toml).unwrap());
    let setting: Setting = "study.preset=paper".parse().unwrap();
    let set = Study::parse_with(&paper, Format::Toml, std::slice::from_ref(&setting));
    assert_eq!(set.unwrap(), named);
    let both = [setting, "study.caution=1.5".parse().unwrap()];
    let told = Study::parse_with(&paper, Format::Toml, &both).unwrap_err();
    assert!(told.to_string().contains("study.caution"), "{told}");
    let unknown = HEAD.replace("[workload]", "preset = \"papers\"\n[workload]");
    let told = refusal(&unknown);
    assert!(told.contains("preset") && told.contains("paper"), "{told}");
}
