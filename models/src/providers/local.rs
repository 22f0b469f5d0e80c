//! Models whose weights are on this machine, opened by whoever can compute with them.

use super::{Access, Provider};

pub(super) const PROVIDER: Provider = Provider {
    reports_cost: true,
    embeds: false,
    ..Provider::in_process("local", "Local rewriter")
};

pub(super) const ACCESS: Access = Access::Local;
