//! The modules of one crate, and which of them each file names.
//!
//! Reads source as tokens, so that paths inside macros count too. What only tests have does not count.
//! Method calls on a value name no module: what a struct lets others touch is up to its fields.

use crate::check::Source;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::FromStr;
use std::vec::IntoIter;

/// Names from the crate's root down; the root itself is empty.
pub type ModulePath = Vec<String>;

/// How many re-exports are followed from a name to where it is defined.
const REEXPORTS: usize = 8;

/// A path in one module that names something of another.
#[derive(Debug, PartialEq)]
pub struct Import {
    /// Path of the file and number of the line.
    pub place: String,
    /// The module the file belongs to.
    pub from: ModulePath,
    /// The module that defines what is named.
    pub to: ModulePath,
}

/// The modules of a crate that are not for tests alone.
pub struct Tree<'a> {
    modules: BTreeMap<ModulePath, Module<'a>>,
}

struct Module<'a> {
    file: &'a Source,
    paths: Vec<Path>,
}

/// A path as written, made absolute but not yet looked up.
struct Path {
    line: usize,
    names: Vec<String>,
    /// The name under which a `use` makes it known in this module.
    known_as: Option<String>,
}

impl<'a> Tree<'a> {
    /// Follows the `mod` lines from src/lib.rs and src/main.rs of the crate in `folder`.
    pub fn read(folder: &str, files: &'a [Source]) -> Self {
        let mut tree = Self { modules: BTreeMap::new() };
        for root in ["lib.rs", "main.rs"] {
            tree.follow(&format!("{folder}/src"), root, Vec::new(), files);
        }
        tree
    }

    fn follow(&mut self, folder: &str, name: &str, module: ModulePath, files: &'a [Source]) {
        let path = format!("{folder}/{name}");
        let Some(file) = files.iter().find(|file| file.path == path) else { return };
        let mut reader = Reader { module: module.clone(), children: Vec::new(), paths: Vec::new() };
        // What is no Rust does not compile either, and the compiler says it better.
        reader.read(TokenStream::from_str(&file.text).unwrap_or_default());
        // A crate with a library and a program has two roots, which are one here.
        let known = self.modules.entry(module.clone()).or_insert(Module { file, paths: Vec::new() });
        known.paths.extend(reader.paths);
        let folder = match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_string(),
            _ => path.trim_end_matches(".rs").to_string(),
        };
        for child in reader.children {
            let below: ModulePath = module.iter().cloned().chain([child.clone()]).collect();
            self.follow(&folder, &format!("{child}.rs"), below.clone(), files);
            self.follow(&format!("{folder}/{child}"), "mod.rs", below, files);
        }
    }

    /// All modules.
    pub fn modules(&self) -> impl Iterator<Item = &ModulePath> {
        self.modules.keys()
    }

    /// Whether the module has modules below it.
    pub fn is_folder(&self, module: &[String]) -> bool {
        self.modules.keys().any(|other| other.len() > module.len() && other.starts_with(module))
    }

    /// Lines of all files together.
    pub fn lines(&self) -> usize {
        self.modules.values().map(|module| module.file.text.lines().count()).sum()
    }

    /// What each module names of others.
    pub fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        for (from, module) in &self.modules {
            for path in &module.paths {
                let to = self.definer(&path.names, REEXPORTS);
                if to != *from {
                    let place = format!("{}:{}", module.file.path, path.line);
                    imports.push(Import { place, from: from.clone(), to });
                }
            }
        }
        imports
    }

    /// The module that defines what `names` leads to.
    fn definer(&self, names: &[String], reexports: usize) -> ModulePath {
        let depth = (0..=names.len()).rev().find(|depth| self.modules.contains_key(&names[..*depth])).unwrap_or(0);
        let (module, rest) = names.split_at(depth);
        match rest.first().and_then(|name| self.reexported(module, name)) {
            Some(path) if reexports > 0 && path.names != names => self.definer(&path.names, reexports - 1),
            _ => module.to_vec(),
        }
    }

    fn reexported(&self, module: &[String], name: &str) -> Option<&Path> {
        let paths = &self.modules.get(module)?.paths;
        paths.iter().find(|path| path.known_as.as_deref() == Some(name))
    }
}

/// Collects the paths and the child modules of one file.
struct Reader {
    module: ModulePath,
    children: Vec<String>,
    paths: Vec<Path>,
}

type Tokens = Peekable<IntoIter<TokenTree>>;

