//! Whole conversations with scripted models.

use std::cell::RefCell;
use std::collections::VecDeque;

use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, FailureKind, Finish, LlmError, Message, Role,
    ToolCall,
};
use capo_core::workload::{Caller, Rollout, RolloutContext, RolloutError, Split, Workload};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::super::airline::Airline;
use super::super::environment::{Side, World as _};
use super::super::folder::{self, Domain};
use super::super::replay::replay;
use super::super::retail::Retail;
use super::super::settings::{DomainName, Tau2Settings};
use super::super::task::{Action, Task};
use super::super::telecom::Telecom;
use super::super::tool::Tool;
use super::super::trajectory::{Event, Trajectory};
use super::super::workload::Tau2;
use super::{fresh, tasks};
use crate::files::{Files, MemoryFiles};
use crate::shared::{self, SharedFiles};

/// Models that answer from a list for each role, and remember what they were asked.
#[derive(Default)]
struct Script {
    agent: RefCell<VecDeque<AssistantMessage>>,
    user: RefCell<VecDeque<AssistantMessage>>,
    judge: RefCell<VecDeque<AssistantMessage>>,
    asked: RefCell<Vec<(Role, ChatRequest)>>,
}

fn text(text: impl Into<String>) -> AssistantMessage {
    AssistantMessage {
        content: Some(text.into()),
        tool_calls: Vec::new(),
    }
}

fn calls(calls: &[(&str, Value)]) -> AssistantMessage {
    let call = |(place, (name, arguments)): (usize, &(&str, Value))| ToolCall {
        id: format!("c{place}"),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    };
    AssistantMessage {
        content: None,
        tool_calls: calls.iter().enumerate().map(call).collect(),
    }
}

impl Script {
    fn new(agent: Vec<AssistantMessage>, user: Vec<AssistantMessage>) -> Self {
        Self {
            agent: RefCell::new(agent.into()),
            user: RefCell::new(user.into()),
            ..Self::default()
        }
    }

    fn judged(self, answers: Vec<AssistantMessage>) -> Self {
        *self.judge.borrow_mut() = answers.into();
        self
    }

    /// What the model of a role was asked at its `number`-th turn.
    fn asked(&self, role: Role, number: usize) -> ChatRequest {
        let asked = self.asked.borrow();
        let mut of_role = asked.iter().filter(|(other, _)| *other == role);
        of_role.nth(number).unwrap().1.clone()
    }
}

impl Caller for Script {
    fn call(&self, role: Role, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let answers = match role {
            Role::Agent => &self.agent,
            Role::User => &self.user,
            _ => &self.judge,
        };
        self.asked.borrow_mut().push((role, request));
        let answer = answers.borrow_mut().pop_front();
        async move {
            Ok(ChatResponse {
                message: answer.unwrap_or_else(|| panic!("the {role} has nothing left to say")),
                finish: Finish::Stop,
                usage: CallUsage {
                    seconds: 1.5,
                    ..CallUsage::default()
                },
                failed_tries: None,
            })
        }
        .boxed_local()
    }
}

/// A domain's workload with all its base tasks; `None`, said aloud, where the data are absent.
fn workload<W: Domain>(more: &Value) -> Option<Tau2<W>> {
    capo_tests::shared::shared("tau2/data")?;
    let mut settings = json!({ "domain": W::NAME, "data": "tau2/data" });
    settings
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let settings: Tau2Settings = serde_json::from_value(settings).unwrap();
    Some(Tau2::new(&settings, &SharedFiles).unwrap_or_else(|error| panic!("{error}")))
}

fn play<W: Domain>(workload: &Tau2<W>, example: &str, script: &Script) -> Result<Rollout, RolloutError> {
    block_on(workload.rollout(RolloutContext {
        prompt: "Be kind.",
        example,
        repeat: 0,
        seed: 7,
        caller: script,
    }))
}

fn bye() -> AssistantMessage {
    text("Thank you. ###STOP###")
}

