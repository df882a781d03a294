//! The picture of the lateness of the periodic process: a histogram for each load, both scales logarithmic.

use super::Measured;
use super::figures::STEP;
use crate::svg::{Anchor, DARK, LIGHT, Svg};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

const FILE: &str = "docs/rt-latency.svg";
const TITLE: &str = "How late a periodic process of 1 kHz comes to run";

const WIDTH: f64 = 900.0;
const HEAD: f64 = 70.0;
const PANEL: f64 = 100.0;
const FOOT: f64 = 40.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 20.0;
/// Height of ten times as many.
const DECADE: f64 = 15.0;
const DECADES: u32 = 5;
/// The scale, which is logarithmic too, begins here, and has these marks.
const FIRST: u64 = 500;
const MARKS: [u64; 10] = [500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000];
const COLOUR: &str = "#2f6fb0";
const WORST_COLOUR: &str = "#c0392b";

/// Writes docs/rt-latency.svg.
///
/// # Errors
/// When it cannot be written.
pub fn write(root: &Path, all: &[Measured]) -> Result<()> {
    fs::write(root.join(FILE), draw(all)).with_context(|| format!("cannot write {FILE}"))
}

fn draw(all: &[Measured]) -> String {
    let foot = HEAD + PANEL * all.len() as f64;
    let mut svg = Svg::new(WIDTH, foot + FOOT, TITLE);
    svg.text(20.0, 28.0, Anchor::Start, TITLE, "font-size=\"17\"");
    svg.text(
        20.0,
        48.0,
        Anchor::Start,
        "ticks from the begin of a period; how often, each line ten times as often as the one below",
        "",
    );
    let worst = all.iter().map(|measured| measured.lateness.worst).max().unwrap_or_default();
    let end = (worst + STEP).max(2 * FIRST);
    let share = |ticks: u64| (ticks.max(FIRST) as f64 / FIRST as f64).ln() / (end as f64 / FIRST as f64).ln();
    let x_of = |ticks: u64| LEFT + (WIDTH - LEFT - RIGHT) * share(ticks);
    for (index, measured) in all.iter().enumerate() {
        draw_panel(&mut svg, measured, HEAD + PANEL * (index + 1) as f64, x_of);
    }
    for mark in MARKS.into_iter().filter(|&mark| mark <= end) {
        svg.text(x_of(mark), foot + 18.0, Anchor::Middle, &mark.to_string(), "");
    }
    svg.finish()
}

fn draw_panel(svg: &mut Svg, measured: &Measured, base: f64, x_of: impl Fn(u64) -> f64) {
    let lateness = &measured.lateness;
    for decade in 0..=DECADES {
        let y = base - DECADE * f64::from(decade);
        svg.line((LEFT, y), (WIDTH - RIGHT, y), if decade == 0 { DARK } else { LIGHT });
    }
    svg.text(20.0, base - 40.0, Anchor::Start, measured.load, "font-weight=\"bold\"");
    svg.text(20.0, base - 24.0, Anchor::Start, &format!("worst {}", lateness.worst), "");
    svg.text(20.0, base - 8.0, Anchor::Start, &format!("missed {} of {}", lateness.missed, lateness.periods), "");
    for (from, count) in &lateness.steps {
        let width = (x_of(from + STEP) - x_of(*from) - 1.0).max(1.0);
        let height = height(*count);
        svg.rect(x_of(*from), base - height, (width, height), COLOUR);
    }
    svg.line((x_of(lateness.worst), base), (x_of(lateness.worst), base - DECADE), WORST_COLOUR);
}

/// Once is a third of a decade, to be seen.
fn height(count: u64) -> f64 {
    DECADE * ((count as f64).log10() + 1.0 / 3.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_rt::figures::Lateness;

    #[test]
    fn ten_times_as_often_is_a_decade_higher() {
        assert!((height(1000) - height(100) - DECADE).abs() < 1e-9 && height(1) > 0.0);
    }

    #[test]
    fn each_load_is_in_the_picture_with_its_worst() {
        let lateness = Lateness { periods: 3, missed: 0, worst: 730, sum: 1330, steps: vec![(300, 2), (700, 1)] };
        let measured = ["none", "CPU"].map(|load| Measured { load, pairs: Vec::new(), lateness: lateness.clone() });
        let svg = draw(&measured);
        assert!(svg.contains(">none<") && svg.contains(">CPU<") && svg.matches(">worst 730<").count() == 2, "{svg}");
        assert!(svg.contains(">1000<") && !svg.contains(">2000<"), "{svg}");
    }
}