impl Reader {
    fn read(&mut self, stream: TokenStream) {
        let mut tokens = tokens_of(stream);
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => skip_if_for_tests(&mut tokens),
                TokenTree::Group(group) => self.read(group.stream()),
                TokenTree::Ident(word) => self.word(&word.to_string(), &mut tokens),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn word(&mut self, word: &str, tokens: &mut Tokens) {
        match word {
            "mod" => self.child(tokens),
            // `use<…>` in a type names no path.
            "use" if !tokens.peek().is_some_and(|token| is_mark(token, '<')) => {
                let tree: Vec<TokenTree> = tokens.by_ref().take_while(|token| !is_mark(token, ';')).collect();
                self.use_tree(&mut tree.into_iter().peekable(), None);
            }
            "crate" | "super" if next_is_colons(tokens) => {
                let base = self.base(word);
                self.plain_path(base, tokens);
            }
            _ => {}
        }
    }

    /// `mod name;` or `mod name { … }`.
    fn child(&mut self, tokens: &mut Tokens) {
        let Some(TokenTree::Ident(name)) = tokens.next() else { return };
        match tokens.next() {
            Some(TokenTree::Group(body)) => {
                self.module.push(name.to_string());
                self.read(body.stream());
                self.module.pop();
            }
            _ => self.children.push(name.to_string()),
        }
    }

    fn base(&self, word: &str) -> Vec<String> {
        match word {
            "crate" => Vec::new(),
            "super" => self.module[..self.module.len().saturating_sub(1)].to_vec(),
            _ => self.module.clone(),
        }
    }

    /// The rest of a path in an expression or a type.
    fn plain_path(&mut self, mut names: Vec<String>, tokens: &mut Tokens) {
        let mut line = 0;
        while next_is_colons(tokens) {
            tokens.nth(1);
            match tokens.peek() {
                Some(TokenTree::Ident(name)) => {
                    line = name.span().start().line;
                    if name == "super" {
                        drop(names.pop())
                    } else {
                        names.push(name.to_string())
                    }
                    tokens.next();
                }
                _ => break,
            }
        }
        self.paths.push(Path { line, names, known_as: None });
    }

    /// The tree of one `use`. `prefix` is None at its beginning, where a name may be another crate's.
    fn use_tree(&mut self, tokens: &mut Tokens, prefix: Option<Vec<String>>) {
        let mut names = prefix;
        let mut known_as = None;
        let mut line = 0;
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    for branch in branches(group.stream()) {
                        self.use_tree(&mut branch.into_iter().peekable(), names.clone());
                    }
                    return;
                }
                TokenTree::Ident(word) if word == "as" => known_as = tokens.next().map(|name| name.to_string()),
                TokenTree::Ident(word) => {
                    line = word.span().start().line;
                    let word = word.to_string();
                    names = Some(match (names, word.as_str()) {
                        (None, "crate" | "super" | "self") => self.base(&word),
                        (None, _) => self.module.iter().cloned().chain([word]).collect(),
                        (Some(names), "self") => names,
                        (Some(names), "super") => names[..names.len().saturating_sub(1)].to_vec(),
                        (Some(names), _) => names.into_iter().chain([word]).collect(),
                    });
                }
                _ => {}
            }
        }
        let Some(names) = names else { return };
        let known_as = known_as.or_else(|| names.last().cloned());
        self.paths.push(Path { line, names, known_as });
    }
}

fn tokens_of(stream: TokenStream) -> Tokens {
    stream.into_iter().collect::<Vec<_>>().into_iter().peekable()
}

/// The branches between the commas of a `use` group. Behind the last comma there is none.
fn branches(stream: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let branches = tokens.split(|token| is_mark(token, ',')).filter(|branch| !branch.is_empty());
    branches.map(<[TokenTree]>::to_vec).collect()
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(own) if own.as_char() == mark)
}

fn next_is_colons(tokens: &mut Tokens) -> bool {
    tokens.peek().is_some_and(|token| is_mark(token, ':'))
}

/// After the `#` of an attribute: takes the item away that `#[cfg(test)]` stands before.
fn skip_if_for_tests(tokens: &mut Tokens) {
    let Some(TokenTree::Group(attribute)) = tokens.peek() else { return };
    if attribute.stream().to_string().replace(' ', "") != "cfg(test)" {
        return;
    }
    for token in tokens.by_ref().skip(1) {
        let is_body = matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        if is_body || is_mark(&token, ';') {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::source;

    /// `FROM -> TO` for each import of a crate of these files.
    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<Source> = files.iter().map(|(path, text)| source(&format!("c/src/{path}"), text)).collect();
        let tree = Tree::read("c", &files);
        tree.imports().iter().map(|import| format!("{} -> {}", import.from.join("::"), import.to.join("::"))).collect()
    }

    #[test]
    fn uses_paths_and_macros_are_imports() {
        let a = "use crate::{b::{self, c::C},};\nfn f() { super::b::g(); m!(crate::d::X); std::b::h(); }\n";
        let files =
            [("main.rs", "mod a; mod b; mod d;"), ("a.rs", a), ("b/mod.rs", "mod c;"), ("b/c.rs", ""), ("d.rs", "")];
        assert_eq!(imports(&files), ["a -> b", "a -> b::c", "a -> b", "a -> d"]);
    }

    #[test]
    fn a_reexport_leads_to_the_module_that_defines_the_name() {
        let root = "mod a;\nmod b;\npub use b::B as C;\nconst D: u8 = 1;\n";
        let files = [("lib.rs", root), ("a.rs", "use crate::C;\nuse crate::D;\nuse abi::E;\n"), ("b.rs", "struct B;")];
        assert_eq!(imports(&files), [" -> b", "a -> b", "a -> "]);
    }

    #[test]
    fn super_counts_from_the_module_it_stands_in() {
        let inline = "mod inside { use super::X; use super::super::super::e::Y; }\n";
        let files = [("lib.rs", "mod a;mod e;"), ("a.rs", "mod b;"), ("a/b.rs", inline), ("e.rs", "")];
        assert_eq!(imports(&files), ["a::b -> e"]);
    }

    #[test]
    fn what_only_tests_have_is_left_out() {
        let a = "#[cfg(test)]\nmod tests { use crate::b::X; }\n#[cfg(test)]\nuse crate::b::Y;\n// crate::b::Z\n";
        let files = [
            ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod t;\n"),
            ("a.rs", a),
            ("b.rs", ""),
            ("t.rs", "use crate::b;"),
        ];
        assert_eq!(imports(&files), Vec::<String>::new());
    }
}