/// All ids of a workload.
fn ids<W: Domain>(workload: &Tau2<W>) -> Vec<String> {
    [Split::Optimize, Split::Evaluate]
        .iter()
        .flat_map(|split| workload.examples(*split).to_vec())
        .collect()
}

/// Models that do what the reference does, each side its own part in its order, and say what must be
/// said. The judge finds everything.
fn reference(task: &Task) -> Script {
    let mut agent = Vec::new();
    let mut user = vec![text("Hello.")];
    let mut turn = Side::Assistant;
    let give = |turn: &mut Side, to: Side, agent: &mut Vec<_>, user: &mut Vec<_>| {
        if *turn != to {
            match *turn {
                Side::Assistant => agent.push(text("Your turn.")),
                Side::User => user.push(text("Done.")),
            }
            *turn = to;
        }
    };
    for action in task.reference() {
        give(&mut turn, action.requestor, &mut agent, &mut user);
        let call = calls(&[(&action.name, Value::Object(action.arguments.clone()))]);
        match action.requestor {
            Side::Assistant => agent.push(call),
            Side::User => user.push(call),
        }
    }
    give(&mut turn, Side::Assistant, &mut agent, &mut user);
    let criteria = task.evaluation_criteria.as_ref().unwrap();
    let info = criteria
        .communicate_info
        .iter()
        .flatten()
        .cloned()
        .collect::<Vec<_>>();
    agent.push(text(format!("That is all: {}", info.join("; "))));
    user.push(bye());
    let found: Vec<Value> = task
        .judged()
        .unwrap_or_default()
        .iter()
        .map(|_| json!({ "reason": "seen", "met": true }))
        .collect();
    Script::new(agent, user).judged(vec![text(json!({ "results": found }).to_string())])
}

#[test]
fn a_simulated_agent_is_handed_the_reference_of_its_task() {
    let Some(workload) = workload::<Retail>(&json!({})) else {
        return;
    };
    let tasks = tasks::<Retail>().unwrap();
    let mut request = ChatRequest::new(vec![
        Message::system("Look everything up. Never guess."),
        Message::user("Hello."),
    ]);
    request.tools = Retail::agent_tools().iter().map(Tool::spec).collect();
    for id in ids(&workload) {
        let script = workload.agent_script(&id).unwrap();
        let Some(first) = tasks[&id].reference().first().map(Action::to_call) else {
            continue;
        };
        // Most of the time it asks who the customer is before it does anything.
        let makes_it = |key| {
            let calls = script.next(&request, "sim-large", key).tool_calls;
            let same = |call: &ToolCall| call.name == first.name && call.arguments == first.arguments;
            calls.iter().any(same)
        };
        assert!((0..1000).any(makes_it), "{id}");
    }
    assert!(workload.agent_script("no such task").is_none());
}

fn nothing_done() -> Script {
    Script::new(vec![text("Is that all?")], vec![text("Hello."), bye()])
}

/// Plays all base tasks and returns the ids of those that succeeded.
fn solved<W: Domain>(workload: &Tau2<W>, script: impl Fn(&Task) -> Script) -> Vec<String> {
    let tasks = tasks::<W>().unwrap();
    ids(workload)
        .into_iter()
        .filter(|id| {
            let rollout =
                play(workload, id, &script(&tasks[id])).unwrap_or_else(|error| panic!("{id}: {error}"));
            rollout.measurements["success"] == 1.0
        })
        .collect()
}

#[test]
fn doing_what_the_reference_does_solves_every_task() {
    fn all<W: Domain>() {
        let Some(workload) = workload::<W>(&json!({})) else {
            return;
        };
        assert_eq!(solved(&workload, reference), ids(&workload), "{}", W::NAME);
    }
    all::<Airline>();
    all::<Retail>();
    all::<Telecom>();
}

