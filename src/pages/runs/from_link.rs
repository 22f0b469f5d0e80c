//! A run that an address carries.

use js_sys::{Array, Uint8Array};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use web_sys::File;

use crate::components::Message;
use crate::frame::imports::Imports;
use crate::live::Runs;
use crate::run_link::carried;

/// What messages and the list call the file that is made of it.
const CALLED: &str = "a link";

/// Asks whether the run of this address is to be kept, which anybody may have written, and reads it as a journal from a
/// file.
#[component]
pub(super) fn FromLink() -> impl IntoView {
    let (runs, imports) = (expect_context::<Runs>(), expect_context::<Imports>());
    let fragment = use_location().hash;
    let found = Memo::new(move |_| fragment.with(|fragment| carried(fragment)));
    let navigate = use_navigate();
    let leave = Callback::new(move |()| {
        let replace = NavigateOptions {
            replace: true,
            ..NavigateOptions::default()
        };
        navigate("/runs", replace);
    });
    let navigate = use_navigate();
    let failed = RwSignal::new(None::<&'static str>);
    let open = Callback::new(move |()| {
        let file = found.with_untracked(|found| {
            let journal = found.as_ref()?.as_ref().ok()?;
            File::new_with_u8_array_sequence(&Array::of1(&Uint8Array::from(&journal[..])), CALLED).ok()
        });
        let Some(file) = file else {
            return failed.set(Some("This browser made no file of it. Its memory may be short."));
        };
        leave.run(());
        let navigate = navigate.clone();
        imports.read(runs, file, move |run| {
            navigate(&format!("/run/{}", run.id()), NavigateOptions::default());
        });
    });
    // Of an address that carries one.
    let wrong = move || found.with(|found| Some(failed.get().or(found.as_ref()?.as_ref().err().copied())));
    let question = move || {
        view! {
            <Message what="This link carries a run." info=true>
                <p>
                    "Whoever made the link wrote what it says. It is checked as a journal from a file is, kept in this \
                     browser, and can be deleted again. Without traces, nothing goes on from it."
                </p>
                <div class="row">
                    <button type="button" on:click=move |_| open.run(())>
                        "Open the run"
                    </button>
                    <button type="button" class="link" on:click=move |_| leave.run(())>
                        "Leave it"
                    </button>
                </div>
            </Message>
        }
    };
    move || {
        wrong().map(|wrong| match wrong {
            None => question().into_any(),
            Some(why) => view! { <Message what="The link does not read."><p>{why}</p></Message> }.into_any(),
        })
    }
}
