//! Crash states: what may be on the disk when the power fails after some request.

use super::log::{Entry, Log, SECTOR};

/// How a state comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// All requests up to one.
    Prefix,
    /// Some of the writes since the last flush.
    Subset,
    /// As `Subset`, and of one write only some sectors.
    Torn,
}

/// A crash state.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// How it comes about.
    pub kind: Kind,
    /// The power fails after so many requests.
    pub position: usize,
    seed: u64,
}

/// The states of a log: every prefix, and `per_write` of each other kind for every write.
pub fn list(log: &Log, per_write: usize, seed: u64) -> Vec<State> {
    let mut states = Vec::new();
    for (number, entry) in log.entries.iter().enumerate() {
        if *entry == Entry::Flush {
            continue;
        }
        let position = number + 1;
        states.push(State { kind: Kind::Prefix, position, seed });
        for round in 0..per_write {
            let seed = seed ^ ((number * per_write + round) as u64 * 2);
            states.push(State { kind: Kind::Subset, position, seed });
            states.push(State { kind: Kind::Torn, position, seed: seed + 1 });
        }
    }
    states
}

impl State {
    /// The number of requests that are durable for sure.
    pub fn durable(&self, log: &Log) -> usize {
        let flush = log.entries[..self.position].iter().rposition(|entry| *entry == Entry::Flush);
        flush.map_or(0, |flush| flush + 1)
    }

    /// Makes the state of `durable`, the disk after the last flush before.
    pub fn make(&self, log: &Log, disk: &mut [u8]) {
        let pending = self.durable(log)..self.position;
        let mut random = fastrand::Rng::with_seed(self.seed);
        let torn = random.usize(pending.clone());
        for number in pending {
            let Entry::Write { sector, data } = &log.entries[number] else { continue };
            let arrives = |random: &mut fastrand::Rng| match self.kind {
                Kind::Prefix => true,
                Kind::Subset => random.bool(),
                Kind::Torn => number != torn && random.bool(),
            };
            if arrives(&mut random) {
                write(disk, *sector, data);
            } else if self.kind == Kind::Torn && number == torn {
                tear(disk, *sector, data, &mut random);
            }
        }
    }
}

/// Writes the first sectors, or the last, or any.
fn tear(disk: &mut [u8], first: usize, data: &[u8], random: &mut fastrand::Rng) {
    let count = data.len() / SECTOR;
    let (way, split) = (random.u8(..3), random.usize(..=count));
    for (index, content) in data.chunks(SECTOR).enumerate() {
        let arrives = match way {
            0 => index < split,
            1 => index >= split,
            _ => random.bool(),
        };
        if arrives {
            write(disk, first + index, content);
        }
    }
}

/// Writes sectors; those beyond the end of the disk are a mistake of the log's reader.
pub fn write(disk: &mut [u8], sector: usize, data: &[u8]) {
    disk[sector * SECTOR..sector * SECTOR + data.len()].copy_from_slice(data);
}
