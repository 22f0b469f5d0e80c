//! Where the bytes of data files and checkpoints lie: a folder, or a bucket of an S3-compatible store.

use std::fmt;
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

/// How long a bucket may take to be reached and to say the next word, and how long what fails is repeated.
const CONNECT: Duration = Duration::from_secs(10);
const ONCE: Duration = Duration::from_mins(1);
const PATIENCE: Duration = Duration::from_secs(20);

/// A place for the bytes of data files, each under a name of its own.
#[derive(Debug, Clone)]
pub struct Files {
    store: Arc<dyn ObjectStore>,
    place: String,
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

    /// Writes an object, whole once it is shut down and else not at all.
    pub(crate) fn writer(&self, object: &str) -> BufWriter {
        BufWriter::with_capacity(self.store.clone(), object.into(), PART).with_max_concurrency(PARTS)
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

    /// Deletes an object, unless it is gone already.
    pub(crate) async fn delete(&self, object: &str) -> Result<(), FilesError> {
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

fn refused(place: &str, problem: &dyn fmt::Display) -> FilesError {
    FilesError::Place {
        place: place.to_owned(),
        problem: problem.to_string(),
    }
}
