//! Tables of what the server lists.

use std::rc::Rc;

use capo_api::ClientError;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::form::Refused;
use crate::components::{TryAgain, When};
use crate::team::{Asking, Server, Team};

type Listed<T> = Result<Vec<T>, String>;
type Fetch<T> = Rc<dyn Fn() -> LocalBoxFuture<'static, Listed<T>>>;

/// What the server lists, asked for anew whenever this page has changed something on it.
pub(super) struct Listing<T: 'static> {
    listed: RwSignal<Option<Listed<T>>>,
    key: fn(&T) -> String,
    fetch: StoredValue<Fetch<T>, LocalStorage>,
    asked: StoredValue<u32>,
}

impl<T> Clone for Listing<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Listing<T> {}

impl<T: Clone + PartialEq + Send + Sync + 'static> Listing<T> {
    /// What `fetch` asks for; rows are told apart by their `key`.
    pub(super) fn new(
        key: fn(&T) -> String,
        fetch: impl AsyncFn(Server) -> Result<Vec<T>, ClientError> + 'static,
    ) -> Self {
        let team = expect_context::<Team>();
        let fetch = Rc::new(fetch);
        let fetch: Fetch<T> = Rc::new(move || {
            let fetch = fetch.clone();
            async move { team.ask(&*fetch).await }.boxed_local()
        });
        let listing = Self {
            listed: RwSignal::new(None),
            key,
            fetch: StoredValue::new_local(fetch),
            asked: StoredValue::new(0),
        };
        Effect::new(move |_| {
            team.changes();
            listing.load();
        });
        listing
    }

    /// Asks for the rows, once more where something has changed elsewhere.
    pub(super) fn load(self) {
        let fetched = self.fetch.with_value(|fetch| fetch());
        self.asked.update_value(|asked| *asked += 1);
        let place = self.asked.get_value();
        spawn_local(async move {
            let fetched = fetched.await;
            // The page may be left by then, and an answer overtaken by a later one.
            if self.asked.try_get_value() == Some(place) {
                self.listed.set(Some(fetched));
            }
        });
    }

    /// All rows; a reactive caller is told of changes.
    pub(super) fn rows(self) -> Vec<T> {
        self.listed
            .with(|listed| listed.iter().flatten().flatten().cloned().collect())
    }

    /// A row, as it was last.
    pub(super) fn row(self, row: T) -> Memo<T> {
        let key = (self.key)(&row);
        Memo::new(move |last: Option<&T>| {
            let now = self.rows().into_iter().find(|row| (self.key)(row) == key);
            now.or_else(|| last.cloned()).unwrap_or_else(|| row.clone())
        })
    }

    /// Takes a row off the page, before the list without it arrives.
    pub(super) fn without(self, row: &T) -> Callback<()> {
        let key = (self.key)(row);
        Callback::new(move |()| self.change(|rows| rows.retain(|row| (self.key)(row) != key)))
    }

    /// Changes the rows, until they are asked for anew.
    pub(super) fn change(self, change: impl FnOnce(&mut Vec<T>)) {
        self.listed.update(|listed| {
            if let Some(Ok(rows)) = listed {
                change(rows);
            }
        });
    }

    /// What stands there instead of rows: that they are asked for, why they cannot be had, or `empty`.
    pub(super) fn instead(self, empty: &'static str) -> Option<AnyView> {
        let quiet = |words: &'static str| Some(view! { <p class="empty">{words}</p> }.into_any());
        self.listed.with(|listed| match listed {
            None => quiet("Asking the server."),
            Some(Ok(rows)) if rows.is_empty() => quiet(empty),
            Some(Ok(_)) => None,
            Some(Err(why)) => {
                Some(view! { <TryAgain what=why.clone() again=move |()| self.load()/> }.into_any())
            }
        })
    }
}

/// A plate with a table, and what can be added to it underneath.
#[component]
pub(super) fn List<T, R>(
    id: &'static str,
    #[prop(into)] title: String,
    listing: Listing<T>,
    /// Heads of the columns; an empty one stands over buttons.
    columns: &'static [&'static str],
    /// What stands there instead of rows.
    empty: &'static str,
    /// The cells of a row; the first is its name.
    cells: R,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView
where
    T: Clone + PartialEq + Send + Sync + 'static,
    R: Fn(T) -> Vec<AnyView> + Clone + Send + 'static,
{
    let scrolls = format!("{title}, scrolls sideways");
    let head = |head: &'static str| match head {
        "" => view! { <span class="sr">"Action"</span> }.into_any(),
        head => head.into_any(),
    };
    let heads = columns
        .iter()
        .map(|name| view! { <th scope="col">{head(name)}</th> });
    let row = move |row: T| {
        let mut cells = cells(row).into_iter();
        let name = cells.next();
        let rest = cells.map(|cell| view! { <td>{cell}</td> });
        view! { <tr><th scope="row">{name}</th> {rest.collect_view()}</tr> }
    };
    view! {
        <section class="plate" id=format!("{id}-plate") aria-labelledby=id>
            <header>
                <h2 class="pt" id=id>{title}</h2>
            </header>
            <div class="scroll" tabindex="0" role="group" aria-label=scrolls>
                <table class="mid listed">
                    <thead>
                        <tr>{heads.collect_view()}</tr>
                    </thead>
                    <tbody>
                        <For each=move || listing.rows() key=move |row| (listing.key)(row) children=row/>
                    </tbody>
                </table>
            </div>
            {move || listing.instead(empty)}
            {children.map(|children| view! { <div class="stack close">{children()}</div> })}
        </section>
    }
}

/// A button that adds the rows after the last one, as long as there are any.
#[component]
pub(super) fn Earlier<T, R>(
    listing: Listing<T>,
    /// Whether nothing comes after a row.
    is_end: fn(&T) -> bool,
    /// Reads those after a row.
    read: R,
) -> impl IntoView
where
    T: Clone + PartialEq + Send + Sync + 'static,
    R: AsyncFn(Server, T) -> Result<Vec<T>, ClientError> + 'static,
{
    let asking = Asking::default();
    let read = StoredValue::new_local(Rc::new(read));
    let last = Memo::new(move |_| listing.rows().pop().filter(|last| !is_end(last)));
    let more = move |_| {
        let (read, Some(last)) = (read.get_value(), last.get_untracked()) else {
            return;
        };
        let request = async move |server: Server| read(server, last).await;
        asking.send(request, move |more: Vec<T>| {
            listing.change(|rows| rows.extend(more));
        });
    };
    view! {
        <Refused asking/>
        <Show when=move || last.with(Option::is_some)>
            <div class="row">
                <button type="button" aria-disabled=move || asking.disabled() on:click=more>
                    "Earlier"
                </button>
            </div>
        </Show>
    }
}

/// A cell with a moment.
pub(super) fn when(at: String) -> AnyView {
    view! { <When at/> }.into_any()
}
