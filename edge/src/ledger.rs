//! The ledger of what members, projects and keys have used, and of what is set aside for requests under way: one
//! Durable Object, in which one thing happens at a time, so that of two requests for the last cent the second sees what
//! the first one took. It has how many of them may be under way, too, and how many runs; another of its kind counts the
//! requests for which nothing is set aside.

use std::cell::RefCell;
use std::time::Duration;

use capo_api::Problem;
use capo_gateway::{
    Account, CALLS_OF_MEMBER, Consumption, Limits, NanoUsd, Rates, Reservation, Scope, reserve,
};
use serde::{Deserialize, Serialize};
// The macro names it.
use worker::wasm_bindgen;
use worker::{
    Delay, DurableObject, Env, ObjectNamespace, Request, Response, SqlStorage, SqlStorageValue, State,
    console_error, durable_object,
};

use crate::configuration::Configuration;
use crate::object;
use crate::places::{self, Ready};
use crate::refusal::Refusal;
use crate::runtime::{Count, now, number};

pub(crate) const MILLISECONDS_OF_A_DAY: u64 = 86_400_000;

/// After so many milliseconds what is set aside counts in full: whoever would have settled it has been ended.
const FORGOTTEN: u64 = 3_600_000;

/// How long a call may take in all.
pub(crate) const WHOLE: Duration = Duration::from_mins(15);

/// For so many days it is known what was used.
const KEPT: u64 = 366;

/// What a request counts towards: a scope, and the name in it.
pub(crate) type Subject = (Scope, String);

/// Made when the object is first asked. Identifiers of reservations are not used again: one that is settled late, after it
/// was forgotten, is settled once.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS consumption (
    scope TEXT NOT NULL, subject TEXT NOT NULL, day INTEGER NOT NULL,
    used INTEGER NOT NULL, reserved INTEGER NOT NULL, requests INTEGER NOT NULL,
    PRIMARY KEY (scope, subject, day)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reservation (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, reservation TEXT NOT NULL, subjects TEXT NOT NULL
);";

/// Made after all tables, and once: objects of earlier versions have these without it.
const MEMBER: &str = "
ALTER TABLE reservation ADD COLUMN member TEXT;
UPDATE reservation SET member = json_extract(subjects, '$[0][1]');
CREATE INDEX reservation_of_member ON reservation (member, at);";

/// What the object is told.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// To set an amount aside in each account, of which the first is the member's, for a call from a network or of a run;
    /// answered by the reservation's id, or a problem.
    Reserve(Vec<(Subject, Limits)>, NanoUsd, Option<String>),
    /// To replace a reservation by what the request did cost.
    Settle(u64, NanoUsd),
    /// To say what was used in so many days, this one included.
    Used(u64),
    /// To count a request from a network, of a caller or to a model.
    Count(String, Option<String>),
    /// To say whether a run may go on.
    Place(Ready),
    /// To give a run's place to others.
    Leave(String),
}

/// What was used on a day.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Used {
    pub(crate) scope: Scope,
    pub(crate) subject: String,
    pub(crate) day: u64,
    #[serde(flatten)]
    pub(crate) consumption: Consumption,
}

/// How often it is tried again to settle what a request did cost, and the first pause before that.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// The object, as the worker asks it.
#[derive(Debug)]
pub(crate) struct Ledger(ObjectNamespace);

impl Ledger {
    pub(crate) fn of(env: &Env) -> worker::Result<Self> {
        Ok(Self(env.durable_object("ACCOUNTS")?))
    }

    /// Asks the object by a way of its own each time: one that has failed once fails from then on.
    async fn ask(&self, order: &Order) -> worker::Result<Response> {
        // One for all, because a request counts towards a member, a project and a key at once.
        object::ask(&self.0.get_by_name("all")?, order).await
    }

    /// Counts a request from a network: of a caller, or without one to a model.
    ///
    /// # Errors
    /// When too many come.
    pub(crate) async fn count(
        env: &Env,
        configuration: &Configuration,
        network: String,
        caller: Option<String>,
    ) -> Result<(), Refusal> {
        if configuration.rate.is_none() {
            return Ok(());
        }
        // An object of its own: whoever floods it is in nobody's way to a model.
        let object = Self::of(env)?.0.get_by_name("rates")?;
        match object::ask(&object, &Order::Count(network, caller)).await {
            Ok(answer) if answer.status_code() == 200 => Ok(()),
            Ok(answer) => Err(Refusal::written(answer).await),
            Err(error) => {
                console_error!("a request could not be counted: {error}");
                Ok(())
            }
        }
    }

    /// Sets an amount aside for a call from a network, or of a run, and returns what it is settled by.
    ///
    /// # Errors
    /// The first limit that it does not fit into, or that too many calls come, or are under way.
    pub(crate) async fn reserve(
        &self,
        accounts: Vec<(Subject, Limits)>,
        amount: NanoUsd,
        network: Option<String>,
    ) -> Result<u64, Refusal> {
        let mut answer = self.ask(&Order::Reserve(accounts, amount, network)).await?;
        match answer.status_code() {
            200 => Ok(answer.json().await?),
            _ => Err(Refusal::written(answer).await),
        }
    }

