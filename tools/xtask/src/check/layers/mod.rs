//! Rule: inside a large crate imports go down, and none in a circle.
//!
//! The crate's layers.toml lists its top-level modules from bottom to top; a module may import those below
//! it and its neighbours in the same layer, as long as that makes no circle. In every folder the folders in it must not
//! import each other in a circle either. The crate's root stands above all.

mod graph;
mod tree;

use super::Source;
use crate::programs::Packages;
use graph::Graph;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use tree::{Import, ModulePath, Tree};

/// Larger crates declare their layers.
const CRATE_LINES: usize = 4_000;
const FILE: &str = "layers.toml";

/// layers.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    /// Modules of each layer, from bottom to top.
    layers: Vec<Vec<String>>,
}

/// Large crates without layers, and imports that the layers forbid.
pub fn problems(root: &Path, packages: &Packages, files: &[Source]) -> Vec<String> {
    let folders = packages.all().iter().filter_map(|package| package.manifest_path.parent()?.strip_prefix(root).ok());
    let mut problems = Vec::new();
    for folder in folders.map(|folder| folder.to_string_lossy().into_owned()) {
        let declared = fs::read_to_string(root.join(&folder).join(FILE)).ok();
        problems.extend(problems_of(&folder, declared.as_deref(), files));
    }
    problems
}

fn problems_of(folder: &str, declared: Option<&str>, files: &[Source]) -> Vec<String> {
    let tree = Tree::read(folder, files);
    let imports = tree.imports();
    match declared {
        None if tree.lines() <= CRATE_LINES => Vec::new(),
        None => vec![undeclared(folder, &tree, &imports)],
        Some(text) => match toml::from_str::<Declared>(text) {
            Ok(declared) => declared_problems(folder, &declared, &tree, &imports),
            Err(error) => vec![format!("{folder}/{FILE}: {}", error.message())],
        },
    }
}

/// Says which layers would do, or what stands in the way of any.
fn undeclared(folder: &str, tree: &Tree, imports: &[Import]) -> String {
    let graph = graph_in(&[], tree, imports);
    let lines = tree.lines();
    let Some(layers) = graph.layers() else {
        let circles = circles_in(&[], tree, imports).join("\n");
        return format!("{folder}: has {lines} lines and no {FILE}; first these circles have to go:\n{circles}");
    };
    let rows: Vec<String> = layers.iter().map(|layer| format!("    {layer:?},\n")).collect();
    format!("{folder}: has {lines} lines and no {FILE}; these layers would do:\nlayers = [\n{}]", rows.concat())
}

fn declared_problems(folder: &str, declared: &Declared, tree: &Tree, imports: &[Import]) -> Vec<String> {
    let mut levels = BTreeMap::new();
    let mut problems = Vec::new();
    for (level, layer) in declared.layers.iter().enumerate() {
        for module in layer {
            if levels.insert(module.as_str(), level).is_some() {
                problems.push(format!("{folder}/{FILE}: lists {module} twice"));
            }
        }
    }
    let modules = top_modules(tree);
    let missing = modules.iter().filter(|module| !levels.contains_key(*module));
    problems.extend(missing.map(|module| format!("{folder}/{FILE}: does not list {module}")));
    let gone = levels.keys().filter(|module| !modules.contains(**module));
    problems.extend(gone.map(|module| format!("{folder}/{FILE}: lists {module}, which is no module of the crate")));
    problems.extend(upward(folder, &levels, imports));
    problems.extend(circle_problems(folder, tree, imports));
    problems
}

fn upward(folder: &str, levels: &BTreeMap<&str, usize>, imports: &[Import]) -> Vec<String> {
    let level = |module: &str| levels.get(module).copied();
    let mut problems = Vec::new();
    for import in imports {
        let Some(from) = import.from.first() else { continue };
        match import.to.first() {
            None => problems.push(format!("{}: {from} imports from the crate's root, which is above it", import.place)),
            Some(to) if level(from) < level(to) => {
                problems.push(format!("{}: {from} imports {to}, which {folder}/{FILE} puts above it", import.place));
            }
            Some(_) => {}
        }
    }
    problems
}

/// Circles between top-level modules, and between the folders of each folder.
fn circle_problems(folder: &str, tree: &Tree, imports: &[Import]) -> Vec<String> {
    let inside = tree.modules().filter(|module| tree.is_folder(module));
    let circles = inside.flat_map(|module| circles_in(module, tree, imports));
    circles.map(|circle| format!("{folder}: imports go in a circle: {circle}")).collect()
}

/// Circles between the modules right under `parent`, each as `a → b (file:line) → a (file:line)`.
fn circles_in(parent: &[String], tree: &Tree, imports: &[Import]) -> Vec<String> {
    let describe = |circle: Vec<&str>| {
        let steps = circle.iter().zip(circle.iter().cycle().skip(1)).map(|(from, to)| {
            let mut arrows = arrows(parent, imports);
            let place = arrows.find(|arrow| (arrow.0, arrow.1) == (*from, *to)).map_or("", |arrow| &arrow.2.place);
            format!(" → {to} ({place})")
        });
        format!("{}{}", circle[0], steps.collect::<String>())
    };
    graph_in(parent, tree, imports).circles().into_iter().map(describe).collect()
}

