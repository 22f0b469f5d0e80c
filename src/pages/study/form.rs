//! State that the sections of the form share: the draft, what follows from it, and what is asked about it.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use capo_core::study::Study;
use capo_workloads::tau2::settings::DomainName;
use leptos::prelude::*;
use web_sys::File;

use super::asking::Asking;
use super::draft::Draft;
use super::kept;
use super::measured::Measured;
use super::prices;
use super::problem::Problem;
use crate::frame::keys::TabKeys;
use crate::keys::Keys;
use crate::live::{prepare_worker, sending};

thread_local! {
    /// The draft while a person looks at other pages.
    static LEFT: RefCell<Option<Draft>> = const { RefCell::new(None) };
    /// The form that was shown last.
    static SHOWN: Cell<Option<Form>> = const { Cell::new(None) };
}

/// The form. Copies are the same.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// The study being set up: edit it through [`Form::edit`].
    pub(super) draft: RwSignal<Draft>,
    /// Rises when the draft was replaced or changed by more than its own field.
    pub(super) renewed: RwSignal<u64>,
    /// The keys of this tab.
    pub(super) keys: TabKeys,
    /// What the workload measures.
    pub(super) measured: Memo<Measured>,
    /// The study, or what is wrong with it by itself.
    pub(super) checked: Memo<Result<Study, Vec<Problem>>>,
    /// All that is known to be wrong.
    pub(super) problems: Memo<Vec<Problem>>,
    /// The domains of the tau2 benchmark that this browser keeps, once that was looked for.
    pub(super) benchmark: RwSignal<Vec<DomainName>>,
    /// Whether files of it are being taken in.
    pub(super) taking_in: RwSignal<bool>,
    /// A worker that is asked about the draft.
    pub(super) asking: Asking,
    /// Opens a journal as a run.
    pub(super) journals: Callback<File>,
    /// What came of an import or an export.
    pub(super) said: RwSignal<Option<Said>>,
}

/// What happened to a study file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// It worked.
    Done(String),
    /// It worked, but something is to be mended.
    Mend(String),
    /// It did not.
    Failed(String),
    /// Rows were not taken in, which is said where they go.
    RowsUnread(String),
}

impl Form {
    /// A form with the draft that was left or kept, or a new one.
    pub(super) fn new(keys: TabKeys, journals: Callback<File>) -> Option<Self> {
        let left = LEFT.with_borrow(Clone::clone);
        let draft = left.or_else(kept::read).or_else(|| Draft::new().ok());
        let draft = RwSignal::new(draft?);
        on_cleanup(move || LEFT.set(draft.try_get_untracked()));
        let form = Self::over(draft, keys, journals);
        SHOWN.set(Some(form));
        Some(form)
    }

    /// A form over any draft.
    pub(super) fn over(draft: RwSignal<Draft>, keys: TabKeys, journals: Callback<File>) -> Self {
        let workload = Memo::new(move |_| {
            draft.with(|draft| {
                (
                    draft.study.workload.clone(),
                    draft.files.clone(),
                    draft.study.study.seed,
                )
            })
        });
        let checked = Memo::new(move |_| draft.with(Draft::checked));
        let asking = Asking::new();
        // For the run. By then the questions about the study have a worker of their own.
        prepare_worker(Duration::from_secs(1));
        let benchmark = RwSignal::new(Vec::new());
        Effect::new(move |_| {
            benchmark.track();
            workload.with(|(workload, files, seed)| asking.look(workload.clone(), files.clone(), *seed));
        });
        let measured = Memo::new(move |_| {
            let looked = asking.looked.get();
            workload.with_untracked(|(workload, files, _)| Measured::new(looked, workload, files))
        });
        let problems = Memo::new(move |_| {
            let mut problems = checked.with(|checked| checked.clone().err().unwrap_or_default());
            let of_workload = measured.with(|measured| measured.problem.clone());
            let unpriced = unpriced(draft, measured);
            let nothing_else = problems.is_empty() && of_workload.is_none();
            problems.extend(unpriced);
            problems.extend(of_workload);
            if nothing_else && let Some(Err(message)) = asking.forecast.get() {
                problems.push(Problem::of_text(&message));
            }
            problems
        });
        Self {
            draft,
            renewed: RwSignal::new(0),
            keys,
            measured,
            checked,
            problems,
            asking,
            benchmark,
            taking_in: RwSignal::new(false),
            journals,
            said: RwSignal::new(None),
        }
    }

