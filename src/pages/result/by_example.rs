//! The best prompt beside the seed prompt, example by example.

use capo_core::reading::metrics::StudiedMetric;
use leptos::prelude::*;
use leptos_router::components::A;

use super::prompt::Best;
use super::take_away::file_name;
use crate::components::{Plate, Spacer, Toggle, Viewport, Window};
use crate::download;
use crate::format::{NOTHING, count, counted};
use crate::live::Run;
use crate::pages::candidate::held_out_trace;
use crate::run::by_example::{ByExample, ExampleChange, Pair};
use crate::run::studied::Shown as _;

/// Which examples are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    All,
    Of(ExampleChange),
    Over,
}

impl Filter {
    const ALL: [Self; 5] = [
        Self::All,
        Self::Of(ExampleChange::Better),
        Self::Of(ExampleChange::Worse),
        Self::Of(ExampleChange::OtherCosts),
        Self::Over,
    ];

    fn words(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::Of(fate) => fate.word(),
            Self::Over => "over a threshold",
        }
    }

    fn shows(self, pair: &Pair) -> bool {
        match self {
            Self::All => true,
            Self::Of(fate) => pair.fate == fate,
            Self::Over => !pair.over.is_empty(),
        }
    }
}

/// Every held-out example with both prompts, and where each can be read.
#[component]
pub(super) fn ByExamplePlate(
    run: Run,
    /// What there is to show.
    found: Memo<Option<ByExample>>,
    /// The letter of the plate.
    letter: Signal<&'static str>,
) -> impl IntoView {
    let best = Memo::new(move |_| run.read(|folded| Best::of(folded).map(|best| best.called())));
    let best = move || best.get().unwrap_or("best prompt");
    // Examples of further workloads are measured by other metrics.
    let of_one = move || {
        let workload = found.with(|found| found.as_ref()?.workload.clone());
        workload
            .map(|name| format!(" Only the examples of “{name}”, which measures the objective, are listed."))
    };
    let filter = RwSignal::new(Filter::All);
    let places = Memo::new(move |_| {
        let filter = filter.get();
        found.with(|found| {
            let pairs = found.iter().flat_map(|found| found.pairs.iter().enumerate());
            let shown = pairs.filter(|(_, pair)| filter.shows(pair));
            shown.map(|(place, _)| place).collect::<Vec<usize>>()
        })
    });
    let window = Window::over(Signal::derive(move || places.with(Vec::len)));
    let drawn = move || window.rows(places, Clone::clone);
    let choice = move |this: Filter| {
        let many = move || {
            found.with(|found| {
                let pairs = found.iter().flat_map(|found| &found.pairs);
                count(pairs.filter(|pair| this.shows(pair)).count() as u64)
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
        let csv = found.with_untracked(|found| found.as_ref().map(ByExample::csv));
        let offered = csv.map(|csv| download::offer_text(&format!("{}-examples.csv", file_name(run)), csv?));
        failed.set(offered.and_then(Result::err));
    };
    let row = move |place: usize| {
        found.with(|found| {
            let found = found.as_ref()?;
            Some(row(&run.id(), found, found.pairs.get(place)?))
        })
    };
    view! {
        <Show when=move || found.with(Option::is_some)>
            <Plate
                letter
                row=true
                title=move || {
                    view! { "Example by example " <span class="unit">"held out, seed → " {best}</span> }
                }
                beside=move || {
                    view! {
                        <div class="row">
                            <span class="seg" role="group" aria-label="Examples shown">
                                {Filter::ALL.map(choice).collect_view()}
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
                    "Became: by the objective, else by the costs. A threshold holds for the mean, so single examples may be over it. \
                     Each leads to its trace with the "
                    {best} "." {of_one} {left_out}
                </p>
                {move || failed.get().map(|why| view! { <p class="note is-i" role="alert">{why}</p> })}
            </Plate>
        </Show>
    }
}

fn row(run: &str, found: &ByExample, pair: &Pair) -> impl IntoView + use<> {
    let address = held_out_trace(run, found.best, &pair.example, found.workload.clone());
    let example = pair.example.clone();
    let cell = |(metric, [seed, best]): (&StudiedMetric, &[Option<f64>; 2])| {
        let shown = |value: &Option<f64>| {
            value.map_or_else(
                || NOTHING.to_owned(),
                |value| metric.quantity().measurement(&metric.spec, value),
            )
        };
        let is_same = seed == best;
        let (seed, best) = (shown(seed), shown(best));
        view! { <td class="num" class:quiet=is_same>{seed} " → " {best}</td> }
    };
    let cells = found.metrics.iter().zip(&pair.values).map(cell).collect_view();
    view! {
        <tr>
            <th scope="row">
                <A href=address>{example}</A>
            </th>
            <td>{pair.fate.word()}</td>
            {cells}
            <td>{pair.over.join(", ")}</td>
        </tr>
    }
}
