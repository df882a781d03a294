//! Random numbers for programs: ChaCha20 as a generator, seeded at start. Not for keys that must outlive a determined
//! attacker with the machine in hand: the seed is what processor and clock give at boot.

use crate::system::System;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// The generator.
pub struct Random(ChaCha20Rng);

impl Random {
    /// Starts from a seed.
    pub fn new(seed: [u8; 32]) -> Self {
        Random(ChaCha20Rng::from_seed(seed))
    }

    /// Starts from what the clock and the kernel's counters give. Each is mixed by the generator itself.
    pub fn gathered(system: &mut impl System) -> Self {
        let (now_ns, real_ns) = system.time_ns();
        let kernel = system.kernel_info();
        let words = [
            now_ns ^ kernel.tsc_hz.rotate_left(32),
            real_ns ^ kernel.entry_tsc.rotate_left(16),
            kernel.idle_ns ^ kernel.messages.rotate_left(40),
            kernel.switches ^ kernel.interrupts.rotate_left(32) ^ kernel.pool_frames.rotate_left(48),
        ];
        let mut seed = [0; 32];
        for (bytes, word) in seed.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Random::new(seed)
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
