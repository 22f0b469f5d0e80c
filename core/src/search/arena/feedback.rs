//! Feedback ξ on a parent, and what critic and rewriter are told: its state, its failing rollouts.

use serde_json::json;

use super::measure::Batch;
use super::offspring::Guidance;
use super::{Arena, Halt};
use crate::journal::run_state::SetKey;
use crate::journal::{CritiqueEvent, EffectName, Event};
use crate::llm::{Message, Role};
use crate::random::subset;
use crate::reading::metrics::StudiedMetric;
use crate::search::evidence::{Case, Group};
use crate::search::templates::{ConstraintFacts, ObjectiveFacts, Template};
use crate::study::FeedbackForm;
use crate::study::ids::CandidateId;
use crate::study::metric::{Direction, Measurements};
use crate::study::score::Means;
use crate::study::usage::Usage;

/// Feedback with the evidence it rests on.
struct Evidence {
    groups: Vec<Group>,
    omitted: usize,
}

impl Arena {
    /// The feedback ξ on a parent in the study's form; empty for the form `none`.
    pub(super) async fn feedback(&self, parent: CandidateId, guidance: Guidance<'_>) -> Result<String, Halt> {
        let settings = self.problem.borrow().study().feedback.clone();
        if settings.form == FeedbackForm::None {
            return Ok(String::new());
        }
        if let Some(known) = self.journal.borrow().state().critique(parent, guidance.round) {
            return Ok(known.to_string());
        }
        self.may_start()?;
        let evidence = self.evidence(parent, guidance).await?;
        let (feedback, usage, input) = if settings.form == FeedbackForm::Trajectory {
            let context = json!({
                "groups": evidence.groups, "omitted": evidence.omitted, "max_characters": settings.max_characters,
            });
            (Template::Trajectories.render(context), Usage::default(), None)
        } else {
            let (objective, constraints) = self.view(parent, guidance)?;
            let text = Template::Critic.render(json!({
                "description": self.description(),
                "prompt": &*self.prompt(parent),
                "objective": objective, "constraints": constraints,
                "groups": evidence.groups, "omitted": evidence.omitted, "max_characters": settings.max_characters,
            }));
            let of = EffectName::Critique {
                candidate: parent,
                round: guidance.round,
            };
            let seed = self.seed_for("critique", guidance.round, parent, 0);
            let messages = vec![Message::user(text)];
            let input = self.input_of(Role::Critic, &messages, seed);
            if let Some(known) = self.take_over_critique(parent, guidance.round, input.as_deref())? {
                return Ok(known);
            }
            let (answer, usage) = self.ask(Role::Critic, messages, seed, of, "the critique").await?;
            (answer.message.text().trim().to_owned(), usage, input)
        };
        let event = CritiqueEvent {
            candidate: parent,
            round: guidance.round,
            feedback: feedback.clone(),
            usage,
            input,
            reused_from: None,
        };
        self.journal.borrow_mut().record(&Event::Critique(event))?;
        Ok(feedback)
    }

    pub(crate) fn description(&self) -> String {
        let problem = self.problem.borrow();
        problem
            .workloads()
            .iter()
            .map(|workload| workload.description())
            .collect::<Vec<_>>()
            .join("\n\n")
    }

    fn measured(&self, candidate: CandidateId, batch: &Batch) -> Result<Means, Halt> {
        self.means(candidate, batch).ok_or_else(|| {
            Halt::Replay(format!(
                "candidate {} was not measured before its rewrite",
                candidate.short()
            ))
        })
    }

    pub(super) fn view(
        &self,
        parent: CandidateId,
        guidance: Guidance<'_>,
    ) -> Result<(ObjectiveFacts, Vec<ConstraintFacts>), Halt> {
        let means = self.measured(parent, guidance.batch)?;
        let problem = self.problem.borrow();
        let objective = ObjectiveFacts {
            metric: problem.objective().spec.name.clone(),
            value: means.objective,
        };
        let constraints = problem
            .constraints()
            .iter()
            .filter_map(|constraint| {
                let spec = &constraint.source.spec;
                let limit = guidance.limits.get(&spec.name)?;
                let cost = means.costs[&spec.name];
                let margin = means.margins.get(&spec.name).copied().unwrap_or(0.0);
                Some(ConstraintFacts {
                    metric: spec.name.clone(),
                    unit: spec.unit.clone(),
                    explanation: spec.explanation.clone(),
                    cost,
                    threshold: limit.threshold,
                    residual: limit.residual(cost + margin),
                    margin,
                    multiplier: guidance.multipliers.get(&spec.name).copied().unwrap_or(0.0),
                })
            })
            .collect();
        Ok((objective, constraints))
    }

