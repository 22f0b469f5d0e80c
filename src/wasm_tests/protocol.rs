//! Messages between the page and its workers survive serialisation.

#![cfg(target_arch = "wasm32")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use capo_core::journal::SteerEvent;
use capo_core::llm::Role;
use capo_core::metric::MetricSpec;
use capo_models::WrittenRequest;
use capo_web::keys::{Destination, Keys};
use capo_web::storage::RunStatus;
use capo_web::worker::protocol::{
    DataFiles, HowFar, Looked, Message, ModelRequest, Order, ProbeFailure, Report, stamp,
};
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen_test]
fn orders_arrive_as_they_were_given() {
    let mut keys = Keys::new();
    let to = Destination {
        variable: "OPENAI_API_KEY".into(),
        origin: "https://api.openai.com".into(),
    };
    keys.set(to, "sk-1");
    let orders = [
        Order::Run {
            run: "r".into(),
            study: "[study]\nname = \"ä\"".into(),
            files: DataFiles::from([("rows.csv".into(), "a\n1".into())]),
            keys,
            keep: true,
            known: 12,
            elapsed: 1.5,
            pilot: Some(5),
            check: None,
        },
        Order::Interrupt {
            listed: RunStatus::Paused,
        },
        Order::Withdraw {
            change: SteerEvent {
                thresholds: Some([("turns".to_owned(), 4.0)].into()),
                ..SteerEvent::default()
            },
        },
        Order::Steer {
            change: SteerEvent {
                multipliers: Some([("turns".to_owned(), 2.5)].into()),
                ..SteerEvent::default()
            },
        },
        Order::TryAgent {
            ticket: 6,
            workload: serde_json::Map::from_iter([("kind".to_owned(), json!("external"))]),
            prompt: "Be brief.".into(),
            seed: 1,
        },
        Order::Write(ModelRequest {
            table: json!({ "provider": "openai" }),
            prompt: "Be brief.".into(),
            message: "{{ question }}".into(),
        }),
        Order::Files {
            changed: [("rows.csv".into(), Some("a\n1".into())), ("old.csv".into(), None)].into(),
        },
        Order::Look {
            ticket: 7,
            workload: serde_json::Map::from_iter([("kind".to_owned(), json!("table"))]),
            seed: 2,
        },
        Order::Branch {
            from: "r".into(),
            run: "s".into(),
            round: 2,
        },
    ];
    for order in orders {
        let text = serde_json::to_string(&order).unwrap();
        let again: Order = serde_json::from_str(&text).unwrap();
        assert_eq!(
            serde_json::to_value(&again).unwrap(),
            serde_json::to_value(&order).unwrap()
        );
    }
}

#[wasm_bindgen_test]
fn reports_arrive_as_they_were_made() {
    let reports = [
        Report::Lines {
            first: 7,
            lines: vec!["{}".into(), "{\"a\":1}".into()],
        },
        Report::Opened {
            kept: 3,
            unsaved: vec!["{}".into()],
            left_out: vec!["two lines".into()],
        },
        Report::Busy,
        Report::Importing(HowFar {
            lines: 1,
            read: 20,
            of: 40,
        }),
        Report::Unsaved {
            chunks: vec![(4, vec!["{}".into()])],
        },
        Report::Piloted,
        Report::Ended,
        Report::Failed { message: "no".into() },
        Report::Forecast {
            ticket: 3,
            forecast: Ok(Box::new(json!({ "rollouts": 5 }))),
        },
        Report::Forecast {
            ticket: 4,
            forecast: Err("`rounds`: must be above 0".into()),
        },
        Report::Probed {
            ticket: 5,
            answer: Err(ProbeFailure {
                message: "refused".into(),
                unreachable: true,
            }),
        },
        Report::Written {
            request: Ok(WrittenRequest {
                url: "https://api.openai.com/v1".into(),
                headers: Vec::new(),
                body: json!({ "model": "m" }),
            }),
        },
        Report::Looked {
            ticket: 7,
            looked: Looked {
                metrics: vec![MetricSpec::prompt_length()],
                optimize: 3,
                evaluate: 1,
                roles: vec![Role::Agent],
                wrong: Some("row 2 has no column `answer`".into()),
            },
        },
        Report::Imported {
            run: Err("broken".into()),
        },
    ];
    for report in reports {
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
        assert!(serde_json::from_str::<Value>(&text).unwrap()["report"].is_string());
    }
}

#[wasm_bindgen_test]
fn an_order_says_which_module_its_page_runs() {
    let message = Message {
        order: "{}".into(),
        beside: JsValue::from(7),
        build: stamp("/capo/capo-web_bg.wasm?v=0123abcd"),
    };
    let arrived = Message::unpack(&message.pack());
    assert_eq!(arrived.order, "{}");
    assert_eq!(arrived.beside.as_f64(), Some(7.0));
    assert_eq!(arrived.build.as_deref(), Some("0123abcd"));
    let unstamped = Message {
        build: stamp("/worker.js"),
        ..message
    };
    assert_eq!(Message::unpack(&unstamped.pack()).build, None);
}
