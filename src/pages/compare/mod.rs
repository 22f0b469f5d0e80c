//! Runs side by side: every metric by round, paired differences, and what their studies do not share.

mod beside;
mod by_method;
mod overlaid;
mod pairs;
mod race;
mod settings;

use std::sync::Arc;

use capo_core::reading::metrics;
use capo_core::reading::progress::Progress;
use capo_core::run_state::RunState;
use capo_core::study::{Format, Study};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::components::A;
use leptos_router::hooks::{use_navigate, use_query_map};

use self::beside::BesideFirst;
use self::by_method::ByMethod;
use self::overlaid::{Compared, Metric, Overlaid, metrics, overlaid};
use self::pairs::{Named, Pair, Pairs, pair};
use self::race::{by_method, doing};
use self::settings::{Said, Settings, differing};
use crate::charts::figure::Figure;
use crate::charts::overlay::{MOST_IN_ONE_PLOT, Overlay, overlay_table};
use crate::components::{AllRuns, Deferred, Gate, Term, page_title, plate_letter};
use crate::format;
use crate::live::{Folded, Phase, Run, Runs};
use crate::run::activity::changed_by_hand;
use crate::run::series::Series;
use crate::run::studied::Shown as _;
use crate::run::word::Word;
use crate::storage::is_report;
use crate::studies;

/// The comparison of the runs that the address names: `?runs=A,B`.
#[component]
pub fn ComparePage() -> impl IntoView {
    page_title(|| "Comparison".into());
    let query = use_query_map();
    let runs = expect_context::<Runs>();
    let named = Memo::new(move |_| {
        let named = query.with(|query| query.get("runs").unwrap_or_default());
        let mut ids: Vec<String> = Vec::new();
        for id in named.split(',').filter(|id| !id.is_empty()) {
            if ids.iter().all(|known| known != id) {
                ids.push(id.to_owned());
            }
        }
        ids
    });
    let body = move || {
        let ids = named.get();
        if ids.len() < 2 {
            return view! {
                <p class="empty">
                    {(!is_report()).then_some("Choose two or more runs in the list, then Compare. ")} <AllRuns/>
                </p>
            }
            .into_any();
        }
        let chosen: Vec<Run> = ids.iter().map(|id| runs.show(id)).collect();
        view! { <Comparison chosen/> }.into_any()
    };
    view! {
        <div class="page-head">
            <div>
                <h1>"Comparison"</h1>
                <p>
                    "The best by " <Term word=Word::J/>
                    " of each round, and the best prompts on held-out examples. Differences are against the first run."
                </p>
            </div>
            <Show when=|| !is_report()>
                <A href="/runs" attr:class="button">
                    "Choose other runs"
                </A>
            </Show>
        </div>
        {body}
    }
}

/// What a run is called here: its name in the list, with its id where names are the same.
fn names(chosen: &[Run]) -> Vec<String> {
    let plain = |run: &Run| {
        let name = run.record.with(|record| Some(record.as_ref()?.name.clone()));
        name.unwrap_or_else(|| run.id())
    };
    let plain: Vec<String> = chosen.iter().map(plain).collect();
    plain
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let same = plain.iter().filter(|other| *other == name).count();
            if same > 1 {
                format!("{name} ({})", place + 1)
            } else {
                name.clone()
            }
        })
        .collect()
}

