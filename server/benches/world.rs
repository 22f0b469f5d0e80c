//! What one sentence does to a simulated agent: the tables of docs/simulated-world.md.
//!
//! `cargo bench -p capo-server --bench world` plays every task of the help desk under each prompt
//! and prints the means as Markdown.

use capo_core::estimate::Estimate;
use capo_core::llm::{ChatRequest, ChatResponse, Llm, LlmError, Role};
use capo_core::metric::Measurements;
use capo_core::workload::{Caller, RolloutContext, Workload};
use capo_world::desk::{Desk, DeskSettings};
use capo_world::simulated::Simulated;
use futures::executor::block_on;
use futures::future::LocalBoxFuture;
use sentences::{HABIT, SENTENCES};

#[path = "world/sentences.rs"]
mod sentences;

/// Every task is played so often under each prompt.
const REPEATS: u32 = 8;

/// The prompt of studies/help-desk.toml.
const SEED_PROMPT: &str =
    "You are a customer service agent. Help the customer with their request. Keep it short.";

/// Sentences stated together, by their place above.
const TOGETHER: [&[usize]; 7] = [
    &[2, 3],
    &[6, 7],
    &[1, 5],
    &[1, 10],
    &[5, 7],
    &[6, 8],
    &[0, 1, 4, 5, 7, 8, 10, 11],
];

const METRICS: [&str; 6] = [
    "success",
    "human_requests",
    "excess_tools",
    "policy_violations",
    "turns",
    "latency",
];

struct Agent(Simulated);

impl Caller for Agent {
    fn call(&self, _: Role, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        self.0.chat(request)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let desk = Desk::new(DeskSettings::default())?;
    println!("| seed prompt plus | {} |", METRICS.join(" | "));
    println!("|---{}|", "|---:".repeat(METRICS.len()));
    let mut largest = [0.0_f64; METRICS.len()];
    let mut rows = vec![
        ("nothing".to_owned(), SEED_PROMPT.to_owned()),
        ("its habit unlearned".to_owned(), SEED_PROMPT.replace(HABIT, "")),
    ];
    rows.extend(SENTENCES.map(|(name, sentence)| (name.to_owned(), format!("{SEED_PROMPT} {sentence}"))));
    rows.extend(TOGETHER.map(|places| {
        let names: Vec<&str> = places.iter().map(|&at| SENTENCES[at].0).collect();
        let prompt = places.iter().fold(SEED_PROMPT.to_owned(), |prompt, &at| {
            prompt + " " + SENTENCES[at].1
        });
        (names.join(", "), prompt)
    }));
    for (name, prompt) in rows {
        let estimates = play(&desk, "sim-medium", &prompt)?;
        print_row(&name, &estimates);
        for (most, estimate) in largest.iter_mut().zip(estimates) {
            *most = most.max(estimate.standard_error);
        }
    }
    println!("\nStandard errors over tasks, at most:");
    for (metric, most) in METRICS.iter().zip(largest) {
        println!("- {metric} {most:.2}");
    }
    println!("\n| seed prompt, agent | {} |", METRICS.join(" | "));
    println!("|---{}|", "|---:".repeat(METRICS.len()));
    for model in ["sim-small", "sim-medium", "sim-large"] {
        print_row(model, &play(&desk, model, SEED_PROMPT)?);
    }
    Ok(())
}

fn print_row(name: &str, estimates: &[Estimate; METRICS.len()]) {
    let means: Vec<String> = estimates
        .iter()
        .map(|estimate| format!("{:.2}", estimate.mean))
        .collect();
    println!("| {name} | {} |", means.join(" | ").replace('-', "−"));
}

/// The metrics of a prompt over all tasks, the same luck for every prompt.
fn play(
    desk: &Desk,
    model: &str,
    prompt: &str,
) -> Result<[Estimate; METRICS.len()], Box<dyn std::error::Error>> {
    let agent = Agent(Simulated::new(model, 0)?);
    let mut values: [Vec<f64>; METRICS.len()] = Default::default();
    for (index, example) in desk.tasks().keys().enumerate() {
        let mut measured: Vec<Measurements> = Vec::new();
        for repeat in 0..REPEATS {
            let context = RolloutContext {
                prompt,
                example,
                repeat,
                seed: u64::from(repeat) * 1000 + index as u64,
                caller: &agent,
            };
            measured.push(block_on(desk.rollout(context))?.measurements);
        }
        for (values, metric) in values.iter_mut().zip(METRICS) {
            let sum: f64 = measured.iter().map(|measurements| measurements[metric]).sum();
            values.push(sum / f64::from(REPEATS));
        }
    }
    Ok(values.map(|values| Estimate::of(&values).expect("the desk has tasks")))
}
