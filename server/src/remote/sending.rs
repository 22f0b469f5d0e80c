//! A study with all that a server needs to run it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use capo_api::{Client, ClientError, MOST_FILE, Moment, NewRun, RunShown, Title, Transport};
use capo_core::ids::hex;
use capo_workloads::files::{FileError, Files};
use sha2::{Digest as _, Sha256};

use crate::session::{SessionError, StudyFile};

/// A study and the data files that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyBundle {
    study: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl StudyBundle {
    /// Joins a study with its workloads, as a run on this machine would, and takes along what is read for it.
    ///
    /// # Errors
    /// When the study or its data are wrong, or a file is larger than servers take.
    pub fn of(file: &StudyFile) -> Result<Self, SessionError> {
        let files = Recorded {
            files: &file.folder,
            read: RefCell::default(),
        };
        file.setup_from(&files)?;
        Ok(Self {
            study: file.to_toml()?,
            files: files.read.into_inner(),
        })
    }

    /// Gives a project the files that it lacks, and starts a run in it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn start<T: Transport>(
        self,
        client: &Client<T>,
        project: &str,
        name: Title,
        start_at: Option<Moment>,
    ) -> Result<RunShown, ClientError> {
        let mut files = BTreeMap::new();
        for (path, bytes) in self.files {
            let sha256 = hex(&Sha256::digest(&bytes));
            if !client.has_file(project, &sha256).await? {
                client.put_file(project, &sha256, bytes).await?;
            }
            files.insert(path, sha256);
        }
        let study = self.study;
        let new = NewRun {
            name,
            study,
            files,
            start_at,
        };
        client.add_run(project, &new).await
    }
}

/// Files, and what was read of them.
struct Recorded<'a> {
    files: &'a dyn Files,
    read: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Files for Recorded<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        let bytes = self.files.read(path)?;
        if bytes.len() > MOST_FILE {
            return Err(FileError::Unreadable {
                path: path.to_owned(),
                reason: format!(
                    "it is larger than {} MiB, and a team server takes no larger file",
                    MOST_FILE >> 20
                ),
            });
        }
        self.read.borrow_mut().insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }

    fn directory(&self) -> Option<&Path> {
        self.files.directory()
    }
}
