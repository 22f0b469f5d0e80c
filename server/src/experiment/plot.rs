//! Draws a [`Figure`] as SVG.
//!
//! Axes and grid are drawn by plotters; points, bars and legend are placed in pixels, so that the
//! legend shows the very marks of the panels and never covers data.

use std::collections::BTreeMap;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figure::{Axis, Figure, Panel, Point, Series, ticks};

const MARGIN: i32 = 16;
const HEADER: i32 = 88;
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GREY: RGBColor = RGBColor(0x66, 0x66, 0x66);
const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);

/// Okabe and Ito's palette for readers with any colour vision, without its yellow, which is too
/// pale on white. Every colour also has its own marker.
const PALETTE: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x44, 0x44, 0x44),
];

/// A figure that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the figure `{figure}`: {reason}")]
pub struct PlotError {
    figure: String,
    reason: String,
}

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The figure as a self-contained SVG document with title and description.
///
/// # Errors
/// When a coordinate is not finite.
pub fn svg(figure: &Figure) -> Result<String, PlotError> {
    let failed = |reason: String| PlotError {
        figure: figure.name.clone(),
        reason,
    };
    if let Some(panel) = figure.panels.iter().find(|panel| !all_finite(panel)) {
        return Err(failed(format!(
            "panel `{}` holds a value that is not finite",
            panel.title
        )));
    }
    let (columns, panel_size) = match figure.panels.len() {
        0 | 1 => (1, (640, 380)),
        2 | 4 => (2, (460, 300)),
        _ => (3, (380, 280)),
    };
    let legend = legend(figure);
    let wanted = legend
        .iter()
        .map(|entry| entry.right)
        .chain([
            MARGIN + width(&figure.title, 17.0),
            MARGIN + width(&figure.caption, 12.0),
        ])
        .max()
        .unwrap_or(0);
    let corners: Vec<(i32, i32)> = (0..)
        .flat_map(|row| (0..columns).map(move |column| (column, row)))
        .map(|(column, row)| (MARGIN + column * panel_size.0, HEADER + row * panel_size.1))
        .take(figure.panels.len())
        .collect();
    let bottom = corners.last().map_or(HEADER, |(_, top)| top + panel_size.1);
    let size = (
        (panel_size.0 * columns + 2 * MARGIN).max(wanted + MARGIN) as u32,
        (bottom + MARGIN) as u32,
    );
    let mut document = String::new();
    {
        let canvas = SVGBackend::with_string(&mut document, size).into_drawing_area();
        let draw = || -> Drawn {
            canvas.fill(&WHITE)?;
            draw_header(&canvas, figure, &legend)?;
            for (panel, corner) in figure.panels.iter().zip(&corners) {
                draw_panel(&canvas, panel, *corner, panel_size)?;
            }
            canvas.present()?;
            Ok(())
        };
        draw().map_err(|error| failed(error.to_string()))?;
    }
    Ok(describe(&document, figure))
}

/// Puts title and description where screen readers look for them.
fn describe(document: &str, figure: &Figure) -> String {
    let escape = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    };
    let end = document.find('>').map_or(0, |at| at + 1);
    format!(
        "{}\n<title>{}</title>\n<desc>{}</desc>{}",
        &document[..end],
        escape(&figure.title),
        escape(&figure.caption),
        &document[end..]
    )
}

fn all_finite(panel: &Panel) -> bool {
    panel
        .thresholds
        .iter()
        .all(|threshold| threshold.value.is_finite())
        && panel.marks.iter().all(|(x, _)| x.is_finite())
        && panel
            .series
            .iter()
            .flat_map(|series| &series.points)
            .all(|point| {
                [point.x, point.y, point.interval.0, point.interval.1]
                    .into_iter()
                    .all(f64::is_finite)
            })
}

/// A text style; plotters draws text at size / 1.24, so `pixels` is what is seen.
fn font(pixels: f64, colour: RGBColor, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    ("sans-serif", pixels * 1.24)
        .into_font()
        .color(&colour)
        .pos(Pos::new(horizontal, vertical))
}

