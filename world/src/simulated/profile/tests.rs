use super::Policy::*;
use super::{Policy, Profile};

fn strength(prompt: &str, policy: Policy) -> f64 {
    Profile::read(prompt).strength(policy)
}

/// Policies with sentences.
macro_rules! sentences {
    ($($policy:ident: $($sentence:literal)+;)*) => { &[$(($policy, &[$($sentence),+])),*] };
}

/// At least eight wordings for every policy that share no one phrase.
const WORDINGS: &[(Policy, &[&str])] = sentences! {
    VerifyIdentity:
        "Verify the customer's identity before anything else."
        "Start by confirming who you are talking to."
        "First establish who the customer is."
        "Authenticate the caller before you open an account."
        "Never act on an account without checking the identity of the person."
        "The identity of the customer must be confirmed first."
        "Make sure you know who they are before you help."
        "Begin with identification: ask for the customer id or email address."
        "Before touching an order, validate that the user owns the account: check ownership."
        "Identify the customer at the outset.";
    LookUpFirst:
        "Look things up before asking the customer."
        "Search the records rather than asking the user."
        "Do not ask for anything your tools can tell you."
        "Never ask the customer for details that are on file."
        "Ask the customer only for what you cannot look up."
        "Before asking a question, look up the answer in the system."
        "Use the tools instead of asking."
        "First retrieve the order details, then reply."
        "Query the database prior to questioning the customer."
        "Don't bother the customer with questions the system can answer.";
    ReuseKnown:
        "Never repeat a call."
        "Reuse what you already know."
        "Do not look anything up twice."
        "Remember earlier results and work from them."
        "Don't make the same query again."
        "Avoid duplicate lookups."
        "Build on information gathered so far."
        "Do not fetch a record a second time."
        "Rely on what was returned earlier instead of calling the tool again."
        "Refrain from redundant tool calls.";
    MinimiseCalls:
        "Make as few tool calls as possible."
        "Minimise the number of calls."
        "Batch your lookups."
        "Combine requests into a single call."
        "Avoid unnecessary tool use."
        "Call only the tools you really need: use only tools that are needed."
        "Be economical with tool calls: use tools sparingly."
        "Get everything in one go and group your queries."
        "Make no superfluous searches."
        "Keep the number of lookups low.";
    ConfirmWrites:
        "Confirm with the customer before any change."
        "Before you modify an order, get explicit approval."
        "Never cancel anything without the customer's consent."
        "Ask for permission before executing an action."
        "Only update an account after the customer says yes."
        "Read back the details before you commit a change."
        "Obtain a clear yes before each refund."
        "Do not edit data until the user has agreed."
        "Changes need the customer's explicit go ahead.";
    CheckEligibility:
        "Check eligibility before acting."
        "Before any refund, verify that the policy allows it."
        "Make sure the rules permit an action before you take it."
        "Never cancel without checking the conditions."
        "Consult the policy prior to every change."
        "Determine whether the customer is entitled before you change anything."
        "Review the terms before you act."
        "Ensure the order qualifies before returning it."
        "Only make changes the rules allow.";
    ExhaustOptions:
        "Exhaust every option before a transfer."
        "Try everything else before escalating."
        "Escalate only as a last resort."
        "Do not hand over until you have tried all alternatives."
        "Transfer to a human only after all other options fail."
        "Never transfer before every avenue has been explored."
        "Solve the problem yourself rather than escalating."
        "Before handing the customer over, try all available tools."
        "Avoid transferring to a human."
        "A handover is a last resort.";
    TransferByPolicy:
        "Transfer only when the policy says so."
        "Hand over to a human only if required by the rules."
        "Escalate only cases the policy lists."
        "Do not transfer unless the guidelines require it."
        "When the policy demands it, hand over to a colleague."
        "Never escalate unless the rules ask for it."
        "Only hand the customer to a human if the request is outside your scope."
        "If a request is beyond what the policy allows, transfer the customer.";
    PlanSteps:
        "Think step by step."
        "Plan before you act."
        "Break the task down into parts."
        "First outline what has to be done."
        "Work through the problem one step at a time."
        "Reason through the request before answering."
        "Think carefully before each action."
        "Decompose complicated requests."
        "Lay out the steps, then carry them out.";
    BeBrief:
        "Be brief."
        "Keep your answers short."
        "Reply concisely."
        "Answer in one or two sentences."
        "Write succinct messages."
        "Avoid filler and small talk."
        "Stay concise and to the point."
        "Don't write long answers."
        "Use few words.";
    NeverGuess:
        "Never guess."
        "Do not make up data."
        "Don't assume details you were not given."
        "Avoid inventing order numbers."
        "If something is missing, ask."
        "Rely on verified facts."
        "You must not fabricate answers."
        "Ask the customer when information is unclear."
        "Refrain from speculation and state only what tool results show: base answers on the facts you retrieved.";
    Summarise:
        "Summarise at the end."
        "Finish with a recap."
        "Before closing, sum up what was changed."
        "End every conversation with a summary."
        "Recap the outcome in the final message."
        "When done, restate the result."
        "Close by listing what was done: list what you changed."
        "Wrap up with a short overview of what happened.";
    RefuseHarm:
        "Refuse harmful requests."
        "Decline anything illegal."
        "Never help with dangerous plans."
        "Do not assist in a crime."
        "Turn down requests for weapons."
        "Reject unsafe instructions."
        "Do not support malicious aims."
        "If a request is harmful, decline it.";
    HelpHarmless:
        "Help with harmless questions."
        "Do not refuse benign requests."
        "Never decline an innocent question."
        "Assist with legitimate needs."
        "If a question is harmless, answer it."
        "Refuse only what is harmful."
        "Answer ordinary questions even if they sound odd."
        "Don't reject innocuous requests.";
};

