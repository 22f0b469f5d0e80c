//! Orders to a run of the server.

use capo_api::{RunOrder, Title, journal_path};
use capo_core::journal::SteerEvent;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::Blob;

use super::run::Run;
use super::server_events;
use crate::storage::{RunRecord, server_id};
use crate::team::{self, Server, sentence};

/// What an order is about, and so where its refusal is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ordered {
    /// Pausing, stopping, going on.
    Course,
    /// Thresholds and multipliers.
    Change,
}

/// An order that the server did not carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotDone {
    /// What it was about.
    pub(super) of: Ordered,
    /// Why, in words.
    pub(super) why: String,
}

impl Run {
    /// Gives an order; that it is refused is shown.
    pub(super) fn order(self, of: Ordered, order: RunOrder) {
        spawn_local(async move {
            let not_done = self.give(order).await.err();
            self.say_not_done(not_done.map(|why| NotDone { of, why }));
        });
    }

    /// Orders a change of thresholds or multipliers; when it is refused, `waited` is what waits for the next round, as
    /// before.
    pub(super) fn order_change(self, order: RunOrder, waited: Option<SteerEvent>) {
        spawn_local(async move {
            let not_done = self.give(order).await.err();
            if not_done.is_some() {
                self.pending.set(waited);
            }
            let of = Ordered::Change;
            self.say_not_done(not_done.map(|why| NotDone { of, why }));
        });
    }

    /// A whole line of its journal from the server; `None` for a run of this browser.
    pub async fn line_on_server(self, number: u64) -> Option<Result<String, String>> {
        let id = self.id();
        Some(server_events::line(server_id(&id)?, number).await)
    }

    /// Its journal from the server, as a file; `None` for a run of this browser.
    pub async fn journal_on_server(self) -> Option<Result<Blob, String>> {
        let id = self.id();
        let path = journal_path(server_id(&id)?, 0);
        let team = self.inner.with_value(|inner| Some(inner.server.as_ref()?.0))?;
        Some(team.ask(async |_: Server| team::file(&path).await).await)
    }

    pub(super) fn say_not_done(self, said: Option<NotDone>) {
        let not_done = self.inner.with_value(|inner| inner.not_done);
        not_done.set(said);
    }

    /// Gives an order and takes in where the run then stands.
    ///
    /// # Errors
    /// Why the server does not carry it out, in words.
    pub async fn give(self, order: RunOrder) -> Result<(), String> {
        let id = self.id();
        let team = self.inner.with_value(|inner| Some(inner.server.as_ref()?.0));
        let (Some(team), Some(on_server)) = (team, server_id(&id)) else {
            return Err("This run is not on the server.".into());
        };
        let ordered = async move |server: Server| server.order_run(on_server, &order).await;
        let shown = team.ask(ordered).await?;
        if self.is_closed() {
            return Ok(());
        }
        self.take_shown(&shown, RunRecord::take_shown);
        self.stand(true);
        self.wake();
        Ok(())
    }
}

/// The name of a run as the server takes it: on one line, and not too long.
pub(super) fn title(name: &str) -> Result<Title, String> {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let name: String = name.chars().map(plain).take(200).collect();
    Title::try_from(name).map_err(|error| sentence(&error))
}
