//! Dollars and requests a day, and how two requests that want the last of them are decided.
//!
//! An adapter stores one [`Consumption`] for each member, project and key on each day. In one transaction it reads those
//! that a request counts towards, calls [`reserve`], and writes them back, or adds first and takes back what is refused; in
//! another, after the answer, it does as [`Consumption::settle`]. With serialisable transactions (`BEGIN IMMEDIATE` in
//! SQLite, one Durable Object) the second of two requests sees what the first one reserved.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::amount::NanoUsd;
use crate::problem::{LIMIT_REACHED, Problem};

/// Seconds of a day.
const DAY: u64 = 86_400;

/// What a limit is set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One person.
    Member,
    /// All members of a project together.
    Project,
    /// All that use a key together.
    Key,
}

/// The most that may be used in a day; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Money.
    pub usd_per_day: Option<NanoUsd>,
    /// Requests let through, whatever came of them.
    pub requests_per_day: Option<u64>,
}

/// What was consumed in a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumption {
    /// Paid for.
    pub used: NanoUsd,
    /// Reserved for requests that are under way.
    pub reserved: NanoUsd,
    /// Requests let through.
    pub requests: u64,
}

/// What a request counts towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Whose it is.
    pub scope: Scope,
    /// The most it may consume in a day.
    pub limits: Limits,
    /// What it has consumed on the day in question.
    pub consumption: Consumption,
}

/// What was set aside for one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The day it counts towards, also when the answer ends on the next one.
    pub day: u64,
    /// The upper bound of the request's cost.
    pub amount: NanoUsd,
}

impl Account {
    /// Refuses a request that does not fit.
    fn check(&self, amount: NanoUsd, day: u64) -> Result<(), Problem> {
        let Consumption {
            used,
            reserved,
            requests,
        } = self.consumption;
        let refuse = |quantity: &str, [limit, left, needed]: [Value; 3]| {
            let scope = json!(self.scope);
            let whose = scope.as_str().unwrap_or_default();
            let detail = format!(
                "the {whose} limit of {limit} {quantity} a day has {left} left, {needed} may be needed"
            );
            Err(Problem::new(LIMIT_REACHED, detail).with(json!({
                // OpenAI's code for a spent account, by which clients know that to try again soon is no use.
                "code": "insufficient_quota", "scope": scope, "quantity": quantity, "limit": limit, "left": left,
                "needed": needed, "resets_at": day.saturating_add(1).saturating_mul(DAY),
            })))
        };
        if let Some(most) = self.limits.requests_per_day.filter(|most| requests >= *most) {
            return refuse("requests", [most, 0, 1].map(Value::from));
        }
        if let Some(most) = self.limits.usd_per_day {
            let left = most.minus(used.plus(reserved));
            if amount > left {
                return refuse("usd", [most, left, amount].map(|amount| json!(amount.usd())));
            }
        }
        Ok(())
    }
}

/// Lets a request through that may cost `amount` and sets that aside in every account. `day` is the UTC day, counted from
/// 1970-01-01, whose consumption the accounts hold.
///
/// # Errors
///
/// The first limit that the request does not fit into, `/problems/limit-reached`; then no account has changed.
pub fn reserve(accounts: &mut [Account], amount: NanoUsd, day: u64) -> Result<Reservation, Problem> {
    accounts
        .iter()
        .try_for_each(|account| account.check(amount, day))?;
    for Account { consumption, .. } in accounts {
        consumption.reserved = consumption.reserved.plus(amount);
        consumption.requests = consumption.requests.saturating_add(1);
    }
    Ok(Reservation { day, amount })
}