#[test]
fn doing_nothing_solves_what_the_guide_says() {
    fn solved_by_nothing<W: Domain>() -> Option<Vec<String>> {
        let workload = workload::<W>(&json!({}))?;
        // A judge who finds nothing leaves only tasks about which there is nothing to find.
        let idle = |task: &Task| {
            let missed: Vec<Value> = task
                .judged()
                .unwrap_or_default()
                .iter()
                .map(|_| json!({ "reason": "unseen", "met": false }))
                .collect();
            nothing_done().judged(vec![text(json!({ "results": missed }).to_string())])
        };
        let mut solved = solved(&workload, idle);
        solved.sort_by_key(|id| id.parse::<u32>().ok());
        println!(
            "{}: doing nothing solves {}: {}",
            W::NAME,
            solved.len(),
            solved.join(", ")
        );
        Some(solved)
    }
    let Some(airline) = solved_by_nothing::<Airline>() else {
        return;
    };
    let retail = solved_by_nothing::<Retail>().unwrap();
    let telecom = solved_by_nothing::<Telecom>().unwrap();
    assert_eq!((airline.len(), retail.len(), telecom.len()), (23, 6, 0));
}

#[test]
fn each_side_sees_its_own_calls_and_what_the_other_says() {
    let Some(workload) = workload::<Telecom>(&json!({})) else {
        return;
    };
    let id = &ids(&workload)[0];
    let script = Script::new(
        vec![
            calls(&[
                ("get_customer_by_id", json!({ "customer_id": "C1001" })),
                ("nonsense", json!([])),
            ]),
            text("Please look."),
            text("Goodbye."),
        ],
        vec![
            text("No signal."),
            calls(&[("check_status_bar", json!({}))]),
            text("I looked."),
            bye(),
        ],
    );
    let rollout = play(&workload, id, &script).unwrap();
    let roles = |request: &ChatRequest| -> Vec<&'static str> {
        let role = |message: &Message| match message {
            Message::System { .. } => "system",
            Message::User { .. } => "user",
            Message::Assistant(_) => "assistant",
            Message::Tool { .. } => "tool",
        };
        request.messages.iter().map(role).collect()
    };
    let agent = script.asked(Role::Agent, 2);
    assert_eq!(
        roles(&agent),
        [
            "system",
            "assistant",
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant",
            "user"
        ]
    );
    assert_eq!(agent.messages[7], Message::user("I looked."));
    assert_eq!((agent.tools.len(), agent.seed), (13, Some(7)));
    let Message::System { content } = &agent.messages[0] else {
        panic!("{agent:?}")
    };
    assert!(content.starts_with("<instructions>\nBe kind.\n</instructions>\n<policy>\n"));
    let user = script.asked(Role::User, 3);
    assert_eq!(
        roles(&user),
        [
            "system",
            "user",
            "assistant",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user"
        ]
    );
    assert_eq!(user.tools.len(), 30);
    let value = |name: &str| rollout.measurements[name];
    assert_eq!(
        (
            value("turns"),
            value("latency"),
            value("verbosity"),
            value("tool_errors")
        ),
        (2.0, 4.5, 0.1, 1.0)
    );
    assert_eq!(rollout.trace.details["user_calls"], 1);
    assert!(rollout.trace.details["customer"].as_array().unwrap().len() > 3);
    assert_eq!(
        rollout.trace.messages[0],
        Message::assistant("Hi! How can I help you today?")
    );
}

#[test]
fn what_both_sides_changed_is_recorded() {
    let Some(workload) = workload::<Telecom>(&json!({})) else {
        return;
    };
    let line = json!({ "customer_id": "C1001", "line_id": "L1003" });
    let script = Script::new(
        vec![
            calls(&[("enable_roaming", line)]),
            text("Now you."),
            text("Goodbye."),
        ],
        vec![
            text("No signal."),
            calls(&[("toggle_data_saver_mode", json!({})), ("nonsense", json!({}))]),
            text("Done."),
            bye(),
        ],
    );
    // No task about data switches roaming on for a line that the customer does not call from.
    let id = ids(&workload).into_iter().find(|id| id.contains("mms")).unwrap();
    let rollout = play(&workload, &id, &script).unwrap();
    let changes = &rollout.trace.details["changes"];
    assert_eq!(changes["left_out"], 0);
    let made = |side: &str| -> Vec<Value> {
        let made = changes["made"].as_array().unwrap().iter();
        made.filter(|change| change["side"] == side).cloned().collect()
    };
    let roaming = json!({
        "side": "assistant", "path": "lines.L1003.roaming_enabled", "before": false, "after": true,
    });
    assert_eq!(made("assistant"), [roaming], "{changes}");
    let [saver] = made("user").try_into().unwrap();
    assert_eq!(saver["path"], "device.data_saver_mode");
    assert_ne!(saver["before"], saver["after"]);
}

