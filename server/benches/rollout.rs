//! What one rollout of the help desk with a simulated agent costs by itself: no search, no journal.
//! Prints microseconds per rollout, the median of passes over all tasks after one that warms up (what
//! is made once in a process, memory taken from the system); the aim is under 50.

use std::time::Instant;

use capo_core::llm::{ChatRequest, ChatResponse, Llm, LlmError, Role};
use capo_core::workload::{Caller, RolloutContext, Workload};
use capo_world::desk::{Desk, DeskSettings};
use capo_world::simulated::Simulated;
use futures::executor::block_on;
use futures::future::LocalBoxFuture;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Every task is played so often under each prompt, and once more before.
const PASSES: u32 = 40;

/// A prompt as a search begins and one as it may end.
const PROMPTS: [&str; 2] = [
    "You are a customer service agent. Help the customer with their request.",
    "You are a customer service agent. Never repeat a call whose result you already have. Think step by step \
     before you act. Transfer to a human only when the policy requires it. Exhaust all other options first.",
];

struct Agent(Simulated);

impl Caller for Agent {
    fn call(&self, _: Role, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        self.0.chat(request)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let desk = Desk::new(DeskSettings::default())?;
    let agent = Agent(Simulated::new("sim-medium", 0)?);
    let (mut rollouts, mut messages) = (0_u32, 0);
    let mut micros = Vec::new();
    for pass in 0..=PASSES {
        let (started, before) = (Instant::now(), rollouts);
        for prompt in PROMPTS {
            for (index, example) in desk.tasks().keys().enumerate() {
                let context = RolloutContext {
                    prompt,
                    example,
                    repeat: pass,
                    seed: u64::from(pass) * 1000 + index as u64,
                    caller: &agent,
                };
                messages += block_on(desk.rollout(context))?.trace.messages.len();
                rollouts += 1;
            }
        }
        micros.push(started.elapsed().as_secs_f64() * 1e6 / f64::from(rollouts - before));
    }
    let timed = &mut micros[1..];
    timed.sort_by(f64::total_cmp);
    println!(
        "{:.1} µs a rollout of {:.1} messages ({:.1} to {:.1} in the middle half of {PASSES} passes)",
        timed[timed.len() / 2],
        messages as f64 / f64::from(rollouts),
        timed[timed.len() / 4],
        timed[timed.len() * 3 / 4],
    );
    Ok(())
}
