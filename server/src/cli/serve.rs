//! `capo serve`: the team server; `capo admin`: what is done on its machine.

use std::io::{IsTerminal as _, Read as _};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use capo_api::MemberName;
use capo_team::{DEFAULT_RATE, Files, WorkerSettings};
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::failure::{Ending, Failure, print};
use super::layout::counted;
use super::oidc::OidcArgs;
use crate::serve::{
    self, BackupError, Key, Measured, NamedRewriter, Options, ServeError, Served, TlsFiles, Traces, Training,
};
use crate::stderr::log_as_json;

/// Serve the page and the team's accounts, projects and prompts to browsers and programs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServeArgs {
    /// Where to listen.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8787")]
    addr: SocketAddr,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    files: FilesPlace,
    /// Where people reach the server, when a reverse proxy stands before it, such as <https://capo.example.org>.
    #[arg(long, value_name = "URL", value_parser = origin)]
    public_url: Option<String>,
    /// A reverse proxy stands before the server and says in `X-Forwarded-For` where requests come from.
    #[arg(long, requires = "public_url")]
    behind_proxy: bool,
    #[command(flatten)]
    said: Said,
    /// File with the master key, by which providers' keys are encrypted; the variable `CAPO_MASTER_KEY` may hold what such a
    /// file does instead [default: `master.key` in the data folder].
    #[arg(long, value_name = "FILE")]
    master_key_file: Option<PathBuf>,
    /// Folder of a built page to serve in place of the one inside this program.
    #[arg(long, value_name = "DIR", conflicts_with = "api_only")]
    page: Option<PathBuf>,
    /// Serve no page, as a program that was built without one does unless a folder is named.
    #[arg(long)]
    api_only: bool,
    /// Requests to the API a second of each session, token and address, four times as many at once; 0 for no bound.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_RATE)]
    rate: u32,
    /// Do not start where nobody could read `/metrics`, as with `--public-url` and no token. What the server does is counted there
    /// for Prometheus; without a token only programs on its machine may read it.
    #[arg(long)]
    metrics: bool,
    /// File with a token that opens `/metrics` from anywhere, as `Authorization: Bearer TOKEN`.
    #[arg(long, value_name = "FILE")]
    metrics_token_file: Option<PathBuf>,
    /// Certificate in PEM, with those between it and the authority's: the server speaks TLS. Read anew on SIGHUP.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A trained rewriter to serve beside the simulated models, on the device that `CAPO_DEVICE` names; once for each.
    #[arg(long = "rewriter", value_name = "NAME=FOLDER")]
    rewriters: Vec<NamedRewriter>,
    #[command(flatten)]
    oidc: OidcArgs,
    #[command(flatten)]
    worker: Worker,
    #[command(flatten)]
    training: Training,
}

/// How a process works on runs.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Worker {
    /// Runs at a time in this process; with 0 it leaves all to workers.
    #[arg(long, value_name = "N", default_value_t = WorkerSettings::default().runs)]
    runs: usize,
    /// Runs of one member at a time, in all processes together.
    #[arg(long, value_name = "N", default_value_t = WorkerSettings::default().runs_of_member)]
    runs_per_member: u32,
    /// How long a run stays with a worker that is not heard of, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(2..=3600))]
    lease: u64,
}

impl Worker {
    fn settings(self) -> Option<WorkerSettings> {
        (self.runs > 0).then_some(WorkerSettings {
            runs: self.runs,
            runs_of_member: self.runs_per_member,
            lease: Duration::from_secs(self.lease),
        })
    }
}

/// Work on the runs of a team server from another machine, through its PostgreSQL database.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WorkerArgs {
    /// The server's database, `postgres://USER:PASSWORD@HOST/NAME`.
    #[arg(long, value_name = "URL", env = "CAPO_DATABASE", hide_env_values = true)]
    database: String,
    /// Where the server's data files lie: a folder that this machine shares with the server's, or a bucket as
    /// `s3://BUCKET/PREFIX`, which the variables `AWS_*` say how to reach.
    #[arg(long, value_name = "PLACE", env = "CAPO_FILES")]
    files: String,
    /// File with the server's master key; the variable `CAPO_MASTER_KEY` may hold what it does instead. Without either, runs
    /// that need a provider's key fail.
    #[arg(long, value_name = "FILE")]
    master_key_file: Option<PathBuf>,
    #[command(flatten)]
    said: Said,
    #[command(flatten)]
    worker: Worker,
    /// The folder `trainings` of the server, as this machine sees it; without it, this worker works on no trainings.
    #[arg(long, value_name = "DIR")]
    trainings_folder: Option<PathBuf>,
    #[command(flatten)]
    training: Training,
}

