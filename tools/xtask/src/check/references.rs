//! Rule: what the text cites exists. Paths of the checkout, links between pages, documents by name, and functions as
//! `path/file.rs::name`; nothing is cited that only people outside the repository have.

use super::Source;
use super::source::code_only;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// What cites something outside: a list of papers, a checklist, and its rows.
const OUTSIDE: [&str; 4] = ["paper 0", "viability thesis", "of the checklist", "paper row"];
/// The letters that such rows begin with.
const ROW_LETTERS: &str = "RTVH";
/// Its strings are examples, of what does not exist too; only its comments count.
const EXAMPLES: &str = "tools/xtask/";
/// Its strings are paths of the guest, without the slash at their beginning.
const GUEST_PATHS: &str = "fs/procfs/src/";
/// Extensions of files that are text.
const TEXT: [&str; 8] = ["rs", "c", "h", "s", "md", "toml", "sh", "txt"];

/// Everything that git has: files and the folders they are in.
struct Known {
    files: BTreeSet<String>,
    folders: BTreeSet<String>,
}

/// Citations of what does not exist, in comments, strings and pages.
///
/// # Errors
/// When git or a file cannot be read.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let known = Known::read(root)?;
    let mut problems = Vec::new();
    for path in known.files.iter().filter(|path| is_text(path)) {
        let full_path = root.join(path);
        let text = fs::read_to_string(&full_path).with_context(|| format!("cannot read {path}"))?;
        let source = Source { path: path.clone(), full_path, text };
        let only_comments = [EXAMPLES, GUEST_PATHS].iter().any(|folder| path.starts_with(folder));
        let counts = |line: &str| !only_comments || line.trim_start().starts_with("//");
        let prose = prose(&source);
        for (number, line) in prose.lines().enumerate().filter(|(_, line)| counts(line)) {
            let wrong = known.wrong_in(root, &source, line);
            problems.extend(wrong.into_iter().map(|wrong| format!("{path}:{}: {wrong}", number + 1)));
        }
    }
    Ok(problems)
}

fn is_text(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| TEXT.iter().any(|text| extension == *text))
}

/// `source` without its code: comments and strings at their lines. Pages are prose as a whole.
fn prose(source: &Source) -> String {
    let is_code = [".rs", ".c", ".h", ".s"].iter().any(|end| source.path.ends_with(end));
    if !is_code {
        return source.text.clone();
    }
    let code = code_only(&source.text);
    let pairs = source.text.chars().zip(code.chars());
    pairs.map(|(character, code)| if character == '\n' || character != code { character } else { ' ' }).collect()
}

impl Known {
    fn read(root: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.current_dir(root).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
        let output = git.output().context("cannot run git")?;
        let all = String::from_utf8_lossy(&output.stdout);
        let files: BTreeSet<String> =
            all.lines().filter(|path| root.join(path).is_file()).map(str::to_string).collect();
        let above = files.iter().flat_map(|path| Path::new(path).ancestors().skip(1));
        let folders = above.map(|folder| folder.to_string_lossy().into_owned()).collect();
        Ok(Self { files, folders })
    }

    fn wrong_in(&self, root: &Path, source: &Source, line: &str) -> Vec<String> {
        let mut wrong: Vec<String> = links(line).filter_map(|link| self.wrong_link(source, link)).collect();
        wrong.extend(words(line).filter_map(|word| self.wrong_word(root, source, word)));
        wrong.extend(outside(line).map(|cited| format!("cites '{cited}', which is not in the repository")));
        wrong
    }

    /// A link of a page is relative to the page.
    fn wrong_link(&self, source: &Source, link: &str) -> Option<String> {
        let path = link.split('#').next().filter(|path| !path.is_empty() && !path.contains(':'))?;
        let target = plain(&Path::new(&source.path).parent()?.join(path));
        (source.path.ends_with(".md") && !self.has(&target)).then(|| format!("links to {link}, which does not exist"))
    }

    fn wrong_word(&self, root: &Path, source: &Source, word: &str) -> Option<String> {
        let (path, function) = word.split_once("::").unwrap_or((word, ""));
        let path = path.split(':').next()?.trim_end_matches(['/', '.']);
        if is_pattern(path) {
            return None;
        }
        let top = path.split('/').next()?;
        if path.contains('/') && self.folders.contains(top) {
            // A test's name is its path in tests/.
            let found = self.find(source, path).or_else(|| self.find(source, &format!("tests/{path}.sh")));
            let Some(found) = found else {
                return Some(format!("cites {path}, which does not exist"));
            };
            return lacks_function(root, found, function).then(|| format!("{found} has no {function}"));
        }
        let is_page = path.ends_with(".md") && !path.contains('/');
        let exists = || self.files.iter().any(|file| file.rsplit('/').next() == Some(path));
        (is_page && !exists()).then(|| format!("cites {path}, which does not exist"))
    }

