//! Requests and what must come of them, for the tests of every adapter: the same table, the same answers.
//!
//! For each case an adapter starts with nothing consumed, the key [`KEY`] stored under [`key_record`] with its base URL
//! at a stub provider, its own origin `https://capo.example`, and at most [`MAX_BODY`] bytes of a body. All requests of
//! a case are sent at once, and the stub answers each of them alike. A case is an object:
//!
//! | field | meaning |
//! |---|---|
//! | `name` | what is sent |
//! | `limits` | of the member, of the project, of the key: three [`Limits`](crate::Limits) |
//! | `sent` | requests, each with `who`, `origin` (or null), `method`, `target` (path and query), `content_type`, and `body` (a text, or a document to be written as JSON) |
//! | `answer` | of the stub: `status`, `content_type`, and its body, which is `chunks` sent `repeat` times |
//! | `expected` | `statuses` in ascending order; the last segment of the type of the `problem` in every answer of the adapter's own or at the end of a stream that is cut (or null); how many requests the stub has `received`; how what is passed on `ends_with`; what the member has `used` in the end in nano-dollars, with nothing reserved |
//!
//! `who` is an `editor` of the project `help-desk`, a `viewer` of it, an `outsider` of another project with a role that
//! runs models, or `nobody`.

use serde_json::{Value, json};

/// The provider's key, which may stand in no answer.
pub const KEY: &str = "sk-shared-0123456789";

/// The most bytes of a request's body.
pub const MAX_BODY: usize = 400;

fn table() -> Value {
    serde_json::from_str(include_str!("cases.json")).expect("a test reads the table")
}

/// The [`KeyRecord`](crate::KeyRecord) of the key: of an OpenAI-compatible server that may be on this machine, with
/// models `small*` at $1 and $10 per million tokens, and `unpriced`.
pub fn key_record(base_url: &str) -> Value {
    let mut record = table()["key"].take();
    record["base_url"] = json!(base_url);
    record
}

