//! The picture: a bar for each row, Skink's ticks as a share of Linux's on a logarithmic scale.

use crate::svg::{Anchor, DARK, LIGHT, Svg};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

const FILE: &str = "docs/compare.svg";
const TITLE: &str = "Skink's ticks as a share of Linux's, the same programs in the same emulator";

const WIDTH: f64 = 820.0;
const TOP: f64 = 70.0;
const LINE: f64 = 15.0;
/// Where names end and bars begin.
const LEFT: f64 = 330.0;
const RIGHT: f64 = WIDTH - 50.0;
/// Ends of the scale.
const LEAST: f64 = 0.1;
const MOST: f64 = 10.0;
const FASTER: &str = "#2f6fb0";
const SLOWER: &str = "#e08a2c";

/// What is drawn of an operation: Skink's ticks as a share of Linux's.
pub struct Bar {
    pub name: String,
    pub ratio: f64,
}

/// What is drawn of a section.
pub struct Bars {
    pub title: String,
    pub bars: Vec<Bar>,
}

/// Writes docs/compare.svg.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write(root: &Path, sections: &[Bars]) -> Result<()> {
    fs::write(root.join(FILE), draw(sections)).with_context(|| format!("cannot write {FILE}"))
}

fn draw(sections: &[Bars]) -> String {
    let lines: usize = sections.iter().map(|section| section.bars.len() + 2).sum();
    let height = TOP + LINE * lines as f64 + 20.0;
    let mut svg = Svg::new(WIDTH, height, TITLE);
    svg.text(20.0, 28.0, Anchor::Start, TITLE, "font-size=\"17\"");
    for share in [LEAST, 0.2, 0.5, 1.0, 2.0, 5.0, MOST] {
        let colour = if share == 1.0 { DARK } else { LIGHT };
        svg.line((x_of(share), TOP - 8.0), (x_of(share), height - 10.0), colour);
        svg.text(x_of(share), TOP - 14.0, Anchor::Middle, &share.to_string(), "");
    }
    let mut y = TOP + LINE;
    for section in sections {
        svg.text(LEFT - 10.0, y, Anchor::End, &section.title, "font-weight=\"bold\"");
        y += LINE;
        for bar in &section.bars {
            draw_bar(&mut svg, bar, y);
            y += LINE;
        }
        y += LINE;
    }
    svg.finish()
}

fn draw_bar(svg: &mut Svg, bar: &Bar, y: f64) {
    let (ratio, base) = (bar.ratio, x_of(1.0));
    let (from, to) = if ratio < 1.0 { (x_of(ratio), base) } else { (base, x_of(ratio)) };
    svg.text(LEFT - 10.0, y, Anchor::End, &bar.name, "font-size=\"10\"");
    let colour = if ratio <= 1.0 { FASTER } else { SLOWER };
    svg.rect(from, y - 9.0, ((to - from).max(1.0), 10.0), colour);
    svg.text(RIGHT + 45.0, y, Anchor::End, &format!("{ratio:.2}"), "font-size=\"10\"");
}

/// Where a share is, those beyond the scale at its ends.
fn x_of(share: f64) -> f64 {
    let part = (share.clamp(LEAST, MOST) / LEAST).ln() / (MOST / LEAST).ln();
    LEFT + (RIGHT - LEFT) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_begin_at_one_and_end_at_their_ratio() {
        let bars = [("half", 0.5), ("double", 2.0)].map(|(name, ratio)| Bar { name: name.to_string(), ratio });
        let svg = draw(&[Bars { title: "t".to_string(), bars: bars.into() }]);
        let has_bar = |from: f64, to: f64| {
            let (start, width) = (format!("<rect x=\"{from:.1}\""), format!("width=\"{:.1}\"", to - from));
            svg.lines().any(|line| line.starts_with(&start) && line.contains(&width))
        };
        assert!(has_bar(x_of(0.5), x_of(1.0)) && has_bar(x_of(1.0), x_of(2.0)), "{svg}");
        assert!(svg.contains(">0.50<") && svg.contains(">2.00<"), "{svg}");
    }
}
