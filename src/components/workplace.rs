//! A project of one's team in which one may run studies.

use leptos::prelude::*;

use crate::team::Team;

/// A list of them to choose from; the first stands for none, if `none` says what that means.
#[component]
pub fn Workplace(
    /// The id of the field.
    id: &'static str,
    label: &'static str,
    /// The name of the project that is chosen.
    project: RwSignal<Option<String>>,
    /// What it means to choose none.
    #[prop(optional)]
    none: Option<&'static str>,
    /// What stands before a project's title.
    #[prop(optional)]
    before: &'static str,
) -> impl IntoView {
    let team = expect_context::<Team>();
    let change = move |event| {
        let name = event_target_value(&event);
        project.set(Some(name).filter(|name| !name.is_empty()));
    };
    let options = move || {
        let option = move |place: capo_api::ProjectShown| {
            let name = place.name.clone();
            let is_chosen = move || project.with(|project| project.as_ref() == Some(&name));
            view! {
                <option value=place.name.clone() prop:selected=is_chosen>
                    {before} {place.title}
                </option>
            }
        };
        team.workplaces().into_iter().map(option).collect_view()
    };
    // One that was chosen stays in sight where one may run nothing any more.
    let gone = move || {
        let chosen = project.get()?;
        let may = team.workplaces().iter().any(|place| place.name == chosen);
        let name = chosen.clone();
        (!may).then(|| view! { <option value=name prop:selected=true>{before} {chosen}</option> })
    };
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <select id=id on:change=change>
                {none.map(|none| view! { <option value="">{none}</option> })}
                {gone}
                {options}
            </select>
        </div>
    }
}
