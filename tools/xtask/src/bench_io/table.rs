//! The table of figures, as Markdown.

use super::figures::{Figures, Sample};
use super::papers::PAPERS;
use super::{RATES, Way};
use std::fmt::Write;

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
}