fn text(canvas: &Canvas, words: &str, at: (i32, i32), style: &TextStyle) -> Drawn {
    canvas.draw(&Text::new(words.to_owned(), at, style.clone()))?;
    Ok(())
}

/// Width of text in pixels, roughly: an SVG's reader chooses the font.
fn width(words: &str, pixels: f64) -> i32 {
    (words.chars().count() as f64 * pixels * 0.6) as i32
}

/// One entry of the legend, with its place on the line.
struct LegendEntry<'a> {
    label: &'a str,
    /// The series' style; `None` for the dashed line of thresholds.
    style: Option<usize>,
    joined: bool,
    left: i32,
    right: i32,
}

/// Every style of the figure once, then the dashed line if there is one.
fn legend(figure: &Figure) -> Vec<LegendEntry<'_>> {
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

fn draw_header(canvas: &Canvas, figure: &Figure, legend: &[LegendEntry]) -> Drawn {
    text(
        canvas,
        &figure.title,
        (MARGIN, 14),
        &font(17.0, INK, HPos::Left, VPos::Top),
    )?;
    text(
        canvas,
        &figure.caption,
        (MARGIN, 38),
        &font(12.0, GREY, HPos::Left, VPos::Top),
    )?;
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

/// Where an axis ends and where its ticks are.
#[derive(Clone)]
struct Scale {
    range: Range<f64>,
    ticks: Vec<f64>,
    decimals: usize,
}

impl Scale {
    fn covering(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = values
            .into_iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        // A scale that nearly reaches zero includes it: bars of error are then read in proportion.
        let low = if low > 0.0 && low < 0.5 * high { 0.0 } else { low };
        Self::between(low, high)
    }

    /// Ticks that cover `low..=high`, and a little room beyond them for markers.
    fn between(low: f64, high: f64) -> Self {
        let (ticks, decimals) = ticks(low, high);
        let (first, last) = (ticks[0], ticks[ticks.len() - 1]);
        let room = 0.03 * (last - first);
        Self {
            range: first - room..last + room,
            ticks,
            decimals,
        }
    }
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        first + (f64::from(last - first) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

fn horizontal(panel: &Panel) -> (Scale, &str) {
    match &panel.x {
        Axis::Categories { label, names } => {
            let last = names.len().max(1) as f64;
            let ticks = (0..names.len()).map(|at| at as f64).collect();
            (
                Scale {
                    range: -0.5..last - 0.5,
                    ticks,
                    decimals: 0,
                },
                label,
            )
        }
        Axis::Steps { label, first, last } => {
            let every = ((last - first) / 12 + 1) as usize;
            let ticks = (*first..=*last).step_by(every).map(f64::from).collect();
            (
                Scale {
                    range: f64::from(*first) - 0.3..f64::from(*last) + 0.3,
                    ticks,
                    decimals: 0,
                },
                label,
            )
        }
        Axis::Values { label } => (
            Scale::covering(
                panel
                    .series
                    .iter()
                    .flat_map(|series| &series.points)
                    .map(|point| point.x),
            ),
            label,
        ),
    }
}

fn vertical(panel: &Panel) -> Scale {
    match panel.y_range {
        Some((low, high)) => Scale::between(low, high),
        None => Scale::covering(
            panel
                .series
                .iter()
                .flat_map(|series| &series.points)
                .flat_map(|point| [point.interval.0, point.y, point.interval.1])
                .chain(panel.thresholds.iter().map(|threshold| threshold.value)),
        ),
    }
}

fn draw_panel(canvas: &Canvas, panel: &Panel, (left, top): (i32, i32), size: (i32, i32)) -> Drawn {
    let area = canvas.clone().shrink((left, top), size);
    text(
        canvas,
        &panel.title,
        (left + 58, top + 8),
        &font(13.5, INK, HPos::Left, VPos::Top),
    )?;
    let (x, x_label) = horizontal(panel);
    let y = vertical(panel);
    let mut chart = ChartBuilder::on(&area)
        .margin_top(30)
        .margin_right(14)
        .margin_bottom(6)
        .set_label_area_size(LabelAreaPosition::Left, 58)
        .set_label_area_size(LabelAreaPosition::Bottom, 44)
        .build_cartesian_2d(x.clone(), y.clone())?;
    let x_text = |value: &f64| match &panel.x {
        Axis::Categories { names, .. } => names.get(value.round() as usize).cloned().unwrap_or_default(),
        Axis::Steps { .. } | Axis::Values { .. } => format!("{value:.*}", x.decimals),
    };
    let y_text = |value: &f64| format!("{:.*}", y.decimals, value + 0.0);
    let mut mesh = chart.configure_mesh();
    if !matches!(panel.x, Axis::Values { .. }) {
        mesh.disable_x_mesh();
    }
    mesh.bold_line_style(GRID)
        .axis_style(GREY)
        .label_style(("sans-serif", 11.0 * 1.24).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 12.0 * 1.24).into_font().color(&INK))
        .x_label_formatter(&x_text)
        .y_label_formatter(&y_text)
        .x_desc(x_label)
        .y_desc(&panel.y)
        .draw()?;

    let pixel = |x: f64, y: f64| chart.backend_coord(&(x, y));
    for threshold in &panel.thresholds {
        let (from, to) = threshold.span.unwrap_or((x.range.start, x.range.end));
        let colour = threshold.style.map_or(INK, colour);
        dashed(
            canvas,
            pixel(from, threshold.value),
            pixel(to, threshold.value),
            colour,
            6,
        )?;
    }
    for (at, label) in &panel.marks {
        let (foot, head) = (pixel(*at, y.range.start), pixel(*at, y.range.end));
        dashed(canvas, foot, head, GREY, 2)?;
        text(
            canvas,
            label,
            (head.0 + 4, head.1 + 2),
            &font(11.0, GREY, HPos::Left, VPos::Top),
        )?;
    }
    for series in &panel.series {
        draw_series(canvas, series, &pixel)?;
    }
    Ok(())
}

fn draw_series(canvas: &Canvas, series: &Series, pixel: &impl Fn(f64, f64) -> (i32, i32)) -> Drawn {
    let colour = colour(series.style);
    let spread = |point: &&Point| point.interval.1 > point.interval.0;
    if series.joined {
        if series.points.iter().any(|point| spread(&point)) {
            let upper = series.points.iter().map(|point| pixel(point.x, point.interval.1));
            let lower = series
                .points
                .iter()
                .rev()
                .map(|point| pixel(point.x, point.interval.0));
            canvas.draw(&Polygon::new(
                upper.chain(lower).collect::<Vec<_>>(),
                colour.mix(0.15),
            ))?;
        }
        let line: Vec<_> = series
            .points
            .iter()
            .map(|point| pixel(point.x, point.y))
            .collect();
        canvas.draw(&PathElement::new(line, colour.stroke_width(2)))?;
    } else {
        for point in series.points.iter().filter(spread) {
            let (low, high) = (pixel(point.x, point.interval.0), pixel(point.x, point.interval.1));
            let bar = colour.stroke_width(2);
            canvas.draw(&PathElement::new(vec![low, high], bar))?;
            for end in [low, high] {
                canvas.draw(&PathElement::new(
                    vec![(end.0 - 5, end.1), (end.0 + 5, end.1)],
                    bar,
                ))?;
            }
        }
    }
    for point in &series.points {
        marker(canvas, pixel(point.x, point.y), series.style)?;
    }
    Ok(())
}

fn colour(style: usize) -> RGBColor {
    PALETTE[style % PALETTE.len()]
}

/// Draws the marker of a style, about 9 pixels across.
fn marker(canvas: &Canvas, (x, y): (i32, i32), style: usize) -> Drawn {
    let fill = colour(style).filled();
    let polygon = |corners: &[(i32, i32)]| {
        Polygon::new(
            corners
                .iter()
                .map(|(dx, dy)| (x + dx, y + dy))
                .collect::<Vec<_>>(),
            fill,
        )
    };
    match style % PALETTE.len() {
        0 => canvas.draw(&Circle::new((x, y), 4, fill))?,
        1 => canvas.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], fill))?,
        2 => canvas.draw(&polygon(&[(0, -5), (5, 4), (-5, 4)]))?,
        3 => canvas.draw(&polygon(&[(0, -6), (5, 0), (0, 6), (-5, 0)]))?,
        4 => canvas.draw(&polygon(&[(0, 5), (5, -4), (-5, -4)]))?,
        5 => canvas.draw(&Circle::new((x, y), 4, colour(style).stroke_width(2)))?,
        _ => canvas.draw(&Cross::new((x, y), 4, colour(style).stroke_width(2)))?,
    }
    Ok(())
}

