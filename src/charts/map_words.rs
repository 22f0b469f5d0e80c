//! The words on the map: the seed, the best, the two sides, the corners of the course.

use super::{
    labels::{Anchor, Label, Space, Wanted, arranged},
    map::{MapData, MapPoint, Ranges, by_id},
    marks::STRONG,
    measure::Size,
    unit::short,
};

/// The names of the seed and the best, of the two sides, and of the course's corners: the first ones stay,
/// the last ones are the first to give way.
pub(super) fn words(data: &MapData, ranges: Ranges, size: Size) -> Vec<Label> {
    let by_id = by_id(data);
    let course: Vec<_> = data
        .course
        .iter()
        .filter_map(|id| by_id.get(id.as_str()).copied())
        .collect();
    // The seed is named before there is any course.
    let first = data.points.iter().find(|point| point.round == 0);
    let marked = course.iter().copied().chain(first.filter(|_| course.is_empty()));
    let taken: Vec<_> = marked
        .map(|point| {
            let (x, y) = ranges.at(point);
            Space::of_mark(x, y, STRONG, size)
        })
        .collect();
    let on_side =
        |point: &MapPoint, voices: [&'static str; 2]| voices[usize::from(point.worst_residual > 0.0)];
    // The ends of the course are named at their left, where the map is empty, its corners at their right.
    let named = |point: &MapPoint, class, reach: f64, text: String, stays: bool| {
        let (x, y) = ranges.at(point);
        let place = |dx, dy, anchor| Label {
            class,
            x,
            y,
            dx,
            dy,
            anchor,
            text: text.clone(),
        };
        let places = [-3.0, 4.0, 13.0]
            .into_iter()
            .flat_map(|dy| {
                let [right, left] = [place(reach, dy, Anchor::Start), place(-reach, dy, Anchor::End)];
                if stays { [left, right] } else { [right, left] }
            })
            .collect();
        Wanted { places, stays }
    };
    let side = |class, dx, anchor, text: &str| {
        let x = ranges.residual.place(0.0);
        let label = Label {
            class,
            x,
            y: 1.0,
            dx,
            dy: -8.0,
            anchor,
            text: text.to_owned(),
        };
        Wanted {
            places: vec![label],
            stays: false,
        }
    };
    let last = course.last().filter(|_| course.len() > 1);
    let seed = first.map(|seed| {
        let voice = on_side(seed, ["c-label b on-water", "c-label b on-land"]);
        named(seed, voice, 9.0, "seed".to_owned(), true)
    });
    let best = last.map(|best| {
        let voice = on_side(best, ["c-label acc on-water", "c-label acc on-land"]);
        named(
            best,
            voice,
            13.0,
            format!("{} {}", data.best_name, short(&best.id)),
            true,
        )
    });
    let sides = [
        side("c-label c-side f on-water", -6.0, Anchor::End, "inside"),
        side("c-label c-side i on-land", 6.0, Anchor::Start, "outside"),
    ];
    let corners = course
        .get(1..course.len().max(2) - 1)
        .unwrap_or_default()
        .iter()
        // At the ring of the best its own id stands, not that of a prompt with the same scores.
        .filter(|corner| last.is_none_or(|best| ranges.at(best) != ranges.at(corner)))
        .map(|corner| {
            let voice = on_side(corner, ["c-label on-water", "c-label on-land"]);
            named(corner, voice, 9.0, short(&corner.id), false)
        });
    let wanted = seed.into_iter().chain(best).chain(sides).chain(corners).collect();
    arranged(wanted, taken, size)
}
