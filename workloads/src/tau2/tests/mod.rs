mod conversations;
mod grade;
mod prompts;
mod shift;
mod steps;
mod tools;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;

use super::environment::World;
use super::folder::{Domain, Folder};
use super::task::Task;
use crate::files::Sources;
use crate::shared::SharedFiles;

/// The recordings of a domain.
fn recordings<T: DeserializeOwned>(domain: &str) -> Option<Vec<T>> {
    let path = capo_tests::shared::shared(&format!("tau2/parity/{domain}.jsonl.gz"))?;
    let lines = BufReader::new(GzDecoder::new(File::open(path).unwrap())).lines();
    Some(
        lines
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect(),
    )
}

/// Reads something off the benchmark's data folder, looked at for a domain.
fn from_folder<W: World, T>(read: impl FnOnce(&mut Folder<'_, '_>) -> T) -> Option<T> {
    capo_tests::shared::shared("tau2/data")?;
    let files = SharedFiles;
    let mut sources = Sources::new(&files);
    Some(read(&mut Folder::new(&mut sources, "tau2/data", W::NAME)))
}

/// A domain's world before any task.
fn fresh<W: Domain>() -> Option<W> {
    from_folder::<W, _>(|folder| <W as Domain>::read(folder).unwrap())
}

/// All tasks of a domain by id.
fn tasks<W: World>() -> Option<HashMap<String, Task>> {
    let tasks = from_folder::<W, _>(|folder| folder.tasks().unwrap())?;
    Some(tasks.into_iter().map(|task| (task.id.clone(), task)).collect())
}
