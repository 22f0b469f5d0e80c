//! A workload's script for its agent: who is handed it, and who is not.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::cell::RefCell;
use std::rc::Rc;

use capo_core::arena::{Models, RunOptions};
use capo_core::journal::{Journal, MemoryJournal};
use capo_core::llm::{
    AgentScript, AssistantMessage, ChatRequest, ChatResponse, Llm, LlmError, Message, Role,
};
use capo_core::metric::MetricSpec;
use capo_core::optimize;
use capo_core::problem::Problem;
use capo_core::study::{Format, Study};
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Workload};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::LocalBoxFuture;

use crate::tiny::{Questions, STUDY, Tiny};

/// Says which example it is for.
struct Script(String);

impl AgentScript for Script {
    fn next(&self, _: &ChatRequest, _: &str, _: u64) -> AssistantMessage {
        AssistantMessage {
            content: Some(self.0.clone()),
            tool_calls: Vec::new(),
        }
    }
}

/// The questions, with a script for each, and a user who is asked beside the agent.
struct Scripted(Questions);

impl Workload for Scripted {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn metrics(&self) -> &[MetricSpec] {
        self.0.metrics()
    }

    fn examples(&self, split: Split) -> &[String] {
        self.0.examples(split)
    }

    fn fingerprint(&self) -> String {
        self.0.fingerprint()
    }

    fn description(&self) -> String {
        self.0.description()
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        vec![(Role::Agent, 1), (Role::User, 1)]
    }

    fn agent_script(&self, example: &str) -> Option<Rc<dyn AgentScript>> {
        Some(Rc::new(Script(example.to_owned())))
    }

    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        async move {
            let request = ChatRequest::new(vec![Message::user(context.example)]);
            context.chat(Role::User, request).await?;
            self.0.rollout(context).await
        }
        .boxed_local()
    }
}

/// Who was asked, and by the script of which example.
type Asked = Rc<RefCell<Vec<(Role, Option<String>)>>>;

struct Watched(Asked);

impl Models for Watched {
    fn model(&self, role: Role) -> Rc<dyn Llm> {
        Rc::new(WatchedModel {
            role,
            model: Tiny.model(role),
            asked: Rc::clone(&self.0),
        })
    }
}

struct WatchedModel {
    role: Role,
    model: Rc<dyn Llm>,
    asked: Asked,
}

impl Llm for WatchedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        self.asked.borrow_mut().push((self.role, None));
        self.model.chat(request)
    }

    fn act<'a>(
        &'a self,
        request: ChatRequest,
        script: &'a dyn AgentScript,
    ) -> LocalBoxFuture<'a, Result<ChatResponse, LlmError>> {
        let example = script.next(&request, self.name(), 0).content;
        self.asked.borrow_mut().push((self.role, example));
        self.model.chat(request)
    }
}

#[test]
fn the_agent_alone_is_handed_the_script_of_its_example() {
    let study = format!("{STUDY}[models.user]\nprovider = \"tiny\"\n");
    let study = study.replace("[method]\nparents = 2\nchildren = 1\n", "");
    let study = Study::parse(&study, Format::Toml).unwrap();
    let problem = Problem::new(study, vec![Rc::new(Scripted(Questions::new()))]).unwrap();
    let asked = Asked::default();
    let journal = Journal::create(Box::new(MemoryJournal::new()));
    let models = Rc::new(Watched(Rc::clone(&asked)));
    block_on(optimize(problem, journal, models, RunOptions::default())).unwrap();

    let asked = asked.borrow();
    let examples = ["parcel 1", "refund 1", "parcel 2", "refund 2"];
    for (role, script) in asked.iter() {
        match role {
            Role::Agent => assert!(examples.contains(&script.as_deref().unwrap())),
            _ => assert_eq!(*script, None, "{role}"),
        }
    }
    for role in [Role::Agent, Role::User, Role::Critic, Role::Rewriter] {
        assert!(asked.iter().any(|(asked, _)| *asked == role), "{role}");
    }
    for example in examples {
        assert!(asked.iter().any(|(_, script)| script.as_deref() == Some(example)));
    }
}
