//! Whether a request may be sent to the provider, and as what.

use std::sync::Arc;

use capo_models::Secret;
use capo_models::prices::PriceTable;
use http::header::{self, HeaderMap, InvalidHeaderValue};
use http::{Method, StatusCode};
use serde_json::json;

use crate::amount::NanoUsd;
use crate::body::{Body, DEFAULT_MAX_OUTPUT};
use crate::counter::{Bound, Counter, Metering};
use crate::dialect::Operation;
use crate::headers::{credential, request_headers};
use crate::key::SharedKey;
use crate::limits::Limits;
use crate::problem::{
    BODY_TOO_LARGE, MODEL_NOT_ALLOWED, NO_SUCH_KEY, NOT_SIGNED_IN, ORIGIN_NOT_ALLOWED, PRICE_UNKNOWN,
    Problem, ROLE_NOT_ALLOWED, UNSUPPORTED_MEDIA_TYPE, excerpt,
};

/// The most bytes of a request's body unless an adapter says otherwise.
pub const DEFAULT_MAX_BODY: usize = 1 << 20;

/// Tokens that a provider may add to an input: its frame around messages, and what it tells a model about tools
/// (Anthropic documents up to 700).
const ADDED_INPUT: u64 = 1024;

/// Who asks, as the adapter knows it from a session or a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The id of the project for which the member asks.
    pub project: String,
    /// Whether the member's role in it is one that runs models.
    pub may_run: bool,
}

/// A request to the proxy.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Its method.
    pub method: &'a Method,
    /// The second part of [`split_path`](crate::split_path).
    pub path: &'a str,
    /// Its query, without the question mark.
    pub query: Option<&'a str>,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its whole body. An adapter need not read more than one byte beyond [`Gateway::max_body`].
    pub body: &'a [u8],
}

/// What holds for all keys.
#[derive(Debug, Clone)]
pub struct Gateway {
    /// The adapter's own origin and the others whose pages may send requests, as browsers write them:
    /// `https://capo.example:8443`, in lower case and without a port that the scheme implies.
    pub origins: Vec<String>,
    /// What tokens cost unless a key's rule says so.
    pub prices: Arc<PriceTable>,
    /// The most bytes of a request's body.
    pub max_body: usize,
}

/// What is sent to the provider. The key is missing until [`authenticate`](Self::authenticate).
#[derive(Debug, Clone)]
pub struct UpstreamRequest {
    /// The method.
    pub method: Method,
    /// The whole URL.
    pub url: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, empty for none.
    pub body: Vec<u8>,
    /// The model that is asked, empty for none.
    pub model: String,
    metering: Metering,
    key: SharedKey,
}

impl Gateway {
    /// Decides whether a request may be sent with a key, `None` standing for a caller that is not signed in and a key
    /// that does not exist. `limits` are all those that the request counts towards; whether enough is left of them is
    /// decided by [`reserve`](crate::reserve), with the [amount](UpstreamRequest::amount) of the result.
    ///
    /// # Errors
    ///
    /// Why it is refused: 401 without a caller; 403 for its origin, its role, its model, and a model without a price
    /// under a limit in dollars; 404 for its key and path; 405, 413 and 415 for its method and the size and type of its
    /// body; 422 for its query and what its body says.
    pub fn check(
        &self,
        caller: Option<&Caller>,
        key: Option<&SharedKey>,
        limits: &[Limits],
        request: &Request<'_>,
    ) -> Result<UpstreamRequest, Problem> {
        let refuse = |kind, detail: &str| Err(Problem::new(kind, detail));
        // Browsers say where a page comes from; what says nothing is a program, which needs a token anyway.
        let mut origins = request.headers.get_all(header::ORIGIN).iter();
        if !origins.all(|origin| self.origins.iter().any(|known| origin == known)) {
            return refuse(ORIGIN_NOT_ALLOWED, "pages of this origin may ask nothing");
        }
        let Some(caller) = caller else {
            return refuse(NOT_SIGNED_IN, "sign in, or send a token");
        };
        if !caller.may_run {
            return refuse(ROLE_NOT_ALLOWED, "your role in this project does not run models");
        }
        // Whether there is such a key for another project is not said.
        let Some(key) = key.filter(|key| key.is_shared_with(&caller.project)) else {
            return refuse(NO_SUCH_KEY, "no such key is shared with this project");
        };
        let route = key.dialect().route(request.method, request.path)?;
        route.operation.check_query(request.query)?;
        let (body, model, metering) = if route.operation == Operation::Models {
            (Vec::new(), String::new(), Metering::FREE)
        } else {
            self.check_body(request)?;
            self.meter(Body::read(request.body, &route)?, key, limits)?
        };
        let query = request.query.map(|query| format!("?{query}")).unwrap_or_default();
        Ok(UpstreamRequest {
            method: request.method.clone(),
            url: format!("{}{}{query}", key.root(), route.path),
            headers: request_headers(request.headers),
            body,
            model,
            metering,
            key: key.clone(),
        })
    }

