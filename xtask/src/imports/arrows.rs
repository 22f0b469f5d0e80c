//! Arrows from the file that names something to the one that defines it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

use super::modules::{Crate, Module, ModulePath, imported, is_for_tests, stated};

/// One file names something that another defines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrow {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    pub(super) name: String,
}

/// All arrows between the files of a crate. A file that declares a module or hands on its names is no user of them,
/// and a module may name what the modules around it define: a folder's first file holds what those in it share.
pub(super) fn between_files(sources: &Crate) -> BTreeSet<Arrow> {
    let mut found = BTreeSet::new();
    for (path, module) in &sources.modules {
        let mut names = Names {
            sources,
            path,
            module,
            found: &mut found,
        };
        for item in &module.items {
            names.visit_item(item);
        }
    }
    found
}

/// Collects what the items of a module name.
struct Names<'a> {
    sources: &'a Crate,
    path: &'a ModulePath,
    module: &'a Module,
    found: &'a mut BTreeSet<Arrow>,
}

impl Names<'_> {
    fn visit_written(&mut self, written: &[String]) {
        let Some(first) = written.first() else { return };
        match self.module.imports.get(first) {
            // Counted where it is imported.
            Some(_) if written.len() == 1 && !self.module.handed_on.contains(first) => {}
            Some(imported) => {
                if let Some(imported) = self.sources.absolute(self.path, imported) {
                    self.add(&[&imported[..], &written[1..]].concat());
                }
            }
            None if written.len() > 1 => {
                if let Some(path) = self.sources.absolute(self.path, written) {
                    self.add(&path);
                }
            }
            None => self.add(&[&self.path[..], written].concat()),
        }
    }

    /// Whether a file holds a module around this one. The root of a crate surrounds everything.
    fn surrounds(&self, file: &Path) -> bool {
        let above = (1..self.path.len()).map(|depth| &self.path[..depth]);
        above
            .filter_map(|path| self.sources.modules.get(path))
            .any(|module| module.file == file)
    }

    fn add(&mut self, path: &[String]) {
        if let Some((file, name)) = self.sources.definition(path)
            && file != self.module.file
            && !self.surrounds(file)
        {
            self.found.insert(Arrow {
                from: self.module.file.clone(),
                to: file.to_owned(),
                name,
            });
        }
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {
        // A module of its own.
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => return syn::visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !matches!(item.vis, syn::Visibility::Inherited) {
            return;
        }
        for (name, path) in imported(&item.tree) {
            if name.is_some()
                && let Some(path) = self.sources.absolute(self.path, &path)
            {
                self.add(&path);
            }
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let Some(line) = stated(attribute, "doc") {
            for path in linked(&line) {
                self.visit_written(&path);
            }
        }
        syn::visit::visit_attribute(self, attribute);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string());
        self.visit_written(&segments.collect::<Vec<_>>());
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.visit_tokens(called.tokens.clone());
    }
}

/// The paths that a line of documentation links to: ``[`a::b`]``, and `a::b` in `[text](a::b)`.
fn linked(line: &str) -> impl Iterator<Item = Vec<String>> {
    let between = move |begin: &'static str, end: &'static str| {
        let pieces = line.split(begin).skip(1);
        pieces.filter_map(move |piece| Some(piece.split_once(end)?.0))
    };
    let paths = between("[`", "`]").chain(between("](", ")"));
    paths.map(|path| path.split("::").map(str::to_owned).collect())
}

impl Names<'_> {
    /// What a macro is given is no syntax yet: every `a::b` in it is taken for a path.
    fn visit_tokens(&mut self, tokens: TokenStream) {
        let mut written: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.visit_written(&written);
                        written.clear();
                    }
                    written.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.visit_written(&written);
                    written.clear();
                    if let TokenTree::Group(group) = other {
                        self.visit_tokens(group.stream());
                    }
                }
            }
        }
        self.visit_written(&written);
    }
}
