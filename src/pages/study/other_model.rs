//! Another model for the agent of a study that is not set up here.

use capo_core::llm::Role;
use capo_core::study::Study;
use leptos::prelude::*;

use super::draft::Draft;
use super::form::Form;
use super::models::ModelsTable;
use super::readiness;
use super::shared;
use super::start::new_run;
use crate::format;
use crate::frame::remember::Remember;
use crate::live::NewRun;
use crate::worker::protocol::DataFiles;

/// The choice of a model. Copies are the same.
#[derive(Clone, Copy)]
pub struct OtherModel(Form);

impl OtherModel {
    /// For the agent of a study with these data files.
    pub fn of(study: Study, files: DataFiles) -> Self {
        let mut draft = Draft::of(study);
        draft.restore(files);
        let form = Form::over(RwSignal::new(draft), expect_context(), Callback::new(|_| ()));
        Self(form)
    }

    /// The study with the model as it is chosen now.
    ///
    /// # Errors
    /// Why it cannot be asked yet, in words.
    pub fn study(self) -> Result<Study, String> {
        let problem = self.0.problems.with(|problems| problems.first().cloned());
        if let Some(problem) = problem {
            return Err(problem.message);
        }
        let study = self.0.draft.with(|draft| draft.study.clone());
        match &readiness::lacking(self.0, &study, true)[..] {
            [] => Ok(study),
            missing => Err(format!("{}.", format::label(&format::listed(missing)))),
        }
    }

    /// A run of a study with this model.
    ///
    /// # Errors
    /// When the study cannot be written as a study file.
    pub fn new_run(self, study: &Study) -> Result<NewRun, String> {
        let files = self.0.draft.with_untracked(Draft::named_files);
        new_run(study, files, untrack(|| self.0.allowed_keys(study)), None)
    }
}

/// The model in the same fields as where a study is set up.
#[component]
pub fn OtherModelTable(other: OtherModel) -> impl IntoView {
    provide_context(other.0);
    provide_context(shared::offered());
    view! {
        <ModelsTable roles=&[Role::Agent]/>
        <Remember/>
    }
}
