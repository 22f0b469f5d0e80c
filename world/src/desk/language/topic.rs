//! What a customer can be asked for.

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
    /// Why.
    Reason,
    /// What it is all about.
    Goal,
}
