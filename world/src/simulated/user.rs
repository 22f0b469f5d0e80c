//! The simulated customer: plays the persona that its system message describes.
//!
//! Gives facts when asked for them, those of the request at hand before those that always hold;
//! agrees to what it wants and to nothing else; insists where it is told to; and ends with the stop
//! token it is told. It holds no state: like a model, it makes sense of the whole conversation
//! anew each time.

mod hearing;
mod persona;

use capo_core::llm::Message;

use hearing::{Deed, Heard, Topic, contradicts};
use persona::{Persona, Want};

/// How often a customer says what they want again before leaving.
const PATIENCE: u32 = 2;
/// How often a customer answers the same question.
const REPETITIONS: usize = 4;
/// Answers of the help desk after which a customer gives up.
const LONG_ENOUGH: u32 = 24;

/// The next words of the customer. In its own conversation the model is the customer and the help
/// desk is the user.
pub(super) fn speak(system: &str, messages: &[Message]) -> String {
    let persona = Persona::read(system);
    let mut customer = Customer::new(&persona);
    // What the help desk says before the customer has said anything is a greeting.
    let mut said = customer.want().text.to_owned();
    let dialogue = messages
        .iter()
        .skip_while(|message| !matches!(message, Message::Assistant(_)));
    for message in dialogue {
        if let Message::User { content } = message {
            said = customer.reply(content);
        }
    }
    said
}

/// A customer in the middle of a conversation.
struct Customer<'a> {
    persona: &'a Persona<'a>,
    want: usize,
    insisted: usize,
    haggled: bool,
    declined_human: bool,
    lost: u32,
    replies: u32,
    asked: Vec<Topic>,
}

impl<'a> Customer<'a> {
    fn new(persona: &'a Persona<'a>) -> Self {
        Self {
            persona,
            want: 0,
            insisted: 0,
            haggled: false,
            declined_human: false,
            lost: 0,
            replies: 0,
            asked: Vec::new(),
        }
    }

    fn want(&self) -> &'a Want<'a> {
        &self.persona.wants[self.want]
    }

    fn reply(&mut self, text: &str) -> String {
        self.replies += 1;
        if self.replies > LONG_ENOUGH {
            return self.leave("This is leading nowhere.");
        }
        let heard = Heard::read(text);
        if !heard.topics.is_empty() {
            self.tell(&heard.topics)
        } else if heard.proposes {
            self.decide(&heard)
        } else if self.is_answered(&heard) || (heard.reports && !heard.refuses) {
            self.next("Thank you.")
        } else if heard.refuses {
            self.take_refusal()
        } else if heard.reports || heard.closes {
            self.next("Thank you.")
        } else {
            self.lose_the_thread(if heard.asks {
                "I don't know that, sorry."
            } else {
                "Sorry, I don't follow."
            })
        }
    }

    /// Answers questions for facts.
    fn tell(&mut self, topics: &[Topic]) -> String {
        let mut told: Vec<&str> = Vec::new();
        for &topic in topics {
            let times = self.asked.iter().filter(|&&known| known == topic).count();
            if times == REPETITIONS {
                return self.leave("You have asked me that often enough.");
            }
            self.asked.push(topic);
            let facts = self.want().facts.iter().chain(&self.persona.facts);
            let answers = facts.into_iter().find(|fact| fact.is_about(topic));
            let answer = match answers {
                Some(fact) => fact.answers[times.min(fact.answers.len() - 1)],
                None => match topic {
                    Topic::Goal => self.want().again,
                    Topic::Reason => "I simply changed my mind.",
                    Topic::Item | Topic::Variant => "As I said, nothing beyond what I told you.",
                    _ => "I don't know that, sorry.",
                },
            };
            if !told.contains(&answer) {
                told.push(answer);
            }
        }
        told.join(" ")
    }

