//! Words of a constraint strip: its marks with their sentences, its table, and the words in its plot.

use super::{
    figure::TableData,
    labels::{Anchor, Label, Space, Wanted, arranged},
    marks::{Mark, verdict},
    measure::Size,
    scale::{Scales, round_name, round_title},
    series::{Leading, in_force, leading_marks, other_marks},
    strip::StripData,
    unit::{fixed, short},
};

/// The strip's data as a table, one row per closed round. The threshold has a column once it has changed:
/// before that, the figure's own label says it for all rounds.
pub fn strip_table(data: &StripData) -> TableData {
    let threshold = has_changed(data).then_some("Threshold");
    let headers = ["Round", "Best by J", &data.name, "SE"]
        .into_iter()
        .chain(threshold);
    let headers: Vec<_> = headers.chain(["Gate", "λ used"]).collect();
    let mut table = TableData::with_headers(&headers);
    table.rows = data.leading.iter().map(|point| table_row(data, point)).collect();
    table
}

fn has_changed(data: &StripData) -> bool {
    data.threshold.len() > 1
}

fn table_row(data: &StripData, point: &Leading) -> Vec<String> {
    let dash = || "–".to_owned();
    let threshold = in_force(&data.threshold, point.round);
    let value = threshold.map_or_else(
        || data.unit.value(point.value),
        |threshold| data.unit.value_beside(point.value, threshold),
    );
    let measured = [
        round_name(point.round),
        point.id.as_deref().map_or_else(dash, short),
        value,
        point.error.map_or_else(dash, |error| data.unit.error(error)),
    ];
    let threshold =
        has_changed(data).then(|| threshold.map_or_else(dash, |threshold| data.unit.threshold(threshold)));
    let answered = [
        verdict(point.feasible).to_owned(),
        used_in(data, point.round).map_or_else(dash, |used| fixed(used, 2)),
    ];
    measured.into_iter().chain(threshold).chain(answered).collect()
}

pub(super) fn marks(data: &StripData, scales: Scales, size: Size) -> Vec<Mark> {
    let mut marks = other_marks(&data.others, scales, size, |point| {
        let place = against_threshold(data, point.round, point.value, None);
        format!(
            "{}, {}: {} {place}, {}.",
            round_title(point.round),
            short(&point.id),
            data.name,
            verdict(point.feasible)
        )
    });
    marks.extend(leading_marks(&data.leading, scales, size, |point| {
        leading_sentence(data, point)
    }));
    marks
}

fn leading_sentence(data: &StripData, point: &Leading) -> String {
    let who = point.id.as_deref().map_or_else(
        || "mean of the best".to_owned(),
        |id| format!("best {}", short(id)),
    );
    let place = against_threshold(data, point.round, point.value, point.error);
    let used = used_in(data, point.round)
        .map(|used| {
            let at_cap = if data.cap.is_some_and(|cap| used >= cap) {
                ", at cap"
            } else {
                ""
            };
            format!("; multiplier used {}{at_cap}", fixed(used, 2))
        })
        .unwrap_or_default();
    let (round, verdict) = (round_title(point.round), verdict(point.feasible));
    format!("{round}, {who}: {} {place}, {verdict}{used}.", data.name)
}

/// A value, its error, and where it stands against the threshold of its round.
fn against_threshold(data: &StripData, round: u32, value: f64, error: Option<f64>) -> String {
    let with_error = error
        .map(|error| format!(" {}", data.unit.error(error)))
        .unwrap_or_default();
    let Some(threshold) = in_force(&data.threshold, round) else {
        return format!("{}{with_error}", data.unit.value(value));
    };
    let distance = data.unit.distance(threshold - value);
    let side = if value <= threshold {
        format!("slack {distance}")
    } else {
        format!("over by {distance}")
    };
    let near = if error.is_some_and(|error| error > 0.0 && (threshold - value).abs() <= error) {
        ", within 1 SE of the threshold"
    } else {
        ""
    };
    format!(
        "{}{with_error}, {side}{near}",
        data.unit.value_beside(value, threshold)
    )
}

