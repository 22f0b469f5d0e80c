//! SVG charts: plain data in, axes, units, focusable points and a sentence out.
