//! Rule: pages do not contradict the code where a program can tell: numbers that the code defines, the subcommands of
//! `./skink`, and the Linux calls that have a route.

use super::Source;
use crate::cli;
use crate::programs::Packages;
use crate::system;
use crate::workspace::Workspace;
use abi::linux;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// A number in a page, and its definition.
struct Fact {
    page: &'static str,
    /// The text of the page around the number.
    before: &'static str,
    after: &'static str,
    /// Where the definition is, and its text up to the number.
    folder: &'static str,
    definition: &'static str,
}

const FACTS: &[Fact] = &[
    Fact {
        page: "docs/glossary.md",
        before: "| queue | one of the ",
        after: " priorities",
        folder: "kernel/core/src/",
        definition: "const QUEUES: usize = ",
    },
    Fact {
        page: "docs/book/process.md",
        before: "There are ",
        after: " ready queues",
        folder: "kernel/core/src/",
        definition: "const QUEUES: usize = ",
    },
    Fact {
        page: "docs/book/process.md",
        before: "ready queues. 0 to ",
        after: " are for real-time threads",
        folder: "abi/src/rt.rs",
        definition: "pub const PRIORITIES: u64 = ",
    },
    Fact {
        page: "docs/linux.md",
        before: "| semget, semop, semtimedop, semctl | yes | ",
        after: " sets of",
        folder: "abi/src/",
        definition: "pub const SEMAPHORE_SETS: usize = ",
    },
    Fact {
        page: "docs/book/real-time.md",
        before: "with attributes, ",
        after: " of them",
        folder: "abi/src/rt.rs",
        definition: "pub const QUEUES: usize = ",
    },
];

/// The pages that tell of subcommands.
const COMMAND_PAGES: [&str; 3] = ["README.md", "docs/book", "tests"];
const CALL_PAGE: &str = "docs/linux.md";
/// Calls of Skink's own, which Linux's page does not have.
const OWN_CALLS: &str = "skink_";

/// Numbers, subcommands and calls that a page has otherwise than the code.
///
/// # Errors
/// When a page or the default system cannot be read.
pub fn problems(workspace: &Workspace, packages: &Packages, files: &[Source]) -> Result<Vec<String>> {
    let root = &workspace.root;
    let mut problems = Vec::new();
    for fact in FACTS {
        let page = read(root, fact.page)?;
        problems.extend(wrong_number(fact, &page, files));
    }
    for page in COMMAND_PAGES {
        problems.extend(wrong_commands(root, &root.join(page))?);
    }
    problems.extend(missing_calls(workspace, packages)?);
    Ok(problems)
}

fn read(root: &Path, page: &str) -> Result<String> {
    fs::read_to_string(root.join(page)).with_context(|| format!("cannot read {page}"))
}

fn wrong_number(fact: &Fact, page: &str, files: &[Source]) -> Option<String> {
    let Fact { page: path, before, after, folder, definition } = fact;
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let defined = files.iter().filter(|file| file.path.starts_with(folder));
    let defined = defined.filter_map(|file| number_after(&file.text, definition)).next();
    let stated = number_after(&page, before).filter(|_| page.contains(after));
    match (stated, defined) {
        (_, None) => Some(format!("{folder} has no '{definition}' any more, which {path} is compared with")),
        (None, _) => Some(format!("{path} does not say '{before}…{after}' any more, which is compared with the code")),
        (Some(stated), Some(defined)) => {
            (stated != defined).then(|| format!("{path}: says '{before}{stated}{after}', and the code {defined}"))
        }
    }
}

fn number_after(text: &str, before: &str) -> Option<u64> {
    let rest = &text[text.find(before)? + before.len()..];
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '_' || *c == ',').collect();
    digits.replace(['_', ','], "").parse().ok()
}

/// Subcommands that a page tells to use and that do not exist.
fn wrong_commands(root: &Path, path: &Path) -> Result<Vec<String>> {
    if path.is_dir() {
        let entries = fs::read_dir(path)?.flatten().map(|entry| entry.path());
        let inner = entries.filter(|entry| entry.is_dir() || entry.extension().is_some_and(|end| end == "md"));
        return Ok(inner.map(|entry| wrong_commands(root, &entry)).collect::<Result<Vec<_>>>()?.concat());
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let shown = path.strip_prefix(root).unwrap_or(path).display();
    let wrong = commands(&text).filter(|command| !commands(cli::HELP).any(|known| known == *command));
    Ok(wrong.map(|command| format!("{shown}: './skink {command}' is no command of ./skink --help")).collect())
}

/// The words after `./skink`.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split("./skink ").skip(1).filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase()).next());
    words.filter(|word| !word.is_empty())
}

/// Calls with a route that the page of Linux's calls does not tell of.
fn missing_calls(workspace: &Workspace, packages: &Packages) -> Result<Vec<String>> {
    let system = system::read(workspace, packages, cli::DEFAULT_SYSTEM)?;
    let page = read(&workspace.root, CALL_PAGE)?;
    let known: Vec<&str> = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let names = system.routes.iter().filter_map(|route| linux::name(route.number));
    let missing = names.filter(|name| !name.starts_with(OWN_CALLS) && !known.contains(name));
    Ok(missing.map(|name| format!("{CALL_PAGE}: does not have {name}, which has a route")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::source;

    fn found(page: &str, code: &str) -> Option<String> {
        let fact =
            Fact { page: "p.md", before: "one of ", after: " rooms", folder: "a/", definition: "const ROOMS: u8 = " };
        wrong_number(&fact, page, &[source("a/b.rs", code)])
    }

    #[test]
    fn a_number_is_the_one_that_the_code_defines() {
        assert_eq!(found("It is one\nof 1,064 rooms.", "pub const ROOMS: u8 = 1_064;"), None);
        assert!(found("one of 63 rooms", "const ROOMS: u8 = 64;").is_some_and(|wrong| wrong.contains("64")));
        assert!(found("one of many rooms", "const ROOMS: u8 = 64;").is_some());
        assert!(found("one of 64 rooms", "const HALLS: u8 = 64;").is_some());
    }

    #[test]
    fn commands_are_the_words_after_the_script() {
        assert_eq!(commands("`./skink run`, ./skink test x, ./skink --help").collect::<Vec<_>>(), ["run", "test"]);
    }
}
