//! The texts that frame a candidate prompt and play the user, assembled as the benchmark does.

use std::fmt::Write as _;

use super::task::{Instructions, Parts, Scenario};

/// What the agent says before anybody else.
pub const GREETING: &str = "Hi! How can I help you today?";

/// What a user's text holds when the conversation is over: done, handed over, or not to be played.
pub const STOPS: [&str; 3] = ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"];

/// The marker of the guidelines that stands for a persona's own, of which there are none here.
const PERSONA_GUIDELINES: &str = "<PERSONA_GUIDELINES>";

/// The agent's system message: candidate prompt and policy.
pub fn agent(prompt: &str, policy: &str) -> String {
    format!("<instructions>\n{prompt}\n</instructions>\n<policy>\n{policy}\n</policy>")
}

/// The system message of the model that plays the user.
pub fn user(guidelines: &str, scenario: &Scenario) -> String {
    let guidelines = guidelines.replace(PERSONA_GUIDELINES, "");
    format!("{guidelines}\n\n<scenario>\n{}\n</scenario>", written(scenario))
}

/// A scenario as the user reads it.
pub fn written(scenario: &Scenario) -> String {
    let mut text = String::new();
    if let Some(persona) = &scenario.persona {
        text.push_str("Persona:\n");
        text.push_str(&indented(persona));
        text.push('\n');
    }
    let instructions = match &scenario.instructions {
        Instructions::Parts(parts) => in_parts(parts),
        Instructions::Text(text) => text.clone(),
    };
    text.push_str("Instructions:\n");
    text.push_str(&indented(&instructions));
    text
}

fn in_parts(parts: &Parts) -> String {
    let mut text = format!("Domain: {}", parts.domain);
    let known = [
        ("Reason for call", Some(&parts.reason_for_call)),
        ("Known info", parts.known_info.as_ref()),
        ("Unknown info", parts.unknown_info.as_ref()),
        ("Task instructions", Some(&parts.task_instructions)),
    ];
    for (title, part) in known {
        if let Some(part) = part {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{title}:\n{}", indented(part));
        }
    }
    text
}

/// With a tab before every line that is not only white space.
fn indented(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| {
            if line.trim().is_empty() {
                line.to_owned()
            } else {
                format!("\t{line}")
            }
        })
        .collect()
}
