//! A study joined with its workloads: what there is to maximise, below what.

use std::collections::HashSet;
use std::rc::Rc;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::journal::{StudyEvent, WorkloadRecord};
use crate::llm::Role;
use crate::reading::certify;
use crate::reading::metrics::{Part, StudiedMetric};
use crate::study::metric::{Direction, PROMPT_LENGTH};
use crate::study::score::Limits;
use crate::study::workload::{Split, Workload};
use crate::study::{Study, StudyError, canonical_hash, differences, nearest};

/// What stands beside the metrics of a prompt in results, which are objects with a key a metric.
const RESERVED: [&str; 2] = ["all_sat", "seed"];

/// The most rollouts that the repeats of a study may make of one prompt.
const MOST_ROLLOUTS: u64 = 1_000_000;

/// A constraint of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Constrained {
    /// What is measured, and where.
    pub source: StudiedMetric,
    /// τ; `None` until a threshold relative to the seed is frozen.
    pub threshold: Option<f64>,
    /// The factor on the seed's mean cost, if relative.
    pub relative_to_seed: Option<f64>,
    /// s > 0.
    pub scale: f64,
    /// The round at which it enters.
    pub from_round: u32,
}

/// A study joined with its workloads.
#[derive(Clone)]
pub struct Problem {
    study: Study,
    seed_prompt: Rc<str>,
    workloads: Vec<Rc<dyn Workload>>,
    objective: StudiedMetric,
    constraints: Vec<Constrained>,
    /// Positions of the held-out examples kept for the test, in the order in which they are measured, by workload.
    reserves: Vec<Vec<usize>>,
}

impl Problem {
    /// Joins a checked study with its workloads, the main one first, and writes the scales of the
    /// residuals out.
    ///
    /// # Errors
    /// Unknown metrics (with the nearest known one), metrics of the wrong direction or with a name
    /// that means something else in results, thresholds that no value can meet, empty splits, a
    /// batch larger than a split.
    pub fn new(mut study: Study, workloads: Vec<Rc<dyn Workload>>) -> Result<Self, StudyError> {
        let seed_prompt = study.seed_prompt()?.into();
        for workload in &workloads {
            let splits = [Split::Optimize, Split::Evaluate];
            let mut seen = HashSet::new();
            let mut ids = splits.iter().flat_map(|split| workload.examples(*split));
            if let Some(twice) = ids.find(|id| !seen.insert(*id)) {
                return Err(StudyError::invalid(
                    "workload",
                    format!(
                        "example `{twice}` of workload `{}` comes twice; every example belongs to one split, once",
                        workload.name()
                    ),
                ));
            }
            if workload.examples(Split::Optimize).is_empty() {
                return Err(StudyError::invalid(
                    "workload.optimize",
                    format!("workload `{}` has no example to optimise on", workload.name()),
                ));
            }
            let available = workload.examples(Split::Optimize).len();
            let is_too_large = |batch: usize| batch > available && study.study.batch_growth.is_none();
            if study.study.batch.is_some_and(is_too_large) {
                return Err(StudyError::invalid(
                    "study.batch",
                    format!(
                        "larger than the {available} examples workload `{}` has to optimise on",
                        workload.name()
                    ),
                ));
            }
        }
        check_repeats(study.study.repeats, &workloads)?;
        check_names(&workloads)?;
        let objective = find(
            &workloads,
            &study.objective.metric,
            "objective.metric",
            Part::Objective,
        )?;
        if objective.spec.direction != Direction::Objective {
            return Err(StudyError::invalid(
                "objective.metric",
                format!(
                    "`{}` is a cost (lower is better); use it as a constraint",
                    objective.spec.name
                ),
            ));
        }
        let constraints: Vec<Constrained> = study
            .constraints
            .iter()
            .enumerate()
            .map(|(index, constraint)| {
                let key = format!("constraint[{index}] ({})", constraint.metric);
                let mut source = find(&workloads, &constraint.metric, &key, Part::Measured)?;
                if source.spec.direction != Direction::Cost {
                    return Err(StudyError::invalid(
                        key,
                        "higher is better for this metric, but a constraint keeps a cost low; declare its complement (1 − score)",
                    ));
                }
                if let Some((threshold, min)) = constraint.threshold.zip(source.spec.min)
                    && threshold < min
                {
                    return Err(StudyError::invalid(
                        key,
                        format!("threshold {threshold} can never be met: the metric is never below {min}"),
                    ));
                }
                let scale = constraint.scale.unwrap_or(source.spec.default_scale);
                let from_round = constraint.from_round;
                source.part = Part::Constraint { scale, from_round };
                Ok(Constrained {
                    threshold: constraint.threshold,
                    relative_to_seed: constraint.relative_to_seed,
                    scale,
                    from_round,
                    source,
                })
            })
            .collect::<Result<_, StudyError>>()?;
        for (written, constraint) in study.constraints.iter_mut().zip(&constraints) {
            written.scale = Some(constraint.scale);
        }
        let reserves = reserves(&study, &workloads, &constraints)?;
        Ok(Self {
            study,
            seed_prompt,
            workloads,
            objective,
            constraints,
            reserves,
        })
    }

