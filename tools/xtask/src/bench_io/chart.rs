//! The picture: a bar for IN and one for OUT of each way, Skink's and the papers', each as a share of its own `systask`, because ticks and cycles
//! do not compare.

use super::Way;
use super::papers::PAPERS;
use super::table::overall;
use crate::svg::{Anchor, DARK, LIGHT, Svg};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

const FILE: &str = "docs/io.svg";
const TITLE: &str = "What one access to a port costs a driver in user mode";

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 400.0;
/// Where 0 % and 100 % are.
const BASE: f64 = 310.0;
const TOP: f64 = 90.0;
const LEFT: f64 = 60.0;
const BAR: f64 = 30.0;
const BETWEEN_WAYS: f64 = 12.0;
const BETWEEN_GROUPS: f64 = 34.0;
const INPUT_COLOUR: &str = "#2f6fb0";
const OUTPUT_COLOUR: &str = "#e08a2c";

/// Bars that belong together.
struct Group {
    title: String,
    /// Unit of its means.
    unit: &'static str,
    /// Way, IN and OUT.
    ways: Vec<(String, f64, f64)>,
}

/// Writes docs/io.svg.
///
/// # Errors
/// When it cannot be written.
pub fn write(root: &Path, ways: &[Way]) -> Result<()> {
    fs::write(root.join(FILE), draw(&groups(ways))).with_context(|| format!("cannot write {FILE}"))
}

fn groups(ways: &[Way]) -> Vec<Group> {
    let own = ways.iter().map(|way| {
        let figures = overall(way);
        (way.name.to_string(), figures.input.mean(), figures.output.mean())
    });
    let mut groups = vec![Group { title: "Skink".to_string(), unit: "ticks (instructions)", ways: own.collect() }];
    for paper in &PAPERS {
        let figures = paper.figures.iter();
        let ways = figures.map(|figure| (figure.way.to_string(), figure.input.0, figure.output.0)).collect();
        groups.push(Group { title: paper.title.to_string(), unit: "cycles on MINIX 3", ways });
    }
    groups
}

fn draw(groups: &[Group]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT, TITLE);
    svg.text(LEFT, 28.0, Anchor::Start, TITLE, "font-size=\"17\"");
    let what = "as a share of asking the kernel by messages (systask); below each bar its mean";
    svg.text(LEFT, 48.0, Anchor::Start, what, "");
    svg.legend(WIDTH - 130.0, 28.0, &[("IN", INPUT_COLOUR), ("OUT", OUTPUT_COLOUR)], 60.0);
    scale(&mut svg);
    let mut x = LEFT + 14.0;
    for group in groups {
        x = draw_group(&mut svg, group, x) + BETWEEN_GROUPS;
    }
    svg.finish()
}

/// → where it ends.
fn draw_group(svg: &mut Svg, group: &Group, start: f64) -> f64 {
    let Some((_, base_in, base_out)) = group.ways.first() else { return start };
    let mut x = start;
    for (name, input, output) in &group.ways {
        bar(svg, x, *input, *base_in, INPUT_COLOUR);
        bar(svg, x + BAR, *output, *base_out, OUTPUT_COLOUR);
        svg.text(x + BAR, BASE + 34.0, Anchor::Middle, name, "");
        x += 2.0 * BAR + BETWEEN_WAYS;
    }
    let end = x - BETWEEN_WAYS;
    svg.line((start, BASE + 44.0), (end, BASE + 44.0), DARK);
    let middle = (start + end) / 2.0;
    svg.text(middle, BASE + 62.0, Anchor::Middle, &group.title, "font-weight=\"bold\"");
    svg.text(middle, BASE + 78.0, Anchor::Middle, group.unit, "fill=\"#57606a\"");
    end
}

fn bar(svg: &mut Svg, x: f64, value: f64, base: f64, colour: &str) {
    let share = value / base;
    // What is next to nothing is still to be seen.
    let height = ((BASE - TOP) * share).max(1.0);
    svg.rect(x + 1.0, BASE - height, (BAR - 2.0, height), colour);
    let middle = x + BAR / 2.0;
    svg.text(middle, BASE - height - 5.0, Anchor::Middle, &percent(share), "font-size=\"10\"");
    svg.text(middle, BASE + 15.0, Anchor::Middle, &format!("{value:.0}"), "font-size=\"10\" fill=\"#57606a\"");
}

fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.1 { format!("{:.1}%", 100.0 * share) } else { format!("{:.0}%", 100.0 * share) }
}

fn scale(svg: &mut Svg) {
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let y = BASE - (BASE - TOP) * share;
        svg.line((LEFT, y), (WIDTH - 10.0, y), if step == 0 { DARK } else { LIGHT });
        svg.text(LEFT - 8.0, y + 4.0, Anchor::End, &percent(share), "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_share_of_the_first_way() {
        let ways = vec![("systask".to_string(), 200.0, 100.0), ("hal".to_string(), 50.0, 1.0)];
        let svg = draw(&[Group { title: "Skink".to_string(), unit: "ticks", ways }]);
        let height = |share: f64| format!("height=\"{:.1}\"", (BASE - TOP) * share);
        assert!(svg.contains(&height(1.0)) && svg.contains(&height(0.25)) && svg.contains(&height(0.01)), "{svg}");
        assert!(svg.contains(">25%<") && svg.contains(">1.0%<"), "{svg}");
    }

    #[test]
    fn all_bars_are_in_the_picture() {
        let figures = crate::bench_io::figures::Figures::default();
        let ways = ["systask", "hal", "emulate", "direct"].map(|name| Way { name, at: [figures; 2] });
        let mut svg = Svg::new(WIDTH, HEIGHT, TITLE);
        let end = groups(&ways).iter().fold(LEFT + 14.0, |x, group| draw_group(&mut svg, group, x) + BETWEEN_GROUPS);
        assert!(end - BETWEEN_GROUPS <= WIDTH, "they end at {end}");
    }
}
