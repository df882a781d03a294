//! Finds the function that handles a message, in the sources: the `match` arm or the entry of a table that
//! names the message, and what it calls. So nobody keeps another table, and a function that is renamed is
//! found by its new name.
//!
//! What is looked for in a service's crate is looked for in the libraries it uses, too: file systems and
//! drivers leave the `match` to lib/fs and lib/driver, and implement the functions that it calls.

use crate::programs::Packages;
use crate::workspace::Workspace;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, Pat, UseTree};

/// The crate with the kernel calls.
const KERNEL: &str = "kernel_core";

/// A message or call whose handler is wanted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// A Linux call, by its name.
    Linux(String),
    /// A message, by protocol and name.
    Message(String, String),
    /// A kernel call, by its name.
    Kernel(String),
}

impl Key {
    fn name(&self) -> &str {
        match self {
            Self::Linux(name) | Self::Message(_, name) | Self::Kernel(name) => name,
        }
    }
}

/// Where something is handled.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    /// The file, from the top of the checkout.
    pub file: String,
    /// The function, with the type it belongs to.
    pub function: String,
    /// The first sentence of its documentation.
    pub purpose: String,
}

/// The handlers of all services; a crate is read when it is asked for first.
pub struct Handlers {
    root: PathBuf,
    /// Folder and libraries of each package.
    packages: HashMap<String, (PathBuf, Vec<PathBuf>)>,
    crates: HashMap<PathBuf, Rc<Crate>>,
}

impl Handlers {
    /// Nothing is read yet.
    pub fn new(workspace: &Workspace, packages: &Packages) -> Self {
        let known = packages.all().iter().map(|package| {
            let folder = package.manifest_path.parent().map(Path::to_path_buf).unwrap_or_default();
            let libraries = package.dependencies.iter().filter(|dependency| dependency.kind.is_none());
            (package.name.clone(), (folder, libraries.filter_map(|dependency| dependency.path.clone()).collect()))
        });
        Self { root: workspace.root.clone(), packages: known.collect(), crates: HashMap::new() }
    }

    /// Where the program `binary` handles `key`; a kernel call is handled by the kernel whoever makes it.
    pub fn of(&mut self, binary: &str, key: &Key) -> Option<Place> {
        let package = if matches!(key, Key::Kernel(_)) || binary == "kernel" { KERNEL } else { binary };
        let (own, libraries) = self.packages.get(package)?.clone();
        let own = self.read(&own);
        if let Some(handler) = own.handler(key) {
            return Some(own.place(&handler));
        }
        for library in libraries {
            let library = self.read(&library);
            let Some(handler) = library.handler(key) else { continue };
            return Some(own.implementation(&handler.name).unwrap_or_else(|| library.place(&handler)));
        }
        None
    }

    fn read(&mut self, folder: &Path) -> Rc<Crate> {
        let root = &self.root;
        self.crates.entry(folder.to_path_buf()).or_insert_with(|| Rc::new(Crate::read(root, folder))).clone()
    }
}

/// A function, or a method of `owner`.
#[derive(Clone)]
struct Function {
    name: String,
    owner: Option<String>,
    implements_trait: bool,
    file: String,
    purpose: String,
}

/// A `match` arm, or an entry of a table such as `call(nr::READ, |c| …)`, that names messages.
struct Arm {
    keys: Vec<Key>,
    /// The function or table it stands in.
    within: Option<Function>,
    /// Functions it calls.
    calls: Vec<Called>,
}

impl Arm {
    /// Whether this is a function, not a constant, of the same file.
    fn is_beside(&self, function: &Function) -> bool {
        let is_constant = !function.name.contains(char::is_lowercase);
        !is_constant && self.within.as_ref().is_some_and(|within| within.file == function.file)
    }
}

/// A function that is called or named.
struct Called {
    name: String,
    /// What a method is called on, by its last name: `vfs` of `c.vfs.read(…)`.
    receiver: Option<String>,
    is_method: bool,
}

#[derive(Default)]
struct Crate {
    functions: Vec<Function>,
    arms: Vec<Arm>,
}

impl Crate {
    fn read(root: &Path, folder: &Path) -> Self {
        let mut found = Self::default();
        let mut files = Vec::new();
        rust_files(&folder.join("src"), &mut files);
        for path in files {
            // A file that is no Rust is reported where it is compiled.
            let Some(file) = fs::read_to_string(&path).ok().and_then(|text| syn::parse_file(&text).ok()) else {
                continue;
            };
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            Reader::new(&mut found, name).visit_file(&file);
        }
        found
    }

