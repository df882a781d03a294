//! The flame graph: each frame a box over those that it called, as wide as its ticks.

use super::stacks::Stacks;
use crate::performance::grouped;
use crate::svg::{Anchor, Svg};
use std::collections::{BTreeMap, HashSet};

const WIDTH: f64 = 1600.0;
const MARGIN: f64 = 10.0;
const HEAD: f64 = 40.0;
const ROW: f64 = 17.0;
/// Between a box and the next, and between a box and its text.
const GAP: f64 = 0.3;
const INSET: f64 = 3.0;
/// Letters of the command that are shown.
const TITLE_LETTERS: usize = 150;
/// Boxes that are narrower are left out.
const NARROWEST: f64 = 0.6;
/// Width of a letter, and of the narrowest box with one.
const LETTER: f64 = 6.6;
const NARROWEST_WITH_TEXT: f64 = 24.0;

#[derive(Default)]
struct Node<'a> {
    ticks: u64,
    callees: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Node<'a> {
    fn add(&mut self, frames: &[&'a str], ticks: u64) {
        self.ticks += ticks;
        if let [first, rest @ ..] = frames {
            self.callees.entry(first).or_default().add(rest, ticks);
        }
    }

    /// Rows that are drawn if `scale` is the width of a tick.
    fn depth(&self, scale: f64) -> usize {
        let wide = self.callees.values().filter(|callee| callee.ticks as f64 * scale >= NARROWEST);
        wide.map(|callee| 1 + callee.depth(scale)).max().unwrap_or(0)
    }
}

/// Draws the graph. `title`: the command.
pub fn svg(title: &str, stacks: &Stacks) -> String {
    let mut root = Node::default();
    for (frames, ticks) in stacks.with_names() {
        root.add(&frames, ticks);
    }
    let scale = (WIDTH - 2.0 * MARGIN) / root.ticks.max(1) as f64;
    let depth = root.depth(scale) + 1;
    let processes = stacks.actors.iter().map(String::as_str).collect();
    let svg = Svg::new(WIDTH, HEAD + ROW * depth as f64 + MARGIN, &escaped(title));
    let mut picture = Picture { svg, processes, total: root.ticks, scale, depth };
    picture.heading(title);
    picture.draw("all", &root, MARGIN, 0);
    picture.svg.finish()
}

struct Picture<'a> {
    svg: Svg,
    processes: HashSet<&'a str>,
    total: u64,
    scale: f64,
    depth: usize,
}

impl Picture<'_> {
    fn heading(&mut self, title: &str) {
        let shown: String = title.chars().take(TITLE_LETTERS).collect();
        let text = format!("{}: {} ticks", escaped(&shown), grouped(self.total));
        self.svg.text(MARGIN, 22.0, Anchor::Start, &text, "font-size=\"14\"");
    }

    fn draw(&mut self, name: &str, node: &Node, x: f64, row: usize) {
        let width = node.ticks as f64 * self.scale;
        let y = HEAD + ROW * (self.depth - 1 - row) as f64;
        let share = 100.0 * node.ticks as f64 / self.total.max(1) as f64;
        let tip = format!("{}: {} ticks, {share:.2} %", escaped(name), grouped(node.ticks));
        self.svg.titled_rect(x, y, (width - GAP, ROW - 1.0), self.colour(name), &tip);
        if width >= NARROWEST_WITH_TEXT {
            let letters = ((width - 2.0 * INSET) / LETTER) as usize;
            let shown: String = name.chars().take(letters).collect();
            self.svg.text(
                x + INSET,
                y + 12.0,
                Anchor::Start,
                &escaped(&shown),
                "font-size=\"11\" pointer-events=\"none\"",
            );
        }
        let mut at = x;
        for (name, callee) in &node.callees {
            if callee.ticks as f64 * self.scale >= NARROWEST {
                self.draw(name, callee, at, row + 1);
            }
            at += callee.ticks as f64 * self.scale;
        }
    }

    /// Tells processes, Linux calls, requests, the kernel and functions apart.
    fn colour(&self, name: &str) -> &'static str {
        let is_request = || {
            let (protocol, message) = name.split_once("::").unwrap_or_default();
            protocol.starts_with(char::is_lowercase) && message.starts_with(char::is_uppercase)
        };
        match name {
            "[kernel]" => "#8fb8de",
            _ if self.processes.contains(name) => "#c3a6d8",
            _ if name.ends_with("()") => "#f2c46d",
            _ if is_request() => "#b5d99c",
            _ => "#f0a58f",
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_have_the_ticks_of_those_they_call() {
        let mut root = Node::default();
        root.add(&["a", "b"], 3);
        root.add(&["a", "c", "d"], 4);
        root.add(&["e"], 1);
        assert_eq!((root.ticks, root.callees["a"].ticks, root.callees["a"].callees["c"].ticks), (8, 7, 4));
        assert_eq!(root.depth(1.0), 3);
        // What is too narrow to be seen has no row.
        assert_eq!(root.depth(0.12), 1);
    }
}
