//! What the tau2 domains cost: an environment, a tool call, a state hash, and memory, beside what the
//! benchmark's own Python environment takes. Takes the folder `data/tau2` of a checkout as its argument.

use std::fs;
use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use capo_workloads::files::{FileError, Files};
use capo_workloads::tau2::airline::Airline;
use capo_workloads::tau2::environment::call;
use capo_workloads::tau2::folder::{self, Domain};
use capo_workloads::tau2::retail::Retail;
use capo_workloads::tau2::task::Task;
use capo_workloads::tau2::telecom::Telecom;

/// Every reference is played so often.
const ROUNDS: u32 = 20;
/// Environments that are alive together when memory is measured.
const ALIVE: usize = 2_000;

/// Milliseconds of the Python environment (CPython 3.12, one thread, best of several) as they were once recorded
/// on two cores of a shared server; it is not run here: an environment, a tool call, a state hash.
struct Python {
    environment: f64,
    call: f64,
    hash: f64,
}

struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        fs::read(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FileError::NotFound(path.to_owned()),
            _ => FileError::Unreadable {
                path: path.to_owned(),
                reason: error.to_string(),
            },
        })
    }
}

/// Bytes of this process that are in memory.
fn resident() -> Result<usize, Box<dyn std::error::Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line
        .and_then(|line| line.split_whitespace().next())
        .ok_or("no VmRSS")?;
    Ok(kilobytes.parse::<usize>()? * 1024)
}

/// Plays the reference of a task and says how long its calls took and how many they were.
fn play<W: Domain>(world: &mut W, task: &Task) -> (Duration, u32) {
    let started = Instant::now();
    let mut calls = 0;
    for action in task.reference() {
        black_box(call(world, action.requestor, &action.name, &action.arguments));
        calls += 1;
    }
    (started.elapsed(), calls)
}

fn measure<W: Domain>(data: &str, python: &Python) -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let (fresh, tasks) = folder::read::<W>(&Disk, data)?;
    let read = started.elapsed();
    let (mut starting, mut calling, mut hashing) = (Duration::ZERO, Duration::ZERO, Duration::MAX);
    let (mut starts, mut calls) = (0, 0);
    for _ in 0..ROUNDS {
        for task in &tasks {
            let started = Instant::now();
            let mut world = black_box(fresh.clone());
            starting += started.elapsed();
            starts += 1;
            // What a task asks for before its conversation is no part of either figure.
            world.clone_from(&task.set_up(&fresh)?);
            let (took, made) = play(&mut world, task);
            calling += took;
            calls += made;
        }
    }
    for task in tasks.iter().take(10) {
        let mut world = task.set_up(&fresh)?;
        play(&mut world, task);
        let started = Instant::now();
        black_box((world.agent_hash(), world.user_hash()));
        hashing = hashing.min(started.elapsed());
    }
    let before = resident()?;
    let mut alive = Vec::with_capacity(ALIVE);
    for task in tasks.iter().cycle().take(ALIVE) {
        let mut world = task.set_up(&fresh)?;
        play(&mut world, task);
        alive.push(world);
    }
    let each = resident()?.saturating_sub(before) as f64 / alive.len() as f64;
    let each_of = |all: Duration, count: u32| all.as_secs_f64() * 1e3 / f64::from(count);
    println!("{}: read once in {:.0} ms", W::NAME, read.as_secs_f64() * 1e3);
    for (what, ours, theirs) in [
        ("environment", each_of(starting, starts), python.environment),
        ("tool call", each_of(calling, calls), python.call),
        ("state hash", each_of(hashing, 1), python.hash),
    ] {
        println!(
            "  {what:<12} {:>10.3} µs, Python as recorded {:>9.0} µs, {:>8.0}×",
            ours * 1e3,
            theirs * 1e3,
            theirs / ours
        );
    }
    println!(
        "  memory       {:>10.1} kB for each of {ALIVE} that are alive, after its reference",
        each / 1e3
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo puts a `--bench` of its own behind it.
    let data = std::env::args().nth(1).filter(|data| !data.starts_with('-'));
    let data = data.ok_or("name the folder data/tau2 of a checkout of tau2-bench")?;
    let python = |environment, call, hash| Python {
        environment,
        call,
        hash,
    };
    measure::<Airline>(&data, &python(151.0, 0.165, 112.0))?;
    measure::<Retail>(&data, &python(53.0, 0.099, 51.0))?;
    measure::<Telecom>(&data, &python(5.5, 0.037, 0.3))
}
