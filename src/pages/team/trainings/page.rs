//! The page of a training.

use capo_api::{ProjectShown, Role, TrainingKind};
use leptos::prelude::*;
use leptos_router::components::A;
use leptos_router::hooks::use_params_map;

use super::checkpoints::Checkpoints;
use super::facts::Facts;
use super::following::Followed;
use super::orders::Orders;
use crate::charts::figure::Figure;
use crate::charts::loss::{LossChart, LossData};
use crate::pages::team::guard::TeamPage;
use crate::pages::team::list::Listing;
use crate::pages::team::project_bar::ProjectBar;
use crate::team::Server;

/// The training of this address.
#[component]
pub fn TrainingPage() -> impl IntoView {
    let params = use_params_map();
    let place = Memo::new(move |_| {
        let part = |name| params.with(|params| params.get(name).unwrap_or_default());
        (part("project"), part("training"))
    });
    // Once it is known.
    let name = RwSignal::new(None::<String>);
    let title = Signal::derive(move || name.get().unwrap_or_else(|| "Training".to_owned()));
    let show = move |_| {
        let (project, id) = place.get();
        view! { <Training project id name/> }.into_any()
    };
    view! { <TeamPage title show/> }
}

#[component]
fn Training(project: String, id: String, name: RwSignal<Option<String>>) -> impl IntoView {
    let asked = project.clone();
    let key = |project: &ProjectShown| project.name.clone();
    let projects = Listing::new(key, async move |server: Server| {
        Ok(vec![server.project(&asked).await?])
    });
    let role = Memo::new(move |last: Option<&Option<Role>>| {
        let now = projects.rows().pop().map(|project| project.role);
        now.or_else(|| last.copied().flatten())
    });
    let followed = Followed::new(&project, &id);
    Effect::new(move |_| {
        followed
            .training
            .with(|training| name.set(training.as_ref().map(|now| now.name.clone())));
    });
    let is_sft = Memo::new(move |_| {
        let kind = followed
            .training
            .with(|training| training.as_ref().map(|now| now.kind));
        kind == Some(TrainingKind::Sft)
    });
    let losses = Memo::new(move |_| followed.log.with(super::following::TrainingLog::losses));
    let is_known = Memo::new(move |_| role.with(Option::is_some));
    let of_bar = project.clone();
    let [of_orders, of_list] = std::array::from_fn(|_| (project.clone(), id.clone()));
    let orders = move || {
        let (project, id) = of_orders.clone();
        role.get()
            .map(|role| view! { <Orders project id role followed/> })
    };
    view! {
        <Show when=move || is_known.get()>
            <ProjectBar project=of_bar.clone()/>
        </Show>
        <p class="note above">
            "A training of the project " <A href=format!("/team/projects/{project}")>{project.clone()}</A>
        </p>
        {move || projects.instead("")}
        <Facts training=followed.training/>
        {orders}
        <Show when=move || is_sft.get()>
            <Figure
                letter="A"
                name="Loss"
                unit="by step"
                reading=move || losses.with(LossData::sentence)
                table=Signal::derive(move || losses.with(LossData::table))
            >
                <LossChart data=losses/>
            </Figure>
        </Show>
        <Checkpoints project=of_list.0 id=of_list.1 training=followed.training/>
    }
}
