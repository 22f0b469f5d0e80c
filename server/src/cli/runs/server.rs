//! The team server, project and run that a command means.

use capo_api::{Client, ClientError, Role, RunShown, Title};

use crate::cli::failure::Failure;
use crate::remote::Server;

/// Digits of an id that name a run, at least.
const FEWEST: usize = 6;
/// Digits of an id.
const DIGITS: usize = 32;

/// The team server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Remote {
    /// The team server, such as <https://capo.example.org>; it is asked with the personal token in the variable
    /// `CAPO_TOKEN`.
    #[arg(long, value_name = "URL", env = "CAPO_REMOTE")]
    remote: Option<String>,
}

impl Remote {
    pub(in crate::cli) fn server(&self) -> Result<Server, Failure> {
        server(self.remote.as_deref())
    }
}

/// A project of a team server.
#[derive(Debug, Clone, clap::Args)]
pub(in crate::cli) struct ProjectArgument {
    /// The project; the only one that you may use so unless stated.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

impl ProjectArgument {
    /// The server, and the project in which its owner has at least this role, by which they may do this.
    pub(in crate::cli) async fn find(&self, role: Role, what: &str) -> Result<(Server, String), Failure> {
        let server = self.remote.server()?;
        let project = project_for(&server, self.project.as_deref(), role, what).await?;
        Ok((server, project))
    }
}

/// The server of an address, asked with the token in the environment.
pub(super) fn server(url: Option<&str>) -> Result<Server, Failure> {
    let url = url.filter(|url| !url.is_empty()).ok_or_else(|| {
        Failure::usage("name the team server with --remote URL, or in the variable CAPO_REMOTE")
    })?;
    let token = std::env::var("CAPO_TOKEN").unwrap_or_default();
    if token.trim().is_empty() {
        return Err(Failure::new(
            "the variable CAPO_TOKEN is not set: a team server is asked with a personal token, which its page makes under \
             your account",
        ));
    }
    Server::new(url, token.trim()).map_err(|error| Failure::usage(error.to_string()))
}

/// Why a server does not do what it is asked for.
pub(in crate::cli) fn refused(server: &Server, error: &ClientError) -> Failure {
    match error {
        ClientError::Unreached(reason) => Failure::new(format!(
            "the team server {} is not reached: {reason}",
            server.origin()
        )),
        ClientError::Refused(problem) if problem.status == 401 => Failure::new(format!(
            "{} does not know the token in CAPO_TOKEN: it is mistyped, withdrawn or too old; make another one under your \
             account on its page",
            server.origin()
        )),
        ClientError::Refused(problem) if problem.status == 422 => Failure::usage(one_line(&problem.detail)),
        ClientError::Refused(problem) => Failure::new(one_line(&problem.detail)),
        ClientError::UnexpectedAnswer { .. } => Failure::new(format!("{}: {error}", server.origin())),
    }
}

/// Words of a server where a line has room for one only.
pub(super) fn one_line(words: &str) -> String {
    let lines: Vec<&str> = words
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ")
}

/// An id or its first digits, as they are typed.
pub(in crate::cli) fn run_named(text: &str) -> Result<String, String> {
    let is_digit = |sign: char| sign.is_ascii_hexdigit();
    if (FEWEST..=DIGITS).contains(&text.len()) && text.chars().all(is_digit) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(format!(
            "a run is named by its id or the first {FEWEST} or more of its digits (0-9, a-f); `capo runs` lists them"
        ))
    }
}

/// The run of an id, or the only one whose id begins so.
pub(in crate::cli) async fn find(server: &Server, named: &str) -> Result<RunShown, Failure> {
    let client = server.client();
    if named.len() == DIGITS {
        let found = client.run(named).await;
        return Ok(found.map_err(|error| refused(server, &error))?.run);
    }
    let mut found = all(server, None).await?;
    found.retain(|run| run.id.starts_with(named));
    match (found.pop(), found.len()) {
        (Some(run), 0) => Ok(run),
        (None, _) => Err(Failure::new(format!(
            "{} has no run whose id begins with {named}, or none that you may see; `capo runs` lists them",
            server.origin()
        ))),
        (Some(_), others) => Err(Failure::usage(format!(
            "{} runs have ids that begin with {named}; give more digits, as `capo runs --json` shows them",
            others + 1
        ))),
    }
}

/// All runs of a project, or of all one's projects, the latest first.
pub(super) async fn all(server: &Server, project: Option<&str>) -> Result<Vec<RunShown>, Failure> {
    let client = server.client();
    let (mut runs, mut before) = (Vec::new(), None);
    loop {
        let page = client.runs(project, before.as_deref()).await;
        let page = page.map_err(|error| refused(server, &error))?;
        runs.extend(page.runs);
        if page.before.is_none() {
            return Ok(runs);
        }
        before = page.before;
    }
}

/// The project that is named, or else the only one in which its owner may start runs.
pub(super) async fn project(server: &Server, named: Option<&str>) -> Result<String, Failure> {
    project_for(server, named, Role::Editor, "start runs").await
}

/// The project that is named, or else the only one in which its owner has this role, by which they may do this.
async fn project_for(
    server: &Server,
    named: Option<&str>,
    role: Role,
    what: &str,
) -> Result<String, Failure> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let client: Client<_> = server.client();
    let mut projects = client.projects().await.map_err(|error| refused(server, &error))?;
    projects.retain(|project| project.role >= role);
    match &projects[..] {
        [project] => Ok(project.name.clone()),
        [] => Err(Failure::new(format!(
            "there is no project on {} in which you may {what}; ask an admin of one to make you {} of it",
            server.origin(),
            match role {
                Role::Viewer => "a viewer",
                Role::Editor => "an editor",
                Role::Admin => "an admin",
            }
        ))),
        several => {
            let names: Vec<&str> = several.iter().map(|project| project.name.as_str()).collect();
            Err(Failure::usage(format!(
                "say which project with --project; you may {what} in {}",
                names.join(", ")
            )))
        }
    }
}

/// What a run is called: as it is asked for, else like its study.
pub(super) fn title(asked: Option<&Title>, study: &str) -> Result<Title, Failure> {
    if let Some(asked) = asked {
        return Ok(asked.clone());
    }
    Title::try_from(study.to_owned())
        .map_err(|_| Failure::usage("the study's name is no name for a run, which is one line of 1 to 200 characters; give one with --name"))
}
