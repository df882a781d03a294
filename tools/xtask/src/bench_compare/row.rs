//! Rows: what both systems have printed, and what was counted meanwhile.

use super::both::Printed;
use super::wall::Wall;
use anyhow::{Context, Result, bail};

/// One operation on one system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Ticks of one.
    pub ticks: u64,
    /// How often it was done.
    pub rounds: u64,
    /// How often a page table was loaded, in all rounds.
    pub loads: u64,
    /// How often the kernel was entered.
    pub entries: u64,
}

/// One operation on both systems.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// On Skink.
    pub skink: Side,
    /// On Linux.
    pub linux: Side,
    /// Real time, where it was measured.
    pub wall: Option<Wall>,
}

impl Row {
    /// Skink's ticks as a share of Linux's.
    pub fn ratio(&self) -> f64 {
        self.skink.ticks as f64 / self.linux.ticks.max(1) as f64
    }
}

/// Geometric mean of ratios.
pub fn mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = ratios.fold((0.0, 0), |(sum, count), ratio| (sum + ratio.ln(), count + 1));
    (sum / f64::from(count.max(1))).exp()
}

/// Joins what both systems have printed and what was counted.
///
/// # Errors
/// When a line is no row, a row was not counted, or the systems did not print the same names in the same order.
pub fn counted(skink: &Printed, linux: &Printed) -> Result<Vec<Row>> {
    let mut rows = plain(skink, linux)?;
    let (of_skink, of_linux) = (parse_counts(&skink.counts)?, parse_counts(&linux.counts)?);
    if of_skink.len() != rows.len() || of_linux.len() != rows.len() {
        bail!("of {} rows Skink's machine has counted {} and Linux's {}", rows.len(), of_skink.len(), of_linux.len());
    }
    for (row, (skink, linux)) in rows.iter_mut().zip(of_skink.into_iter().zip(of_linux)) {
        (row.skink.loads, row.skink.entries) = skink;
        (row.linux.loads, row.linux.entries) = linux;
    }
    Ok(rows)
}

/// Joins what both systems have printed.
///
/// # Errors
/// When a line is no row, or the systems did not print the same names in the same order.
pub fn plain(skink: &Printed, linux: &Printed) -> Result<Vec<Row>> {
    let (skink, linux) = (parse(&skink.text)?, parse(&linux.text)?);
    if skink.iter().map(|row| &row.0).ne(linux.iter().map(|row| &row.0)) {
        bail!("the systems printed different rows:\nSkink: {skink:?}\nLinux: {linux:?}");
    }
    let pairs = skink.into_iter().zip(linux);
    Ok(pairs.map(|((name, skink), (_, linux))| Row { name, skink, linux, wall: None }).collect())
}

fn parse(printed: &str) -> Result<Vec<(String, Side)>> {
    let parse_line = |line: &str| {
        let mut words = line.rsplitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (rounds, ticks) = (number(), number());
        let (Some(rounds), Some(ticks), Some(name)) = (rounds, ticks, words.next()) else {
            bail!("'{line}' is no row");
        };
        Ok((name.to_string(), Side { ticks, rounds, ..Side::default() }))
    };
    printed.lines().map(parse_line).collect()
}

fn parse_counts(counts: &str) -> Result<Vec<(u64, u64)>> {
    let parse_line = |line: &str| {
        let (loads, entries) = line.split_once(' ')?;
        Some((loads.parse().ok()?, entries.parse().ok()?))
    };
    counts.lines().map(|line| parse_line(line).with_context(|| format!("'{line}' is no count"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str, counts: &str) -> Printed {
        Printed { text: text.to_string(), counts: counts.to_string() }
    }

    #[test]
    fn rows_are_joined_by_name_with_what_was_counted() {
        let rows = counted(&printed("a b 10 5\nc 1 1\n", "20 30\n0 1\n"), &printed("a b 20 5\nc 4 1\n", "0 5\n0 2\n"));
        let rows = rows.expect("the same rows");
        assert_eq!((rows[0].name.as_str(), rows[0].ratio()), ("a b", 0.5));
        assert_eq!(rows[0].skink, Side { ticks: 10, rounds: 5, loads: 20, entries: 30 });
        assert_eq!(rows[1].linux, Side { ticks: 4, rounds: 1, loads: 0, entries: 2 });
        assert!((mean(rows.iter().map(Row::ratio)) - 0.125f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_row_that_one_system_lacks_is_an_error() {
        let joined = |skink, linux| plain(&printed(skink, ""), &printed(linux, ""));
        assert!(joined("a 1 1\nb 2 1\n", "a 1 1\n").is_err());
        assert!(joined("a 1 1\n", "b 1 1\n").is_err());
        assert!(joined("tar: no space\n", "tar: no space\n").is_err());
    }

    #[test]
    fn a_row_that_was_not_counted_is_an_error() {
        assert!(counted(&printed("a 1 1\n", "0 1\n"), &printed("a 1 1\n", "")).is_err());
        assert!(counted(&printed("a 1 1\n", "0\n"), &printed("a 1 1\n", "0 1\n")).is_err());
    }
}
