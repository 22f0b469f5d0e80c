//! A prompt beside another one, example by example.

mod answers;
mod notes;

use std::collections::BTreeSet;

use capo_core::reading::metrics::StudiedMetric;
use leptos::prelude::*;
use leptos_router::components::A;
use leptos_router::hooks::use_query_map;
use leptos_router::location::Url;

use self::answers::{Answers, Opened};
use self::notes::Noted;
use crate::components::{Plate, Spacer, Toggle, Viewport, Window};
use crate::download;
use crate::format::{NOTHING, count, counted};
use crate::live::Run;
use crate::run::by_example::{ByExample, ExampleChange, Pair};
use crate::run::studied::Shown as _;

/// The name of the open example in the address.
const EXAMPLE: &str = "example";

/// One of the two prompts.
#[derive(Clone, PartialEq)]
pub(super) struct Side {
    /// The run that it is of.
    pub run: Run,
    /// What it is called.
    pub name: String,
}

/// Which examples are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    All,
    Of(ExampleChange),
    Over,
    Noted,
}

impl Filter {
    const ALL: [Self; 6] = [
        Self::All,
        Self::Of(ExampleChange::Better),
        Self::Of(ExampleChange::Worse),
        Self::Of(ExampleChange::OtherCosts),
        Self::Over,
        Self::Noted,
    ];

    fn words(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::Of(fate) => fate.word(),
            Self::Over => "over a threshold",
            Self::Noted => "with notes",
        }
    }

    fn shows(self, pair: &Pair, noted: &BTreeSet<String>) -> bool {
        match self {
            Self::All => true,
            Self::Of(fate) => pair.fate == fate,
            Self::Over => !pair.over.is_empty(),
            Self::Noted => noted.contains(&pair.example),
        }
    }
}

