//! JSON schemas of what a study file can say, for the form that fills it in.
//!
//! `schemas.json` is made by this file's test, `CAPO_BLESS=1 cargo test -p capo-web --lib schemas`: made
//! in the page, they would bring everything with them that they describe.

use std::sync::LazyLock;

use serde_json::Value;

static SCHEMAS: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("schemas.json");
    serde_json::from_str(text).expect("the test below reads them as well")
});

/// The schema of a kind of workload's table; null for an unknown kind.
pub fn workload(kind: &str) -> &'static Value {
    &SCHEMAS["workloads"][kind]
}

/// The schema of a method's table; null for an unknown method.
pub fn method(name: &str) -> &'static Value {
    &SCHEMAS["methods"][name]
}

/// The schema of a model's table.
pub fn model() -> &'static Value {
    &SCHEMAS["model"]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use capo_core::methods;
    use indexmap::IndexMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn they_are_those_of_the_code() {
        let methods: IndexMap<_, _> = methods::ALL
            .iter()
            .map(|entry| (entry.name, methods::schema(entry.name).unwrap()))
            .collect();
        let made = json!({
            "workloads": capo_workloads::schemas(),
            "methods": methods,
            "model": capo_models::schema(),
        });
        if std::env::var_os("CAPO_BLESS").is_some() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schemas.json");
            std::fs::write(path, format!("{made}\n")).unwrap();
            return;
        }
        assert!(*SCHEMAS == made, "run this test once with CAPO_BLESS=1");
    }
}
