//! What holds of all sequences of calls.

use std::collections::BTreeSet;

use capo_core::llm::ToolCall;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::super::airline::Airline;
use super::super::environment::{Side, ToolResult, World, call_any, call_bare};
use super::super::folder::Domain;
use super::super::replay::replay;
use super::super::retail::Retail;
use super::super::telecom::Telecom;
use super::super::tool::Kind;
use super::super::trajectory::{Event, Trajectory};
use super::drawn::{Drawn, Source};
use super::{fresh, own};

/// A world whose state can be written and read.
trait Kept: Domain {
    /// The state as JSON: the agent's records, and the user's where there are any.
    fn kept(&self) -> Vec<String>;

    /// The world with this state.
    fn back(kept: &[String]) -> Self;

    /// All records by kind.
    fn records(&self) -> Value;
}

macro_rules! kept_in_one_database {
    ($($world:ty),+) => {$(
        impl Kept for $world {
            fn kept(&self) -> Vec<String> {
                vec![self.records().to_string()]
            }

            fn back(kept: &[String]) -> Self {
                Self::read(kept[0].as_bytes()).unwrap()
            }

            fn records(&self) -> Value {
                self.records()
            }
        }
    )+};
}

kept_in_one_database!(Airline, Retail);

impl Kept for Telecom {
    fn kept(&self) -> Vec<String> {
        self.written().map(|records| records.to_string()).into()
    }

    fn back(kept: &[String]) -> Self {
        let read = |place: usize| serde_json::from_str(&kept[place]).unwrap();
        Self::read_back([read(0), read(1)]).unwrap()
    }

    fn records(&self) -> Value {
        let [mut company, telephone] = self.written();
        let telephone = telephone.as_object().unwrap().clone();
        company.as_object_mut().unwrap().extend(telephone);
        company
    }
}

type Hashes = (String, Option<String>);

fn hashes(world: &impl World) -> Hashes {
    (world.agent_hash(), world.user_hash())
}

/// Makes the calls, a booking again where it only was not paid right.
fn make<W: World>(world: &mut W, calls: &[Drawn], mut after: impl FnMut(&W, &W, &Drawn, &ToolResult)) {
    for drawn in calls {
        let mut drawn = drawn.clone();
        loop {
            let before = world.clone();
            let result = call_any(world, drawn.by, &drawn.name, &drawn.arguments);
            after(&before, world, &drawn, &result);
            match drawn.for_its_price(&result.content) {
                Some(booking) if result.error && booking.arguments != drawn.arguments => drawn = booking,
                _ => break,
            }
        }
    }
}

fn calls(source: &Source) -> impl Strategy<Value = Vec<Drawn>> {
    proptest::collection::vec(any::<u8>(), 0..600).prop_map(|bytes| source.calls(&bytes))
}

