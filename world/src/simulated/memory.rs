//! The cache of a model object: nothing but pure results by what they were
//! made from, so that forgetting or sharing it changes no answer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::rc::Rc;

use capo_core::llm::{Message, ToolSpec};
use foldhash::fast::FixedState;

use super::agent::{Instructed, Notes};
use super::fingerprint::value_fingerprint;
use super::random::Draw;

/// Entries of a kind kept before all are forgotten.
const CAPACITY: usize = 128;

/// A map by keys that are hashes themselves.
type ByKey<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

/// Takes a 64-bit key for its own hash.
#[derive(Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The memo of one model object.
#[derive(Debug, Default)]
pub(super) struct Memory {
    instructed: RefCell<ByKey<Rc<Instructed>>>,
    notes: RefCell<ByKey<Notes>>,
    /// The tools of the last request with their length in tokens. Holding them keeps their address
    /// from being used for others.
    tools: RefCell<Option<(Rc<[ToolSpec]>, u64)>>,
}

impl Memory {
    /// What an agent makes of a system message.
    pub(super) fn instructed(&self, system: &str, read: impl FnOnce() -> Instructed) -> Rc<Instructed> {
        let key = FixedState::default().hash_one(system);
        let mut known = self.instructed.borrow_mut();
        if known.len() >= CAPACITY {
            known.clear();
        }
        Rc::clone(known.entry(key).or_insert_with(|| Rc::new(read())))
    }

    /// The length of tools in tokens.
    pub(super) fn tool_tokens(&self, tools: &Rc<[ToolSpec]>, count: impl FnOnce(&[ToolSpec]) -> u64) -> u64 {
        let mut known = self.tools.borrow_mut();
        match &*known {
            Some((last, tokens)) if Rc::ptr_eq(last, tools) => *tokens,
            _ => {
                let tokens = count(tools);
                *known = Some((Rc::clone(tools), tokens));
                tokens
            }
        }
    }

    /// Hands the notes of a conversation to `use_notes`, taken from where the longest beginning of
    /// it that is known ends.
    pub(super) fn with_notes<T>(&self, messages: &[Message], use_notes: impl FnOnce(&Notes) -> T) -> T {
        let mut key = Draw::new(0);
        let keys: Vec<u64> = messages
            .iter()
            .map(|message| {
                key = key.keyed(fingerprint(message));
                key.key()
            })
            .collect();
        let mut known = self.notes.borrow_mut();
        if known.len() >= CAPACITY {
            known.clear();
        }
        let mut read = messages.len();
        let mut notes = loop {
            if read == 0 {
                break Notes::default();
            }
            if let Some(notes) = known.remove(&keys[read - 1]) {
                break notes;
            }
            read -= 1;
        };
        for message in &messages[read..] {
            notes.take(message);
        }
        let result = use_notes(&notes);
        if let Some(&last) = keys.last() {
            known.insert(last, notes);
        }
        result
    }
}

/// A hash of a message, for this process alone.
fn fingerprint(message: &Message) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    match message {
        // Notes are of what was said and done, whatever the instructions.
        Message::System { .. } => 1_u8.hash(&mut hasher),
        Message::User { content } => (2_u8, content).hash(&mut hasher),
        Message::Tool { call_id, content } => (3_u8, call_id, content).hash(&mut hasher),
        Message::Assistant(answer) => {
            (4_u8, answer.text()).hash(&mut hasher);
            for call in &answer.tool_calls {
                (&call.id, &call.name, value_fingerprint(&call.arguments)).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}
