//! The records of the airline, with their fields in the order in which they are shown.

#![expect(clippy::struct_field_names, reason = "the names are those of the files")]

use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use super::super::cached_json::CachedJson;
use super::super::number::{lax_float, lax_int};
use super::super::table::Table;

/// A flight of one number, on all its dates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Flight {
    pub(super) flight_number: SmolStr,
    pub(super) origin: SmolStr,
    pub(super) destination: SmolStr,
    pub(super) scheduled_departure_time_est: SmolStr,
    pub(super) scheduled_arrival_time_est: SmolStr,
    /// By date.
    pub(super) dates: Table<Departure>,
}

/// A flight on one date.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "status")]
pub(super) enum Departure {
    #[serde(rename = "available")]
    Available(Seats),
    #[serde(rename = "landed")]
    Landed {
        actual_departure_time_est: SmolStr,
        actual_arrival_time_est: SmolStr,
    },
    #[serde(rename = "cancelled")]
    Cancelled,
    #[serde(rename = "delayed")]
    Delayed {
        estimated_departure_time_est: SmolStr,
        estimated_arrival_time_est: SmolStr,
    },
    #[serde(rename = "on time")]
    OnTime {
        estimated_departure_time_est: SmolStr,
        estimated_arrival_time_est: SmolStr,
    },
    #[serde(rename = "flying")]
    Flying {
        actual_departure_time_est: SmolStr,
        estimated_arrival_time_est: SmolStr,
    },
}

/// What can be bought, by cabin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Seats {
    pub(super) available_seats: Cabins,
    pub(super) prices: Arc<Cabins>,
}

/// A number for each cabin.
pub(super) type Cabins = IndexMap<SmolStr, i64>;

impl Departure {
    pub(super) fn status(&self) -> &'static str {
        match self {
            Self::Available(_) => "available",
            Self::Landed { .. } => "landed",
            Self::Cancelled => "cancelled",
            Self::Delayed { .. } => "delayed",
            Self::OnTime { .. } => "on time",
            Self::Flying { .. } => "flying",
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct User {
    pub(super) user_id: SmolStr,
    pub(super) name: Name,
    pub(super) address: Arc<Address>,
    pub(super) email: SmolStr,
    pub(super) dob: SmolStr,
    /// Means of payment by id.
    pub(super) payment_methods: IndexMap<SmolStr, PaymentMethod>,
    pub(super) saved_passengers: Arc<Vec<Passenger>>,
    pub(super) membership: SmolStr,
    pub(super) reservations: Vec<SmolStr>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Name {
    pub(super) first_name: SmolStr,
    pub(super) last_name: SmolStr,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) address1: SmolStr,
    #[serde(default)]
    pub(super) address2: Option<SmolStr>,
    pub(super) city: SmolStr,
    pub(super) country: SmolStr,
    pub(super) state: SmolStr,
    pub(super) zip: SmolStr,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub(super) enum PaymentMethod {
    CreditCard {
        id: SmolStr,
        brand: SmolStr,
        last_four: SmolStr,
    },
    GiftCard {
        id: SmolStr,
        #[serde(deserialize_with = "lax_float")]
        amount: f64,
    },
    Certificate {
        id: SmolStr,
        #[serde(deserialize_with = "lax_float")]
        amount: f64,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Passenger {
    pub(super) first_name: SmolStr,
    pub(super) last_name: SmolStr,
    pub(super) dob: SmolStr,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Payment {
    pub(super) payment_id: SmolStr,
    #[serde(deserialize_with = "lax_int")]
    pub(super) amount: i64,
}

/// A flight as a call names it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct FlightInfo {
    pub(super) flight_number: SmolStr,
    pub(super) date: SmolStr,
}

/// A flight as it was booked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Segment {
    pub(super) flight_number: SmolStr,
    pub(super) origin: SmolStr,
    pub(super) destination: SmolStr,
    pub(super) date: SmolStr,
    pub(super) price: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Reservation {
    pub(super) reservation_id: SmolStr,
    pub(super) user_id: SmolStr,
    pub(super) origin: SmolStr,
    pub(super) destination: SmolStr,
    pub(super) flight_type: SmolStr,
    /// Set unchecked when flights change, as the numbers of bags are.
    pub(super) cabin: Value,
    pub(super) flights: CachedJson<Vec<Segment>>,
    pub(super) passengers: CachedJson<Vec<Passenger>>,
    pub(super) payment_history: Vec<Payment>,
    pub(super) created_at: SmolStr,
    pub(super) total_baggages: Value,
    pub(super) nonfree_baggages: Value,
    pub(super) insurance: SmolStr,
    #[serde(default)]
    pub(super) status: Option<SmolStr>,
}

/// A flight that can be bought, as a search shows it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DirectFlight<'a> {
    pub(super) flight_number: &'a str,
    pub(super) origin: &'a str,
    pub(super) destination: &'a str,
    pub(super) status: &'static str,
    pub(super) scheduled_departure_time_est: &'a str,
    pub(super) scheduled_arrival_time_est: &'a str,
    pub(super) date: Option<&'a str>,
    pub(super) available_seats: &'a Cabins,
    pub(super) prices: &'a Cabins,
}
