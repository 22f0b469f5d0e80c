//! One side: a setting, the search that runs under it, and what it shows.

use std::sync::Arc;

use gloo_timers::callback::Timeout;
use leptos::prelude::*;

use super::behaviour::{feasible, reading, up_to};
use super::figures::{SideHeader, objective, shared_values, strip, table};
use super::knobs::Knobs;
use super::setting::{REQUESTS, ROUNDS, Setting, TOOLS, scene_of};
use crate::charts::figure::AsTable;
use crate::charts::objective::ObjectiveChart;
use crate::charts::strip::ConstraintStrip;
use crate::format;
use crate::keys::Keys;
use crate::live::{Phase, Run};
use crate::run::series::Series;
use crate::run::studied::Shown as _;

/// How long a control rests before its side is searched anew, in milliseconds.
pub(super) const REST: u32 = 350;
/// How long a search that was replaced stays readable, in milliseconds.
const FAREWELL: u32 = 1000;

/// One side. Clones are the same side.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub(super) letter: &'static str,
    pub(super) setting: RwSignal<Setting>,
    run: RwSignal<Option<Run>>,
    failed: RwSignal<Option<String>>,
    /// Everything searched so far.
    series: Memo<Option<Arc<Series>>>,
    /// Who owns the signals of searches, and of the one that runs.
    owner: StoredValue<Owner>,
    of_run: StoredValue<Option<Owner>>,
}

impl Side {
    /// A side whose setting is searched, and searched anew when it changes, as long as the caller
    /// lives.
    pub(super) fn new(letter: &'static str, setting: Setting) -> Self {
        let run = RwSignal::new(None::<Run>);
        let series = Memo::new(move |_| {
            let series = run.get()?.read(|folded| Series::new(&folded.state))?;
            (!series.rounds.is_empty()).then(|| Arc::new(series))
        });
        let side = Self {
            letter,
            setting: RwSignal::new(setting),
            run,
            failed: RwSignal::new(None),
            series,
            owner: StoredValue::new(Owner::current().unwrap_or_default()),
            of_run: StoredValue::new(None),
        };
        let rest = StoredValue::new_local(None::<Timeout>);
        Effect::new(move |before: Option<()>| {
            let setting = side.setting.get();
            let wait = if before.is_some() { REST } else { 0 };
            rest.set_value(Some(Timeout::new(wait, move || side.search(setting))));
        });
        // A search that has ended needs no worker any more.
        Effect::new(move |_| {
            if let Some(run) = run.get()
                && run.phase.get() == Phase::Resting
                && run.read(|folded| folded.state.finished().is_some())
            {
                run.discard();
            }
        });
        on_cleanup(move || {
            if let Some(run) = run.try_get_untracked().flatten() {
                run.discard();
            }
        });
        side
    }

    fn search(self, setting: Setting) {
        let study = setting
            .study()
            .and_then(|study| study.to_toml().map_err(|error| error.to_string()));
        let study = match study {
            Ok(study) => study,
            Err(message) => return self.failed.set(Some(message)),
        };
        self.failed.set(None);
        let owner = self.owner.with_value(Owner::child);
        let run = owner.with(|| Run::unkept(&study));
        let former = self.run.get_untracked();
        self.run.set(Some(run));
        run.start(Keys::new());
        if let Some(former) = former {
            former.discard();
        }
        let former = self.of_run.try_update_value(|of_run| of_run.replace(owner));
        if let Some(former) = former.flatten() {
            // Whoever reads the former one has turned to this one by then.
            Timeout::new(FAREWELL, move || former.cleanup()).forget();
        }
    }

    /// The last round that is searched; `None` before the seed is measured.
    pub(super) fn reached(self) -> Option<u32> {
        self.series
            .with(|series| Some(series.as_ref()?.rounds.last()?.round))
    }

    fn full(self) -> Option<Arc<Series>> {
        self.series.get()
    }
}

