//! What a prompt is measured on.

pub mod desk;
pub mod external;
pub mod metrics;
pub mod table;
