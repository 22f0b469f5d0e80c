//! A model's folder: on this machine, or downloaded from the hub.

use std::fmt;
use std::path::{Path, PathBuf};

use hf_hub::api::sync::{Api, ApiBuilder, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};

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
        /// Commit, tag or branch; a commit makes runs repeatable and needs no network once the model
        /// has been downloaded.
        revision: String,
    },
}

impl ModelSource {
    /// The model's folder, after downloading what the hub's cache does not hold yet, as
    /// [`Hub::from_env`] says.
    ///
    /// # Errors
    ///
    /// As [`fetch_from`](Self::fetch_from).
    pub fn fetch(&self) -> Result<PathBuf, FileError> {
        match self {
            Self::Folder(folder) => Ok(folder.clone()),
            Self::Hub { .. } => self.fetch_from(&Hub::from_env()?),
        }
    }

    /// The model's folder, after downloading from this hub what its cache does not hold yet. All files
    /// are of one commit, which the revision is resolved to once.
    ///
    /// # Errors
    ///
    /// [`FileError::Hub`] names the file that could not be downloaded.
    pub fn fetch_from(&self, hub: &Hub) -> Result<PathBuf, FileError> {
        match self {
            Self::Folder(folder) => Ok(folder.clone()),
            Self::Hub { repository, revision } => Request {
                hub,
                repository,
                revision,
            }
            .fetch(),
        }
    }
}

/// A hub of models, and where its files are kept.
#[derive(Debug, Clone)]
pub struct Hub {
    endpoint: String,
    cache: PathBuf,
    token: Option<Token>,
}

/// Proves who asks. It is in no text.
#[derive(Clone)]
struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(hidden)")
    }
}

/// Where the public hub is.
const ENDPOINT: &str = "https://huggingface.co";

impl Hub {
    /// A hub at an address such as `https://huggingface.co`, whose files are kept below `cache`.
    pub fn new(endpoint: &str, cache: PathBuf) -> Self {
        Self {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            cache,
            token: None,
        }
    }

    /// The same hub, asked with an access token.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        let token = token.trim();
        self.token = (!token.is_empty()).then(|| Token(token.to_owned()));
        self
    }

    /// The hub that the variables of Hugging Face's own tools name: its address is `HF_ENDPOINT`, the
    /// cache is `hub` in `HF_HOME`, the token is `HF_TOKEN`, else the content of `token` in `HF_HOME`.
    /// Without `HF_HOME` it is `.cache/huggingface` in the home folder.
    ///
    /// # Errors
    ///
    /// There is no home folder, or the token's file does not read.
    pub fn from_env() -> Result<Self, FileError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, FileError> {
        let stated = |name| variable(name).filter(|value| !value.trim().is_empty());
        let home = match stated("HF_HOME") {
            Some(home) => PathBuf::from(home),
            None => std::env::home_dir()
                .ok_or(FileError::NoHome)?
                .join(".cache/huggingface"),
        };
        let token = match stated("HF_TOKEN") {
            Some(token) => token,
            None => token_in(&home.join("token"))?,
        };
        let endpoint = stated("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned());
        Ok(Self::new(endpoint.trim(), home.join("hub")).with_token(&token))
    }
}

/// The content of the token's file, empty without one.
fn token_in(file: &Path) -> Result<String, FileError> {
    if file.exists() {
        std::fs::read_to_string(file).map_err(FileError::io(file))
    } else {
        Ok(String::new())
    }
}

/// Files that not every model has.
const OPTIONAL: [&str; 3] = [
    "generation_config.json",
    "tokenizer_config.json",
    "chat_template.jinja",
];
const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
/// What is asked for before any file.
const LISTING: &str = "the list of its files";

/// One model of a hub.
struct Request<'a> {
    hub: &'a Hub,
    repository: &'a str,
    revision: &'a str,
}

