//! Data sets and studies of a project: files that have a name, of which people see what is in them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use capo_api::{DataKind, DataSetDetail, DataSetShown, NewDataSet, Role};
use capo_core::llm::Role as ModelRole;
use capo_core::study::{Constraint, Format, Study};
use capo_models::check_tables;
use capo_workloads::check_written;
use capo_workloads::data::Look;
use capo_workloads::tau2::archive;
use serde_json::{Value, json};

use super::caller::Caller;
use super::extract::{Json, Path, moment};
use super::problem::Refusal;
use super::{MOST_BODY, Server, in_background};
use crate::store::{AddedDataSet, DataSet};

/// Rows that are shown.
const SHOWN: usize = 20;

/// Bytes of what is kept of them; of wide rows there are fewer.
const MOST_SHOWN: usize = 64 << 10;

/// Columns of a table, and bytes of the name of one.
const MOST_COLUMNS: usize = 1000;
const MOST_NAME: usize = 1000;

fn shown(set: DataSet) -> DataSetShown {
    DataSetShown {
        id: set.id,
        name: set.name,
        kind: set.kind,
        sha256: set.sha256,
        size: set.size,
        rows: set.rows,
        columns: set.columns,
        added_by: set.created_by,
        added_at: moment(set.created_at),
        runs: set.runs,
    }
}

/// The data sets of a project, by name.
#[utoipa::path(
    get, path = "/api/projects/{project}/data", operation_id = "data_sets", params(("project" = String, Path)),
    security(("session" = []), ("token" = [])), responses((status = 200, body = Vec<DataSetShown>))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
) -> Result<Json<Vec<DataSetShown>>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Viewer).await?;
    let sets = server.store().data_sets(&project).await?;
    Ok(Json(sets.into_iter().map(shown).collect()))
}

/// Keeps a file of the project as a data set, once it was read.
#[utoipa::path(
    post, path = "/api/projects/{project}/data", operation_id = "add_data_set", params(("project" = String, Path)),
    request_body = NewDataSet, security(("session" = []), ("token" = [])),
    responses((status = 201, body = DataSetShown))
)]
pub(super) async fn add(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
    Json(new): Json<NewDataSet>,
) -> Result<(StatusCode, Json<DataSetShown>), Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Editor).await?;
    // Before anything is loaded: files may be large.
    let reader = server.reader().await?;
    let file = server.store().file(&project, &new.sha256, server.now()).await?;
    let file = file.ok_or_else(|| {
        Refusal::invalid(format!(
            "The project does not have the file {}; upload it first.",
            new.sha256
        ))
    })?;
    let content = server.content(&file).await?;
    let added = in_background(reader, move || read(new, &content)).await?;
    let unread = |error: String| Refusal::invalid(format!("It does not read as a data set: {error}."));
    let added = added.map_err(unread)?;
    let set = server
        .store()
        .add_data_set(&caller.actor(), &project, &added)
        .await?;
    Ok((StatusCode::CREATED, Json(shown(set))))
}

/// Reads a data set as a workload does.
///
/// # Errors
/// What does not read, and where.
pub(super) fn read(new: NewDataSet, content: &[u8]) -> Result<AddedDataSet, String> {
    let (kind, look) = look(new.name.as_str(), content)?;
    Ok(AddedDataSet {
        name: new.name.as_str().to_owned(),
        kind,
        sha256: new.sha256,
        rows: look.count,
        columns: look.columns,
        first: look.first,
    })
}

fn look(name: &str, content: &[u8]) -> Result<(DataKind, Look), String> {
    let ending = name
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    let kind = match ending.as_deref() {
        Some("csv" | "tsv" | "tab") => DataKind::Csv,
        Some("jsonl" | "ndjson") => DataKind::Jsonl,
        Some("toml") => DataKind::Study,
        Some("zip") => DataKind::Tau2,
        _ => {
            return Err(format!(
                "{name} ends in none of .csv, .tsv, .jsonl, .toml for a study, and .zip for the data of the tau2 benchmark"
            ));
        }
    };
    let mut look = match kind {
        DataKind::Study => look_at_study(name, content)?,
        DataKind::Tau2 => archive::look(name, content, SHOWN)?,
        DataKind::Csv | DataKind::Jsonl => {
            Look::at_table(name, content, SHOWN).map_err(|error| error.to_string())?
        }
    };
    if look.columns.len() > MOST_COLUMNS {
        return Err(format!(
            "{name} has {} columns; a data set has at most {MOST_COLUMNS}",
            look.columns.len()
        ));
    }
    if look.columns.iter().any(|column| column.len() > MOST_NAME) {
        return Err(format!(
            "{name}: the name of a column is longer than {MOST_NAME} bytes"
        ));
    }
    let mut left = MOST_SHOWN;
    look.first.retain(|row| {
        let size = row.iter().map(String::len).sum();
        left = left.saturating_sub(size);
        left > 0
    });
    Ok((kind, look))
}

