//! The team server as a process: its folder, its database, its page and its socket.

mod backup;
mod connections;
mod folder;
mod master;
mod metrics;
mod models;
mod otlp;
mod tls;
#[cfg(feature = "train")]
mod trainer;
mod trainings;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capo_api::OIDC_RETURN;
use capo_team::seal::MasterKey;
use capo_team::store::{Actor, Member};
use capo_team::trainings::Policies;
use capo_team::{
    Files, FilesError, OidcSettings, Page, PageError, Server, SetUp, Settings, Store, StoreError,
    WorkerSettings, password, router, train, work,
};
use tokio::net::TcpListener;

pub(crate) use self::backup::{BackupError, Key, restore_backup, write_backup};
use self::connections::CONNECTIONS;
use self::folder::{Folder, FolderError};
use self::master::{MasterError, MasterFile, MasterPlace};
pub(crate) use self::metrics::Measured;
use self::metrics::MetricsError;
pub(crate) use self::models::NamedRewriter;
pub(crate) use self::otlp::Traces;
pub(crate) use self::tls::TlsFiles;
use self::tls::{Certificate, TlsError};
pub(crate) use self::trainings::{Training, TrainingError};
use crate::interrupt::Interrupts;
use crate::simulate::SimulateError;
use crate::stderr::warn;

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// How long requests that are under way may take when the server is stopped.
const GRACE: Duration = Duration::from_secs(10);

/// How a server is started.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) address: SocketAddr,
    /// Its database; a file in its folder without.
    pub(crate) database: Option<String>,
    /// Its folder; the platform's without.
    pub(crate) folder: Option<PathBuf>,
    /// Scheme, host and port under which people reach it, where that is another.
    pub(crate) public_url: Option<String>,
    /// Whether a reverse proxy says where requests come from.
    pub(crate) is_behind_proxy: bool,
    /// Where data files lie; a folder in its folder without.
    pub(crate) files: Option<String>,
    /// The file with the master key; without it the variable holds it, or one in its folder.
    pub(crate) master: Option<PathBuf>,
    /// The page that it serves.
    pub(crate) page: Served,
    /// How it works on runs; not at all without.
    pub(crate) worker: Option<WorkerSettings>,
    /// How it works on trainings.
    pub(crate) training: Training,
    /// Requests a second of each caller; as many as they like without.
    pub(crate) rate: Option<NonZeroU32>,
    /// Whether and for whom it counts what it does.
    pub(crate) measured: Measured,
    /// The certificate by which it encrypts; in the open without.
    pub(crate) tls: Option<TlsFiles>,
    /// Rewriters that it serves beside the simulated models.
    pub(crate) rewriters: Vec<NamedRewriter>,
    /// Where people can sign in, too.
    pub(crate) oidc: Option<OidcSettings>,
}

/// The page that a server serves.
#[derive(Debug, Clone)]
pub(crate) enum Served {
    /// The one inside this program.
    Embedded,
    /// One that was built into a folder.
    Folder(PathBuf),
    /// None, only the API.
    None,
}

/// Why a server cannot start, or had to end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the page: {0}")]
    Page(#[from] PageError),
    #[error("cannot listen on {address}: {source}; choose another address with --addr HOST:PORT")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Master(#[from] MasterError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// A model that it serves.
    #[error(transparent)]
    Model(#[from] SimulateError),
    /// Two models that it serves have one name.
    #[error("--rewriter: there are two models named {0:?}; choose another name")]
    TwiceNamed(String),
    /// The place of data files.
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// There is none to replace.
    #[error("there is no master key in {0}; a server makes one at its first start")]
    NoMaster(MasterPlace),
    /// What asks providers cannot be made.
    #[error("providers cannot be asked: {0}")]
    Client(String),
    /// A worker on another machine has no file of this one.
    #[error(
        "a worker joins a server through its PostgreSQL database; name it with --database postgres://USER:PASSWORD@HOST/NAME"
    )]
    OneMachine,
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// The first account is no administrator's.
    #[error("the first account administers the server: make it with --admin")]
    FirstIsAdmin,
    /// A password that is not taken.
    #[error("{0}")]
    Password(#[from] password::Weak),
    #[error("{0}")]
    System(#[from] io::Error),
}

/// The page inside this program, if it was built with one.
fn embedded() -> Result<Option<Page>, ServeError> {
    if PAGE.is_empty() {
        warn(
            "this `capo` was built without the page and serves only the API; name the folder of a built page with --page DIR, or \
             build both by `cargo xtask build`",
        );
        return Ok(None);
    }
    let files = PAGE
        .iter()
        .map(|(path, bytes)| ((*path).to_owned(), axum::body::Bytes::from_static(bytes)));
    Ok(Some(Page::of(files.collect::<BTreeMap<_, _>>())?))
}

/// A file of the page inside this program, if it was built with one that has it.
pub(crate) fn embedded_file(path: &str) -> Option<&'static [u8]> {
    PAGE.iter()
        .find(|(known, _)| *known == path)
        .map(|(_, bytes)| *bytes)
}

