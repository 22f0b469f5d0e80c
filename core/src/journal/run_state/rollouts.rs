//! All measurements of a run, compactly.

use std::collections::HashMap;

use indexmap::IndexMap;

use crate::journal::{LeaveOutEvent, LineId, RolloutEvent, WorkloadRecord};
use crate::study::ids::Round;
use crate::study::metric::Direction;
use crate::study::workload::Split;

/// One split of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetKey {
    /// Position of the workload in the study, from 0.
    pub workload: u16,
    /// The split that the examples belong to.
    pub split: Split,
}

/// Whether what was decided in a round, or after the search where there is none, holds now: in a round, or
/// after the search.
pub(crate) fn is_decided(decided: Option<Round>, now: Option<Round>) -> bool {
    match (decided, now) {
        (Some(decided), Some(now)) => decided <= now,
        (None, Some(_)) => false,
        (_, None) => true,
    }
}

#[derive(Debug, Default)]
struct WorkloadIndex {
    name: String,
    metrics: Vec<String>,
    optimize: HashMap<String, u32>,
    evaluate: HashMap<String, u32>,
}

impl WorkloadIndex {
    fn examples(&self, split: Split) -> &HashMap<String, u32> {
        match split {
            Split::Optimize => &self.optimize,
            Split::Evaluate => &self.evaluate,
        }
    }
}

/// The repeats of one prompt on one example: `metrics` values each, NaN where not measured yet.
#[derive(Debug, Default)]
struct Cell {
    values: Vec<f64>,
    lines: Vec<Option<LineId>>,
}

/// Measurements by candidate, workload, split, example and repeat.
#[derive(Debug, Default)]
pub struct RolloutTable {
    workloads: Vec<WorkloadIndex>,
    cells: HashMap<(usize, SetKey), Vec<Cell>>,
    /// The round in which an example was left out; none after the search.
    left_out: HashMap<(SetKey, usize), Option<Round>>,
    /// Repeats asked for at once: how far ahead of the others one may arrive.
    repeats: usize,
    count: u64,
}

impl RolloutTable {
    pub(super) fn declare(&mut self, workloads: &IndexMap<String, WorkloadRecord>, repeats: u32) {
        self.repeats = repeats as usize;
        let index = |ids: &[String]| ids.iter().cloned().zip(0..).collect();
        self.workloads = workloads
            .iter()
            .map(|(name, record)| WorkloadIndex {
                name: name.clone(),
                metrics: record.metrics.iter().map(|metric| metric.name.clone()).collect(),
                optimize: index(&record.optimize),
                evaluate: index(&record.evaluate),
            })
            .collect();
    }

    /// Says why a rollout cannot be inserted.
    pub(super) fn check(&self, candidate: usize, event: &RolloutEvent) -> Result<(), String> {
        let (set, example) = self.place(event)?;
        let workload = &self.workloads[usize::from(set.workload)];
        let missing = |metric: &&String| !event.measurements.contains_key(*metric);
        if let Some(metric) = workload.metrics.iter().find(missing) {
            return Err(format!(
                "the rollout of example `{}` has no `{metric}`",
                event.example
            ));
        }
        let cell = self
            .cells
            .get(&(candidate, set))
            .and_then(|cells| cells.get(example));
        let lines = cell.map_or(&[][..], |cell| &cell.lines);
        let repeat = event.repeat as usize;
        if repeat >= lines.len() + self.repeats {
            return Err(format!(
                "repeat {repeat} of example `{}` comes before those below it",
                event.example
            ));
        }
        if lines.get(repeat).is_some_and(Option::is_some) {
            return Err(format!(
                "repeat {repeat} of example `{}` is there already",
                event.example
            ));
        }
        Ok(())
    }

    /// Takes a rollout in that was checked.
    pub(super) fn insert(
        &mut self,
        candidate: usize,
        event: &RolloutEvent,
        line: LineId,
    ) -> Result<(), String> {
        let (set, example) = self.place(event)?;
        let workload = &self.workloads[usize::from(set.workload)];
        let examples = workload.examples(set.split).len();
        let width = workload.metrics.len();
        let cells = self
            .cells
            .entry((candidate, set))
            .or_insert_with(|| (0..examples).map(|_| Cell::default()).collect());
        let cell = &mut cells[example];
        let repeat = event.repeat as usize;
        if cell.lines.len() <= repeat {
            cell.lines.resize(repeat + 1, None);
            cell.values.resize((repeat + 1) * width, f64::NAN);
        }
        for (slot, metric) in cell.values[repeat * width..].iter_mut().zip(&workload.metrics) {
            *slot = event.measurements[metric];
        }
        cell.lines[repeat] = Some(line);
        self.count += 1;
        Ok(())
    }

    /// Where a rollout belongs: its set, and the position of its example there.
    fn place(&self, event: &RolloutEvent) -> Result<(SetKey, usize), String> {
        self.find(&event.workload, event.split, &event.example)
    }

    fn find(&self, workload: &str, split: Split, example: &str) -> Result<(SetKey, usize), String> {
        let position = self
            .workloads
            .iter()
            .position(|index| index.name == workload)
            .ok_or_else(|| format!("the study has no workload `{workload}`"))?;
        let examples = self.workloads[position].examples(split);
        let example = *examples
            .get(example)
            .ok_or_else(|| format!("workload `{workload}` has no such example `{example}`"))?;
        let set = SetKey {
            workload: position as u16,
            split,
        };
        Ok((set, example as usize))
    }