    /// Replaces what was set aside by what the request did cost; what is settled twice is settled once.
    pub(crate) async fn settle(&self, reservation: u64, cost: NanoUsd) -> worker::Result<()> {
        let mut tries = 0;
        while let Err(error) = self.ask(&Order::Settle(reservation, cost)).await {
            tries += 1;
            if tries > TRIES {
                return Err(error);
            }
            Delay::from(PAUSE * tries).await;
        }
        Ok(())
    }

    /// What was used in so many days, this one included.
    pub(crate) async fn used_in(&self, days: u64) -> worker::Result<Vec<Used>> {
        self.ask(&Order::Used(days)).await?.json().await
    }

    /// Whether a run may go on beside the others of its member.
    pub(crate) async fn place(&self, ready: Ready) -> worker::Result<bool> {
        self.ask(&Order::Place(ready)).await?.json().await
    }

    /// Gives a run's place to others.
    pub(crate) async fn leave(&self, run: String) -> worker::Result<()> {
        self.ask(&Order::Leave(run)).await.map(|_| ())
    }
}

/// The object itself.
#[durable_object(alarm)]
pub struct Accounts {
    state: State,
    /// In memory alone: before an object that nobody asks is ended, they allow a burst again.
    rates: RefCell<Option<Rates>>,
}

impl DurableObject for Accounts {
    fn new(state: State, env: Env) -> Self {
        // While something is configured wrongly, nobody gets here.
        let rate = Configuration::read(&env).ok().and_then(|read| read.rate);
        Self {
            state,
            rates: RefCell::new(rate.map(Rates::new)),
        }
    }

    async fn fetch(&self, mut request: Request) -> worker::Result<Response> {
        let order: Order = object::order(&mut request).await?;
        let storage = self.state.storage();
        // One that only counts requests keeps nothing.
        let tables = || Tables::open(storage.sql());
        // No wait in between: what an order writes is written at once, and seen by the next.
        match order {
            Order::Reserve(accounts, amount, network) => {
                let now = now();
                if let Some(network) = &network
                    && let Err(problem) = self.count(network, None)
                {
                    return Refusal::from(problem).into_response();
                }
                let tables = tables()?;
                if network.is_some() && tables.under_way(&accounts, now)? >= CALLS_OF_MEMBER as u64 {
                    return Refusal::from(Problem::busy()).into_response();
                }
                let reservation = match tables.reserve(accounts, amount, now)? {
                    Ok(reservation) => reservation,
                    Err(problem) => return Refusal::from(problem).into_response(),
                };
                if storage.get_alarm().await?.is_none() {
                    storage.set_alarm(Duration::from_millis(FORGOTTEN)).await?;
                }
                Response::from_json(&reservation)
            }
            Order::Settle(reservation, cost) => {
                tables()?.settle(reservation, Some(cost))?;
                Response::empty()
            }
            Order::Used(days) => Response::from_json(&tables()?.used_in(days, now())?),
            Order::Count(network, caller) => match self.count(&network, caller.as_deref()) {
                Ok(()) => Response::empty(),
                Err(problem) => Refusal::from(problem).into_response(),
            },
            Order::Place(ready) => Response::from_json(&places::take(&tables()?.0, &ready, now())?),
            Order::Leave(run) => {
                places::leave(&tables()?.0, &run)?;
                Response::empty()
            }
        }
    }

    /// Settles what was forgotten.
    async fn alarm(&self) -> worker::Result<Response> {
        let (storage, now) = (self.state.storage(), now());
        if let Some(earliest) = Tables::open(storage.sql())?.tidy(now)? {
            let wait = (earliest + FORGOTTEN).saturating_sub(now);
            storage.set_alarm(Duration::from_millis(wait)).await?;
        }
        Response::empty()
    }
}

impl Accounts {
    /// Counts a request, see [`Rates::count`].
    fn count(&self, network: &str, caller: Option<&str>) -> Result<(), Problem> {
        let now = Duration::from_millis(now());
        let mut rates = self.rates.borrow_mut();
        let counted = rates
            .as_mut()
            .map_or(Ok(()), |rates| rates.count(network, caller, now));
        counted.map_err(Problem::too_fast)
    }
}

/// The object's tables.
struct Tables(SqlStorage);

/// A row of `reservation`.
#[derive(Deserialize)]
struct Row {
    reservation: String,
    subjects: String,
}

#[derive(Deserialize)]
struct Id {
    id: u64,
}

#[derive(Deserialize)]
struct Earliest {
    at: Option<u64>,
}

impl Tables {
    fn open(sql: SqlStorage) -> worker::Result<Self> {
        let made = "SELECT count(*) AS count FROM sqlite_master WHERE name = 'reservation_of_member'";
        if sql.exec(made, None)?.one::<Count>()?.count == 0 {
            for made in [TABLES, places::TABLE, MEMBER] {
                sql.exec(made, None)?;
            }
        }
        Ok(Self(sql))
    }

