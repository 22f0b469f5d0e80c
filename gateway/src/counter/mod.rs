//! Token and cost counters of an answer, counted while it streams.

mod events;
#[cfg(test)]
mod tests;
mod usage;

use http::StatusCode;
use http::header::{self, HeaderMap};
use serde_json::{Value, json};

use crate::amount::{NanoUsd, Rates};
use crate::dialect::Operation;
use crate::problem::{ANSWER_CUT, Problem};
use events::Events;
use usage::Reported;

/// The bytes of text that tokens have at most on average. English has four to five, source code fewer; only long runs
/// of one character have more.
const BYTES_PER_TOKEN: u64 = 8;

/// The most bytes of a document, or of one event, that are kept to be read.
const MAX_KEPT: usize = 16 << 20;

/// The most that a request can consume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Tokens read: no more than the body has bytes, and what the provider adds.
    pub input: u64,
    /// Tokens written, by all answers together; `None` if neither the request nor a limit bounds them.
    pub output: Option<u64>,
    /// Its cost; `None` if price or output is unknown, which fits no limit in dollars.
    pub cost: Option<NanoUsd>,
}

/// What a request's tokens are counted with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metering {
    pub(crate) operation: Operation,
    pub(crate) bound: Bound,
    /// `None` where the price is unknown.
    pub(crate) rates: Option<Rates>,
    /// Whether the provider's own word on the cost is taken.
    pub(crate) reports_cost: bool,
}

impl Metering {
    /// That of a list of models, which costs nothing.
    pub(crate) const FREE: Self = Self {
        operation: Operation::Models,
        bound: Bound {
            input: 0,
            output: Some(0),
            cost: Some(NanoUsd::ZERO),
        },
        rates: None,
        reports_cost: false,
    };
}

/// What to do with a chunk that was fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Pass it on.
    Pass,
    /// Pass on so many of its first bytes, up to the end of an event, then write the [event](Problem::event) of
    /// [`Counter::problem`] and end both the answer and the provider's stream.
    Stop(usize),
}

/// What a call consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Tokens read.
    pub input: u64,
    /// Tokens written, reasoning included.
    pub output: u64,
    /// Its cost; `None` if the price is unknown.
    pub cost: Option<NanoUsd>,
    /// Whether the provider did not report the tokens, so that they are an upper bound.
    pub is_estimate: bool,
}

/// Counts one answer.
#[derive(Debug)]
pub struct Counter {
    metering: Metering,
    is_success: bool,
    form: Form,
    reported: Reported,
    text_bytes: u64,
    /// The answer came to its end.
    has_ended: bool,
    /// A part of the answer did not read.
    is_unreadable: bool,
}

#[derive(Debug)]
enum Form {
    Events(Events),
    /// One JSON document, as far as it has come.
    Document(Vec<u8>),
    /// Events that were stopped.
    Stopped,
}

impl Counter {
    pub(crate) fn new(metering: Metering, status: StatusCode, headers: &HeaderMap) -> Self {
        let media_type = headers
            .get(header::CONTENT_TYPE)
            .map_or("", |value| value.to_str().unwrap_or(""));
        let mut form = Form::Document(Vec::new());
        if media_type.to_ascii_lowercase().starts_with("text/event-stream") {
            form = Form::Events(Events::default());
        }
        Self {
            metering,
            is_success: status.is_success(),
            form,
            reported: Reported::default(),
            text_bytes: 0,
            has_ended: false,
            is_unreadable: false,
        }
    }

