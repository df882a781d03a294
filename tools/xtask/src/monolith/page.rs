//! The section of docs/faults.md: two tables and what they are tables of.

use super::chart;
use super::session::ticks;
use super::trial::{Remedy, Report, Seen, Usual};
use crate::faults::report::MONOLITH;
use crate::performance::grouped;
use std::fmt::Write;

/// What came of one system.
pub struct Side {
    /// The system and its version.
    pub name: String,
    /// Instructions of the driver that run during a copy, from which mistakes are drawn.
    pub instructions: usize,
    /// Undisturbed times.
    pub usual: Usual,
    /// One for each mistake.
    pub reports: Vec<Report>,
}

impl Side {
    /// Trials in which the user saw this.
    pub fn seen(&self, seen: Seen) -> usize {
        self.reports.iter().filter(|report| report.seen == seen).count()
    }

    fn remedied(&self, remedy: Remedy) -> impl Iterator<Item = &Report> {
        self.reports.iter().filter(move |report| report.remedy == remedy)
    }

    /// Median and largest recovery by `remedy`, in ticks.
    fn recovery(&self, remedy: Remedy) -> Option<(u64, u64)> {
        let mut sorted: Vec<u64> = self.remedied(remedy).map(|report| ticks(report.recovery_ns)).collect();
        sorted.sort_unstable();
        Some((*sorted.get(sorted.len() / 2)?, *sorted.last()?))
    }
}

/// The whole section, as Markdown.
pub fn section(sides: &[Side], seed: u64) -> String {
    let mut text =
        format!("{MONOLITH}\n\n{}\n\n![{}]({})\n\n", introduction(sides, seed), chart::TITLE, chart::FILE_NAME);
    text += &format!("{}\n\n", findings(sides));
    text += "| the user of the copy saw |";
    for side in sides {
        let _ = write!(text, " {} |", side.name);
    }
    let _ = writeln!(text, "\n|---|{}", "---:|".repeat(sides.len()));
    for seen in Seen::ALL {
        let _ = write!(text, "| {} |", seen.title());
        for side in sides {
            let _ = write!(text, " {} |", side.seen(seen));
        }
        text.push('\n');
    }
    text.push('\n');
    text + &remedies(sides)
}

fn remedies(sides: &[Side]) -> String {
    let mut text = "| the copy worked again after |".to_string();
    for side in sides {
        let _ = write!(text, " {}: trials | ticks: median | largest |", side.name);
    }
    let _ = writeln!(text, "\n|---|{}", "---:|".repeat(3 * sides.len()));
    for remedy in Remedy::ALL.into_iter().filter(|remedy| *remedy != Remedy::None) {
        let _ = write!(text, "| {} |", remedy.title());
        for side in sides {
            let _ = write!(text, " {} |", side.remedied(remedy).count());
            let _ = match side.recovery(remedy) {
                Some((median, largest)) => write!(text, " {} | {} |", grouped(median), grouped(largest)),
                None => write!(text, " | |"),
            };
        }
        text.push('\n');
    }
    text
}

fn introduction(sides: &[Side], seed: u64) -> String {
    let mut text = format!(
        "Written by `./skink test deep monolith`; [tests/monolith](../tests/monolith/README.md) says what is compared and measured. \
         Mistakes in the running text of a RAM disk's driver, one a trial (seed {seed}), while a program copies a file on the disk:"
    );
    for side in sides {
        let Side { name, instructions, usual, reports } = side;
        let _ = write!(
            text,
            " {} on {name}, drawn from the {instructions} instructions of the driver that run during a copy, which takes {} ticks \
             undisturbed;",
            reports.len(),
            grouped(ticks(usual.copy_ns))
        );
    }
    text.pop();
    text + "."
}

/// The counts as sentences.
fn findings(sides: &[Side]) -> String {
    let sentence = |side: &Side| {
        let noticed = side.reports.iter().filter(|report| report.seen > Seen::Delay).count();
        let shown = side.reports.iter().filter(|report| report.seen > Seen::Nothing).count();
        format!(
            "On {} {shown} of {} mistakes showed; the user noticed {noticed} of them as more than a delay, and {} needed a restart of \
             the machine.",
            side.name,
            side.reports.len(),
            side.remedied(Remedy::Machine).count()
        )
    };
    sides.iter().map(sentence).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, reports: &[(Seen, Remedy, u64)]) -> Side {
        let report = |&(seen, remedy, recovery_ns)| Report { seen, remedy, recovery_ns, reason: String::new() };
        let usual = Usual { boot_ns: 80_000, copy_ns: 8_000 };
        Side { name: name.to_string(), instructions: 9, usual, reports: reports.iter().map(report).collect() }
    }

    #[test]
    fn trials_are_counted_by_what_was_seen_and_by_what_helped() {
        let linux = side("Linux", &[(Seen::DeadMachine, Remedy::Machine, 80_000), (Seen::Nothing, Remedy::None, 0)]);
        let skink = side("Skink", &[(Seen::Delay, Remedy::Itself, 16_000), (Seen::Delay, Remedy::Itself, 8_000)]);
        let text = section(&[linux, skink], 3);
        assert!(text.contains("| a dead machine | 1 | 0 |"), "{text}");
        assert!(text.contains("| the machine restarted | 1 | 10,000 | 10,000 | 0 | | |"), "{text}");
        assert!(text.contains("restarted the driver | 0 | | | 2 | 2,000 | 2,000 |"), "{text}");
        assert!(text.contains("On Skink 2 of 2 mistakes showed; the user noticed 0"), "{text}");
    }
}
