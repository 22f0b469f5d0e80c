//! The routes of projects and their runs, which are those of a team server.

use capo_api::{
    NewBranch, NewRun, ProjectKey, ProjectShown, Role, RunChange, RunOrder, RunOrigin, RunPage, RunShown,
};
use futures::future::try_join_all;
use worker::{Env, Request, Response, Url};

use crate::body::{bounded, document};
use crate::caller::Caller;
use crate::configuration::{Configuration, Member};
use crate::project::{MOST_FILE, Project};
use crate::refusal::Refusal;
use crate::run::{Begin, Command, ask};
use crate::runtime::{moment, query, random_id};

/// Runs of one page of a list.
const PAGE: usize = 100;

/// Answers what is asked of projects and runs; `path` is what comes after `/api/`.
pub(crate) async fn answer(
    mut request: Request,
    env: &Env,
    configuration: &Configuration,
    caller: Caller<'_>,
    path: &[&str],
) -> Result<Response, Refusal> {
    let (url, method) = (request.url()?, request.inner().method());
    let member = caller.member;
    let asked = match (method.as_str(), path) {
        ("GET", ["projects"]) => {
            let projects = member.projects.iter();
            let shown = projects.map(|(name, role)| shown(name, *role));
            return Ok(Response::from_json(&shown.collect::<Vec<_>>())?);
        }
        ("GET", ["projects", project]) => {
            let role = member.require(project, Role::Viewer, "project")?;
            return Ok(Response::from_json(&shown(project, role))?);
        }
        ("GET", ["projects", project, "keys"]) => {
            member.require(project, Role::Viewer, "project")?;
            return Ok(Response::from_json(&keys(configuration, project))?);
        }
        ("GET", ["projects", project, "files", sha256]) => {
            member.require(project, Role::Viewer, "project")?;
            return Ok(Project::of(env, project)?.file(sha256).await?);
        }
        ("GET", ["projects", project, "files", sha256, "content"]) => {
            member.require(project, Role::Viewer, "project")?;
            return Ok(Project::of(env, project)?.content(sha256).await?);
        }
        ("PUT", ["projects", project, "files", sha256]) => {
            member.require(project, Role::Editor, "project")?;
            let content = bounded(&mut request, MOST_FILE).await?;
            return Ok(Project::of(env, project)?.put(sha256, &content).await?);
        }
        ("POST", ["projects", project, "runs"]) => {
            member.require(project, Role::Editor, "project")?;
            let new: NewRun = document(&mut request).await?;
            let id = random_id()?;
            let begin = Begin {
                id: id.clone(),
                project: (*project).to_owned(),
                name: new.name.as_str().to_owned(),
                study: new.study,
                files: new.files,
                start_at: new.start_at,
                origin: RunOrigin::Server,
                is_paused: false,
            };
            return ask(env, &id, caller.name, Command::Begin(Box::new(begin)), Vec::new()).await;
        }
        ("GET", ["runs"]) => return Ok(Response::from_json(&list(env, member, &url).await?)?),
        ("GET", ["runs", _]) => Command::Show,
        ("PATCH", ["runs", _]) => {
            let change: RunChange = document(&mut request).await?;
            Command::Rename(change.name.as_str().to_owned())
        }
        ("DELETE", ["runs", _]) => Command::Delete,
        ("POST", ["runs", _, "orders"]) => Command::Order(document::<RunOrder>(&mut request).await?),
        ("POST", ["runs", _, "branches"]) => {
            Command::Branch(random_id()?, document::<NewBranch>(&mut request).await?)
        }
        ("GET", ["runs", _, "journal"]) => Command::Journal(query(&url, "from")?.unwrap_or(0)),
        ("GET", ["runs", _, "events"]) => {
            // A browser that connects anew.
            let last = request.headers().get("last-event-id")?;
            let last = last.and_then(|last| last.parse::<u64>().ok());
            let from = query(&url, "from")?.unwrap_or(0);
            Command::Events(last.map_or(from, |last| last.saturating_add(1)))
        }
        _ => return Err(Refusal::missing()),
    };
    ask(env, path[1], caller.name, asked, Vec::new()).await
}

/// What a member is told of a project.
fn shown(name: &str, role: Role) -> ProjectShown {
    ProjectShown {
        name: name.to_owned(),
        title: name.to_owned(),
        // Nobody knows.
        created_at: moment(0),
        role,
    }
}

/// The keys that a project may use.
fn keys(configuration: &Configuration, project: &str) -> Vec<ProjectKey> {
    let keys = configuration.keys_of(project).map(|key| {
        let record = key.record();
        ProjectKey {
            name: record.id.clone(),
            provider: record.provider.get().name.to_owned(),
            models: record.models.iter().map(|rule| rule.name.clone()).collect(),
            base_url: format!("/api/proxy/{}", record.id),
            provider_base_url: record.base_url.clone(),
        }
    });
    keys.collect()
}

/// The runs of one project, or of all the member's, those added last first.
async fn list(env: &Env, member: &Member, url: &Url) -> Result<RunPage, Refusal> {
    let named: Option<String> = query(url, "project")?;
    let before: Option<String> = query(url, "before")?;
    let before = before.as_deref().map(|before| before.split_once('_'));
    if before == Some(None) {
        return Err(Refusal::invalid(
            "`before` is what an earlier page of the list said.",
        ));
    }
    let before = before.flatten().map(|(at, id)| (at.to_owned(), id.to_owned()));
    let projects = match &named {
        Some(project) => {
            member.require(project, Role::Viewer, "project")?;
            vec![project]
        }
        None => member.projects.keys().collect(),
    };
    let lists = projects.into_iter().map(|project| {
        let before = before.clone();
        async move { Project::of(env, project)?.list(before, PAGE as u64 + 1).await }
    });
    let mut runs = try_join_all(lists).await?.concat();
    let place = |run: &RunShown| (run.created_at.clone(), run.id.clone());
    runs.sort_by_key(|run| std::cmp::Reverse(place(run)));
    let is_last = runs.len() <= PAGE;
    runs.truncate(PAGE);
    let before = runs.last().filter(|_| !is_last);
    let before = before.map(|run| format!("{}_{}", run.created_at, run.id));
    Ok(RunPage { runs, before })
}
