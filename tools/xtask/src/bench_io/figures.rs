//! Counts, means and deviations, from what the driver has written into the log.

/// Accesses of one direction.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Sample {
    /// How many.
    pub count: u64,
    /// Ticks of all of them.
    pub ticks: u64,
    /// Sum of the squares of their ticks.
    pub squares: u64,
}

impl Sample {
    /// Ticks of one.
    pub fn mean(&self) -> f64 {
        self.ticks as f64 / self.count as f64
    }

    /// Standard deviation of one.
    pub fn deviation(&self) -> f64 {
        (self.squares as f64 / self.count as f64 - self.mean().powi(2)).max(0.0).sqrt()
    }

    /// Both together.
    pub fn and(&self, other: &Sample) -> Sample {
        Sample {
            count: self.count + other.count,
            ticks: self.ticks + other.ticks,
            squares: self.squares + other.squares,
        }
    }
}

/// Both directions.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Figures {
    /// IN.
    pub input: Sample,
    /// OUT.
    pub output: Sample,
}

impl Figures {
    /// Whether one direction has no accesses.
    pub fn is_empty(&self) -> bool {
        self.input.count == 0 || self.output.count == 0
    }
}

/// The figures of COM2 at this rate, which the driver may have told in several parts.
pub fn at_rate(log: &str, rate: u32) -> Figures {
    let mark = format!("ports 0x2f8 at {rate} bit/s: IN ");
    let mut all = Figures::default();
    for line in log.lines() {
        let samples = line.split_once(&mark).and_then(|(_, rest)| rest.split_once(", OUT "));
        if let Some((input, output)) = samples.and_then(|(input, output)| Some((sample(input)?, sample(output)?))) {
            all.input = all.input.and(&input);
            all.output = all.output.and(&output);
        }
    }
    all
}

fn sample(text: &str) -> Option<Sample> {
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
    Some(Sample { count: numbers.next()??, ticks: numbers.next()??, squares: numbers.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_rate_are_added_and_other_lines_ignored() {
        let log = "uart: ports 0x2f8 at 38400 bit/s: IN 2 10 52, OUT 1 3 9\n\
                   uart: ports 0x3f8 at 38400 bit/s: IN 9 9 9, OUT 9 9 9\n\
                   uart: ports 0x2f8 at 19200 bit/s: IN 9 9 9, OUT 9 9 9\n\
                   uart: ports 0x2f8 at 38400 bit/s: IN 1 5 25, OUT 0 0 0\n";
        let figures = at_rate(log, 38_400);
        assert_eq!(figures.input, Sample { count: 3, ticks: 15, squares: 77 });
        assert_eq!(figures.output, Sample { count: 1, ticks: 3, squares: 9 });
        assert!(at_rate(log, 9600).is_empty());
    }

    #[test]
    fn mean_and_deviation_are_those_of_the_samples() {
        // 2, 4, 4, 4, 5, 5, 7, 9
        let sample = Sample { count: 8, ticks: 40, squares: 232 };
        assert_eq!((sample.mean(), sample.deviation()), (5.0, 2.0));
    }
}