#[component]
fn Comparison(chosen: Vec<Run>) -> impl IntoView {
    let chosen = StoredValue::new(chosen);
    let all_names = Memo::new(move |_| chosen.with_value(|chosen| names(chosen)));
    // One for each run, so that a run costs nothing while others go on.
    let series = |run: &Run| {
        let run = *run;
        let read = |folded: &Folded| Some(Arc::new(folded.overview()?.series.clone()));
        Memo::new(move |_| run.read(read))
    };
    let series: Vec<Memo<Option<Arc<Series>>>> =
        chosen.with_value(|chosen| chosen.iter().map(series).collect());
    let compared = Memo::new(move |_| {
        let compared = |((run, name), series): ((&Run, String), &Memo<Option<Arc<Series>>>)| {
            Some(Compared {
                id: run.id(),
                name,
                series: series.get()?,
            })
        };
        chosen.with_value(|chosen| -> Vec<Compared> {
            let named = chosen.iter().zip(all_names.get());
            named.zip(&series).filter_map(compared).collect()
        })
    });
    let shown = Memo::new(move |_| compared.with(|compared| metrics(compared)));
    let first = Signal::derive(move || all_names.with(|names| names.first().cloned()).unwrap_or_default());
    let differing = Memo::new(move |_| {
        let said = |run: &Run| {
            run.read(|folded| {
                Some(Said {
                    study: folded.state.study()?.study.clone(),
                    steered: changed_by_hand(&folded.state),
                })
            })
        };
        let runs: Vec<Option<Said>> = chosen.with_value(|chosen| chosen.iter().map(said).collect());
        differing(&runs)
    });
    let waiting = move || {
        let chosen = chosen.get_value();
        chosen
            .into_iter()
            .zip(all_names.get())
            .map(opening)
            .collect_view()
    };
    let texts = Memo::new(move |_| {
        chosen.with_value(|chosen| chosen.iter().map(written).collect::<Option<Vec<_>>>())
    });
    let race = Memo::new(move |_| {
        let read = |study: &String| Study::parse(study, Format::Toml).ok();
        let studies: Vec<Option<Study>> =
            texts.with(|texts| Some(texts.as_ref()?.iter().map(read).collect()))?;
        let seed = |study: &Option<Study>| study.as_ref().map(|study| study.study.seed);
        Some((studies.iter().map(seed).collect::<Vec<_>>(), by_method(&studies)?))
    });
    let all_pairs = chosen.with_value(|chosen| paired(chosen, all_names));
    let pairs = Memo::new(move |_| {
        let mut pairs: Vec<Pair> = all_pairs.iter().map(Memo::get).collect();
        // Another seed may have drawn other examples.
        race.with(|race| {
            let mut seeds = race.iter().flat_map(|(seeds, _)| seeds);
            let first = seeds.next();
            pairs.retain(|pair| seeds.next() == first || pair.rows.is_ok());
        });
        pairs
    });
    let methods = move || {
        race.get()
            .map(|(seeds, groups)| view! { <ByMethod chosen names=all_names seeds groups/> })
    };
    // The figure of the methods is the first.
    let letter = move |place: usize| plate_letter(place + race.with(|race| usize::from(race.is_some())));
    // Small plots of many runs need the whole width.
    let shares_plots = move || compared.with(|compared| compared.len() <= MOST_IN_ONE_PLOT);
    let figures = move || {
        let shown = shown.get().into_iter().enumerate();
        shown
            .map(|(place, metric)| view! { <OverlayFigure letter=Signal::derive(move || letter(place)) metric compared/> })
            .collect_view()
    };
    view! {
        {waiting}
        {methods}
        <Summary chosen names=all_names compared/>
        <div class="compare g" class:g-2=shares_plots>
            {figures}
        </div>
        <Pairs first pairs/>
        <Deferred>
            <BesideFirst chosen names=all_names letter=Signal::derive(move || letter(shown.with(Vec::len)))/>
        </Deferred>
        <Settings names=all_names rows=differing/>
    }
}

/// The study that a run was begun with, as TOML: empty where it cannot be known, none before that is.
fn written(run: &Run) -> Option<String> {
    let kept = run.record.with(|record| Some(record.as_ref()?.study.clone()));
    let kept = kept.filter(|study| !study.is_empty());
    kept.or_else(|| {
        let read = |state: &RunState| state.study()?.study.to_toml().ok();
        run.read(|folded| read(&folded.state))
    })
    .or_else(|| (!matches!(run.phase.get(), Phase::Opening(..))).then(String::new))
}

/// Each run against the first, made anew only when one of both has begun, ended or gone on.
fn paired(chosen: &[Run], names: Memo<Vec<String>>) -> Vec<Memo<Pair>> {
    let ended = |run: &Run| {
        let run = *run;
        let ended = |folded: &Folded| {
            (
                folded.lines() > 0,
                folded.state.finished().map(|_| folded.lines()),
            )
        };
        (run, Memo::new(move |_| run.read(ended)))
    };
    let all: Vec<_> = chosen.iter().map(ended).collect();
    let compare = |place: usize| {
        let ((first, first_ended), (other, other_ended)) = (all[0], all[place]);
        Memo::new(move |_| {
            first_ended.track();
            other_ended.track();
            let named = names.get();
            let (name, other_name) = (&named[0], &named[place]);
            first.peek(|Folded { state, .. }| {
                let first = Named { name, state };
                other.peek(|Folded { state, .. }| {
                    pair(
                        first,
                        Named {
                            name: other_name,
                            state,
                        },
                    )
                })
            })
        })
    };
    (1..all.len()).map(compare).collect()
}

/// That a run is still being read, or cannot be.
fn opening((run, name): (Run, String)) -> impl IntoView {
    move || match run.phase.get() {
        Phase::Opening(read, of) => Some(
            view! {
                <p class="note" role="status">
                    {name.clone()} ": reading the journal, " {read} " of " {of} " parts"
                </p>
            }
            .into_any(),
        ),
        Phase::Unreadable(message) => Some(
            view! {
                <div class="msg" role="alert">
                    <b>{name.clone()} " cannot be shown."</b>
                    <span>{message}</span>
                </div>
            }
            .into_any(),
        ),
        _ => None,
    }
}

