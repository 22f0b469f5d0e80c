//! A version of a prompt: where it comes from, its text against another one's, what speaks for it.

use capo_api::{ClientError, LabelName, PRODUCTION, RunShown, VersionShown, WhichVersion};
use leptos::prelude::*;
use leptos_router::components::A;

use super::against::{Against, other, selected};
use super::evidence::Speaks;
use super::place::{Move, Page, tags};
use crate::components::{DiffText, When};
use crate::diff::PromptDiff;
use crate::format::Quantity;
use crate::pages::team::form::{Field, Form, Line, named};
use crate::pages::team::list::Listing;
use crate::storage::mirror_id;
use crate::team::{Asking, Server};

/// The version that the address means.
#[component]
pub(super) fn Selected(page: Page) -> impl IntoView {
    let selected = selected(page);
    move || selected.get().map(|number| view! { <Version page number/> })
}

/// A version, and the run that it comes from, unless that is deleted.
type Seen = (VersionShown, Option<RunShown>);

#[component]
fn Version(page: Page, number: u64) -> impl IntoView {
    let place = page.place();
    let key = |(version, _): &Seen| version.version.to_string();
    let listing = Listing::new(key, async move |server: Server| {
        let which = WhichVersion::Number(number);
        let version = server.prompt(&place.project, &place.prompt, which).await?;
        let run = match &version.run {
            Some(run) => run_of(&server, run).await?,
            None => None,
        };
        Ok(vec![(version, run)])
    });
    let seen = Memo::new(move |_| listing.rows().pop());
    let read = move |read: fn(&VersionShown) -> String| {
        seen.with(|seen| seen.as_ref().map(|(version, _)| read(version)))
    };
    let text = Memo::new(move |_| read(|version| version.text.clone()));
    let evidence =
        Memo::new(move |_| seen.with(|seen| seen.as_ref().map(|(version, _)| version.evidence.clone())));
    let other = other(page, number);
    let length = move || read(length);
    let about = move || seen.get().map(|(version, run)| view! { <About version run/> });
    let prompt = move || match (text.get()?, other.get()) {
        (text, Some(other)) => Some(view! { <Diff page text other/> }.into_any()),
        (text, None) => Some(view! { <div class="prompt snug">{text}</div> }.into_any()),
    };
    view! {
        <section class="plate" id="version-plate" aria-labelledby="version">
            <header>
                <h2 class="pt" id="version">"Version " {number} " " <span class="unit">{length}</span></h2>
                <Against page this=number other/>
            </header>
            {move || listing.instead("")}
            {about}
            {prompt}
            {move || evidence.get().map(|evidence| view! { <div class="stack close"><Speaks evidence/></div> })}
            <Show when=move || page.may_write() && seen.with(Option::is_some)>
                <PutLabel page number/>
            </Show>
        </section>
    }
}

/// A run, unless it is deleted.
async fn run_of(server: &Server, run: &str) -> Result<Option<RunShown>, ClientError> {
    match server.run(run).await {
        Ok(detail) => Ok(Some(detail.run)),
        Err(error) if error.status() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// "1.70k characters".
fn length(version: &VersionShown) -> String {
    let characters = version.text.chars().count();
    format!(
        "{} characters",
        Quantity::Thousands.value(characters as f64 / 1000.0)
    )
}

/// Its labels, its note, where it comes from.
#[component]
fn About(version: VersionShown, run: Option<RunShown>) -> impl IntoView {
    let from = match (run, version.run) {
        (Some(run), _) => {
            let address = format!("/run/{}", mirror_id(&run.id));
            view! { ", from the run " <A href=address>{run.name}</A> }.into_any()
        }
        (None, Some(_)) => ", from a run that is deleted".into_any(),
        (None, None) => ", as a text".into_any(),
    };
    view! {
        <p>{tags(version.labels)} {version.note}</p>
        <p class="note">
            "Added by " {version.created_by} ", " <When at=version.created_at/> {from} "."
        </p>
    }
}

/// The text against that of another version.
#[component]
fn Diff(page: Page, text: String, other: u64) -> impl IntoView {
    let place = page.place();
    let key = |version: &VersionShown| version.version.to_string();
    let listing = Listing::new(key, async move |server: Server| {
        let which = WhichVersion::Number(other);
        Ok(vec![server.prompt(&place.project, &place.prompt, which).await?])
    });
    let diff = Memo::new(move |_| Some(PromptDiff::new(&listing.rows().pop()?.text, &text)));
    let shown = move || {
        diff.get().map(|diff| {
            let words = diff.words();
            view! {
                <div class="prompt snug">
                    <DiffText diff/>
                </div>
                <p class="reading">"Against version " {other} ". " {words}</p>
            }
        })
    };
    view! {
        {move || listing.instead("")}
        {shown}
    }
}

/// Asks about moving a label to this version.
#[component]
fn PutLabel(page: Page, number: u64) -> impl IntoView {
    let asking = Asking::default();
    let line = Line::default();
    let choices = Signal::derive(move || {
        let mut labels = page.labels();
        labels.extend([PRODUCTION, "candidate"].map(str::to_owned));
        labels.sort();
        labels.dedup();
        labels
    });
    let submit = move || {
        let Some(label) = line.read(named::<LabelName>) else {
            return;
        };
        page.asked.set(Some(Move {
            label: label.as_str().to_owned(),
            to: number,
        }));
    };
    let note = "Such as production, or candidate.";
    view! {
        <div class="stack close">
            <h3>"Move a label to this version"</h3>
            <Form asking words=("Look and move…", "") submit>
                <Field id="label-name" label="Label" line note choices/>
            </Form>
        </div>
    }
}