/// What a study searches for, and with whom.
fn look_at_study(name: &str, content: &[u8]) -> Result<Look, String> {
    // A larger one can be sent for no run, either.
    if content.len() > MOST_BODY {
        return Err(format!("{name} is larger than 1 MiB, which no study is"));
    }
    let text = std::str::from_utf8(content).map_err(|error| format!("{name}: {error}"))?;
    let study = Study::parse(text, Format::Toml).map_err(|error| format!("{name}: {error}"))?;
    // Everybody in the project reads it: a key that is written into it goes no further.
    check_tables(&study.models).map_err(|error| format!("{name}: {error}"))?;
    check_written(&study.workload).map_err(|error| format!("{name}: {error}"))?;
    let constraint = |constraint: &Constraint| {
        let most = match (constraint.threshold, constraint.relative_to_seed) {
            (Some(threshold), _) => format!("at most {threshold}"),
            (None, Some(share)) => format!("at most {share} times what the seed prompt costs"),
            (None, None) => String::new(),
        };
        [constraint.metric.clone(), most]
    };
    let model = |(role, table): (&ModelRole, &Value)| {
        let said = ["provider", "model"].map(|key| table[key].as_str().unwrap_or_default());
        [format!("model: {role}"), said.join(" ").trim().to_owned()]
    };
    let settings = [
        ("study", &study.study.name),
        ("method", &study.study.method),
        ("objective", &study.objective.metric),
    ];
    let settings = settings.map(|(setting, value)| [setting.to_owned(), value.clone()]);
    let rows = settings.into_iter();
    let rows = rows.chain(study.constraints.iter().map(constraint));
    let rows = rows.chain(study.models.iter().map(model));
    let rows = rows.map(|[setting, value]| json!({ "Setting": setting, "Value": value }).to_string());
    // As a table is looked at, of which long cells are cut.
    let table = rows.collect::<Vec<_>>().join("\n");
    Look::at_table("study.jsonl", table.as_bytes(), SHOWN).map_err(|error| error.to_string())
}

/// A data set with its first rows.
#[utoipa::path(
    get, path = "/api/projects/{project}/data/{id}", operation_id = "data_set",
    params(("project" = String, Path), ("id" = String, Path)), security(("session" = []), ("token" = [])),
    responses((status = 200, body = DataSetDetail))
)]
pub(super) async fn show(
    State(server): State<Server>,
    caller: Caller,
    Path((project, id)): Path<(String, String)>,
) -> Result<Json<DataSetDetail>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Viewer).await?;
    let set = server.store().data_set(&project, &id).await?;
    let first = server.store().first_rows(&project, &id).await?;
    Ok(Json(DataSetDetail {
        data_set: shown(set),
        first,
    }))
}

/// The file of a data set, as it was uploaded.
#[utoipa::path(
    get, path = "/api/projects/{project}/data/{id}/content", operation_id = "data_set_content",
    params(("project" = String, Path), ("id" = String, Path)), security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"))
)]
pub(super) async fn content(
    State(server): State<Server>,
    caller: Caller,
    Path((project, id)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Viewer).await?;
    let set = server.store().data_set(&project, &id).await?;
    let file = server.store().kept_file(&project.id, &set.sha256).await?;
    server.handed_out(file, &set.name).await
}

/// Deletes a data set. Its file stays for as long as runs name it.
#[utoipa::path(
    delete, path = "/api/projects/{project}/data/{id}", operation_id = "delete_data_set",
    params(("project" = String, Path), ("id" = String, Path)), security(("session" = []), ("token" = [])),
    responses((status = 204))
)]
pub(super) async fn delete(
    State(server): State<Server>,
    caller: Caller,
    Path((project, id)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Editor).await?;
    let set = server.store().data_set(&project, &id).await?;
    server
        .store()
        .delete_data_set(&caller.actor(), &project, &set)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
