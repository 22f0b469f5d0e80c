//! The OpenAPI document beyond the attributes of the routes: with which statuses each refuses.

use axum::http::StatusCode;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Response, ResponseBuilder};

/// What is bytes, and no document.
const BYTES: [&str; 2] = ["application/octet-stream", "application/x-tar"];

/// Adds the statuses of refusals to what is refused by a problem document, describes every answer, as OpenAPI demands, and
/// takes bytes for no list of numbers.
pub(super) fn complete(document: &mut OpenApi) {
    let refused = &mut document.components.get_or_insert_default().responses;
    let content = Content::new(Some(Ref::from_schema_name("Problem")));
    let problem = ResponseBuilder::new().content("application/problem+json", content);
    let problem = problem.build();
    for (path, item) in &mut document.paths.paths {
        // Whether the server is well says a text, and models refuse as their own API does, too.
        let says_problems = path.starts_with("/api") && !path.starts_with("/api/models/");
        let changes = [&mut item.put, &mut item.post, &mut item.patch, &mut item.delete];
        let changes = changes.into_iter().flatten().map(|operation| (operation, true));
        let reads = item.get.iter_mut().map(|operation| (operation, false));
        for (operation, is_change) in reads.chain(changes) {
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                without_numbers(body.content.iter_mut());
            }
            for (status, response) in &mut operation.responses.responses {
                if let RefOr::T(response) = response {
                    without_numbers(response.content.iter_mut());
                    describe(response, status);
                }
            }
            if !says_problems {
                continue;
            }
            for status in refusals(path, is_change, operation) {
                refused.entry(status.to_owned()).or_insert_with(|| {
                    let mut response = problem.clone();
                    describe(&mut response, status);
                    RefOr::T(response)
                });
                let own = operation.responses.responses.entry(status.to_owned());
                own.or_insert_with(|| Ref::from_response_name(status).into());
            }
        }
    }
}

/// The statuses with which an operation refuses. They follow from what it reads and changes, as refusals themselves do.
fn refusals(path: &str, is_change: bool, operation: &Operation) -> Vec<&'static str> {
    let is_secured = operation.security.is_some();
    let has_body = operation.request_body.is_some();
    let parameters = operation.parameters.as_deref().unwrap_or_default();
    let has_query = parameters.iter().any(
        |parameter| matches!(parameter, RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query),
    );
    // Too fast, broken, busy.
    let mut statuses = vec!["429", "500", "503"];
    let mut add = |applies: bool, more: &[&'static str]| {
        if applies {
            statuses.extend(more);
        }
    };
    add(is_secured, &["401", "403"]);
    add(!parameters.is_empty(), &["400", "404"]);
    add(has_query, &["422"]);
    // From another origin, in contradiction to what is there, without room.
    add(is_change, &["403", "409", "507"]);
    add(has_body, &["400", "408", "413", "415", "422"]);
    // What is sent says who sends it.
    add(has_body && !is_secured, &["401", "404"]);
    add(path.starts_with("/api/oidc/"), &["502"]);
    // A study may name a training, too.
    add(
        path.contains("/trainings") || has_body && path.contains("/runs"),
        &["501"],
    );
    statuses
}

fn describe(response: &mut Response, status: &str) {
    if response.description.is_empty() {
        let status = StatusCode::from_bytes(status.as_bytes()).ok();
        let reason = status.and_then(|status| status.canonical_reason());
        reason.unwrap_or_default().clone_into(&mut response.description);
    }
}

fn without_numbers<'a>(contents: impl Iterator<Item = (&'a String, &'a mut RefOr<Content>)>) {
    for (kind, content) in contents {
        if let RefOr::T(content) = content
            && BYTES.contains(&kind.as_str())
        {
            content.schema = None;
        }
    }
}