/// Controls, charts and words of one side.
#[component]
pub(super) fn SidePlate(
    side: Side,
    /// The other side, which shares the axes.
    other: Side,
    /// Whether `side` is A.
    is_first: bool,
    /// The last round to show.
    shown: Memo<u32>,
) -> impl IntoView {
    let series = Memo::new(move |_| Some(Arc::new(up_to(side.full()?.as_ref(), shown.get()))));
    let shared = move |metric: Option<&str>| {
        let (one, two) = (side.full(), other.full());
        shared_values(&[one.as_deref(), two.as_deref()], metric)
    };
    let about = Signal::derive(move || {
        let (own, others) = (side.setting.get(), other.setting.get());
        let settings = if is_first { [own, others] } else { [others, own] };
        let words = scene_of(settings).map(|scene| scene.about[usize::from(!is_first)]);
        words.unwrap_or("a setting of your own").to_owned()
    });
    let verdict = move || {
        let series = series.get()?;
        let feasible = feasible(&series);
        let at_cap = series.constraints.iter().any(|of| of.at_cap_since().is_some());
        let at_cap = at_cap.then(|| view! { " " <span class="tag cap">"at cap"</span> });
        let is_ever = feasible.first.is_some();
        Some(view! {
            <span class=if is_ever { "m f" } else { "m i" } aria-hidden="true"></span>
            <span class=if is_ever { "is-f" } else { "is-i" }>
                {if is_ever { "feasible on its search examples" } else { "not feasible on its search examples" }}
            </span>
            " "
            {feasible.words()}
            {at_cap}
        })
    };
    let failed = move || {
        let of_run = side.run.get().map(|run| run.phase.get());
        let of_run = match of_run {
            Some(Phase::Failed(message)) => Some(message),
            _ => None,
        };
        side.failed.get().or(of_run).map(|message| {
            view! {
                <div class="msg" role="alert">
                    <b>"This setting cannot be searched."</b>
                    <span>{message}</span>
                </div>
            }
        })
    };
    let progress = move || match side.reached() {
        None => Some("measuring the seed prompt".to_owned()),
        Some(round) if round < ROUNDS => Some(format!("searching round {} of {ROUNDS}", round + 1)),
        Some(_) => None,
    };
    let words = Memo::new(move |_| {
        series
            .get()
            .map_or_else(String::new, |series| reading(&series, &side.setting.get()))
    });
    let all = Memo::new(move |_| series.get().map(|series| table(&series)).unwrap_or_default());
    view! {
        <section class="plate" id=format!("plate-{}", side.letter) tabindex="-1" aria-label=format!("Setting {}", side.letter)>
            <SideHeader letter=side.letter about now=ViewFn::from(verdict)/>
            <Knobs letter=side.letter setting=side.setting other=other.setting/>
            {failed}
            <p class="note">{move || progress().unwrap_or_else(|| format!("all {ROUNDS} rounds searched"))}</p>
            <Cost side series metric=TOOLS shared=Signal::derive(move || shared(Some(TOOLS))) height="150px"/>
            <Cost side series metric=REQUESTS shared=Signal::derive(move || shared(Some(REQUESTS))) height="120px"/>
            <Objective series shared=Signal::derive(move || shared(None))/>
            <p class="reading">{words}</p>
            <AsTable table=all name=Signal::stored(format!("Setting {}", side.letter))/>
        </section>
    }
}

#[component]
fn Cost(
    side: Side,
    series: Memo<Option<Arc<Series>>>,
    metric: &'static str,
    shared: Signal<Vec<f64>>,
    height: &'static str,
) -> impl IntoView {
    let data = Memo::new(move |_| {
        let strip = series.with(|series| {
            let series = series.as_deref()?;
            let of = series.constraint(metric)?;
            Some(strip(series, of, &side.setting.get(), shared.get()))
        });
        strip.unwrap_or_default()
    });
    let label = Signal::derive(move || {
        data.with(|data| match &data.remark {
            Some(remark) => format!("{} by round, with its multiplier: {}.", data.name, remark.text),
            None => format!("{} by round, with its multiplier.", data.name),
        })
    });
    view! {
        <h3>{format::label(metric)}</h3>
        <ConstraintStrip data=data label=label height=height multiplier_height="60px"/>
    }
}

#[component]
fn Objective(series: Memo<Option<Arc<Series>>>, shared: Signal<Vec<f64>>) -> impl IntoView {
    let data = Memo::new(move |_| {
        series
            .with(|series| {
                let series = series.as_deref()?;
                Some(objective(series, shared.get()))
            })
            .unwrap_or_default()
    });
    let name = move || {
        series.with(|series| {
            let series = series.as_ref();
            series.map_or_else(|| "Objective".to_owned(), |series| series.objective.label())
        })
    };
    let label = Signal::derive(move || data.with(|data| format!("{} by round.", data.name)));
    view! {
        <h3>{name}</h3>
        <ObjectiveChart data=data label=label height="96px"/>
    }
}
