//! The tables as Markdown.

use super::Measured;
use super::row::{Row, Side, mean};
use crate::performance::grouped;
use std::fmt::Write;

const HEAD: &str = "| | Skink | Linux | ratio | loads of CR3: Skink | Linux | kernel entries: Skink | Linux | real time |\n\
                    |---|---|---|---|---|---|---|---|---|\n";

/// The table of a section, and below it the geometric mean of its ratios.
pub(super) fn markdown(section: &Measured) -> String {
    let mut text = format!("\n### {}\n\n{HEAD}", section.title);
    for row in &section.rows {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "| {} |", cells(row).join(" | "));
    }
    let ticks = mean(section.rows.iter().map(Row::ratio));
    let walls = mean(section.rows.iter().filter_map(|row| row.wall).map(|wall| wall.median));
    let _ = writeln!(text, "| geometric mean | | | {ticks:.2} | | | | | {walls:.2} |");
    text
}

fn cells(row: &Row) -> [String; 9] {
    let each = |side: &Side, count| each(count, side.rounds);
    [
        row.name.clone(),
        grouped(row.skink.ticks),
        grouped(row.linux.ticks),
        format!("{:.2}", row.ratio()),
        each(&row.skink, row.skink.loads),
        each(&row.linux, row.linux.loads),
        each(&row.skink, row.skink.entries),
        each(&row.linux, row.linux.entries),
        row.wall.map_or_else(String::new, |wall| wall.to_string()),
    ]
}

/// The mean of a count over the rounds, with one digit after the point where that is not zero and tells something.
fn each(count: u64, rounds: u64) -> String {
    let tenths = (count * 10 + rounds / 2) / rounds.max(1);
    match (tenths / 10, tenths % 10) {
        (whole, tenth) if whole >= 100 || tenth == 0 => grouped(whole),
        (whole, tenth) => format!("{whole}.{tenth}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_means_of_the_rounds() {
        let means = [(0, 1000), (2001, 1000), (2100, 1000), (7, 2), (123_456, 1), (1_000_600, 10)];
        assert_eq!(means.map(|(count, rounds)| each(count, rounds)), ["0", "2", "2.1", "3.5", "123,456", "100,060"]);
    }
}
