//! Random numbers for programs: ChaCha20 as a generator, seeded at start by the processor's own generator.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// The generator.
pub struct Random(ChaCha20Rng);

impl Random {
    /// Starts from a seed.
    pub fn new(seed: [u8; 32]) -> Self {
        Random(ChaCha20Rng::from_seed(seed))
    }

    /// Fills a buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