/// Whether it holds of sequences of calls in a world of a few people, and in the benchmark's.
fn always<W: Kept>(holds: impl Fn(&W, &[Drawn])) {
    for (world, cases) in [(Some(own::<W>()), 256), (fresh::<W>(), 12)] {
        let Some(world) = world else { continue };
        let source = Source::new::<W>(&Kept::records(&world));
        let config = Config {
            cases,
            // Bytes mean other calls when the drawing changes.
            failure_persistence: None,
            max_shrink_iters: 4096,
            ..Config::default()
        };
        let run = TestRunner::new(config).run(&calls(&source), |calls| {
            holds(&world, &calls);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{}: {error}", W::NAME));
    }
}

fn what_is_read_back_has_the_same_hashes<W: Kept>() {
    always(|fresh: &W, calls| {
        let mut world = fresh.clone();
        make(&mut world, calls, |_, _, _, _| {});
        assert_eq!(hashes(&W::back(&world.kept())), hashes(&world));
    });
}

fn writes_alone_make_the_same_state<W: Kept>() {
    always(|fresh: &W, calls| {
        let mut world = fresh.clone();
        let mut events = Vec::new();
        make(&mut world, calls, |_, _, drawn, result| {
            let call = ToolCall {
                id: events.len().to_string(),
                name: drawn.name.clone(),
                arguments: drawn.arguments.clone(),
            };
            events.push(Event::Called {
                by: drawn.by,
                text: None,
                calls: vec![call.clone()],
            });
            events.push(Event::Answered {
                to: drawn.by,
                call_id: call.id,
                content: result.content.clone(),
                error: result.error,
            });
        });
        let mut again = fresh.clone();
        replay(&mut again, &Trajectory(events)).unwrap();
        assert_eq!(hashes(&again), hashes(&world));
        assert!(again.equals(&world));
    });
}

/// A call that errs may change something in one case: the tool succeeded and the sides cannot agree afterwards.
fn errors_change_nothing<W: Kept>() {
    always(|fresh: &W, calls| {
        let mut world = fresh.clone();
        let mut last = hashes(&world);
        make(&mut world, calls, |before, after, drawn, result| {
            let now = hashes(after);
            if result.error && now != last {
                let left = unsynchronised(before, drawn);
                assert!(
                    left.is_some_and(|world| hashes(&world) == now),
                    "{drawn:?} changed something: {}",
                    result.content
                );
            }
            last = now;
        });
    });
}

/// What a tool leaves that succeeds when the sides cannot agree afterwards; `None` for one that does not
/// succeed, or after which they agree.
fn unsynchronised<W: World>(before: &W, drawn: &Drawn) -> Option<W> {
    let mut world = before.clone();
    call_bare(&mut world, drawn.by, &drawn.name, drawn.arguments.as_object()?).ok()?;
    world.sync().is_err().then_some(world)
}

/// Every tool succeeds in some of the sequences, and fails in some if it has arguments.
fn draws_reach_every_tool<W: Kept>() {
    let fresh = own::<W>();
    let source = Source::new::<W>(&Kept::records(&fresh));
    let mut runner = TestRunner::deterministic();
    let mut reached = BTreeSet::new();
    for _ in 0..2000 {
        let calls = calls(&source).new_tree(&mut runner).unwrap().current();
        make(&mut fresh.clone(), &calls, |before, after, drawn, result| {
            let did = !result.error && !before.equals(after);
            reached.insert((drawn.name.clone(), result.error, did));
        });
    }
    let of_agent = W::agent_tools().iter();
    let of_user = W::user_tools().iter();
    for (name, kind, parameters) in of_agent
        .chain(of_user)
        .map(|tool| (tool.name, tool.kind, tool.parameters))
    {
        let has = |error, did| reached.contains(&(name.to_owned(), error, did));
        assert!(has(false, kind == Kind::Write), "{name} never succeeded");
        assert!(has(true, false) || parameters.is_empty(), "{name} never failed");
        assert!(
            kind == Kind::Write || !has(false, true),
            "{name} changed something"
        );
    }
}

#[test]
fn an_airline_that_is_read_back_has_the_same_hashes() {
    what_is_read_back_has_the_same_hashes::<Airline>();
}

#[test]
fn a_shop_that_is_read_back_has_the_same_hashes() {
    what_is_read_back_has_the_same_hashes::<Retail>();
}

#[test]
fn a_telephone_company_that_is_read_back_has_the_same_hashes() {
    what_is_read_back_has_the_same_hashes::<Telecom>();
}

#[test]
fn writes_alone_make_the_same_airline() {
    writes_alone_make_the_same_state::<Airline>();
}

#[test]
fn writes_alone_make_the_same_shop() {
    writes_alone_make_the_same_state::<Retail>();
}

#[test]
fn writes_alone_make_the_same_telephone_company() {
    writes_alone_make_the_same_state::<Telecom>();
}

#[test]
fn errors_change_nothing_in_an_airline() {
    errors_change_nothing::<Airline>();
}

#[test]
fn errors_change_nothing_in_a_shop() {
    errors_change_nothing::<Retail>();
}

#[test]
fn errors_change_nothing_in_a_telephone_company() {
    errors_change_nothing::<Telecom>();
}

#[test]
fn what_a_tool_did_stays_when_the_sides_cannot_agree() {
    let [company, mut telephone] = own::<Telecom>().written();
    let request = json!({ "bill_id": "B404", "amount_due": 1.0 });
    telephone["surroundings"]["payment_request"] = request;
    let mut world = Telecom::read_back([company, telephone]).unwrap();
    let payment = Drawn {
        by: Side::User,
        name: "make_payment".to_owned(),
        arguments: json!({}),
    };
    let before = world.clone();
    let result = call_any(&mut world, payment.by, &payment.name, &payment.arguments);
    assert_eq!(result.content, "Error: Bill with ID B404 not found");
    assert_ne!(world.user_hash(), before.user_hash());
    let left = unsynchronised(&before, &payment).unwrap();
    assert_eq!(hashes(&left), hashes(&world));
}

#[test]
fn draws_reach_every_tool_of_the_airline() {
    draws_reach_every_tool::<Airline>();
}

#[test]
fn draws_reach_every_tool_of_the_shop() {
    draws_reach_every_tool::<Retail>();
}

#[test]
fn draws_reach_every_tool_of_the_telephone_company() {
    draws_reach_every_tool::<Telecom>();
}
