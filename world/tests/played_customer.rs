//! The help desk with customers played by a simulated model: the persona that the workload writes
//! and the model that reads it understand each other.

use std::cell::{Cell, RefCell};

use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, Finish, Llm, LlmError, Message, Role, ToolCall,
};
use capo_core::workload::{Caller, Rollout, RolloutContext, Workload};
use capo_world::desk::language::affirms;
use capo_world::desk::task::{Action, Task};
use capo_world::desk::tools::{self, Kind};
use capo_world::desk::user::STOP;
use capo_world::desk::{Desk, DeskSettings, UserKind};
use capo_world::simulated::Simulated;
use futures::executor::block_on;
use futures::future::{LocalBoxFuture, ready};

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
    agent: A,
    customer: Simulated,
}

impl<A: Fn(&ChatRequest) -> AssistantMessage> Dialogue<A> {
    fn new(agent: A) -> Self {
        Self {
            agent,
            customer: Simulated::new("sim-medium", 0).expect("there is a model of this name"),
        }
    }
}

impl<A: Fn(&ChatRequest) -> AssistantMessage> Caller for Dialogue<A> {
    fn call(&self, role: Role, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        match role {
            Role::User => self.customer.chat(request),
            _ => Box::pin(ready(Ok(ChatResponse {
                message: (self.agent)(&request),
                finish: Finish::Stop,
                usage: CallUsage::default(),
                failed_tries: None,
            }))),
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

fn says(text: &str) -> AssistantMessage {
    AssistantMessage {
        content: Some(text.to_owned()),
        tool_calls: Vec::new(),
    }
}

/// An agent that knows the task: it asks for identity, follows the reference, asks before every
/// write, reports, and says what must be told.
#[derive(Default)]
struct Reference {
    done: usize,
    identity_asked: bool,
    wrote: bool,
}

impl Reference {
    fn act(&mut self, task: &Task, request: &ChatRequest) -> AssistantMessage {
        if std::mem::take(&mut self.wrote) {
            return says("That is done. Is there anything else?");
        }
        let Some(action) = task.reference.get(self.done) else {
            return says(&conclusion(task));
        };
        if action.tool == "verify_identity" && !std::mem::take(&mut self.identity_asked) {
            self.identity_asked = true;
            return says("Could you give me your e-mail address and postcode?");
        }
        let kind = tools::named(&action.tool).expect("references call tools").kind;
        if kind == Kind::Write {
            let proposal = proposal(task, action);
            let asked = request.messages.iter().rev().nth(1);
            let asked = matches!(asked, Some(Message::Assistant(answer)) if answer.text() == proposal);
            if !(asked && affirms(last_user(request))) {
                return says(&proposal);
            }
            self.wrote = true;
        }
        self.identity_asked = false;
        self.done += 1;
        AssistantMessage {
            content: None,
            tool_calls: vec![ToolCall {
                id: format!("call-{}", self.done),
                name: action.tool.clone(),
                arguments: action.arguments.clone(),
            }],
        }
    }
}

fn last_user(request: &ChatRequest) -> &str {
    let texts = request.messages.iter().rev().find_map(|message| match message {
        Message::User { content } => Some(content.as_str()),
        _ => None,
    });
    texts.unwrap_or_default()
}

fn proposal(task: &Task, action: &Action) -> String {
    let arguments = &action.arguments;
    let record = arguments["order_id"].as_str().or(arguments["slot_id"].as_str());
    let record = record.expect("writes name an order or a slot");
    let deed = match action.tool.as_str() {
        "cancel_order" => "cancel",
        "return_items" if arguments["refund_to"] == "voucher" => "take back for a voucher the items of",
        "return_items" => "take back the items of",
        "exchange_item" => "exchange the item of",
        "change_address" => "change the address of",
        "book_appointment" => "book",
        other => panic!("{other} is no write"),
    };
    let mut told = task.expected.told.iter();
    let told = told.find(|told| told.what.contains("sold out"));
    let told = told.map_or(String::new(), |told| format!("It is {}. ", told.any_of[0]));
    format!("{told}I will {deed} {record}. Shall I go ahead?")
}

fn conclusion(task: &Task) -> String {
    let told = task.expected.told.iter().map(|told| told.any_of[0].as_str());
    let told: Vec<&str> = told.collect();
    if task.difficulty().impossible {
        format!("I am sorry, I cannot do that ({}).", told.join(", "))
    } else {
        format!("It is expected on {}.", told.join(", "))
    }
}

#[test]
fn a_perfect_agent_solves_every_task_of_a_played_customer() {
    let desk = desk();
    for task in desk.tasks().values() {
        let progress = RefCell::new(Reference::default());
        let caller = Dialogue::new(|request: &ChatRequest| progress.borrow_mut().act(task, request));
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
        let caller = Dialogue::new(|_: &ChatRequest| says("Hello and welcome."));
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
            let caller = Dialogue::new(|_: &ChatRequest| {
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
        let caller = Dialogue::new(|_: &ChatRequest| says(text));
        customer_texts(&rollout(&desk, task, &caller))[1].to_owned()
    };
    for task in desk.tasks().values() {
        let request = serde_json::to_value(&task.script.requests[0]).expect("a request is JSON");
        let names = |field: &str, deed: &str| {
            request[field]
                .as_array()
                .is_some_and(|deeds| deeds.iter().any(|known| known == deed))
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
