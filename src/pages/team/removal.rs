//! Taking something away, once somebody was asked.

use capo_api::ClientError;
use leptos::html::{Button, Dialog};
use leptos::prelude::*;

use super::form::{Field, Form, Line};
use crate::components::{close_dialog, open_dialog, removing_by};
use crate::team::{Asking, Server};

/// A button, and the question that it asks; the safe answer has the focus.
#[component]
pub(super) fn Removal<R>(
    /// What is done, and what is said meanwhile.
    words: (&'static str, &'static str),
    /// To what, such as "the token nightly".
    of: String,
    /// What comes of it.
    consequence: &'static str,
    /// What is typed to confirm it.
    #[prop(optional, into)]
    typed: Option<String>,
    /// Asks the server.
    remove: R,
    /// Takes it off the page.
    gone: Callback<()>,
) -> impl IntoView
where
    R: AsyncFn(Server) -> Result<(), ClientError> + Clone + 'static,
{
    let asking = Asking::default();
    let (dialog, opener) = (NodeRef::<Dialog>::new(), NodeRef::<Button>::new());
    let line = Line::default();
    let open = move |_| {
        asking.refused.set(None);
        line.clear();
        open_dialog(dialog);
    };
    let close = move || close_dialog(dialog);
    let expected = typed.clone();
    let submit = move || {
        let confirmed = |text: &str| match &expected {
            Some(expected) if text.trim() != expected => Err(format!("Type {expected} to confirm.")),
            _ => Ok(()),
        };
        if line.read(confirmed).is_some() {
            asking.send(remove.clone(), move |()| {
                close();
                let button = opener.get_untracked().map(Into::into);
                removing_by(button, || gone.run(()));
            });
        }
    };
    let question = format!("{} {of}?", words.0);
    let label = question.clone();
    let field = typed.map(|_| view! { <Field id="confirm-name" label="Its name, to confirm" line/> });
    view! {
        <button type="button" class="link" node_ref=opener aria-haspopup="dialog" on:click=open>
            {words.0}
            <span class="sr">" " {of}</span>
        </button>
        <dialog node_ref=dialog aria-label=label>
            <Form asking words keep=Callback::new(move |()| close()) submit>
                <h2>{question}</h2>
                <p>{consequence}</p>
                {field}
            </Form>
        </dialog>
    }
}
