//! The trainings of a project.

use capo_api::{ClientError, Role, TrainingList, TrainingShown};
use leptos::prelude::*;
use leptos_router::components::A;

use super::{address, new_address, words};
use crate::pages::team::list::{List, Listing, when};
use crate::team::Server;

/// The trainings of a project and what they may start from; `None` where the server trains nothing.
///
/// # Errors
/// As all requests.
pub(super) async fn listed(server: &Server, project: &str) -> Result<Option<TrainingList>, ClientError> {
    match server.trainings(project).await {
        Err(error) if error.status() == Some(501) => Ok(None),
        listed => listed.map(Some),
    }
}

/// Whether the server trains rewriters, once that is known.
pub(in crate::pages::team) fn trains(project: String) -> Memo<bool> {
    let trains = Listing::new(
        |()| String::new(),
        async move |server: Server| {
            let listed = listed(&server, &project).await?;
            Ok(listed.map(|_| ()).into_iter().collect())
        },
    );
    Memo::new(move |_| !trains.rows().is_empty())
}

/// Lists them, where the server trains rewriters.
#[component]
pub(in crate::pages::team) fn TrainingsOf(project: String, role: Role) -> impl IntoView {
    let trains = trains(project.clone());
    view! {
        <Show when=move || trains.get()>
            <Trainings project=project.clone() role/>
        </Show>
    }
}

#[component]
fn Trainings(project: String, role: Role) -> impl IntoView {
    let of = project.clone();
    // A row is drawn anew when anything in it has changed.
    let key = |training: &TrainingShown| format!("{training:?}");
    let listing = Listing::new(key, async move |server: Server| {
        let listed = listed(&server, &of).await?;
        Ok(listed.map(|listed| listed.trainings).unwrap_or_default())
    });
    let start = (role >= Role::Editor).then(|| {
        view! {
            <div class="row">
                <A href=new_address(&project)>"Train a rewriter…"</A>
            </div>
        }
    });
    let cells = move |training: TrainingShown| {
        let state = words::state(&training);
        let name = view! { <A href=address(&project, &training.id)><b>{training.name}</b></A> };
        vec![
            name.into_any(),
            words::kind(training.kind).into_any(),
            state.into_any(),
            training.started_by.into_any(),
            when(training.touched_at),
        ]
    };
    let columns = &["Training", "Learns from", "State", "Started by", "Last changed"];
    let empty = "None yet. A rewriter learns to rewrite prompts from the runs of the project, and searches with what it learned.";
    view! {
        <List id="trainings" title="Trained rewriters" listing columns empty cells>
            {start}
        </List>
    }
}
