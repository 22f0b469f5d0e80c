//! An airline's reservations. The time is fixed.

mod model;
mod tools;

use std::borrow::Cow;

use indexmap::IndexMap;
use serde::Deserialize;

use self::model::{Flight, Reservation, User};
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
}

impl Airline {
    /// Reads `db.json`.
    ///
    /// # Errors
    /// What does not read.
    pub fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Records {
            flights: IndexMap<String, Flight>,
            reservations: IndexMap<String, Reservation>,
            users: IndexMap<String, User>,
        }
        let records: Records = serde_json::from_slice(json)?;
        Ok(Self {
            flights: Table::new(records.flights),
            reservations: Table::new(records.reservations),
            users: Table::new(records.users),
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
}
