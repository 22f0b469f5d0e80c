//! Colours, markers, dashes and words, in pixels.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(super) const GREY: RGBColor = RGBColor(0x66, 0x66, 0x66);
pub(super) const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);

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

pub(super) type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A text style; plotters draws text at size / 1.24, so `pixels` is what is seen.
pub(super) fn font(pixels: f64, colour: RGBColor, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    ("sans-serif", pixels * 1.24)
        .into_font()
        .color(&colour)
        .pos(Pos::new(horizontal, vertical))
}

pub(super) fn text(canvas: &Canvas, words: &str, at: (i32, i32), style: &TextStyle) -> Drawn {
    canvas.draw(&Text::new(words.to_owned(), at, style.clone()))?;
    Ok(())
}

/// Width of text in pixels, roughly: an SVG's reader chooses the font.
pub(super) fn width(words: &str, pixels: f64) -> i32 {
    (words.chars().count() as f64 * pixels * 0.6) as i32
}

pub(super) fn colour(style: usize) -> RGBColor {
    PALETTE[style % PALETTE.len()]
}

/// Draws the marker of a style, about 9 pixels across.
pub(super) fn marker(canvas: &Canvas, (x, y): (i32, i32), style: usize) -> Drawn {
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
pub(super) fn dashed(
    canvas: &Canvas,
    from: (i32, i32),
    to: (i32, i32),
    colour: RGBColor,
    dash: i32,
) -> Drawn {
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