/// A straight line of dashes; `dash` pixels on, as many off.
fn dashed(canvas: &Canvas, from: (i32, i32), to: (i32, i32), colour: RGBColor, dash: i32) -> Drawn {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = f64::from(dx).hypot(f64::from(dy)).round() as i32;
    let at = |step: i32| {
        let share = f64::from(step.min(length)) / f64::from(length.max(1));
        (
            from.0 + (f64::from(dx) * share).round() as i32,
            from.1 + (f64::from(dy) * share).round() as i32,
        )
    };
    let mut step = 0;
    while step < length {
        canvas.draw(&PathElement::new(
            vec![at(step), at(step + dash)],
            colour.stroke_width(1),
        ))?;
        step += 2 * dash;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use capo_core::estimate::Estimate;

    use super::super::figure::Threshold;
    use super::*;

    fn sample() -> Figure {
        let x = Axis::Categories {
            label: "dual rate β".into(),
            names: ["0.5", "2", "4"].map(String::from).into(),
        };
        let mut costs = Panel::new("excess_tools", x, "mean cost (calls ÷ reference − 1)");
        costs.thresholds = vec![Threshold::common(1.05)];
        costs.series = vec![Series {
            label: "held-out".into(),
            style: 0,
            joined: false,
            points: (0..3)
                .map(|at| {
                    let mean = 1.3 - 0.2 * f64::from(at);
                    Point::estimate(
                        f64::from(at),
                        Estimate {
                            mean,
                            standard_error: 0.05,
                            n: 5,
                        },
                    )
                })
                .collect(),
        }];
        let mut rounds = Panel::new(
            "multiplier",
            Axis::Steps {
                label: "round".into(),
                first: 0,
                last: 6,
            },
            "λ",
        );
        rounds.marks = vec![(3.0, "length enters".into())];
        rounds.series = vec![Series {
            label: "β = 4".into(),
            style: 1,
            joined: true,
            points: (0..7)
                .map(|at| Point::exact(f64::from(at), 1.0 + f64::from(at) * 0.4))
                .collect(),
        }];
        Figure {
            name: "sample".into(),
            title: "Dual rate <β>".into(),
            caption: "Mean over 5 seeds; bars are one standard error.".into(),
            panels: vec![costs, rounds],
        }
    }

    #[test]
    fn the_drawing_is_stable() {
        insta::assert_snapshot!(svg(&sample()).unwrap());
    }

    #[test]
    fn a_value_that_is_not_finite_is_named() {
        let mut figure = sample();
        figure.panels[1].series[0].points[2].y = f64::NAN;
        assert_eq!(
            svg(&figure).unwrap_err().to_string(),
            "cannot draw the figure `sample`: panel `multiplier` holds a value that is not finite"
        );
    }

    #[test]
    fn titles_are_escaped() {
        assert!(
            svg(&sample())
                .unwrap()
                .contains("<title>Dual rate &lt;β&gt;</title>")
        );
    }

    #[test]
    fn a_panel_without_data_still_has_axes() {
        let mut figure = sample();
        figure.panels[0].series.clear();
        figure.panels[0].thresholds.clear();
        assert!(svg(&figure).unwrap().contains("excess_tools"));
    }
}