#[test]
fn limits_end_a_conversation_that_then_earns_nothing() {
    for (limit, reason, steps) in [
        (json!({ "max_steps": 4 }), "max_steps", 2),
        (json!({ "max_errors": 2 }), "too_many_errors", 2),
        // The later check wins.
        (json!({ "max_steps": 5, "max_errors": 2 }), "too_many_errors", 2),
    ] {
        let Some(workload) = workload::<Airline>(&limit) else {
            return;
        };
        let wrong = calls(&[("get_user_details", json!({ "user_id": "nobody" }))]);
        let script = Script::new(vec![wrong; 9], vec![text("Hello.")]);
        let rollout = play(&workload, &ids(&workload)[0], &script).unwrap();
        assert_eq!(rollout.trace.details["termination_reason"], reason);
        assert_eq!(rollout.trace.details["reward_breakdown"], Value::Null);
        assert_eq!(rollout.trace.details["agent_calls"], steps);
        assert_eq!(rollout.measurements["success"], 0.0);
        assert_eq!(rollout.measurements["repeated_calls"], 1.0);
    }
}

#[test]
fn a_model_that_says_nothing_is_a_failure_and_no_score() {
    let Some(workload) = workload::<Airline>(&json!({})) else {
        return;
    };
    let script = Script::new(vec![text(" \n")], vec![text("Hello.")]);
    let failure = play(&workload, &ids(&workload)[0], &script).unwrap_err();
    let RolloutError::Failed {
        kind,
        message,
        retryable,
        ..
    } = failure
    else {
        panic!("{failure:?}")
    };
    assert_eq!((kind, retryable), (FailureKind::Malformed, true));
    assert!(message.contains("[models.agent]"), "{message}");
}

#[test]
fn a_judge_is_asked_twice_and_then_fails() {
    let Some(workload) = workload::<Retail>(&json!({})) else {
        return;
    };
    let tasks = tasks::<Retail>().unwrap();
    let id = ids(&workload)
        .into_iter()
        .find(|id| tasks[id].judged().is_some())
        .unwrap();
    let script = reference(&tasks[&id]).judged(vec![text("Fine."), text("Very fine.")]);
    let failure = play(&workload, &id, &script).unwrap_err();
    assert!(
        failure.to_string().contains("no usable verdict in 2 attempts"),
        "{failure}"
    );
}

#[test]
fn making_the_writes_of_a_conversation_again_gives_the_same_world() {
    fn again<W: Domain>() {
        let (Some(fresh), Some(tasks)) = (fresh::<W>(), tasks::<W>()) else {
            return;
        };
        let mut tasks: Vec<(&String, &Task)> = tasks.iter().collect();
        tasks.sort_by_key(|(id, _)| *id);
        for (id, task) in tasks.into_iter().take(200) {
            let mut world = task.set_up(&fresh).unwrap();
            let mut remade = world.clone();
            let mut trajectory = Trajectory::default();
            for action in task.reference() {
                let arguments = Value::Object(action.arguments.clone());
                let result = super::super::environment::call_any(
                    &mut world,
                    action.requestor,
                    &action.name,
                    &arguments,
                );
                world.sync().unwrap();
                trajectory.0.push(Event::Called {
                    by: action.requestor,
                    text: None,
                    calls: vec![ToolCall {
                        id: action.action_id.clone(),
                        name: action.name.clone(),
                        arguments,
                    }],
                });
                trajectory.0.push(Event::Answered {
                    to: action.requestor,
                    call_id: action.action_id.clone(),
                    content: result.content,
                    error: result.error,
                });
            }
            replay(&mut remade, &trajectory).unwrap_or_else(|error| panic!("{id}: {error}"));
            assert!(remade.equals(&world), "{id}");
            assert_eq!(
                (remade.agent_hash(), remade.user_hash()),
                (world.agent_hash(), world.user_hash()),
                "{id}"
            );
        }
    }
    again::<Airline>();
    again::<Retail>();
    again::<Telecom>();
}

