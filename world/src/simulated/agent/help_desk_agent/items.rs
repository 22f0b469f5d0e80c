//! Items and variants that a customer speaks of.

use super::HelpDeskAgent;
use crate::simulated::agent::notes::CustomerRequest;
use crate::simulated::agent::records::{Item, Order};

impl HelpDeskAgent<'_> {
    /// The variant the customer wants instead, with whether it is in stock (unknown when the agent
    /// has not looked).
    pub(super) fn wanted_variant(
        &self,
        wish: &CustomerRequest,
        order: &Order,
    ) -> Option<(String, Option<bool>)> {
        let items = items(wish, order);
        let item = items.first().copied().or_else(|| order.items.first())?;
        let product = product_of(&item.sku);
        let Some(known) = self
            .notes
            .products
            .iter()
            .find(|known| known.product_id == product)
        else {
            // Not looked up: a guess at how the shop names it.
            let option = wish
                .lower
                .split(|character: char| !character.is_alphanumeric())
                .filter(|word| is_size(word))
                .find(|word| !word.eq_ignore_ascii_case(&item.option))?;
            return Some((format!("{product}-{}", option.to_uppercase()), None));
        };
        let wanted = known
            .variants
            .iter()
            .filter(|variant| variant.sku != item.sku)
            .filter_map(|variant| {
                position_of(&wish.lower, &variant.option.to_lowercase()).map(|at| (at, variant))
            })
            .max_by_key(|(at, _)| *at)?
            .1;
        Some((wanted.sku.clone(), Some(wanted.in_stock > 0)))
    }
}

/// The items the customer speaks of; none when that cannot be told.
pub(super) fn items<'o>(wish: &CustomerRequest, order: &'o Order) -> Vec<&'o Item> {
    let open: Vec<&Item> = order
        .items
        .iter()
        .filter(|item| item.state == "ordered")
        .collect();
    let named: Vec<&Item> = open
        .iter()
        .copied()
        .filter(|item| names(&wish.lower, item))
        .collect();
    if !named.is_empty() {
        return named;
    }
    let kind: Vec<&Item> = open
        .iter()
        .copied()
        .filter(|item| names_kind(&wish.lower, item))
        .collect();
    if !kind.is_empty() {
        return kind;
    }
    let all = [
        "everything",
        "all of it",
        "whole order",
        "all items",
        "both",
        "entire order",
        "complete order",
    ];
    if open.len() == 1 || all.iter().any(|cue| wish.lower.contains(cue)) {
        open
    } else {
        Vec::new()
    }
}

/// `P-104-M` → `P-104`.
pub(super) fn product_of(sku: &str) -> &str {
    sku.rsplit_once('-').map_or(sku, |(product, _)| product)
}

/// Whether a lower-case text names an item in full.
pub(super) fn names(text: &str, item: &Item) -> bool {
    text.contains(&item.name.to_lowercase())
}

/// Whether a lower-case text holds the noun at the end of an item's name.
pub(super) fn names_kind(text: &str, item: &Item) -> bool {
    let name = item.name.to_lowercase();
    name.split_whitespace()
        .last()
        .is_some_and(|noun| noun.len() > 3 && text.contains(noun.trim_end_matches('s')))
}

/// Where an option such as `L` or `red` stands as a word of its own in a lower-case text.
fn position_of(text: &str, option: &str) -> Option<usize> {
    text.match_indices(option)
        .filter(|(at, _)| {
            let before = text[..*at].chars().next_back();
            let after = text[at + option.len()..].chars().next();
            // The `s` and `m` of contractions are no sizes.
            !before
                .is_some_and(|character| character.is_alphanumeric() || character == '\'' || character == '’')
                && !after.is_some_and(char::is_alphanumeric)
        })
        .map(|(at, _)| at)
        .last()
}

fn is_size(word: &str) -> bool {
    matches!(word, "xs" | "s" | "m" | "l" | "xl" | "xxl")
        || (word.len() == 2 && word.bytes().all(|byte| byte.is_ascii_digit()))
}