    /// How many calls of a member are under way, by their account; those that nobody settles do not count for long.
    fn under_way(&self, accounts: &[(Subject, Limits)], now: u64) -> worker::Result<u64> {
        let since = now.saturating_sub(WHOLE.as_millis() as u64);
        let member = accounts.first().map(|((_, name), _)| name.as_str());
        let select = "SELECT count(*) AS count FROM reservation WHERE member = ? AND at > ?";
        let Count { count } = self.0.exec(select, vec![member.into(), number(since)])?.one()?;
        Ok(count)
    }

    fn reserve(
        &self,
        subjects: Vec<(Subject, Limits)>,
        amount: NanoUsd,
        now: u64,
    ) -> worker::Result<Result<u64, capo_gateway::Problem>> {
        let day = now / MILLISECONDS_OF_A_DAY;
        let (subjects, limits): (Vec<Subject>, Vec<Limits>) = subjects.into_iter().unzip();
        let mut accounts = Vec::new();
        for (subject, limits) in subjects.iter().zip(limits) {
            accounts.push(Account {
                scope: subject.0,
                limits,
                consumption: self.consumption(subject, day)?,
            });
        }
        let reservation = match reserve(&mut accounts, amount, day) {
            Ok(reservation) => reservation,
            Err(problem) => return Ok(Err(problem)),
        };
        for (subject, account) in subjects.iter().zip(accounts) {
            self.write(subject, day, account.consumption)?;
        }
        let kept = vec![
            number(now),
            serde_json::to_string(&reservation)?.into(),
            serde_json::to_string(&subjects)?.into(),
            subjects.first().map(|(_, name)| name.as_str()).into(),
        ];
        let insert =
            "INSERT INTO reservation (at, reservation, subjects, member) VALUES (?, ?, ?, ?) RETURNING id";
        let Id { id } = self.0.exec(insert, kept)?.one()?;
        Ok(Ok(id))
    }

    /// Settles a reservation that is there still, at what the request did cost, or in full where nobody knows.
    fn settle(&self, id: u64, cost: Option<NanoUsd>) -> worker::Result<()> {
        let delete = "DELETE FROM reservation WHERE id = ? RETURNING reservation, subjects";
        for kept in self.0.exec(delete, vec![number(id)])?.to_array::<Row>()? {
            let reservation: Reservation = serde_json::from_str(&kept.reservation)?;
            let subjects: Vec<Subject> = serde_json::from_str(&kept.subjects)?;
            for subject in &subjects {
                let mut consumption = self.consumption(subject, reservation.day)?;
                consumption.settle(&reservation, cost.unwrap_or(reservation.amount));
                self.write(subject, reservation.day, consumption)?;
            }
        }
        Ok(())
    }

    /// Settles what was forgotten, deletes what is too old to be shown, and says when the earliest of what is left was set
    /// aside.
    fn tidy(&self, now: u64) -> worker::Result<Option<u64>> {
        let forgotten = "SELECT id FROM reservation WHERE at <= ?";
        let before = vec![number(now.saturating_sub(FORGOTTEN))];
        for Id { id } in self.0.exec(forgotten, before)?.to_array()? {
            self.settle(id, None)?;
        }
        let oldest = (now / MILLISECONDS_OF_A_DAY).saturating_sub(KEPT);
        self.0
            .exec("DELETE FROM consumption WHERE day < ?", vec![number(oldest)])?;
        let earliest: Earliest = self
            .0
            .exec("SELECT min(at) AS at FROM reservation", None)?
            .one()?;
        Ok(earliest.at)
    }

    fn used_in(&self, days: u64, now: u64) -> worker::Result<Vec<Used>> {
        let first = (now / MILLISECONDS_OF_A_DAY + 1).saturating_sub(days);
        let select = "SELECT * FROM consumption WHERE day >= ? ORDER BY day, scope, subject";
        self.0.exec(select, vec![number(first)])?.to_array()
    }

    fn consumption(&self, (scope, subject): &Subject, day: u64) -> worker::Result<Consumption> {
        let select =
            "SELECT used, reserved, requests FROM consumption WHERE scope = ? AND subject = ? AND day = ?";
        let key = vec![word(*scope)?, subject.as_str().into(), number(day)];
        let found: Vec<Consumption> = self.0.exec(select, key)?.to_array()?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    fn write(&self, (scope, subject): &Subject, day: u64, consumption: Consumption) -> worker::Result<()> {
        let Consumption {
            used,
            reserved,
            requests,
        } = consumption;
        let row = vec![
            word(*scope)?,
            subject.as_str().into(),
            number(day),
            number(used.get()),
            number(reserved.get()),
            number(requests),
        ];
        self.0
            .exec(
                "INSERT OR REPLACE INTO consumption VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
            .map(|_| ())
    }
}

/// A scope as it is written in JSON.
fn word(scope: Scope) -> worker::Result<SqlStorageValue> {
    let word = serde_json::to_value(scope)?;
    Ok(word.as_str().unwrap_or_default().into())
}