    /// Puts the built-in study in place of the draft, shown or left, if that `is_gone`, and returns it where it is shown now.
    pub(super) fn forget(is_gone: impl Fn(&Draft) -> bool) -> Option<Draft> {
        LEFT.with_borrow_mut(|left| {
            if left.as_ref().is_some_and(&is_gone) {
                *left = None;
            }
        });
        let form = SHOWN.get()?;
        // The page may be left by now.
        if form.draft.try_with_untracked(&is_gone) != Some(true) {
            return None;
        }
        let new = Draft::new().ok()?;
        form.renew(|draft| draft.clone_from(&new));
        form.said.set(None);
        Some(new)
    }

    /// Says where a form is shown that this browser keeps nothing of the tau2 benchmark any more.
    pub(super) fn lose_benchmark() {
        if let Some(form) = SHOWN.get() {
            // The page may be left by now.
            let _ = form.benchmark.try_set(Vec::new());
        }
    }

    /// Changes the draft.
    pub(super) fn edit(self, edit: impl FnOnce(&mut Draft)) {
        self.draft.update(edit);
    }

    /// Changes the draft in more than one place, so that all fields show it anew.
    pub(super) fn renew(self, edit: impl FnOnce(&mut Draft)) {
        self.draft.update(edit);
        self.renewed.update(|renewed| *renewed += 1);
    }

    /// Bounds the dollars by what is usual, or by nothing, as the models' prices are known; not where somebody bounded them.
    /// For when a field is left: what is being typed says nothing yet.
    pub(super) fn bound_dollars(self) {
        let (before, limit) = self
            .draft
            .with_untracked(|draft| (draft.study.budget.usd, draft.limit()));
        if limit != before {
            self.renew(|draft| draft.study.budget.usd = limit);
        }
    }

    /// Puts another draft in place of this one, which is kept to be taken up again.
    pub(super) fn replace(self, next: Draft) {
        let mut replaced = None;
        self.renew(|draft| replaced = Some(std::mem::replace(draft, next)));
        // The built-in study is there at any time.
        if let Some(replaced) = replaced.filter(|replaced| !replaced.is_untouched()) {
            kept::keep_former(Some(replaced));
        }
    }

    /// Notes who took from a project what the draft has become since `before`. What was one's own until then is kept.
    pub(super) fn note_taken(self, before: Draft, member: String) {
        if self.draft.with_untracked(|draft| *draft == before) {
            return;
        }
        self.edit(|draft| draft.taken_by = Some(member));
        if before.taken_by.is_none() && !before.is_untouched() {
            kept::keep_former(Some(before));
        }
    }

    /// Takes up the draft again whose place this one took.
    pub(super) fn bring_back(self) {
        if let Some(former) = kept::keeping().get_untracked().former {
            kept::keep_former(None);
            self.replace(former);
            self.said.set(None);
        }
    }

    /// Something of the study, told of changes.
    pub(super) fn memo<T: Clone + PartialEq + Send + Sync + 'static>(
        self,
        read: impl Fn(&Study) -> T + Send + Sync + 'static,
    ) -> Memo<T> {
        Memo::new(move |_| self.draft.with(|draft| read(&draft.study)))
    }

    /// What is wrong with a key of the study.
    pub(super) fn problem(self, key: impl Into<String>) -> Memo<Option<String>> {
        let key = key.into();
        Memo::new(move |_| {
            self.problems.with(|problems| {
                let of_key = problems.iter().find(|problem| problem.key == key);
                of_key.map(|problem| problem.message.clone())
            })
        })
    }

    /// That dollars cannot be counted, where that is so.
    pub(super) fn unpriced(self) -> Option<Problem> {
        unpriced(self.draft, self.measured)
    }

    /// The keys that the study may use.
    pub(super) fn allowed_keys(self, study: &Study) -> Keys {
        sending::allowed(study, &self.keys.get())
    }
}

fn unpriced(draft: RwSignal<Draft>, measured: Memo<Measured>) -> Option<Problem> {
    draft.with(|draft| {
        let without =
            measured.with(|measured| prices::without_price(&draft.study, &measured.asked(&draft.study)));
        // The usual limit goes by itself.
        without.filter(|_| !draft.has_usual_limit)
    })
}