fn used_in(data: &StripData, round: u32) -> Option<f64> {
    data.multiplier
        .iter()
        .find(|step| step.round == round)
        .map(|step| step.value)
}

/// The name of the side inside the threshold and the remark, where marks leave room for them.
pub(super) fn words(data: &StripData, marks: &[Mark], scales: Scales, size: Size) -> Vec<Label> {
    let taken = marks.iter().map(|mark| {
        let Space(left, top, right, bottom) = Space::of_mark(mark.x, mark.y, mark.radius, size);
        Space(left + mark.shift, top, right + mark.shift, bottom)
    });
    let remark = data.remark.as_ref().map(|remark| {
        let (x, y) = scales.at(remark.at.round, remark.at.value);
        let place = |dx, anchor| Label {
            class: if remark.is_above {
                "c-label on-land"
            } else {
                "c-label on-water"
            },
            x,
            y,
            dx,
            dy: if remark.is_above { -22.0 } else { 22.0 },
            anchor,
            text: remark.text.clone(),
        };
        let places = vec![
            place(0.0, Anchor::Middle),
            place(10.0, Anchor::End),
            place(-10.0, Anchor::Start),
        ];
        Wanted { places, stays: false }
    });
    let threshold_end = data
        .threshold
        .last()
        .map(|step| scales.range.from_top(step.value));
    let water = threshold_end.map_or(0.0, |y| (1.0 - y) * size.height);
    let side = (water >= 20.0).then(|| {
        let place = |x, dx, anchor| Label {
            class: "c-label c-side f on-water",
            x,
            y: 1.0,
            dx,
            dy: -6.0,
            anchor,
            text: "inside".to_owned(),
        };
        Wanted {
            places: vec![place(1.0, -5.0, Anchor::End), place(0.0, 5.0, Anchor::Start)],
            stays: false,
        }
    });
    arranged(side.into_iter().chain(remark).collect(), taken.collect(), size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charts::{series::RoundValue, unit::Unit};
    use crate::format::Quantity;

    fn data() -> StripData {
        StripData {
            name: "human requests".to_owned(),
            unit: Unit(Quantity::Rate),
            last_round: 6,
            threshold: vec![RoundValue {
                round: 0,
                value: 0.35,
            }],
            leading: vec![
                Leading {
                    round: 0,
                    id: Some("f36b0b11".into()),
                    value: 0.757,
                    error: Some(0.05),
                    feasible: false,
                },
                Leading {
                    round: 1,
                    id: None,
                    value: 0.324,
                    error: Some(0.061),
                    feasible: true,
                },
            ],
            multiplier: vec![RoundValue {
                round: 1,
                value: 10.0,
            }],
            cap: Some(10.0),
            ..StripData::default()
        }
    }

    #[test]
    fn a_point_is_a_full_sentence() {
        let data = data();
        assert_eq!(
            leading_sentence(&data, &data.leading[0]),
            "Seed round, best f36b0b: human requests 75.7% ± 5.0, over by 40.7 pts, not feasible on search."
        );
        assert_eq!(
            leading_sentence(&data, &data.leading[1]),
            "Round 1, mean of the best: human requests 32.4% ± 6.1, slack 2.6 pts, within 1 SE of the \
             threshold, feasible on search; multiplier used 10.00, at cap."
        );
    }

    #[test]
    fn the_table_has_a_row_per_closed_round() {
        let mut data = data();
        let row = ["seed", "f36b0b", "75.7%", "± 5.0", "not feasible on search", "–"];
        assert_eq!(strip_table(&data).rows[0], row);
        data.threshold.push(RoundValue { round: 1, value: 0.3 });
        let table = strip_table(&data);
        assert_eq!(table.headers[4], "Threshold");
        assert_eq!(table.rows[1][4], "≤ 30%");
        assert!(table.rows.iter().all(|row| row.len() == table.headers.len()));
    }
}
