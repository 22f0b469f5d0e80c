//! The help desk with customers played by a simulated model: the persona that the workload writes
//! and the model that reads it understand each other.

use std::cell::{Cell, RefCell};

use capo_core::llm::Llm as _;
use capo_core::llm::{AssistantMessage, ChatRequest, ChatResponse, LlmError, Message, Role};
use capo_core::workload::{Caller, Rollout, RolloutContext, Workload};
use futures::executor::block_on;
use futures::future::LocalBoxFuture;

use super::agents::{Answering, Progress, says};
use crate::desk::language::affirms;
use crate::desk::task::Task;
use crate::desk::user::STOP;
use crate::desk::{Desk, DeskSettings, UserKind};
use crate::simulated::Simulated;

fn desk() -> Desk {
    Desk::new(DeskSettings {
        user: UserKind::Llm,
        ..DeskSettings::default()
    })
    .expect("the help desk is set up")
}

/// One simulated model in every role.
struct Everybody(Simulated);

impl Caller for Everybody {
    fn call(&self, _: Role, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        self.0.chat(request)
    }
}

/// An agent that is a function of the conversation, and a simulated model for its customer.
struct Dialogue<A> {
    agent: Answering<A>,
    customer: Simulated,
}

impl<A: Fn(Role, &ChatRequest) -> AssistantMessage> Dialogue<A> {
    fn new(agent: A) -> Self {
        Self {
            agent: Answering(agent),
            customer: Simulated::new("sim-medium", 0).expect("there is a model of this name"),
        }
    }
}

impl<A: Fn(Role, &ChatRequest) -> AssistantMessage> Caller for Dialogue<A> {
    fn call(&self, role: Role, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        match role {
            Role::User => self.customer.chat(request),
            _ => self.agent.call(role, request),
        }
    }
}

fn rollout(desk: &Desk, task: &Task, caller: &dyn Caller) -> Rollout {
    let context = RolloutContext {
        prompt: "Be kind.",
        example: &task.id,
        repeat: 0,
        seed: 7,
        caller,
    };
    block_on(desk.rollout(context)).expect("both models answer")
}

fn value(done: &Rollout, metric: &str) -> f64 {
    let values = &done.measurements;
    let found = values.iter().find(|(name, _)| *name == metric);
    found.map(|(_, value)| *value).expect("the metric is measured")
}

