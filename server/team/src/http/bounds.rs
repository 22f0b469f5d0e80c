//! How much may be asked at a time: requests a second of a caller and of an address, requests under way, watchers. Nobody
//! holds all places: an address half of them, a member a quarter.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::caller::{Visitor, credential};
use super::problem::Refusal;
use super::{Server, UPLOADS};
use crate::places::{Place, Places};

/// Requests that are answered at a time.
const UNDER_WAY: usize = 512;

/// Calls to models that wait for the first word of an answer at a time: each holds what it sends.
const CALLS: usize = 1024;

/// Streams of events at a time.
pub(super) const WATCHERS: usize = 2000;

/// For how many seconds' worth a caller may ask at once.
const BURST: NonZeroU32 = NonZeroU32::new(4).expect("it is not 0");

/// How many callers' worth may come from one address: a team often shares one.
const CALLERS: NonZeroU32 = NonZeroU32::new(4).expect("it is not 0");

/// How many callers' worth of calls to models may: a search in a browser makes many at a time.
const CALLS_OF_ADDRESS: NonZeroU32 = NonZeroU32::new(16).expect("it is not 0");

/// Requests after which those who have not asked for a while are forgotten.
const SWEEP: u32 = 4096;

/// The bounds of a server.
#[derive(Debug)]
pub(super) struct Bounds {
    rates: Option<Rates>,
    /// By network.
    under_way: Places,
    calls: Places,
    /// By member.
    of_members: Places,
    calls_of_members: Places,
    watchers: Places,
    uploads_of_members: Places,
}

impl Bounds {
    /// With so many requests a second of each caller; without a bound on these where there is none.
    pub(super) fn new(rate: Option<NonZeroU32>) -> Self {
        Self {
            rates: rate.map(Rates::new),
            under_way: Places::new(UNDER_WAY, UNDER_WAY / 2),
            calls: Places::new(CALLS, CALLS / 2),
            of_members: Places::new(UNDER_WAY, UNDER_WAY / 4),
            calls_of_members: Places::new(CALLS, CALLS / 4),
            watchers: Places::new(WATCHERS, WATCHERS / 4),
            uploads_of_members: Places::new(UNDER_WAY, UPLOADS / 2),
        }
    }

    /// A place for a member whose request is under way, for as long as it is held.
    pub(super) fn attend(&self, member: &str) -> Result<Place, Refusal> {
        self.of_members.take(member).ok_or_else(Refusal::busy)
    }

    /// The same for a call to a model.
    pub(super) fn call(&self, member: &str) -> Result<Place, Refusal> {
        self.calls_of_members.take(member).ok_or_else(Refusal::busy)
    }

    /// The same for something large that they send, or are sent: under way or waiting for its turn.
    pub(super) fn upload(&self, member: &str) -> Result<Place, Refusal> {
        self.uploads_of_members.take(member).ok_or_else(Refusal::busy)
    }

    /// A member's place among the watchers.
    pub(super) fn watch(&self, member: &str) -> Result<Place, Refusal> {
        self.watchers.take(member).ok_or_else(Refusal::busy)
    }

    /// How many watch.
    pub(super) fn watching(&self) -> usize {
        self.watchers.taken()
    }
}

#[derive(Debug)]
struct Rates {
    /// By the hash of what they sign in with, else by the network that they ask from.
    callers: DefaultKeyedRateLimiter<String>,
    /// By network.
    addresses: DefaultKeyedRateLimiter<String>,
    /// Calls to models, by network.
    calls: DefaultKeyedRateLimiter<String>,
    counted: AtomicU32,
}

impl Rates {
    fn new(rate: NonZeroU32) -> Self {
        let quota = |times: NonZeroU32| {
            let rate = rate.saturating_mul(times);
            RateLimiter::keyed(Quota::per_second(rate).allow_burst(rate.saturating_mul(BURST)))
        };
        Self {
            callers: quota(NonZeroU32::MIN),
            addresses: quota(CALLERS),
            calls: quota(CALLS_OF_ADDRESS),
            counted: AtomicU32::new(0),
        }
    }

    /// Counts a request of a caller, or without one a call to a model. Whoever makes credentials up is counted by address.
    fn count(&self, network: &String, caller: Option<&String>) -> Result<(), Refusal> {
        if self.counted.fetch_add(1, Relaxed) % SWEEP == SWEEP - 1 {
            for limiter in [&self.callers, &self.addresses, &self.calls] {
                limiter.retain_recent();
            }
        }
        let counted = match caller {
            // What is refused to one caller is not counted to those who share the address.
            Some(caller) => self
                .callers
                .check_key(caller)
                .and_then(|()| self.addresses.check_key(network)),
            None => self.calls.check_key(network),
        };
        counted.map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            Refusal::too_fast(whole_seconds(wait))
        })
    }
}

/// Seconds, rounded up, and 1 at least.
fn whole_seconds(wait: Duration) -> u64 {
    let more = u64::from(wait.subsec_nanos() > 0);
    (wait.as_secs() + more).max(1)
}

/// Refuses what goes beyond the bounds. Calls to models are counted apart, by address alone: what they may cost has limits
/// of its own.
pub(super) async fn bounded(State(server): State<Server>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path != "/api" && !path.starts_with("/api/") {
        return next.run(request).await;
    }
    let is_call = ["/api/proxy/", "/api/models/"]
        .iter()
        .any(|below| path.starts_with(below));
    let (parts, body) = request.into_parts();
    let bounds = &server.0.bounds;
    let network = Visitor::of(&parts, &server).network();
    let counted = bounds.rates.as_ref().map_or(Ok(()), |rates| {
        let caller = (!is_call).then(|| {
            let presented = credential(&parts.headers, &server);
            presented.map_or_else(|| network.clone(), |secret| secret.hash())
        });
        rates.count(&network, caller.as_ref())
    });
    let places = if is_call { &bounds.calls } else { &bounds.under_way };
    match counted.and_then(|()| places.take(&network).ok_or_else(Refusal::busy)) {
        Ok(_place) => next.run(Request::from_parts(parts, body)).await,
        Err(refusal) => refusal.into_response(),
    }
}