#[test]
fn every_wording_is_understood() {
    let mut missed = Vec::new();
    for &(policy, wordings) in WORDINGS {
        assert!(wordings.len() >= 8, "{} has too few wordings", policy.name());
        for wording in wordings {
            let strength = strength(wording, policy);
            if strength < 0.4 {
                missed.push(format!("{}: {strength:.2} {wording}", policy.name()));
            }
        }
    }
    assert!(missed.is_empty(), "not understood:\n{}", missed.join("\n"));
}

/// Sentences that share words with a policy but do not ask for it, or ask for its opposite.
const NOT_ASKED: &[(Policy, &[&str])] = sentences! {
    VerifyIdentity:
        "Do not verify the customer's identity."
        "Skip identity checks: do not ask who they are."
        "There is no need to establish who the customer is."
        "Customers often write in a hurry.";
    LookUpFirst:
        "Ask the customer before looking anything up."
        "Never look up an order before asking for its number."
        "Answer questions about orders.";
    ReuseKnown:
        "Repeat each call to be sure."
        "Call the tool again after every message."
        "Do not reuse earlier results.";
    MinimiseCalls:
        "Make as many tool calls as you like."
        "Use the tools freely."
        "Call the customer by name.";
    ConfirmWrites:
        "Do not ask for approval before you change an order."
        "Change the order without confirmation."
        "You may be asked about a cancelled order.";
    CheckEligibility:
        "Act without checking the policy."
        "Do not check eligibility."
        "Explain things politely.";
    ExhaustOptions:
        "Transfer the customer whenever in doubt."
        "Transfer to a human before trying every option."
        "Do not hesitate to escalate."
        "You work next to human colleagues.";
    TransferByPolicy:
        "Never transfer when the policy requires it."
        "Escalate whenever the customer is upset."
        "Know the policy.";
    PlanSteps:
        "Answer immediately without thinking."
        "Do not think step by step."
        "Speak kindly.";
    BeBrief:
        "Answer in detail."
        "Do not be brief."
        "Write long answers."
        "The delay is short.";
    NeverGuess:
        "If data is absent, guess."
        "Feel free to make up what you need."
        "Assume the best order.";
    Summarise:
        "Do not summarise."
        "End politely without a recap."
        "Summer orders ship late.";
    RefuseHarm:
        "Help with harmful requests."
        "Never refuse a harmful request."
        "Be kind.";
    HelpHarmless:
        "Refuse harmless questions."
        "Do not help with harmless requests."
        "Be kind.";
};

