//! Beginning and end of a round: steering, scores, the `round` line.

use indexmap::IndexMap;

use super::measure::Batch;
use super::{Arena, Halt};
use crate::journal::run_state::SetKey;
use crate::journal::{self, Event, RoundEvent, SteerEvent};
use crate::llm::FailureKind;
use crate::reading::in_force;
use crate::study::Rounds;
use crate::study::ids::{CandidateId, Round};
use crate::study::score::{Limits, Multipliers, Ranked, Score};

impl Arena {
    /// Opens a round: lets constraints enter with λ = 0 whose round has come, waits while paused, and
    /// applies what a person changed (journaled changes when replaying, new ones otherwise) to
    /// thresholds and `multipliers`. New ones wait for the next round when an earlier session has
    /// begun this one: its critiques and rewrites were made under the old numbers. Returns false
    /// when the search is over. An interrupted run goes on to the first effect that the journal does
    /// not hold, so that its result follows from the journal alone.
    ///
    /// # Errors
    /// When a change is impossible (see [`SteerEvent::check`]; it is not journaled then), or the
    /// journal cannot be written.
    pub async fn open_round(&self, round: Round, multipliers: &mut Multipliers) -> Result<bool, Halt> {
        self.opened.set(Some(round));
        let mut over = matches!(self.search().rounds, Rounds::Count(rounds) if round >= rounds);
        let replayed = self.journal.borrow().state().rounds().len() as Round > round;
        let recorded: Vec<SteerEvent> = {
            let journal = self.journal.borrow();
            journal
                .state()
                .steers()
                .iter()
                .filter(|steer| steer.round == round)
                .cloned()
                .collect()
        };
        in_force::enter(&self.problem.borrow().study().constraints, round, multipliers);
        for steer in &recorded {
            in_force::apply(steer, multipliers);
            over |= steer.stop;
        }
        if !replayed && !over {
            if self.most_rounds.get().is_some_and(|most| round >= most) {
                return Err(Halt::Budget(String::new()));
            }
            if matches!(self.search().rounds, Rounds::Open(_)) {
                self.refuse_idling()?;
            }
            if self.options.control.is_paused() {
                self.record_steer(SteerEvent {
                    round,
                    pause: true,
                    ..SteerEvent::default()
                })
                .await?;
                self.options.control.resumed().await;
            }
            let begun = self.journal.borrow().state().has_begun(round);
            let changes = if begun {
                Vec::new()
            } else {
                self.options.control.take()
            };
            for steer in changes {
                let steer = SteerEvent { round, ..steer };
                let checked = steer.check(self.problem.borrow().study());
                checked.map_err(|error| Halt::Failed {
                    kind: FailureKind::Malformed,
                    message: format!("round {round} cannot be steered so: {error}"),
                })?;
                in_force::apply(&steer, multipliers);
                over |= steer.stop;
                self.record_steer(steer).await?;
            }
        }
        Ok(!over)
    }

    async fn record_steer(&self, steer: SteerEvent) -> Result<(), Halt> {
        self.journal.borrow_mut().record(&Event::Steer(steer))?;
        let synced = self.journal.borrow_mut().sync();
        Ok(synced.await?)
    }

    /// Scores of candidates on a batch under given multipliers.
    ///
    /// # Errors
    /// When one of them was not measured on the batch.
    pub fn scores(
        &self,
        candidates: &[CandidateId],
        batch: &Batch,
        limits: &Limits,
        multipliers: &Multipliers,
    ) -> Result<IndexMap<CandidateId, Score>, Halt> {
        candidates
            .iter()
            .map(|&candidate| {
                let means = self.means(candidate, batch).ok_or_else(|| {
                    Halt::Replay(format!("candidate {} was not measured", candidate.short()))
                })?;
                Ok((candidate, Score::new(means, limits, multipliers)))
            })
            .collect()
    }

    /// Candidates with what they are ranked by.
    pub fn ranked(
        &self,
        scores: &IndexMap<CandidateId, Score>,
        rank_by: impl Fn(&Score) -> f64,
    ) -> Vec<Ranked> {
        scores
            .iter()
            .map(|(&candidate, score)| Ranked {
                candidate,
                rank_by: rank_by(score),
                tie: self.tie(candidate),
            })
            .collect()
    }

    /// Closes a round: journals it, or checks that a replayed journal says the same.
    ///
    /// # Errors
    /// When the journal says otherwise or cannot be written.
    pub async fn close_round(&self, mut event: RoundEvent, batch: &Batch) -> Result<(), Halt> {
        event.batch = self.named(batch);
        self.closed.set(event.round + 1);
        *self.multipliers.borrow_mut() = Some(event.next_multipliers.clone());
        let recorded = self
            .journal
            .borrow()
            .state()
            .rounds()
            .get(event.round as usize)
            .cloned();
        if let Some(recorded) = recorded {
            return match journal::difference(&recorded, &event) {
                None => Ok(()),
                Some(difference) => Err(Halt::Replay(format!(
                    "round {} of the journal is not what its rollouts give: {difference}",
                    event.round
                ))),
            };
        }
        self.journal.borrow_mut().record(&Event::Round(event))?;
        let synced = self.journal.borrow_mut().sync();
        Ok(synced.await?)
    }

    fn named(&self, batch: &Batch) -> Option<IndexMap<String, Vec<String>>> {
        let problem = self.problem.borrow();
        let left_out = self
            .left_out
            .borrow()
            .iter()
            .any(|(set, _)| set.split == batch.split);
        (!batch.whole || left_out).then(|| {
            (0..)
                .zip(problem.workloads())
                .zip(&batch.examples)
                .map(|((workload, measured), examples)| {
                    let (ids, split) = (measured.examples(batch.split), batch.split);
                    let set = SetKey { workload, split };
                    let counts = examples
                        .iter()
                        .filter(|example| !self.is_left_out(set, **example));
                    (
                        measured.name().to_owned(),
                        counts.map(|&example| ids[example].clone()).collect(),
                    )
                })
                .collect()
        })
    }
}
