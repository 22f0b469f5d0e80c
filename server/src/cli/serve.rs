//! `capo serve`: the team server; `capo admin`: what is done on its machine.

use std::io::{IsTerminal as _, Read as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use capo_api::MemberName;

use super::failure::{Ending, Failure, print};
use super::layout::counted;
use crate::serve::{self, Options, ServeError, Served};

/// Serve the page and the team's accounts, projects and prompts to browsers and programs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServeArgs {
    /// Where to listen.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8787")]
    addr: SocketAddr,
    #[command(flatten)]
    place: Place,
    /// Where people reach the server, when a reverse proxy stands before it, such as <https://capo.example.org>.
    #[arg(long, value_name = "URL", value_parser = origin)]
    public_url: Option<String>,
    /// A reverse proxy stands before the server and says in `X-Forwarded-For` where requests come from.
    #[arg(long, requires = "public_url")]
    behind_proxy: bool,
    /// How the log is written to standard error.
    #[arg(long, value_enum, default_value_t)]
    log: Log,
    /// File with the master key, by which providers' keys are encrypted [default: `master.key` in the data folder].
    #[arg(long, value_name = "FILE")]
    master_key_file: Option<PathBuf>,
    /// Folder of a built page to serve in place of the one inside this program.
    #[arg(long, value_name = "DIR", conflicts_with = "api_only")]
    page: Option<PathBuf>,
    /// Serve no page.
    #[arg(long)]
    api_only: bool,
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

impl Log {
    /// Writes what this process says from now on.
    fn start(self) {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::INFO)
            .with_writer(|| Heedless)
            .log_internal_errors(false)
            .with_ansi(std::io::stderr().is_terminal());
        match self {
            Self::Text => subscriber.init(),
            Self::Json => subscriber.json().init(),
        }
    }
}

/// Standard error, whether anybody reads it or not: a server does not end with the terminal that it was started from.
struct Heedless;

impl std::io::Write for Heedless {
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
    /// File with the master key [default: `master.key` in the data folder].
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
    let page = match (args.page, args.api_only) {
        (Some(folder), _) => Served::Folder(folder),
        (None, true) => Served::None,
        (None, false) => Served::Embedded,
    };
    let options = Options {
        address: args.addr,
        database: args.place.database,
        folder: args.place.data,
        public_url: args.public_url,
        is_behind_proxy: args.behind_proxy,
        master: args.master_key_file,
        page,
    };
    args.log.start();
    runtime()?.block_on(serve::serve(options))?;
    Ok(Ending::Done)
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
    }
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
            ServeError::Password(_) | ServeError::NoPage | ServeError::FirstIsAdmin => {
                Self::usage(error.to_string())
            }
            _ => Self::new(error.to_string()),
        }
    }
}
