//! The help desk of *Ridgeway Cycles*: a tool-using customer-service domain of our own.
//!
//! A customer writes, the agent talks and calls tools on a small shop database, and at the end
//! the database and the conversation are compared with what the task expects. 12
//! tools, one policy; users are scripted (or played by a model).
//!
//! # What the agent sees
//!
//! The system message is [`episode::frame`]: the shop's policy (`policy.md`) and the candidate
//! prompt, each inside its tag.
//!
//! ```text
//! You are the help-desk agent of Ridgeway Cycles. …
//!
//! <instructions>
//! {the candidate prompt}
//! </instructions>
//!
//! <policy>
//! {policy.md}
//! </policy>
//! ```
//!
//! Then the customer speaks first. An answer with tool calls has them executed in order, each
//! answered by one tool message; its text, if any, counts as talk but nobody replies to it. An
//! answer of text alone goes to the customer, who replies. The dialogue ends when the customer's
//! message holds the stop token [`user::STOP`], when `transfer_to_human` was called (further calls of
//! that answer are not executed), or after `max_steps` agent answers.
//!
//! # Tools
//!
//! Ids have fixed shapes: customers `C-2001`, orders `O-1042`, shipments `S-3042`, products
//! `P-104`, variants (`sku`) `P-104-M`, workshop slots `T-041`. Amounts are strings such as
//! `"59.90"`, dates are `2026-03-18`. Results are JSON objects; every failure is a result of the
//! form `{"error": "…"}` and changes nothing (unknown tool, arguments that are no object, missing,
//! unknown or ill-typed arguments, unknown id, forbidden state).
//!
//! | tool | kind | arguments | result |
//! |---|---|---|---|
//! | `verify_identity` | read | `{"email", "postcode"}` | `{"verified":true,"customer_id":"C-2001","name":"Ada Krol","club_member":false,"account":"open"}` (or `"locked"`); no match: `{"verified":false,"message":"…"}` |
//! | `get_account` | read | `{"customer_id"}` | `{"customer_id","name","club_member","account","address":{"street","city","postcode"},"orders":[{"order_id":"O-1042","placed":"2026-03-04","state":"delivered","items":1,"total":"59.90"}],"appointments":[{"slot_id":"T-041","service":"tune_up","date":"2026-03-20","weekday":"Friday","time":"09:00"}]}` |
//! | `get_order` | read | `{"order_id"}` | `{"order_id","customer_id","placed","state","payment":"card","items":[{"sku":"P-104-M","name":"Alder helmet","option":"M","price":"59.90","clearance":false,"state":"ordered"}],"total":"59.90","address":{…},"shipment_id":"S-3042","delivered":"2026-03-08","days_since_delivery":8}`; the last three are `null` when there is none. States: `placed`, `packed`, `shipped`, `delivered`, `cancelled`; payments: `card`, `bank`, `invoice`; item states: `ordered`, `return_requested`, `exchange_requested` |
//! | `get_shipment` | read | `{"shipment_id"}` | `{"shipment_id","order_id","carrier","state":"in_transit","expected":"2026-03-19","last_event":"…"}`; states `in_transit`, `delayed`, `delivered`, `lost` |
//! | `search_products` | read | `{"query"}` | `{"products":[{"product_id":"P-104","name":"Alder helmet","category":"helmets","variants":[{"sku":"P-104-L","option":"L","price":"59.90","in_stock":3}]}]}`: products that hold every word of the query in their id, name, category, skus or options |
//! | `find_slots` | read | `{"service", "from"?, "until"?}` (dates) | `{"slots":[{"slot_id":"T-041","service":"tune_up","date":"2026-03-18","weekday":"Wednesday","time":"09:00"}]}`: free slots, earliest first |
//! | `cancel_order` | write | `{"order_id"}` | `{"order_id","state":"cancelled","refund":"59.90","refund_to":"card"}` |
//! | `return_items` | write | `{"order_id","skus":[…],"refund_to":"original"}` (or `"voucher"`) | `{"order_id","returned":["P-104-M"],"refund":"59.90","refund_to":"original"}` |
//! | `exchange_item` | write | `{"order_id","sku","new_sku"}` | `{"order_id","sku","new_sku","state":"exchange_requested"}` |
//! | `change_address` | write | `{"order_id","street","city","postcode"}` | `{"order_id","address":{…}}` |
//! | `book_appointment` | write | `{"customer_id","slot_id","moves"?}` (`moves`: the slot of the appointment given up) | `{"slot_id","service","date","weekday","time","moved_from":null}` |
//! | `transfer_to_human` | transfer | `{"reason"}` | `{"transferred":true}`; ends the dialogue |
//!
//! Tools enforce what a shop's software would (state of the order, stock, free slots), not the
//! policy: windows, clearance, club membership, totals, the day-before rule and identity are the
//! agent's to check.
//!
//! # What counts as verified and confirmed
//!
//! Both are read off the conversation, whoever plays the customer.
//! - *Verified*: the last `verify_identity` of this dialogue that answered `"verified":true` did so
//!   for the customer who owns the record. Verifying another account takes the place of the first.
//! - *Confirmed*: earlier, one text of the agent named the record's id (`O-1042`; for
//!   appointments the new slot `T-041`) and one of the tool's own words (cancel | return, refund |
//!   exchange, swap, replace | address | book, appointment, move, reschedule), and the customer's
//!   reply to that very text says yes ([`language::affirms`]). One text may list several changes.
//!
//! # What the scripted customer understands
//!
//! The customer ([`user`]) reads the agent's text sentence by sentence ([`language::read`], whose words
//! are listed in `language/cues.rs`) and answers the first of these that is in it:
//!
//! 1. **Questions for facts**: a sentence that asks (begins with "what", "which", "when", "where",
//!    "who", "why", "how", holds "could you", "can you", "please", "may I have", "I need", "provide",
//!    "tell me", "give me", "let me know", …, or ends with "?") and names a topic: *e-mail*, *postcode*,
//!    *name*, *order* ("order number", "which order"), *item* ("which item"), *variant* ("size",
//!    "colour"), *address* ("new address", "delivery address"), *date* ("which day", "what time", "which
//!    slot", …), *service*, *appointment* ("which appointment"), *reason*, *goal* ("how can I help",
//!    "what would you like"). The customer answers every topic asked: with the fact; with "I don't have
//!    the number at hand. …" and what they know of the order; with "I don't know that, sorry." where
//!    they know nothing. Who is asked the same a fifth time leaves.
//! 2. **Proposals**: "shall I", "should I", "do you want", "would you like me", "may I", "go ahead",
//!    "proceed", "confirm that", "is that right/correct/ok", "yes or no", …; "confirm" and "agree" where no
//!    topic is asked. Sentences that refuse are left out of account. The customer says yes when the text
//!    names the operation wanted (the words above) or none at all; "No, that's not the one. I mean O-1042." to
//!    another number of the same shape as one they know; "No, I don't want a voucher." to a voucher, unless
//!    it is all the rules allow and the task lets them take it, some after trying for the money once; "No,
//!    that is not what I asked for. …" to another operation. To being handed to a human, customers who would
//!    like that say yes, others "No, I'd rather you solved it here. …", and yes the second time.
//! 3. **Reports and answers** that refuse nothing: "has been cancelled", "is booked", "I have moved …",
//!    "done", …; for a request that is a question, any text that holds the answer. The customer believes
//!    them, comes with the next request if there is one ("Thanks. One more thing: …"), and else ends.
//! 4. **Refusals**: "cannot", "unable", "not possible", "not allowed", "unfortunately", "not eligible",
//!    "could not verify", "no longer", "out of stock", …. A customer pushes as often as the task says ("Come on,
//!    surely you can make an exception just this once.", "Then I want to speak to a human right now.", or
//!    "If you don't have it, then I'd rather return the …"), and then gives in and leaves.
//! 5. **Closing**: "anything else" counts as a report.
//! 6. Anything else: "Sorry, I don't follow. …" and the request again in other words; the third time
//!    the customer leaves.
//!
//! Replies hold facts in recoverable form: e-mail addresses, ids, dates in words ("Thursday 19 March"),
//! times as `09:00`, postcodes as `4810`, sizes and colours as the `option` of a variant. Addresses read `12 Mill Lane, 4821 Aldport`. Yes is always one of the
//! texts that start with "Yes", no starts with "No". The last message ends with [`user::STOP`].
//!
//! A simulated model that is given a customer's persona follows the same rules, but for what it does not know:
//! how the answer to a question reads.
//!
//! # Intents
//!
//! A wish for an appointment always means the first free slot at or after a day and time ("Friday
//! 20 March at 09:00", which is free then; "the first free slot on or after Thursday 19 March"; "Thursday
//! 19 March at 09:00, or the next free slot after that").
//!
//! Openings state the intent in ordinary words in one of several phrasings, with or without
//! order number, e-mail address and postcode:
//!
//! | intent | words in the request | right course |
//! |---|---|---|
//! | cancel an order | cancel, call off, don't need … any more, stop the order | verify, (account), order, confirm, `cancel_order` |
//! | return items | return, send back, money back, refund | verify, (account), order, confirm, `return_items`; `voucher` after 30 days |
//! | exchange a variant | exchange, swap, replace, … instead of … | verify, (account), order, search, confirm, `exchange_item` |
//! | change the delivery address | new address, moving, deliver … to, wrong address | verify, (account), order, confirm, `change_address` |
//! | book a service | book, appointment, bring in my bike | verify, slots, confirm, `book_appointment` |
//! | move an appointment | move, reschedule, another day, can't make it | verify, account, slots, confirm, `book_appointment` with `moves` |
//! | ask for a delivery | where is, when will … arrive, tracking, hasn't arrived | verify, (account), order, shipment, tell state and date |
//! | injury or failed part | hurt, injured, crashed, broke/snapped while riding | verify, transfer |
//!
//! Where the customer goes by what was in the order, their first words may leave the variant open; asked
//! which order, they name it: "It is the order with the Alder helmet (M)."
//!
//! Some requests are impossible (too late, clearance, shipped, packed without club membership,
//! 1500.00 or more, on the day itself, not the account holder): right is to refuse naming the
//! rule. Some must be transferred (lost, invoice, locked, injury), which only a look-up shows.
//! A refusal *tells* the reason when it holds one of these words: returns too late "60 days", "60-day",
//! "sixty days"; clearance "clearance"; cancel after shipping "shipped", "delivered", "on its way";
//! packed "packed", "club", "club members"; address of an expensive order "1500.00", "1,500", …; moving on the
//! day "day before", "same day", "on the day", "today", …; not verified "verify", "verified", "not match", …;
//! nothing in stock "out of stock", "sold out", "not available", …. Whole words count, in any text of the
//! agent, whatever the case of letters (`told` of a task).
//!
//! # Measurements
//!
//! One value per dialogue each:
//!
//! | metric | meaning |
//! |---|---|
//! | `success` | 1 when the database changed exactly as expected, a transfer happened exactly if expected, and everything the customer must be told was told; else 0 |
//! | `human_requests` | calls of `transfer_to_human` |
//! | `excess_tools` | (tool calls − the task's reference calls) ÷ mean reference calls of the tasks of its split, failed calls and transfers included; the mean over a split is the pooled ratio, −1 when no call was made |
//! | `prompt_length` | characters of the candidate prompt ÷ 1000 |
//! | `turns` | texts the agent sent to the customer |
//! | `latency` | seconds of all model calls of the agent |
//! | `verbosity` | mean characters of those texts ÷ 100; 0 when there is none |
//! | `repeated_calls` | calls with the same tool and arguments as an earlier one with no successful write between them |
//! | `tool_errors` | calls answered by an error |
//! | `policy_violations` | writes to unverified accounts, unconfirmed writes, ineligible writes, and transfers without reason; a write may break several rules |
//!
//! An agent that only greets solves nothing (`excess_tools` −1 on the mean, no violation). One that hands
//! everything over at once solves the 16 tasks that must be handed over, with one violation each:
//! it verified nobody.
//!
//! Where the trade-offs lie: verifying and looking up cost calls; not looking up makes writes go to
//! the wrong order, variant or slot, or past a rule; confirming costs turns and its absence is a
//! violation; a transfer ends a hard dialogue at once but is right only in the cases listed.
//!
//! # Tasks
//!
//! As many as a study asks for, up to 285,000, in batches of 114 of 23 scenarios, each batch about a shop of its own,
//! made by the generator beside this file. A study that asks for fewer draws from 114, those of the first batch unless it skips some. Of a batch 76 can be
//! done, 22 must be refused, 16 must be handed to a human; references have 2 to 6 calls, 4 on average. [`task::Difficulty`] counts
//! what makes a task hard: look-ups, an order the customer cannot name, pushing, impossibility. Half of
//! the customers who cannot name their order have another one with the same product. Splits are drawn
//! by a seed so that both hold the same mix of scenarios.