    /// The study.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// The prompt the search starts from.
    pub fn seed_prompt(&self) -> &Rc<str> {
        &self.seed_prompt
    }

    /// The workloads, the main one first.
    pub fn workloads(&self) -> &[Rc<dyn Workload>] {
        &self.workloads
    }

    /// The positions of a split's examples, workload by workload: all of them, but for those of the held-out ones that
    /// are kept for the test of the prompts that were found.
    pub fn places(&self, split: Split) -> Vec<Vec<usize>> {
        let of_workload = |(workload, kept): (&Rc<dyn Workload>, &Vec<usize>)| {
            let all = 0..workload.examples(split).len();
            all.filter(|place| split == Split::Optimize || !kept.contains(place))
                .collect()
        };
        self.workloads
            .iter()
            .zip(&self.reserves)
            .map(of_workload)
            .collect()
    }

    /// Whether a held-out example is kept for the test.
    pub(crate) fn is_kept_for_the_test(&self, workload: usize, example: usize) -> bool {
        self.reserves[workload].contains(&example)
    }

    /// How many held-out examples are kept for the test, of all workloads together.
    pub fn kept_for_the_test(&self) -> usize {
        self.reserves.iter().map(Vec::len).sum()
    }

    /// What the study's reserve can certify of its constraints, in sentences; none without a reserve, or of a threshold that
    /// is still to be measured.
    pub fn reach(&self) -> Vec<String> {
        let Some(confirm) = &self.study.confirm else {
            return Vec::new();
        };
        let of_constraint = |constraint: &Constrained| {
            let (spec, threshold) = (&constraint.source.spec, constraint.threshold?);
            let reach = certify::reach(spec, threshold, confirm, self.study.study.repeats);
            Some(reach.sentence(&spec.name, threshold, confirm.examples))
        };
        self.constraints.iter().filter_map(of_constraint).collect()
    }

    /// What to maximise.
    pub fn objective(&self) -> &StudiedMetric {
        &self.objective
    }

    /// What to keep below thresholds.
    pub fn constraints(&self) -> &[Constrained] {
        &self.constraints
    }

    /// The limit on `prompt_length`, if one is set, in characters.
    pub fn characters_allowed(&self, limits: &Limits) -> Option<usize> {
        limits.get(PROMPT_LENGTH).map(|limit| {
            // The largest count whose length satisfies it: rounding in the product may be off by one.
            let nearest = (limit.threshold * 1000.0).round().max(0.0) as usize;
            if limit.is_satisfied(nearest as f64 / 1000.0) {
                nearest
            } else {
                nearest.saturating_sub(1)
            }
        })
    }