    /// Says yes or no to a proposal.
    fn decide(&mut self, heard: &Heard) -> String {
        let want = self.want();
        let offered = heard.offered.as_str();
        let wanted = match &want.agrees_to {
            Some(deeds) => deeds.iter().any(|deed| deed.is_named_in(offered)),
            // A persona that does not say what it agrees to is glad of any help but this.
            None => !Deed::Human.is_named_in(offered),
        };
        if want.declines.iter().any(|deed| deed.is_named_in(offered)) {
            return match self.insist() {
                Some(push) => format!("No, I don't want that. {push}"),
                None => self.leave("No, I don't want that. I'll leave it."),
            };
        }
        if Deed::Human.is_named_in(offered) && !wanted {
            if self.persona.accepts_human || self.declined_human {
                return "Yes, please put me through.".to_owned();
            }
            self.declined_human = true;
            return format!("No, I'd rather you solved it here. {}", want.again);
        }
        if let Some(known) = want.known.iter().find(|known| contradicts(offered, known)) {
            return format!("No, that's not the one. I mean {known}.");
        }
        if wanted || !Deed::any_is_named_in(offered) {
            if let Some(haggle) = want.haggle.filter(|_| wanted && !self.haggled) {
                self.haggled = true;
                return haggle.to_owned();
            }
            return "Yes, please go ahead.".to_owned();
        }
        if heard.refuses {
            return self.take_refusal();
        }
        self.lose_the_thread("No, that is not what I asked for.")
    }

    /// Whether the customer only wanted to be told something, and was.
    fn is_answered(&self, heard: &Heard) -> bool {
        match &self.want().agrees_to {
            Some(deeds) => deeds.is_empty() && heard.informs,
            None => heard.informs && !heard.refuses,
        }
    }

    fn take_refusal(&mut self) -> String {
        match self.insist() {
            Some(push) => push.to_owned(),
            None => self.next("All right, then not."),
        }
    }

