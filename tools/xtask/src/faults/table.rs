//! Counts the outcomes of a campaign: tables for the terminal and for docs/faults.md.

use super::session::ticks;
use super::trial::{Fault, Mutation, Outcome, Part, Report, Trial};
use crate::performance::grouped;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How often each outcome came, and how long recoveries took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    outcomes: BTreeMap<Outcome, u32>,
    recoveries_ns: Vec<u64>,
}

impl Counts {
    fn add(&mut self, report: &Report) {
        *self.outcomes.entry(report.outcome).or_default() += 1;
        if report.recovery_ns > 0 {
            self.recoveries_ns.push(report.recovery_ns);
        }
    }

    fn merge(&mut self, other: &Counts) {
        for (outcome, count) in &other.outcomes {
            *self.outcomes.entry(*outcome).or_default() += count;
        }
        self.recoveries_ns.extend(&other.recoveries_ns);
    }

    /// Trials with this outcome.
    pub fn of(&self, outcome: Outcome) -> u32 {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// All trials.
    pub fn all(&self) -> u32 {
        self.outcomes.values().sum()
    }

    /// Trials of which anybody noticed something.
    pub fn manifested(&self) -> u32 {
        self.all() - self.of(Outcome::NotManifested)
    }

    /// Median and largest recovery, in ticks.
    fn recovery_ticks(&self) -> Option<(u64, u64)> {
        let mut sorted = self.recoveries_ns.clone();
        sorted.sort_unstable();
        Some((ticks(*sorted.get(sorted.len() / 2)?), ticks(*sorted.last()?)))
    }
}

/// A campaign's trials with their reports.
pub struct Results<'a> {
    pairs: Vec<(&'a Trial, &'a Report)>,
    drivers: &'a [String],
}

impl<'a> Results<'a> {
    /// The results of those of `trials` that there is a report of; `drivers` names the services that are drivers.
    pub fn new(trials: &'a [Trial], reports: &'a BTreeMap<u32, Report>, drivers: &'a [String]) -> Self {
        let pairs = trials.iter().filter_map(|trial| Some((trial, reports.get(&trial.number)?))).collect();
        Self { pairs, drivers }
    }

    /// Counts of one part, of the services that `wanted` accepts.
    pub fn count(&self, part: Part, wanted: impl Fn(&str) -> bool) -> Counts {
        let mut counts = Counts::default();
        for (trial, report) in &self.pairs {
            if trial.part == part && wanted(&trial.service) {
                counts.add(report);
            }
        }
        counts
    }

    /// Whether the service is a driver.
    pub fn is_driver(&self, service: &str) -> bool {
        self.drivers.iter().any(|driver| driver == service)
    }

    /// The tables of all parts, as Markdown.
    pub fn tables(&self) -> String {
        let mut text = String::new();
        for part in Part::ALL {
            let _ = writeln!(text, "## {}\n", part.title());
            self.table(&mut text, part);
        }
        let _ = writeln!(text, "## Mutations by kind\n");
        self.kinds(&mut text);
        text
    }

    fn table(&self, text: &mut String, part: Part) {
        head(text, "service");
        let services: Vec<&str> = self.services();
        for drivers in [true, false] {
            let mut sum = Counts::default();
            for service in services.iter().filter(|service| self.is_driver(service) == drivers) {
                let counts = self.count(part, |name| name == *service);
                row(text, service, &counts);
                sum.merge(&counts);
            }
            row(text, if drivers { "**all drivers**" } else { "**all servers**" }, &sum);
        }
        text.push('\n');
    }

    fn kinds(&self, text: &mut String) {
        head(text, "kind");
        for kind in Mutation::ALL {
            let mut counts = Counts::default();
            for (trial, report) in &self.pairs {
                if trial.part == Part::Mutations && matches!(&trial.fault, Fault::Poke(patch) if patch.kind == kind) {
                    counts.add(report);
                }
            }
            row(text, kind.name(), &counts);
        }
        text.push('\n');
    }

    fn services(&self) -> Vec<&str> {
        let mut services: Vec<&str> = self.pairs.iter().map(|(trial, _)| trial.service.as_str()).collect();
        services.sort_unstable();
        services.dedup();
        services
    }
}

fn head(text: &mut String, first: &str) {
    let titles = Outcome::ALL.map(Outcome::title).join(" | ");
    let _ = writeln!(text, "| {first} | trials | {titles} | recovery, ticks: median | largest |");
    let _ = writeln!(text, "|---|{}", "---:|".repeat(Outcome::ALL.len() + 3));
}

fn row(text: &mut String, name: &str, counts: &Counts) {
    let _ = write!(text, "| {name} | {} |", counts.all());
    for outcome in Outcome::ALL {
        let _ = write!(text, " {} |", counts.of(outcome));
    }
    let _ = match counts.recovery_ticks() {
        Some((median, largest)) => writeln!(text, " {} | {} |", grouped(median), grouped(largest)),
        None => writeln!(text, " | |"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(number: u32, service: &str) -> Trial {
        Trial {
            number,
            part: Part::Kills,
            service: service.to_string(),
            fault: Fault::KillAfter(number),
            restartable: true,
        }
    }

    fn report(number: u32, outcome: Outcome, recovery_ns: u64) -> (u32, Report) {
        (number, Report { number, outcome, reason: "-".to_string(), recovery_ns })
    }

    #[test]
    fn trials_are_counted_by_service_and_sort_of_service() {
        let trials = [trial(1, "uart"), trial(2, "uart"), trial(3, "vfs"), trial(4, "vfs")];
        let reports = BTreeMap::from([
            report(1, Outcome::Recovered, 8_000_000),
            report(2, Outcome::Recovered, 16_000_000),
            report(3, Outcome::Corrupted, 0),
        ]);
        let drivers = ["uart".to_string()];
        let results = Results::new(&trials, &reports, &drivers);
        let tables = results.tables();
        assert!(tables.contains("| uart | 2 | 0 | 2 | 0 | 0 | 0 | 2,000,000 | 2,000,000 |"), "{tables}");
        assert!(tables.contains("| **all servers** | 1 | 0 | 0 | 0 | 1 | 0 | | |"), "{tables}");
        assert_eq!(results.count(Part::Kills, |_| true).manifested(), 3);
    }
}