    /// Freezes a threshold that was relative to the seed prompt.
    pub(crate) fn freeze(&mut self, metric: &str, threshold: f64) {
        let mut constraints = self.constraints.iter().zip(&mut self.study.constraints);
        if let Some((_, written)) = constraints.find(|(constraint, _)| constraint.source.spec.name == metric)
        {
            written.threshold = Some(threshold);
        }
        let mut constraints = self.constraints.iter_mut();
        if let Some(constraint) = constraints.find(|constraint| constraint.source.spec.name == metric) {
            constraint.threshold = Some(threshold);
        }
    }

    /// What the journal keeps of the workloads.
    pub fn records(&self) -> IndexMap<String, WorkloadRecord> {
        self.workloads
            .iter()
            .zip(&self.reserves)
            .map(|(workload, reserve)| {
                let held_out = workload.examples(Split::Evaluate);
                let record = WorkloadRecord {
                    fingerprint: workload.fingerprint(),
                    metrics: workload.metrics().to_vec(),
                    optimize: workload.examples(Split::Optimize).to_vec(),
                    evaluate: held_out.to_vec(),
                    reserve: reserve.iter().map(|place| held_out[*place].clone()).collect(),
                    inputs: inputs(&self.study, &**workload).unwrap_or_default(),
                };
                (workload.name().to_owned(), record)
            })
            .collect()
    }

    /// In which ways rollouts of another run may depend on something else than those of this study: the first differences.
    pub fn differences_of_rollouts(&self, other: &StudyEvent) -> Vec<String> {
        let mut roles = vec![Role::Agent, Role::User, Role::Judge];
        let mut asked = self.workloads.iter().flat_map(|workload| workload.max_calls());
        // Vectors that a file keeps are of the workload's data.
        if asked.any(|(role, calls)| role == Role::Embeddings && calls > 0) {
            roles.push(Role::Embeddings);
        }
        let of = |study: &Study| {
            let mut all = study.answering(&roles);
            all["workload"] = study.identity()["workload"].take();
            all
        };
        let mut lines = differences(&of(&other.study), &of(&self.study), 8);
        lines.extend(self.changed_data(other));
        lines
    }

    /// The workloads whose data are not what they were in another run, in words.
    pub(crate) fn changed_data(&self, other: &StudyEvent) -> Vec<String> {
        let changed = |workload: &&Rc<dyn Workload>| {
            let then = other.workloads.get(workload.name());
            then.is_some_and(|then| then.fingerprint != workload.fingerprint())
        };
        let told = |workload: &Rc<dyn Workload>| {
            format!(
                "workload `{}`: its data changed since the journal was written",
                workload.name()
            )
        };
        self.workloads.iter().filter(changed).map(told).collect()
    }

    /// The study's id, see [`Study::id`].
    pub fn id(&self) -> String {
        let fingerprints: Map<String, Value> = self
            .workloads
            .iter()
            .map(|workload| (workload.name().to_owned(), Value::String(workload.fingerprint())))
            .collect();
        self.study.id(&fingerprints)
    }
}

/// What rollouts on the examples of a workload depend on beside prompt and repeat, in 16 hex digits: of those searched on,
/// then of those held out. `None` where the workload cannot say, or measures dollars: no study says all prices.
fn inputs(study: &Study, workload: &dyn Workload) -> Option<Vec<String>> {
    if workload.measures_dollars() {
        return None;
    }
    let asked = workload.max_calls().into_iter().filter(|(_, calls)| *calls > 0);
    let roles: Vec<Role> = asked.map(|(role, _)| role).collect();
    let who = study.answering(&roles);
    let mut inputs = Vec::new();
    for split in [Split::Optimize, Split::Evaluate] {
        let (examples, contents) = (workload.examples(split), workload.contents(split)?);
        if contents.len() != examples.len() {
            return None;
        }
        for (example, content) in examples.iter().zip(contents) {
            // The seed of a rollout follows from the names of workload and example.
            let whole =
                json!({ "workload": workload.name(), "example": example, "content": content, "who": who });
            inputs.push(canonical_hash(&whole)[..16].to_owned());
        }
    }
    Some(inputs)
}