impl Consumption {
    /// Replaces a reservation by what the request did cost: 0 when it was not sent, more than was reserved when the
    /// provider charges more. `self` is the consumption of the reservation's day. To be called once for each account
    /// and reservation, so an adapter deletes its stored reservation in the same transaction.
    pub fn settle(&mut self, reservation: &Reservation, cost: NanoUsd) {
        self.reserved = self.reserved.minus(reservation.amount);
        self.used = self.used.plus(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(scope: Scope, usd: Option<u64>, requests_per_day: Option<u64>) -> Account {
        let usd_per_day = usd.map(NanoUsd::from);
        let (limits, consumption) = (
            Limits {
                usd_per_day,
                requests_per_day,
            },
            Consumption::default(),
        );
        Account {
            scope,
            limits,
            consumption,
        }
    }

    #[test]
    fn of_two_requests_for_the_last_cent_one_is_let_through() {
        let [cent, some, most] = [10_000_000, 2_000_000, 7_000_000].map(NanoUsd::from);
        let mut accounts = [
            account(Scope::Member, Some(cent.get()), None),
            account(Scope::Key, None, None),
        ];
        let first = reserve(&mut accounts, most, 20_000).unwrap();
        let before = accounts;
        let problem = reserve(&mut accounts, most, 20_000).unwrap_err();
        let expected = json!({
            "type": "/problems/limit-reached", "title": "Limit reached", "status": 429,
            "detail": "the member limit of 0.01 usd a day has 0.003 left, 0.007 may be needed",
            "code": "insufficient_quota", "scope": "member", "quantity": "usd",
            "limit": 0.01, "left": 0.003, "needed": 0.007, "resets_at": 20_001 * 86_400,
        });
        assert_eq!(json!(problem), expected);
        assert_eq!(accounts, before, "a refusal changes nothing");
        accounts[0].consumption.settle(&first, some);
        assert!(reserve(&mut accounts, most, 20_000).is_ok());
    }

    #[test]
    fn requests_are_limited_and_free_ones_fit_into_a_limit_that_is_overdrawn() {
        let mut accounts = [
            account(Scope::Project, Some(5), Some(9)),
            account(Scope::Key, None, Some(1)),
        ];
        accounts[0].consumption.used = NanoUsd::from(6);
        let limit = |refused: Result<_, Problem>| refused.unwrap_err().members["limit"].clone();
        assert_eq!(limit(reserve(&mut accounts, NanoUsd::from(1), 0)), json!(5e-9));
        reserve(&mut accounts, NanoUsd::ZERO, 0).unwrap();
        assert_eq!(limit(reserve(&mut accounts, NanoUsd::ZERO, 0)), json!(1));
        let mut whole = [account(Scope::Key, Some(5), None)];
        assert!(
            reserve(&mut whole, NanoUsd::from(5), 0).is_ok(),
            "to the last of it"
        );
    }

    #[cfg(not(target_arch = "wasm32"))]
    proptest::proptest! {
        /// Requests of two members of one project begin and end in any order and never cost more than reserved.
        #[test]
        fn no_limit_is_exceeded_in_any_order(
            limits in proptest::array::uniform3(0_u64..200),
            steps in proptest::collection::vec((proptest::bool::ANY, 0_usize..2, 0_u64..60, 0_u64..=100), 1..80),
        ) {
            let scopes = [Scope::Member, Scope::Member, Scope::Project];
            let mut accounts = [0, 1, 2].map(|i| account(scopes[i], Some(limits[i]), Some(limits[i] / 4)));
            let mut open: Vec<(usize, Reservation)> = Vec::new();
            let (mut paid, mut allowed) = ([0; 3], [0; 3]);
            for (begins, member, amount, percent) in steps {
                if begins {
                    let mut of_request = [accounts[member], accounts[2]];
                    if let Ok(reservation) = reserve(&mut of_request, NanoUsd::from(amount), 0) {
                        [accounts[member], accounts[2]] = of_request;
                        allowed[member] += 1;
                        allowed[2] += 1;
                        open.push((member, reservation));
                    }
                } else if !open.is_empty() {
                    let (member, reservation) = open.swap_remove(amount as usize % open.len());
                    let cost = reservation.amount.get() * percent / 100;
                    for i in [member, 2] {
                        accounts[i].consumption.settle(&reservation, NanoUsd::from(cost));
                        paid[i] += cost;
                    }
                }
                for (i, Account { consumption, .. }) in accounts.iter().enumerate() {
                    let under_way = open.iter().filter(|(member, _)| i == 2 || *member == i);
                    let reserved: u64 = under_way.map(|(_, reservation)| reservation.amount.get()).sum();
                    let counted = (consumption.used.get(), consumption.reserved.get(), consumption.requests);
                    proptest::prop_assert_eq!(counted, (paid[i], reserved, allowed[i]));
                    proptest::prop_assert!(paid[i] + reserved <= limits[i] && allowed[i] <= limits[i] / 4);
                }
            }
        }

        #[test]
        fn no_amount_leaves_its_range(amounts in proptest::array::uniform4(proptest::num::u64::ANY)) {
            let [used, reserved, amount, cost] = amounts.map(NanoUsd::from);
            let mut consumption = Consumption { used, reserved, requests: u64::MAX };
            consumption.settle(&Reservation { day: 0, amount }, cost);
            proptest::prop_assert!(consumption.used <= NanoUsd::MAX && consumption.used >= used);
            proptest::prop_assert!(consumption.reserved <= reserved);
        }
    }
}