    fn has(&self, path: &str) -> bool {
        self.files.contains(path) || self.folders.contains(path)
    }

    /// The file or folder of that path: from the checkout, in which `src/` may be left out, or from a folder above `source`.
    fn find<'a>(&'a self, source: &Source, path: &str) -> Option<&'a str> {
        let mut above =
            Path::new(&source.path).ancestors().map(|folder| folder.join(path).to_string_lossy().into_owned());
        let exact = above.find(|path| self.has(path));
        let all = || self.files.iter().chain(&self.folders).map(String::as_str);
        all().find(|known| exact.as_deref() == Some(*known) || exact.is_none() && known.replace("/src/", "/") == path)
    }
}

/// Names that stand for others: `systems/NAME.toml`, `tests/qemu/*`.
fn is_pattern(path: &str) -> bool {
    let names = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    path.contains(['*', '…', '<', '{', '$', '%'])
        || path.split(['/', '.']).any(|part| names(part) && part != "README" && part != "CAVEATS" && part != "DESIGN")
}

fn lacks_function(root: &Path, file: &str, function: &str) -> bool {
    let name = function.split(['(', ' ']).next().unwrap_or_default();
    let is_name = !name.is_empty() && file.ends_with(".rs");
    is_name && !fs::read_to_string(root.join(file)).is_ok_and(|text| text.contains(name))
}

/// The targets of `[text](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// Words that may be paths: not those of links, of the guest (`/etc/rc`) or of other places (`../a`, `~/a`).
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || "/._-:*…<>{}$~%".contains(c);
    let words = line.split(move |c: char| !is_part(c));
    words.map(|word| word.trim_end_matches(['.', ':', '…'])).filter(|word| !word.starts_with(['/', '.', '~', '$', '<']))
}

/// What a line cites of lists that only people outside have.
fn outside(line: &str) -> impl Iterator<Item = &str> {
    let phrases = OUTSIDE.iter().filter(|phrase| line.contains(*phrase)).copied();
    let rows = line.split(|c: char| !c.is_alphanumeric()).filter(|word| is_row(line, word));
    phrases.chain(rows)
}

/// `R58`, `T24`: but registers are called R8 to R15.
fn is_row(line: &str, word: &str) -> bool {
    let Some((letter, digits)) = word.split_at_checked(1) else { return false };
    let is_number = (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_register = letter == "R" && matches!(digits, "8" | "9" | "10" | "11" | "12" | "13" | "14" | "15");
    let is_cited = line.contains("(") || line.contains("row") || line.contains("| ");
    ROW_LETTERS.contains(letter) && is_number && digits.len() > 1 && !is_register && is_cited
}

/// `a/b/../c` without its detours.
fn plain(path: &Path) -> String {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::source;

    fn wrong(path: &str, line: &str) -> Vec<String> {
        let files: BTreeSet<String> =
            ["docs/book/ideas.md", "docs/linux.md", "abi/src/grant.rs", "README.md"].map(str::to_string).into();
        let folders = ["", "docs", "docs/book", "abi", "abi/src"].map(str::to_string).into();
        let source = source(path, line);
        Known { files, folders }.wrong_in(Path::new("/nowhere"), &source, prose(&source).trim_end())
    }

    #[test]
    fn paths_and_pages_that_exist_may_be_cited() {
        let line =
            "see docs/book/ideas.md, 4, `abi/grant.rs`, abi/src/, linux.md and /etc/docs/x; docs/NAME.md, docs/*.md\n";
        assert_eq!(wrong("docs/x.md", line), Vec::<String>::new());
        assert_eq!(
            wrong("docs/x.md", "[a](book/ideas.md#top) [b](../README.md) [c](https://example.org)\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn what_does_not_exist_is_named() {
        assert_eq!(wrong("docs/x.md", "docs/book/idea.md\n"), ["cites docs/book/idea.md, which does not exist"]);
        assert_eq!(wrong("abi/src/x.rs", "// as DESIGN.md says\n"), ["cites DESIGN.md, which does not exist"]);
        assert_eq!(wrong("docs/x.md", "[a](book/idea.md)\n"), ["links to book/idea.md, which does not exist"]);
        assert_eq!(wrong("docs/x.md", "abi/src/grant.rs::take\n"), ["abi/src/grant.rs has no take"]);
    }

    #[test]
    fn code_cites_nothing() {
        assert_eq!(wrong("abi/src/x.rs", "let x = docs/book/idea.md;\n"), Vec::<String>::new());
    }

    #[test]
    fn rows_of_lists_outside_are_named() {
        assert_eq!(wrong("abi/src/x.rs", "/// Counters (R62).\n").len(), 1);
        assert_eq!(wrong("docs/x.md", "broken (row T24 of the viability thesis)\n").len(), 2);
        assert_eq!(wrong("abi/src/x.s", "// saves R11 (and R15)\n"), Vec::<String>::new());
    }
}
