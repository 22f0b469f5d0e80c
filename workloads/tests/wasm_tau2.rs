//! The tau2 domains, natively and in WebAssembly: calls leave the same records, to the last byte of their hashes.

use capo_workloads::tau2::airline::Airline;
use capo_workloads::tau2::environment::{Side, World, call_any};
use capo_workloads::tau2::retail::Retail;
use capo_workloads::tau2::telecom::Telecom;
use serde_json::{Value, json};

/// SHA-256 of the records after the calls below.
const AIRLINE: &str = "9c4b6fdb27225f9a352dfc513ee682ee6c5f085b64dd96f60b61bbb2693139d3";
const SHOP: &str = "f9f756855e855ff1549d94c578d844a3c348fd6c69d12c6aec9a667d6569d921";
const COMPANY: &str = "f92d5600484a3fb6540babf6ed9ce539df8b991253b5ad44eaebcc53a69a0a5a";
const TELEPHONE: &str = "c81e9c25901dbee4312cbbdc26835f0964cd680952a5d81a3a7498b6afec8072";

/// The hashes of the agent's and the user's records after calls that all succeed.
fn after<W: World>(mut world: W, calls: &[(Side, &str, Value)]) -> [Option<String>; 2] {
    for (side, name, arguments) in calls {
        let result = call_any(&mut world, *side, name, arguments);
        assert!(!result.error, "{name}: {}", result.content);
    }
    [Some(world.agent_hash()), world.user_hash()]
}

fn an_airline_has_the_recorded_hash() {
    let airline = include_bytes!("../testdata/tau2/domains/airline/db.json");
    let airline = Airline::read(airline).expect("an airline");
    let passenger = json!({ "first_name": "Zoë", "last_name": "Nyman 🧳", "dob": "2019-09-09" });
    let calls = [
        (
            Side::Assistant,
            "book_reservation",
            json!({
                "user_id": "ada_nyman_11", "origin": "OSL", "destination": "NBO",
                "flight_type": "one_way", "cabin": "economy",
                "flights": [
                    { "flight_number": "KI100", "date": "2024-05-21" },
                    { "flight_number": "KI207", "date": "2024-05-21" },
                ],
                "passengers": [passenger],
                "payment_methods": [
                    { "payment_id": "gift_card_32", "amount": 500 },
                    { "payment_id": "certificate_33", "amount": "100" },
                ],
                "total_baggages": 2, "nonfree_baggages": 1, "insurance": "yes",
            }),
        ),
        (
            Side::Assistant,
            "send_certificate",
            json!({ "user_id": "bo_o'dell_12", "amount": 0.1 }),
        ),
        (
            Side::Assistant,
            "cancel_reservation",
            json!({ "reservation_id": "QRX7A2" }),
        ),
    ];
    assert_eq!(after(airline, &calls), [Some(AIRLINE.to_owned()), None]);
}

fn a_shop_has_the_recorded_hash() {
    let shop = include_bytes!("../testdata/tau2/domains/retail/db.json");
    let shop = Retail::read(shop).expect("a shop");
    let calls = [
        (
            Side::Assistant,
            "modify_pending_order_items",
            json!({
                "order_id": "#K1", "item_ids": ["1100000001", "1300000002"],
                "new_item_ids": ["1100000002", "1300000001"], "payment_method_id": "gift_card_52",
            }),
        ),
        (
            Side::Assistant,
            "exchange_delivered_order_items",
            json!({
                "order_id": "#K4", "item_ids": ["1200000002"],
                "new_item_ids": ["1200000001"], "payment_method_id": "gift_card_61",
            }),
        ),
        (
            Side::Assistant,
            "cancel_pending_order",
            json!({ "order_id": "#K3", "reason": "ordered by mistake" }),
        ),
    ];
    assert_eq!(after(shop, &calls), [Some(SHOP.to_owned()), None]);
}

