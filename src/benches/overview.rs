//! Cost on the page's thread of drawing a run that goes on: the overview of a journal every so many
//! lines, followed from change to change and, beside it, made anew. The page must answer within 50 ms.
//!
//! `cargo bench -p capo-web --bench overview -- JOURNAL`, with the path of a journal that
//! `capo optimize` wrote.

use std::error::Error;
use std::time::{Duration, Instant};

use capo_core::journal::parse_line;
use capo_core::run_state::RunState;
use capo_web::run::overview::Overviews;

/// Lines between two overviews.
const EVERY: usize = 25;

fn main() -> Result<(), Box<dyn Error>> {
    // cargo adds `--bench`.
    let journal = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let journal = journal.ok_or("name a journal: cargo bench -p capo-web --bench overview -- JOURNAL")?;
    let text =
        std::fs::read_to_string(&journal).map_err(|error| format!("cannot read {journal}: {error}"))?;
    let mut state = RunState::default();
    let mut kept = Overviews::default();
    let (mut followed, mut anew) = (Vec::new(), Vec::new());
    for (line, text) in text.lines().enumerate() {
        let event = parse_line(text, line + 1)?;
        state.apply(&event, line as u64)?;
        if line % EVERY == 0 {
            followed.push(after(&mut kept, line, &state));
            anew.push(after(&mut Overviews::default(), line, &state));
        }
    }
    println!(
        "{} rollouts, {} lines",
        state.rollouts().count(),
        text.lines().count()
    );
    tell("followed", followed);
    tell("made anew", anew);
    Ok(())
}

fn after(overviews: &mut Overviews, line: usize, state: &RunState) -> Duration {
    let start = Instant::now();
    std::hint::black_box(overviews.after(line as u64, state));
    start.elapsed()
}

fn tell(name: &str, mut took: Vec<Duration>) {
    let last = took.last().copied().unwrap_or_default();
    took.sort();
    let median = took.get(took.len() / 2).copied().unwrap_or_default();
    let most = took.last().copied().unwrap_or_default();
    println!("{name:<9} median {median:>10.2?}, at the end {last:>10.2?}, at most {most:>10.2?}");
}
