//! Files that a study reads beside itself, which nothing is to be written over; of a folder of data that the study
//! itself lies in, that is left to whoever names a file there.

use std::fs;
use std::path::{Path, PathBuf};

use capo_core::study::Study;
use serde_json::Value;

use crate::files::{StudyFolder, VARIABLES};

/// The files that a study reads, by what they are: to be asked before its prompt's text takes the place of the file.
pub(crate) fn read_by(study: &Study, path: &Path, folder: &StudyFolder) -> Vec<(&'static str, PathBuf)> {
    let variables = folder.resolve(VARIABLES[0]);
    let mut read = vec![
        ("the study", path.to_owned()),
        ("the file of variables", variables),
    ];
    let prompt = study.prompt.file.iter();
    read.extend(prompt.map(|file| ("the study's prompt", folder.resolve(file))));
    let mut texts = Vec::new();
    for value in study.workload.values().chain(study.models.values()) {
        texts_in(value, &mut texts);
    }
    // Any text may name a file, be it a program's argument; a folder only what is to hold the data, and not the study too.
    let data = study.workload.get("data").and_then(Value::as_str);
    let holds_study = |place: &Path| {
        let [place, study] = [place, path].map(fs::canonicalize);
        matches!((place, study), (Ok(place), Ok(study)) if study.starts_with(&place))
    };
    for text in texts {
        let place = folder.resolve(text);
        if place.is_file() || data == Some(text) && !holds_study(&place) {
            read.push(("read by the study", place));
        }
    }
    read
}

fn texts_in<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts_in(item, texts)),
        Value::Object(table) => table.values().for_each(|item| texts_in(item, texts)),
        _ => {}
    }
}