    /// Failing rollouts of a parent: the objective's first, then each constraint's from the largest
    /// weighted violation down.
    async fn evidence(&self, parent: CandidateId, guidance: Guidance<'_>) -> Result<Evidence, Halt> {
        let settings = self.problem.borrow().study().feedback.clone();
        let (objective, mut constraints) = self.view(parent, guidance)?;
        let weight = |constraint: &ConstraintFacts| constraint.multiplier * constraint.residual;
        constraints.sort_by(|a, b| weight(b).total_cmp(&weight(a)));

        let mut failing: Vec<(String, StudiedMetric, Vec<usize>)> = Vec::new();
        {
            let problem = self.problem.borrow();
            let source = problem.objective().clone();
            let best = source.spec.max.unwrap_or(1.0);
            let cases = self.per_example(parent, &source, guidance.shown);
            let cases: Vec<usize> = cases
                .into_iter()
                .filter(|(_, value)| *value < best)
                .map(|(e, _)| e)
                .collect();
            failing.push((
                format!(
                    "Objective `{}` missed in {} examples",
                    objective.metric,
                    cases.len()
                ),
                source,
                cases,
            ));
            for view in &constraints {
                let Some(source) = problem
                    .constraints()
                    .iter()
                    .find(|c| c.source.spec.name == view.metric)
                else {
                    continue;
                };
                let mut cases = self.per_example(parent, &source.source, guidance.shown);
                // A cost that is the same for every example has no telling rollouts.
                if cases.windows(2).all(|pair| pair[0].1 == pair[1].1) && cases.len() > 1 {
                    continue;
                }
                cases.retain(|(_, value)| *value > view.threshold);
                let title = format!(
                    "Constraint `{}` above its threshold in {} examples",
                    view.metric,
                    cases.len()
                );
                failing.push((
                    title,
                    source.source.clone(),
                    cases.into_iter().map(|(e, _)| e).collect(),
                ));
            }
        }
        failing.retain(|(_, _, cases)| !cases.is_empty());
        let shown: usize = failing
            .iter()
            .map(|(_, _, cases)| cases.len().min(settings.cases))
            .sum();
        let per_case = settings.max_characters / shown.max(1);
        let mut evidence = Evidence {
            groups: Vec::new(),
            omitted: 0,
        };
        for (group, (title, source, cases)) in (0_u64..).zip(failing) {
            let purpose = format!("evidence/{parent}/{group}");
            let chosen = subset(
                cases.len(),
                settings.cases,
                &mut self.streams.stream(&purpose, u64::from(guidance.round), 0),
            );
            evidence.omitted += cases.len() - chosen.len();
            let mut group = Group {
                title,
                cases: Vec::new(),
            };
            for index in chosen {
                let set = SetKey {
                    workload: source.workload,
                    split: guidance.shown.split,
                };
                group
                    .cases
                    .push(self.case(parent, set, cases[index], &source, per_case).await?);
            }
            evidence.groups.push(group);
        }
        Ok(evidence)
    }

    async fn case(
        &self,
        candidate: CandidateId,
        set: SetKey,
        example: usize,
        metric: &StudiedMetric,
        max_characters: usize,
    ) -> Result<Case, Halt> {
        let repeats = self.repeats_of(candidate, set, example);
        let line = {
            let journal = self.journal.borrow();
            let state = journal.state();
            let position = state.position(&candidate).unwrap_or(usize::MAX);
            // Of several repeats, the worst is the one to learn from; the first among equals.
            let badness = |repeat: &u32| {
                let values = state.rollouts().values(position, set, example, *repeat);
                let value = values.map_or(0.0, |values| values[metric.position]);
                match metric.spec.direction {
                    Direction::Objective => -value,
                    Direction::Cost => value,
                }
            };
            let worst = (0..repeats)
                .rev()
                .max_by(|a, b| badness(a).total_cmp(&badness(b)));
            worst.and_then(|repeat| state.rollouts().line(position, set, example, repeat))
        };
        let line = line.ok_or_else(|| {
            Halt::Replay(format!("a rollout of candidate {} is missing", candidate.short()))
        })?;
        let rollout = self.read_rollout(line).await?;
        let measurements: Measurements = self.studied(&rollout.measurements);
        Ok(Case::new(
            &rollout.example,
            &measurements,
            &rollout.trace,
            max_characters,
        ))
    }

    /// The measurements that the study is about.
    fn studied(&self, measurements: &Measurements) -> Measurements {
        let problem = self.problem.borrow();
        let studied = |name: &String| {
            problem.objective().spec.name == *name
                || problem.constraints().iter().any(|c| c.source.spec.name == *name)
        };
        measurements
            .iter()
            .filter(|(name, _)| studied(name))
            .map(|(name, value)| (name.clone(), *value))
            .collect()
    }
}