impl Request<'_> {
    fn fetch(&self) -> Result<PathBuf, FileError> {
        self.check_names()?;
        let api = self.api()?;
        let commit = self.commit(&api)?;
        let folder = Cache::new(self.hub.cache.clone())
            .repo(self.at(&commit))
            .pointer_path(&commit);
        if is_complete(&folder)? {
            return Ok(folder);
        }
        let files = api.repo(self.at(&commit));
        let listing = files.info().map_err(|why| self.refuse(LISTING, &why))?;
        let is_there = |file: &str| listing.siblings.iter().any(|sibling| sibling.rfilename == file);
        let get = |file: &str| {
            if is_there(file) {
                self.get(&files, file, &folder)
            } else {
                Err(self.refuse(file, &"the repository has no such file"))
            }
        };
        if is_there(INDEX) {
            for shard in shards(&get(INDEX)?)? {
                get(&shard)?;
            }
        } else {
            get(SINGLE)?;
        }
        for file in OPTIONAL.into_iter().filter(|file| is_there(file)) {
            get(file)?;
        }
        get(TOKENIZER)?;
        // Last, since a folder that has it is taken for complete.
        get(CONFIG)?;
        Ok(folder)
    }

    /// Refuses names that could not be part of an address.
    fn check_names(&self) -> Result<(), FileError> {
        let is_name = |name: &str| {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            !name.is_empty() && name.chars().all(is_plain) && !name.starts_with('.')
        };
        let parts: Vec<_> = self.repository.split('/').collect();
        if parts.len() > 2 || !parts.iter().all(|part| is_name(part)) {
            return Err(self.refuse(LISTING, &"a repository is called owner/name"));
        }
        if !self.revision.split('/').all(is_name) {
            return Err(self.refuse(LISTING, &"a revision is a commit, a tag or a branch"));
        }
        Ok(())
    }

    fn api(&self) -> Result<Api, FileError> {
        ApiBuilder::from_cache(Cache::new(self.hub.cache.clone()))
            .with_endpoint(self.hub.endpoint.clone())
            .with_token(self.hub.token.clone().map(|Token(token)| token))
            .with_progress(false)
            .build()
            .map_err(|why| self.refuse(LISTING, &why))
    }

    /// The commit that the revision stands for now.
    fn commit(&self, api: &Api) -> Result<String, FileError> {
        if is_commit(self.revision) {
            return Ok(self.revision.to_owned());
        }
        let found = api
            .repo(self.at(self.revision))
            .info()
            .map_err(|why| self.refuse(LISTING, &why))?;
        if is_commit(&found.sha) {
            return Ok(found.sha);
        }
        Err(self.refuse(LISTING, &"the hub names no commit for this revision"))
    }

    fn at(&self, revision: &str) -> Repo {
        Repo::with_revision(self.repository.to_owned(), RepoType::Model, revision.to_owned())
    }

    /// A file in the folder of its commit, downloaded unless it is there.
    fn get(&self, files: &ApiRepo, file: &str, folder: &Path) -> Result<PathBuf, FileError> {
        let place = folder.join(file);
        if place.exists() {
            return Ok(place);
        }
        let found = files.download(file).map_err(|why| self.refuse(file, &why))?;
        if found == place {
            return Ok(place);
        }
        Err(self.refuse(file, &"the hub sent it from another commit"))
    }

    fn refuse(&self, file: &str, why: &dyn fmt::Display) -> FileError {
        let message = why.to_string();
        let message = match &self.hub.token {
            Some(Token(token)) => message.replace(token, "[token]"),
            None => message,
        };
        FileError::Hub {
            repository: self.repository.to_owned(),
            revision: self.revision.to_owned(),
            file: file.to_owned(),
            message,
        }
    }
}

/// Whether a revision is a commit's full hash.
fn is_commit(revision: &str) -> bool {
    revision.len() == 40
        && revision
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a commit's folder holds all that a model needs.
fn is_complete(folder: &Path) -> Result<bool, FileError> {
    let is_there = |file: &str| folder.join(file).exists();
    if !is_there(CONFIG) || !is_there(TOKENIZER) {
        return Ok(false);
    }
    if !is_there(INDEX) {
        return Ok(is_there(SINGLE));
    }
    Ok(shards(&folder.join(INDEX))?.iter().all(|shard| is_there(shard)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hub named by these variables.
    fn hub(variables: &[(&str, &str)]) -> Hub {
        let value = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Hub::from_variables(value).expect("there is a home")
    }

    fn token(hub: &Hub) -> Option<&str> {
        hub.token.as_ref().map(|Token(token)| token.as_str())
    }

    #[test]
    fn the_variables_of_hugging_faces_tools_are_read() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let path = home.path().to_str().expect("UTF-8");
        let bare = hub(&[("HF_HOME", path)]);
        assert_eq!(bare.endpoint, "https://huggingface.co");
        assert_eq!(bare.cache, home.path().join("hub"));
        assert_eq!(token(&bare), None);

        std::fs::write(home.path().join("token"), "hf_file\n").expect("written");
        assert_eq!(token(&hub(&[("HF_HOME", path)])), Some("hf_file"));
        let variables = [
            ("HF_HOME", path),
            ("HF_TOKEN", " hf_variable "),
            ("HF_ENDPOINT", "http://localhost:1/"),
        ];
        let full = hub(&variables);
        assert_eq!(token(&full), Some("hf_variable"));
        assert_eq!(full.endpoint, "http://localhost:1");
        assert_eq!(
            token(&hub(&[("HF_HOME", path), ("HF_TOKEN", "")])),
            Some("hf_file")
        );
    }

    #[test]
    fn the_token_is_in_no_text() {
        let hub = Hub::new("http://localhost:1", PathBuf::new()).with_token("hf_secret");
        assert!(!format!("{hub:?}").contains("hf_secret"));
        let request = Request {
            hub: &hub,
            repository: "owner/name",
            revision: "main",
        };
        let message = request
            .refuse("config.json", &"Bearer hf_secret is refused")
            .to_string();
        assert!(!message.contains("hf_secret"), "{message}");
        assert!(message.contains("Bearer [token] is refused"), "{message}");
    }
}
