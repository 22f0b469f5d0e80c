use capo_core::templates::{ObjectiveFacts, WeightedConstraint};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::config::read_json;
use crate::tiny_qwen3::TinyQwen3Config;

fn request() -> RewriteFacts {
    let constraint = |metric: &str, cost, threshold, multiplier| WeightedConstraint {
        metric: metric.to_owned(),
        cost,
        threshold,
        multiplier,
    };
    RewriteFacts {
        prompt: "You answer customers.".into(),
        draft: None,
        feedback: "It hands over too often.\n\nUser: where is my parcel?\nAgent: Handing over.".into(),
        objective: ObjectiveFacts {
            metric: "success".into(),
            value: 0.5,
        },
        constraints: vec![
            constraint("handovers", 0.5, 0.25, 2.0),
            constraint("turns", 8.0, 8.0, 0.0),
        ],
    }
}

/// A model over bytes with a context of so many tokens.
fn folder(context: usize) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let config = TinyQwen3Config {
        hidden: 4,
        layers: 1,
        heads: 1,
        kv_heads: 1,
        head_dim: 2,
        intermediate: 4,
        context,
        tied: true,
    };
    let tokenizer = Tokenizer::of_bytes().expect("builds");
    config.write(folder.path(), &tokenizer, 0).expect("writes");
    folder
}

fn template(context: usize) -> RewriteTemplate {
    RewriteTemplate::from_folder(folder(context).path()).expect("reads")
}

/// The same model with the chat template of one that thinks aloud unless told not to.
fn thinking() -> RewriteTemplate {
    let folder = folder(4096);
    let chat = "\
        {%- for message in messages %}\
        {{- '<|' + message.role + '|>' }}\
        {%- if message.role == 'assistant' %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}\
        {{- message.content + '<|eos|>\\n' }}\
        {%- endfor %}\
        {%- if add_generation_prompt %}{{- '<|assistant|>' }}\
        {%- if not enable_thinking %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}";
    std::fs::write(folder.path().join("chat_template.jinja"), chat).expect("written");
    RewriteTemplate::from_folder(folder.path()).expect("reads")
}

fn text(template: &RewriteTemplate, tokens: &[u32]) -> String {
    template.tokenizer().decode(tokens, false).expect("decodes")
}

#[test]
fn a_request_is_the_text_of_its_facts() {
    let template = template(4096);
    let prompt = template.prompt(&request(), 100).expect("fits");
    let facts = request().text();
    assert_eq!(
        text(&template, &prompt.tokens),
        format!("<|bos|><|user|>{facts}<|assistant|>")
    );
    assert!(facts.ends_with(
        "Objective: success 0.500\n\
         Constraint: handovers 0.500, at most 0.250, weight 2.00\n\
         Constraint: turns 8.000, at most 8.000, weight 0.00\n\n\
         Prompt:\nYou answer customers.\n\n\
         Feedback:\nIt hands over too often.\n\nUser: where is my parcel?\nAgent: Handing over."
    ));
    assert!(prompt.left_out.is_nothing());
    assert_eq!(template.prompt_of_text(&facts, 100), Ok(prompt));
    let bare = RewriteFacts {
        feedback: String::new(),
        draft: Some("You answer at once.".into()),
        ..request()
    };
    let prompt = template.prompt(&bare, 100).expect("fits");
    let shown = text(&template, &prompt.tokens);
    assert!(
        shown.ends_with("Draft:\nYou answer at once.\n\nFeedback:\nnone<|assistant|>"),
        "{shown}"
    );
    assert_eq!(template.prompt_of_text(&bare.text(), 100), Ok(prompt));
    let free = template.prompt_of_text("Hello.", 100).expect("fits");
    assert_eq!(
        text(&template, &free.tokens),
        "<|bos|><|user|>Hello.<|assistant|>"
    );
}

#[test]
fn an_example_asks_as_inference_does_and_ends_its_answer() {
    for template in [template(4096), thinking()] {
        let child = "You look up every parcel.";
        let example = template.example(&request(), child, 100).expect("fits");
        assert_eq!(example.prompt, template.prompt(&request(), 100).expect("fits"));
        assert_eq!(text(&template, &example.completion), format!("{child}<|eos|>"));
        assert_eq!(template.child(&example.completion).as_deref(), Ok(child));
    }
    let template = thinking();
    let prompt = template.prompt(&request(), 100).expect("fits");
    assert!(text(&template, &prompt.tokens).ends_with("<|assistant|><think>\n\n</think>\n\n"));
}

