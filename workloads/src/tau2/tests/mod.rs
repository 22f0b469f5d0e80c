mod conversations;
mod drawn;
mod grade;
mod odd;
mod prompts;
mod properties;
mod shift;
mod steps;
mod tools;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;

use super::environment::{Side, World};
use super::folder::{Domain, Folder};
use super::task::Task;
use crate::files::{FileError, Files, Sources};
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

/// Records of a few people, in `testdata/`.
struct OwnFiles;

impl Files for OwnFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(path);
        Ok(std::fs::read(path).unwrap())
    }
}

/// A domain's world with these few people.
fn own<W: Domain>() -> W {
    let mut sources = Sources::new(&OwnFiles);
    <W as Domain>::read(&mut Folder::new(&mut sources, "tau2", W::NAME)).unwrap()
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
