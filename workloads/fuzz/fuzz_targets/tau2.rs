//! Sequences of calls in a tau2 domain, with arguments that follow the tools' schemas and arguments that do not.
//!
//! The first byte chooses the domain and the rest draws the calls. Nothing may panic or take long. The records are
//! those of `testdata/`, and the benchmark's too where `CAPO_SHARED` names the folder that has them in `tau2/data`.

#![no_main]

#[path = "../../src/tau2/tests/drawn.rs"]
mod drawn;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use capo_workloads::tau2::airline::Airline;
use capo_workloads::tau2::changes::Changes;
use capo_workloads::tau2::environment::{Side, World, call_any};
use capo_workloads::tau2::retail::Retail;
use capo_workloads::tau2::telecom::Telecom;
use libfuzzer_sys::{Corpus, fuzz_target};
use serde_json::Value;

use drawn::Source;

/// Bytes of records that are hashed after each sequence.
const SMALL: usize = 1 << 16;

/// A world that calls start in, and what they are drawn from.
struct Start<W> {
    world: W,
    source: Source,
    is_small: bool,
}

/// One of each domain.
struct Starts {
    airline: Start<Airline>,
    retail: Start<Retail>,
    telecom: Start<Telecom>,
}

impl<W: World> Start<W> {
    fn new(world: W, records: &Value) -> Self {
        Self {
            world,
            source: Source::new::<W>(records),
            is_small: records.to_string().len() < SMALL,
        }
    }

    fn play(&self, bytes: &[u8]) {
        let mut world = self.world.clone();
        for call in self.source.calls(bytes) {
            let result = call_any(&mut world, call.by, &call.name, &call.arguments);
            if let Some(booking) = call.for_its_price(&result.content) {
                call_any(&mut world, booking.by, &booking.name, &booking.arguments);
            }
        }
        // As after every conversation.
        Changes::between(&self.world, &world);
        // A hash of the benchmark's records takes as long as hundreds of calls.
        if self.is_small {
            world.agent_hash();
            world.user_hash();
        }
    }
}

impl Starts {
    /// Reads the folder `data/tau2` of a checkout of the benchmark, or one like it.
    fn read(data: &Path) -> Self {
        let text = |path: &str| {
            let path = data.join("domains").join(path);
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let json = |text: &str| serde_json::from_str(text).expect("records in JSON");
        let toml = |text: &str| toml::from_str(text).expect("records in TOML");
        let (airline, retail) = (text("airline/db.json"), text("retail/db.json"));
        let (company, telephone) = (text("telecom/db.toml"), text("telecom/user_db.toml"));
        Self {
            airline: Start::new(
                Airline::read(airline.as_bytes()).expect("an airline"),
                &json(&airline),
            ),
            retail: Start::new(Retail::read(retail.as_bytes()).expect("a shop"), &json(&retail)),
            telecom: Start::new(
                Telecom::read(&company, &telephone).expect("a telephone company"),
                &toml(&format!("{company}\n{telephone}")),
            ),
        }
    }
}

static STARTS: LazyLock<Vec<Starts>> = LazyLock::new(|| {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tau2");
    let shared = std::env::var_os("CAPO_SHARED").map(|shared| PathBuf::from(shared).join("tau2/data"));
    [Some(own), shared]
        .iter()
        .flatten()
        .map(|data| Starts::read(data))
        .collect()
});

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Some((first, bytes)) = bytes.split_first() else {
        return Corpus::Reject;
    };
    let (domain, place) = (first % 3, usize::from(first / 3) % STARTS.len());
    let start = &STARTS[place];
    match domain {
        0 => start.airline.play(bytes),
        1 => start.retail.play(bytes),
        _ => start.telecom.play(bytes),
    }
    Corpus::Keep
});