    /// Says why an example cannot be left out.
    pub(super) fn check_left_out(&self, event: &LeaveOutEvent) -> Result<(), String> {
        let place = self.find(&event.workload, event.split, &event.example)?;
        // What was decided after a search is decided anew in one that goes on.
        let before = self.left_out.get(&place);
        if before.is_some_and(|round| round.is_some() || event.round.is_none()) {
            return Err(format!("example `{}` was left out before", event.example));
        }
        Ok(())
    }

    /// Takes an example out that was checked.
    pub(super) fn leave_out(&mut self, event: &LeaveOutEvent) -> Result<(), String> {
        let place = self.find(&event.workload, event.split, &event.example)?;
        self.left_out.insert(place, event.round);
        Ok(())
    }

    /// Whether an example is left out for every prompt at the journal's end.
    pub fn is_left_out(&self, set: SetKey, example: usize) -> bool {
        self.left_out.contains_key(&(set, example))
    }

    /// Whether an example was left out by some moment; see [`is_decided`].
    pub(crate) fn is_left_out_by(&self, set: SetKey, example: usize, now: Option<Round>) -> bool {
        let decided = self.left_out.get(&(set, example));
        decided.is_some_and(|decided| is_decided(*decided, now))
    }

    /// Where an example stands: its set, and its position there.
    pub(crate) fn place_of(&self, workload: &str, split: Split, example: &str) -> Option<(SetKey, usize)> {
        self.find(workload, split, example).ok()
    }

    /// The worst value measured of a metric on a split, by whichever prompt; `None` before the first.
    pub(crate) fn worst(&self, set: SetKey, metric: usize, direction: Direction) -> Option<f64> {
        let width = self.workloads[usize::from(set.workload)].metrics.len();
        let cells = self.cells.iter().filter(|((_, of), _)| *of == set);
        let values = cells
            .flat_map(|(_, cells)| cells)
            .flat_map(|cell| cell.values.chunks(width));
        let values = values
            .map(|values| values[metric])
            .filter(|value| !value.is_nan());
        match direction {
            Direction::Objective => values.reduce(f64::min),
            Direction::Cost => values.reduce(f64::max),
        }
    }

    /// Adds `shift` to every line's id.
    pub(super) fn shift_lines(&mut self, shift: i64) {
        for line in self
            .cells
            .values_mut()
            .flatten()
            .flat_map(|cell| cell.lines.iter_mut().flatten())
        {
            *line = line.wrapping_add_signed(shift);
        }
    }

    /// Rollouts in the table.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether no other prompt has any.
    pub(super) fn are_all_of(&self, candidate: usize) -> bool {
        self.cells.keys().all(|(of, _)| *of == candidate)
    }

    /// The line of the one made first.
    pub(crate) fn first_line(&self) -> Option<LineId> {
        let cells = self.cells.values().flatten();
        cells.flat_map(|cell| cell.lines.iter().flatten()).min().copied()
    }

    /// Position of a workload's metric among its measurements.
    pub fn metric(&self, workload: u16, metric: &str) -> Option<usize> {
        self.workloads[usize::from(workload)]
            .metrics
            .iter()
            .position(|name| name == metric)
    }

    /// The rollouts of one prompt on one split of a workload; `None` before the first.
    pub fn row(&self, candidate: usize, set: SetKey) -> Option<Row<'_>> {
        Some(Row {
            cells: self.cells.get(&(candidate, set))?,
            width: self.workloads[usize::from(set.workload)].metrics.len(),
        })
    }

    /// The values of one rollout in the order of the workload's metrics, if it was made.
    pub fn values(&self, candidate: usize, set: SetKey, example: usize, repeat: u32) -> Option<&[f64]> {
        self.row(candidate, set)?.values(example, repeat)
    }

    /// The line of one rollout, if it was made.
    pub fn line(&self, candidate: usize, set: SetKey, example: usize, repeat: u32) -> Option<LineId> {
        *self
            .cells
            .get(&(candidate, set))?
            .get(example)?
            .lines
            .get(repeat as usize)?
    }

    /// Repeats of one prompt on one example made so far, from the first without a gap.
    pub fn repeats(&self, candidate: usize, set: SetKey, example: usize) -> u32 {
        self.row(candidate, set).map_or(0, |row| row.repeats(example))
    }
}

/// The rollouts of one prompt on one split of a workload, found once for all its examples.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    cells: &'a [Cell],
    width: usize,
}

impl<'a> Row<'a> {
    /// The values of one rollout in the order of the workload's metrics, if it was made.
    pub fn values(&self, example: usize, repeat: u32) -> Option<&'a [f64]> {
        let (cell, repeat) = (self.cells.get(example)?, repeat as usize);
        cell.lines.get(repeat)?.as_ref()?;
        cell.values.get(repeat * self.width..(repeat + 1) * self.width)
    }

    /// Repeats on one example made so far, from the first without a gap.
    pub fn repeats(&self, example: usize) -> u32 {
        self.cells.get(example).map_or(0, |cell| {
            cell.lines.iter().take_while(|line| line.is_some()).count() as u32
        })
    }
}