/// The held-out examples kept for the test, of each workload that measures something to be tested.
fn reserves(
    study: &Study,
    workloads: &[Rc<dyn Workload>],
    constraints: &[Constrained],
) -> Result<Vec<Vec<usize>>, StudyError> {
    let Some(confirm) = &study.confirm else {
        return Ok(vec![Vec::new(); workloads.len()]);
    };
    let bounded = constraints.iter().find(|constraint| {
        let spec = &constraint.source.spec;
        spec.max.is_some() && confirm.bounds.contains_key(&spec.name)
    });
    if let Some(Constrained { source, .. }) = bounded {
        return Err(StudyError::invalid(
            format!("confirm.bounds.{}", source.spec.name),
            format!(
                "the metric has a largest value of its own, {}",
                source.spec.max.unwrap_or_default()
            ),
        ));
    }
    let of_workload = |(place, workload): (u16, &Rc<dyn Workload>)| {
        let held_out = workload.examples(Split::Evaluate).len();
        let is_of_it = |constraint: &Constrained| {
            constraint.source.workload == place && constraint.source.spec.name != PROMPT_LENGTH
        };
        if !constraints.iter().any(is_of_it) {
            return Ok(Vec::new());
        }
        if confirm.examples > held_out {
            return Err(StudyError::invalid(
                "confirm.examples",
                format!(
                    "{} of the held-out examples are to be kept for the test, and workload `{}` has {held_out}",
                    confirm.examples,
                    workload.name()
                ),
            ));
        }
        Ok(confirm.reserve(place, held_out))
    };
    (0..).zip(workloads).map(of_workload).collect()
}

/// Refuses repeats that make more rollouts of a prompt than can be listed.
fn check_repeats(repeats: u32, workloads: &[Rc<dyn Workload>]) -> Result<(), StudyError> {
    let splits = [Split::Optimize, Split::Evaluate];
    let of_workload = |workload: &Rc<dyn Workload>| splits.map(|split| workload.examples(split).len() as u64);
    let examples = workloads.iter().flat_map(of_workload).max().unwrap_or(0);
    let rollouts = examples * u64::from(repeats);
    if repeats == 1 || rollouts <= MOST_ROLLOUTS {
        return Ok(());
    }
    let problem = format!(
        "{repeats} on each of {examples} examples are {rollouts} rollouts of a prompt, and at most {MOST_ROLLOUTS} are possible"
    );
    Err(StudyError::invalid("study.repeats", problem))
}

/// Refuses metrics that a result would confuse with what stands beside them in it.
fn check_names(workloads: &[Rc<dyn Workload>]) -> Result<(), StudyError> {
    for metric in workloads.iter().flat_map(|workload| workload.metrics()) {
        if RESERVED.contains(&metric.name.as_str()) || metric.name.ends_with(".standard_error") {
            let problem = format!(
                "a metric cannot be called `{}`, which means something else in results; give it another name",
                metric.name
            );
            return Err(StudyError::invalid("workload.metric", problem));
        }
    }
    Ok(())
}

fn find(
    workloads: &[Rc<dyn Workload>],
    metric: &str,
    key: &str,
    part: Part,
) -> Result<StudiedMetric, StudyError> {
    for (index, workload) in workloads.iter().enumerate() {
        if let Some(position) = workload.metrics().iter().position(|spec| spec.name == metric) {
            let spec = workload.metrics()[position].clone();
            return Ok(StudiedMetric {
                spec,
                part,
                workload: index as u16,
                position,
            });
        }
    }
    let known: Vec<&str> = workloads
        .iter()
        .flat_map(|workload| workload.metrics())
        .map(|spec| spec.name.as_str())
        .collect();
    let hint = nearest(metric, known.iter().copied())
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default();
    Err(StudyError::invalid(
        key,
        format!(
            "no workload measures `{metric}`; metrics here: {}{hint}",
            known.join(", ")
        ),
    ))
}