/// What a process says of what it does.
#[derive(Debug, Clone, clap::Args)]
struct Said {
    /// How the log is written to standard error.
    #[arg(long, value_enum, default_value_t)]
    log: Log,
    /// Collector to which spans of requests and of calls to models are sent by OTLP over HTTP, such as
    /// <http://127.0.0.1:4318>; they hold no contents and no keys.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
}

/// How a log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Log {
    /// Lines for people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

impl Said {
    /// Writes a log and sends traces while something is done.
    fn during(&self, done: impl FnOnce() -> Result<(), Failure>) -> Result<Ending, Failure> {
        let traces = self.start()?;
        let done = done();
        if let Some(traces) = traces {
            traces.end();
        }
        done?;
        Ok(Ending::Done)
    }

    /// Writes a log and sends traces from now on, until these are ended.
    fn start(&self) -> Result<Option<Traces>, Failure> {
        if self.log == Log::Json {
            log_as_json();
        }
        let collector = self.otlp.as_deref().filter(|collector| !collector.is_empty());
        let traces = collector.map(Traces::to).transpose().map_err(Failure::usage)?;
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(|| LossyStderr)
            .log_internal_errors(false)
            .with_ansi(std::io::stderr().is_terminal());
        let layer = match self.log {
            Log::Text => layer.boxed(),
            Log::Json => layer.json().boxed(),
        };
        // Spans are for collectors, and would stand before each line of the log.
        let is_logged = filter_fn(|about| about.is_event() && *about.level() <= Level::INFO);
        tracing_subscriber::registry()
            .with(layer.with_filter(is_logged.with_max_level_hint(LevelFilter::INFO)))
            .with(traces.as_ref().map(Traces::layer))
            .init();
        Ok(traces)
    }
}

/// Standard error, whether anybody reads it or not: a server does not end with the terminal that it was started from.
struct LossyStderr;

