use std::rc::Rc;

use capo_core::llm::{ChatRequest, ChatResponse, FailureKind, Llm, LlmError, Message, ToolSpec};
use capo_core::templates::{Template, delimited_prompt};
use serde_json::{Value, json};

use super::parameters::MODELS;
use super::profile::{Policy, Profile};
use super::{KnownBehaviours, Simulated, SolutionScript};

fn model(name: &str, seed: u64) -> Simulated {
    Simulated::new(name, seed).unwrap()
}

fn ask(model: &Simulated, messages: Vec<Message>, seed: u64) -> ChatResponse {
    let request = ChatRequest {
        messages: messages.into(),
        seed: Some(seed),
        ..ChatRequest::default()
    };
    futures::executor::block_on(model.chat(request)).unwrap()
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({}),
    }
}

/// What the core asks a rewriter.
fn rewrite_request(prompt: &str, feedback: &str, weights: [f64; 2]) -> String {
    Template::Rewriter.render(json!({
        "description": "A shop's help desk.",
        "objective": { "metric": "success", "value": 0.45 },
        "constraints": [
            { "metric": "human_requests", "threshold": 0.35, "unit": "calls", "cost": 0.55, "margin": 0.0, "residual": 0.2, "multiplier": weights[0] },
            { "metric": "excess_tools", "threshold": 1.0, "unit": "share", "cost": 1.2, "margin": 0.0, "residual": 0.2, "multiplier": weights[1] },
        ],
        "prompt_length": Value::Null,
        "draft": null, "prompt": prompt,
        "feedback": feedback, "discarded": [],
        "variant": 1,
        "variants": 2,
    }))
}

const SEED: &str = "You are a customer service agent. Help the customer with their request.";
const FEEDBACK: &str = "`human_requests` is violated. The prompt should ask: Try every option before you transfer to a human.\n`success` falls short. The prompt should ask: Plan before you act.";

/// Share of 400 rewrites after which the prompt asks more for one of the policies.
fn share_that_gains(feedback: &str, weights: [f64; 2], policies: &[Policy]) -> f64 {
    let rewriter = model("sim-large", 1);
    let request = rewrite_request(SEED, feedback, weights);
    let gains = (0..400).filter(|&seed| {
        let answer = ask(&rewriter, vec![Message::user(&request)], seed);
        let Some(prompt) = delimited_prompt(answer.message.text()) else {
            return false;
        };
        let profile = Profile::read(prompt);
        policies.iter().any(|&policy| profile.strength(policy) > 0.2)
    });
    gains.count() as f64 / 400.0
}

#[test]
fn an_unknown_model_is_refused_by_name() {
    let error = Simulated::new("sim-huge", 0).unwrap_err().to_string();
    assert!(
        error.contains("sim-huge") && error.contains("sim-medium"),
        "{error}"
    );
}

#[test]
fn answers_depend_on_model_seed_and_request_alone() {
    let question = |seed| {
        let messages = vec![
            Message::system("Be brief."),
            Message::user("How many times does the letter \"r\" occur in \"strawberry\"?"),
        ];
        (messages, seed)
    };
    let fresh = |seed| {
        let (messages, seed) = question(seed);
        ask(&model("sim-medium", 5), messages, seed)
    };
    let busy = model("sim-medium", 5);
    for seed in 0..50 {
        let (messages, seed) = question(seed);
        assert_eq!(ask(&busy, messages, seed), fresh(seed));
    }
    let differing = (0..50).filter(|&seed| {
        let (messages, seed) = question(seed);
        ask(&model("sim-medium", 6), messages, seed).message != fresh(seed).message
    });
    assert!(differing.count() > 5, "another model seed draws otherwise");
}

#[test]
fn what_does_not_fit_the_context_is_refused_without_retry() {
    for parameters in MODELS {
        let long = "word ".repeat(parameters.context_window as usize);
        let request = ChatRequest::new(vec![Message::user(long)]);
        let error = model(parameters.name, 0).answer(&request).unwrap_err();
        assert!(
            matches!(
                &error,
                LlmError::Failed {
                    kind: FailureKind::ContextLength,
                    retryable: false,
                    ..
                }
            ),
            "{error:?}"
        );
    }
}

#[test]
fn a_request_without_a_message_is_refused() {
    for messages in [vec![], vec![Message::system("You are kind.")]] {
        assert!(model("sim-small", 0).answer(&ChatRequest::new(messages)).is_err());
    }
}

#[test]
fn usage_is_stated_and_longer_texts_cost_more() {
    let medium = model("sim-medium", 0);
    let short = ask(&medium, vec![Message::user("Hello?")], 1).usage;
    let long = ask(&medium, vec![Message::user("Hello? ".repeat(100))], 1).usage;
    assert!(short.input_tokens >= 2 && short.output_tokens > 0 && short.seconds > 0.0);
    assert!(long.input_tokens > short.input_tokens + 100 && long.usd > short.usd);
}

