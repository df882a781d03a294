//! The tables of figures, as Markdown.

use super::Measured;
use super::others::{OTHERS, PAPER_MHZ, PAPER_US, TESTS, WORST_LATENESS};
use std::fmt::Write;

/// The kinds of experiment: name in the figures, and for people.
pub const KINDS: [(&str, &str); 4] = [
    ("paper", "the paper's, 10 slots"),
    ("buffer1", "1 slot"),
    ("contended", "10 slots, mutex contended"),
    ("chain", "chain of three"),
];

/// Ticks of a down-up pair: each kind of experiment under each load, then the paper and others.
pub fn pairs(all: &[Measured]) -> String {
    let mut text = String::from(
        "| experiment | load | TEST1: no limit, no inheritance | TEST2: limit | TEST3: inheritance | TEST4: both |\n\
         |---|---|---|---|---|---|\n",
    );
    for (kind, title) in KINDS {
        for measured in all.iter().filter(|measured| !measured.pairs.is_empty()) {
            row(&mut text, title, measured.load, |test| of_test(measured, kind, test).map(|each| format!("{each:.1}")));
        }
    }
    for (load, us) in PAPER_US {
        row(&mut text, "the paper: cycles (µs), DX4 of 75 MHz", load, |test| {
            let us = us[test - 1];
            Some(format!("{:.0} ({us:.2})", us * PAPER_MHZ))
        });
    }
    for other in &OTHERS {
        for (ticks, title) in [(other.paper, "10 slots"), (other.buffer1, "1 slot")] {
            let title = format!("{}: {title}", other.name);
            row(&mut text, &title, "none", |test| (test == 3).then(|| ticks.to_string()));
        }
    }
    text
}

/// Ticks of a pair, if it was measured.
pub fn of_test(measured: &Measured, kind: &str, test: usize) -> Option<f64> {
    measured.pairs.iter().find(|pairs| pairs.kind == kind && pairs.test == test).map(super::figures::Pairs::each)
}

fn row(text: &mut String, title: &str, load: &str, cell: impl Fn(usize) -> Option<String>) {
    // Writing to a String cannot fail.
    let _ = write!(text, "| {title} | {load} |");
    for test in 1..=TESTS {
        let _ = write!(text, " {} |", cell(test).unwrap_or_default());
    }
    text.push('\n');
}

/// How late the periodic process came to run.
pub fn lateness(all: &[Measured]) -> String {
    let mut text = String::from(
        "| load | periods | deadlines missed | mean lateness | 99 % below | 99.9 % below | worst |\n|---|---|---|---|---|---|---|\n",
    );
    for Measured { load, lateness, .. } in all {
        let _ = writeln!(
            text,
            "| {load} | {} | {} | {:.0} | {} | {} | **{}** |",
            lateness.periods,
            lateness.missed,
            lateness.mean(),
            lateness.quantile(990),
            lateness.quantile(999),
            lateness.worst
        );
    }
    for (name, worst) in WORST_LATENESS {
        let _ = writeln!(text, "| {name} | | | | | | {worst} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_rt::figures::{Lateness, Pairs};

    #[test]
    fn each_kind_and_load_has_a_row_and_the_paper_its_cycles() {
        let pairs = vec![Pairs { kind: "paper".to_string(), test: 3, ticks: 301, pairs: 2 }];
        let measured = Measured {
            load: "none",
            pairs,
            lateness: Lateness { periods: 1, worst: 7, sum: 7, ..Lateness::default() },
        };
        let table = super::pairs(std::slice::from_ref(&measured));
        assert!(table.contains("| the paper's, 10 slots | none |  |  | 150.5 |  |\n"), "{table}");
        assert!(table.contains("| none | 4006 (53.42) | 4219 (56.25) | 4014 (53.52) | 4181 (55.75) |\n"), "{table}");
        assert!(lateness(&[measured]).contains("| none | 1 | 0 | 7 | 7 | 7 | **7** |\n"));
    }
}
