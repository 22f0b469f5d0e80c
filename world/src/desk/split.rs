//! The split of tasks: which are searched on, and which are held out.

use capo_core::random::Streams;

use super::task::Task;

/// An order of the tasks in which every stretch holds the scenarios in nearly the same proportions:
/// each scenario's tasks are shuffled and then spread evenly over the whole, from a random start.
pub(super) fn mixed_order(tasks: &[Task], seed: u64) -> Vec<usize> {
    let streams = Streams::new(seed);
    let mut scenarios: Vec<&str> = tasks.iter().map(|task| task.scenario.as_str()).collect();
    scenarios.sort_unstable();
    scenarios.dedup();
    let mut placed: Vec<(f64, usize)> = Vec::with_capacity(tasks.len());
    for (number, scenario) in (0_u64..).zip(scenarios) {
        let mut members: Vec<usize> = (0..tasks.len())
            .filter(|&index| tasks[index].scenario == scenario)
            .collect();
        members.sort_by_key(|&index| streams.number("desk split", 0, index as u64));
        let start = streams.number("desk split start", 0, number) as f64 / (1_u64 << 63) as f64;
        let size = members.len() as f64;
        placed.extend(
            members
                .into_iter()
                .enumerate()
                .map(|(rank, index)| ((rank as f64 + start) / size, index)),
        );
    }
    placed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    placed.into_iter().map(|(_, index)| index).collect()
}
