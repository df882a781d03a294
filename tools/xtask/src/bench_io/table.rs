//! The table of figures, as Markdown: printed, and put into docs/performance.md between two marks.

use super::figures::{Figures, Sample};
use super::papers::PAPERS;
use super::{RATES, Way};
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const FILE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- written by ./skink bench io -->\n";
const END: &str = "<!-- end -->\n";

/// All ways at all rates, then the papers.
pub fn markdown(ways: &[Way]) -> String {
    let mut text = String::from(
        "| way | bit/s | accesses | IN: mean | deviation | of `systask` | OUT: mean | deviation | of `systask` |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for (index, rate) in RATES.iter().enumerate() {
        for way in ways {
            let (figures, base) = (&way.at[index], &ways[0].at[index]);
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| `{}` | {rate} | {} IN, {} OUT | {} | {} |",
                way.name,
                figures.input.count,
                figures.output.count,
                cells(&figures.input, &base.input),
                cells(&figures.output, &base.output)
            );
        }
    }
    for paper in &PAPERS {
        for figure in paper.figures {
            let base = &paper.figures[0];
            let cell = |(mean, deviation): (f64, f64), base: f64| {
                format!("{mean} | {deviation} | {:.1} %", 100.0 * mean / base)
            };
            let _ = writeln!(
                text,
                "| {}, `{}` (cycles) | | | {} | {} |",
                paper.name,
                figure.way,
                cell(figure.input, base.input.0),
                cell(figure.output, base.output.0)
            );
        }
    }
    text
}

fn cells(sample: &Sample, base: &Sample) -> String {
    let share = 100.0 * sample.mean() / base.mean();
    format!("{:.1} | {:.1} | {share:.1} %", sample.mean(), sample.deviation())
}

/// Both rates together.
pub fn overall(way: &Way) -> Figures {
    way.at.iter().fold(Figures::default(), |all, figures| Figures {
        input: all.input.and(&figures.input),
        output: all.output.and(&figures.output),
    })
}

/// Puts the table into docs/performance.md.
///
/// # Errors
/// When the file has no place for it.
pub fn write(root: &Path, table: &str) -> Result<()> {
    let path = root.join(FILE);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {FILE}"))?;
    fs::write(&path, replaced(&text, table)?).with_context(|| format!("cannot write {FILE}"))
}

fn replaced(text: &str, table: &str) -> Result<String> {
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = parts else {
        bail!("{FILE} has no lines {} and {}", BEGIN.trim(), END.trim());
    };
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(name: &'static str, mean: u64) -> Way {
        let sample = Sample { count: 10, ticks: 10 * mean, squares: 10 * mean * mean };
        Way { name, at: [Figures { input: sample, output: sample }; RATES.len()] }
    }

    #[test]
    fn ways_are_compared_with_the_first_one() {
        let table = markdown(&[way("systask", 200), way("hal", 20)]);
        assert!(
            table.contains("| `hal` | 38400 | 10 IN, 10 OUT | 20.0 | 0.0 | 10.0 % | 20.0 | 0.0 | 10.0 % |\n"),
            "{table}"
        );
        assert!(
            table.contains("| HAL paper, `hal` (cycles) | | | 1435 | 754 | 43.9 % | 1454 | 687 | 43.5 % |\n"),
            "{table}"
        );
    }

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = format!("a\n{BEGIN}old\n{END}b\n");
        assert_eq!(replaced(&text, "new\n").expect("has the marks"), format!("a\n{BEGIN}new\n{END}b\n"));
        assert!(replaced("a\n", "new\n").is_err());
    }
}
