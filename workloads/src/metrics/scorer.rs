//! Scorers of the answer: a program or an HTTP endpoint of the user's own.
//!
//! Metrics that name the same one with the same environment or headers share what it says: it is asked once about an
//! answer, and gives a number for each of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use capo_core::ids::CandidateId;
use capo_core::llm::FailureKind;
use capo_core::metric::{Direction, MetricSpec};
use capo_core::workload::{RolloutContext, RolloutError, Trace};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{DefinitionError, Evaluator, Family, Finding, Sample};
use crate::files::Sources;
use crate::outside::{
    Answer, Endpoint, ExternalMetric, Outside, Party, SEED_BITS, Secrets, Transport, cut, measured, parse,
    rate, usual_concurrency, usual_timeout,
};

/// The types of metrics in this file.
pub(crate) const TYPES: [&str; 2] = ["command", "http"];

/// Where the scorer's answer has what the critic is told.
const WORDS: &str = "words";

/// Most characters that the critic is told of them.
const MOST_WORDS: usize = 4_000;

/// Declares a scorer: how it is reached and what it is told, between the settings that all have.
macro_rules! scorer {
    ($(#[doc = $about:literal])+ $scorer:ident { $($reached:tt)* }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $scorer {
            /// The metric's name in this study.
            pub name: String,
            $($reached)*
            /// Which way is better.
            #[serde(default = "objective")]
            pub direction: Direction,
            /// Unit of one measurement.
            #[serde(default = "rate")]
            pub unit: String,
            /// One sentence on what is measured, for people and the rewriter.
            #[serde(default)]
            pub explanation: String,
            /// Smallest possible value; 0 unless stated. An objective's is 0.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub min: Option<f64>,
            /// Largest possible value; unbounded unless stated. An objective's is 1.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub max: Option<f64>,
            /// Whether every value is either the smallest or the largest one.
            #[serde(default)]
            pub binary: bool,
            /// Seconds one answer may take.
            #[serde(default = "usual_timeout")]
            #[schemars(range(max = 86_400.0))]
            pub timeout: f64,
            /// How often a request that failed is tried again: 5 times unless stated, 0 for never.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub retries: Option<u32>,
            /// Answers scored at a time.
            #[serde(default = "usual_concurrency")]
            #[schemars(range(min = 1))]
            pub concurrency: usize,
            /// Measure 1 − value.
            #[serde(default)]
            pub invert: bool,
        }

        impl $scorer {
            fn metric(&self) -> ExternalMetric {
                ExternalMetric {
                    name: self.name.clone(),
                    direction: self.direction,
                    unit: self.unit.clone(),
                    explanation: self.explanation.clone(),
                    min: self.min,
                    max: self.max,
                    binary: self.binary,
                }
            }
        }
    };
}

scorer! {
    /// A number that a program gives the answer. It gets one line of JSON on its standard input and writes one JSON object.
    CommandScorer {
        /// Program and arguments, run in the study file's folder without a shell; not in a browser.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub command: Vec<String>,
        /// Environment variables the program gets, by name. Of all others it gets only the likes of `PATH` and `HOME`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub env: Vec<String>,
        /// The number's name in the program's answer; the metric's unless stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub field: Option<String>,
        /// Tell the program the prompt's text, too.
        #[serde(default)]
        pub with_prompt: bool,
    }
}

scorer! {
    /// A number that an HTTP endpoint gives the answer. It is POSTed one JSON object and answers with one.
    HttpScorer {
        /// Address the request is POSTed to, without a query. A page needs its leave (CORS).
        pub endpoint: String,
        /// Headers sent with each request. Not for secrets: the study is kept in the journal.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub headers: BTreeMap<String, String>,
        /// Headers whose values are in environment variables: header = variable.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub headers_env: BTreeMap<String, String>,
        /// Environment variable with a token, sent as `Authorization: Bearer …`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub bearer_env: Option<String>,
        /// The number's name in the endpoint's answer; the metric's unless stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub field: Option<String>,
        /// Tell the endpoint the prompt's text, too.
        #[serde(default)]
        pub with_prompt: bool,
    }
}

fn objective() -> Direction {
    Direction::Objective
}

/// What an answer is scored with: the example's columns, and what scorers have said of the answer so far.
#[derive(Debug, Default)]
pub struct Scoring<'a> {
    columns: Option<&'a Map<String, Value>>,
    said: RefCell<Vec<(Value, Rc<Said>)>>,
}

/// The numbers that a scorer gave an answer, and what must not be shown of them.
#[derive(Debug)]
struct Said {
    numbers: IndexMap<String, Value>,
    secrets: Secrets,
}

impl<'a> Scoring<'a> {
    /// Of an example with these columns, of whose answer nothing has been said.
    pub fn of(columns: Option<&'a Map<String, Value>>) -> Self {
        Self {
            columns,
            said: RefCell::default(),
        }
    }

    fn said_by(&self, scorer: &Value) -> Option<Rc<Said>> {
        let said = self.said.borrow();
        let (_, said) = said.iter().find(|(by, _)| by == scorer)?;
        Some(Rc::clone(said))
    }
}

/// What a scorer is asked.
#[derive(Serialize)]
struct Request<'a> {
    prompt_id: CandidateId,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    example_id: &'a str,
    example: Option<&'a Map<String, Value>>,
    answer: &'a str,
    repeat: u32,
    seed: u64,
}

