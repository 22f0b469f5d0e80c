//! What is refused before anything runs.

use super::*;

#[test]
fn bad_settings_are_refused_by_key() {
    let metric = |metric: Value| json!({"endpoint": "http://x/", "metric": [metric]});
    for (changes, expected) in [
        (
            json!({}),
            "workload: give exactly one of `endpoint` and `command`",
        ),
        (
            json!({"endpoint": "http://x/", "command": ["x"]}),
            "workload: give exactly one",
        ),
        (json!({"endpoint": "x"}), "workload.endpoint: is no address"),
        (
            json!({"endpoint": "ftp://x/"}),
            "workload.endpoint: must begin with http",
        ),
        (
            json!({"endpoint": "http://me:pw@x/"}),
            "workload.endpoint: must not hold a password",
        ),
        (
            json!({"endpoint": "http://x/", "env": ["A"]}),
            "workload.env: is for `command`",
        ),
        (
            json!({"command": ["x"], "headers": {"a": "b"}}),
            "workload.headers: headers are for `endpoint`",
        ),
        (
            json!({"endpoint": "http://x/?code=sk-123"}),
            "workload.endpoint: must not hold a query",
        ),
        (
            json!({"endpoint": "http://x/", "headers": {"X-Auth-Token": "abc"}}),
            "workload.headers.X-Auth-Token: carries a key",
        ),
        (
            json!({"endpoint": "http://x/", "headers": {"x-functions-key": "abc"}}),
            "workload.headers.x-functions-key: carries a key",
        ),
        (json!({"command": []}), "workload.command: is empty"),
        (
            json!({"endpoint": "http://x/", "headers": {"a b": "c"}}),
            "workload.headers.a b: not a name",
        ),
        (
            json!({"endpoint": "http://x/", "headers": {"Authorization": "Bearer abc"}}),
            "workload.headers.Authorization: carries a key; name its environment variable with headers_env",
        ),
        (
            json!({"endpoint": "http://x/", "timeout": 0}),
            "workload.timeout: must be above 0",
        ),
        (
            json!({"endpoint": "http://x/", "concurrency": 0}),
            "workload.concurrency: must be at least 1",
        ),
        (
            json!({"endpoint": "http://x/", "metric": []}),
            "workload.metric: declare at least one",
        ),
        (
            json!({"endpoint": "http://x/", "endpont": 1}),
            "workload.endpont: there is no such setting; did you mean `endpoint`?",
        ),
        (
            json!({"endpoint": "http://x/", "evaluate": 9}),
            "workload.evaluate: 9 examples are asked for, but data.jsonl leaves 8",
        ),
        (
            metric(json!({"name": "m"})),
            "workload.metric[0]: missing field `direction`",
        ),
        (
            metric(json!({"name": "prompt_length", "direction": "cost"})),
            "workload.metric[0].name: `prompt_length` is measured",
        ),
        (
            metric(json!({"name": "m", "direction": "objective", "max": 100})),
            "workload.metric[0]: an objective lies between 0 and 1",
        ),
        (
            metric(json!({"name": "m", "direction": "cost", "min": 1, "max": 1})),
            "workload.metric[0]: `min` must be below",
        ),
    ] {
        let error = build(changes.clone())
            .err()
            .unwrap_or_else(|| panic!("built in spite of {changes}"));
        assert!(error.starts_with(expected), "{changes}: {error}");
    }
}

#[test]
fn the_same_row_in_both_splits_is_refused() {
    let files = MemoryFiles::new().with("data.jsonl", "{\"id\": 1, \"q\": 2}\n{\"q\": 2, \"id\": 2}");
    let changes = json!({"endpoint": "http://x/", "id": "id"});
    let error = build_with(changes, &files).err().unwrap();
    assert!(
        error.starts_with("data.jsonl line 2: this held-out example is the same as data.jsonl line 1"),
        "{error}"
    );
}