/// Milliseconds since 1970.
fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

async fn open(database: Option<&str>, folder: &Folder) -> Result<Store, StoreError> {
    match database {
        Some(url) => Store::open(url).await,
        None => Store::in_folder(folder.path()).await,
    }
}

/// The place of data files, which answers: the one that is named, else the folder `files` in the data folder.
async fn files(place: Option<&str>, folder: &Path) -> Result<Files, ServeError> {
    let files = match place {
        Some(place) if Files::is_bucket(place) => Files::in_bucket(place)?,
        place => {
            let path = place.map_or_else(|| folder.join("files"), PathBuf::from);
            folder::make(&path).map_err(|error| FilesError::Place {
                place: path.display().to_string(),
                problem: error.to_string(),
            })?;
            Files::in_folder(&path)?
        }
    };
    files.answers().await?;
    Ok(files)
}

/// Serves until the process is interrupted: once to let requests under way end, twice to leave at once. The first line on
/// standard output is `listening on http://HOST:PORT`, or `https://` with TLS; while nobody has an account, the second one
/// says how the first administrator is made: with a page by a link.
///
/// # Errors
/// When the server cannot start, or its socket fails.
pub(crate) async fn serve(options: Options) -> Result<(), ServeError> {
    let page = match &options.page {
        Served::Embedded => embedded()?,
        Served::Folder(folder) => Some(Page::read(folder)?),
        Served::None => None,
    };
    let mut certificate = options.tls.map(Certificate::open).transpose()?;
    let metrics = options.measured.start()?;
    let mut folder = Folder::open(options.folder.as_deref())?;
    let trainings = options.training.at(&folder.path().join("trainings"))?;
    let store = open(options.database.as_deref(), &folder).await?;
    store.read_clock().await?;
    let now = store.clock();
    // Of a file this process is the only one: it holds the folder.
    if options.database.is_none() {
        let forgotten = store.take_over(now(), true).await?;
        if forgotten > 0 {
            warn(&format!(
                "{forgotten} requests to providers were under way when a server ended without a word; they count at their full amounts"
            ));
        }
    }
    store.beat(now()).await?;
    let master = match MasterPlace::new(options.master.as_deref(), folder.path()) {
        Ok(place) => master_key(&place, &store).await?,
        Err(error) => {
            warn(&format!("providers' keys cannot be used or added: {error}"));
            None
        }
    };
    let files = files(options.files.as_deref(), folder.path()).await?;
    let policies = trainings
        .clone()
        .map(|trainings| Policies::new(trainings, store.clone(), Some(files.clone())));
    let models = models::routes(options.rewriters, policies).await?;
    let listener = TcpListener::bind(options.address).await;
    let refused = |source| ServeError::Listen {
        address: options.address,
        source,
    };
    let listener = listener.map_err(refused)?;
    let address = listener.local_addr()?;
    folder.sign(&address.to_string())?;
    let scheme = if certificate.is_some() { "https" } else { "http" };
    let own = format!("{scheme}://{address}");
    let url = options.public_url.clone().unwrap_or_else(|| own.clone());
    let is_set_up = store.is_set_up().await?;
    let set_up = (!is_set_up).then(SetUp::new);
    // A terminal that goes away ends no server; what a certificate makes of it is its own affair.
    #[cfg(unix)]
    let _hangups = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?;
    let interrupts = Interrupts::listen(|| {
        warn("interrupted: ending the requests under way; once more to leave at once");
    })?;
    {
        // Who has closed it reads no more, and the server goes on.
        let mut stdout = io::stdout().lock();
        let _ = writeln!(stdout, "listening on {own}");
        if let Some(set_up) = &set_up {
            let how = if page.is_some() {
                format!("at {}", set_up.link(&url))
            } else {
                format!(
                    "by `capo admin create-user NAME --admin`, or by POST {url}/api/set-up with name, password and the secret {}",
                    set_up.secret()
                )
            };
            let _ = writeln!(stdout, "make the first administrator {how}");
        }
        let _ = stdout.flush();
    }
    if let Some(oidc) = &options.oidc {
        tracing::info!(
            issuer = oidc.issuer,
            redirect_uri = format!("{url}{OIDC_RETURN}"),
            "people can sign in by OpenID Connect"
        );
    }
    let settings = Settings {
        set_up,
        public_url: options.public_url,
        master,
        files: Some(files),
        is_behind_proxy: options.is_behind_proxy,
        rate: options.rate,
        metrics: metrics.clone(),
        models: Some(models),
        is_encrypted: certificate.is_some(),
        oidc: options.oidc,
        trainings,
        ..Settings::default()
    };
    let server = Server::new(store.clone(), store.clock(), settings);
    let server = server.map_err(|error| ServeError::Client(error.to_string()))?;
    server.take_contents().await?;
    store.beat(now()).await?;
    let (asked, also_asked, insisted) = (interrupts.clone(), interrupts.clone(), interrupts.insisted());
    let ended = server.clone();
    let config = certificate.as_ref().map(Certificate::config);
    // Behind a proxy all come from one address.
    let share = if options.is_behind_proxy {
        CONNECTIONS
    } else {
        CONNECTIONS / 2
    };
    let serving = connections::answer(
        listener,
        config,
        router(server.clone(), page),
        share,
        async move {
            asked.asked().await;
            ended.end();
        },
    );
    let working = async {
        match options.worker {
            Some(settings) => work(server.clone(), settings, interrupts.asked()).await,
            None => Ok(()),
        }
    };
    let training = train(server.clone(), interrupts.asked());
    let ending = async {
        let ((), worked, trained) = tokio::join!(serving, working, training);
        worked.and(trained)?;
        server.finish().await;
        Ok::<_, io::Error>(())
    };
    let patience = async move {
        also_asked.asked().await;
        tokio::time::sleep(GRACE).await;
    };
    let reading = async {
        match &mut certificate {
            Some(certificate) => certificate.keep_reading().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = ending => ended?,
        () = patience => warn("some requests did not end in time; calls to providers count at their full amounts"),
        () = insisted => {}
        () = store.keep_alive() => {}
        () = server.keep_clearing() => {}
        () = metrics::sum_up(metrics.as_ref()) => {}
        () = reading => {}
    }
    store.close().await;
    Ok(())
}

/// Works on the runs of a server from another machine, or another process, until the process is interrupted.
///
/// # Errors
/// When the database, the place of data files or the master key cannot be read.
pub(crate) async fn join(
    database: &str,
    place: &str,
    master: Option<PathBuf>,
    settings: WorkerSettings,
    training: Training,
) -> Result<(), ServeError> {
    if !database.starts_with("postgres") {
        return Err(ServeError::OneMachine);
    }
    let store = Store::open(database).await?;
    store.read_clock().await?;
    let master = match MasterPlace::stated(master.as_deref())? {
        Some(place) => {
            let read = place.read()?.ok_or(ServeError::NoMaster(place))?;
            if !store.is_master(&read).await? {
                return Err(StoreError::OtherMasterKey.into());
            }
            Some(read)
        }
        None => None,
    };
    let interrupts = Interrupts::listen(|| {
        warn("interrupted: leaving the runs under way to other workers; once more to leave at once");
    })?;
    let settings_of_server = Settings {
        master,
        files: Some(files(Some(place), Path::new("")).await?),
        trainings: training.elsewhere()?,
        ..Settings::default()
    };
    let server = Server::new(store.clone(), store.clock(), settings_of_server);
    let server = server.map_err(|error| ServeError::Client(error.to_string()))?;
    server.take_contents().await?;
    let insisted = interrupts.insisted();
    store.beat(store.clock()()).await?;
    let working = work(server.clone(), settings, interrupts.asked());
    let training = train(server.clone(), interrupts.asked());
    tokio::select! {
        (worked, trained) = async { tokio::join!(working, training) } => worked.and(trained)?,
        () = insisted => return Ok(()),
        () = store.keep_alive() => {}
    }
    if tokio::time::timeout(GRACE, server.finish()).await.is_err() {
        warn("some calls to providers did not end in time; they count at their full amounts");
    }
    store.close().await;
    Ok(())
}

/// The key by which providers' keys are encrypted. It is made where neither the database nor the file has one, and never
/// again: what another one encrypted would be lost. Without the right one the server starts all the same.
async fn master_key(place: &MasterPlace, store: &Store) -> Result<Option<MasterKey>, ServeError> {
    let without = |why: &str| {
        warn(&format!(
            "{why}: providers' keys cannot be used or added. Put the right one into {place} and start again"
        ));
        Ok(None)
    };
    let file = match place {
        MasterPlace::Variable(key) if store.is_master(key).await? => return Ok(Some(key.clone())),
        MasterPlace::Variable(_) => return without("the master key is another one than the database's"),
        MasterPlace::File(file) => file,
    };
    let read = match file.read() {
        Ok(None) if !store.has_master().await? => Ok(Some(file.create()?)),
        read => read,
    };
    match read {
        Ok(Some(master)) if store.is_master(&master).await? => return Ok(Some(master)),
        Err(error) => return without(&error.to_string()),
        Ok(_) => {}
    }
    // A rotation that ended between the database and the file.
    match file.prepared() {
        Ok(Some(next)) if store.is_master(&next).await? => {
            file.replace()?;
            Ok(Some(next))
        }
        _ => without("the master key is missing, or another one than the database's"),
    }
}

/// Encrypts all providers' keys with a new master key and puts it in place of the present one. The server must not run.
///
/// # Errors
/// When it runs, or there is no master key, or it is another one, or the variable holds it.
pub(crate) async fn rotate_key(
    database: Option<String>,
    folder: Option<PathBuf>,
    master: Option<PathBuf>,
) -> Result<usize, ServeError> {
    let folder = Folder::open(folder.as_deref())?;
    let file = MasterFile::to_rotate(master.as_deref(), folder.path())?;
    let store = open(database.as_deref(), &folder).await?;
    let place = MasterPlace::File(file.clone());
    let present = master_key(&place, &store).await?;
    let present = present.ok_or(ServeError::NoMaster(place))?;
    let next = file.prepare()?;
    let count = store.reseal(&by_admin(), &present, &next).await?;
    file.replace()?;
    store.close().await;
    Ok(count)
}

/// Makes a member of a server, whether it runs or not.
///
/// # Errors
/// When the password is not taken, the name is, or the database fails.
pub(crate) async fn create_member(
    database: Option<String>,
    folder: Option<PathBuf>,
    name: &str,
    secret: &str,
    is_admin: bool,
) -> Result<Member, ServeError> {
    password::check(secret, name)?;
    let store = beside(database, folder).await?;
    if !is_admin && !store.is_set_up().await? {
        return Err(ServeError::FirstIsAdmin);
    }
    let by = by_admin();
    let member = store
        .add_member(&by, name, password::hash(secret).as_str(), is_admin)
        .await;
    store.close().await;
    Ok(member?)
}

/// Gives a member another password, and ends all their sessions.
///
/// # Errors
/// When the password is not taken, there is no such member, or the database fails.
pub(crate) async fn set_password(
    database: Option<String>,
    folder: Option<PathBuf>,
    name: &str,
    secret: &str,
) -> Result<(), ServeError> {
    password::check(secret, name)?;
    let store = beside(database, folder).await?;
    let member = store.member(name).await?;
    let hash = password::hash(secret);
    let changed = store.set_password(&by_admin(), &member, &hash, None).await;
    store.close().await;
    Ok(changed?)
}

/// The database, whether a server works on it or not: it takes a second writer.
async fn beside(database: Option<String>, folder: Option<PathBuf>) -> Result<Store, ServeError> {
    Ok(match database {
        Some(url) => Store::open(&url).await?,
        None => Store::in_folder(&folder::path(folder.as_deref())?).await?,
    })
}

/// Whoever uses this program on the server's machine.
fn by_admin() -> Actor {
    Actor {
        name: "capo admin".into(),
        address: String::new(),
        at: now(),
    }
}
