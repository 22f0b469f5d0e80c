//! Wordings of an agent to a customer, in as many words as its behaviour model allows.

use super::behaviour::BehaviourModel;
use crate::simulated::random::Draw;

/// The agent's way of speaking on one occasion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Voice<'a> {
    behaviours: &'a BehaviourModel,
    draw: Draw,
    openings: &'static [&'static str],
    closings: &'static [&'static str],
}

const OPENINGS: [&str; 5] = [
    "Thank you for getting in touch with us about this today. ",
    "Thank you very much for your message and for your patience. ",
    "I appreciate that you took the time to write to us. ",
    "I'm glad to look after this for you. ",
    "Thank you for the information, that makes it easier for me. ",
];

const CLOSINGS: [&str; 4] = [
    " We at the help desk take every request seriously.",
    " It is our aim that you enjoy every ride.",
    " Thank you for being a customer of ours.",
    " We are happy to be of service to you.",
];

const SERVICE_CLOSINGS: [&str; 3] = [
    " Please take all the time that you need.",
    " Thank you for being a customer of ours.",
    " We are happy to be of service to you.",
];

const GENERAL_OPENINGS: [&str; 4] = [
    "That is a good question, and I am happy to look into it together with you. ",
    "Let us go through this calmly, taking everything into account that the question tells us and nothing that it does not. ",
    "I have read the question carefully, from the first word to the last, and thought about what it asks for. ",
    "There are several ways to look at this; here is the one that I find the clearest and the easiest to follow. ",
];

const GENERAL_CLOSINGS: [&str; 4] = [
    " I hope that this answers the question in full, and that the way to the result has become clear as well as the result itself. If anything has remained open, say so, and I will gladly go over it once more, in other words and at greater length.",
    " As always, it is worth reading the question once more to see whether the answer fits, since small words make large differences; that habit takes a moment and has saved many people from mistakes that they would have been sorry for later.",
    " Thank you for the question.",
    " Feel free to come back with the next one.",
];

impl<'a> Voice<'a> {
    /// The voice for an occasion.
    pub(super) fn new(behaviours: &'a BehaviourModel, draw: Draw) -> Self {
        Self {
            behaviours,
            draw: draw.named("voice"),
            openings: &OPENINGS,
            closings: &CLOSINGS,
        }
    }

    /// The voice for customers of anything.
    pub(super) fn in_service(behaviours: &'a BehaviourModel, draw: Draw) -> Self {
        Self {
            closings: &SERVICE_CLOSINGS,
            ..Self::new(behaviours, draw)
        }
    }

    /// The voice for a question outside a help desk.
    pub(super) fn in_general(behaviours: &'a BehaviourModel, draw: Draw) -> Self {
        Self {
            openings: &GENERAL_OPENINGS,
            closings: &GENERAL_CLOSINGS,
            ..Self::new(behaviours, draw)
        }
    }

    /// Whether the agent keeps this text short.
    fn terse(self) -> bool {
        self.draw.named("terse").uniform() < self.behaviours.brevity()
    }

    /// A text with pleasantries around it unless the agent is brief.
    pub(super) fn say(self, matter: &str) -> String {
        if self.terse() {
            return matter.to_owned();
        }
        let mut text = String::with_capacity(matter.len() + 140);
        text.push_str(self.openings[self.draw.named("opening").pick(self.openings.len())]);
        text.push_str(matter);
        if self.draw.named("closing").chance(0.6) {
            text.push_str(self.closings[self.draw.named("closed").pick(self.closings.len())]);
        }
        text
    }

    /// A report of something done, with a recap if the agent sums up, and a question for more.
    pub(super) fn report(self, done: &str, recap: &str) -> String {
        let mut text = self.say(done);
        if self.draw.named("recap").uniform() < self.behaviours.summarises() {
            text.push_str(" To sum up: ");
            text.push_str(recap);
        }
        text.push_str(" Is there anything else?");
        text
    }
}
