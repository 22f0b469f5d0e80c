//! Draws a [`Figure`] as SVG.
//!
//! Axes and grid are drawn by plotters; points, bars and legend are placed in pixels, so that the
//! legend shows the very marks of the panels and never covers data.

mod header;
mod marks;
mod panel;
mod scale;

use plotters::prelude::*;

use self::header::{draw_header, legend};
use self::marks::{Drawn, width};
use self::panel::draw_panel;
use super::figure::{Figure, Panel};

/// Pixels around the page.
const MARGIN: i32 = 16;
/// Pixels above the first row of panels.
const HEADER: i32 = 88;

/// A figure that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the figure `{figure}`: {reason}")]
pub struct PlotError {
    figure: String,
    reason: String,
}

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
        .chain([MARGIN + width(&figure.title, 17.0)])
        .chain(figure.caption.lines().map(|line| MARGIN + width(line, 12.0)))
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

#[cfg(test)]
mod tests {
    use capo_core::estimate::Estimate;

    use super::super::figure::{Axis, Point, Series, Threshold};
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