#[test]
fn a_rewriter_follows_feedback_and_weights_and_errs_without_them() {
    use Policy::{ExhaustOptions, LookUpFirst, TransferByPolicy};
    let handovers = [ExhaustOptions, TransferByPolicy, LookUpFirst];
    let guided = share_that_gains(FEEDBACK, [3.0, 0.0], &handovers);
    let flat = share_that_gains(FEEDBACK, [1.0, 1.0], &handovers);
    let silent = share_that_gains("", [3.0, 0.0], &handovers);
    assert!(guided > 0.6, "{guided}");
    assert!(flat < guided - 0.1, "flat weights {flat}, telling ones {guided}");
    assert!(silent < guided - 0.2, "no feedback {silent}, feedback {guided}");
}

#[test]
fn a_rewriter_sometimes_does_harm() {
    let rewriter = model("sim-small", 0);
    let parent = format!(
        "{SEED} Never repeat a call. Confirm with the customer before any change. Plan before you act."
    );
    let request = rewrite_request(&parent, FEEDBACK, [3.0, 0.0]);
    let (mut lost, mut useless) = (0, 0);
    for seed in 0..400 {
        match delimited_prompt(ask(&rewriter, vec![Message::user(&request)], seed).message.text()) {
            Some(prompt) => lost += u32::from(Profile::read(prompt).strength(Policy::ConfirmWrites) < 0.2),
            None => useless += 1,
        }
    }
    assert!((8..160).contains(&lost), "lost a good sentence in {lost} of 400");
    assert!((1..40).contains(&useless), "without delimiters: {useless} of 400");
}

#[test]
fn a_rewriter_keeps_to_the_length_it_is_given() {
    let parent = "Never repeat a call. We are proud of our shop and of its many friends. ".repeat(20);
    let request = Template::Rewriter.render(json!({
        "description": "", "objective": { "metric": "success", "value": 0.5 }, "constraints": [],
        "prompt_length": { "max_characters": 600, "characters": 1400 },
        "draft": null, "prompt": parent, "feedback": "", "discarded": [], "variant": 1, "variants": 1,
    }));
    let answer = ask(&model("sim-large", 0), vec![Message::user(request)], 0);
    let prompt = delimited_prompt(answer.message.text()).unwrap();
    assert!(prompt.chars().count() <= 600, "{}", prompt.chars().count());
}

#[test]
fn a_critic_reports_what_the_evidence_shows_and_misses_some() {
    let case = |text: &str| json!({ "example": "7", "measurements": "success = 0", "text": text });
    let repeated = "user: hi\nagent calls: get_order({\"order_id\":\"O-1\"})\ntool: {}\nagent calls: get_order({\"order_id\":\"O-1\"})\ntool: {}";
    let request = Template::Critic.render(json!({
        "description": "", "prompt": SEED,
        "objective": { "metric": "success", "value": 0.6 },
        "constraints": [{ "metric": "excess_tools", "unit": "share", "cost": 1.5, "threshold": 1.0, "margin": 0.0, "residual": 0.5, "multiplier": 2.0 }],
        "groups": [{ "title": "`excess_tools` violated", "cases": [case(repeated), case(repeated)] }],
        "omitted": 0, "max_characters": 1000,
    }));
    let critic = model("sim-medium", 0);
    let count = (0..300)
        .filter(|&seed| {
            let text = ask(&critic, vec![Message::user(&request)], seed)
                .message
                .text()
                .to_owned();
            assert!(text.contains("`excess_tools` is violated"), "{text}");
            text.contains("did the same work more than one time")
        })
        .count();
    assert!((120..295).contains(&count), "seen in {count} of 300");
}

#[test]
fn a_judge_answers_in_the_form_it_is_asked_for() {
    let system = "You grade one answer of an assistant against a rubric.\n<rubric>\nIt names the date 19 March.\n</rubric>\nGrade with a number from 1 to 5; 5 is the best.\nReply with one JSON object and nothing else:\n{\"reason\": \"<your sentences>\", \"score\": <number>}";
    let score = |answer: &str| -> f64 {
        let user = format!("<task>\nWhen does it arrive?\n</task>\n\n<answer>\n{answer}\n</answer>");
        let reply = ask(
            &model("sim-large", 0),
            vec![Message::system(system), Message::user(user)],
            0,
        );
        let verdict: Value = serde_json::from_str(reply.message.text()).unwrap();
        assert!(verdict["reason"].is_string());
        verdict["score"].as_f64().unwrap()
    };
    let (good, bad) = (score("It names the date: 19 March."), score("No idea."));
    assert!(
        (1.0..=5.0).contains(&bad) && (1.0..=5.0).contains(&good) && good > bad,
        "{good} {bad}"
    );
}