    /// Takes the next bytes of the body as they came over HTTP, without content coding. The count does not depend on
    /// how the body is cut into chunks.
    pub fn feed(&mut self, chunk: &[u8]) -> Flow {
        for (index, &byte) in chunk.iter().enumerate() {
            let event = match &mut self.form {
                Form::Stopped => return Flow::Stop(0),
                Form::Document(body) if body.len() + chunk.len() > MAX_KEPT => {
                    self.is_unreadable = true;
                    return Flow::Pass;
                }
                Form::Document(body) => {
                    body.extend_from_slice(chunk);
                    return Flow::Pass;
                }
                Form::Events(events) if events.len() > MAX_KEPT => {
                    self.is_unreadable = true;
                    std::mem::take(events).push(byte)
                }
                Form::Events(events) => events.push(byte),
            };
            if event.is_some_and(|event| self.read_event(&event)) {
                self.form = Form::Stopped;
                return Flow::Stop(index + 1);
            }
        }
        Flow::Pass
    }

    /// Reads an event; returns whether the answer goes on although it has more tokens than were reserved. Then the
    /// provider does not keep to the maximum that it was told.
    fn read_event(&mut self, data: &[u8]) -> bool {
        match serde_json::from_slice::<Value>(data) {
            Ok(event) => {
                self.reported.read(self.metering.operation, &event);
                self.text_bytes = self.text_bytes.saturating_add(usage::text_bytes(&event));
                self.has_ended |= usage::is_last(&event);
            }
            Err(_) if data == b"[DONE]" => self.has_ended = true,
            Err(_) => self.is_unreadable = true,
        }
        let bound = self.metering.bound.output;
        !self.has_ended && bound.is_some_and(|bound| self.least_output() > bound)
    }

    /// The tokens that were written at least.
    fn least_output(&self) -> u64 {
        self.reported
            .output
            .unwrap_or(0)
            .max(self.text_bytes / BYTES_PER_TOKEN)
    }

    /// Why the answer is ended at [`Flow::Stop`].
    pub fn problem(&self) -> Problem {
        let most = self.metering.bound.output.unwrap_or(0);
        let detail =
            format!("the answer is longer than the {most} tokens reserved for it; ask with a higher maximum");
        Problem::new(ANSWER_CUT, detail).with(json!({ "limit": most }))
    }

    /// The count, when the body has ended or is not read any further.
    ///
    /// Tokens are the provider's own where the answer came to its end and reports them. Else they are an upper bound: of
    /// the input, what was reserved; of the output, the bytes of a whole answer, or what was reserved for one that broke
    /// off, since providers charge for reasoning that they do not show. An answer with a status other than 2xx costs
    /// nothing unless it reports usage.
    pub fn finish(mut self) -> Count {
        match &mut self.form {
            Form::Events(events) => {
                if let Some(data) = events.finish() {
                    self.read_event(&data);
                }
            }
            Form::Document(body) if !self.is_unreadable => {
                if let Ok(document) = serde_json::from_slice(body) {
                    self.reported.read(self.metering.operation, &document);
                    self.text_bytes = body.len() as u64;
                    self.has_ended = true;
                }
            }
            Form::Document(_) | Form::Stopped => {}
        }
        let Metering {
            operation,
            bound,
            rates,
            reports_cost,
        } = self.metering;
        let count = |input, output, cost, is_estimate| Count {
            input,
            output,
            cost,
            is_estimate,
        };
        let Reported {
            input,
            cached,
            output,
            usd,
        } = self.reported;
        if operation == Operation::Models || (!self.is_success && input.is_none()) {
            return count(0, 0, Some(NanoUsd::ZERO), false);
        }
        let written = output.or((!operation.generates()).then_some(0));
        if let (true, Some(input), Some(output)) = (self.has_ended, input, written) {
            let reported = usd.filter(|_| reports_cost).and_then(NanoUsd::from_usd);
            let cost = reported.or_else(|| rates.map(|rates| rates.cost(input, cached, output)));
            return count(input, output, cost, false);
        }
        let is_whole = self.has_ended && !self.is_unreadable;
        let most = match bound.output {
            Some(bound) if is_whole => bound.min(self.text_bytes),
            bound => bound.unwrap_or(self.text_bytes),
        };
        let (input, output) = (input.unwrap_or(bound.input), most.max(self.least_output()));
        let cost = rates.map(|rates| rates.upper_bound(input, output));
        count(input, output, cost, true)
    }
}
