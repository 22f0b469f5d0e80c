//! Journals written line by line.

use std::fs;
use std::path::{Path, PathBuf};

use capo_core::ids::CandidateId;
use capo_core::journal::{
    CandidateEvent, CritiqueEvent, DiscardEvent, Event, Origin, RewriteEvent, RoundEvent, SCHEMA, SteerEvent,
    StudyEvent,
};
use capo_core::score::Score;
use capo_core::study::{Format, Study};
use capo_core::usage::Usage;
use indexmap::IndexMap;

const STUDY: &str = r#"
[workload]
kind = "any"

[prompt]
text = "seed"

[objective]
metric = "success"

[[constraint]]
metric = "effort"
threshold = 2.0

[[constraint]]
metric = "length"
threshold = 5.0
from_round = 1

[models.agent]
provider = "any"
"#;

/// A journal under way.
pub(crate) struct Run {
    pub(crate) lines: Vec<String>,
    round: u32,
    scores: IndexMap<CandidateId, Score>,
    parents: Vec<CandidateId>,
    pruned: Vec<CandidateId>,
    known: Vec<CandidateId>,
    criticised: Vec<(CandidateId, u32)>,
    rewrites: u32,
}

impl Run {
    pub(crate) fn new(method: &str) -> Self {
        Self::with(method, "")
    }

    /// With more lines in its study.
    pub(crate) fn with(method: &str, more: &str) -> Self {
        let text = format!("[study]\nname = \"any\"\nmethod = \"{method}\"\n{STUDY}{more}");
        let study = Study::parse(&text, Format::Toml).expect("a valid study");
        let mut run = Self {
            lines: Vec::new(),
            round: 0,
            scores: IndexMap::new(),
            parents: Vec::new(),
            pruned: Vec::new(),
            known: Vec::new(),
            criticised: Vec::new(),
            rewrites: 0,
        };
        run.push(&Event::Study(Box::new(StudyEvent {
            schema: SCHEMA,
            id: "id".into(),
            study,
            started_at: "2026-01-01T00:00:00Z".into(),
            workloads: IndexMap::new(),
            version: String::new(),
        })));
        run
    }

    fn push(&mut self, event: &Event) {
        self.lines.push(serde_json::to_string(event).expect("serialises"));
    }

    fn introduce(&mut self, prompt: &str, lagrangian: f64) -> CandidateId {
        let id = CandidateId::of(prompt);
        if !self.known.contains(&id) {
            self.known.push(id);
            self.push(&Event::Candidate(CandidateEvent {
                id,
                round: self.round,
                origin: Origin::Rewrite,
                from: None,
                parents: vec![],
                prompt: prompt.to_owned(),
            }));
        }
        let score = Score {
            objective: 0.5,
            costs: [("effort".to_owned(), 1.0), ("length".to_owned(), 0.1)].into(),
            margins: IndexMap::new(),
            lagrangian,
            feasible: true,
        };
        self.scores.insert(id, score);
        id
    }

    /// A rewrite with the critique before it, and both values of J in the round under way.
    pub(crate) fn rewrite(&mut self, parent: &str, child: &str, from: f64, to: f64) -> &mut Self {
        self.introduce(parent, from);
        self.criticise(parent);
        self.uncriticised(parent, child, from, to)
    }

    pub(crate) fn uncriticised(&mut self, parent: &str, child: &str, from: f64, to: f64) -> &mut Self {
        let parent = self.introduce(parent, from);
        let child = self.introduce(child, to);
        self.push_rewrite(parent, Some(child))
    }

    pub(crate) fn childless(&mut self, parent: &str) -> &mut Self {
        self.push_rewrite(CandidateId::of(parent), None)
    }

    fn push_rewrite(&mut self, parent: CandidateId, child: Option<CandidateId>) -> &mut Self {
        self.parents.push(parent);
        self.push(&Event::Rewrite(RewriteEvent {
            round: self.round,
            parent,
            index: self.rewrites,
            origin: Origin::Rewrite,
            others: Vec::new(),
            draft: None,
            child,
            reason: child.is_none().then(|| "no block".to_owned()),
            usage: Usage::default(),
            input: None,
            reused_from: None,
        }));
        self.rewrites += 1;
        self
    }

    fn criticise(&mut self, prompt: &str) {
        let of = (CandidateId::of(prompt), self.round);
        if !self.criticised.contains(&of) {
            self.criticised.push(of);
            self.push(&Event::Critique(CritiqueEvent {
                candidate: of.0,
                round: of.1,
                feedback: format!("feedback on {prompt}"),
                usage: Usage::default(),
                input: None,
                reused_from: None,
            }));
        }
    }

    /// The round under way does not retain this prompt.
    pub(crate) fn prune(&mut self, prompt: &str) -> &mut Self {
        self.pruned.push(CandidateId::of(prompt));
        self
    }

    /// Lets a prompt leave the search: it has no score.
    pub(crate) fn discard(&mut self, prompt: &str) -> &mut Self {
        let candidate = CandidateId::of(prompt);
        self.scores.shift_remove(&candidate);
        self.push(&Event::Discard(DiscardEvent {
            candidate,
            round: Some(self.round),
            reason: "it is too long".to_owned(),
            examples: 1,
        }));
        self
    }

    pub(crate) fn steer(&mut self, steer: SteerEvent) -> &mut Self {
        self.push(&Event::Steer(steer));
        self
    }

    /// Ends the round under way.
    pub(crate) fn round(&mut self, multipliers: &[(&str, f64)]) -> &mut Self {
        let multipliers: IndexMap<String, f64> = multipliers
            .iter()
            .map(|(metric, multiplier)| ((*metric).to_owned(), *multiplier))
            .collect();
        let retained = self.scores.keys().filter(|id| !self.pruned.contains(id));
        self.push(&Event::Round(RoundEvent {
            round: self.round,
            multipliers: multipliers.clone(),
            scores: self.scores.clone(),
            parents: self.parents.clone(),
            best: vec![],
            next_multipliers: multipliers,
            retained: retained.copied().collect(),
            batch: None,
        }));
        self.round += 1;
        self.scores.clear();
        self.parents.clear();
        self
    }

    /// Writes the journal as `run-INDEX.jsonl`.
    pub(crate) fn write(&self, folder: &Path, index: usize) -> PathBuf {
        let path = folder.join(format!("run-{index}.jsonl"));
        let mut text = self.lines.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        fs::write(&path, text).expect("written");
        path
    }
}
