//! `/api/docs`: the API's description for people, by Swagger UI, whose files are inside this program.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::problem::Refusal;

const PAGE: &str = include_str!("../../viewer/index.html");
const START: &str = include_str!("../../viewer/start.js");
const VIEWER: &str = include_str!(concat!(env!("OUT_DIR"), "/swagger-ui-bundle.js"));
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/swagger-ui.css"));

/// What the viewer needs: its own files, the images in its style, and this server's answers.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) async fn page() -> Response {
    with_policy("text/html; charset=utf-8", PAGE)
}

/// A file of it.
pub(super) async fn file(Path(name): Path<String>) -> Response {
    match name.as_str() {
        "start.js" => with_policy("text/javascript; charset=utf-8", START),
        "swagger-ui-bundle.js" => with_policy("text/javascript; charset=utf-8", VIEWER),
        "swagger-ui.css" => with_policy("text/css; charset=utf-8", STYLE),
        _ => Refusal::missing("address").into_response(),
    }
}

fn with_policy(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, text).into_response()
}
