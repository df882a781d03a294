//! Real time under plain emulation: alternate rounds of both systems, since the machine that runs them is not alone.

use super::both::Pair;
use super::row::{self, Row};
use anyhow::{Result, bail};
use std::fmt;

/// Rounds of each system.
const ROUNDS: usize = 3;

/// How long Skink takes as a share of Linux: the median of the rounds' ratios, the least and the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wall {
    /// The median.
    pub median: f64,
    least: f64,
    greatest: f64,
}

impl Wall {
    /// Of the ratios of an odd number of rounds.
    fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_by(f64::total_cmp);
        let median = *ratios.get(ratios.len() / 2)?;
        Some(Self { median, least: *ratios.first()?, greatest: *ratios.last()? })
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{:.2} ({:.2}–{:.2})", self.median, self.least, self.greatest)
    }
}

/// Adds the ratios to rows that were counted before. `run` runs a round.
///
/// # Errors
/// When a round fails, or has other rows.
pub fn add(rows: &mut [Row], run: impl Fn() -> Result<Pair>) -> Result<()> {
    let mut ratios = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        let pair = run()?;
        let round = row::plain(&pair.skink, &pair.linux)?;
        if rows.iter().map(|row| &row.name).ne(round.iter().map(|row| &row.name)) {
            bail!("other rows were printed in real time: {round:?}");
        }
        for (ratios, row) in ratios.iter_mut().zip(&round) {
            ratios.push(row.ratio());
        }
    }
    for (row, ratios) in rows.iter_mut().zip(ratios) {
        row.wall = Wall::of(ratios);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_the_rounds() {
        let wall = Wall::of(vec![2.0, 0.5, 1.25]).expect("three rounds");
        assert_eq!(wall.to_string(), "1.25 (0.50–2.00)");
        assert_eq!(Wall::of(Vec::new()), None);
    }
}