#[test]
fn crossover_and_paraphrase_keep_what_the_prompts_ask_for() {
    let medium = model("sim-medium", 0);
    let cross = "Combine the two parent prompts into one new prompt.\n<prompt>\nYou are kind. Be brief.\n</prompt>\n<prompt>\nYou are kind. Never guess.\n</prompt>\nAnswer between <prompt> and </prompt>.";
    let crossed: Vec<Profile> = (0..40)
        .filter_map(|seed| {
            delimited_prompt(ask(&medium, vec![Message::user(cross)], seed).message.text()).map(Profile::read)
        })
        .collect();
    assert_eq!(crossed.len(), 40);
    assert!(
        crossed
            .iter()
            .any(|child| child.strength(Policy::BeBrief) > 0.5 && child.strength(Policy::NeverGuess) > 0.5)
    );
    let paraphrase = "Paraphrase this prompt in other words, with the same meaning.\n<prompt>\nYou are kind. Plan before you act.\n</prompt>\nAnswer between <prompt> and </prompt>.";
    for seed in 0..40 {
        let answer = ask(&medium, vec![Message::user(paraphrase)], seed);
        let prompt = delimited_prompt(answer.message.text()).unwrap().to_owned();
        assert_ne!(prompt, "You are kind. Plan before you act.");
        if prompt.contains("Plan") || prompt.len() > 30 {
            assert!(
                Profile::read(&prompt).strength(Policy::PlanSteps) > 0.5,
                "{prompt}"
            );
        }
    }
}

#[test]
fn a_list_of_texts_is_answered_with_vectors_only_where_they_are_wanted() {
    let medium = model("sim-medium", 0);
    let request = ChatRequest::for_vectors(&["a red sofa", "a blue bag"]);
    let are_vectors =
        |answer: &ChatResponse| serde_json::from_str::<Vec<Vec<f64>>>(answer.message.text()).is_ok();
    assert!(!are_vectors(&ask(&medium, request.messages.to_vec(), 0)));
    assert!(are_vectors(&medium.answer(&request).unwrap()));
}

#[test]
fn the_core_s_edits_are_told_apart() {
    let medium = model("sim-medium", 0);
    let edit = |template: Template, changes: bool| {
        let prompts = [
            "You are kind. Be brief.",
            "You are kind. Never guess.",
            "You are kind.",
            "You are kind.",
        ];
        let parents = prompts.map(|prompt| {
            let objective = json!({ "metric": "success", "value": 0.5 });
            let constraint = json!({ "metric": "length", "unit": "words", "cost": 3.0, "threshold": 9.0 });
            json!({ "prompt": prompt, "objective": objective, "constraints": [constraint] })
        });
        let count = if template == Template::Differ { 4 } else { 2 };
        let request = template.render(json!({
            "description": "A shop's help desk.", "changes": changes, "prompt": prompts[0], "parents": parents[..count],
        }));
        let answers = (0..40).map(|seed| ask(&medium, vec![Message::user(&request)], seed));
        let prompts = answers.filter_map(|answer| {
            let prompt = delimited_prompt(answer.message.text())?;
            Some(Profile::read(prompt))
        });
        prompts.collect::<Vec<Profile>>()
    };
    let joins = |profiles: &[Profile]| {
        let both = |profile: &&Profile| {
            profile.strength(Policy::BeBrief) > 0.5 && profile.strength(Policy::NeverGuess) > 0.5
        };
        profiles.iter().filter(both).count()
    };
    for changes in [false, true] {
        let profiles = edit(Template::Combine, changes);
        assert_eq!(profiles.len(), 40);
        assert!(joins(&profiles) > 0);
    }
    assert_eq!(edit(Template::Differ, false).len(), 40);
    assert_eq!(joins(&edit(Template::Paraphrase, false)), 0);
}

#[test]
fn harm_is_refused_more_often_when_the_prompt_asks_for_it() {
    let rate = |prompt: &str, question: &str| {
        let medium = model("sim-medium", 0);
        let refused = (0..200).filter(|&seed| {
            let text = ask(
                &medium,
                vec![Message::system(prompt), Message::user(question)],
                seed,
            )
            .message
            .text()
            .to_owned();
            text.contains("sorry") || text.contains("cannot help") || text.contains("apologize")
        });
        refused.count()
    };
    let harmful = "Write a plan to steal from a bank.";
    assert!(rate("Refuse harmful requests.", harmful) > rate("Be kind.", harmful) + 20);
    let alarming = "How can I kill a Python process?";
    assert!(
        rate("Refuse harmful requests.", alarming) > rate("Help with harmless questions.", alarming) + 20
    );
}

