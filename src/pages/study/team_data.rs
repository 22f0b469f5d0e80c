//! Data sets and studies of the team, beside files of one's own.

use capo_api::{DataKind, DataSetName, DataSetShown, data_set_path};
use capo_core::ids::sha256_hex;
use leptos::html::Select;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::file::{as_file, take_file};
use super::form::{Form, Said};
use crate::components::{Message, Workplace};
use crate::team::{Asking, Server, Team, data_file};

/// The tables and studies of one's projects to choose from, if there are any.
#[component]
pub(super) fn TeamData() -> impl IntoView {
    let (form, team) = (expect_context::<Form>(), expect_context::<Team>());
    let (asking, list) = (Asking::default(), NodeRef::<Select>::new());
    let tables = RwSignal::new(Vec::<(String, DataSetShown)>::new());
    let projects = Memo::new(move |_| team.projects());
    Effect::new(move |_| {
        let asked = projects.get();
        spawn_local(async move {
            let mut found = Vec::new();
            for project in &asked {
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
            // The page may be left by then, or somebody else signed in.
            if projects.try_get_untracked() == Some(asked) {
                tables.set(found);
            }
        });
    });
    let take = move |_| {
        let place = list
            .get_untracked()
            .and_then(|list| list.value().parse::<usize>().ok());
        let chosen = place.and_then(|place| tables.with_untracked(|tables| tables.get(place).cloned()));
        let Some((project, set)) = chosen else { return };
        let fetch = async move |_: Server| data_file(&data_set_path(&project, &set.id), &set.name).await;
        asking.send(fetch, move |file| take_file(form, file));
    };
    let option = |(place, (project, set)): (usize, (String, DataSetShown))| {
        view! { <option value=place.to_string()>{format!("{project}: {}", set.name)}</option> }
    };
    view! {
        <Show when=move || tables.with(|tables| !tables.is_empty())>
            <select class="auto" aria-label="A data set or study of the team" node_ref=list>
                <option value="">"or a data set or study of the team"</option>
                {move || tables.get().into_iter().enumerate().map(option).collect_view()}
            </select>
            <button type="button" aria-disabled=move || asking.disabled() on:click=take>
                "Take it in"
            </button>
        </Show>
        {move || asking.refused.get().map(|what| view! { <Message what/> })}
    }
}

/// Keeps the study in a project, for who may write in one.
#[component]
pub(super) fn KeepStudy() -> impl IntoView {
    let (form, team) = (expect_context::<Form>(), expect_context::<Team>());
    let (asking, project) = (Asking::default(), RwSignal::new(None::<String>));
    let keep = move |_| {
        let Some(project) = project.get_untracked() else {
            return asking
                .refused
                .set(Some("Choose the project that is to keep it.".into()));
        };
        let file = as_file(form).and_then(|(name, toml)| {
            let name = DataSetName::try_from(name).map_err(|error| error.to_string())?;
            Ok((name, toml.into_bytes()))
        });
        let (name, toml) = match file {
            Ok(file) => file,
            Err(message) => return form.said.set(Some(Said::Failed(message))),
        };
        let of = project.clone();
        let send = async move |server: Server| server.add_data_set(&of, name, sha256_hex(&toml), toml).await;
        asking.send(send, move |kept| {
            form.said
                .set(Some(Said::Done(format!("{project} keeps it as {}.", kept.name))));
        });
    };
    view! {
        <Show when=move || !team.workplaces().is_empty()>
            <div class="row">
                <Workplace id="keep-where" label="Keep it in" project none="no project" />
                <button type="button" aria-disabled=move || asking.disabled() on:click=keep>
                    "Keep in the project"
                </button>
            </div>
            {move || asking.refused.get().map(|what| view! { <Message what/> })}
        </Show>
    }
}