/// The number and the dash of a line.
fn dash(number: usize) -> impl IntoView {
    view! {
        <span class="num">{number}</span>
        <svg viewBox="0 0 36 12" aria-hidden="true">
            <line class=format!("c-series s{number}") x1="0" x2="36" y1="6" y2="6"/>
        </svg>
    }
}

/// What each run is, with the number and the dash of its line.
#[component]
fn Summary(
    chosen: StoredValue<Vec<Run>>,
    names: Memo<Vec<String>>,
    compared: Memo<Vec<Compared>>,
) -> impl IntoView {
    // Plots leave out what cannot be read, and with it its dash.
    let drawn_as = move |run: Run| {
        compared.with(|compared| {
            let place = compared.iter().position(|other| other.id == run.id())?;
            (compared.len() <= MOST_IN_ONE_PLOT).then(|| dash(place + 1))
        })
    };
    let row = move |(place, run): (usize, Run)| {
        let name = move || names.with(|names| names.get(place).cloned());
        let progress = Memo::new(move |_| run.read(|folded| Progress::of(&folded.state)));
        let rounds = move || run.read(|folded| folded.state.rounds().len());
        let method = move || {
            run.read(|folded| {
                let study = folded.state.study()?;
                Some(studies::method_name(&study.study.study.method))
            })
        };
        let state = move || doing(&run.phase.get(), run.status()).0;
        let best = move || {
            run.read(|folded| {
                let quantity = metrics::objective(&folded.state)?.quantity();
                Some(quantity.optional(progress.get().best))
            })
        };
        let lasted = move || {
            progress.track();
            format::lasted(run.elapsed() / 1000.0)
        };
        let gate = move || {
            let progress = progress.get();
            progress
                .best
                .map(|_| view! { <Gate feasible=progress.feasible/> })
        };
        view! {
            <tr>
                <th scope="row">
                    <span class="series-list">
                        {move || drawn_as(run)} <A href=format!("/run/{}", run.id())>
                            <b>{name}</b>
                        </A>
                    </span>
                </th>
                <td>{method}</td>
                <td>{state}</td>
                <td class="num">{rounds}</td>
                <td class="num">{best}</td>
                <td class="nw">{gate}</td>
                <td class="num">{move || format::count(progress.get().rollouts)}</td>
                <td class="num">{move || format::dollars(progress.get().usd)}</td>
                <td class="num">{lasted}</td>
            </tr>
        }
    };
    view! {
        <section class="plate" aria-label="Compared runs">
            <div class="scroll" tabindex="0" role="group" aria-label="Compared runs, scrolls sideways">
                <table class="mid sticky-1">
                    <thead>
                        <tr>
                            <th scope="col">"Run"</th>
                            <th scope="col">"Method"</th>
                            <th scope="col">"State"</th>
                            <th scope="col" class="num">
                                "Rounds"
                            </th>
                            <th scope="col" class="num">
                                "Best objective"
                                <small>"on search examples"</small>
                            </th>
                            <th scope="col">"Gate" <small>"on search examples"</small></th>
                            <th scope="col" class="num">
                                "Rollouts"
                            </th>
                            <th scope="col" class="num">
                                "Spent"
                            </th>
                            <th scope="col" class="num">
                                "Ran for"
                            </th>
                        </tr>
                    </thead>
                    <tbody>{chosen.get_value().into_iter().enumerate().map(row).collect_view()}</tbody>
                </table>
            </div>
        </section>
    }
}

/// One metric of all runs.
#[component]
fn OverlayFigure(
    letter: Signal<&'static str>,
    metric: Metric,
    compared: Memo<Vec<Compared>>,
) -> impl IntoView {
    let navigate = use_navigate();
    let open = Callback::new(move |run: String| navigate(&format!("/run/{run}"), NavigateOptions::default()));
    let overlaid: Memo<Overlaid> = Memo::new(move |_| compared.with(|compared| overlaid(compared, &metric)));
    let data = Memo::new(move |_| overlaid.with(|overlaid| overlaid.data.clone()));
    let reading = Memo::new(move |_| overlaid.with(|overlaid| overlaid.reading.clone()));
    view! {
        <Figure
            letter
            name=Signal::derive(move || overlaid.with(|overlaid| overlaid.title.clone()))
            unit=Signal::derive(move || overlaid.with(|overlaid| overlaid.note.clone()))
            reading=move || reading.get()
            table=Signal::derive(move || data.with(overlay_table))
        >
            <Overlay data=data label=reading on_open=open/>
        </Figure>
    }
}