    /// The next of the persona's words against a refusal.
    fn insist(&mut self) -> Option<&'a str> {
        let push = self.want().insists.get(self.insisted)?;
        self.insisted += 1;
        Some(push)
    }

    /// Comes with the next want, or says goodbye.
    fn next(&mut self, before: &str) -> String {
        if self.want + 1 == self.persona.wants.len() {
            return self.leave(&format!("{before} That is all."));
        }
        self.want += 1;
        self.insisted = 0;
        self.haggled = false;
        // Another matter has an order, an item, a day of its own.
        let facts = &self.persona.facts;
        self.asked
            .retain(|&topic| facts.iter().any(|fact| fact.is_about(topic)));
        format!("{before} One more thing: {}", self.want().text)
    }

    fn lose_the_thread(&mut self, before: &str) -> String {
        self.lost += 1;
        if self.lost > PATIENCE {
            return self.leave("This is leading nowhere.");
        }
        format!("{before} {}", self.want().again)
    }

    fn leave(&self, words: &str) -> String {
        format!("{words} {}", self.persona.stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "You play a customer.\n\nWhat you want, one after the other:\n1. Please cancel my order (O-1042).\n   In other words: I want order O-1042 cancelled.\n   You agree to: cancelling\n   You do not accept: a voucher\n   If the help desk names another number or time, say \"No\" and that you mean: O-1042\n   Before you agree, try: Is there a discount instead?\n   If it is refused, insist: Make an exception!\n   Asked for order number: It is O-1042.\n2. When does my other order arrive?\n   In other words: I want to know when O-1050 arrives.\n   You agree to: nothing that changes anything. You want to be told.\n   Asked for order number: It is O-1050.\n\nWhat you know:\n- e-mail address: It's ada@mail.example. / asked again: ada@mail.example\n\nYou would rather not accept being handed to a human. Say goodbye with [END]. Use [END] nowhere else.";

    /// A conversation with the customer of `SYSTEM`.
    struct Conversation {
        system: String,
        messages: Vec<Message>,
    }

    impl Conversation {
        /// The customer has made the first request.
        fn new(system: &str) -> Self {
            let mut conversation = Self {
                system: system.to_owned(),
                messages: vec![Message::system(system)],
            };
            conversation.says("Hello! How can I help you?");
            conversation
        }

        /// What the customer answers.
        fn says(&mut self, desk: &str) -> String {
            self.messages.push(Message::user(desk));
            let said = speak(&self.system, &self.messages);
            self.messages.push(Message::assistant(&said));
            said
        }
    }

    #[test]
    fn the_persona_is_played() {
        let mut talk = Conversation::new(SYSTEM);
        assert_eq!(
            talk.messages[2],
            Message::assistant("Please cancel my order (O-1042).")
        );
        assert_eq!(
            talk.says("Could you give me your e-mail address?"),
            "It's ada@mail.example."
        );
        assert_eq!(talk.says("And the email once more, please?"), "ada@mail.example");
        assert_eq!(talk.says("I'm sorry, I cannot cancel it."), "Make an exception!");
        assert!(
            talk.says("I cannot.")
                .ends_with("When does my other order arrive?")
        );
        assert!(talk.says("It arrives on Thursday 19 March.").ends_with("[END]"));
    }

    #[test]
    fn facts_belong_to_the_request_at_hand() {
        let mut talk = Conversation::new(SYSTEM);
        assert_eq!(talk.says("What is the order number?"), "It is O-1042.");
        talk.says("Your order has been cancelled.");
        assert_eq!(talk.says("What is the order number?"), "It is O-1050.");
    }

    #[test]
    fn only_what_is_wanted_gets_a_yes() {
        let mut talk = Conversation::new(SYSTEM);
        assert_eq!(
            talk.says("I would cancel order O-1043. Shall I go ahead?"),
            "No, that's not the one. I mean O-1042."
        );
        assert!(
            talk.says("Shall I exchange it?")
                .starts_with("No, that is not what I asked for.")
        );
        assert!(
            talk.says("Shall I hand you over to a colleague?")
                .starts_with("No, I'd rather")
        );
        assert!(
            talk.says("Shall I cancel O-1042 for a voucher?")
                .starts_with("No, I don't want that. Make")
        );
        assert_eq!(
            talk.says("Shall I cancel O-1042?"),
            "Is there a discount instead?"
        );
        assert_eq!(talk.says("No. Shall I cancel O-1042?"), "Yes, please go ahead.");
        let mut refused = Conversation::new(SYSTEM);
        refused.says("Shall I transfer you to a colleague?");
        assert!(
            refused
                .says("Shall I transfer you to a colleague?")
                .starts_with("Yes")
        );
        let mut willing = Conversation::new(&SYSTEM.replace("would rather not accept", "accept"));
        assert!(
            willing
                .says("Shall I transfer you to a colleague?")
                .starts_with("Yes")
        );
    }

    #[test]
    fn a_desk_that_goes_in_circles_is_left() {
        for text in [
            "Hello and welcome.",
            "What is your order number?",
            "How old are you?",
        ] {
            let mut talk = Conversation::new(SYSTEM);
            let answers: Vec<String> = (0..6).map(|_| talk.says(text)).collect();
            assert!(answers.iter().any(|said| said.ends_with("[END]")), "{answers:#?}");
            assert!(!answers[0].ends_with("[END]"), "{answers:#?}");
        }
    }

    #[test]
    fn a_persona_in_a_plain_form_is_played_too() {
        let plain = "You are a customer of a bank.\n1. Please block my card.\n- Email: ada@mail.example\nEnd with ###STOP###.";
        let mut talk = Conversation::new(plain);
        assert_eq!(talk.messages[2], Message::assistant("Please block my card."));
        assert_eq!(talk.says("May I have your email?"), "ada@mail.example");
        assert_eq!(talk.says("Shall I block the card?"), "Yes, please go ahead.");
        assert!(talk.says("Your card has been blocked.").ends_with("###STOP###"));
    }
}
