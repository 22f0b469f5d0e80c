//! The same search, natively and in WebAssembly, to the last bit.
//!
//! Both targets run the same functions and compare with the same constants, so that a journal of
//! the browser can be resumed, branched and verified natively, and the other way round. When a
//! change of the search is meant to change its course, the native test says the new constants.

mod world;

use std::rc::Rc;

use capo_core::arena::RunOptions;
use capo_core::ids::{CandidateId, sha256_hex};
use capo_core::journal::{Journal, MemoryJournal};
use capo_core::random::{Streams, gumbel, normal};
use capo_core::{optimize, verify};
use world::{EFFORT, Probe, WorldModels, problem, study};

/// Noisy dual feedback, so that normal draws enter the multipliers; the batches below let Gumbel
/// draws choose examples as well as parents.
const SETTINGS: &str = "[method]\nnoise = 0.05\nmask = 5\n";

// What the whole run must come to: λ_T, the prompt it returns, and the journal but for its first
// line, which names the version of this build.
const MULTIPLIER: f64 = 1.279_823_444_118_248_3;
const BEST: &str = "Act. care haste care haste";
const LINES: usize = 550;
const JOURNAL: &str = "f7497f12ff64d0c00c1892a2140c49520d743e1f8309681089c03ba11196ea71";

/// SHA-256 over the bits of a thousand draws of each kind.
const DRAWS: &str = "1c9baca20ec87d7992fb0c16e665091e89203aa46d80ba12d626d09cb3c9912b";

async fn a_run_comes_to_the_recorded_end() {
    let probe = Rc::new(Probe::default());
    let mut noisy = study(3, "capo", EFFORT, SETTINGS);
    noisy.study.batch = Some(12);
    let store = MemoryJournal::new();
    let outcome = optimize(
        problem(noisy, &probe),
        Journal::create(Box::new(store.clone())),
        Rc::new(WorldModels(probe)),
        RunOptions::default(),
    )
    .await
    .expect("the run begins");

    let lines = store.lines().to_vec();
    let journal = sha256_hex(lines[1..].join("\n"));
    let multiplier = outcome.finished.multipliers["effort"];
    let best = outcome.finished.best.expect("a prompt was measured");
    let prompt = &outcome
        .journal
        .state()
        .candidate(&best)
        .expect("it was introduced")
        .prompt;
    assert_eq!(
        (multiplier.to_bits(), &**prompt, lines.len(), journal.as_str()),
        (MULTIPLIER.to_bits(), BEST, LINES, JOURNAL),
        "λ = {multiplier:?}"
    );
    assert_eq!(best, CandidateId::of(BEST));
    Box::pin(verify(&lines))
        .await
        .expect("the journal verifies here too");
}

fn draws_are_the_recorded_bits() {
    let mut stream = Streams::new(7).stream("wasm", 0, 0);
    let mut bytes = Vec::new();
    for _ in 0..1000 {
        bytes.extend(gumbel(&mut stream).to_bits().to_le_bytes());
        bytes.extend(normal(&mut stream).to_bits().to_le_bytes());
    }
    assert_eq!(sha256_hex(bytes), DRAWS);
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    #[test]
    fn a_run_comes_to_the_recorded_end() {
        futures::executor::block_on(super::a_run_comes_to_the_recorded_end());
    }

    #[test]
    fn draws_are_the_recorded_bits() {
        super::draws_are_the_recorded_bits();
    }
}

#[cfg(target_arch = "wasm32")]
mod wasm {
    use wasm_bindgen_test::wasm_bindgen_test;

    #[wasm_bindgen_test]
    async fn a_run_comes_to_the_recorded_end() {
        super::a_run_comes_to_the_recorded_end().await;
    }

    #[wasm_bindgen_test]
    fn draws_are_the_recorded_bits() {
        super::draws_are_the_recorded_bits();
    }
}
