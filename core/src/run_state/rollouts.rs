//! All measurements of a run, compactly.

use std::collections::HashMap;

use indexmap::IndexMap;

use crate::journal::{LineId, RolloutEvent, WorkloadRecord};
use crate::workload::Split;

/// One split of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetKey {
    /// Position of the workload in the study, from 0.
    pub workload: u16,
    /// Which split.
    pub split: Split,
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
        let position = self
            .workloads
            .iter()
            .position(|workload| workload.name == event.workload)
            .ok_or_else(|| format!("the study has no workload `{}`", event.workload))?;
        let examples = self.workloads[position].examples(event.split);
        let example = *examples.get(&event.example).ok_or_else(|| {
            format!(
                "workload `{}` has no such example `{}`",
                event.workload, event.example
            )
        })?;
        let set = SetKey {
            workload: position as u16,
            split: event.split,
        };
        Ok((set, example as usize))
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
