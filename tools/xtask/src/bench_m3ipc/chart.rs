//! The paper's Figures 1 and 2 with this machine's figures: messages a second of each mechanism, in bars as long as the figure's logarithm; and bytes a
//! second of copies by size of the block, a line for each mechanism.

use super::{COPIES, Row, in_order};
use crate::svg::{Anchor, DARK, LIGHT, Svg};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

const WIDTH: f64 = 820.0;
const LEFT: f64 = 190.0;
const TOP: f64 = 80.0;
const BAR: f64 = 9.0;
const BETWEEN: f64 = 8.0;
/// Pixels of a factor of ten.
const DECADE: f64 = 105.0;
const COLOURS: [&str; 4] = ["#2f6fb0", "#e08a2c", "#4a9a5b", "#8a5bb0"];
/// The least speed of a copy that is drawn, in GB/s, and the factors of ten above it.
const SLOWEST_COPY: f64 = 0.001;
const COPY_DECADES: f64 = 5.0;
const COPY_COLOURS: [&str; 9] =
    ["#24292f", "#2f6fb0", "#7fb0e0", "#4a9a5b", "#9ad0a5", "#e08a2c", "#8a5bb0", "#c0392b", "#b8860b"];

/// Writes docs/m3ipc-messages.svg and docs/m3ipc-copies.svg.
///
/// # Errors
/// When one cannot be written.
pub fn write(root: &Path, rows: &[Row]) -> Result<()> {
    let of = |is_copy: bool| -> Vec<&Row> { rows.iter().filter(|row| row.is_copy() == is_copy).collect() };
    let pictures = [("docs/m3ipc-messages.svg", messages(&of(false))), ("docs/m3ipc-copies.svg", copies(&of(true)))];
    for (file, picture) in pictures {
        fs::write(root.join(file), picture).with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

fn copies(rows: &[&Row]) -> String {
    let sizes = in_order(rows.iter().map(|row| row.placement.as_str()));
    let mechanisms = in_order(rows.iter().map(|row| row.mechanism.as_str()));
    let (left, step, end) = (60.0, 50.0, TOP + DECADE * COPY_DECADES);
    let x = |size: usize| left + step * (size as f64 + 0.5);
    let y = |speed: f64| end - DECADE * (speed.max(SLOWEST_COPY) / SLOWEST_COPY).log10();
    let title = "Copies between processes by size of the block, GB/s";
    let mut svg = Svg::new(WIDTH, end + 40.0, title);
    svg.text(20.0, 28.0, Anchor::Start, title, "font-size=\"17\"");
    let right = left + step * sizes.len() as f64;
    for decade in 0..=COPY_DECADES as i32 {
        let speed = SLOWEST_COPY * 10f64.powi(decade);
        svg.line((left, y(speed)), (right, y(speed)), if decade == 0 { DARK } else { LIGHT });
        svg.text(left - 8.0, y(speed), Anchor::End, &format!("{speed}"), "");
    }
    for (at, size) in sizes.iter().enumerate() {
        svg.text(x(at), end + 18.0, Anchor::Middle, size.trim_start_matches(COPIES), "font-size=\"11\"");
    }
    for (number, mechanism) in mechanisms.iter().enumerate() {
        let colour = COPY_COLOURS[number % COPY_COLOURS.len()];
        let at = |size: &&str| rows.iter().find(|row| row.placement == **size && row.mechanism == *mechanism);
        let places = sizes.iter().enumerate().filter_map(|(index, size)| Some((x(index), y(at(size)?.summary().0))));
        let places: Vec<(f64, f64)> = places.collect();
        places.windows(2).for_each(|two| svg.line(two[0], two[1], colour));
        places.iter().for_each(|place| svg.rect(place.0 - 2.0, place.1 - 2.0, (4.0, 4.0), colour));
        let y = TOP + 20.0 * number as f64;
        svg.rect(right + 10.0, y - 8.0, (10.0, 10.0), colour);
        svg.text(right + 26.0, y, Anchor::Start, mechanism, "font-size=\"12\"");
    }
    svg.finish()
}

fn messages(rows: &[&Row]) -> String {
    let title = "Messages of 64 bytes between two processes, thousand a second";
    let placements = in_order(rows.iter().map(|row| row.placement.as_str()));
    let mechanisms = in_order(rows.iter().map(|row| row.mechanism.as_str()));
    let group = BAR * placements.len() as f64 + BETWEEN;
    let end = TOP + group * mechanisms.len() as f64;
    let mut svg = Svg::new(WIDTH, end + 40.0, title);
    svg.text(20.0, 28.0, Anchor::Start, title, "font-size=\"17\"");
    let legend: Vec<(&str, &str)> = placements.iter().copied().zip(COLOURS).collect();
    svg.legend(20.0, 54.0, &legend, 180.0);
    for decade in 0..6 {
        let x = LEFT + DECADE * f64::from(decade);
        svg.line((x, TOP), (x, end), if decade == 0 { DARK } else { LIGHT });
        svg.text(x, end + 18.0, Anchor::Middle, &10u32.pow(decade).to_string(), "");
    }
    for (at, mechanism) in mechanisms.iter().enumerate() {
        let y = TOP + group * at as f64;
        svg.text(LEFT - 8.0, y + group / 2.0, Anchor::End, mechanism, "");
        for row in rows.iter().filter(|row| row.mechanism == *mechanism) {
            let place = placements.iter().position(|placement| *placement == row.placement).unwrap_or(0);
            let length = row.summary().0.max(1.0).log10() * DECADE;
            svg.rect(LEFT, y + BAR * place as f64, (length.max(1.0), BAR - 1.0), COLOURS[place % COLOURS.len()]);
        }
    }
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_up_with_the_speed() {
        let row = |size: &str, value| Row {
            placement: format!("{COPIES}{size}"),
            mechanism: "pipe".to_string(),
            values: vec![value],
        };
        let rows = [row("512 B", 0.1), row("1 KiB", 1.0)];
        let picture = copies(&rows.iter().collect::<Vec<_>>());
        let squares: Vec<&str> = picture.lines().filter(|line| line.contains("width=\"4")).collect();
        assert_eq!(squares.len(), 2, "{picture}");
        let y = |line: &str| -> f64 {
            line.split("y=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse().ok()).expect("has a place")
        };
        assert_eq!(y(squares[0]) - y(squares[1]), DECADE);
        assert!(picture.contains(">512 B<") && picture.contains(">1 KiB<"), "{picture}");
    }
}