/// A metric that a scorer gives.
pub(super) struct Score {
    outside: Outside,
    /// What two metrics have in common that share what a scorer says.
    scorer: Value,
    spec: MetricSpec,
    field: String,
    with_prompt: bool,
}

impl Score {
    fn evaluator(
        outside: Outside,
        scorer: Value,
        metric: &ExternalMetric,
        field: Option<&str>,
        with_prompt: bool,
    ) -> Result<Evaluator, DefinitionError> {
        metric
            .check()
            .map_err(|problem| DefinitionError::new("direction", problem))?;
        let field = field.unwrap_or(&metric.name);
        if field == WORDS {
            return Err(DefinitionError::new(
                "field",
                "`words` of the answer are for the critic; state another name for the number",
            ));
        }
        Ok(Evaluator::Score(Box::new(Self {
            outside,
            scorer,
            spec: spec(metric),
            field: field.to_owned(),
            with_prompt,
        })))
    }

    /// The number, and the scorer's words with the first number it is asked for. Where it fails, the answer that it was
    /// to score is asked about again.
    pub(super) async fn measure(
        &self,
        sample: &Sample<'_>,
        context: &RolloutContext<'_>,
    ) -> Result<Finding, RolloutError> {
        let found = self.find(sample, context).await;
        found.map_err(RolloutError::keeping_answers)
    }

    async fn find(&self, sample: &Sample<'_>, context: &RolloutContext<'_>) -> Result<Finding, RolloutError> {
        if let Some(said) = sample.scoring.said_by(&self.scorer) {
            let value = measured(&self.spec, &self.field, &said.numbers)
                .map_err(|problem| self.outside.malformed(&said.secrets, &problem))?;
            return Ok(Finding::new(value, ""));
        }
        let request = self.request(sample, context)?;
        let read = |answer: &Answer, _: f64| {
            self.read(answer)
                .map_err(|problem| self.outside.malformed(&answer.secrets, &problem))
        };
        let (finding, said) = self.outside.ask(context.caller, &request, read).await?;
        let mut known = sample.scoring.said.borrow_mut();
        known.push((self.scorer.clone(), Rc::new(said)));
        Ok(finding)
    }

    /// One line, so that a program may read its input line by line.
    fn request(&self, sample: &Sample<'_>, context: &RolloutContext<'_>) -> Result<String, RolloutError> {
        let request = Request {
            prompt_id: CandidateId::of(context.prompt),
            prompt: self.with_prompt.then_some(context.prompt),
            example_id: context.example,
            example: sample.scoring.columns,
            answer: sample.answer,
            repeat: context.repeat,
            seed: context.seed & SEED_BITS,
        };
        serde_json::to_string(&request)
            .map(|request| request + "\n")
            .map_err(|error| self.outside.failed(FailureKind::Malformed, false, error))
    }

    fn read(&self, answer: &Answer) -> Result<(Finding, Said), String> {
        let mut numbers: IndexMap<String, Value> = parse(answer, "a JSON object")?;
        let words = match numbers.shift_remove(WORDS) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(words)) => words,
            Some(_) => return Err(format!("`{WORDS}` of its answer is no text")),
        };
        let value = measured(&self.spec, &self.field, &numbers)?;
        let told = Trace {
            outcome: words.trim().to_owned(),
            ..Trace::default()
        };
        let told = answer.secrets.redacted_trace(told)?;
        let secrets = answer.secrets.clone();
        let words = cut(&told.outcome, MOST_WORDS);
        Ok((Finding::new(value, words), Said { numbers, secrets }))
    }
}

fn spec(metric: &ExternalMetric) -> MetricSpec {
    metric.spec("study's own scorer")
}

impl Family for CommandScorer {
    fn spec(&self) -> MetricSpec {
        spec(&self.metric())
    }

    fn compile(&self, sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        let party = Party::Scorer(self.name.clone());
        let transport = Transport::command(&party, &self.command, &self.env, sources)?;
        for argument in &self.command {
            sources.note(argument);
        }
        let outside = Outside::new(party, transport, self.timeout, self.retries, self.concurrency)?;
        let scorer = json!([self.command, self.env, self.with_prompt]);
        let field = self.field.as_deref();
        Score::evaluator(outside, scorer, &self.metric(), field, self.with_prompt)
    }
}

impl Family for HttpScorer {
    fn spec(&self) -> MetricSpec {
        spec(&self.metric())
    }

    fn compile(&self, sources: &mut Sources<'_>) -> Result<Evaluator, DefinitionError> {
        let party = Party::Scorer(self.name.clone());
        let endpoint = Endpoint::read(
            &party,
            &self.endpoint,
            &self.headers,
            &self.headers_env,
            self.bearer_env.as_deref(),
            sources,
        )?;
        let transport = Transport::Endpoint(endpoint);
        let outside = Outside::new(party, transport, self.timeout, self.retries, self.concurrency)?;
        let scorer = json!([
            self.endpoint,
            self.headers,
            self.headers_env,
            self.bearer_env,
            self.with_prompt
        ]);
        let field = self.field.as_deref();
        Score::evaluator(outside, scorer, &self.metric(), field, self.with_prompt)
    }
}
