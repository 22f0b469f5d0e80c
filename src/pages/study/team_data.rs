//! Data sets of the team, beside files of one's own.

use capo_api::{DataKind, DataSetShown};
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::file::take_file;
use super::form::{Form, Said};
use crate::team::{Server, Team, data_file};

/// The tables of one's projects to choose from, if there are any.
#[component]
pub(super) fn TeamData() -> impl IntoView {
    let (form, team) = (expect_context::<Form>(), expect_context::<Team>());
    let tables = RwSignal::new(Vec::<(String, DataSetShown)>::new());
    Effect::new(move |_| {
        let projects = team.projects();
        spawn_local(async move {
            let mut found = Vec::new();
            for project in projects {
                // What cannot be had now is not offered.
                let sets = team
                    .ask(async |server: Server| server.data_sets(&project.name).await)
                    .await;
                let sets = sets
                    .unwrap_or_default()
                    .into_iter()
                    .filter(|set| set.kind != DataKind::Tau2);
                found.extend(sets.map(|set| (project.name.clone(), set)));
            }
            tables.try_set(found);
        });
    });
    let choose = move |event| {
        let place = event_target_value(&event).parse::<usize>().ok();
        let chosen = place.and_then(|place| tables.with_untracked(|tables| tables.get(place).cloned()));
        let Some((project, set)) = chosen else { return };
        spawn_local(async move {
            match team.ask(async |_: Server| data_file(&project, &set).await).await {
                Ok(file) => take_file(form, file),
                Err(why) => drop(form.said.try_set(Some(Said::Failed(why)))),
            }
        });
    };
    let option = |(place, (project, set)): (usize, (String, DataSetShown))| {
        view! { <option value=place.to_string()>{format!("{project}: {}", set.name)}</option> }
    };
    view! {
        <Show when=move || tables.with(|tables| !tables.is_empty())>
            <select class="auto" aria-label="A data set of the team" on:change=choose>
                <option value="">"or a data set of the team"</option>
                {move || tables.get().into_iter().enumerate().map(option).collect_view()}
            </select>
        </Show>
    }
}