    /// What the arms for `key` call: by preference a function whose name is like the message's, then a function of
    /// the arm's own file, then a method, then any function of the crate; the function that an arm stands in when
    /// it calls none.
    fn handler(&self, key: &Key) -> Option<Function> {
        let wanted = plain(key.name());
        let mut best: Option<(u32, &Function)> = None;
        for arm in self.arms.iter().filter(|arm| arm.keys.contains(key)) {
            let called = arm.calls.iter().filter_map(|called| {
                let name = plain(&called.name);
                let is_alike = name.contains(&wanted) || wanted.contains(&name);
                let function = self.called(called, arm)?;
                let is_beside = !called.is_method && arm.is_beside(function);
                let points = 1 + 4 * u32::from(is_alike) + 2 * u32::from(is_beside) + u32::from(called.is_method);
                Some((points, function))
            });
            for next in called.chain(arm.within.iter().map(|within| (0, within))) {
                if best.is_none_or(|best| next.0 > best.0) {
                    best = Some(next);
                }
            }
        }
        best.map(|(_, function)| function.clone())
    }

    /// The function of the crate that is called: by preference the receiver's, then one of the arm's own file, then one
    /// of the type that calls.
    fn called(&self, called: &Called, arm: &Arm) -> Option<&Function> {
        let own = arm.within.as_ref().and_then(|within| within.owner.as_deref());
        let named = self.functions.iter().filter(|function| function.name == called.name);
        named.max_by_key(|function| {
            let owner = function.owner.as_deref();
            let of_receiver = owner.map(plain).is_some_and(|owner| called.receiver.as_deref() == Some(&owner));
            let is_beside = !called.is_method && arm.is_beside(function);
            2 * u32::from(of_receiver || is_beside) + u32::from(owner == own)
        })
    }

    fn implementation(&self, name: &str) -> Option<Place> {
        let function = self.functions.iter().find(|function| function.implements_trait && function.name == name)?;
        Some(self.place(function))
    }

    fn place(&self, function: &Function) -> Place {
        let name = match &function.owner {
            Some(owner) => format!("{owner}::{}", function.name),
            None => function.name.clone(),
        };
        Place { file: function.file.clone(), function: name, purpose: function.purpose.clone() }
    }
}

/// Letters and digits in lower case: `SafeCopyTo` and `safe_copy_to` are the same.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

fn rust_files(folder: &Path, to: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            rust_files(&path, to);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            to.push(path);
        }
    }
}

/// Reads one file into a crate.
struct Reader<'a> {
    to: &'a mut Crate,
    file: String,
    /// The protocol that a name was imported from.
    imports: HashMap<String, String>,
    owner: Option<String>,
    implements_trait: bool,
    within: Option<Function>,
}

impl<'a> Reader<'a> {
    fn new(to: &'a mut Crate, file: String) -> Self {
        Self { to, file, imports: HashMap::new(), owner: None, implements_trait: false, within: None }
    }

    fn function(&mut self, name: &syn::Ident, attributes: &[Attribute], go_on: impl FnOnce(&mut Self)) {
        let function = Function {
            name: name.to_string(),
            owner: self.owner.clone(),
            implements_trait: self.implements_trait,
            file: self.file.clone(),
            purpose: first_sentence(&documentation(attributes)),
        };
        self.to.functions.push(function.clone());
        let outer = self.within.replace(function);
        go_on(self);
        self.within = outer;
    }

    fn import(&mut self, tree: &UseTree, path: &[String]) {
        match tree {
            UseTree::Path(inner) => {
                let longer = [path, &[inner.ident.to_string()]].concat();
                self.import(&inner.tree, &longer);
            }
            UseTree::Group(group) => group.items.iter().for_each(|item| self.import(item, path)),
            UseTree::Name(name) => self.imported(path, &name.ident.to_string()),
            UseTree::Rename(rename) => self.imported(path, &rename.rename.to_string()),
            UseTree::Glob(_) => {}
        }
    }

    fn imported(&mut self, path: &[String], name: &str) {
        if let [first, protocol, ..] = path
            && first == "abi"
        {
            self.imports.insert(name.to_string(), protocol.clone());
        }
    }

    /// The message that a path in a pattern stands for.
    fn key(&self, path: &syn::Path) -> Option<Key> {
        let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let protocol = |at: usize| match at.checked_sub(1) {
            Some(before) => Some(words[before].clone()),
            None => self.imports.get(&words[at]).cloned(),
        };
        let at = words.len().checked_sub(2)?;
        let (scope, name) = (words[at].as_str(), words[at + 1].as_str());
        match (scope, name) {
            ("nr", constant) => Some(Key::Linux(constant.to_lowercase())),
            ("linux", "SERVICE") => Some(Key::Linux("skink_service".to_string())),
            ("KernelCall", name) => Some(Key::Kernel(name.to_string())),
            ("Request", name) => Some(Key::Message(protocol(at)?, name.to_string())),
            (name, "LABEL") => Some(Key::Message(protocol(at)?, name.to_string())),
            _ => None,
        }
    }

