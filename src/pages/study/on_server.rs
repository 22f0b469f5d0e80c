//! Running the study on the team's server instead of in this browser.

use capo_api::Role;
use leptos::prelude::*;

use crate::components::Workplace;
use crate::team::Team;

/// Where the study is to run, and when. Copies are the same.
#[derive(Clone, Copy)]
pub(super) struct OnServer {
    team: Team,
    chosen: RwSignal<Option<String>>,
    start_at: RwSignal<String>,
}

impl OnServer {
    /// In this browser, until something else is chosen.
    pub(super) fn new() -> Self {
        let team = expect_context::<Team>();
        team.read_projects();
        let chosen = RwSignal::new(None);
        Effect::new(move |before: Option<u32>| {
            let departures = team.departures();
            if before.is_some_and(|before| before != departures) {
                chosen.set(None);
            }
            departures
        });
        Self {
            team,
            chosen,
            start_at: RwSignal::new(String::new()),
        }
    }

    /// Has it run in a project, unless one may only read there, or in this browser.
    pub(super) fn choose(self, project: Option<String>) {
        let may = |project: &String| untrack(|| self.team.role(project)) != Some(Role::Viewer);
        self.chosen.set(project.filter(may));
    }

    /// The project on whose account it is to run; none when it runs in this browser.
    pub(super) fn project(self) -> Option<String> {
        let chosen = self.chosen.get()?;
        let may = self.team.workplaces().iter().any(|place| place.name == chosen);
        may.then_some(chosen)
    }

    /// Why it cannot run where it was chosen to run, if it cannot.
    pub(super) fn gone(self) -> Option<String> {
        let chosen = self.chosen.get()?;
        let may = self.team.workplaces().iter().any(|place| place.name == chosen);
        (!may).then(|| {
            format!("You may not run studies in the project {chosen} just now. Sign in again, or choose where to run it.")
        })
    }

    /// When it is to start, in RFC 3339; now unless something was typed.
    ///
    /// # Errors
    /// That what was typed is no moment to come.
    pub(super) fn moment(self) -> Result<Option<String>, String> {
        let typed = self.start_at.get_untracked();
        if typed.is_empty() {
            return Ok(None);
        }
        let moment = js_sys::Date::new(&typed.as_str().into());
        if moment.get_time().is_nan() || moment.get_time() <= js_sys::Date::now() {
            return Err(
                "The time at which it is to start has passed. Choose a later one, or clear the field.".into(),
            );
        }
        Ok(Some(moment.to_iso_string().into()))
    }
}

/// The choice of where to run, for who may run studies in a project.
#[component]
pub(super) fn WhereToRun(on_server: OnServer) -> impl IntoView {
    let (team, chosen, start_at) = (on_server.team, on_server.chosen, on_server.start_at);
    // Somewhere else can be chosen where one may not run it any more.
    let can = Memo::new(move |_| chosen.with(Option::is_some) || !team.workplaces().is_empty());
    let is_there = Memo::new(move |_| on_server.project().is_some());
    view! {
        <Show when=move || can.get()>
            <Workplace
                id="run-where"
                label="Where it runs"
                project=chosen
                none="In this browser"
                before="On the server, "
            />
        </Show>
        <Show when=move || is_there.get()>
            <p class="note">
                "It goes on there when this browser is closed, asks models with the keys that the project shares, and \
                 needs none of yours. Everybody in the project can watch it."
            </p>
            <div class="field">
                <label for="run-at">"Not before"</label>
                <input
                    id="run-at"
                    type="datetime-local"
                    prop:value=move || start_at.get()
                    on:input=move |event| start_at.set(event_target_value(&event))
                />
                <span class="note">"Empty: as soon as a worker is free."</span>
            </div>
        </Show>
    }
}
