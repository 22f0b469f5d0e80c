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

/// The tables of one's projects to choose from, if there are any, or their studies.
#[component]
pub(super) fn TeamData(
    /// Whether studies are offered instead of tables.
    #[prop(optional)]
    studies: bool,
) -> impl IntoView {
    let (form, team) = (expect_context::<Form>(), expect_context::<Team>());
    let (asking, list) = (Asking::default(), NodeRef::<Select>::new());
    let offered = RwSignal::new(Vec::<(String, DataSetShown)>::new());
    let [label, none, words] = if studies {
        [
            "A study of the team",
            "or a study of the team",
            "Take the study in",
        ]
    } else {
        [
            "A data set of the team",
            "or a data set of the team",
            "Take it in",
        ]
    };
    let is_offered = move |set: &DataSetShown| match set.kind {
        DataKind::Csv | DataKind::Jsonl => !studies,
        DataKind::Study => studies,
        DataKind::Tau2 => false,
    };
    let asked_for = Memo::new(move |_| (team.projects(), team.changes()));
    Effect::new(move |_| {
        let asked = asked_for.get();
        spawn_local(async move {
            let mut found = Vec::new();
            for project in &asked.0 {
                // What cannot be had now is not offered.
                let sets = team
                    .ask(async |server: Server| server.data_sets(&project.name).await)
                    .await;
                let sets = sets.unwrap_or_default().into_iter().filter(is_offered);
                found.extend(sets.map(|set| (project.name.clone(), set)));
            }
            // The page may be left by then, somebody else signed in, or more kept.
            let is_new = || offered.with_untracked(|offered| *offered != found);
            if asked_for.try_get_untracked() == Some(asked) && is_new() {
                offered.set(found);
            }
        });
    });
    let take = move |_| {
        let place = list
            .get_untracked()
            .and_then(|list| list.value().parse::<usize>().ok());
        let chosen = place.and_then(|place| offered.with_untracked(|offered| offered.get(place).cloned()));
        let Some((project, set)) = chosen else { return };
        let fetch = async move |_: Server| data_file(&data_set_path(&project, &set.id), &set.name).await;
        let member = Some(team.member());
        asking.send(fetch, move |file| take_file(form, file, member));
    };
    let option = |(place, (project, set)): (usize, (String, DataSetShown))| {
        view! { <option value=place.to_string()>{format!("{project}: {}", set.name)}</option> }
    };
    view! {
        <Show when=move || offered.with(|offered| !offered.is_empty())>
            <select class="auto" aria-label=label node_ref=list>
                <option value="">{none}</option>
                {move || offered.get().into_iter().enumerate().map(option).collect_view()}
            </select>
            <button type="button" aria-disabled=move || asking.disabled() on:click=take>
                {words}
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
        form.said.set(None);
        let Some(project) = project.get_untracked() else {
            return asking
                .refused
                .set(Some("Choose the project that is to keep it.".into()));
        };
        let file = as_file(form).and_then(|(plain, toml)| {
            // Called as the study is, where a file can be.
            let own = form
                .draft
                .with_untracked(|draft| format!("{}.toml", draft.study.study.name.trim()));
            let name = DataSetName::try_from(own).or_else(|_| DataSetName::try_from(plain));
            Ok((name.map_err(|error| error.to_string())?, toml.into_bytes()))
        });
        let (name, toml) = match file {
            Ok(file) => file,
            Err(message) => return form.said.set(Some(Said::Failed(message))),
        };
        let (of, called) = (project.clone(), name.as_str().to_owned());
        let wanted = called.clone();
        // None where the name is taken.
        let send = async move |server: Server| {
            let kept = server.add_data_set(&of, name, sha256_hex(&toml), toml).await;
            match kept {
                Err(error) if error.status() == Some(409) => {
                    let there = server.data_sets(&of).await?;
                    let is_taken = there.iter().any(|set| set.name == wanted);
                    if is_taken { Ok(None) } else { Err(error) }
                }
                kept => kept.map(Some),
            }
        };
        asking.send(send, move |kept: Option<DataSetShown>| match kept {
            Some(kept) => form
                .said
                .set(Some(Said::Done(format!("{project} keeps it as {}.", kept.name)))),
            None => asking.refused.set(Some(format!(
                "{project} has a file {called} already. Rename the study, or delete that file on the project’s page."
            ))),
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
            <p class="note">"A project keeps the study alone: data files do not go along."</p>
            {move || asking.refused.get().map(|what| view! { <Message what/> })}
        </Show>
    }
}