mod appointment;
pub mod episode;
mod generator;
mod judge;
pub mod language;
pub(crate) mod persona;
pub mod policy;
mod settings;
pub mod shop;
mod split;
mod state;
pub mod task;
#[cfg(test)]
mod tests;
pub mod tools;
pub mod user;

use std::rc::Rc;

use capo_core::ids::hex;
use capo_core::llm::{Role, ToolSpec};
use capo_core::metric::MetricSpec;
use capo_core::usage::Usage;
use capo_core::workload::{Rollout, RolloutContext, RolloutError, Split, Trace, Workload};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use indexmap::IndexMap;
use serde_json::json;
use sha2::{Digest, Sha256};

use episode::{Customer, converse};
pub use generator::BATCH;
use judge::{Verdict, metrics};
use persona::Persona;
pub use settings::{DeskError, DeskSettings, UserKind};
use shop::Shop;
pub use state::{Changes, Records, State};
use task::Task;
use user::ScriptedUser;

const MOST_STEPS: u32 = 200;
/// The most tasks of a study: all of them would take ten seconds and some gigabytes to make.
const MOST_TASKS: usize = 20_000;
/// Tasks that there are.
pub const ALL_TASKS: usize = 2500 * BATCH;

/// The help desk as a workload.
pub struct Desk {
    user: UserKind,
    max_steps: u32,
    /// The shops of the batches of tasks, from the first one on.
    shops: Vec<Rc<Records>>,
    /// The tasks that are drawn from, of which the first so many of the first batch are passed over.
    tasks: IndexMap<String, Task>,
    passed_over: usize,
    tools: Rc<[ToolSpec]>,
    metrics: Vec<MetricSpec>,
    optimize: Vec<String>,
    evaluate: Vec<String>,
    /// Mean reference calls of the tasks that are searched on, and of those held out.
    mean_reference: [f64; 2],
}

