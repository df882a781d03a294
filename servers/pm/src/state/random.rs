//! Random numbers for programs: ChaCha20 as a generator, seeded at start by `sys::random`, and again and again by the times at which
//! notifications arrive, which follow interrupts.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Times that are gathered for a new seed.
const STIRS: u32 = 64;

/// The generator.
pub struct Random {
    generator: ChaCha20Rng,
    /// What has been gathered since the last seed.
    pool: [u64; 4],
    stirs: u32,
}

impl Random {
    /// Starts from a seed.
    pub fn new(seed: [u8; 32]) -> Self {
        Random { generator: ChaCha20Rng::from_seed(seed), pool: [0; 4], stirs: 0 }
    }

    /// Mixes in the time of something that nobody can foresee exactly.
    pub fn stir(&mut self, time: u64) {
        let word = &mut self.pool[self.stirs as usize % 4];
        *word = sys::random::mix(*word, time);
        self.stirs += 1;
        if self.stirs == STIRS {
            self.stirs = 0;
            self.reseed();
        }
    }

    /// Mixes in what somebody offers as a seed.
    pub fn mix_in(&mut self, words: [u64; 4]) {
        self.pool.iter_mut().zip(words).for_each(|(word, offered)| *word = sys::random::mix(*word, offered));
        self.reseed();
    }

    /// Goes on with a seed of what was gathered and of the generator's own numbers, so that neither alone decides.
    fn reseed(&mut self) {
        let mut seed = [0; 32];
        self.generator.fill_bytes(&mut seed);
        for (bytes, word) in seed.chunks_exact_mut(8).zip(self.pool) {
            bytes.iter_mut().zip(word.to_le_bytes()).for_each(|(byte, gathered)| *byte ^= gathered);
        }
        self.generator = ChaCha20Rng::from_seed(seed);
    }

    /// Returns two numbers.
    pub fn pair(&mut self) -> [u64; 2] {
        [self.generator.next_u64(), self.generator.next_u64()]
    }

    /// Fills a buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.generator.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_events_decide_too() {
        let draw = |late: u64| {
            let mut random = Random::new([1; 32]);
            (0..u64::from(STIRS)).for_each(|n| random.stir(1000 * n + if n == 5 { late } else { 0 }));
            let mut bytes = [0; 16];
            random.fill(&mut bytes);
            bytes
        };
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
    }

    #[test]
    fn the_stream_goes_on_and_depends_on_the_seed() {
        let draw = |seed: u8, count: usize| {
            let mut random = Random::new([seed; 32]);
            (0..count)
                .map(|_| {
                    let mut b = [0; 16];
                    random.fill(&mut b);
                    b
                })
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(draw(1, 100).len(), 100);
        assert!(draw(1, 100).is_disjoint(&draw(2, 100)));
    }

    #[test]
    fn an_offered_seed_changes_what_comes() {
        let draw = |offered: Option<[u64; 4]>| {
            let mut random = Random::new([1; 32]);
            offered.into_iter().for_each(|words| random.mix_in(words));
            let mut bytes = [0; 16];
            random.fill(&mut bytes);
            bytes
        };
        let drawn = [draw(None), draw(Some([0; 4])), draw(Some([0, 0, 0, 1]))];
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2]);
        assert_eq!(draw(Some([0, 0, 0, 1])), drawn[2]);
    }
}