    fn check_body(&self, request: &Request<'_>) -> Result<(), Problem> {
        let media_type = request.headers.get(header::CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok()?.split(';').next());
        if !media_type.is_some_and(|name| name.trim().eq_ignore_ascii_case("application/json")) {
            let detail = "the body must be sent as application/json";
            return Err(Problem::new(UNSUPPORTED_MEDIA_TYPE, detail));
        }
        if request.body.len() > self.max_body {
            let detail = format!("the body may have at most {} bytes", self.max_body);
            return Err(Problem::new(BODY_TOO_LARGE, detail).with(json!({ "limit": self.max_body })));
        }
        Ok(())
    }

    /// The body to send, its model, and the most that it can cost.
    fn meter(
        &self,
        mut body: Body,
        key: &SharedKey,
        limits: &[Limits],
    ) -> Result<(Vec<u8>, String, Metering), Problem> {
        let (operation, model) = (body.operation, body.model.clone());
        let refuse = |kind, said: &str| {
            Err(Problem::new(
                kind,
                format!("{said} the model {}", excerpt(&model)),
            ))
        };
        let Some(rule) = key.rule(&model) else {
            return refuse(MODEL_NOT_ALLOWED, "this key is not for");
        };
        let rates = key.rates(rule, &model, &self.prices);
        let is_limited = limits.iter().any(|limits| limits.usd_per_day.is_some());
        if is_limited && rates.is_none() {
            return refuse(
                PRICE_UNKNOWN,
                "a limit in dollars applies, and no price is known of",
            );
        }
        let provider = key.record().provider.get();
        let default = is_limited.then(|| rule.default_max_output.unwrap_or(DEFAULT_MAX_OUTPUT));
        let output = body.bound_output(provider, default)?;
        let bytes = body.into_bytes(provider);
        let input = (bytes.len() as u64).saturating_add(ADDED_INPUT);
        let cost = rates
            .zip(output)
            .map(|(rates, output)| rates.upper_bound(input, output));
        let metering = Metering {
            operation,
            bound: Bound { input, output, cost },
            rates,
            reports_cost: provider.reports_cost && rule.price.is_none(),
        };
        Ok((bytes, model, metering))
    }
}

impl UpstreamRequest {
    /// The most that the request can consume.
    pub fn bound(&self) -> Bound {
        self.metering.bound
    }

    /// What is to be reserved: the upper bound of the cost; 0 if it is unknown, as it only is without limits in dollars.
    pub fn amount(&self) -> NanoUsd {
        self.metering.bound.cost.unwrap_or_default()
    }

    /// What is asked of the model, as OpenTelemetry's conventions for generative AI name it; `None` where no model is.
    pub fn operation(&self) -> Option<&'static str> {
        self.metering.operation.well_known()
    }

    /// Adds the provider's key.
    ///
    /// # Errors
    /// When the key holds characters that no header can.
    pub fn authenticate(&mut self, key: &Secret) -> Result<(), InvalidHeaderValue> {
        let (name, value) = credential(self.key.dialect(), key)?;
        self.headers.insert(name, value);
        Ok(())
    }

    /// Counts the answer, which begins with this status and these headers.
    pub fn counter(&self, status: StatusCode, headers: &HeaderMap) -> Counter {
        Counter::new(self.metering, status, headers)
    }
}
