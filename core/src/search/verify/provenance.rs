//! Checking where candidates say they come from against the lines that tell of it.

use std::collections::HashMap;

use crate::journal::{CandidateEvent, Event, Origin, StudyEvent};
use crate::search::methods;
use crate::study::ids::{CandidateId, Round};

/// A candidate that says it was rewritten or combined, until a `rewrite` line agrees.
struct Rewritten {
    origin: Origin,
    round: Round,
    parents: Vec<CandidateId>,
}

/// What candidates say of themselves, as far as no line has confirmed it yet.
#[derive(Default)]
pub(super) struct Provenance {
    seed: Option<CandidateId>,
    method: String,
    /// Whether its search can start from several prompts, and whether it has begun.
    takes_starts: bool,
    has_begun: bool,
    /// The candidate of the line above that does not say that it was rewritten.
    otherwise: Option<CandidateId>,
    /// The candidate of the line above: its `rewrite` line is written in the same moment.
    latest: Option<(CandidateId, Rewritten)>,
    /// Candidates whose `rewrite` line was cut off by the end of a process.
    orphans: HashMap<CandidateId, Rewritten>,
}

impl Provenance {
    /// Takes a line in, or says what contradicts the lines above it.
    pub(super) fn check(&mut self, event: &Event) -> Result<(), String> {
        let latest = self.latest.take();
        let otherwise = self.otherwise.take();
        self.has_begun |= match event {
            Event::Rollout(rollout) => Some(rollout.candidate) != self.seed,
            Event::Critique(_) | Event::Rewrite(_) | Event::Round(_) => true,
            _ => false,
        };
        match event {
            Event::Study(study) => return self.check_study(study),
            Event::Candidate(candidate) => self.check_candidate(candidate)?,
            Event::Rewrite(rewrite) => {
                if let Some(child) = rewrite.child {
                    if otherwise == Some(child) {
                        return Err(format!(
                            "candidate {} does not say that it was rewritten, but it is a rewrite of {}",
                            child.short(),
                            rewrite.parent.short()
                        ));
                    }
                    self.orphans.remove(&child);
                    if let Some((_, says)) = latest.as_ref().filter(|(id, _)| *id == child) {
                        if says.round != rewrite.round {
                            return Err(format!(
                                "candidate {} says round {}, its rewrite was made in round {}",
                                child.short(),
                                says.round,
                                rewrite.round
                            ));
                        }
                        let parents: Vec<CandidateId> = [rewrite.parent]
                            .into_iter()
                            .chain(rewrite.others.clone())
                            .collect();
                        if (says.origin, &says.parents) != (rewrite.origin, &parents) {
                            return Err(format!(
                                "candidate {} says that it is {} of [{}], and its rewrite that it is {} of [{}]",
                                child.short(),
                                words(says.origin),
                                names(&says.parents),
                                words(rewrite.origin),
                                names(&parents)
                            ));
                        }
                        return Ok(());
                    }
                }
            }
            Event::Rollout(rollout) => {
                if let Some(says) = self.orphans.get(&rollout.candidate) {
                    return Err(format!(
                        "candidate {} says that it was rewritten from [{}] in round {}, and no `rewrite` line says so",
                        rollout.candidate.short(),
                        names(&says.parents),
                        says.round
                    ));
                }
            }
            _ => {}
        }
        self.orphans.extend(latest);
        Ok(())
    }

    fn check_study(&mut self, study: &StudyEvent) -> Result<(), String> {
        self.seed = study.study.seed_prompt().ok().map(CandidateId::of);
        self.method.clone_from(&study.study.study.method);
        let method = methods::build(&self.method, &study.study.method);
        self.takes_starts = method.is_ok_and(|method| method.pool() > 1);
        if !is_utc(&study.started_at) {
            return Err(format!(
                "`started_at` is `{}`, no time in UTC such as 2026-01-31T12:00:00Z",
                study.started_at
            ));
        }
        Ok(())
    }

