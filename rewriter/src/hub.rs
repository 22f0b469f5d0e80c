//! A model's folder: on this machine, or downloaded from the hub.

use std::error::Error;
use std::path::{Path, PathBuf};

use hf_hub::api::sync::{ApiBuilder, ApiRepo};
use hf_hub::{Cache, CacheRepo, Repo, RepoType};

use crate::error::FileError;
use crate::weights::{INDEX, SINGLE, shards};

/// Where a model comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// A folder in Hugging Face's layout.
    Folder(PathBuf),
    /// A repository of the hub.
    Hub {
        /// `owner/name`.
        repository: String,
        /// Commit, tag or branch; a commit makes runs repeatable.
        revision: String,
    },
}

const OPTIONAL: [&str; 3] = [
    "generation_config.json",
    "tokenizer_config.json",
    "chat_template.jinja",
];

impl ModelSource {
    /// The model's folder, after downloading what the hub's cache does not hold yet. The cache and
    /// the access token are those of Hugging Face's own tools (`HF_HOME`).
    ///
    /// # Errors
    ///
    /// [`FileError::Hub`] names the file that could not be downloaded.
    pub fn fetch(&self) -> Result<PathBuf, FileError> {
        match self {
            Self::Folder(folder) => Ok(folder.clone()),
            Self::Hub { repository, revision } => Download::new(repository, revision)?.fetch(),
        }
    }
}

struct Download<'a> {
    repository: &'a str,
    revision: &'a str,
    files: ApiRepo,
    cached: CacheRepo,
}

impl<'a> Download<'a> {
    fn new(repository: &'a str, revision: &'a str) -> Result<Self, FileError> {
        let api = ApiBuilder::from_env()
            .with_progress(false)
            .build()
            .map_err(|why| refuse(repository, revision, "the hub's client", &why))?;
        Ok(Self {
            repository,
            revision,
            files: api.repo(repo(repository, revision)),
            cached: Cache::from_env().repo(repo(repository, revision)),
        })
    }

    fn fetch(&self) -> Result<PathBuf, FileError> {
        let config = self.get("config.json")?;
        let folder = config.parent().map(Path::to_owned).unwrap_or_default();
        self.get("tokenizer.json")?;
        for name in OPTIONAL {
            self.get_if_there(name)?;
        }
        match self.get_if_there(INDEX)? {
            None => {
                self.get(SINGLE)?;
            }
            Some(index) => {
                for shard in shards(&index)? {
                    self.get(&shard)?;
                }
            }
        }
        Ok(folder)
    }

    fn get(&self, file: &str) -> Result<PathBuf, FileError> {
        self.files
            .get(file)
            .map_err(|why| refuse(self.repository, self.revision, file, &why))
    }

    /// A file that not every model has. Without a network what the cache holds is all there is.
    fn get_if_there(&self, file: &str) -> Result<Option<PathBuf>, FileError> {
        if let Some(path) = self.cached.get(file) {
            return Ok(Some(path));
        }
        let Ok(listing) = self.files.info() else {
            return Ok(None);
        };
        if listing.siblings.iter().any(|sibling| sibling.rfilename == file) {
            self.get(file).map(Some)
        } else {
            Ok(None)
        }
    }
}

fn repo(repository: &str, revision: &str) -> Repo {
    Repo::with_revision(repository.to_owned(), RepoType::Model, revision.to_owned())
}

fn refuse(repository: &str, revision: &str, file: &str, why: &dyn Error) -> FileError {
    FileError::Hub {
        repository: repository.to_owned(),
        revision: revision.to_owned(),
        file: file.to_owned(),
        message: why.to_string(),
    }
}