impl std::io::Write for LossyStderr {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = std::io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Where a server keeps what it knows.
#[derive(Debug, Clone, clap::Args)]
struct Place {
    /// Database, `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/NAME` [default: a SQLite file in the data folder].
    #[arg(long, value_name = "URL", env = "CAPO_DATABASE", hide_env_values = true)]
    database: Option<String>,
    /// Data folder [default: `capo` in the platform's, on Linux `$XDG_DATA_HOME` or `~/.local/share`].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Where a server keeps data files.
#[derive(Debug, Clone, clap::Args)]
struct FilesPlace {
    /// Where data files lie: a folder, or a bucket as `s3://BUCKET/PREFIX`, which the variables `AWS_*` say how to reach
    /// [default: `files` in the data folder].
    #[arg(long = "files", value_name = "PLACE", env = "CAPO_FILES")]
    place: Option<String>,
}

/// Look after a team server from its own machine.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AdminArgs {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum Task {
    /// Make an account; the password is read from standard input.
    CreateUser(CreateUserArgs),
    /// Give an account another password, read from standard input, and sign all its browsers out.
    SetPassword(SetPasswordArgs),
    /// Encrypt all providers' keys with a new master key; the server must not run.
    RotateKey(RotateKeyArgs),
    /// Copy the database and the data files into a new file, while the server runs or not.
    Backup(BackupArgs),
    /// Make a backup the database of a folder that has none; the server must not run.
    Restore(RestoreArgs),
}

#[derive(Debug, Clone, clap::Args)]
struct BackupArgs {
    /// The new file.
    file: PathBuf,
    /// Put the master key into the file, too. Who has such a file has all providers' keys; without this it has them
    /// encrypted alone, and the master key is to be kept elsewhere.
    #[arg(long)]
    with_master_key: bool,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    files: FilesPlace,
    /// File with the master key; the variable `CAPO_MASTER_KEY` may hold what it does instead [default: `master.key` in the
    /// data folder].
    #[arg(long, value_name = "FILE", requires = "with_master_key")]
    master_key_file: Option<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
struct RestoreArgs {
    /// What `capo admin backup` wrote.
    file: PathBuf,
    #[command(flatten)]
    place: Place,
    /// File for the master key, where the backup holds it and the variable `CAPO_MASTER_KEY` does not [default: `master.key`
    /// in the data folder].
    #[arg(long, value_name = "FILE")]
    master_key_file: Option<PathBuf>,
    /// Keep the sessions, tokens and invitations of the backup, those that were withdrawn since too.
    #[arg(long)]
    keep_tokens: bool,
}

#[derive(Debug, Clone, clap::Args)]
struct SetPasswordArgs {
    /// What they sign in with.
    name: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Clone, clap::Args)]
struct RotateKeyArgs {
    #[command(flatten)]
    place: Place,
    /// File with the master key, where the new one stands afterwards; the variable `CAPO_MASTER_KEY` must be unset
    /// [default: `master.key` in the data folder].
    #[arg(long, value_name = "FILE")]
    master_key_file: Option<PathBuf>,
}

#[derive(Debug, Clone, clap::Args)]
struct CreateUserArgs {
    /// What they sign in with: 2 to 64 letters, digits or . _ - @ +.
    name: String,
    /// They administer the server.
    #[arg(long)]
    admin: bool,
    #[command(flatten)]
    place: Place,
}

/// Scheme, host and port.
fn origin(url: &str) -> Result<String, String> {
    let url = url.trim_end_matches('/');
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    match rest {
        Some(host) if !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']) => Ok(url.to_owned()),
        _ => Err("it must be a scheme, a host and perhaps a port, such as https://capo.example.org".into()),
    }
}

/// Runs `capo serve`.
pub(crate) fn run(args: ServeArgs) -> Result<Ending, Failure> {
    let said = args.said.clone();
    said.during(|| serve(args))
}

fn serve(args: ServeArgs) -> Result<(), Failure> {
    let page = match (args.page, args.api_only) {
        (Some(folder), _) => Served::Folder(folder),
        (None, true) => Served::None,
        (None, false) => Served::Embedded,
    };
    let public = args.public_url.as_deref();
    let measured = match args.metrics_token_file {
        Some(path) => Measured::WithToken(path),
        None if public.is_none() => Measured::Here,
        // Whatever comes through a proxy on this machine seems to come from it.
        None if args.metrics => {
            return Err(Failure::usage(
                "with --public-url a proxy may pass everybody's requests on to /metrics: protect it with --metrics-token-file FILE",
            ));
        }
        None => Measured::No,
    };
    let tls = args.tls_cert.zip(args.tls_key);
    let tls = tls.map(|(certificate, key)| TlsFiles { certificate, key });
    if tls.is_some() && public.is_some_and(|url| url.starts_with("http://")) {
        return Err(Failure::usage(
            "with --tls-cert the server speaks https, and --public-url must begin with https://",
        ));
    }
    let options = Options {
        address: args.addr,
        database: args.place.database,
        folder: args.place.data,
        files: args.files.place,
        public_url: args.public_url,
        is_behind_proxy: args.behind_proxy,
        master: args.master_key_file,
        page,
        worker: args.worker.settings(),
        training: args.training,
        rate: NonZeroU32::new(args.rate),
        measured,
        tls,
        rewriters: args.rewriters,
        oidc: args.oidc.settings()?,
    };
    Ok(runtime()?.block_on(serve::serve(options))?)
}

/// Runs `capo worker`.
pub(crate) fn join(args: WorkerArgs) -> Result<Ending, Failure> {
    let said = args.said.clone();
    said.during(|| work(args))
}

fn work(args: WorkerArgs) -> Result<(), Failure> {
    let settings = args
        .worker
        .settings()
        .ok_or_else(|| Failure::usage("a worker works on one run at least: --runs 1"))?;
    let training = args.training.in_folder(args.trainings_folder);
    let worked = serve::join(
        &args.database,
        &args.files,
        args.master_key_file,
        settings,
        training,
    );
    Ok(runtime()?.block_on(worked)?)
}

/// Runs `capo admin`.
pub(crate) fn administer(args: AdminArgs) -> Result<Ending, Failure> {
    match args.task {
        Task::CreateUser(args) => create_user(args),
        Task::SetPassword(args) => {
            let (name, password) = (name(args.name)?, password()?);
            let changed = serve::set_password(args.place.database, args.place.data, &name, &password);
            runtime()?.block_on(changed)?;
            print(&format!("changed the password of {name}\n"))?;
            Ok(Ending::Done)
        }
        Task::RotateKey(args) => {
            let rotated = serve::rotate_key(args.place.database, args.place.data, args.master_key_file);
            let count = runtime()?.block_on(rotated)?;
            print(&format!(
                "encrypted {} with a new master key\n",
                counted(count as u64, "key")
            ))?;
            Ok(Ending::Done)
        }
        Task::Backup(args) => back_up(&args),
        Task::Restore(args) => restore(&args),
    }
}

fn back_up(args: &BackupArgs) -> Result<Ending, Failure> {
    let written = serve::write_backup(
        args.place.database.as_deref(),
        args.place.data.as_deref(),
        args.files.place.as_deref(),
        args.master_key_file.as_deref(),
        args.with_master_key,
        &args.file,
    );
    runtime()?.block_on(written)?;
    let key = if args.with_master_key {
        "with the master key: who has this file has all providers' keys"
    } else {
        "without the master key: keep a copy of that elsewhere, or providers' keys are lost with this machine"
    };
    let files = match &args.files.place {
        Some(place) if Files::is_bucket(place) => {
            format!("; what data files hold is in {place} alone, and so are checkpoints of trainings")
        }
        _ => "; checkpoints of trainings are not in it: copy the folder of data files, too".to_owned(),
    };
    print(&format!("wrote {}, {key}{files}\n", args.file.display()))?;
    Ok(Ending::Done)
}

fn restore(args: &RestoreArgs) -> Result<Ending, Failure> {
    let restored = serve::restore_backup(
        args.place.database.as_deref(),
        args.place.data.as_deref(),
        args.master_key_file.as_deref(),
        args.keep_tokens,
        &args.file,
    );
    let next = match runtime()?.block_on(restored)? {
        Key::There => "runs that were under way go on when the server starts".to_owned(),
        Key::Missing(path) => format!(
            "put the master key of its time into {} before the server starts, or providers' keys cannot be used",
            path.display()
        ),
    };
    let tokens = if args.keep_tokens {
        "sessions, tokens and invitations are those of its time, withdrawn ones too"
    } else {
        "everybody signs in anew, and its tokens and invitations have ended"
    };
    print(&format!("restored {}; {tokens}; {next}\n", args.file.display()))?;
    Ok(Ending::Done)
}

fn create_user(args: CreateUserArgs) -> Result<Ending, Failure> {
    let (name, password) = (name(args.name)?, password()?);
    let made = serve::create_member(args.place.database, args.place.data, &name, &password, args.admin);
    let member = runtime()?.block_on(made)?;
    let rights = if member.is_admin {
        ", who administers the server"
    } else {
        ""
    };
    print(&format!("made the account {}{rights}\n", member.name))?;
    Ok(Ending::Done)
}

/// The name of a member as it is kept.
fn name(text: String) -> Result<String, Failure> {
    let name = MemberName::try_from(text).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(name.as_str().to_owned())
}

/// A password from standard input, so that it stands in no command line.
fn password() -> Result<String, Failure> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::usage(
            "the password is read from standard input, such as from a password manager: PROGRAM | capo admin …",
        ));
    }
    let mut password = String::new();
    stdin
        .read_to_string(&mut password)
        .map_err(|error| Failure::new(format!("the password cannot be read: {error}")))?;
    Ok(password.trim_end_matches(['\r', '\n']).to_owned())
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("the system gives no threads: {error}")))
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Password(_)
            | ServeError::FirstIsAdmin
            | ServeError::TwiceNamed(_)
            | ServeError::Training(_)
            | ServeError::Backup(BackupError::Postgres(_)) => Self::usage(error.to_string()),
            _ => Self::new(error.to_string()),
        }
    }
}
