//! What a project has beside the objects of its runs: one Durable Object a project, with the list of them and their data files.

use std::collections::BTreeMap;

use capo_api::{FileShown, RunShown};
use capo_core::ids::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use worker::js_sys::Uint8Array;
// The macro names it.
use worker::wasm_bindgen;
use worker::{DurableObject, Env, Method, Request, Response, SqlStorage, State, Stub, durable_object};

use crate::object;
use crate::refusal::Refusal;
use crate::runtime::{moment, now, number};

/// Bytes of a data file at most: it is held in memory, of which a worker has 128 MB.
pub(crate) const MOST_FILE: usize = 16 << 20;

/// Bytes of a value in storage, which takes 2 MB.
const PIECE: usize = 1 << 20;

/// For so many milliseconds a file is kept that no run names.
const UNNAMED: u64 = 3_600_000;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, created_at TEXT NOT NULL, touched_at TEXT NOT NULL, shown TEXT NOT NULL, files TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS files (
    sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL, created_at INTEGER NOT NULL, asked_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS pieces (
    sha256 TEXT NOT NULL, piece INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (sha256, piece)
);";

/// SHA-256 of data files by the paths under which a study names them.
pub(crate) type Files = BTreeMap<String, String>;

/// What the object is told.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// To list a run, with the files that it holds.
    Add(Box<RunShown>, Files),
    /// To list a run as it is by now.
    Note(Box<RunShown>),
    /// To list it no more.
    Forget(String),
    /// To list so many runs that come after one that was added then and has this id, those added last first.
    List(Option<(String, String)>, u64),
    /// To say what is known of a file.
    File(String),
    /// To hand a file over.
    Read(String),
}

/// The object, as others ask it.
#[derive(Debug)]
pub(crate) struct Project(Stub);

impl Project {
    pub(crate) fn of(env: &Env, name: &str) -> worker::Result<Self> {
        Ok(Self(env.durable_object("PROJECT_OBJECTS")?.get_by_name(name)?))
    }

    pub(crate) async fn add(&self, run: RunShown, files: Files) -> worker::Result<()> {
        self.ask(&Order::Add(Box::new(run), files)).await.map(|_| ())
    }

    pub(crate) async fn note(&self, run: RunShown) -> worker::Result<()> {
        self.ask(&Order::Note(Box::new(run))).await.map(|_| ())
    }

    pub(crate) async fn forget(&self, run: &str) -> worker::Result<()> {
        self.ask(&Order::Forget(run.to_owned())).await.map(|_| ())
    }

    pub(crate) async fn list(
        &self,
        before: Option<(String, String)>,
        most: u64,
    ) -> worker::Result<Vec<RunShown>> {
        self.ask(&Order::List(before, most)).await?.json().await
    }

    /// What is known of a file, or the refusal that there is none.
    pub(crate) async fn file(&self, sha256: &str) -> worker::Result<Response> {
        self.ask(&Order::File(sha256.to_owned())).await
    }

    /// What a file holds, for a browser to save, or the refusal that there is none.
    pub(crate) async fn content(&self, sha256: &str) -> worker::Result<Response> {
        self.ask(&Order::Read(sha256.to_owned())).await
    }

    /// What a file holds; `None` where there is none.
    pub(crate) async fn read(&self, sha256: &str) -> worker::Result<Option<Vec<u8>>> {
        let mut answer = self.content(sha256).await?;
        match answer.status_code() {
            200 => Ok(Some(answer.bytes().await?)),
            _ => Ok(None),
        }
    }

    /// Keeps a file under its SHA-256.
    pub(crate) async fn put(&self, sha256: &str, content: &[u8]) -> worker::Result<Response> {
        let content = Uint8Array::from(content);
        object::send(&self.0, Method::Put, sha256, content.into()).await
    }

    async fn ask(&self, order: &Order) -> worker::Result<Response> {
        object::ask(&self.0, order).await
    }
}

/// The object itself.
#[durable_object(fetch)]
pub struct ProjectObject {
    state: State,
}

impl DurableObject for ProjectObject {
    fn new(state: State, _: Env) -> Self {
        Self { state }
    }

    async fn fetch(&self, mut request: Request) -> worker::Result<Response> {
        let tables = Tables::open(self.state.storage().sql())?;
        if request.method() == Method::Put {
            let named = request.path().trim_start_matches('/').to_owned();
            let content = request.bytes().await?;
            return tables
                .put(&named, &content)?
                .map_or_else(Refusal::into_response, |file| Response::from_json(&file));
        }
        match object::order(&mut request).await? {
            Order::Add(run, files) => tables.add(&run, &files)?,
            Order::Note(run) => tables.note(&run)?,
            Order::Forget(run) => tables.forget(&run)?,
            Order::List(before, most) => return Response::from_json(&tables.list(before, most)?),
            Order::File(sha256) => {
                return match tables.file(&sha256)? {
                    Some(file) => Response::from_json(&file),
                    None => Refusal::no_such("data file").into_response(),
                };
            }
            Order::Read(sha256) => {
                let Some(content) = tables.read(&sha256)? else {
                    return Refusal::no_such("data file").into_response();
                };
                // Whatever it holds, no browser shows it.
                let save = format!("attachment; filename={sha256}");
                let response = Response::builder().with_header("content-disposition", &save)?;
                return response.from_bytes(content);
            }
        }
        Response::empty()
    }
}

