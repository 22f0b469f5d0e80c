//! An airline's reservations. The time is fixed.

mod model;
mod tools;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use smol_str::SmolStr;

use self::model::{Flight, Reservation, User};
use super::changes::Changes;
use super::environment::World;
use super::python;
use super::table::Table;
use super::tool::Tool;

/// When everything happens.
const NOW: &str = "2024-05-15T15:00:00";

/// The airline's records.
#[derive(Debug, Clone)]
pub struct Airline {
    flights: Table<Flight>,
    reservations: Table<Reservation>,
    users: Table<User>,
    routes: Arc<Routes>,
}

/// Destination and number of the flights from an origin, or of all, in order. No tool adds or diverts one.
type Routes = HashMap<Option<SmolStr>, Vec<(SmolStr, SmolStr)>>;

impl Airline {
    /// Reads `db.json`.
    ///
    /// # Errors
    /// What does not read.
    pub fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Records {
            flights: Table<Flight>,
            reservations: Table<Reservation>,
            users: Table<User>,
        }
        let records: Records = serde_json::from_slice(json)?;
        let mut routes = Routes::new();
        for (number, flight) in records.flights.iter() {
            for origin in [Some(flight.origin.clone()), None] {
                let route = (flight.destination.clone(), number.clone());
                routes.entry(origin).or_default().push(route);
            }
        }
        Ok(Self {
            flights: records.flights,
            reservations: records.reservations,
            users: records.users,
            routes: Arc::new(routes),
        })
    }

    /// The records as `db.json` holds them.
    #[cfg(test)]
    pub(super) fn records(&self) -> serde_json::Value {
        serde_json::json!({
            "flights": self.flights,
            "reservations": self.reservations,
            "users": self.users,
        })
    }
}

impl World for Airline {
    const NAME: &'static str = "airline";

    fn agent_tools() -> &'static [Tool<Self>] {
        tools::ALL
    }

    fn agent_hash(&self) -> String {
        let mut pieces: Vec<Cow<str>> = vec!["{\"flights\": ".into()];
        self.flights.write(&mut pieces);
        pieces.push(", \"reservations\": ".into());
        self.reservations.write(&mut pieces);
        pieces.push(", \"users\": ".into());
        self.users.write(&mut pieces);
        pieces.push("}".into());
        python::sha256(pieces.iter().map(Cow::as_ref))
    }

    fn equals(&self, other: &Self) -> bool {
        self.flights.equals(&other.flights)
            && self.reservations.equals(&other.reservations)
            && self.users.equals(&other.users)
    }

    fn changes_since(&self, began: &Self, changes: &mut Changes) {
        self.flights.changes_since(&began.flights, "flights", changes);
        self.reservations
            .changes_since(&began.reservations, "reservations", changes);
        self.users.changes_since(&began.users, "users", changes);
    }
}