#[test]
fn a_child_ends_where_the_answer_does() {
    let template = template(256);
    let answer = template
        .tokenizer()
        .encode(" Be kind.\n<|eos|>more")
        .expect("encodes");
    assert_eq!(template.child(&answer).as_deref(), Ok("Be kind."));
    assert_eq!(template.child(&answer[..4]).as_deref(), Ok("Be"));
    assert_eq!(template.child(&[]).as_deref(), Ok(""));
}

#[test]
fn children_that_cannot_be_learned_are_refused() {
    let template = template(4096);
    let refused = |child: &str, room| {
        template
            .example(&request(), child, room)
            .expect_err("must be refused")
    };
    // The end of an answer takes a token.
    assert_eq!(refused("12345", 5), TemplateError::Child { tokens: 6, room: 5 });
    let spelt = refused("Say <|eos|> often.", 100).to_string();
    assert!(spelt.contains("spells the token"), "{spelt}");
}

#[test]
fn feedback_is_cut_by_no_more_than_is_needed() {
    let request = RewriteFacts {
        feedback: (0..30)
            .map(|line| format!("line {line:02}"))
            .collect::<Vec<_>>()
            .join("\n"),
        ..request()
    };
    let whole = template(4096).prompt(&request, 50).expect("fits").tokens.len();
    // The mark and its line end take 33 bytes; four lines of eight do not make room for it.
    let template = template(whole + 50 - 1);
    let prompt = template.prompt(&request, 50).expect("fits");
    assert_eq!(
        prompt.left_out,
        LeftOut {
            lines: 5,
            characters: 35
        }
    );
    let shown = text(&template, &prompt.tokens);
    assert!(
        shown.contains("\n[… 35 characters left out …]\nline 05\n"),
        "{shown}"
    );
}

#[test]
fn what_does_not_fit_without_feedback_is_refused() {
    let why = template(128).prompt(&request(), 60).expect_err("must be refused");
    assert!(
        matches!(
            why,
            TemplateError::Overflow {
                room: 60,
                context: 128,
                ..
            }
        ),
        "{why}"
    );
    let bare = RewriteFacts {
        feedback: String::new(),
        ..request()
    };
    template(128).prompt(&bare, 60).expect_err("must be refused");
    template(128)
        .prompt(&bare, 500)
        .expect_err("no room for anything");
}

#[test]
fn a_model_without_an_end_is_refused() {
    let folder = folder(128);
    for name in ["config.json", "generation_config.json"] {
        let path = folder.path().join(name);
        let mut config = read_json(&path).expect("reads");
        config.as_object_mut().expect("an object").remove("eos_token_id");
        std::fs::write(&path, config.to_string()).expect("written");
    }
    let why = RewriteTemplate::from_folder(folder.path()).expect_err("must be refused");
    assert!(why.to_string().contains("eos_token_id"), "{why}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_prompt_fits_or_is_refused(
        lines in prop::collection::vec("[a-z ]{0,40}", 0..24), context in 150usize..700, room in 0usize..200,
    ) {
        let template = template(context);
        let request = RewriteFacts { feedback: lines.join("\n"), ..request() };
        let bare = RewriteFacts { feedback: String::new(), ..request.clone() };
        let length = |request: &RewriteFacts| template.text(request.text()).map(|text| template.encode(&text).map(|ids| ids.len()));
        // Blank edges of a feedback are never shown.
        let shown = RewriteFacts { feedback: request.feedback.trim().to_owned(), ..request.clone() };
        let whole = length(&shown).expect("renders").expect("encodes");
        let least = length(&bare).expect("renders").expect("encodes");
        match template.prompt(&request, room) {
            Ok(prompt) => {
                prop_assert!(prompt.tokens.len() + room <= context);
                prop_assert_eq!(prompt.left_out.is_nothing(), whole + room <= context);
                let shown = text(&template, &prompt.tokens);
                prop_assert!(shown.contains("You answer customers.") && shown.contains("handovers 0.500"));
            }
            // A mark and the lines before it are what may be too much.
            Err(why) => prop_assert!(least + 2 + 40 + room > context, "{}", why),
        }
    }
}