#[test]
fn a_domain_reads_the_files_that_it_lists_and_no_others() {
    for domain in DomainName::ALL {
        let mut files = MemoryFiles::new();
        for path in folder::files(domain) {
            let Some(text) = shared::text(&format!("tau2/data/{path}")) else {
                return;
            };
            files.insert(format!("here/{path}"), text);
        }
        let settings = json!({ "kind": "tau2", "domain": domain, "data": "here/" });
        let build = |files: &MemoryFiles| {
            crate::build(settings.as_object().unwrap(), files, 0)
                .map(|workloads| workloads[0].name().to_owned())
        };
        assert_eq!(build(&files).unwrap(), domain.name());
        for path in folder::files(domain)
            .iter()
            .filter(|path| !path.contains("workflow"))
        {
            let mut lacking = MemoryFiles::new();
            for other in folder::files(domain).iter().filter(|other| *other != path) {
                let other = format!("here/{other}");
                lacking.insert(other.clone(), files.read(&other).unwrap());
            }
            let error = build(&lacking).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("workload.data: no file `here/{path}`;")),
                "{error}"
            );
        }
    }
}

#[test]
fn why_a_call_failed_may_be_said_otherwise_but_not_that_it_failed() {
    let Some(fresh) = fresh::<Airline>() else {
        return;
    };
    let cancelling = |content: &str, error| {
        Trajectory(vec![
            Event::Called {
                by: Side::Assistant,
                text: None,
                calls: vec![ToolCall {
                    id: "c".to_owned(),
                    name: "cancel_reservation".to_owned(),
                    arguments: json!({ "reservation": "EHGLP3" }),
                }],
            },
            Event::Answered {
                to: Side::Assistant,
                call_id: "c".to_owned(),
                content: content.to_owned(),
                error,
            },
        ])
    };
    let in_other_words = cancelling(
        "Error: AirlineTools.cancel_reservation() got an unexpected keyword",
        true,
    );
    replay(&mut fresh.clone(), &in_other_words).unwrap();
    for trajectory in [
        cancelling(
            "Error: AirlineTools.cancel_reservation() got an unexpected keyword",
            false,
        ),
        Trajectory(cancelling("", true).0.split_off(1)),
        Trajectory(vec![cancelling("", true).0.swap_remove(0)]),
    ] {
        assert!(replay(&mut fresh.clone(), &trajectory).is_err(), "{trajectory:?}");
    }
}

#[test]
fn what_is_said_beside_a_call_is_no_turn_but_counts_as_told() {
    let Some(workload) = workload::<Airline>(&json!({})) else {
        return;
    };
    let tasks = tasks::<Airline>().unwrap();
    let told = |id: &String| {
        let criteria = tasks[id].evaluation_criteria.as_ref().unwrap();
        criteria
            .communicate_info
            .as_ref()
            .is_some_and(|info| !info.is_empty())
    };
    let id = ids(&workload).into_iter().find(told).unwrap();
    let info = tasks[&id]
        .evaluation_criteria
        .as_ref()
        .unwrap()
        .communicate_info
        .clone()
        .unwrap();
    let mut beside = calls(&[("list_all_airports", json!({}))]);
    beside.content = Some(info.join("; "));
    let script = Script::new(vec![beside, text("Done.")], vec![text("Hello."), bye()]);
    let rollout = play(&workload, &id, &script).unwrap();
    assert_eq!(rollout.measurements["turns"], 1.0);
    assert_eq!(rollout.measurements["verbosity"], 0.05);
    assert_eq!(rollout.trace.details["reward_breakdown"]["COMMUNICATE"], 1.0);
}
