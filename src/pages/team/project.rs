//! A project: who takes part in it and how.

use capo_api::{
    MemberName, Membership, Myself, NewRole, ProjectChange, ProjectShown, Role, Title, export_path,
};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate, use_params_map};

use super::audit::AuditLog;
use super::certificates::CertificatesOf;
use super::data::DataOf;
use super::form::{Field, Form, Line, Pick, Refused, named};
use super::guard::TeamPage;
use super::invitations::Invitations;
use super::keys::ProjectKeys;
use super::list::{List, Listing};
use super::project_bar::ProjectBar;
use super::prompts::PromptsOf;
use super::removal::Removal;
use super::trainings::TrainingsOf;
use crate::components::in_turn;
use crate::frame::focus::go_to_named;
use crate::team::{Asking, Server, removal, role_means};

/// The project of this address.
#[component]
pub fn ProjectPage() -> impl IntoView {
    let params = use_params_map();
    let name = Memo::new(move |_| params.with(|params| params.get("project").unwrap_or_default()));
    // Once it is known.
    let title = RwSignal::new(None::<String>);
    let shown = Signal::derive(move || title.get().unwrap_or_else(|| name.get()));
    let show = move |myself| {
        title.set(None);
        view! { <Project name=name.get() title myself/> }.into_any()
    };
    view! { <TeamPage title=shown show/> }
}

#[component]
fn Project(name: String, title: RwSignal<Option<String>>, myself: Myself) -> impl IntoView {
    let key = |project: &ProjectShown| project.name.clone();
    let asked = name.clone();
    let projects = Listing::new(key, async move |server: Server| {
        Ok(vec![server.project(&asked).await?])
    });
    // As it was last.
    let project = Memo::new(move |last: Option<&Option<ProjectShown>>| {
        projects.rows().pop().or_else(|| last.cloned().flatten())
    });
    Effect::new(move |_| title.set(project.get().map(|project| project.title)));
    // What is shown follows one's role alone.
    let role = Memo::new(move |_| project.with(|project| project.as_ref().map(|project| project.role)));
    let hash = use_location().hash;
    Effect::new(move |was_known: Option<bool>| {
        let is_known = role.with(Option::is_some);
        if is_known && was_known != Some(true) {
            // Once the parts are there.
            in_turn(move || go_to_named(&hash.get_untracked()));
        }
        is_known
    });
    let parts = move || {
        let role = role.get()?;
        let decides = (role == Role::Admin).then(|| decisions(name.clone(), title));
        Some(view! {
            <ProjectBar project=name.clone()/>
            <DataOf project=name.clone() role/>
            <PromptsOf project=name.clone()/>
            <CertificatesOf project=name.clone()/>
            <TrainingsOf project=name.clone() role/>
            <Members name=name.clone() role myself=myself.clone()/>
            <ProjectKeys project=name.clone()/>
            {decides}
        })
    };
    view! {
        {move || projects.instead("")}
        {parts}
    }
}

/// Who takes part.
#[component]
fn Members(name: String, role: Role, myself: Myself) -> impl IntoView {
    let of = name.clone();
    let key = |place: &Membership| place.member.clone();
    let listing = Listing::new(key, async move |server: Server| server.project_members(&of).await);
    let navigate = use_navigate();
    let project = name.clone();
    let cells = move |place: Membership| {
        let is_me = place.member == myself.name;
        let (project, navigate) = (project.clone(), navigate.clone());
        let shown = match role {
            Role::Admin => view! { <RoleOf project=project.clone() place=place.clone() listing/> }.into_any(),
            Role::Viewer | Role::Editor => role_means(place.role).into_any(),
        };
        let off = listing.without(&place);
        let gone = Callback::new(move |()| {
            if is_me {
                navigate("/team", NavigateOptions::default());
            } else {
                off.run(());
            }
        });
        let member = place.member;
        let name = format!("{member}{}", if is_me { " (you)" } else { "" });
        let button = removal(role, &myself.name, &member).map(|words| {
            let of = if is_me {
                "the project".to_owned()
            } else {
                format!("{member} from the project")
            };
            let consequence = "What was done in the project stays. An admin of it can give the role back.";
            let remove = async move |server: Server| server.remove_from_project(&project, &member).await;
            view! { <Removal words of consequence remove gone/> }
        });
        vec![name.into_any(), shown, button.into_any()]
    };
    let empty = "Nobody has a role here; administrators of the server see the project all the same.";
    let add = (role == Role::Admin).then(|| view! { <AddMember name/> });
    view! {
        <List id="members" title="Members" listing columns=&["Name", "Role", ""] empty cells>
            {add}
        </List>
    }
}

