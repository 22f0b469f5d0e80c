//! Title, caption and legend above the panels.

use std::collections::BTreeMap;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::MARGIN;
use super::marks::{Canvas, Drawn, GREY, INK, colour, dashed, font, marker, text, width};
use crate::experiment::figure::{Figure, Series};

/// One entry of the legend, with its place on the line.
pub(super) struct LegendEntry<'a> {
    label: &'a str,
    /// The series' style; `None` for the dashed line of thresholds.
    style: Option<usize>,
    joined: bool,
    left: i32,
    /// Where it ends, in pixels.
    pub(super) right: i32,
}

/// Every style of the figure once, then the dashed line if there is one.
pub(super) fn legend(figure: &Figure) -> Vec<LegendEntry<'_>> {
    let mut styles: BTreeMap<usize, &Series> = BTreeMap::new();
    for series in figure.panels.iter().flat_map(|panel| &panel.series) {
        styles.entry(series.style).or_insert(series);
    }
    let series = styles
        .into_iter()
        .map(|(style, series)| (series.label.as_str(), Some(style), series.joined));
    let threshold = figure
        .panels
        .iter()
        .any(|panel| !panel.thresholds.is_empty())
        .then_some(("threshold", None, true));
    let mut left = MARGIN;
    series
        .chain(threshold)
        .map(|(label, style, joined)| {
            let right = left + 30 + width(label, 12.0);
            let entry = LegendEntry {
                label,
                style,
                joined,
                left,
                right,
            };
            left = right + 20;
            entry
        })
        .collect()
}

pub(super) fn draw_header(canvas: &Canvas, figure: &Figure, legend: &[LegendEntry]) -> Drawn {
    text(
        canvas,
        &figure.title,
        (MARGIN, 14),
        &font(17.0, INK, HPos::Left, VPos::Top),
    )?;
    for (line, top) in figure.caption.lines().zip((36..).step_by(14)) {
        text(
            canvas,
            line,
            (MARGIN, top),
            &font(12.0, GREY, HPos::Left, VPos::Top),
        )?;
    }
    let y = 68;
    for entry in legend {
        let (from, to) = ((entry.left, y), (entry.left + 24, y));
        match entry.style {
            Some(style) => {
                if entry.joined {
                    canvas.draw(&PathElement::new(vec![from, to], colour(style).stroke_width(2)))?;
                }
                marker(canvas, (entry.left + 12, y), style)?;
            }
            None => dashed(canvas, from, to, INK, 6)?,
        }
        text(
            canvas,
            entry.label,
            (entry.left + 30, y),
            &font(12.0, INK, HPos::Left, VPos::Center),
        )?;
    }
    Ok(())
}
