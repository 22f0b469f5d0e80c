//! What the help desk itself costs per dialogue: an agent that answers at once has the reference's
//! dialogue of every task. Prints microseconds per rollout; the aim is 30.

use std::cell::Cell;
use std::time::Instant;

use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, Finish, LlmError, Role, ToolCall,
};
use capo_core::workload::{Caller, RolloutContext, Workload};
use capo_world::desk::task::Task;
use capo_world::desk::{Desk, DeskSettings};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::LocalBoxFuture;

const ROUNDS: u32 = 200;

/// Plays the reference, with a text before the first and after the last call.
struct Reference<'a> {
    task: &'a Task,
    step: Cell<usize>,
}

impl Caller for Reference<'_> {
    fn call(&self, _: Role, _: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        let step = self.step.replace(self.step.get() + 1);
        let action = step.checked_sub(1).and_then(|step| self.task.reference.get(step));
        let message = match action {
            Some(action) => AssistantMessage {
                content: None,
                tool_calls: vec![ToolCall {
                    id: format!("call_{step}"),
                    name: action.tool.clone(),
                    arguments: action.arguments.clone(),
                }],
            },
            None if step == 0 => AssistantMessage {
                content: Some("May I have your e-mail address and postcode?".to_owned()),
                tool_calls: Vec::new(),
            },
            None => AssistantMessage {
                content: Some("That is done. Is there anything else?".to_owned()),
                tool_calls: Vec::new(),
            },
        };
        std::future::ready(Ok(ChatResponse {
            message,
            finish: Finish::Stop,
            usage: CallUsage::default(),
            failed_tries: None,
        }))
        .boxed_local()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let desk = Desk::new(DeskSettings::default())?;
    println!("set up in {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    let started = Instant::now();
    let (mut rollouts, mut calls) = (0, 0);
    for _ in 0..ROUNDS {
        for (id, task) in desk.tasks() {
            let caller = Reference {
                task,
                step: Cell::new(0),
            };
            let context = RolloutContext {
                prompt: "Be brief.",
                example: id,
                repeat: 0,
                seed: 0,
                caller: &caller,
            };
            block_on(desk.rollout(context))?;
            rollouts += 1;
            calls += caller.step.get();
        }
    }
    let micros = started.elapsed().as_secs_f64() * 1e6;
    println!(
        "{:.1} µs a rollout of {:.1} agent calls",
        micros / f64::from(rollouts),
        calls as f64 / f64::from(rollouts)
    );
    Ok(())
}
