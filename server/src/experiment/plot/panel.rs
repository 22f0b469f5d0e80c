//! One pair of axes with its series.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::marks::{Canvas, Drawn, GREY, GRID, INK, colour, dashed, font, marker, text};
use super::scale::{horizontal, vertical};
use crate::experiment::figure::{Axis, Panel, Point, Series};

/// Draws a panel into the rectangle of this corner and size, in pixels.
pub(super) fn draw_panel(canvas: &Canvas, panel: &Panel, (left, top): (i32, i32), size: (i32, i32)) -> Drawn {
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