/// The object's tables.
struct Tables(SqlStorage);

#[derive(Deserialize)]
struct RunRow {
    shown: String,
}

#[derive(Deserialize)]
struct File {
    size: u64,
    created_at: u64,
}

impl Tables {
    fn open(sql: SqlStorage) -> worker::Result<Self> {
        sql.exec(TABLES, None)?;
        Ok(Self(sql))
    }

    fn add(&self, run: &RunShown, files: &Files) -> worker::Result<()> {
        let row = vec![
            run.id.as_str().into(),
            run.created_at.as_str().into(),
            run.touched_at.as_str().into(),
            serde_json::to_string(run)?.into(),
            serde_json::to_string(files)?.into(),
        ];
        self.0
            .exec("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?)", row)?;
        Ok(())
    }

    /// What was said earlier may come later.
    fn note(&self, run: &RunShown) -> worker::Result<()> {
        let touched = run.touched_at.as_str();
        let row = vec![
            serde_json::to_string(run)?.into(),
            touched.into(),
            run.id.as_str().into(),
            touched.into(),
        ];
        let update = "UPDATE runs SET shown = ?, touched_at = ? WHERE id = ? AND touched_at <= ?";
        self.0.exec(update, row)?;
        Ok(())
    }

    fn forget(&self, run: &str) -> worker::Result<()> {
        self.0.exec("DELETE FROM runs WHERE id = ?", vec![run.into()])?;
        self.tidy()
    }

    fn list(&self, before: Option<(String, String)>, most: u64) -> worker::Result<Vec<RunShown>> {
        // Text that comes after every moment.
        let (at, id) = before.unwrap_or_else(|| ("a".to_owned(), String::new()));
        let select = "SELECT shown FROM runs WHERE (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?";
        let rows: Vec<RunRow> = self
            .0
            .exec(select, vec![at.into(), id.into(), number(most)])?
            .to_array()?;
        let shown = rows.iter().map(|row| Ok(serde_json::from_str(&row.shown)?));
        shown.collect()
    }

    fn file(&self, sha256: &str) -> worker::Result<Option<FileShown>> {
        let update = "UPDATE files SET asked_at = ? WHERE sha256 = ? RETURNING size, created_at";
        let found: Vec<File> = self
            .0
            .exec(update, vec![number(now()), sha256.into()])?
            .to_array()?;
        Ok(found.first().map(|file| FileShown {
            sha256: sha256.to_owned(),
            size: file.size,
            created_at: moment(file.created_at),
        }))
    }

    fn read(&self, sha256: &str) -> worker::Result<Option<Vec<u8>>> {
        if self.file(sha256)?.is_none() {
            return Ok(None);
        }
        let select = "SELECT body FROM pieces WHERE sha256 = ? ORDER BY piece";
        let mut content = Vec::new();
        for row in self.0.exec(select, vec![sha256.into()])?.raw() {
            for value in row? {
                if let worker::SqlStorageValue::Blob(piece) = value {
                    content.extend(piece);
                }
            }
        }
        Ok(Some(content))
    }

    fn put(&self, named: &str, content: &[u8]) -> worker::Result<Result<FileShown, Refusal>> {
        let sha256 = hex(&Sha256::digest(content));
        if sha256 != named {
            return Ok(Err(Refusal::invalid(format!(
                "The SHA-256 of what came is {sha256}, and not what the address says; it was changed on its way, or is \
                 written in capitals."
            ))));
        }
        self.tidy()?;
        for (piece, body) in content.chunks(PIECE).enumerate() {
            let row = vec![named.into(), number(piece as u64), body.to_vec().into()];
            self.0
                .exec("INSERT OR REPLACE INTO pieces VALUES (?, ?, ?)", row)?;
        }
        let row = vec![
            named.into(),
            number(content.len() as u64),
            number(now()),
            number(now()),
        ];
        self.0
            .exec("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row)?;
        Ok(self.file(named)?.ok_or_else(Refusal::missing))
    }

    /// Deletes files that no run names, and nobody has asked for lately.
    fn tidy(&self) -> worker::Result<()> {
        let unnamed = "DELETE FROM files WHERE asked_at < ? AND sha256 NOT IN \
                       (SELECT named.value FROM runs, json_each(runs.files) AS named)";
        self.0
            .exec(unnamed, vec![number(now().saturating_sub(UNNAMED))])?;
        self.0.exec(
            "DELETE FROM pieces WHERE sha256 NOT IN (SELECT sha256 FROM files)",
            None,
        )?;
        Ok(())
    }
}