fn a_telephone_company_has_the_recorded_hashes() {
    let company = include_str!("../testdata/tau2/domains/telecom/db.toml");
    let telephone = include_str!("../testdata/tau2/domains/telecom/user_db.toml");
    let company = Telecom::read(company, telephone).expect("a telephone company");
    let calls = [
        (
            Side::Assistant,
            "refuel_data",
            json!({ "customer_id": "C71", "line_id": "L71", "gb_amount": 0.3 }),
        ),
        (
            Side::Assistant,
            "send_payment_request",
            json!({ "customer_id": "C71", "bill_id": "B72" }),
        ),
        (Side::User, "make_payment", json!({})),
        (
            Side::User,
            "grant_app_permission",
            json!({ "app_name": "messaging", "permission": "Storage" }),
        ),
        (Side::User, "connect_vpn", json!({})),
        (Side::User, "toggle_data", json!({})),
    ];
    let [agent, user] = [COMPANY, TELEPHONE].map(|hash| Some(hash.to_owned()));
    assert_eq!(after(company, &calls), [agent, user]);
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    #[test]
    fn an_airline_has_the_recorded_hash() {
        super::an_airline_has_the_recorded_hash();
    }

    #[test]
    fn a_shop_has_the_recorded_hash() {
        super::a_shop_has_the_recorded_hash();
    }

    #[test]
    fn a_telephone_company_has_the_recorded_hashes() {
        super::a_telephone_company_has_the_recorded_hashes();
    }
}

#[cfg(target_arch = "wasm32")]
mod wasm {
    use std::io::{BufRead, BufReader};

    use capo_workloads::tau2::environment::{Side, World, call};
    use flate2::read::GzDecoder;
    use serde::Deserialize;
    use serde_json::{Map, Value};
    use wasm_bindgen_test::{console_log, wasm_bindgen_test};

    use super::{Airline, Retail, Telecom, node};

    /// How many recordings of a kind are played, and how many steps of each.
    const SAMPLE: usize = 4;
    const STEPS: usize = 24;

    #[derive(Deserialize)]
    struct Recording {
        kind: String,
        #[serde(default)]
        initialization_actions: Option<Vec<Action>>,
        #[serde(default)]
        steps: Vec<Step>,
    }

    #[derive(Deserialize)]
    struct Action {
        env_type: Side,
        func_name: String,
        arguments: Map<String, Value>,
    }

    #[derive(Deserialize)]
    struct Step {
        requestor: Side,
        name: String,
        arguments: Map<String, Value>,
        error: bool,
        h: Hashes,
    }

    #[derive(Debug, Clone, Deserialize, PartialEq)]
    struct Hashes {
        agent: String,
        #[serde(default)]
        user: Option<String>,
    }

    #[wasm_bindgen_test]
    fn an_airline_has_the_recorded_hash() {
        super::an_airline_has_the_recorded_hash();
    }

    #[wasm_bindgen_test]
    fn a_shop_has_the_recorded_hash() {
        super::a_shop_has_the_recorded_hash();
    }

    #[wasm_bindgen_test]
    fn a_telephone_company_has_the_recorded_hashes() {
        super::a_telephone_company_has_the_recorded_hashes();
    }