fn customer_texts(done: &Rollout) -> Vec<&str> {
    let texts = done.trace.messages.iter().filter_map(|message| match message {
        Message::User { content } => Some(content.as_str()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_perfect_agent_solves_every_task_of_a_played_customer() {
    let desk = desk();
    for task in desk.tasks().values() {
        let progress = RefCell::new(Progress::default());
        let caller = Dialogue::new(|_, request: &ChatRequest| progress.borrow_mut().act(task, request));
        let done = rollout(&desk, task, &caller);
        let story = || {
            format!(
                "{} {}\n{}\n{:#?}",
                task.id, task.scenario, done.trace.outcome, done.trace.messages
            )
        };
        assert!(!done.trace.outcome.contains("used up its steps"), "{}", story());
        assert_eq!(value(&done, "success"), 1.0, "{}", story());
        assert_eq!(value(&done, "policy_violations"), 0.0, "{}", story());
    }
}

#[test]
fn the_first_words_hold_the_whole_request() {
    let desk = desk();
    for task in desk.tasks().values() {
        let caller = Dialogue::new(|_, _: &ChatRequest| says("Hello and welcome."));
        let done = rollout(&desk, task, &caller);
        let texts = customer_texts(&done);
        assert_eq!(texts[0], task.script.requests[0].text, "{}", task.id);
        assert!(
            !done.trace.outcome.contains("used up its steps"),
            "who is only greeted leaves"
        );
        assert_eq!(value(&done, "success"), 0.0, "{}", task.id);
    }
}

#[test]
fn every_request_gets_its_own_facts() {
    let desk = desk();
    let of_two = |task: &&Task| task.script.requests.len() == 2;
    let tasks: Vec<&Task> = desk.tasks().values().filter(of_two).collect();
    assert!(!tasks.is_empty());
    for task in tasks {
        for (topic, question) in [
            ("order", "Could you give me the order number?"),
            ("item", "Could you tell me which item of the order you mean?"),
            ("date", "Could you tell me which day and time would suit you?"),
            ("service", "Could you tell me which service you need?"),
        ] {
            // Settles the first request, whichever it is, then asks about the second.
            let step = Cell::new(0);
            let caller = Dialogue::new(|_, _: &ChatRequest| {
                let text = match step.replace(step.get() + 1) {
                    0 | 2 => question,
                    _ => "That is done. Is there anything else?",
                };
                says(text)
            });
            let done = rollout(&desk, task, &caller);
            let texts = customer_texts(&done);
            for (request, answer) in task.script.requests.iter().zip([texts[1], texts[3]]) {
                let facts = serde_json::to_value(&request.facts).expect("facts are JSON");
                match facts[topic][0].as_str() {
                    Some(fact) => assert_eq!(answer, fact, "{} {topic}", task.id),
                    None => assert!(
                        answer.starts_with("I don't know") || answer.starts_with("As I said"),
                        "{} {topic}: {answer}",
                        task.id
                    ),
                }
            }
        }
    }
}

#[test]
fn a_played_customer_refuses_what_was_not_asked_for() {
    let desk = desk();
    let offered = |task: &Task, text: &str| {
        let caller = Dialogue::new(|_, _: &ChatRequest| says(text));
        customer_texts(&rollout(&desk, task, &caller))[1].to_owned()
    };
    for task in desk.tasks().values() {
        let request = serde_json::to_value(&task.script.requests[0]).expect("a request is JSON");
        let names = |field: &str, operation: &str| {
            request[field]
                .as_array()
                .is_some_and(|operations| operations.iter().any(|known| known == operation))
        };
        if names("declines", "voucher") {
            let answer = offered(task, "I will give you a voucher for it. Shall I go ahead?");
            // Who has nothing more to say against it leaves.
            let gives_in = task.script.requests[0].pushes.is_empty();
            let refuses = answer.starts_with("No") != gives_in && answer.ends_with(STOP) == gives_in;
            assert!(refuses && !affirms(&answer), "{} {answer}", task.id);
        }
        if names("wants", "cancel") {
            let known = task.script.requests[0].recognises.first();
            if let Some(known) = known {
                let answer = offered(task, "I will cancel O-1111. Shall I go ahead?");
                assert_eq!(answer, format!("No, that's not the one. I mean {known}."));
            }
            let answer = offered(task, "I will exchange it. Shall I go ahead?");
            assert!(answer.starts_with("No"), "{} {answer}", task.id);
        }
        let answer = offered(task, "Shall I hand you over to a colleague?");
        assert_eq!(
            answer.starts_with("Yes"),
            task.script.wants_human,
            "{} {answer}",
            task.id
        );
    }
}

#[test]
fn a_simulated_agent_fares_with_played_customers_as_with_scripted_ones() {
    const PROMPT: &str = "Verify who the customer is before you do anything else. Always ask for confirmation \
                          before you change anything. Check that the rules allow an action before you take it. \
                          Never guess missing information. Think step by step and plan before you act.";
    let success = |desk: &Desk| {
        let everybody = Everybody(Simulated::new("sim-large", 0).expect("there is a model of this name"));
        let solved = desk.tasks().values().map(|task| {
            let context = RolloutContext {
                prompt: PROMPT,
                example: &task.id,
                repeat: 0,
                seed: 7,
                caller: &everybody,
            };
            value(
                &block_on(desk.rollout(context)).expect("the model answers"),
                "success",
            )
        });
        solved.sum::<f64>() / desk.tasks().len() as f64
    };
    let scripted = Desk::new(DeskSettings::default()).expect("the help desk is set up");
    let (played, scripted) = (success(&desk()), success(&scripted));
    assert!(scripted > 0.5, "{scripted}");
    assert!((played - scripted).abs() < 0.05, "{played} {scripted}");
}
