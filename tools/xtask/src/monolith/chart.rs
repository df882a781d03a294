//! The picture: what the user saw, as one bar of trials for each system.

use super::page::Side;
use super::trial::Seen;
use crate::svg::{Anchor, Svg};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// The picture's file, beside docs/faults.md.
pub const FILE_NAME: &str = "monolith.svg";
/// What it shows.
pub const TITLE: &str = "What the user of a file copy saw of mistakes in the disk's driver";

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 800.0;
const TOP: f64 = 60.0;
const BAR: f64 = 44.0;
const BETWEEN: f64 = 16.0;
const LEGEND: f64 = 200.0;
/// Narrower pieces have no room for their number.
const MIN_WIDTH: f64 = 20.0;

const fn colour(seen: Seen) -> &'static str {
    match seen {
        Seen::Nothing => "#d0d7de",
        Seen::Delay => "#5aa469",
        Seen::Error => "#f2c14e",
        Seen::Hung => "#e08a2c",
        Seen::WrongData => "#8e5ea2",
        Seen::DeadMachine => "#b3261e",
    }
}

/// Writes docs/monolith.svg.
///
/// # Errors
/// When it cannot be written.
pub fn write(root: &Path, sides: &[Side]) -> Result<()> {
    fs::write(root.join("docs").join(FILE_NAME), draw(sides)).with_context(|| format!("cannot write {FILE_NAME}"))
}

fn draw(sides: &[Side]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT, TITLE);
    svg.text(20.0, 30.0, Anchor::Start, TITLE, "font-size=\"17\"");
    for (row, side) in sides.iter().enumerate() {
        draw_side(&mut svg, side, TOP + row as f64 * (BAR + BETWEEN));
    }
    for (at, seen) in Seen::ALL.into_iter().enumerate() {
        let (column, row) = (at % 2, at / 2);
        let x = LEFT + column as f64 * (RIGHT - LEFT) / 2.0;
        svg.legend(x, LEGEND + row as f64 * 18.0, &[(seen.title(), colour(seen))], 0.0);
    }
    svg.finish()
}

fn draw_side(svg: &mut Svg, side: &Side, y: f64) {
    svg.text(LEFT - 10.0, y + BAR / 2.0 + 4.0, Anchor::End, &side.name, "");
    let mut x = LEFT;
    for seen in Seen::ALL {
        let count = side.seen(seen);
        let width = (RIGHT - LEFT) * count as f64 / side.reports.len().max(1) as f64;
        svg.rect(x, y, (width, BAR), colour(seen));
        if width >= MIN_WIDTH {
            svg.text(x + width / 2.0, y + BAR / 2.0 + 4.0, Anchor::Middle, &count.to_string(), "");
        }
        x += width;
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{Remedy, Report, Usual};
    use super::*;

    #[test]
    fn pieces_are_as_wide_as_their_share_of_the_trials() {
        let report = |seen| Report { seen, remedy: Remedy::None, recovery_ns: 0, reason: String::new() };
        let reports = vec![report(Seen::Nothing), report(Seen::Error), report(Seen::Error), report(Seen::Error)];
        let side = Side { name: "Skink".to_string(), instructions: 1, usual: Usual::default(), reports };
        let svg = draw(&[side]);
        let width = |share: f64| format!("width=\"{:.1}\" height=\"{BAR:.1}\"", (RIGHT - LEFT) * share);
        assert!(svg.contains(&width(0.25)) && svg.contains(&width(0.75)), "{svg}");
    }
}