/// The role of a member, which can be changed.
#[component]
fn RoleOf(project: String, place: Membership, listing: Listing<Membership>) -> impl IntoView {
    let asking = Asking::default();
    let member = place.member.clone();
    let place = listing.row(place);
    let picked = Signal::derive(move || {
        // What was picked and refused is taken back.
        asking.refused.track();
        place.with(|place| place.role)
    });
    let label = format!("Role of {member}");
    let pick = move |role: Role| {
        let (project, member) = (project.clone(), member.clone());
        let set = async move |server: Server| server.set_role(&project, &member, &NewRole { role }).await;
        asking.send(set, |()| ());
    };
    view! {
        <Pick label all=&Role::ALL means=role_means picked pick/>
        <Refused asking/>
    }
}

/// Gives a member of the server a role in the project.
#[component]
fn AddMember(name: String) -> impl IntoView {
    let asking = Asking::default();
    let (line, role) = (Line::default(), RwSignal::new(Role::Viewer));
    let submit = move || {
        let Some(member) = line.read(named::<MemberName>) else {
            return;
        };
        let (name, new) = (
            name.clone(),
            NewRole {
                role: role.get_untracked(),
            },
        );
        let set = async move |server: Server| server.set_role(&name, member.as_str(), &new).await;
        asking.send(set, move |()| line.clear());
    };
    let pick = move |picked| role.set(picked);
    view! {
        <h3>"Add a member of this server"</h3>
        <Form asking words=("Add", "Adding…") submit>
            <Field id="member-name" label="Name" line note="What they sign in with."/>
            <Pick label="Role" id="member-role" all=&Role::ALL means=role_means picked=role pick/>
        </Form>
    }
}

/// What admins of the project decide.
fn decisions(name: String, title: RwSignal<Option<String>>) -> impl IntoView {
    let role = RwSignal::new(Role::Viewer);
    let pick = move |picked| role.set(picked);
    let [of_list, of_make, of_withdraw, of_log] = std::array::from_fn(|_| name.clone());
    let list = async move |server: Server| server.project_invitations(&of_list).await;
    let make = async move |server: Server| {
        let new = NewRole {
            role: role.get_untracked(),
        };
        server.invite_to_project(&of_make, &new).await
    };
    let withdraw =
        async move |server: Server, id: String| server.withdraw_project_invitation(&of_withdraw, &id).await;
    let read = async move |server: Server, before| server.project_audit(&of_log, before).await;
    view! {
        <Invitations list make withdraw>
            <Pick label="Role" id="invited-role" all=&Role::ALL means=role_means picked=role pick/>
        </Invitations>
        <TheProject name title/>
        <AuditLog read/>
    }
}

/// Its title, its archive, and its end.
#[component]
fn TheProject(name: String, title: RwSignal<Option<String>>) -> impl IntoView {
    let asking = Asking::default();
    let navigate = use_navigate();
    let line = Line::default();
    Effect::new(move |_| line.text.set(title.get().unwrap_or_default()));
    let (of, deleted) = (name.clone(), name.clone());
    let submit = move || {
        let Some(title) = line.read(named::<Title>) else {
            return;
        };
        let of = of.clone();
        let rename = async move |server: Server| server.change_project(&of, &ProjectChange { title }).await;
        asking.send(rename, |_| ());
    };
    let archive = export_path(&name);
    let remove = async move |server: Server| server.delete_project(&deleted).await;
    let gone = Callback::new(move |()| navigate("/team", NavigateOptions::default()));
    let of = format!("the project {name}");
    let consequence = "All that is in it goes with it, for everybody. This cannot be undone.";
    view! {
        <section class="plate" aria-labelledby="the-project">
            <header>
                <h2 class="pt" id="the-project">"The project"</h2>
            </header>
            <Form asking words=("Rename", "Renaming…") submit>
                <Field id="new-title" label="Title" line/>
            </Form>
            <div class="row">
                <a class="button" href=archive rel="external" download="">
                    "Export"
                </a>
                <Removal words=("Delete", "Deleting…") of consequence typed=name remove gone/>
            </div>
        </section>
    }
}