/// Imports between the modules right under `parent`; below the top only between those that are folders.
fn graph_in<'a>(parent: &[String], tree: &'a Tree, imports: &'a [Import]) -> Graph<'a> {
    let mut graph = Graph::default();
    let children = tree.modules().filter(|module| module.len() == parent.len() + 1 && module.starts_with(parent));
    let counts = |child: &&ModulePath| parent.is_empty() || tree.is_folder(child);
    let names: Vec<&str> = children.filter(counts).map(|child| child[parent.len()].as_str()).collect();
    names.iter().for_each(|name| graph.add_node(name));
    let counted = |arrow: &(&str, &str, &Import)| names.contains(&arrow.0) && names.contains(&arrow.1);
    arrows(parent, imports).filter(counted).for_each(|(from, to, _)| graph.add_arrow(from, to));
    graph
}

/// Imports between the modules right under `parent`: importer, imported, import.
fn arrows<'a>(parent: &[String], imports: &'a [Import]) -> impl Iterator<Item = (&'a str, &'a str, &'a Import)> {
    let child = |path: &'a ModulePath| path.strip_prefix(parent)?.first().map(String::as_str);
    imports.iter().filter_map(move |import| Some((child(&import.from)?, child(&import.to)?, import)))
}

fn top_modules<'a>(tree: &'a Tree) -> BTreeSet<&'a str> {
    tree.modules().filter(|module| module.len() == 1).map(|module| module[0].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::source;

    fn found(declared: Option<&str>, files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<Source> = files.iter().map(|(path, text)| source(&format!("c/src/{path}"), text)).collect();
        problems_of("c", declared, &files)
    }

    const ROOT: (&str, &str) = ("main.rs", "mod a;\nmod b;\nmod c;\n");

    #[test]
    fn imports_go_down() {
        let files = [ROOT, ("a.rs", "use crate::b::X;\n"), ("b.rs", "use crate::c::X;\n"), ("c.rs", "")];
        assert!(found(Some("layers = [[\"c\"], [\"b\"], [\"a\"]]"), &files).is_empty());
        assert!(found(Some("layers = [[\"a\", \"b\", \"c\"]]"), &files).is_empty());
        assert_eq!(
            found(Some("layers = [[\"b\"], [\"a\", \"c\"]]"), &files),
            ["c/src/b.rs:1: b imports c, which c/layers.toml puts above it"]
        );
    }

    #[test]
    fn the_root_is_above_all() {
        let files = [ROOT, ("a.rs", "\nuse crate::X;\n"), ("b.rs", ""), ("c.rs", "")];
        assert_eq!(
            found(Some("layers = [[\"a\", \"b\", \"c\"]]"), &files),
            ["c/src/a.rs:2: a imports from the crate's root, which is above it"]
        );
    }

    #[test]
    fn circles_are_named_with_their_imports() {
        let files = [ROOT, ("a.rs", "use crate::b::X;\n"), ("b.rs", "use crate::a::X;\n"), ("c.rs", "")];
        assert_eq!(
            found(Some("layers = [[\"a\", \"b\", \"c\"]]"), &files),
            ["c: imports go in a circle: a → b (c/src/a.rs:1) → a (c/src/b.rs:1)"]
        );
    }

    #[test]
    fn folders_in_a_folder_make_no_circle_either() {
        let files = [
            ("main.rs", "mod a;"),
            ("a/mod.rs", "mod x;\nmod y;\n"),
            ("a/x/mod.rs", "mod p;\nuse super::y::q::Q;\n"),
            ("a/x/p.rs", ""),
            ("a/y/mod.rs", "mod q;\n"),
            ("a/y/q.rs", "use crate::a::x::p::P;\n"),
        ];
        assert_eq!(found(Some("layers = [[\"a\"]]"), &files).len(), 1);
    }

    #[test]
    fn the_declaration_lists_every_module_once() {
        let files = [ROOT, ("a.rs", ""), ("b.rs", ""), ("c.rs", "")];
        assert_eq!(
            found(Some("layers = [[\"a\", \"b\"], [\"b\", \"d\"]]"), &files),
            [
                "c/layers.toml: lists b twice",
                "c/layers.toml: does not list c",
                "c/layers.toml: lists d, which is no module of the crate"
            ]
        );
        assert!(found(Some("layer = []"), &files)[0].starts_with("c/layers.toml: unknown field"));
    }

    #[test]
    fn a_large_crate_is_told_which_layers_would_do() {
        let long = "\n".repeat(CRATE_LINES);
        let files = [ROOT, ("a.rs", "use crate::b::X;\n"), ("b.rs", &long), ("c.rs", "")];
        assert_eq!(
            found(None, &files),
            [
                "c: has 4004 lines and no layers.toml; these layers would do:\nlayers = [\n    [\"b\", \"c\"],\n    [\"a\"],\n]"
            ]
        );
        assert!(found(None, &files[..2]).is_empty());
    }
}
