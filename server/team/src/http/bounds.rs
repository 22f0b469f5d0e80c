//! Rate limits and concurrency limits: requests a second of a caller and of an address, requests under way, watchers.
//! Nobody holds all places: an address half of them, a member a quarter.

use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use capo_gateway::{CALLS_OF_MEMBER, Rates};

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

/// The bounds of a server.
#[derive(Debug)]
pub(super) struct Bounds {
    rates: Option<Mutex<Rates>>,
    /// Since when rates are counted.
    since: Instant,
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
            rates: rate.map(|rate| Mutex::new(Rates::new(rate))),
            since: Instant::now(),
            under_way: Places::new(UNDER_WAY, UNDER_WAY / 2),
            calls: Places::new(CALLS, CALLS / 2),
            of_members: Places::new(UNDER_WAY, UNDER_WAY / 4),
            calls_of_members: Places::new(CALLS, CALLS_OF_MEMBER),
            watchers: Places::new(WATCHERS, WATCHERS / 4),
            uploads_of_members: Places::new(UNDER_WAY, UPLOADS / 2),
        }
    }

    /// Counts a request, see [`Rates::count`].
    fn count(&self, network: &str, caller: Option<&str>) -> Result<(), Refusal> {
        let Some(rates) = &self.rates else {
            return Ok(());
        };
        // Nothing panics while it has them.
        let mut rates = rates.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = rates.count(network, caller, self.since.elapsed());
        counted.map_err(Refusal::too_fast)
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
    let caller = (!is_call).then(|| {
        let presented = credential(&parts.headers, &server);
        presented.map_or_else(|| network.clone(), |secret| secret.hash())
    });
    let counted = bounds.count(&network, caller.as_deref());
    let places = if is_call { &bounds.calls } else { &bounds.under_way };
    match counted.and_then(|()| places.take(&network).ok_or_else(Refusal::busy)) {
        Ok(_place) => next.run(Request::from_parts(parts, body)).await,
        Err(refusal) => refusal.into_response(),
    }
}
