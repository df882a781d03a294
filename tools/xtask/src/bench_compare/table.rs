//! Rows of both systems, and their tables as Markdown.

use super::Measured;
use crate::performance::grouped;
use anyhow::{Context, Result, bail};
use std::fmt::Write;

/// One operation on both systems.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// Ticks on Skink.
    pub skink: u64,
    /// Ticks on Linux.
    pub linux: u64,
}

impl Row {
    /// Skink's ticks as a share of Linux's.
    pub fn ratio(&self) -> f64 {
        self.skink as f64 / self.linux.max(1) as f64
    }
}

/// Joins what both systems have printed.
///
/// # Errors
/// When a line is no row, or the systems did not print the same names in the same order.
pub fn rows(skink: &str, linux: &str) -> Result<Vec<Row>> {
    let (skink, linux) = (parse(skink)?, parse(linux)?);
    if skink.iter().map(|row| &row.0).ne(linux.iter().map(|row| &row.0)) {
        bail!("the systems printed different rows:\nSkink: {skink:?}\nLinux: {linux:?}");
    }
    let pairs = skink.into_iter().zip(linux);
    Ok(pairs.map(|((name, skink), (_, linux))| Row { name, skink, linux }).collect())
}

fn parse(printed: &str) -> Result<Vec<(String, u64)>> {
    let parse_line = |line: &str| {
        let (name, ticks) = line.rsplit_once(' ').with_context(|| format!("'{line}' is no row"))?;
        Ok((name.to_string(), ticks.parse().with_context(|| format!("'{line}' is no row"))?))
    };
    printed.lines().map(parse_line).collect()
}

/// The table of a section, and below it the geometric mean of its ratios.
pub fn markdown(section: &Measured) -> String {
    let mut text = format!("\n### {}\n\n| | Skink | Linux | ratio |\n|---|---|---|---|\n", section.title);
    for row in &section.rows {
        let ticks = (grouped(row.skink), grouped(row.linux));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | {} | {} | {:.2} |", row.name, ticks.0, ticks.1, row.ratio());
    }
    let _ = writeln!(text, "| geometric mean | | | {:.2} |", mean(&section.rows));
    text
}

/// Geometric mean of the ratios.
pub fn mean(rows: &[Row]) -> f64 {
    let sum: f64 = rows.iter().map(|row| row.ratio().ln()).sum();
    (sum / rows.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_joined_by_name() {
        let rows = rows("a b 10\nc 1\n", "a b 20\nc 4\n").expect("the same rows");
        assert_eq!(rows[0], Row { name: "a b".to_string(), skink: 10, linux: 20 });
        assert!((mean(&rows) - 0.125f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_row_that_one_system_lacks_is_an_error() {
        assert!(rows("a 1\nb 2\n", "a 1\n").is_err());
        assert!(rows("a 1\n", "b 1\n").is_err());
        assert!(rows("tar: no space\n", "tar: no space\n").is_err());
    }
}