    fn arm<'b>(&mut self, keys: Vec<Key>, handlers: impl IntoIterator<Item = &'b Expr>) {
        if keys.is_empty() {
            return;
        }
        let mut calls = Calls::default();
        handlers.into_iter().for_each(|handler| calls.visit_expr(handler));
        self.to.arms.push(Arm { keys, within: self.within.clone(), calls: calls.0 });
    }

    /// An entry of a table: a message, and what handles it.
    fn entry<'b>(&mut self, mut parts: impl Iterator<Item = &'b Expr>) {
        if let Some(Expr::Path(first)) = parts.next()
            && let Some(key) = self.key(&first.path)
        {
            self.arm(vec![key], parts);
        }
    }

    fn keys(&self, pattern: &Pat) -> Vec<Key> {
        match pattern {
            Pat::Or(or) => or.cases.iter().flat_map(|case| self.keys(case)).collect(),
            Pat::Path(path) => self.key(&path.path).into_iter().collect(),
            Pat::TupleStruct(tuple) if tuple.path.segments.last().is_some_and(|last| last.ident == "Some") => {
                tuple.elems.iter().flat_map(|inner| self.keys(inner)).collect()
            }
            Pat::TupleStruct(tuple) => self.key(&tuple.path).into_iter().collect(),
            _ => Vec::new(),
        }
    }
}

impl Visit<'_> for Reader<'_> {
    fn visit_item(&mut self, item: &Item) {
        if !attributes_of(item).iter().any(is_test) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        self.import(&item.tree, &[]);
    }

    fn visit_item_impl(&mut self, item: &syn::ItemImpl) {
        let outer = (self.owner.take(), self.implements_trait);
        if let syn::Type::Path(path) = &*item.self_ty {
            self.owner = path.path.segments.last().map(|last| last.ident.to_string());
        }
        self.implements_trait = item.trait_.is_some();
        visit::visit_item_impl(self, item);
        (self.owner, self.implements_trait) = outer;
    }

    fn visit_item_trait(&mut self, item: &syn::ItemTrait) {
        let outer = self.owner.replace(item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.owner = outer;
    }

    fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
        self.function(&item.sig.ident, &item.attrs, |reader| visit::visit_impl_item_fn(reader, item));
    }

    fn visit_trait_item_fn(&mut self, item: &syn::TraitItemFn) {
        self.function(&item.sig.ident, &item.attrs, |reader| visit::visit_trait_item_fn(reader, item));
    }

    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        self.function(&item.sig.ident, &item.attrs, |reader| visit::visit_item_fn(reader, item));
    }

    fn visit_item_const(&mut self, item: &syn::ItemConst) {
        self.function(&item.ident, &item.attrs, |reader| visit::visit_item_const(reader, item));
    }

    fn visit_item_static(&mut self, item: &syn::ItemStatic) {
        self.function(&item.ident, &item.attrs, |reader| visit::visit_item_static(reader, item));
    }

    fn visit_arm(&mut self, arm: &syn::Arm) {
        let keys = self.keys(&arm.pat);
        let arms = self.to.arms.len();
        self.arm(keys, [&*arm.body]);
        let mut bound = Bound::default();
        bound.visit_pat(&arm.pat);
        self.to.arms[arms..]
            .iter_mut()
            .for_each(|arm| arm.calls.retain(|called| called.is_method || !bound.0.contains(&called.name)));
        visit::visit_arm(self, arm);
    }

    fn visit_expr_call(&mut self, call: &syn::ExprCall) {
        self.entry(call.args.iter());
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_tuple(&mut self, tuple: &syn::ExprTuple) {
        self.entry(tuple.elems.iter());
        visit::visit_expr_tuple(self, tuple);
    }
}

/// Variables that a pattern binds: they name no function.
#[derive(Default)]
struct Bound(Vec<String>);

impl Visit<'_> for Bound {
    fn visit_pat_ident(&mut self, pattern: &syn::PatIdent) {
        self.0.push(pattern.ident.to_string());
    }
}

/// Collects the functions that expressions call or name.
#[derive(Default)]
struct Calls(Vec<Called>);

impl Visit<'_> for Calls {
    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        let receiver = match &*call.receiver {
            Expr::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            Expr::Field(syn::ExprField { member: syn::Member::Named(name), .. }) => Some(name.to_string()),
            _ => None,
        };
        self.0.push(Called { name: call.method.to_string(), receiver, is_method: true });
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &syn::ExprPath) {
        if let Some(last) = path.path.segments.last() {
            self.0.push(Called { name: last.ident.to_string(), receiver: None, is_method: false });
        }
    }
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test(attribute: &Attribute) -> bool {
    let mut is_test = false;
    if attribute.path().is_ident("cfg") {
        // A condition of another form is no test's.
        let _ = attribute.parse_nested_meta(|meta| {
            is_test |= meta.path.is_ident("test");
            Ok(())
        });
    }
    is_test
}

fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value().trim().to_string()),
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// The first sentence, without the brackets of links.
pub fn first_sentence(text: &str) -> String {
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    text[..end].trim().replace("[`", "`").replace("`]", "`")
}

#[cfg(test)]
mod tests;
