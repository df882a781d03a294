//! Writes the tables of `./skink bench` into docs/performance.md, each between its two marks; and numbers as tables have them.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

const FILE: &str = "docs/performance.md";
const END: &str = "<!-- end -->\n";

/// Puts the table of the experiment `name` into it.
///
/// # Errors
/// When the file has no place for it.
pub fn write(root: &Path, name: &str, table: &str) -> Result<()> {
    let path = root.join(FILE);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {FILE}"))?;
    fs::write(&path, replaced(&text, name, table)?).with_context(|| format!("cannot write {FILE}"))
}

/// The table of the experiment `name`, as it stands there.
///
/// # Errors
/// When the file has none.
pub fn read(root: &Path, name: &str) -> Result<String> {
    let text = fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    parts(&text, name).map(|(_, table, _)| table.to_string())
}

/// What is before the table of `name`, with its mark, the table, and what is behind it.
fn parts<'a>(text: &'a str, name: &str) -> Result<(&'a str, &'a str, &'a str)> {
    let begin = format!("<!-- written by ./skink bench {name} -->\n");
    let found = text.find(&begin).map(|at| text.split_at(at + begin.len()));
    let parts = found.and_then(|(before, rest)| Some((before, rest.split_at(rest.find(END)?))));
    let Some((before, (table, after))) = parts else {
        bail!("{FILE} has no lines {} and {}", begin.trim(), END.trim());
    };
    Ok((before, table, after))
}

fn replaced(text: &str, name: &str, table: &str) -> Result<String> {
    let (before, _, after) = parts(text, name)?;
    Ok(format!("{before}{table}{after}"))
}

/// With commas between the thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let begin = "<!-- written by ./skink bench io -->\n";
        let text = format!("a\n{begin}old\n{END}b\n");
        assert_eq!(replaced(&text, "io", "new\n").expect("has the marks"), format!("a\n{begin}new\n{END}b\n"));
        assert!(replaced("a\n", "io", "new\n").is_err() && replaced(&text, "rt", "new\n").is_err());
    }

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
