//! Captions of figures, in a sentence or two.

use capo_core::reading::in_force;
use capo_core::reading::metrics::{self, Part};
use capo_core::run_state::RunState;

use super::map::Map;
use super::rounds::{self, ScreenRound};
use super::sentence::Sentence;
use super::series::{ConstraintSeries, RoundPoint, Series};
use super::word::Word;
use crate::format::{self, counted, number_word, ordinal};
use crate::run::studied::Shown as _;

/// The reading of the objective's plate.
pub fn objective(series: &Series) -> Sentence {
    let quantity = series.objective.quantity();
    let mean = |point: &RoundPoint| Some((point.round, point.leading.as_ref()?.objective.mean));
    let leading: Vec<(ScreenRound, f64)> = series.rounds.iter().filter_map(mean).collect();
    let Some(&(last, now)) = leading.last() else {
        return seed(series.under_way.is_some());
    };
    if last == 0 {
        return Sentence::new(format!("The seed prompt is at {}.", quantity.value(now)));
    }
    let (best_round, best) = leading
        .iter()
        .copied()
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .unwrap_or((last, now));
    // What reads the same is called the same, whatever the digits that are not shown.
    let (shown, highest) = (quantity.value(now), quantity.value(best));
    let is_level = shown == highest;
    let course = Sentence::new("Best by ").symbol(Word::J);
    let course = course.text(match best_round {
        0 if is_level => format!(" is at {shown}, as the seed is."),
        0 => format!(" is at {shown}, below the seed's {highest}."),
        round if round == last => format!(" reached {highest} in round {last}."),
        round if is_level => format!(" reached {highest} in round {round} and is there now."),
        round => format!(" was highest in round {round}, {highest}, and is at {shown} now."),
    });
    if series.constraints.is_empty() {
        return course;
    }
    course.then(feasibility(series))
}

/// What there is to say before the seed prompt is measured.
fn seed(goes_on: bool) -> Sentence {
    Sentence::new(if goes_on {
        "The seed prompt is being measured."
    } else {
        "The run ended before the seed prompt was measured."
    })
}

fn feasibility(series: &Series) -> Sentence {
    let first = series.rounds.iter().find(|point| point.best_feasible.is_some());
    let (Some(first), Some(latest)) = (first, series.latest()) else {
        return Sentence::new("No prompt is feasible on the search examples yet.");
    };
    let feasible = latest.pool.iter().filter(|place| place.feasible).count();
    let places = match (feasible, latest.pool.len()) {
        (all, of) if all == of => format!("all {} are feasible there", counted(of, "pool place")),
        (0, of) => format!("none of {} is feasible there", counted(of, "pool place")),
        (some, of) => {
            let verb = if some == 1 { "is" } else { "are" };
            format!(
                "{} of {} {verb} feasible there",
                number_word(some),
                counted(of, "pool place")
            )
        }
    };
    Sentence::new(match first.round {
        0 => format!("The seed prompt was feasible on the search examples; now {places}."),
        round if round == latest.round => {
            format!("The first prompt feasible on the search examples came in this round; {places}.")
        }
        round => {
            format!("The first prompt feasible on the search examples came in round {round}; now {places}.")
        }
    })
}

/// The reading of a constraint's plate.
pub fn constraint(series: &Series, of: &ConstraintSeries) -> Sentence {
    let course = CostStory::new(series, of);
    let Some(last) = course.points.last() else {
        return match of.metric.part {
            Part::Constraint { from_round, .. } if from_round > 0 => Sentence::new(format!(
                "Counts from round {} on, with a multiplier of 0 at first.",
                of.metric.enters()
            )),
            _ => seed(series.under_way.is_some()),
        };
    };
    let story = if let Some(since) = of.at_cap_since() {
        course.at_cap(since)
    } else if last.round == 0 {
        let place = if last.over { "over" } else { "inside" };
        Sentence::new(format!("The seed prompt is {place} the threshold."))
    } else if let Some(over) = course.last_time_over() {
        course.was_over(&over)
    } else {
        course.never_over()
    };
    story.then(course.changed_by_hand())
}

/// The leading cost of a constraint against its threshold, round by round.
struct CostStory<'a> {
    series: &'a Series,
    of: &'a ConstraintSeries,
    points: Vec<Point>,
}

struct Point {
    round: ScreenRound,
    over: bool,
    /// Within one standard error of the threshold.
    close: bool,
}

/// Rounds in a row over the threshold, the seed's not counted.
struct TimeOver {
    from: ScreenRound,
    to: ScreenRound,
}

impl<'a> CostStory<'a> {
    fn new(series: &'a Series, of: &'a ConstraintSeries) -> Self {
        let point = |point: &RoundPoint| {
            let cost = point.leading.as_ref()?.costs.get(of.metric.name())?;
            let threshold = of.thresholds.get(point.round as usize).copied()??;
            Some(Point {
                round: point.round,
                over: cost.mean > threshold,
                close: (cost.mean - threshold).abs() < cost.standard_error,
            })
        };
        Self {
            points: series.rounds.iter().filter_map(point).collect(),
            series,
            of,
        }
    }

