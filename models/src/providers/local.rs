//! Models whose weights are on this machine, opened by whoever can compute with them.

use super::{Access, Key, Provider};

pub(super) const PROVIDER: Provider = Provider {
    name: "local",
    title: "Local rewriter",
    key: Key::None,
    base_url: None,
    model: None,
    catalogue: None,
    seeds: true,
    reports_cost: true,
    batch_price: None,
    embeds: false,
    in_process: true,
};

pub(super) const ACCESS: Access = Access::Local;
