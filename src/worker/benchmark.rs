//! The files of the tau2 benchmark: taken in from a folder or an archive, and put beside studies that
//! need them.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use capo_core::study::Table;
use capo_workloads::tau2::archive::{complete, unpack, wanted};
use capo_workloads::tau2::folder;
use capo_workloads::tau2::settings::{DomainName, KIND};
use js_sys::{Array, Uint8Array};
use serde_json::Value;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, FileReaderSync};

use super::protocol::DataFiles;
use crate::storage::Storage;

/// Keeps what is needed of the files beside an order, pairs of a path and a file, archives among them.
///
/// # Errors
/// What is missing or does not read, or that the browser keeps nothing. What was kept is then kept still.
pub(super) async fn take_in(files: &JsValue) -> Result<(), String> {
    let mut found = BTreeMap::new();
    let mut given = Vec::new();
    for pair in Array::from(files) {
        let pair = Array::from(&pair);
        let path = pair.get(0).as_string().unwrap_or_default();
        let file: Blob = pair
            .get(1)
            .dyn_into()
            .map_err(|_| format!("{path} came without its content; choose it again"))?;
        given.push((path, file));
    }
    // A checkout may hold copies in deeper folders, and archives of other things.
    given.sort_by_key(|(path, _)| path.len());
    let is_alone = given.len() == 1;
    for (path, file) in given {
        if is_alone && path.to_lowercase().ends_with(".zip") {
            let unread = |error| format!("{path} does not read as a ZIP archive: {error}");
            let pieces = Pieces::of(file).map_err(unread)?;
            found = unpack(&path, BufReader::with_capacity(1 << 16, pieces))?;
        } else if let Some(wanted) = wanted(&path).filter(|wanted| !found.contains_key(wanted)) {
            let text = JsFuture::from(file.text())
                .await
                .ok()
                .and_then(|text| text.as_string());
            found.insert(wanted, text.ok_or_else(|| format!("{path} cannot be read"))?);
        }
    }
    let complete = complete(&found)?;
    found.retain(|path, _| {
        complete
            .iter()
            .any(|domain| folder::files(*domain).contains(path))
    });
    let storage = Storage::open().await.map_err(|error| error.to_string())?;
    storage
        .keep_benchmark(&found)
        .await
        .map_err(|error| error.to_string())
}

/// A file of the browser's, read where it is asked for.
struct Pieces {
    file: Blob,
    reader: FileReaderSync,
    at: u64,
    size: u64,
}

impl Pieces {
    fn of(file: Blob) -> io::Result<Self> {
        Ok(Self {
            reader: FileReaderSync::new()
                .map_err(|_| io::Error::other("this browser reads no files in workers"))?,
            size: file.size() as u64,
            file,
            at: 0,
        })
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = self.size.min(self.at + buffer.len() as u64);
        let unread = |_| io::Error::other("it cannot be read; it may have been moved or changed meanwhile");
        let slice = self
            .file
            .slice_with_f64_and_f64(self.at as f64, end as f64)
            .map_err(unread)?;
        let bytes = Uint8Array::new(self.reader.read_as_array_buffer(&slice).map_err(unread)?.as_ref());
        let count = bytes.length() as usize;
        bytes.copy_to(&mut buffer[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Pieces {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::other("before its beginning"))?;
        Ok(self.at)
    }
}

/// The data files of a workload, with those of the benchmark where it needs them.
///
/// # Errors
/// When the browser does not give them back.
pub(super) async fn beside(workload: &Table, mut files: DataFiles) -> Result<DataFiles, String> {
    let text = |key: &str| workload.get(key).and_then(Value::as_str);
    let domain = DomainName::ALL
        .into_iter()
        .find(|domain| text("domain") == Some(domain.name()));
    let (Some(KIND), Some(domain)) = (text("kind"), domain) else {
        return Ok(files);
    };
    for key in ["tool_descriptions", "embeddings"] {
        if let Some(path) = text(key).filter(|path| !files.contains_key(*path)) {
            return Err(format!(
                "workload.{key}: {path} is not here; choose it on New study, or drop it there, and run the study \
                 from there"
            ));
        }
    }
    let storage = Storage::open().await.map_err(|error| error.to_string())?;
    let root = text("data").unwrap_or_default().trim_end_matches('/');
    for path in folder::files(domain) {
        let kept = storage
            .benchmark_file(path)
            .await
            .map_err(|error| error.to_string())?;
        let kept = kept.ok_or_else(|| {
            format!(
                "workload.data: the {} domain of the benchmark is not in this browser yet; drop or choose the folder \
                 data/tau2 of a checkout of tau2-bench, or a ZIP of it",
                domain.name()
            )
        })?;
        files.insert(format!("{root}/{path}"), kept.into());
    }
    Ok(files)
}
