//! Projects, and who has which role in them.

use axum::extract::State;
use axum::http::StatusCode;
use capo_api::{
    EntryShown, InvitationMade, InvitationShown, Membership, NewProject, NewRole, ProjectChange,
    ProjectShown, Role,
};

use super::Server;
use super::audit::{Since, lines};
use super::caller::Caller;
use super::extract::{Json, Path, Query, moment};
use super::members::{invited, open};
use super::problem::Refusal;
use crate::store::{Invited, MemberRole, Project};
use crate::trainings::forget;

pub(super) fn shown((project, role): (Project, Role)) -> ProjectShown {
    ProjectShown {
        name: project.name,
        title: project.title,
        created_at: moment(project.created_at),
        role,
    }
}

/// One's projects; all of them for who administers the server.
#[utoipa::path(
    get, path = "/api/projects", operation_id = "projects", security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<ProjectShown>))
)]
pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Vec<ProjectShown>>, Refusal> {
    let projects = server.store().projects(&caller.member).await?;
    Ok(Json(projects.into_iter().map(shown).collect()))
}

/// Makes a project and becomes its administrator.
#[utoipa::path(
    post, path = "/api/projects", operation_id = "add_project", request_body = NewProject,
    security(("session" = []), ("token" = [])), responses((status = 201, body = ProjectShown))
)]
pub(super) async fn add(
    State(server): State<Server>,
    caller: Caller,
    Json(new): Json<NewProject>,
) -> Result<(StatusCode, Json<ProjectShown>), Refusal> {
    let project = server
        .store()
        .add_project(
            &caller.actor(),
            &caller.member,
            new.name.as_str(),
            new.title.as_str(),
        )
        .await?;
    Ok((StatusCode::CREATED, Json(shown((project, Role::Admin)))))
}

/// A project.
#[utoipa::path(
    get, path = "/api/projects/{project}", operation_id = "project", params(("project" = String, Path)),
    security(("session" = []), ("token" = [])), responses((status = 200, body = ProjectShown))
)]
pub(super) async fn show(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
) -> Result<Json<ProjectShown>, Refusal> {
    let found = caller.project(&server, &project, Role::Viewer).await?;
    Ok(Json(shown(found)))
}

/// Gives a project another title.
#[utoipa::path(
    patch, path = "/api/projects/{project}", operation_id = "retitle_project", params(("project" = String, Path)),
    request_body = ProjectChange, security(("session" = []), ("token" = [])),
    responses((status = 200, body = ProjectShown))
)]
pub(super) async fn retitle(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
    Json(change): Json<ProjectChange>,
) -> Result<Json<ProjectShown>, Refusal> {
    let (project, role) = caller.project(&server, &project, Role::Admin).await?;
    let project = server
        .store()
        .retitle_project(&caller.actor(), &project, change.title.as_str())
        .await?;
    Ok(Json(shown((project, role))))
}

/// Deletes a project and all that is in it.
#[utoipa::path(
    delete, path = "/api/projects/{project}", operation_id = "delete_project", params(("project" = String, Path)),
    security(("session" = [])), responses((status = 204))
)]
pub(super) async fn delete(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
) -> Result<StatusCode, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Admin).await?;
    caller.in_person()?;
    let trainings = server.store().trainings(&project.id).await?;
    server.store().delete_project(&caller.actor(), &project).await?;
    if let Some(here) = server.trainings() {
        for training in &trainings {
            forget(&here.folder_of(&training.id)).await;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

fn place(place: MemberRole) -> Membership {
    Membership {
        member: place.member,
        role: place.role,
    }
}

/// Who has which role in a project.
#[utoipa::path(
    get, path = "/api/projects/{project}/members", operation_id = "project_members",
    params(("project" = String, Path)), security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<Membership>))
)]
pub(super) async fn members(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
) -> Result<Json<Vec<Membership>>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Viewer).await?;
    let member_roles = server.store().member_roles(&project).await?;
    Ok(Json(member_roles.into_iter().map(place).collect()))
}

/// Gives a member of the server a role in a project.
#[utoipa::path(
    put, path = "/api/projects/{project}/members/{name}", operation_id = "set_role",
    params(("project" = String, Path), ("name" = String, Path)), request_body = NewRole, security(("session" = [])),
    responses((status = 204))
)]
pub(super) async fn set_role(
    State(server): State<Server>,
    caller: Caller,
    Path((project, name)): Path<(String, String)>,
    Json(new): Json<NewRole>,
) -> Result<StatusCode, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Admin).await?;
    caller.in_person()?;
    server
        .store()
        .set_role(&caller.actor(), &project, &name, Some(new.role))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a member's role in a project away; anybody may give up their own.
#[utoipa::path(
    delete, path = "/api/projects/{project}/members/{name}", operation_id = "remove_from_project",
    params(("project" = String, Path), ("name" = String, Path)), security(("session" = [])), responses((status = 204))
)]
pub(super) async fn remove(
    State(server): State<Server>,
    caller: Caller,
    Path((project, name)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let needed = if name == caller.member.name {
        Role::Viewer
    } else {
        Role::Admin
    };
    let (project, _) = caller.project(&server, &project, needed).await?;
    caller.in_person()?;
    server
        .store()
        .set_role(&caller.actor(), &project, &name, None)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The open invitations to a project.
#[utoipa::path(
    get, path = "/api/projects/{project}/invitations", operation_id = "project_invitations",
    params(("project" = String, Path)), security(("session" = [])),
    responses((status = 200, body = Vec<InvitationShown>))
)]
pub(super) async fn invitations(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
) -> Result<Json<Vec<InvitationShown>>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Admin).await?;
    caller.in_person()?;
    let invitations = server
        .store()
        .invitations(Some(&project), caller.visitor.at)
        .await?;
    Ok(Json(invitations.into_iter().map(open).collect()))
}

/// Invites somebody to a project, with a role.
#[utoipa::path(
    post, path = "/api/projects/{project}/invitations", operation_id = "invite_to_project",
    params(("project" = String, Path)), request_body = NewRole, security(("session" = [])),
    responses((status = 201, body = InvitationMade))
)]
pub(super) async fn invite(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
    Json(new): Json<NewRole>,
) -> Result<(StatusCode, Json<InvitationMade>), Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Admin).await?;
    caller.in_person()?;
    invited(&server, &caller, Invited::Project(&project, new.role)).await
}

/// Takes an invitation to a project back.
#[utoipa::path(
    delete, path = "/api/projects/{project}/invitations/{id}", operation_id = "withdraw_project_invitation",
    params(("project" = String, Path), ("id" = String, Path)), security(("session" = [])), responses((status = 204))
)]
pub(super) async fn withdraw_invitation(
    State(server): State<Server>,
    caller: Caller,
    Path((project, id)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Admin).await?;
    caller.in_person()?;
    server
        .store()
        .withdraw_invitation(&caller.actor(), Some(&project), &id)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The audit log of a project, the latest lines first.
#[utoipa::path(
    get, path = "/api/projects/{project}/audit", operation_id = "project_audit",
    params(("project" = String, Path), Since), security(("session" = []), ("token" = [])),
    responses((status = 200, body = Vec<EntryShown>))
)]
pub(super) async fn audit(
    State(server): State<Server>,
    caller: Caller,
    Path(project): Path<String>,
    Query(since): Query<Since>,
) -> Result<Json<Vec<EntryShown>>, Refusal> {
    let (project, _) = caller.project(&server, &project, Role::Admin).await?;
    lines(&server, Some(&project), &since).await
}
