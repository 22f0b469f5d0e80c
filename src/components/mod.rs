//! What pages are composed of.

mod marks;
mod page_title;
mod run_head;
mod run_keys;
mod run_nav;
mod run_notices;
mod run_route;
mod run_tag;
mod words;

pub use marks::Gate;
pub use page_title::page_title;
pub use run_head::RunHead;
pub use run_keys::RunKeys;
pub use run_nav::RunNav;
pub use run_notices::RunNotices;
pub use run_route::{use_run, with_run};
pub use run_tag::RunTag;
pub use words::Words;