impl Desk {
    /// Sets the help desk up.
    ///
    /// # Errors
    /// When a split is empty, both together need more tasks than there are, or `max_steps` is out
    /// of range.
    pub fn new(settings: DeskSettings) -> Result<Self, DeskError> {
        let DeskSettings {
            optimize,
            evaluate,
            seed,
            user,
            max_steps,
            skip,
        } = settings;
        for (split, size) in [("optimize", optimize), ("evaluate", evaluate)] {
            if size == 0 {
                return Err(DeskError::EmptySplit { split });
            }
        }
        if !(1..=MOST_STEPS).contains(&max_steps) {
            return Err(DeskError::Steps(max_steps));
        }
        let asked = optimize.saturating_add(evaluate);
        if skip.saturating_add(asked) > ALL_TASKS {
            return Err(DeskError::TooMany {
                optimize,
                evaluate,
                skip,
                available: ALL_TASKS,
            });
        }
        if asked > MOST_TASKS {
            return Err(DeskError::Large { optimize, evaluate });
        }
        let end = (skip + asked.max(BATCH)).min(ALL_TASKS);
        let (shops, tasks): (Vec<_>, Vec<_>) =
            (skip / BATCH..end.div_ceil(BATCH)).map(generator::batch).unzip();
        let passed_over = skip % BATCH;
        let tasks: Vec<Task> = tasks
            .into_iter()
            .flatten()
            .skip(passed_over)
            .take(end - skip)
            .collect();
        let order = split::mixed_order(&tasks, seed);
        let ids = |range: std::ops::Range<usize>| -> Vec<String> {
            order[range]
                .iter()
                .map(|&index| tasks[index].id.clone())
                .collect()
        };
        let mean_reference = [0..optimize, optimize..asked].map(|range| {
            let calls: usize = order[range.clone()]
                .iter()
                .map(|&index| tasks[index].reference.len())
                .sum();
            calls as f64 / range.len() as f64
        });
        Ok(Self {
            user,
            max_steps,
            shops: shops
                .into_iter()
                .map(|shop| Rc::new(Records::new(shop)))
                .collect(),
            passed_over,
            mean_reference,
            tools: tools::all().iter().map(tools::Tool::spec).collect(),
            metrics: metrics(),
            optimize: ids(0..optimize),
            evaluate: ids(optimize..asked),
            tasks: tasks.into_iter().map(|task| (task.id.clone(), task)).collect(),
        })
    }

