//! Requests of a person to the server, one at a time.

use capo_api::ClientError;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::{Server, Team};

/// Whether a request is under way, and why the last one was refused.
#[derive(Clone, Copy)]
pub struct Asking {
    /// The server that is asked.
    pub team: Team,
    busy: RwSignal<bool>,
    /// Why the last one was refused.
    pub refused: RwSignal<Option<String>>,
}

impl Default for Asking {
    /// For a part of the page.
    fn default() -> Self {
        Self {
            team: expect_context(),
            busy: RwSignal::new(false),
            refused: RwSignal::new(None),
        }
    }
}

impl Asking {
    /// What says of a button that a request is under way, and nothing is done when it is pressed.
    pub fn disabled(self) -> Option<&'static str> {
        self.busy.get().then_some("true")
    }

    /// Makes a request, unless one is under way; `then` is done when it was granted and this part of the page is still
    /// shown.
    pub fn send<A: 'static>(
        self,
        request: impl AsyncFnOnce(Server) -> Result<A, ClientError> + 'static,
        then: impl FnOnce(A) + 'static,
    ) {
        let team = self.team;
        self.work(async move { team.ask(request).await }, then);
    }

    /// The same of whatever is more than one request, and says in words why it comes to nothing.
    pub fn work<A: 'static>(
        self,
        work: impl Future<Output = Result<A, String>> + 'static,
        then: impl FnOnce(A) + 'static,
    ) {
        if self.busy.get_untracked() {
            return;
        }
        self.busy.set(true);
        self.refused.set(None);
        spawn_local(async move {
            let answer = work.await;
            if self.busy.try_set(false).is_some() {
                return;
            }
            match answer {
                Ok(answer) => then(answer),
                Err(why) => self.refused.set(Some(why)),
            }
        });
    }
}