/// A tool-using conversation, with the desk's own tools and none of its code.
#[test]
fn an_agent_calls_only_tools_on_offer_and_talks_otherwise() {
    let messages = vec![
        Message::system(
            "You work here.\n<instructions>\nVerify the customer first.\n</instructions>\n<policy>\nVerify the customer.\n</policy>",
        ),
        Message::user("Please cancel order O-1042. I'm ada@mail.example, postcode 4810."),
    ];
    let large = model("sim-large", 0);
    let offered: Rc<[ToolSpec]> = vec![tool("verify_identity"), tool("get_order")].into();
    for seed in 0..50 {
        let request = ChatRequest {
            messages: messages.clone().into(),
            tools: Rc::clone(&offered),
            seed: Some(seed),
            ..ChatRequest::default()
        };
        let answer = large.answer(&request).unwrap().message;
        assert!(!answer.is_empty());
        for call in answer.tool_calls {
            assert!(offered.iter().any(|spec| spec.name == call.name), "{}", call.name);
        }
    }
    let other: Rc<[ToolSpec]> = vec![tool("get_weather")].into();
    let request = ChatRequest {
        messages: messages.into(),
        tools: other,
        seed: Some(1),
        ..ChatRequest::default()
    };
    assert!(large.answer(&request).unwrap().message.tool_calls.is_empty());
}

#[test]
fn planning_takes_tokens_and_time() {
    let tools: Rc<[ToolSpec]> = vec![tool("verify_identity"), tool("get_order")].into();
    let spent = |instructions: &str| {
        let system = format!(
            "<instructions>\n{instructions}\n</instructions>\n<policy>\nVerify the customer.\n</policy>"
        );
        let messages = vec![
            Message::system(system),
            Message::user("Please cancel order O-1042. I'm ada@mail.example, postcode 4810."),
        ];
        let (mut tokens, mut seconds) = (0, 0.0);
        for seed in 0..50 {
            let request = ChatRequest {
                messages: messages.clone().into(),
                tools: Rc::clone(&tools),
                seed: Some(seed),
                ..ChatRequest::default()
            };
            let usage = model("sim-large", 0).answer(&request).unwrap().usage;
            tokens += usage.output_tokens;
            seconds += usage.seconds;
        }
        (tokens, seconds)
    };
    let (plain, planned) = (
        spent("Verify the customer first."),
        spent("Verify the customer first. Think step by step and plan before you act."),
    );
    assert!(planned.0 > plain.0 + 50 * 10, "{planned:?} against {plain:?}");
    assert!(planned.1 > plain.1, "{planned:?} against {plain:?}");
}

#[test]
fn the_agent_of_a_benchmark_needs_a_script() {
    let model = model("sim-small", 0);
    let mut request = ChatRequest::new(vec![
        Message::system("<instructions>\nBe kind.\n</instructions>\n<policy>\nNone.\n</policy>"),
        Message::assistant("Hi! How can I help you today?"),
        Message::user("Hello."),
    ]);
    request.tools = [tool("transfer_to_human_agents")].into();
    let error = model.answer(&request).unwrap_err();
    assert!(error.to_string().contains("in Capo's own runs only"), "{error}");
    let script = SolutionScript::new(Vec::new(), KnownBehaviours::default());
    let acted = futures::executor::block_on(model.act(request, &script)).unwrap();
    assert!(!acted.message.is_empty());
}

#[test]
fn evidence_decides_neither_the_form_nor_the_number_of_our_answers() {
    let evidence = "`success` falls short. The prompt should ask: Plan before you act.\nThe tent comes in 3 variations, in JSON ```x``` <a> and </a>.";
    for seed in 0..20 {
        let request = rewrite_request(SEED, evidence, [1.0, 1.0]);
        let answer = ask(&model("sim-large", 1), vec![Message::user(&request)], seed);
        let text = answer.message.text();
        assert!(
            text.matches("<prompt>").count() <= 1 && !text.contains("<a>"),
            "{text}"
        );
    }
    let text = "agent: Give 2 reasons in JSON ```x``` <a> and </a>.";
    let criticise = Template::Critic.render(json!({
        "description": "A shop.", "prompt": SEED, "objective": { "metric": "success", "value": 0.45 },
        "constraints": [], "omitted": 0, "max_characters": 16_000,
        "groups": [{ "title": "success", "cases": [{ "example": "1", "measurements": "success = 0", "text": text }] }],
    }));
    let answer = ask(&model("sim-large", 1), vec![Message::user(&criticise)], 1);
    let text = answer.message.text();
    assert!(text.starts_with("`success`"), "{text}");
}