/// The table. What a case in the file does not say, it has from the objects before the cases.
///
/// # Panics
/// Never: a test reads it.
pub fn cases() -> Vec<Value> {
    let table = table();
    let with = |usual: &str, own: &Value| {
        let mut whole = table[usual].clone();
        for (name, value) in own.as_object().into_iter().flatten() {
            whole[name] = value.clone();
        }
        whole
    };
    let complete = |case: &Value| {
        let outcome = if case["refused"].is_object() {
            "refused"
        } else {
            "passed"
        };
        let sent = case["sent"].as_array().map_or(&[Value::Null][..], Vec::as_slice);
        json!({
            "name": case["name"],
            "limits": case.get("limits").unwrap_or(&table["limits"]),
            "sent": sent.iter().map(|sent| with("sent", sent)).collect::<Vec<_>>(),
            "answer": with("answer", &case["answer"]),
            "expected": with(outcome, &case[outcome]),
        })
    };
    table["cases"]
        .as_array()
        .expect("a test reads the table")
        .iter()
        .map(complete)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capo_models::Secret;
    use capo_models::prices::PriceTable;
    use http::header::{self, HeaderMap};
    use http::{Method, StatusCode};

    use super::*;
    use crate::{Account, Caller, Consumption, Flow, Gateway, Limits, NanoUsd, Problem, Request};
    use crate::{Reservation, Scope, UpstreamRequest, check_response, reserve, split_path};

    fn text(value: &Value) -> &str {
        value.as_str().unwrap()
    }

    fn check(accounts: &mut [Account], sent: &Value) -> Result<(UpstreamRequest, Reservation), Problem> {
        let origins = vec!["https://capo.example".to_owned()];
        let (prices, max_body) = (Arc::new(PriceTable::shipped()), MAX_BODY);
        let gateway = Gateway {
            origins,
            prices,
            max_body,
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, text(&sent["content_type"]).parse().unwrap());
        headers.insert(header::AUTHORIZATION, "Bearer of-the-member".parse().unwrap());
        headers.extend(
            sent["origin"]
                .as_str()
                .map(|origin| (header::ORIGIN, origin.parse().unwrap())),
        );
        let method: Method = text(&sent["method"]).parse().unwrap();
        let (path, query) = text(&sent["target"])
            .split_once('?')
            .map_or((text(&sent["target"]), None), |(path, query)| (path, Some(query)));
        let (id, path) = split_path(path).unwrap();
        let body = sent["body"]
            .as_str()
            .map_or_else(|| sent["body"].to_string(), str::to_owned);
        let (method, headers, body) = (&method, &headers, body.as_bytes());
        let request = Request {
            method,
            path,
            query,
            headers,
            body,
        };
        let who = text(&sent["who"]);
        let project = if who == "outsider" { "other" } else { "help-desk" }.to_owned();
        let caller = Some(Caller {
            project,
            may_run: who != "viewer",
        })
        .filter(|_| who != "nobody");
        let key = serde_json::from_value(key_record("http://127.0.0.1:1/v1")).unwrap();
        let key = (id == "team").then_some(&key);
        let limits: Vec<Limits> = accounts.iter().map(|account| account.limits).collect();
        let mut upstream = gateway.check(caller.as_ref(), key, &limits, &request)?;
        let reservation = reserve(accounts, upstream.amount(), 20_000)?;
        upstream.authenticate(&Secret::new(KEY)).unwrap();
        let credentials: Vec<_> = upstream.headers.get_all(header::AUTHORIZATION).iter().collect();
        assert_eq!(credentials, [&format!("Bearer {KEY}")]);
        Ok((upstream, reservation))
    }

    /// Passes an answer on and settles; returns its status and body, and the problem in it.
    fn respond(
        accounts: &mut [Account],
        (upstream, reservation): &(UpstreamRequest, Reservation),
        answer: &Value,
    ) -> (u16, String, Option<Problem>) {
        let status = StatusCode::from_u16(answer["status"].as_u64().unwrap() as u16).unwrap();
        let media_type = text(&answer["content_type"]).parse().unwrap();
        let mut counter = upstream.counter(
            status,
            &HeaderMap::from_iter([(header::CONTENT_TYPE, media_type)]),
        );
        let (mut body, mut problem) = (String::new(), None);
        let chunks = answer["chunks"].as_array().unwrap();
        let repeat = answer["repeat"].as_u64().unwrap() as usize;
        for chunk in std::iter::repeat_n(chunks, repeat).flatten().map(text) {
            match counter.feed(chunk.as_bytes()) {
                Flow::Pass => body.push_str(chunk),
                Flow::Stop(forward) => {
                    body.push_str(&chunk[..forward]);
                    problem = Some(counter.problem());
                    break;
                }
            }
        }
        let cost = counter.finish().cost.unwrap_or_default();
        for account in accounts {
            account.consumption.settle(reservation, cost);
        }
        match check_response(status) {
            Ok(()) => (status.as_u16(), body, problem),
            Err(problem) => (problem.status, String::new(), Some(problem)),
        }
    }

    #[test]
    fn an_adapter_in_memory_answers_as_the_table_says() {
        for case in cases() {
            let limits: [Limits; 3] = serde_json::from_value(case["limits"].clone()).unwrap();
            let scopes = [Scope::Member, Scope::Project, Scope::Key];
            let consumption = Consumption::default();
            let mut accounts = [0, 1, 2].map(|i| Account {
                scope: scopes[i],
                limits: limits[i],
                consumption,
            });
            let sent = case["sent"].as_array().unwrap();
            let checked: Vec<_> = sent.iter().map(|sent| check(&mut accounts, sent)).collect();
            let received = checked.iter().filter(|checked| checked.is_ok()).count();
            let answered = checked.into_iter().map(|checked| match checked {
                Ok(call) => respond(&mut accounts, &call, &case["answer"]),
                Err(problem) => (problem.status, String::new(), Some(problem)),
            });
            let mut answered: Vec<_> = answered.collect();
            answered.sort_by_key(|(status, ..)| *status);
            let expected = &case["expected"];
            let statuses: Vec<u16> = answered.iter().map(|(status, ..)| *status).collect();
            let problem = answered.iter().find_map(|(.., problem)| problem.as_ref());
            let kind = problem.map(|problem| &problem.r#type["/problems/".len()..]);
            let passed = answered
                .iter()
                .map(|(_, body, _)| body.as_str())
                .find(|body| !body.is_empty());
            let passed = passed.unwrap_or_default();
            let Consumption { used, reserved, .. } = accounts[0].consumption;
            assert_eq!(reserved, NanoUsd::ZERO, "{case}");
            assert!(
                passed.ends_with(text(&expected["ends_with"])) && !passed.contains(KEY),
                "{case} {passed}"
            );
            let outcome = json!({
                "statuses": statuses, "problem": kind, "received": received, "ends_with": expected["ends_with"], "used": used,
            });
            assert_eq!(outcome, *expected, "{case}");
        }
    }
}
