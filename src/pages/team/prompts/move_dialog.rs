//! Moving a label, with the numbers of both versions in front of who does it.

use capo_api::{ClientError, LabelMove, VersionShown, WhichVersion};
use leptos::ev::SubmitEvent;
use leptos::html::Dialog;
use leptos::prelude::*;

use super::evidence::Speaks;
use super::place::{Move, Page, Place};
use crate::components::{Message, close_dialog, open_dialog};
use crate::pages::team::form::Refused;
use crate::team::{Asking, Server, sentence};

/// The version that a label is on, and the one that it is to be on.
#[derive(Debug, Clone, PartialEq)]
struct Compared {
    now: Option<VersionShown>,
    to: VersionShown,
}

impl Compared {
    async fn read(server: &Server, place: &Place, asked: &Move) -> Result<Self, ClientError> {
        let Place { project, prompt } = place;
        let version = async |number| server.prompt(project, prompt, WhichVersion::Number(number)).await;
        let now = match server.label(project, prompt, &asked.label).await? {
            Some(label) => Some(version(label.version).await?),
            None => None,
        };
        Ok(Self {
            now,
            to: version(asked.to).await?,
        })
    }

    fn is_there(&self) -> bool {
        self.was() == self.to.version
    }

    fn was(&self) -> u64 {
        self.now.as_ref().map_or(0, |now| now.version)
    }
}

/// What came of a move.
enum Came {
    Moved,
    /// Somebody else moved the label meanwhile: what the server says of that.
    MovedMeanwhile(String),
}

/// Shows what speaks for both versions, and moves the label.
#[component]
pub(super) fn MoveDialog(page: Page) -> impl IntoView {
    let node = NodeRef::<Dialog>::new();
    let question = move || {
        let asked = page.asked.get()?;
        Some(view! { <Question page asked node/> })
    };
    view! {
        <dialog class="wide" node_ref=node aria-labelledby="move-title" on:close=move |_| page.asked.set(None)>
            {question}
        </dialog>
    }
}

#[component]
fn Question(page: Page, asked: Move, node: NodeRef<Dialog>) -> impl IntoView {
    let (reading, moving) = (Asking::default(), Asking::default());
    let compared = RwSignal::new(None::<Compared>);
    let meanwhile = RwSignal::new(None::<String>);
    let title = format!("Move {} to version {}?", asked.label, asked.to);
    let asked = StoredValue::new(asked);
    let look = move || {
        compared.set(None);
        let (place, asked) = (page.place(), asked.get_value());
        let request = async move |server: Server| Compared::read(&server, &place, &asked).await;
        reading.send(request, move |read| compared.set(Some(read)));
    };
    look();
    Effect::new(move |_| {
        if node.get().is_some() {
            open_dialog(node);
        }
    });
    let close = move || close_dialog(node);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let Some(seen) = compared.get_untracked() else {
            return;
        };
        meanwhile.set(None);
        let (place, Move { label, to: version }) = (page.place(), asked.get_value());
        let to = LabelMove {
            version,
            was: Some(seen.was()),
            seen: seen.to.fingerprint,
        };
        let request = async move |server: Server| {
            let moved = server.move_label(&place.project, &place.prompt, &label, &to);
            match moved.await {
                Ok(_) => Ok(Came::Moved),
                Err(error) if error.status() == Some(409) => Ok(Came::MovedMeanwhile(sentence(&error))),
                Err(error) => Err(error),
            }
        };
        moving.send(request, move |came| match came {
            Came::Moved => close(),
            Came::MovedMeanwhile(words) => {
                meanwhile.set(Some(words));
                look();
            }
        });
    };
    let state = move || match compared.get() {
        Some(compared) => view! { <Both compared/> }.into_any(),
        None if reading.disabled().is_some() => {
            view! { <p role="status">"Asking the server."</p> }.into_any()
        }
        None => ().into_any(),
    };
    let overtaken = move || {
        let what = meanwhile.get()?;
        Some(view! {
            <Message what="Somebody moved it meanwhile.">
                <p>{what} " Below is what it is on now."</p>
            </Message>
        })
    };
    let can = Memo::new(move |_| compared.with(|seen| seen.as_ref().is_some_and(|seen| !seen.is_there())));
    view! {
        <form on:submit=submit>
            <header>
                <h2 id="move-title">{title}</h2>
            </header>
            {overtaken}
            {state}
            <Refused asking=reading/>
            <Refused asking=moving/>
            <footer>
                <button type="button" autofocus on:click=move |_| close()>
                    "Cancel"
                </button>
                <Show when=move || can.get()>
                    <button type="submit" aria-disabled=move || moving.disabled()>
                        {move || if moving.disabled().is_some() { "Moving…" } else { "Move" }}
                    </button>
                </Show>
            </footer>
        </form>
    }
}

/// Both versions side by side.
#[component]
fn Both(compared: Compared) -> impl IntoView {
    let is_there = compared.is_there();
    let now = match compared.now {
        _ if is_there => view! { <p>"It is on this version."</p> }.into_any(),
        Some(now) => view! { <Side title=format!("Now: version {}", now.version) version=now/> }.into_any(),
        None => view! { <p>"There is no such label yet."</p> }.into_any(),
    };
    let to = compared.to;
    view! {
        <div class="g g-2">
            <Side title=format!("Then: version {}", to.version) version=to/>
            <div>{now}</div>
        </div>
    }
}

#[component]
fn Side(title: String, version: VersionShown) -> impl IntoView {
    let note = version.note.map(|note| view! { <p class="note">{note}</p> });
    view! {
        <section class="stack close">
            <h3>{title}</h3>
            {note}
            <Speaks evidence=version.evidence/>
            <details class="fold">
                <summary>"Its text"</summary>
                <div class="prompt inset">{version.text}</div>
            </details>
        </section>
    }
}
