//! The picture of the down-up pairs, as the paper's Figure 2: for each load a bar for each test. Beside Skink's, in ticks, are the paper's, in
//! cycles; each has its own scale, because ticks and cycles do not compare.

use super::Measured;
use super::others::{PAPER_MHZ, PAPER_US, TESTS};
use super::table::{KINDS, of_test};
use crate::svg::{Anchor, DARK, LIGHT, Svg};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

const FILE: &str = "docs/rt.svg";
const TITLE: &str = "A down-up pair of a real-time semaphore under load";

const WIDTH: f64 = 900.0;
const PANEL_WIDTH: f64 = 430.0;
const PANEL_HEIGHT: f64 = 250.0;
const HEAD: f64 = 70.0;
/// Height of the highest bar.
const HIGHEST: f64 = 150.0;
const LEFT: f64 = 30.0;
const BAR: f64 = 20.0;
const BETWEEN_LOADS: f64 = 16.0;
const COLOURS: [&str; TESTS] = ["#2f6fb0", "#7fb2e0", "#e08a2c", "#f0c08a"];

/// The bars of one experiment.
struct Panel {
    title: String,
    /// Load, and a figure for each test.
    loads: Vec<(&'static str, [f64; TESTS])>,
}

/// Writes docs/rt.svg.
///
/// # Errors
/// When it cannot be written.
pub fn write(root: &Path, all: &[Measured]) -> Result<()> {
    fs::write(root.join(FILE), draw(&panels(all))).with_context(|| format!("cannot write {FILE}"))
}

fn panels(all: &[Measured]) -> Vec<Panel> {
    let figures = |kind: &str| {
        let measured = all.iter().filter(|measured| !measured.pairs.is_empty());
        let each = |measured: &Measured| [1, 2, 3, 4].map(|test| of_test(measured, kind, test).unwrap_or_default());
        measured.map(|measured| (measured.load, each(measured))).collect()
    };
    let own = KINDS.iter().map(|(kind, title)| Panel { title: format!("Skink, ticks: {title}"), loads: figures(kind) });
    let mut panels: Vec<Panel> = own.collect();
    let paper = PAPER_US.iter().map(|(load, us)| (*load, us.map(|us| us * PAPER_MHZ)));
    panels.insert(1, Panel { title: "The paper, cycles of a DX4: 10 slots".to_string(), loads: paper.collect() });
    panels
}

fn draw(panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(2);
    let mut svg = Svg::new(WIDTH, HEAD + PANEL_HEIGHT * rows as f64, TITLE);
    svg.text(LEFT, 28.0, Anchor::Start, TITLE, "font-size=\"17\"");
    let names = ["TEST1", "TEST2: limit", "TEST3: inheritance", "TEST4: both"];
    let legend: Vec<(&str, &str)> = names.into_iter().zip(COLOURS).collect();
    svg.legend(LEFT, 52.0, &legend, 150.0);
    for (index, panel) in panels.iter().enumerate() {
        let (column, row) = (index % 2, index / 2);
        draw_panel(&mut svg, panel, LEFT + PANEL_WIDTH * column as f64, HEAD + PANEL_HEIGHT * row as f64);
    }
    svg.finish()
}

fn draw_panel(svg: &mut Svg, panel: &Panel, left: f64, top: f64) {
    let base = top + PANEL_HEIGHT - 40.0;
    let most = panel.loads.iter().flat_map(|(_, bars)| bars).fold(1.0, |most: f64, bar| most.max(*bar));
    svg.text(left, top + 24.0, Anchor::Start, &panel.title, "font-weight=\"bold\"");
    svg.line((left, base - HIGHEST), (left + PANEL_WIDTH - 40.0, base - HIGHEST), LIGHT);
    svg.line((left, base), (left + PANEL_WIDTH - 40.0, base), DARK);
    let mut x = left + BETWEEN_LOADS / 2.0;
    for (load, bars) in &panel.loads {
        for (bar, colour) in bars.iter().zip(COLOURS) {
            let height = HIGHEST * bar / most;
            svg.rect(x + 1.0, base - height, (BAR - 2.0, height), colour);
            svg.text(x + BAR / 2.0, base - height - 4.0, Anchor::Middle, &format!("{bar:.0}"), "font-size=\"8\"");
            x += BAR;
        }
        svg.text(x - 2.0 * BAR, base + 16.0, Anchor::Middle, load, "");
        x += BETWEEN_LOADS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_rt::figures::{Lateness, Pairs};

    #[test]
    fn bars_are_as_high_as_their_share_of_the_highest() {
        let pairs = |test, ticks| Pairs { kind: "paper".to_string(), test, ticks, pairs: 1 };
        let pairs = vec![pairs(1, 100), pairs(2, 400), pairs(3, 100), pairs(4, 200)];
        let panels = panels(&[Measured { load: "none", pairs, lateness: Lateness::default() }]);
        assert_eq!((panels.len(), panels[0].loads[0].1), (5, [100.0, 400.0, 100.0, 200.0]));
        let svg = draw(&panels[..1]);
        let height = |share: f64| format!("height=\"{:.1}\"", HIGHEST * share);
        assert!(svg.contains(&height(1.0)) && svg.contains(&height(0.5)) && svg.contains(&height(0.25)), "{svg}");
    }

    #[test]
    fn a_panel_has_room_for_all_loads() {
        let loads = PAPER_US.len() as f64;
        assert!(loads * (TESTS as f64 * BAR + BETWEEN_LOADS) <= PANEL_WIDTH - 40.0);
    }
}
