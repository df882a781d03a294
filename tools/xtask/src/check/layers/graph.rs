//! Who imports whom among named things: circles, and the lowest layer each can stand in.

use std::collections::{BTreeMap, BTreeSet};

/// Arrows between names.
#[derive(Default)]
pub struct Graph<'a> {
    nodes: BTreeSet<&'a str>,
    arrows: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Graph<'a> {
    /// Adds a name that may have no arrows.
    pub fn add_node(&mut self, node: &'a str) {
        self.nodes.insert(node);
    }

    /// Adds an arrow; one from a name to itself says nothing and is left out.
    pub fn add_arrow(&mut self, from: &'a str, to: &'a str) {
        self.nodes.extend([from, to]);
        if from != to {
            self.arrows.entry(from).or_default().insert(to);
        }
    }

    fn targets(&self, from: &str) -> impl Iterator<Item = &'a str> {
        self.arrows.get(from).into_iter().flatten().copied()
    }

    /// The shortest circle that each name stands in, every circle once.
    pub fn circles(&self) -> Vec<Vec<&'a str>> {
        let mut known = BTreeSet::new();
        let circles = self.nodes.iter().filter_map(|node| self.circle_through(node));
        circles.filter(|circle| known.insert(circle.iter().copied().collect::<BTreeSet<_>>())).collect()
    }

    /// The shortest way from `start` back to it.
    fn circle_through(&self, start: &'a str) -> Option<Vec<&'a str>> {
        let mut ways = vec![vec![start]];
        let mut seen = BTreeSet::new();
        let mut at = 0;
        while let Some(way) = ways.get(at).cloned() {
            for next in self.targets(way[way.len() - 1]) {
                if next == start {
                    return Some(way);
                }
                if seen.insert(next) {
                    ways.push(way.iter().copied().chain([next]).collect());
                }
            }
            at += 1;
        }
        None
    }

    /// The names from bottom to top, each as low as its arrows let it stand. None when there is a circle.
    pub fn layers(&self) -> Option<Vec<Vec<&'a str>>> {
        let mut layers = Vec::new();
        let mut placed = BTreeSet::new();
        while placed.len() < self.nodes.len() {
            let can_stand = |node: &&&str| !placed.contains(*node) && self.targets(node).all(|to| placed.contains(to));
            let layer: Vec<&str> = self.nodes.iter().filter(can_stand).copied().collect();
            if layer.is_empty() {
                return None;
            }
            placed.extend(layer.iter().copied());
            layers.push(layer);
        }
        Some(layers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(arrows: &[(&'static str, &'static str)]) -> Graph<'static> {
        let mut graph = Graph::default();
        arrows.iter().for_each(|(from, to)| graph.add_arrow(from, to));
        graph
    }

    #[test]
    fn each_circle_is_found_once() {
        let graph = graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "c"), ("e", "a")]);
        assert_eq!(graph.circles(), [vec!["a", "b", "c"], vec!["c", "d"]]);
        assert_eq!(graph.layers(), None);
    }

    #[test]
    fn layers_stand_as_low_as_they_can() {
        let graph = graph(&[("a", "b"), ("b", "c"), ("a", "c"), ("d", "c"), ("c", "c")]);
        assert!(graph.circles().is_empty());
        assert_eq!(graph.layers(), Some(vec![vec!["c"], vec!["b", "d"], vec!["a"]]));
    }
}
