//! Tokens and chat texts.

use std::collections::BTreeMap;

use capo_rewriter::backend::PolicyBackend;
use capo_rewriter::chat::{ChatTemplate, Message};
use capo_rewriter::config::ModelConfig;
use capo_rewriter::tokenizer::Tokenizer;
use serde::Deserialize;
use serde_json::Value;

use crate::fixture::Reference;

#[derive(Deserialize)]
struct File {
    encode: Vec<Encoding>,
    chat: Vec<Chat>,
}

#[derive(Deserialize)]
struct Encoding {
    text: String,
    ids: Vec<u32>,
    decoded: String,
    decoded_skip_special: String,
}

#[derive(Deserialize)]
struct Chat {
    messages: Vec<Message>,
    add_generation_prompt: bool,
    enable_thinking: Option<bool>,
    text: String,
    ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Models {
    models: BTreeMap<String, Value>,
}

/// Token ids of texts and conversations, and back.
pub fn tokens_and_chat_texts<B: PolicyBackend>(reference: &Reference<B>) {
    let file: File = reference.read("tokenizer_cases.json");
    let names: Models = reference.read("logits.json");
    // Every model of the set has the same tokenizer.
    for name in names.models.keys() {
        let model = reference.folder.join(name);
        let config = ModelConfig::from_folder(&model).expect("a configuration");
        let tokenizer = Tokenizer::from_folder(&model, config.vocabulary).expect("a tokenizer");
        for case in &file.encode {
            let ids = tokenizer.encode(&case.text).expect("text");
            assert_eq!(ids, case.ids, "{name}: {:?}", case.text);
            assert_eq!(tokenizer.decode(&ids, false).expect("ids"), case.decoded);
            assert_eq!(
                tokenizer.decode(&ids, true).expect("ids"),
                case.decoded_skip_special
            );
        }
        let template = ChatTemplate::from_folder(&model).expect("a chat template");
        for case in &file.chat {
            let text = template
                .render(&case.messages, case.add_generation_prompt, case.enable_thinking)
                .expect("messages");
            assert_eq!(text, case.text, "{name}");
            assert_eq!(tokenizer.encode(&text).expect("text"), case.ids, "{name}");
        }
    }
    println!("{} texts and {} chats", file.encode.len(), file.chat.len());
}
