//! Topics: facts that a customer can be asked for.

use serde::{Deserialize, Serialize};

/// What an agent can ask a customer for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// The e-mail address of the account.
    Email,
    /// The postcode of the account.
    Postcode,
    /// The customer's name.
    Name,
    /// The order's number, or what it can be told by.
    Order,
    /// Which items of the order.
    Item,
    /// The size or colour.
    Variant,
    /// The new delivery address.
    Address,
    /// Day and time of an appointment.
    Date,
    /// The workshop's service.
    Service,
    /// The appointment the customer has.
    Appointment,
    /// The reason in words.
    Reason,
    /// What it is all about.
    Goal,
}

impl Topic {
    pub(in crate::desk) const ALL: [Self; 12] = [
        Self::Email,
        Self::Postcode,
        Self::Name,
        Self::Order,
        Self::Item,
        Self::Variant,
        Self::Address,
        Self::Date,
        Self::Service,
        Self::Appointment,
        Self::Reason,
        Self::Goal,
    ];

    /// What personas call it, in lower case: ours by the first of these.
    pub(in crate::desk) fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Email => &["e-mail address", "e-mail", "email"],
            Self::Postcode => &["postcode", "zip", "postal"],
            Self::Name => &["name"],
            Self::Order => &["order number", "order"],
            Self::Item => &["item", "product"],
            Self::Variant => &["size or colour", "size", "colour", "color", "variant"],
            Self::Address => &["new address", "delivery address", "street"],
            Self::Date => &["day and time", "day", "date", "time"],
            Self::Service => &["service"],
            Self::Appointment => &["appointment", "booking"],
            Self::Reason => &["reason"],
            Self::Goal => &["goal"],
        }
    }
}