/// Every held-out example with both prompts, and what they answered to the one that the address names.
#[component]
pub(super) fn ByExamplePlate(
    /// The two prompts.
    sides: Memo<[Side; 2]>,
    /// What there is to show.
    found: Memo<Option<ByExample>>,
    /// The letter of the plate.
    letter: Signal<&'static str>,
    /// The path of the page.
    #[prop(into)]
    page: String,
    /// What chooses the second prompt.
    #[prop(into, optional)]
    choice: ViewFn,
) -> impl IntoView {
    let (choice, page) = (StoredValue::new(choice), StoredValue::new(page));
    let called = move |side: usize| sides.with(|sides| sides[side].name.clone());
    // Examples of further workloads are measured by other metrics.
    let of_one = move || {
        let workload = found.with(|found| found.as_ref()?.workload.clone());
        workload
            .map(|name| format!(" Only the examples of “{name}”, which measures the objective, are listed."))
    };
    let query = use_query_map();
    let opened = Memo::new(move |_| {
        let named = query.with(|query| query.get(EXAMPLE))?;
        found.with(|found| {
            let found = found.as_ref()?;
            // The router decodes an address once more than it encodes it.
            let is_named = |pair: &&Pair| Url::unescape(&pair.example) == named;
            Some(Opened {
                example: found.pairs.iter().find(is_named)?.example.clone(),
                workload: found.workload.clone(),
                prompts: found.prompts,
                sides: sides.get(),
            })
        })
    });
    // The page with another example open, or none.
    let address = move |example: Option<&str>| {
        let mut query = query.get();
        query.remove(EXAMPLE);
        if let Some(example) = example {
            query.insert(EXAMPLE, example.to_owned());
        }
        page.with_value(|page| format!("{page}{}", query.to_query_string()))
    };
    let notes = Noted::of(sides);
    let noted = Memo::new(move |_| {
        let prompts = found.with(|found| found.as_ref().map(|found| found.prompts));
        let noted = notes.zip(prompts).map(|(notes, prompts)| notes.examples(prompts));
        noted.unwrap_or_default()
    });
    let filter = RwSignal::new(Filter::All);
    let places = Memo::new(move |_| {
        let filter = filter.get();
        found.with(|found| {
            let pairs = found.iter().flat_map(|found| found.pairs.iter().enumerate());
            let shown = pairs.filter(|(_, pair)| noted.with(|noted| filter.shows(pair, noted)));
            shown.map(|(place, _)| place).collect::<Vec<usize>>()
        })
    });
    let window = Window::over(Signal::derive(move || places.with(Vec::len)));
    let drawn = move || window.rows(places, Clone::clone);
    let filters = move |this: Filter| {
        let many = move || {
            found.with(|found| {
                let pairs = found.iter().flat_map(|found| &found.pairs);
                noted.with(|noted| count(pairs.filter(|pair| this.shows(pair, noted)).count() as u64))
            })
        };
        view! {
            <Toggle chosen=filter this>
                {this.words()} " " {many}
            </Toggle>
        }
    };
    let heads = move || {
        found.with(|found| {
            let metrics = found.iter().flat_map(|found| &found.metrics);
            metrics
                .map(|metric| view! { <th scope="col" class="num">{metric.label()}</th> })
                .collect_view()
        })
    };
    let left_out = move || {
        let missing = found.with(|found| found.as_ref().map_or(0, |found| found.missing));
        (missing > 0).then(|| {
            format!(
                " Not measured with both prompts: {}.",
                counted(missing, "example")
            )
        })
    };
    let failed = RwSignal::new(None::<String>);
    let take = move |_| {
        let offered = found.with_untracked(|found| {
            let found = found.as_ref()?;
            let sides = sides.get_untracked();
            let name = sides[1].run.peek(|folded| {
                let name = &folded.state.study()?.study.study.name;
                Some(download::file_name(name, Some(found.prompts[1])))
            })?;
            let columns = notes.map(|notes| notes.columns(found.prompts));
            let csv = found.csv(
                sides.each_ref().map(|side| side.name.as_str()),
                &columns.unwrap_or_default(),
            );
            Some(csv.and_then(|csv| download::offer_text(&format!("{name}-examples.csv"), csv)))
        });
        failed.set(offered.and_then(Result::err));
    };
    let row = move |place: usize| {
        found.with(|found| {
            let found = found.as_ref()?;
            let pair = found.pairs.get(place)?;
            let example = pair.example.clone();
            Some(row(found, pair, opened, noted, move || address(Some(&example))))
        })
    };
    view! {
        <Show when=move || found.with(Option::is_some)>
            <Plate
                letter
                row=true
                title=move || {
                    view! {
                        "Example by example "
                        <span class="unit">"held out, " {move || called(0)} " → " {move || called(1)}</span>
                    }
                }
                beside=move || {
                    view! {
                        <div class="row">
                            {choice.with_value(ViewFn::run)}
                            <span class="seg" role="group" aria-label="Examples shown">
                                {Filter::ALL
                                    .into_iter()
                                    .filter(|this| *this != Filter::Noted || notes.is_some())
                                    .map(filters)
                                    .collect_view()}
                            </span>
                            <button type="button" on:click=take>
                                "Table (CSV)"
                            </button>
                        </div>
                    }
                }
            >
                <Viewport window name="Example by example, scrolls both ways">
                    <table class="sticky-1" aria-rowcount=move || places.with(Vec::len) + 1>
                        <thead>
                            <tr>
                                <th scope="col">"Example"</th>
                                <th scope="col">"Became"</th>
                                {heads}
                                <th scope="col">"Over by itself"</th>
                            </tr>
                        </thead>
                        <tbody>
                            {window.table_spacer(Spacer::Above)}
                            <For each=drawn key=|place| *place let(place)>
                                {move || row(place)}
                            </For>
                            {window.table_spacer(Spacer::Below)}
                        </tbody>
                    </table>
                </Viewport>
                <p class="reading">
                    "Became: by the objective, else by the costs. A threshold holds for the mean, so single examples may be over it \
                     with the "
                    {move || called(1)} ". Each opens what both prompts answered." {of_one} {left_out}
                </p>
                {move || opened.get().map(|opened| view! { <Answers opened noted=notes close=move || address(None)/> })}
                {move || failed.get().map(|why| view! { <p class="note is-i" role="alert">{why}</p> })}
            </Plate>
        </Show>
    }
}

fn row<H>(
    found: &ByExample,
    pair: &Pair,
    opened: Memo<Option<Opened>>,
    noted: Memo<BTreeSet<String>>,
    href: H,
) -> impl IntoView + use<H>
where
    H: Fn() -> String + Send + Sync + 'static,
{
    let [example, own, tagged] = [(); 3].map(|()| pair.example.clone());
    // Else each would say that it leads to the page shown.
    let current = move || {
        let is_open = |opened: &Option<Opened>| opened.as_ref().is_some_and(|opened| opened.example == own);
        opened.with(is_open).to_string()
    };
    let is_noted = Memo::new(move |_| noted.with(|noted| noted.contains(&tagged)));
    let tag = move || {
        is_noted
            .get()
            .then(|| view! { " " <span class="tag plain">"noted"</span> })
    };
    let cell = |(metric, [first, second]): (&StudiedMetric, &[Option<f64>; 2])| {
        let shown = |value: &Option<f64>| {
            value.map_or_else(
                || NOTHING.to_owned(),
                |value| metric.quantity().measurement(&metric.spec, value),
            )
        };
        let is_same = first == second;
        let (first, second) = (shown(first), shown(second));
        view! { <td class="num" class:quiet=is_same>{first} " → " {second}</td> }
    };
    let cells = found.metrics.iter().zip(&pair.values).map(cell).collect_view();
    view! {
        <tr>
            <th scope="row">
                <A href scroll=false attr:aria-current=current>
                    {example}
                </A>
                {tag}
            </th>
            <td>{pair.fate.word()}</td>
            {cells}
            <td>{pair.over.join(", ")}</td>
        </tr>
    }
}
