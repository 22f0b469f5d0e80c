//! SVG charts: plain data in, axes, units, focusable points and a sentence out.

pub mod axis;
pub mod bullet;
pub mod figure;
pub mod heat;
pub mod interval;
mod keyed;
pub mod labels;
pub mod lineage;
pub mod map;
pub mod marks;
mod measure;
mod multiplier;
pub mod objective;
pub mod overlay;
pub mod roving;
pub mod ruler;
pub mod scale;
pub mod series;
pub mod spark;
pub mod strip;
mod threshold;
pub mod unit;
