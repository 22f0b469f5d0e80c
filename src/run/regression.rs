//! The held-out rows of a run as a study, to test prompts on in a build.

use capo_core::reading::examples::Examples;
use capo_core::reading::in_force;
use capo_core::run_state::RunState;
use capo_core::study::Study;
use capo_core::workload::Split;
use capo_workloads::data::held_out;

use crate::worker::protocol::{DataFiles, memory};

/// Whether the examples of a run are rows: of one call each, and of one table.
pub fn is_of_rows(state: &RunState) -> bool {
    state.study().is_some_and(|begun| {
        let kind = capo_workloads::of(&begun.study.workload);
        begun.workloads.len() == 1 && kind.is_some_and(|kind| kind.one_call)
    })
}

/// The name of both files without an ending, from that of files about the run.
pub fn file_name(run: &str) -> String {
    format!("{run}-held-out")
}

/// How the prompt of a run is measured on the rows, from the name of files about it.
pub fn command(run: &str) -> String {
    let study = file_name(run);
    format!("capo evaluate {study}.toml --prompt {run}-prompt.txt --split optimize")
}

/// A study of the held-out examples that prompts of a run are compared on and no others, with the thresholds that the run
/// ended with; and these rows, which it names, as JSON Lines. `run` is the name of files about the run.
///
/// # Errors
/// When the rows are not there, in words.
pub fn regression(state: &RunState, files: &DataFiles, run: &str) -> Result<(String, String), String> {
    let begun = state.study().ok_or("There is no study yet.")?;
    let record = begun.workloads.values().next();
    let all = record.map_or(&[][..], |record| record.split(Split::Evaluate));
    let whole = Examples::whole(state, Split::Evaluate);
    let ids = whole.places.iter().flatten().filter_map(|place| all.get(*place));
    let ids: Vec<&str> = ids.map(String::as_str).collect();
    if ids.is_empty() {
        return Err("This run holds no rows out.".to_owned());
    }
    let mut study = begun.study.clone();
    let (file, count) = (format!("{}.jsonl", file_name(run)), ids.len());
    let made = held_out(&study.workload, &memory(files), ids, &file);
    let (workload, rows) = made.map_err(|error| error.to_string())?;
    study.workload = workload;
    hold_thresholds(state, &mut study);
    // These say what a search does with more examples than there are.
    (study.study.batch, study.study.batch_growth, study.confirm) = (None, None, None);
    let toml = study.to_toml().map_err(|error| error.to_string())?;
    let head = format!(
        "# Measures prompts on {count} examples that a run held out: the rows in {file}.\n\
         # It ends with 0 where a prompt keeps every threshold, with 2 where it breaks one:\n#\n#   {}\n\n",
        command(run)
    );
    Ok((head + &toml, rows))
}

/// Has a study keep the thresholds that a run ended with, whatever its seed prompt measures.
pub(super) fn hold_thresholds(state: &RunState, study: &mut Study) {
    let thresholds = in_force::thresholds(state, None);
    for constraint in &mut study.constraints {
        if let Some(threshold) = thresholds.get(&constraint.metric) {
            (constraint.threshold, constraint.relative_to_seed) = (Some(*threshold), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capo_core::journal::Event;
    use capo_core::study::Format;
    use serde_json::json;

    use super::*;
    use crate::run::fixture::{events, fold};

    #[test]
    fn a_study_of_the_held_out_rows_alone_keeps_their_ids_and_the_thresholds_in_force() {
        let mut events = events(|study| study.study.batch = Some(6), None);
        assert!(!is_of_rows(&fold(&events)));
        let Event::Study(begun) = &mut events[0] else {
            panic!("a journal begins with its study");
        };
        // The ids of the desk's examples stand for those of rows.
        let record = begun.workloads.values_mut().next().unwrap();
        let row = |id: &String| json!({ "id": id, "question": "?", "answer": "!" }).to_string() + "\n";
        let rows: String = record.optimize.iter().chain(&record.evaluate).map(row).collect();
        let table = json!({
            "kind": "table", "data": "rows.jsonl", "id": "id", "optimize": 12, "evaluate": 8, "shuffle": false,
            "user": "{{ question }}", "metric": [{ "type": "exact", "name": "success", "expected": "{{ answer }}" }],
        });
        let held_out = record.evaluate.clone();
        begun.study.workload = table.as_object().unwrap().clone();
        begun.study.constraints[0].relative_to_seed = Some(0.5);
        let state = fold(&events);
        assert!(is_of_rows(&state));
        let none = regression(&state, &DataFiles::new(), "desk").unwrap_err();
        assert!(none.contains("rows.jsonl"), "{none}");

        let files = DataFiles::from([("rows.jsonl".to_owned(), Arc::from(rows))]);
        let (study, rows) = regression(&state, &files, "desk").unwrap();
        let wanted: String = held_out.iter().map(row).collect();
        assert_eq!(rows, wanted);
        assert!(study.contains(&command("desk")), "{study}");
        let study = Study::parse(&study, Format::Toml).unwrap();
        assert_eq!(study.workload["data"], "desk-held-out.jsonl");
        assert_eq!(study.study.batch, None);
        let first = &study.constraints[0];
        assert_eq!((first.threshold, first.relative_to_seed), (Some(0.4), None));
    }
}