    /// Plays the first recordings of each kind and compares the state after each step, as the native tests do
    /// with all of them.
    fn a_sample_agrees<W: World>(read: impl FnOnce(&[Vec<u8>]) -> W, records: &[&str]) {
        let domain = W::NAME;
        let records: Option<Vec<Vec<u8>>> = records
            .iter()
            .map(|name| node::shared(&format!("tau2/data/domains/{domain}/{name}")))
            .collect();
        let recordings = node::shared(&format!("tau2/parity/{domain}.jsonl.gz"));
        let (Some(records), Some(recordings)) = (records, recordings) else {
            return;
        };
        let fresh = read(&records);
        let recordings: Vec<Recording> = BufReader::new(GzDecoder::new(recordings.as_slice()))
            .lines()
            .map(|line| serde_json::from_str(&line.expect("a line")).expect("a recording"))
            .collect();
        let mut steps = 0;
        for kind in ["gold", "fuzz"] {
            let of_kind = recordings.iter().filter(|recording| recording.kind == kind);
            for (place, recording) in of_kind.take(SAMPLE).enumerate() {
                let mut world = fresh.clone();
                for action in recording.initialization_actions.iter().flatten() {
                    let done = world.act(action.env_type, &action.func_name, &action.arguments);
                    done.expect("what begins a conversation");
                    world.sync().expect("two sides that agree");
                }
                for step in recording.steps.iter().take(STEPS) {
                    let result = call(&mut world, step.requestor, &step.name, &step.arguments);
                    if kind == "fuzz" {
                        // As the orchestrator does.
                        world.sync().expect("two sides that agree");
                    }
                    let hashes = Hashes {
                        agent: world.agent_hash(),
                        user: world.user_hash(),
                    };
                    let at = format!("{domain} {kind} {place}: {}", step.name);
                    assert_eq!((result.error, hashes), (step.error, step.h.clone()), "{at}");
                    steps += 1;
                }
            }
        }
        console_log!("{domain}: {steps} steps");
        assert!(steps > 0, "no steps of {domain}");
    }

    #[wasm_bindgen_test]
    fn a_sample_of_the_airlines_recordings_agrees() {
        let read = |records: &[Vec<u8>]| Airline::read(&records[0]).expect("an airline");
        a_sample_agrees(read, &["db.json"]);
    }

    #[wasm_bindgen_test]
    fn a_sample_of_the_shops_recordings_agrees() {
        let read = |records: &[Vec<u8>]| Retail::read(&records[0]).expect("a shop");
        a_sample_agrees(read, &["db.json"]);
    }

    #[wasm_bindgen_test]
    fn a_sample_of_the_telephone_companys_recordings_agrees() {
        let read = |records: &[Vec<u8>]| {
            let text = |place: usize| str::from_utf8(&records[place]).expect("UTF-8");
            Telecom::read(text(0), text(1)).expect("a telephone company")
        };
        a_sample_agrees(read, &["db.toml", "user_db.toml"]);
    }
}

/// Data that is not part of the repository, by the rules of `capo_tests::shared`, read by node.
#[cfg(target_arch = "wasm32")]
mod node {
    use js_sys::{Function, Reflect, Uint8Array};
    use wasm_bindgen::{JsCast, JsValue};
    use wasm_bindgen_test::console_log;

    fn member(of: &JsValue, name: &str) -> JsValue {
        Reflect::get(of, &name.into()).unwrap_or_default()
    }

    fn call(of: &JsValue, name: &str, argument: &str) -> Option<JsValue> {
        let function: Function = member(of, name).dyn_into().ok()?;
        function.call1(of, &argument.into()).ok()
    }

    /// A file under the shared data; `None`, said aloud, where there is none.
    pub(super) fn shared(path: &str) -> Option<Vec<u8>> {
        let process = member(&js_sys::global(), "process");
        let variable = |name: &str| member(&member(&process, "env"), name).as_string();
        let folder = variable("CAPO_SHARED")
            .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared").to_owned());
        let files = call(&process, "getBuiltinModule", "fs");
        let files = files.expect("node 20.16 or later, which lends its modules");
        let is_here = call(&files, "existsSync", &folder).is_some_and(|is_here| is_here.is_truthy());
        if !is_here {
            assert!(
                variable("CI").is_none(),
                "no shared data at {folder}; set CAPO_SHARED"
            );
            console_log!("skipped: no shared data at {folder}");
            return None;
        }
        let file = format!("{folder}/{path}");
        let bytes = call(&files, "readFileSync", &file);
        let bytes = bytes.unwrap_or_else(|| panic!("{file} cannot be read"));
        Some(Uint8Array::new(&bytes).to_vec())
    }
}
