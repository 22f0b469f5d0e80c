//! Storage of data files and checkpoints: a folder, or a bucket of an S3-compatible store.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use futures::stream::BoxStream;
use object_store::aws::AmazonS3Builder;
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, Error, ObjectStore, ObjectStoreExt as _, RetryConfig};

/// What the names of buckets begin with.
const BUCKET: &str = "s3://";

/// Bytes of one part of an upload, the fewest that S3 takes, and how many are under way at a time.
const PART: usize = 5 << 20;
const PARTS: usize = 2;

/// Parts of one upload, somewhat fewer than S3 takes.
const MOST_PARTS: u64 = 8_000;

/// How long a bucket may take to be reached and to say the next word, and how long what fails is repeated.
const CONNECT: Duration = Duration::from_secs(10);
const ONCE: Duration = Duration::from_mins(1);
const PATIENCE: Duration = Duration::from_secs(20);

/// A place for the bytes of data files, each under a name of its own.
#[derive(Debug, Clone)]
pub struct Files {
    store: Arc<dyn ObjectStore>,
    place: String,
    /// The folder, if it is one.
    folder: Option<PathBuf>,
}

/// Why what data files hold cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The place is none.
    #[error(
        "data files cannot lie in {place}: {problem}; name a folder, or a bucket as s3://BUCKET/PREFIX, with --files"
    )]
    Place {
        /// As it was named.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It does not answer, or refuses.
    #[error("the place of data files: {0}")]
    Store(#[from] Error),
    /// A file could not be written there to its end.
    #[error("the place of data files: {0}")]
    Write(#[from] std::io::Error),
    /// Nobody named one.
    #[error("this process has no place for data files")]
    Nowhere,
}

impl FilesError {
    /// Whether there is no more room for it.
    pub(crate) fn is_full(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        let mut causes = std::iter::successors(Some(self as &dyn std::error::Error), |error| error.source());
        causes.any(|cause| {
            let cause = cause.downcast_ref::<std::io::Error>();
            cause.is_some_and(|error| matches!(error.kind(), StorageFull | QuotaExceeded))
        })
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl Files {
    /// A folder that is there.
    ///
    /// # Errors
    /// When it is none.
    pub fn in_folder(folder: &std::path::Path) -> Result<Self, FilesError> {
        let place = folder.display().to_string();
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|error| refused(&place, &error))?;
        // The folders that it makes for projects go with their last file.
        let store = store.with_fsync(true).with_automatic_cleanup(true);
        Ok(Self {
            store: Arc::new(store),
            place,
            folder: Some(folder.to_owned()),
        })
    }

    /// A bucket, `s3://BUCKET` with a prefix perhaps. How it is reached is said by the variables `AWS_*`, such as
    /// `AWS_ENDPOINT`.
    ///
    /// # Errors
    /// When what is said makes no sense.
    pub fn in_bucket(place: &str) -> Result<Self, FilesError> {
        let bucket = place.strip_prefix(BUCKET);
        let bucket = bucket.ok_or_else(|| refused(place, &"it is no bucket of an S3-compatible store"))?;
        let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
        let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|error| refused(place, &error))?;
        let retry = RetryConfig {
            max_retries: 3,
            retry_timeout: PATIENCE,
            ..RetryConfig::default()
        };
        let is_open =
            std::env::var("AWS_ALLOW_HTTP").is_ok_and(|allowed| allowed.eq_ignore_ascii_case("true"));
        let store = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_client_options(
                ClientOptions::new()
                    .with_allow_http(is_open)
                    .with_timeout_disabled()
                    .with_connect_timeout(CONNECT)
                    .with_read_timeout(ONCE),
            )
            .with_retry(retry)
            .build()
            .map_err(|error| refused(place, &error))?;
        Ok(Self {
            store: Arc::new(PrefixStore::new(store, prefix)),
            place: place.to_owned(),
            folder: None,
        })
    }

    /// Whether a place is meant as a bucket, and not as a folder of a machine.
    pub fn is_bucket(place: &str) -> bool {
        place.contains("://")
    }

    /// Whether the place answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn answers(&self) -> Result<(), FilesError> {
        self.store.list(None).try_next().await?;
        Ok(())
    }

    /// Writes an object of about so many bytes, whole once it is shut down and else not at all.
    pub(crate) fn writer(&self, object: &str, bytes: u64) -> BufWriter {
        let part = usize::try_from(bytes / MOST_PARTS).map_or(usize::MAX, |part| part.max(PART));
        BufWriter::with_capacity(self.store.clone(), object.into(), part).with_max_concurrency(PARTS)
    }

    /// Writes an object that lies in memory.
    pub(crate) async fn write(&self, object: &str, bytes: Vec<u8>) -> Result<(), FilesError> {
        self.store.put(&object.into(), bytes.into()).await?;
        Ok(())
    }

    /// What an object holds; `None` where there is none.
    pub(crate) async fn read(&self, object: &str) -> Result<Option<Vec<u8>>, FilesError> {
        match self.store.get(&object.into()).await {
            Ok(found) => Ok(Some(found.bytes().await?.into())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What an object holds, piece by piece.
    pub(crate) async fn pieces(
        &self,
        object: &str,
    ) -> Result<BoxStream<'static, Result<axum::body::Bytes, Error>>, FilesError> {
        Ok(self.store.get(&object.into()).await?.into_stream())
    }

    /// Deletes an object, unless it is gone already, and what uploads of it have left that were killed.
    pub(crate) async fn delete(&self, object: &str) -> Result<(), FilesError> {
        if let Some(folder) = &self.folder {
            delete_staged(&folder.join(object))?;
        }
        match self.store.delete(&object.into()).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// What is told where a data file that a study names does not read.
pub(crate) fn lacks_file(path: &str, sha256: &str) -> String {
    format!(
        "the data file `{path}` ({sha256}) is not there: the project lacks it, or this process looks elsewhere than the \
         server keeps data files (--files)"
    )
}

/// Deletes the files `OBJECT#…` in which a folder's uploads lie until they are whole.
fn delete_staged(object: &std::path::Path) -> std::io::Result<()> {
    let (Some(folder), Some(name)) = (object.parent(), object.file_name()) else {
        return Ok(());
    };
    let entries = match folder.read_dir() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let staged = entry.file_name();
        let rest = staged.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
        if rest.is_some_and(|rest| rest.starts_with(b"#")) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn refused(place: &str, problem: &dyn fmt::Display) -> FilesError {
    FilesError::Place {
        place: place.to_owned(),
        problem: problem.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn what_killed_uploads_left_goes_with_their_object() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        fs::create_dir(&project).unwrap();
        for name in ["one", "one#1", "one#12", "one2", "one2#1"] {
            fs::write(project.join(name), "").unwrap();
        }
        let files = Files::in_folder(folder.path()).unwrap();
        files.delete("project/one").await.unwrap();
        let left = project
            .read_dir()
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(left, ["one2", "one2#1"]);
    }
}