    fn last_time_over(&self) -> Option<TimeOver> {
        let rounds = || self.points.iter().rev().filter(|point| point.round > 0);
        let to = rounds().find(|point| point.over)?.round;
        let earlier = rounds().skip_while(|point| point.round > to);
        let from = earlier.take_while(|point| point.over).last()?.round;
        Some(TimeOver { from, to })
    }

    fn at_cap(&self, since: ScreenRound) -> Sentence {
        let last = (self.of.multipliers.len() as ScreenRound).saturating_sub(1);
        let rounds = counted((last + 1 - since) as usize, "round");
        let quantity = self.of.metric.quantity();
        let label = self.of.metric.label();
        let bounds = self.of.lowest.zip(self.of.threshold());
        let bounds = bounds.map(|(lowest, threshold)| {
            let lowest = quantity.against(lowest, threshold);
            format!(
                "Lowest seen {lowest}, threshold {}.",
                quantity.threshold(threshold)
            )
        });
        Sentence::new(format!(
            "{label} has been at its cap for {rounds}, since round {since}."
        ))
        .then(bounds.map_or_else(Sentence::default, Sentence::new))
    }

    fn was_over(&self, over: &TimeOver) -> Sentence {
        let counting = || self.points.iter().filter(|point| point.round > 0);
        let rounds_over = counting().filter(|point| point.over).count();
        let in_a_row = (over.to + 1 - over.from) as usize;
        if rounds_over > in_a_row {
            return self.was_over_repeatedly(rounds_over, counting().count(), over);
        }
        let rounds = counted(in_a_row, "round");
        let is_over = self.points.last().is_some_and(|point| point.over);
        let before = self.of.multipliers.get(over.from as usize).copied().flatten();
        let after = self.of.multiplier_after(over.to);
        let multiplier = before.zip(after).map_or_else(String::new, |(before, after)| {
            let (from, to) = (format::multiplier(before), format::multiplier(after));
            match after.total_cmp(&before) {
                _ if from == to => format!("; its multiplier stays at {to}"),
                std::cmp::Ordering::Greater => format!(", so its multiplier rose from {from} to {to}"),
                _ => format!("; its multiplier fell from {from} to {to}"),
            }
        });
        let hardest = self.over_it();
        if is_over {
            return Sentence::new(format!("{hardest} for {rounds}{multiplier}."));
        }
        let story = Sentence::new(format!("{hardest} for {rounds}{multiplier}."));
        story.then(self.came_inside(over.to + 1))
    }

    fn over_it(&self) -> &'static str {
        if self.is_hardest() {
            "The hardest threshold: over it"
        } else {
            "Over its threshold"
        }
    }

    fn was_over_repeatedly(&self, rounds_over: usize, rounds: usize, last: &TimeOver) -> Sentence {
        let times = format!(
            "{} in {} of {}",
            self.over_it(),
            number_word(rounds_over),
            counted(rounds, "round")
        );
        let end = self.points.last().map_or(0, |point| point.round);
        let since = match last.to == end {
            true if last.from == end => "again in the last".to_owned(),
            true => format!("again since round {}", last.from),
            false => format!("inside since round {}", last.to + 1),
        };
        let now = self.of.multiplier_after(end).map_or_else(String::new, |now| {
            let (peak, now) = (format::multiplier(self.of.peak()), format::multiplier(now));
            if peak == now {
                format!(" Its multiplier is at its highest, {now}.")
            } else {
                format!(" Its multiplier was {peak} at most and is {now} now.")
            }
        });
        Sentence::new(format!("{times}, {since}.{now}"))
    }

    fn came_inside(&self, round: ScreenRound) -> Sentence {
        let point = self.points.iter().find(|point| point.round == round);
        let just = if point.is_some_and(|point| point.close) {
            "just "
        } else {
            ""
        };
        let used = self.of.multipliers.get(round as usize).copied().flatten();
        let last = self.points.last().map_or(round, |point| point.round);
        let now = self.of.multiplier_after(last);
        let easing = match used.zip(now) {
            Some((used, now)) if now < used && now == 0.0 => " and the multiplier went to 0".to_owned(),
            Some((used, now)) if now < used => format!(
                " and the multiplier eases, from {} to {}",
                format::multiplier(used),
                format::multiplier(now)
            ),
            _ => String::new(),
        };
        Sentence::new(format!("It fell {just}inside in round {round}{easing}."))
    }

    fn never_over(&self) -> Sentence {
        let label = "Never over the threshold by the leading candidate";
        let used: Vec<(ScreenRound, f64)> = (0..)
            .zip(&self.of.multipliers)
            .filter_map(|(round, multiplier)| Some((round, (*multiplier)?)))
            .collect();
        let last = self.points.last().map_or(0, |point| point.round);
        let now = self.of.multiplier_after(last);
        let zero = used.iter().find(|(_, multiplier)| *multiplier == 0.0);
        // A cautious search presses on what comes close to a threshold, too.
        let course = used.iter().map(|(_, multiplier)| *multiplier).chain(now);
        let rises = course
            .clone()
            .zip(course.skip(1))
            .any(|(before, after)| after > before);
        let multiplier = match (used.first(), zero, now) {
            _ if rises => String::new(),
            (Some((_, first)), _, _) if *first == 0.0 => ", so its multiplier stays at 0".to_owned(),
            (_, Some((round, _)), _) => {
                format!(
                    ", so its multiplier went to 0 after round {}",
                    round.saturating_sub(1)
                )
            }
            (Some(_), None, Some(0.0)) => format!(", so its multiplier went to 0 after round {last}"),
            (Some((_, first)), None, Some(now)) if now < *first => format!(
                ", so its multiplier fell from {} to {}",
                format::multiplier(*first),
                format::multiplier(now)
            ),
            _ => String::new(),
        };
        // The seed is no candidate that led a round.
        let seed_over = self
            .points
            .first()
            .is_some_and(|point| point.round == 0 && point.over);
        let label = if seed_over {
            "Only the seed prompt was over the threshold"
        } else {
            label
        };
        Sentence::new(format!("{label}{multiplier}."))
    }

    /// Whether no other constraint's multiplier is as high as this one's.
    fn is_hardest(&self) -> bool {
        let others = self.series.constraints.iter();
        let mut others = others.filter(|other| other.metric.name() != self.of.metric.name());
        self.series.constraints.len() > 1 && others.all(|other| other.peak() < self.of.peak())
    }

    fn changed_by_hand(&self) -> Sentence {
        let Some(step) = self.of.steps.last() else {
            return Sentence::default();
        };
        let quantity = self.of.metric.quantity();
        let from = step
            .from
            .map_or_else(String::new, |from| format!(" from {}", quantity.threshold(from)));
        Sentence::new(format!(
            "The threshold was set by hand{from} to {} in round {}.",
            quantity.threshold(step.to),
            rounds::name(step.round)
        ))
    }
}