    /// The tasks that the splits are drawn from, by id.
    pub fn tasks(&self) -> &IndexMap<String, Task> {
        &self.tasks
    }

    /// The shop that the first of the tasks are about.
    pub fn shop(&self) -> &Shop {
        self.shops[0].shop()
    }

    /// The shop that the task at this place of [`Desk::tasks`] is about.
    fn records(&self, index: usize) -> Rc<Records> {
        Rc::clone(&self.shops[(self.passed_over + index) / BATCH])
    }

    /// A hash of what surrounds the prompt, whatever the task.
    fn surroundings(&self) -> Sha256 {
        let mut hash = Sha256::new();
        for part in [generator::VERSION, policy::TEXT, &episode::frame("")] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        for tool in self.tools.iter() {
            hash.update(serde_json::to_string(tool).unwrap_or_default());
        }
        hash
    }

    /// The tools as the agent is offered them.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }
}

impl Workload for Desk {
    fn name(&self) -> &'static str {
        "desk"
    }

    fn metrics(&self) -> &[MetricSpec] {
        &self.metrics
    }

    fn examples(&self, split: Split) -> &[String] {
        match split {
            Split::Optimize => &self.optimize,
            Split::Evaluate => &self.evaluate,
        }
    }

    fn fingerprint(&self) -> String {
        let mut hash = self.surroundings();
        if self.user == UserKind::Llm {
            for task in self.tasks.values() {
                hash.update(Persona::new(&task.script).instructions());
            }
        }
        hex(&hash.finalize())
    }

    fn contents(&self, split: Split) -> Option<Vec<String>> {
        let surroundings = hex(&self.surroundings().finalize());
        let mean_reference = self.mean_reference[usize::from(split == Split::Evaluate)];
        let content = |id: &String| {
            let persona = match self.user {
                UserKind::Scripted => None,
                UserKind::Llm => Some(Persona::new(&self.tasks.get(id)?.script)),
            };
            let instructions = persona.as_ref().map(Persona::instructions);
            Some(
                json!([
                    surroundings,
                    self.user,
                    self.max_steps,
                    mean_reference,
                    instructions
                ])
                .to_string(),
            )
        };
        self.examples(split).iter().map(content).collect()
    }

    fn description(&self) -> String {
        "The prompt instructs a help-desk agent of a bicycle shop that talks to one customer in a chat and acts \
         through tools: it verifies identities, looks up accounts, orders, parcels, products and workshop slots, \
         cancels, takes back and exchanges, changes delivery addresses, books appointments, and can hand over to \
         a human, which ends the chat. The shop's policy (identity, confirmation before changes, eligibility, \
         when a human is right) and the tools' descriptions are always put beside the prompt, so the prompt \
         should say how to work, not repeat them. Customers may be vague, insist, or want what the policy forbids."
            .to_owned()
    }

    fn max_calls(&self) -> Vec<(Role, u64)> {
        let steps = u64::from(self.max_steps);
        match self.user {
            UserKind::Scripted => vec![(Role::Agent, steps)],
            UserKind::Llm => vec![(Role::Agent, steps), (Role::User, steps + 1)],
        }
    }

    fn rollout<'a>(
        &'a self,
        context: RolloutContext<'a>,
    ) -> LocalBoxFuture<'a, Result<Rollout, RolloutError>> {
        async move {
            let (index, id, task) = self.tasks.get_full(context.example).ok_or_else(|| {
                RolloutError::failed(
                    capo_core::llm::FailureKind::Tool,
                    false,
                    format!(
                        "no task `{}` is drawn from at the help desk, which has desk-001 to desk-{ALL_TASKS}",
                        context.example,
                    ),
                )
            })?;
            let customer = match self.user {
                UserKind::Scripted => Customer::Scripted(ScriptedUser::new(&task.script)),
                UserKind::Llm => Customer::Played(Persona::new(&task.script)),
            };
            let dialogue = converse(
                context,
                self.records(index),
                Rc::clone(&self.tools),
                customer,
                self.max_steps,
            )
            .await?;
            let is_held_out = self.evaluate.contains(id);
            let verdict = Verdict::new(task, &dialogue, self.mean_reference[usize::from(is_held_out)]);
            Ok(Rollout {
                measurements: verdict.measurements(context.prompt),
                trace: Trace {
                    outcome: verdict.outcome(),
                    details: verdict.details(task),
                    messages: dialogue.messages,
                },
                external_usage: Usage::default(),
            })
        }
        .boxed_local()
    }
}
