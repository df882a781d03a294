//! The paper's Figures 1 and 2 with this machine's figures: messages a second of each mechanism, and bytes a second of copies. A bar is as long as the
//! figure's logarithm.

use super::Row;
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

/// Writes docs/m3ipc-messages.svg and docs/m3ipc-copies.svg.
///
/// # Errors
/// When one cannot be written.
pub fn write(root: &Path, rows: &[Row]) -> Result<()> {
    let pictures = [
        ("docs/m3ipc-messages.svg", "Messages of 64 bytes between two processes, thousand a second", false),
        ("docs/m3ipc-copies.svg", "Copies between two processes, GB/s", true),
    ];
    for (file, title, is_copy) in pictures {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.is_copy() == is_copy).collect();
        fs::write(root.join(file), draw(title, &rows)).with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

fn draw(title: &str, rows: &[&Row]) -> String {
    let (mut placements, mut mechanisms): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for row in rows {
        for (list, name) in [(&mut placements, &row.placement), (&mut mechanisms, &row.mechanism)] {
            if !list.contains(&name.as_str()) {
                list.push(name);
            }
        }
    }
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
