//! The modules of a crate, as its files declare them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Meta, Token, UseTree, Visibility};

/// What a call of a macro among a file's items names: a list of modules declares those of them that have a file.
fn named_by_macro(item: &Item) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Item::Macro(called) = item
        && called.ident.is_none()
    {
        take_names(called.mac.tokens.clone(), &mut names);
    }
    names
}

fn take_names(tokens: TokenStream, names: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                names.insert(name.to_string());
            }
            TokenTree::Group(group) => take_names(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The path of a module from the crate's root, which is empty.
pub(super) type ModulePath = Vec<String>;

/// A crate's modules, without those that only tests have.
pub(super) struct Crate {
    pub(super) modules: BTreeMap<ModulePath, Module>,
}

pub(super) struct Module {
    /// The file that it is written in, below the crate's folder of sources.
    pub(super) file: PathBuf,
    pub(super) items: Vec<Item>,
    /// Names of the types, functions, traits, constants and macros that it defines.
    pub(super) defines: HashSet<String>,
    /// What it imports and hands on, by the name it has here.
    pub(super) imports: HashMap<String, Vec<String>>,
    /// Modules of which it takes every name.
    pub(super) globs: Vec<Vec<String>>,
    /// Names that it only hands on.
    pub(super) handed_on: HashSet<String>,
}

impl Crate {
    /// Reads a crate from its folder of sources.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let roots = ["lib.rs", "main.rs"].map(|name| folder.join(name));
        let mut sources = Self {
            modules: BTreeMap::new(),
        };
        // What a library and a program both declare is the same file.
        let mut found = false;
        for root in roots.iter().filter(|root| root.exists()) {
            found = true;
            sources.read_file(folder, root, Vec::new(), folder)?;
        }
        found
            .then_some(sources)
            .ok_or_else(|| anyhow!("{} has neither lib.rs nor main.rs", folder.display()))
    }

    fn read_file(&mut self, folder: &Path, file: &Path, path: ModulePath, children: &Path) -> Result<()> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        self.add(folder, file, path, children, parsed.items)
    }

    fn add(
        &mut self,
        folder: &Path,
        file: &Path,
        path: ModulePath,
        children: &Path,
        items: Vec<Item>,
    ) -> Result<()> {
        for name in items.iter().flat_map(named_by_macro) {
            let places = [
                children.join(&name).join("mod.rs"),
                children.join(format!("{name}.rs")),
            ];
            if let Some(place) = places.iter().find(|place| place.exists()) {
                let below = [path.clone(), vec![name.clone()]].concat();
                self.read_file(folder, place, below, &children.join(&name))?;
            }
        }
        for item in &items {
            let Item::Mod(module) = item else { continue };
            if is_for_tests(&module.attrs) {
                continue;
            }
            let name = module.ident.to_string();
            let below = [path.clone(), vec![name.clone()]].concat();
            if let Some((_, items)) = &module.content {
                self.add(folder, file, below, &children.join(&name), items.clone())?;
                continue;
            }
            let stated = module
                .attrs
                .iter()
                .find_map(|attribute| stated(attribute, "path"));
            let places = match stated {
                Some(stated) => vec![file.with_file_name(stated)],
                None => vec![
                    children.join(&name).join("mod.rs"),
                    children.join(format!("{name}.rs")),
                ],
            };
            let place = places.iter().find(|place| place.exists());
            let place = place.with_context(|| format!("{}: no file of module {name}", file.display()))?;
            self.read_file(folder, place, below, &children.join(&name))?;
        }
        let mut module = Module {
            file: file.strip_prefix(folder)?.to_owned(),
            items: Vec::new(),
            defines: items.iter().filter_map(defined).collect(),
            imports: HashMap::new(),
            globs: Vec::new(),
            handed_on: HashSet::new(),
        };
        for item in &items {
            if let Item::Use(item) = item
                && !is_for_tests(&item.attrs)
            {
                let is_private = matches!(item.vis, Visibility::Inherited);
                for (name, imported) in imported(&item.tree) {
                    if let Some(name) = name {
                        if !is_private {
                            module.handed_on.insert(name.clone());
                        }
                        module.imports.insert(name, imported);
                    } else {
                        module.globs.push(imported);
                    }
                }
            }
        }
        module.items = items;
        // A program's root stands beside the library's; only one of them is a module's parent.
        self.modules.entry(path).or_insert(module);
        Ok(())
    }

    /// The file that defines what a path of the crate names, seen from its root, and the name; `None` for a module
    /// and for what is not of this crate.
    pub(super) fn definition(&self, path: &[String]) -> Option<(&Path, String)> {
        self.definition_within(path, 16)
    }

    fn definition_within(&self, path: &[String], steps: u32) -> Option<(&Path, String)> {
        let steps = steps.checked_sub(1)?;
        let depth = (0..=path.len())
            .rev()
            .find(|depth| self.modules.contains_key(&path[..*depth]))?;
        let module = &self.modules[&path[..depth]];
        let name = path.get(depth)?;
        if module.defines.contains(name) {
            return Some((&module.file, name.clone()));
        }
        if let Some(imported) = module.imports.get(name) {
            let rest = path[depth + 1..].iter().cloned();
            let whole = self.absolute(&path[..depth], imported)?.into_iter().chain(rest);
            return self.definition_within(&whole.collect::<Vec<_>>(), steps);
        }
        module.globs.iter().find_map(|glob| {
            let whole = self.absolute(&path[..depth], glob)?;
            self.definition_within(&[&whole[..], &path[depth..]].concat(), steps)
        })
    }

    /// A path as seen from the crate's root; `None` for one that leads to another crate.
    pub(super) fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => {
                let above = &module[..module.len().checked_sub(1)?];
                match rest.first() {
                    Some(next) if next == "super" => self.absolute(above, rest),
                    _ => Some([above, rest].concat()),
                }
            }
            name => {
                let below = [module, &[name.to_owned()]].concat();
                self.modules.contains_key(&below).then(|| [module, path].concat())
            }
        }
    }
}

/// Whether only tests have it: `cfg(test)`, or `cfg(all(test, …))`.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args()
                .is_ok_and(|condition| demands_test(&condition))
    })
}

fn demands_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|all| all.iter().any(demands_test)),
        _ => false,
    }
}

/// What `#[name = "…"]` states, as `#[path = "…"]` does and a line of documentation.
pub(super) fn stated(attribute: &Attribute, name: &str) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    let syn::Expr::Lit(value) = &pair.value else {
        return None;
    };
    match &value.lit {
        syn::Lit::Str(stated) if pair.path.is_ident(name) => Some(stated.value()),
        _ => None,
    }
}

fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(name.to_string())
}

/// What a `use` imports: the name it has here, none for `*`, and the path.
pub(super) fn imported(tree: &UseTree) -> Vec<(Option<String>, Vec<String>)> {
    match tree {
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            let below = imported(&path.tree).into_iter();
            below
                .map(|(name, rest)| match rest.as_slice() {
                    // `a::{self}` is `a`.
                    [only] if only == "self" => (Some(first.clone()), vec![first.clone()]),
                    _ => (name, [vec![first.clone()], rest].concat()),
                })
                .collect()
        }
        UseTree::Name(name) => vec![(Some(name.ident.to_string()), vec![name.ident.to_string()])],
        UseTree::Rename(renamed) => vec![(Some(renamed.rename.to_string()), vec![renamed.ident.to_string()])],
        UseTree::Glob(_) => vec![(None, Vec::new())],
        UseTree::Group(group) => group.items.iter().flat_map(imported).collect(),
    }
}
