//! The records of the airline, with their fields in the order in which they are shown.

#![expect(clippy::struct_field_names, reason = "the names are those of the files")]

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::number::{lax_float, lax_int};

/// A flight of one number, on all its dates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Flight {
    pub(super) flight_number: String,
    pub(super) origin: String,
    pub(super) destination: String,
    pub(super) scheduled_departure_time_est: String,
    pub(super) scheduled_arrival_time_est: String,
    /// By date.
    pub(super) dates: IndexMap<String, Departure>,
}

/// A flight on one date.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "status")]
pub(super) enum Departure {
    #[serde(rename = "available")]
    Available(Seats),
    #[serde(rename = "landed")]
    Landed {
        actual_departure_time_est: String,
        actual_arrival_time_est: String,
    },
    #[serde(rename = "cancelled")]
    Cancelled,
    #[serde(rename = "delayed")]
    Delayed {
        estimated_departure_time_est: String,
        estimated_arrival_time_est: String,
    },
    #[serde(rename = "on time")]
    OnTime {
        estimated_departure_time_est: String,
        estimated_arrival_time_est: String,
    },
    #[serde(rename = "flying")]
    Flying {
        actual_departure_time_est: String,
        estimated_arrival_time_est: String,
    },
}

/// What can be bought, by cabin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Seats {
    pub(super) available_seats: IndexMap<String, i64>,
    pub(super) prices: IndexMap<String, i64>,
}

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
    pub(super) user_id: String,
    pub(super) name: Name,
    pub(super) address: Address,
    pub(super) email: String,
    pub(super) dob: String,
    /// By id.
    pub(super) payment_methods: IndexMap<String, PaymentMethod>,
    pub(super) saved_passengers: Vec<Passenger>,
    pub(super) membership: String,
    pub(super) reservations: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Name {
    pub(super) first_name: String,
    pub(super) last_name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) address1: String,
    #[serde(default)]
    pub(super) address2: Option<String>,
    pub(super) city: String,
    pub(super) country: String,
    pub(super) state: String,
    pub(super) zip: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub(super) enum PaymentMethod {
    CreditCard {
        id: String,
        brand: String,
        last_four: String,
    },
    GiftCard {
        id: String,
        #[serde(deserialize_with = "lax_float")]
        amount: f64,
    },
    Certificate {
        id: String,
        #[serde(deserialize_with = "lax_float")]
        amount: f64,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Passenger {
    pub(super) first_name: String,
    pub(super) last_name: String,
    pub(super) dob: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Payment {
    pub(super) payment_id: String,
    #[serde(deserialize_with = "lax_int")]
    pub(super) amount: i64,
}

/// A flight as a call names it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct FlightInfo {
    pub(super) flight_number: String,
    pub(super) date: String,
}

/// A flight as it was booked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Segment {
    pub(super) flight_number: String,
    pub(super) origin: String,
    pub(super) destination: String,
    pub(super) date: String,
    pub(super) price: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Reservation {
    pub(super) reservation_id: String,
    pub(super) user_id: String,
    pub(super) origin: String,
    pub(super) destination: String,
    pub(super) flight_type: String,
    /// Set unchecked when flights change, as the numbers of bags are.
    pub(super) cabin: Value,
    pub(super) flights: Vec<Segment>,
    pub(super) passengers: Vec<Passenger>,
    pub(super) payment_history: Vec<Payment>,
    pub(super) created_at: String,
    pub(super) total_baggages: Value,
    pub(super) nonfree_baggages: Value,
    pub(super) insurance: String,
    #[serde(default)]
    pub(super) status: Option<String>,
}

/// A flight that can be bought, as a search shows it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DirectFlight {
    pub(super) flight_number: String,
    pub(super) origin: String,
    pub(super) destination: String,
    pub(super) status: &'static str,
    pub(super) scheduled_departure_time_est: String,
    pub(super) scheduled_arrival_time_est: String,
    pub(super) date: Option<String>,
    #[serde(flatten)]
    pub(super) seats: Seats,
}
