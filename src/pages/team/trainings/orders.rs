//! What one tells a training, and what one does with what it learned.

use capo_api::{Role, TrainingOrder, TrainingState, rewriter_model};
use capo_core::llm::Role as ModelRole;
use capo_core::study::Study;
use capo_models::providers::LOCAL;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use serde_json::json;

use super::following::Followed;
use crate::frame::handover::{Handed, Handover};
use crate::live::Runs;
use crate::pages::team::form::Refused;
use crate::pages::team::removal::Removal;
use crate::team::{Asking, Server};

/// Stops, resumes and deletes it, and sets up a study that it rewrites for.
#[component]
pub(super) fn Orders(project: String, id: String, role: Role, followed: Followed) -> impl IntoView {
    let (asking, runs) = (Asking::default(), expect_context::<Runs>());
    let (navigate, Handover(handed)) = (use_navigate(), expect_context());
    let place = StoredValue::new((project.clone(), id.clone()));
    let order = move |order: TrainingOrder| {
        let (project, id) = place.get_value();
        let request = async move |server: Server| server.order_training(&project, &id, order).await;
        asking.send(request, move |now| followed.training.set(Some(now)));
    };
    let state = Memo::new(move |_| {
        followed
            .training
            .with(|training| training.as_ref().map(|now| now.state))
    });
    let goes_on = move || matches!(state.get(), Some(TrainingState::Queued | TrainingState::Running));
    let has_learned = move || matches!(state.get(), Some(TrainingState::Done | TrainingState::Stopped));
    let rests = move || state.get().is_some() && !goes_on();
    let to_study = navigate.clone();
    let rewrite = move |_| {
        let (project, id) = place.get_value();
        let navigate = to_study.clone();
        let begin = async move {
            let training = async |server: Server| server.training(&project, &id).await;
            let training = asking.team.ask(training).await?;
            let mut begun = runs.begun_training(training).await?;
            take_rewriter(&mut begun.study, &id);
            Ok::<_, String>(begun)
        };
        asking.work(begin, move |begun| {
            handed.set(Some(Handed::Run(Box::new(begun))));
            navigate("/study", NavigateOptions::default());
        });
    };
    let of_project = format!("/team/projects/{project}");
    let gone = Callback::new(move |()| navigate(&of_project, NavigateOptions::default()));
    let remove = async move |server: Server| server.delete_training(&project, &id).await;
    let consequence = "Its checkpoints go with it, and studies that it rewrites for run no more. The run of its search stays.";
    let button = move |words: &'static str, told: TrainingOrder| {
        view! {
            <button type="button" aria-disabled=move || asking.disabled() on:click=move |_| order(told)>
                {words}
            </button>
        }
    };
    let removal = move || {
        let (of, words, remove) = (
            "this training".to_owned(),
            ("Delete", "Deleting…"),
            remove.clone(),
        );
        rests().then(|| view! { <Removal words of consequence remove gone/> })
    };
    (role >= Role::Editor).then(|| {
        view! {
            <div class="row">
                <Show when=goes_on>{button("Stop", TrainingOrder::Stop)}</Show>
                <Show when=rests>{button("Resume", TrainingOrder::Resume)}</Show>
                <Show when=has_learned>
                    <button type="button" aria-disabled=move || asking.disabled() on:click=rewrite.clone()>
                        "Use as rewriter…"
                    </button>
                </Show>
                {removal}
            </div>
            <Refused asking/>
        }
    })
}

/// Has a study rewritten for by what a training came to.
fn take_rewriter(study: &mut Study, training: &str) {
    let rewriter = json!({ "provider": LOCAL, "model": rewriter_model(training) });
    let former = study.models.insert(ModelRole::Rewriter, rewriter);
    // A learned rewriter criticises nobody.
    if let Some(former) = former.filter(|former| former["provider"] != LOCAL) {
        study.models.entry(ModelRole::Critic).or_insert(former);
    }
}