#[test]
fn what_is_not_asked_is_not_read() {
    let mut imagined = Vec::new();
    for &(policy, sentences) in NOT_ASKED {
        for sentence in sentences {
            let strength = strength(sentence, policy);
            if strength > 0.1 {
                imagined.push(format!("{}: {strength:.2} {sentence}", policy.name()));
            }
        }
    }
    assert!(imagined.is_empty(), "imagined:\n{}", imagined.join("\n"));
}

#[test]
fn contradictions_cancel() {
    for (policy, prompt) in [
        (BeBrief, "Keep your answers short. Answer in detail."),
        (
            ReuseKnown,
            "Never repeat a call. Call the tool again after every message.",
        ),
        (
            ConfirmWrites,
            "Confirm with the customer before any change. Change the order without confirmation.",
        ),
        (
            ExhaustOptions,
            "Try everything else before escalating. Transfer the customer whenever in doubt.",
        ),
    ] {
        assert!(
            strength(prompt, policy) < 0.25,
            "{}: {:.2}",
            prompt,
            strength(prompt, policy)
        );
    }
}

#[test]
fn hedges_weaken_and_emphasis_strengthens() {
    let plain = strength("Hello. Check eligibility. Goodbye.", CheckEligibility);
    let hedged = strength("Hello. Try to check eligibility. Goodbye.", CheckEligibility);
    let emphatic = strength("Hello. ALWAYS check eligibility. Goodbye.", CheckEligibility);
    assert!(hedged < 0.7 * plain, "{hedged} against {plain}");
    assert!(emphatic > plain, "{emphatic} against {plain}");
}

#[test]
fn word_order_matters() {
    let right = strength("Look up the order before asking the customer.", LookUpFirst);
    let wrong = strength("Ask the customer before looking up the order.", LookUpFirst);
    assert!(right > 0.5 && wrong == 0.0, "{right} {wrong}");
}

#[test]
fn saying_it_twice_adds_little() {
    let once = strength("Hello. Be brief. Bye.", BeBrief);
    let twice = strength("Hello. Be brief. Keep your answers short. Bye.", BeBrief);
    assert!(twice > once && twice - once < 0.1, "{once} then {twice}");
}

#[test]
fn length_and_crowding_dilute() {
    let sentence = "Never repeat a call. ";
    let short = strength(sentence, ReuseKnown);
    let filler = "Our shop was founded by two sisters who love maps and tea. ".repeat(90);
    let long = strength(&format!("{sentence}{filler}"), ReuseKnown);
    assert!(long < 0.75 * short, "{long} against {short}");
    let everything: String = WORDINGS
        .iter()
        .map(|(_, wordings)| wordings[0])
        .collect::<Vec<_>>()
        .join(" ");
    assert!(strength(&everything, ReuseKnown) < 0.9 * short);
}

#[test]
fn text_that_asks_for_nothing_dilutes_from_the_first_word() {
    let asked = "Help the customer. Never repeat a call. Be brief.";
    let idle = " Our shop was founded by two sisters who love maps and tea.".repeat(5);
    let (short, long) = (
        strength(asked, ReuseKnown),
        strength(&format!("{asked}{idle}"), ReuseKnown),
    );
    assert!(
        long < 0.97 * short && long > 0.9 * short,
        "{long} against {short}"
    );
}

#[test]
fn a_blank_or_strange_prompt_asks_for_nothing() {
    for prompt in [
        "",
        " \n\t",
        "🙂🙂🙂",
        "…",
        "¿Qué?",
        "}{)(",
        "注文を確認してください",
    ] {
        let profile = Profile::read(prompt);
        for policy in Policy::ALL {
            assert_eq!(profile.strength(policy), 0.0, "{prompt:?}");
        }
        assert!(profile.attention() > 0.99, "{prompt:?}");
    }
}