    fn check_candidate(&mut self, candidate: &CandidateEvent) -> Result<(), String> {
        let is_seed = self.seed == Some(candidate.id);
        let place = |expected: &[CandidateId]| {
            if candidate.round != 0 || candidate.parents != expected {
                return Err(format!(
                    "candidate {} says round {} and the parents [{}], but it came before any round, of [{}]",
                    candidate.id.short(),
                    candidate.round,
                    names(&candidate.parents),
                    names(expected)
                ));
            }
            Ok(())
        };
        if candidate.from.is_some() != (candidate.origin == Origin::From) {
            return Err(format!(
                "candidate {} says that it is {}, and names {} earlier run that it is of",
                candidate.id.short(),
                words(candidate.origin),
                candidate.from.as_ref().map_or("no", |_| "an")
            ));
        }
        let is_rewritten = matches!(
            candidate.origin,
            Origin::Rewrite | Origin::Crossover | Origin::Paraphrase
        );
        if !is_rewritten {
            self.otherwise = Some(candidate.id);
        }
        match candidate.origin {
            Origin::Seed if is_seed => place(&[]),
            _ if is_seed => Err("the study's own prompt does not say that it is the seed".to_owned()),
            Origin::Seed => Err(format!(
                "candidate {} says that it is the seed, but is not the study's prompt",
                candidate.id.short()
            )),
            Origin::From if self.has_begun || !self.takes_starts => Err(format!(
                "candidate {} says that it is of an earlier run, which the search {}",
                candidate.id.short(),
                if self.has_begun {
                    "had begun without"
                } else {
                    "has no room for"
                }
            )),
            Origin::Given | Origin::From => place(&[]),
            Origin::Injected if self.method == "injected" => place(self.seed.as_slice()),
            Origin::Injected => Err(format!(
                "candidate {} says that it was injected, which the method `{}` never does",
                candidate.id.short(),
                self.method
            )),
            Origin::Rewrite | Origin::Crossover | Origin::Paraphrase => {
                let says = Rewritten {
                    origin: candidate.origin,
                    round: candidate.round,
                    parents: candidate.parents.clone(),
                };
                self.latest = Some((candidate.id, says));
                Ok(())
            }
        }
    }
}

fn names(candidates: &[CandidateId]) -> String {
    let names: Vec<String> = candidates.iter().map(CandidateId::short).collect();
    names.join(", ")
}

/// What a candidate of an origin is.
fn words(origin: Origin) -> &'static str {
    match origin {
        Origin::Seed => "the seed",
        Origin::Rewrite => "a rewrite",
        Origin::Crossover => "a crossover",
        Origin::Paraphrase => "a paraphrase",
        Origin::Injected => "the seed with thresholds written in",
        Origin::Given => "a prompt given by a person",
        Origin::From => "a prompt of an earlier run",
    }
}

/// Whether a text is a time in UTC as RFC 3339 writes it, to the second or finer.
fn is_utc(text: &str) -> bool {
    let parts = || {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let within = |text: &str, digits: usize, most: u32| {
            let number = text
                .bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| text.parse().ok());
            text.len() == digits && number.flatten().is_some_and(|number: u32| number <= most)
        };
        let (date, time): (Vec<&str>, Vec<&str>) = (date.split('-').collect(), time.split(':').collect());
        let is_date = matches!(date[..], [year, month, day]
            if within(year, 4, 9999) && within(month, 2, 12) && month != "00" && within(day, 2, 31) && day != "00");
        let is_time = matches!(time[..], [hour, minute, second]
            if within(hour, 2, 23) && within(minute, 2, 59) && within(second, 2, 60));
        let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
        Some(is_date && is_time && is_fraction)
    };
    parts().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::is_utc;

    #[test]
    fn times_are_told_from_other_texts() {
        for time in [
            "1970-01-01T00:00:00Z",
            "2026-11-23T20:01:57.123Z",
            "2016-12-31T23:59:60Z",
        ] {
            assert!(is_utc(time), "{time}");
        }
        for other in [
            "yesterday",
            "",
            "2026-11-23",
            "2026-13-01T00:00:00Z",
            "2026-11-23T24:00:00Z",
            "2026-11-23T20:01:57",
        ] {
            assert!(!is_utc(other), "{other}");
        }
    }
}
