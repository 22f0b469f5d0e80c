//! Documents about the data sets and studies of a project, and how they are asked for.

use serde::{Deserialize, Serialize};

use crate::client::requests;
use crate::paths::{of_project, part};
use crate::{Client, ClientError, DataSetName, Method, Moment, Transport};

/// What a data set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum DataKind {
    /// A table under a header line, its columns parted by commas, semicolons or tabs.
    Csv,
    /// A JSON object a line.
    Jsonl,
    /// The data of the tau2 benchmark in a ZIP archive; its rows are their tasks.
    Tau2,
    /// A study, as TOML; its rows are what it searches for, and with whom.
    Study,
}

/// A data set as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DataSetShown {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Its name, that of a file.
    pub name: String,
    /// What it is.
    pub kind: DataKind,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    /// Size in bytes.
    pub size: u64,
    /// Number of rows.
    pub rows: u64,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Name of the member who added it, with that of the token if a program did it.
    pub added_by: String,
    /// When it was added.
    pub added_at: Moment,
    /// How many runs of the project name this very file.
    pub runs: u64,
}

/// A data set with its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DataSetDetail {
    /// The data set.
    #[serde(flatten)]
    pub data_set: DataSetShown,
    /// Its first rows, at most 20, each with a text for each column; long texts are cut.
    pub first: Vec<Vec<String>>,
}

/// A file of a project that is to be a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewDataSet {
    /// Its name, whose ending says what it is: `.csv`, `.tsv`, `.jsonl`, `.toml` for a study, or `.zip` for the
    /// tau2 benchmark.
    pub name: DataSetName,
    /// SHA-256 of the file, which the project has already, see [`Client::put_file`].
    pub sha256: String,
}

requests! {
    /// The data sets of a project, by name.
    data_sets(project: &str): Get of_project(project, "/data") => Vec<DataSetShown>;
    /// A data set with its first rows.
    data_set(project: &str, id: &str): Get of_data_set(project, id) => DataSetDetail;
    /// Deletes a data set. The file stays for as long as runs name it.
    delete_data_set(project: &str, id: &str): Delete of_data_set(project, id) => ();
}

impl<T: Transport> Client<T> {
    /// Gives a project a file, unless it has it, and keeps it there as a data set. `sha256` is the file's, in hexadecimal
    /// digits.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn add_data_set(
        &self,
        project: &str,
        name: DataSetName,
        sha256: String,
        bytes: Vec<u8>,
    ) -> Result<DataSetShown, ClientError> {
        if !self.has_file(project, &sha256).await? {
            self.put_file(project, &sha256, bytes).await?;
        }
        let new = NewDataSet { name, sha256 };
        self.ask(Method::Post, &of_project(project, "/data"), Some(&new))
            .await
    }
}

fn of_data_set(project: &str, id: &str) -> String {
    of_project(project, &format!("/data/{}", part(id)))
}

/// The path under which the file of a data set is read.
pub fn data_set_path(project: &str, id: &str) -> String {
    of_data_set(project, id) + "/content"
}
