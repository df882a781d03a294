//! How much the kernel does between two preemption points: the table of docs/book/real-time.md and the constants of the kernel say the same.
//!
//! A constant whose name ends with `_AT_ONCE` bounds a loop. Each has to be in the table, as "`NAME` = value", and so may others be.

use super::Source;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const CHAPTER: &str = "docs/book/real-time.md";
const BOUND: &str = "_AT_ONCE";

/// Bounds that the table does not tell, or tells otherwise than the kernel.
///
/// # Errors
/// When the chapter cannot be read.
pub fn problems(root: &Path, files: &[Source]) -> Result<Vec<String>> {
    let chapter = fs::read_to_string(root.join(CHAPTER)).with_context(|| format!("cannot read {CHAPTER}"))?;
    let kernel = files.iter().filter(|file| file.path.starts_with("kernel/") && file.path.contains("/src/"));
    Ok(compare(&constants(kernel.map(|file| file.text.as_str())), &quoted(&chapter)))
}

fn compare(constants: &BTreeMap<&str, &str>, quoted: &BTreeMap<&str, u64>) -> Vec<String> {
    let wrong = quoted.iter().filter_map(|(name, &told)| match value(constants, name) {
        Some(real) if real == told => None,
        Some(real) => Some(format!("{CHAPTER}: {name} = {told}, but the kernel has {real}")),
        None => Some(format!("{CHAPTER}: the kernel has no constant {name}")),
    });
    let bounds = constants.keys().filter(|name| name.ends_with(BOUND) && !quoted.contains_key(*name));
    wrong.chain(bounds.map(|name| format!("{CHAPTER}: the table of bounds lacks `{name}`"))).collect()
}

/// The constants of integer type, and the expressions that they stand for.
fn constants<'a>(texts: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, &'a str> {
    let constant = |line: &'a str| {
        let (name, rest) = line.trim().trim_start_matches("pub ").strip_prefix("const ")?.split_once(": ")?;
        let (kind, expression) = rest.split_once(" = ")?;
        matches!(kind, "usize" | "u64" | "u32" | "u16").then(|| (name, expression.trim_end_matches(';')))
    };
    texts.flat_map(str::lines).filter_map(constant).collect()
}

/// The value of a constant: numbers and other constants with `*` and `/` between them.
fn value(constants: &BTreeMap<&str, &str>, name: &str) -> Option<u64> {
    let mut words = constants.get(name)?.split(' ');
    let operand = |word: &str| word.replace('_', "").parse().ok().or_else(|| value(constants, word));
    let mut result: u64 = operand(words.next()?)?;
    while let Some(operator) = words.next() {
        let other = operand(words.next()?)?;
        result = match operator {
            "*" => result.checked_mul(other)?,
            "/" => result.checked_div(other)?,
            _ => return None,
        };
    }
    Some(result)
}

/// What the lines of tables say: "`NAME` = value".
fn quoted(chapter: &str) -> BTreeMap<&str, u64> {
    let rows = chapter.lines().filter(|line| line.starts_with('|'));
    let parts = rows.flat_map(|row| row.split('`').zip(row.split('`').skip(1)));
    parts
        .filter_map(|(name, after)| {
            let digits = after.strip_prefix(" = ")?;
            let end = digits.find(|letter: char| !letter.is_ascii_digit() && letter != ',').unwrap_or(digits.len());
            Some((name, digits[..end].replace(',', "").parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "/// Many.\npub const CHUNK_BYTES: u64 = 64 * 1024;\nconst COST: u64 = 128;\nconst PAGES_AT_ONCE: u64 = CHUNK_BYTES / COST;\nconst ALARMS_AT_ONCE: usize = 4;\nconst NAME: &str = \"a\";\n";

    fn found(chapter: &str) -> Vec<String> {
        compare(&constants([KERNEL].into_iter()), &quoted(chapter))
    }

    #[test]
    fn a_table_that_says_what_the_kernel_does_is_right() {
        let rows =
            "| alarms | `ALARMS_AT_ONCE` = 4; the timer |\n| pages | `PAGES_AT_ONCE` = 512, `CHUNK_BYTES` = 65,536 |\n";
        assert_eq!(found(rows), Vec::<String>::new());
    }

    #[test]
    fn wrong_missing_and_unknown_bounds_are_found() {
        let found = found("| alarms | `ALARMS_AT_ONCE` = 5 |\n| more | `STEPS_AT_ONCE` = 4 |\n");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].ends_with("ALARMS_AT_ONCE = 5, but the kernel has 4"));
        assert!(found[1].ends_with("no constant STEPS_AT_ONCE") && found[2].ends_with("lacks `PAGES_AT_ONCE`"));
    }
}
