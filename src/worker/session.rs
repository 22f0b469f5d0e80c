//! From a study to a run in a browser.

use std::rc::Rc;

use capo_core::arena::{Clock, RunOptions};
use capo_core::control::Control;
use capo_core::study::{Format, Study};
use capo_models::{Builder, Models, Observer, Setup};
use web_time::Instant;

use super::benchmark;
use super::protocol::{DataFiles, memory};
use crate::keys::Keys;

/// A study joined with its workloads.
pub(super) struct Session(pub(super) Setup);

impl Session {
    /// Reads a study and joins it with its workloads.
    ///
    /// # Errors
    /// What is wrong with the study or its data, in words.
    pub(super) async fn new(study: &str, files: DataFiles) -> Result<Self, String> {
        let study = Study::parse(study, Format::Toml).map_err(|error| error.to_string())?;
        let files = benchmark::beside(&study.workload, files).await?;
        let workloads = capo_workloads::build(&study.workload, &memory(&files), study.study.seed)
            .map_err(|error| error.to_string())?;
        Setup::new(study, workloads)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Who answers, until `control` interrupts it; `told` hears of waits.
    ///
    /// # Errors
    /// Which table of the study is wrong, or which key is missing.
    pub(super) fn models(&self, keys: &Keys, control: &Control, told: Observer) -> Result<Models, String> {
        let study = self.0.problem.study();
        let models = Builder::new(keys)
            .seed(study.study.seed)
            .control(control.clone())
            .observer(told)
            .build(&study.asked_tables());
        models.map_err(|error| error.to_string())
    }

    /// How a run is carried out here.
    pub(super) fn options(&self, control: Control, told: Observer) -> RunOptions {
        let started_at = js_sys::Date::new_0().to_iso_string().into();
        let clock = Rc::new(Elapsed(Instant::now()));
        self.0.options(started_at, clock, control, told)
    }
}

struct Elapsed(Instant);

impl Clock for Elapsed {
    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
