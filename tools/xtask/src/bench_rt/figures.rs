//! What the programs of user/rt print, as figures.

/// Ticks of the down-up pairs of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    /// Kind of experiment: `paper`, `buffer1` ...
    pub kind: String,
    /// 1 to 4.
    pub test: usize,
    /// Ticks of all pairs.
    pub ticks: u64,
    /// How many.
    pub pairs: u64,
}

impl Pairs {
    /// Ticks of one.
    pub fn each(&self) -> f64 {
        self.ticks as f64 / self.pairs as f64
    }
}

/// The lines "KIND TEST ticks pairs".
pub fn pairs(printed: &str) -> Vec<Pairs> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let kind = words.next()?.to_string();
        let mut number = || words.next()?.parse().ok();
        let (test, ticks, pairs) = (number()?, number()?, number()?);
        Some(Pairs { kind, test: test as usize, ticks, pairs })
    };
    printed.lines().filter_map(line).collect()
}

/// How late a periodic process came to run, in ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lateness {
    /// How often it ran.
    pub periods: u64,
    /// Deadlines missed.
    pub missed: u64,
    /// The latest.
    pub worst: u64,
    /// Sum of all.
    pub sum: u64,
    /// So late at least, and how often, in steps of [`STEP`].
    pub steps: Vec<(u64, u64)>,
}

/// Width of a step of the histogram.
pub const STEP: u64 = 100;

impl Lateness {
    /// Below this are as many of a thousand.
    pub fn quantile(&self, per_mille: u64) -> u64 {
        let mut seen = 0;
        let step = self.steps.iter().find(|(_, count)| {
            seen += count;
            1000 * seen >= per_mille * self.periods
        });
        step.map_or(self.worst, |(from, _)| from + STEP)
    }

    /// Mean of all.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.periods as f64
    }
}

/// The lines "periods N", "missed N", "worst N", "sum N" and "late FROM COUNT".
pub fn lateness(printed: &str) -> Option<Lateness> {
    let mut found = Lateness::default();
    let mut scalars = 0;
    for line in printed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers: Vec<u64> = words.iter().skip(1).filter_map(|word| word.parse().ok()).collect();
        match (words.first().copied(), numbers.as_slice()) {
            (Some("late"), &[from, count]) => found.steps.push((from, count)),
            (Some(name @ ("periods" | "missed" | "worst" | "sum")), &[value]) => {
                scalars += 1;
                match name {
                    "periods" => found.periods = value,
                    "missed" => found.missed = value,
                    "worst" => found.worst = value,
                    _ => found.sum = value,
                }
            }
            _ => {}
        }
    }
    let counted: u64 = found.steps.iter().map(|(_, count)| count).sum();
    (scalars == 4 && found.periods > 0 && counted == found.periods).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str =
        "paper 1 12000000 40000\nchain 4 9 6\nperiods 100\nmissed 0\nworst 730\nsum 41000\nlate 300 98\nlate 700 2\n";

    #[test]
    fn pairs_are_those_lines_alone() {
        let found = pairs(PRINTED);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].kind.as_str(), found[0].test, found[0].each()), ("paper", 1, 300.0));
        assert_eq!(found[1].each(), 1.5);
    }

    #[test]
    fn lateness_is_whole_or_not_at_all() {
        let found = lateness(PRINTED).expect("is whole");
        assert_eq!((found.mean(), found.quantile(980), found.quantile(990), found.worst), (410.0, 400, 800, 730));
        assert_eq!(lateness("periods 100\nmissed 0\nworst 730\nsum 41000\nlate 300 98\n"), None);
        assert_eq!(lateness(""), None);
    }
}
