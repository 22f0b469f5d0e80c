//! The simulated customer: plays the persona that its system message describes.
//!
//! Reads numbered wants and `Topic: fact` lines, gives facts when asked for them, says yes to what
//! it wants, insists where it is told to, and ends with the stop token it is told.

use capo_core::llm::Message;

/// A persona as its system message describes it.
#[derive(Debug, Default)]
struct Persona<'a> {
    wants: Vec<&'a str>,
    insists: Vec<&'a str>,
    facts: Vec<(&'a str, &'a str)>,
    stop: &'a str,
}

impl<'a> Persona<'a> {
    fn read(system: &'a str) -> Self {
        let mut persona = Self {
            stop: stop_token(system),
            ..Self::default()
        };
        for line in system.lines() {
            let line = line.trim();
            if let Some((number, want)) = line.split_once(". ")
                && number.bytes().all(|byte| byte.is_ascii_digit())
            {
                persona.wants.push(want.split(" (").next().unwrap_or(want));
            } else if let Some((_, push)) = line.split_once("insist: ") {
                persona.insists.push(push);
            } else if let Some((topic, fact)) = line
                .trim_start_matches("- ")
                .trim_start_matches("Asked for ")
                .split_once(": ")
                && !topic.contains(' ')
            {
                persona
                    .facts
                    .push((topic, fact.split(" / ").next().unwrap_or(fact)));
            }
        }
        persona
    }
}

/// The token that ends the conversation: the last word in square brackets or hashes.
fn stop_token(system: &str) -> &str {
    system
        .split_whitespace()
        .map(|word| word.trim_end_matches(['.', ',', ';']))
        .rfind(|word| {
            (word.starts_with('[') && word.ends_with(']')) || (word.len() > 6 && word.starts_with("###"))
        })
        .unwrap_or("[END]")
}

/// The next words of the customer. In its own conversation the model is the customer and the help
/// desk is the user.
pub(super) fn speak(system: &str, messages: &[Message]) -> String {
    let persona = Persona::read(system);
    let stop = persona.stop;
    let mut heard = Vec::new();
    let mut own = Vec::new();
    for message in messages {
        match message {
            Message::User { content } => heard.push(content.to_lowercase()),
            Message::Assistant(answer) => own.push(answer.text()),
            Message::System { .. } | Message::Tool { .. } => {}
        }
    }
    let Some(last) = heard.last() else {
        return persona
            .wants
            .first()
            .map_or_else(|| "Hello.".to_owned(), |want| (*want).to_owned());
    };
    if own.is_empty() {
        return persona
            .wants
            .first()
            .map_or_else(|| format!("Never mind. {stop}"), |want| (*want).to_owned());
    }
    if own.len() > 24 {
        return format!("This is leading nowhere. {stop}");
    }
    let has = |cues: &[&str]| cues.iter().any(|cue| last.contains(cue));
    if has(&[
        "shall i",
        "should i",
        "would you like me to",
        "do you want me to",
        "please confirm",
    ]) {
        return "Yes, please go ahead.".to_owned();
    }
    if has(&["cannot", "can't", "unable", "not possible", "unfortunately"]) {
        let pushed = own.iter().filter(|text| persona.insists.contains(text)).count();
        return match persona.insists.get(pushed) {
            Some(push) => (*push).to_owned(),
            None => next(&persona, &own, stop, "All right, then not."),
        };
    }
    if last.contains('?') && has(&["could you", "what", "which", "may i have", "please", "tell me"]) {
        const TOPICS: [(&str, &[&str]); 7] = [
            ("email", &["e-mail", "email"]),
            ("postcode", &["postcode", "postal code", "zip"]),
            ("name", &["your name", "full name"]),
            ("order", &["order number", "which order"]),
            ("address", &["new address", "delivery address"]),
            ("date", &["which day", "day and time", "when"]),
            ("variant", &["size", "colour"]),
        ];
        let told: Vec<&str> = TOPICS
            .iter()
            .filter(|(_, cues)| has(cues))
            .filter_map(|(topic, _)| {
                persona
                    .facts
                    .iter()
                    .find(|(known, _)| known.to_lowercase().contains(topic))
                    .map(|(_, fact)| *fact)
            })
            .collect();
        if !told.is_empty() {
            return told.join(" ");
        }
        if !has(&["anything else"]) {
            return "I don't know that, sorry.".to_owned();
        }
    }
    next(&persona, &own, stop, "Thank you.")
}

/// The next want that has not been said, or goodbye.
fn next(persona: &Persona<'_>, own: &[&str], stop: &str, before: &str) -> String {
    match persona
        .wants
        .iter()
        .find(|want| !own.iter().any(|text| text.contains(**want)))
    {
        Some(want) => format!("{before} One more thing: {want}"),
        None => format!("{before} That is all. {stop}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "You play a customer.\n\nWhat you want, one after the other:\n1. Please cancel order O-1042. (I want it cancelled.)\n   If it is refused, insist: Make an exception!\n2. Where is O-1050? (Tell me.)\n\nWhat you know:\n- Email: It's ada@mail.example. / asked again: ada@mail.example\n\nUse [END] nowhere else.";

    #[test]
    fn the_persona_is_played() {
        let mut messages = vec![
            Message::system(SYSTEM),
            Message::user("Hello! How can I help you?"),
        ];
        let mut turn = |desk: Option<&str>| {
            if let Some(desk) = desk {
                messages.push(Message::user(desk));
            }
            let said = speak(SYSTEM, &messages);
            messages.push(Message::assistant(&said));
            said
        };
        assert_eq!(turn(None), "Please cancel order O-1042.");
        assert_eq!(
            turn(Some("Could you give me your e-mail address?")),
            "It's ada@mail.example."
        );
        assert_eq!(turn(Some("I'm sorry, I cannot cancel it.")), "Make an exception!");
        assert!(turn(Some("I cannot.")).ends_with("Where is O-1050?"));
        assert!(turn(Some("It arrives on Thursday.")).ends_with("[END]"));
    }
}
