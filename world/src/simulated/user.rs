//! The simulated customer: plays the persona that its system message describes.
//!
//! It reads the persona as a script and follows that as the help desk's own customers follow theirs
//! ([`crate::desk::user`]). It holds no state: like a model, it makes sense of the whole conversation anew each
//! time.

use capo_core::llm::Message;

use crate::desk::persona::ReadPersona;
use crate::desk::user::ScriptedUser;

/// A customer has enough after so many replies of the help desk: nothing else ends one that proposes the same for
/// ever.
const MOST_REPLIES: usize = 24;

/// The next words of the customer. In its own conversation the model is the customer and the help
/// desk is the user.
pub(super) fn speak(system: &str, messages: &[Message]) -> String {
    let ReadPersona { script, open, stop } = ReadPersona::read(system);
    let mut customer = ScriptedUser::of_persona(&script, &stop, &open);
    // What the help desk says before the customer has said anything is a greeting.
    let mut said = customer.open();
    let dialogue = messages
        .iter()
        .skip_while(|message| !matches!(message, Message::Assistant(_)));
    let mut replies = 0;
    for message in dialogue {
        if let Message::User { content } = message {
            replies += 1;
            said = customer.reply(content);
        }
    }
    if replies > MOST_REPLIES { stop } else { said }
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
        assert!(talk.says("Shall I hand you over?").starts_with("No, I'd rather"));
        assert!(
            talk.says("Shall I cancel O-1042 for a voucher?")
                .starts_with("No, I don't want a voucher. Make")
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
