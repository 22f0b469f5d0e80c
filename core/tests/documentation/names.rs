//! Names of code in prose: `path/to/file.rs::Type::function` must exist.

use std::fs;
use std::path::Path;

use syn::{Fields, ImplItem, Item, TraitItem, Type};

/// The code spans of a page that name a Rust file or something in one. Fenced blocks are left out.
pub(crate) fn references(page: &str) -> Vec<&str> {
    prose(page)
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|span| {
            span.split("::")
                .next()
                .is_some_and(|path| path.contains('/') && path.contains(".rs"))
        })
        .collect()
}

/// The targets of a page's relative links, without their fragments.
pub(crate) fn links(page: &str) -> Vec<&str> {
    prose(page)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split([')', '#']).next())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    page.lines().filter(move |line| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Checks one reference: the file exists below `root`, and what follows it is an item of that file
/// (`name`), or a member of one (`Type::function`, `Struct::field`, `Enum::Variant`).
pub(crate) fn check(root: &Path, reference: &str) -> Result<(), String> {
    let (path, names) = reference.split_once("::").unwrap_or((reference, ""));
    let text = fs::read_to_string(root.join(path)).map_err(|error| format!("`{reference}`: {error}"))?;
    let file = syn::parse_file(&text).map_err(|error| format!("`{reference}`: {error}"))?;
    let names: Vec<&str> = names.split("::").filter(|name| !name.is_empty()).collect();
    let found = match names[..] {
        [] => true,
        [name] => file
            .items
            .iter()
            .any(|item| name_of(item).as_deref() == Some(name)),
        [owner, member] => members(&file.items, owner).iter().any(|name| name == member),
        _ => return Err(format!("`{reference}`: at most two names can follow a file")),
    };
    if found {
        Ok(())
    } else {
        Err(format!("`{reference}`: {path} has no `{}`", names.join("::")))
    }
}

/// Fields of a struct or variants of an enum, in the order of the source, each with the text of its
/// attributes.
pub(crate) fn parts(root: &Path, path: &str, owner: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(root.join(path)).expect("the file is there");
    let file = syn::parse_file(&text).expect("the file parses");
    let attributes = |attributes: &[syn::Attribute]| {
        let serde = attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("serde"));
        serde
            .filter_map(|attribute| attribute.meta.require_list().ok())
            .map(|list| list.tokens.to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    let named = |fields: &Fields| -> Vec<(String, String)> {
        let fields = fields.iter();
        fields
            .filter_map(|field| Some((field.ident.as_ref()?.to_string(), attributes(&field.attrs))))
            .collect()
    };
    let parts = file.items.iter().find_map(|item| match item {
        Item::Struct(found) if found.ident == owner => Some(named(&found.fields)),
        Item::Enum(found) if found.ident == owner => Some(
            found
                .variants
                .iter()
                .map(|variant| (variant.ident.to_string(), attributes(&variant.attrs)))
                .collect(),
        ),
        _ => None,
    });
    parts.unwrap_or_else(|| panic!("{path} has no `{owner}`"))
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Mod(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn members(items: &[Item], owner: &str) -> Vec<String> {
    let mut found = Vec::new();
    for item in items {
        match item {
            Item::Struct(item) if item.ident == owner => {
                let fields = item.fields.iter();
                found.extend(fields.filter_map(|field| field.ident.as_ref().map(ToString::to_string)));
            }
            Item::Enum(item) if item.ident == owner => {
                found.extend(item.variants.iter().map(|variant| variant.ident.to_string()));
            }
            Item::Trait(item) if item.ident == owner => {
                found.extend(item.items.iter().filter_map(|item| match item {
                    TraitItem::Fn(function) => Some(function.sig.ident.to_string()),
                    _ => None,
                }));
            }
            Item::Impl(item) if is_named(&item.self_ty, owner) => {
                found.extend(item.items.iter().filter_map(|item| match item {
                    ImplItem::Fn(function) => Some(function.sig.ident.to_string()),
                    ImplItem::Const(constant) => Some(constant.ident.to_string()),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    found
}

fn is_named(found: &Type, name: &str) -> bool {
    matches!(found, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

#[test]
fn right_names_are_found_and_wrong_ones_are_not() {
    let root = crate::root();
    for right in [
        "core/src/study/score.rs",
        "core/src/study/score.rs::top",
        "core/src/study/score.rs::Score::new",
        "core/src/study/score.rs::Limit::scale",
        "core/src/search/dual/mod.rs::DualStep::rank_by",
        "core/src/search/methods/mod.rs::Choice::Retained",
        "core/src/search/arena/rounds.rs::Arena::close_round",
    ] {
        check(&root, right).unwrap();
    }
    for wrong in [
        "core/src/scores.rs",
        "core/src/study/score.rs::bottom",
        "core/src/study/score.rs::Score::old",
        // Each exists, but not there.
        "core/src/study/score.rs::Limit::new",
        "core/src/study/score.rs::without_replacement",
        "core/src/search/methods/mod.rs::Choice::retained",
    ] {
        let refusal = check(&root, wrong).unwrap_err();
        assert!(refusal.contains(wrong), "{refusal}");
    }
    let page = "see `core/src/a.rs::b` and `x`\n```\n`core/src/c.rs`\n```\n[d](e.md#f), [g](https://h)\n";
    assert_eq!(references(page), ["core/src/a.rs::b"]);
    assert_eq!(links(page), ["e.md"]);
}
