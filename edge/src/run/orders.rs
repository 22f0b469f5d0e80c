//! Orders of people to a run.

use std::rc::Rc;
use std::time::Duration;

use capo_api::{RunOrder, RunStage, RunWish};
use capo_hosted::{by_hand, steering};
use worker::Delay;
use worker::wasm_bindgen_futures::spawn_local;

use super::RunObject;
use super::kept::Kept;
use super::search::prepare;
use crate::refusal::Refusal;

/// How long a run that was told to stop waits for calls under way.
const MOMENT: Duration = Duration::from_millis(1_500);

impl RunObject {
    pub(super) async fn obey(&self, kept: &Rc<Kept>, by: &str, order: RunOrder) -> Result<(), Refusal> {
        match order {
            RunOrder::Pause => self.wish(kept, RunWish::Pause).await,
            RunOrder::Stop => self.wish(kept, RunWish::Stop).await,
            RunOrder::Resume { study } => self.resume(kept, by, study).await,
            RunOrder::Steer { change } => {
                let closed = kept.shown().progress.by_round.len();
                let (study, _) = kept.study()?;
                let change = steering(change, closed, &study).map_err(Refusal::invalid)?;
                kept.steer(&change)?;
                self.tell_steers(kept)
            }
            RunOrder::Withdraw { change } => {
                kept.withdraw(&by_hand(change).map_err(Refusal::invalid)?)?;
                self.tell_steers(kept)
            }
        }
    }

    fn tell_steers(&self, kept: &Kept) -> Result<(), Refusal> {
        if let Some(control) = &*self.control.borrow() {
            kept.hear(control)?;
        }
        Ok(kept.change(|_| ())?)
    }

    /// Has a run pause or stop: at once where no search is under way.
    async fn wish(&self, kept: &Kept, wish: RunWish) -> Result<(), Refusal> {
        let control = self.control.borrow().clone();
        if let Some(control) = control {
            kept.change(|shown| shown.wish = Some(wish))?;
            control.interrupt();
            // One that is paused has its calls answered.
            if wish == RunWish::Stop {
                spawn_local(async move {
                    Delay::from(MOMENT).await;
                    control.abandon();
                });
            }
            return Ok(());
        }
        let stage = kept.shown().stage;
        let rests = match (stage, wish) {
            (RunStage::Queued | RunStage::Running, RunWish::Pause) => RunStage::Paused,
            (RunStage::Queued | RunStage::Running | RunStage::Paused, RunWish::Stop) => RunStage::Ended,
            _ => return Err(Refusal::conflict("This is not under way.")),
        };
        kept.change(|shown| (shown.stage, shown.wish) = (rests, None))?;
        Ok(self.rest().await?)
    }

    /// Lets a run at rest go on, on the account of who resumes it, under another study where one is given.
    async fn resume(&self, kept: &Kept, by: &str, study: Option<String>) -> Result<(), Refusal> {
        let (known, files) = kept.study()?;
        let text = study.as_deref().unwrap_or(&known);
        let project = kept.shown().project.clone();
        let prepared = prepare(&self.env, (&project, by), text, &files).await?;
        let (prepared, _) = prepared.map_err(Refusal::invalid)?;
        if let Some((_, first)) = kept.lines(0, 1)?.pop() {
            prepared.goes_on_from(&first).map_err(Refusal::invalid)?;
        }
        // Asked now, for others may have resumed it meanwhile.
        let rests = matches!(
            kept.shown().stage,
            RunStage::Paused | RunStage::Ended | RunStage::Failed
        );
        if !rests {
            return Err(Refusal::conflict("This goes on already."));
        }
        if let Some(study) = &study {
            kept.replace_study(study)?;
        }
        kept.unclaim()?;
        kept.change(|shown| {
            shown.stage = RunStage::Queued;
            (shown.wish, shown.status, shown.error, shown.start_at) = (None, None, None, None);
            by.clone_into(&mut shown.started_by);
        })?;
        Ok(self.wake(kept).await?)
    }
}
