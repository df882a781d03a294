//! Compares a campaign's results with the limits they must keep.

use super::plan::Size;
use super::table::Results;
use super::trial::{Outcome, Part};
use std::fmt::Write;

/// Servers of which, beside all drivers, kills have to be survived.
const RECOVERING: [&str; 6] = ["vfs", "ext2", "tty", "procfs", "devfs", "ds"];

/// Limit of lost systems, in per cent of the manifested mutations of servers.
const MAX_LOST: u32 = 5;
/// The limit in a small campaign, whose few trials vary more.
const MAX_LOST_OF_FEW: u32 = 10;

/// One figure.
struct Figure {
    what: &'static str,
    count: u32,
    of: u32,
    must: String,
    is_good: bool,
}

fn figures(results: &Results, size: Size) -> [Figure; 4] {
    let recovering = |name: &str| results.is_driver(name) || RECOVERING.contains(&name);
    let kills = results.count(Part::Kills, recovering);
    let (survived, died) = (kills.of(Outcome::Recovered), kills.manifested());
    let all_kills = results.count(Part::Kills, |_| true);
    let drivers = results.count(Part::Mutations, |name| results.is_driver(name));
    let servers = results.count(Part::Mutations, |name| !results.is_driver(name));
    let most_lost = if size == Size::ALL { MAX_LOST } else { MAX_LOST_OF_FEW };
    let lost = servers.of(Outcome::Lost);
    [
        Figure {
            what: "kills of drivers, vfs, ext2, tty, procfs, devfs, ds that were recovered from",
            count: survived,
            of: died,
            must: "99 %".to_string(),
            is_good: survived * 100 >= died * 99,
        },
        Figure {
            what: "kills that corrupted data silently",
            count: all_kills.of(Outcome::Corrupted),
            of: all_kills.all(),
            must: "0".to_string(),
            is_good: all_kills.of(Outcome::Corrupted) == 0,
        },
        Figure {
            what: "manifested mutations of drivers that cost the system",
            count: drivers.of(Outcome::Lost),
            of: drivers.manifested(),
            must: "0".to_string(),
            is_good: drivers.of(Outcome::Lost) == 0,
        },
        Figure {
            what: "manifested mutations of servers that cost the system",
            count: lost,
            of: servers.manifested(),
            must: format!("at most {most_lost} %"),
            is_good: lost * 100 <= servers.manifested() * most_lost,
        },
    ]
}

impl Figure {
    fn per_cent(&self) -> f64 {
        if self.of == 0 { 0.0 } else { f64::from(self.count) * 100.0 / f64::from(self.of) }
    }
}

/// The figures as a table in Markdown.
pub fn table(results: &Results, size: Size) -> String {
    let mut text = "| | count | of | per cent | must |\n|---|---:|---:|---:|---:|\n".to_string();
    for figure in figures(results, size) {
        let Figure { what, count, of, must, .. } = &figure;
        let _ = writeln!(text, "| {what} | {count} | {of} | {:.1} | {must} |", figure.per_cent());
    }
    text
}

/// Describes the limits that were missed. `None`: all were kept.
pub fn problems(results: &Results, size: Size) -> Option<String> {
    let bad: Vec<Figure> = figures(results, size).into_iter().filter(|figure| !figure.is_good).collect();
    let line = |figure: &Figure| {
        let Figure { what, count, of, must, .. } = figure;
        format!("{what}: {count} of {of}, must be {must}")
    };
    (!bad.is_empty()).then(|| bad.iter().map(line).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::trial::{Fault, Report, Trial};
    use super::*;
    use std::collections::BTreeMap;

    /// Problems of a campaign of kills of these services.
    fn problems_of(outcomes: &[(&str, Outcome)]) -> Option<String> {
        let numbered = || (1..).zip(outcomes);
        let trial = |(number, (service, _)): (u32, &(&str, Outcome))| {
            let (part, service, fault) = (Part::Kills, service.to_string(), Fault::KillAfter(1));
            Trial { number, part, service, fault, restartable: true }
        };
        let report = |(number, (_, outcome)): (u32, &(&str, Outcome))| {
            (number, Report { number, outcome: *outcome, reason: "-".to_string(), recovery_ns: 0 })
        };
        let trials: Vec<Trial> = numbered().map(trial).collect();
        let reports: BTreeMap<u32, Report> = numbered().map(report).collect();
        problems(&Results::new(&trials, &reports, &["uart".to_string()]), Size::SMALL)
    }

    #[test]
    fn a_kill_that_programs_notice_is_a_problem_where_recovery_is_promised() {
        assert_eq!(problems_of(&[("uart", Outcome::Recovered), ("vfs", Outcome::NotManifested)]), None);
        assert_eq!(problems_of(&[("rs", Outcome::ClientError)]), None);
        let problems = problems_of(&[("uart", Outcome::ClientError)]).expect("is a problem");
        assert!(problems.contains("recovered from: 0 of 1, must be 99 %"), "{problems}");
    }

    #[test]
    fn corruption_by_a_kill_is_a_problem_anywhere() {
        assert!(problems_of(&[("pm", Outcome::Corrupted)]).expect("is a problem").contains("silently: 1 of 1"));
    }
}
