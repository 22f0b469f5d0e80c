//! SVG charts: plain data in, axes, units, focusable points and a sentence out.

pub mod axis;
pub mod bullet;
pub mod figure;
mod grid;
pub mod heat;
pub mod interval;
mod keyed;
pub mod labels;
pub mod lineage;
pub mod loss;
pub mod map;
mod map_words;
pub mod marks;
pub mod measure;
pub mod multiplier;
pub mod objective;
pub mod overlay;
pub mod picture;
pub mod roving;
pub mod ruler;
pub mod scale;
pub mod series;
pub mod spark;
pub mod strip;
mod strip_words;
pub mod threshold;
pub mod unit;