/// The reading of the map.
pub fn map(state: &RunState, map: &Map) -> Sentence {
    if map.places.is_empty() {
        return seed(rounds::under_way(state).is_some());
    }
    let limits = in_force::limits_now(state);
    if limits.is_empty() {
        return Sentence::new("There is no threshold that a prompt could miss.");
    }
    let line = Sentence::new("Left of the line every cost on the search examples is inside its threshold.");
    if map.best.is_none() {
        return line.then(closest(state, map));
    }
    let rewrites = map.course.len().saturating_sub(1);
    if rewrites == 0 {
        return line.then(Sentence::new(
            "The best prompt feasible on the search examples is the seed prompt itself.",
        ));
    }
    let feasible: Vec<bool> = map
        .course
        .iter()
        .map(|id| map.place(*id).is_some_and(|place| place.scored.feasible))
        .collect();
    // The last rewrite from an infeasible parent to a feasible child.
    let crossing = (1..feasible.len())
        .rev()
        .find(|child| feasible[*child] && !feasible[child - 1]);
    let crossed = match crossing {
        None => "all of them left of the line".to_owned(),
        Some(_) if rewrites == 1 => "it crossed the line".to_owned(),
        Some(child) => format!("the {} crossed the line", ordinal(child)),
    };
    line.then(Sentence::new(format!(
        "The heavy course is the lineage of the best prompt feasible on the search examples: {}, {crossed}.",
        counted(rewrites, "rewrite")
    )))
}

/// "Best so far: c95e03, success 73.0%, feasible on the search examples."
pub fn best(state: &RunState, map: &Map) -> Sentence {
    let Some(objective) = metrics::objective(state) else {
        return Sentence::default();
    };
    match map.best.and_then(|best| map.place(best)) {
        Some(best) => Sentence::new("Best so far: ")
            .prompt(best.scored.candidate)
            .text(format!(
                ", {} {}, feasible on the search examples.",
                objective.phrase(),
                objective.quantity().value(best.scored.objective.mean)
            )),
        None if map.places.is_empty() => Sentence::new("The seed prompt is being measured."),
        None => closest(state, map),
    }
}

/// The infeasible prompt of the smallest worst residual, and by how much it is over.
pub fn closest(state: &RunState, map: &Map) -> Sentence {
    let nearest = map.closest().and_then(|closest| map.place(closest));
    let limits = in_force::limits_now(state);
    let Some((nearest, metric)) = nearest.and_then(|nearest| {
        let metric = metrics::named(state, nearest.worst.as_ref()?)?;
        Some((nearest, metric))
    }) else {
        return Sentence::default();
    };
    let over = limits
        .get(metric.name())
        .zip(nearest.scored.costs.get(metric.name()));
    let by = over.map_or(0.0, |(limit, cost)| cost.mean - limit.threshold);
    let closest = Sentence::new("No prompt keeps all thresholds on the search examples. Closest: ");
    let closest = closest.prompt(nearest.scored.candidate);
    if by > 0.0 {
        closest.text(format!(
            ", over by {} on {}.",
            metric.quantity().distance(by),
            metric.phrase()
        ))
    } else {
        closest.text(".")
    }
}
