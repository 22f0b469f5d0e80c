//! Whether the models of a study can be asked.

use capo_core::llm::Role;
use capo_core::study::Study;
use capo_models::providers::Key;
use capo_models::serving;
use leptos::prelude::*;

use super::asking::Tested;
use super::credentials::{of_headers, provider_of};
use super::form::Form;
use super::models::{ROLES, current_test, role_name};
use crate::live::sending;
use crate::shared_keys;

/// The roles a run of a study asks whose model has no name, or wants a key that was not typed for it yet, each
/// with what is missing; keys only where they are asked with those of this tab.
pub(super) fn lacking(form: Form, study: &Study, with_keys: bool) -> Vec<String> {
    let measured = form.measured.get();
    if !measured.is_known {
        return vec!["the workload is still being read".to_owned()];
    }
    let keys = form.keys.get();
    let mut missing: Vec<String> = Vec::new();
    for role in measured.asked(study) {
        let Some((of, table)) = serving(role, &study.models) else {
            missing.push(format!("{} no model", who_has(role)));
            continue;
        };
        let Some(provider) = provider_of(table) else {
            continue;
        };
        let unnamed = provider.model.is_none() && !table["model"].is_string();
        let words = format!("{} no model name", who_has(of));
        if unnamed && !missing.contains(&words) {
            missing.push(words);
        }
        if !with_keys {
            continue;
        }
        let named = table["api_key_env"].is_string();
        let wants = matches!(provider.key, Key::Required(_)) || (named && !provider.in_process);
        let wants = wants && shared_keys::of_table(table).is_none();
        let there = sending::destination(of, table).is_some_and(|to| keys.of(&to).is_some());
        let words = format!("{} no key for {}", who_has(of), provider.title);
        if wants && !there && !missing.contains(&words) {
            missing.push(words);
        }
        for to in of_headers(of, table).iter().filter(|to| keys.of(to).is_none()) {
            let words = format!("{} no key {} for a header", who_has(of), to.variable);
            if !missing.contains(&words) {
                missing.push(words);
            }
        }
    }
    missing
}

/// A role as what has, or lacks, something.
fn who_has(role: Role) -> String {
    let has = if role == Role::Embeddings { "have" } else { "has" };
    format!("the {} {has}", role_name(role).to_lowercase())
}

/// The roles whose model was tested and did not answer.
pub(super) fn silent(form: Form) -> Vec<String> {
    let failed = ROLES.into_iter().filter(|role| {
        let test = current_test(form, *role);
        test.is_some_and(|test| matches!(test.tested, Tested::Fails(..)))
    });
    failed.map(|role| role_name(role).to_lowercase()).collect()
}
