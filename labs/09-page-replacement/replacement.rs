//! A cache of frames with reference bits. `Clock::victim` is yours to write.

/// Decides which frame goes.
pub trait Policy {
    /// The frame to reuse. `referenced` has each frame's bit, which the policy may clear.
    fn victim(&mut self, referenced: &mut [bool]) -> usize;
}

/// The oldest frame goes.
#[derive(Default)]
pub struct Fifo {
    next: usize,
}

impl Policy for Fifo {
    fn victim(&mut self, referenced: &mut [bool]) -> usize {
        let victim = self.next;
        self.next = (victim + 1) % referenced.len();
        victim
    }
}

/// The oldest frame goes that was not referenced since the hand last passed it. (Yours to write.)
#[derive(Default)]
pub struct Clock {
    hand: usize,
}

impl Policy for Clock {
    fn victim(&mut self, referenced: &mut [bool]) -> usize {
        let victim = self.hand;
        self.hand = (victim + 1) % referenced.len();
        victim
    }
}

/// Frames and what they hold.
pub struct Cache<P> {
    pages: Vec<Option<u64>>,
    referenced: Vec<bool>,
    policy: P,
    /// Pages that were not in the cache.
    pub misses: u64,
}

impl<P: Policy> Cache<P> {
    /// An empty cache.
    pub fn new(frames: usize, policy: P) -> Self {
        Cache { pages: vec![None; frames], referenced: vec![false; frames], policy, misses: 0 }
    }

    /// Touches a page: a hit sets the reference bit, as the processor does; a miss loads it without.
    pub fn touch(&mut self, page: u64) {
        if let Some(frame) = self.pages.iter().position(|held| *held == Some(page)) {
            self.referenced[frame] = true;
            return;
        }
        self.misses += 1;
        let frame = match self.pages.iter().position(Option::is_none) {
            Some(free) => free,
            None => self.policy.victim(&mut self.referenced),
        };
        self.pages[frame] = Some(page);
        self.referenced[frame] = false;
    }

    /// True when the page is in a frame.
    pub fn holds(&self, page: u64) -> bool {
        self.pages.contains(&Some(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_referenced_frame_gets_a_second_chance() {
        let mut cache = Cache::new(3, Clock::default());
        for page in [1, 2, 3, 1, 4] {
            cache.touch(page);
        }
        assert!(cache.holds(1) && !cache.holds(2) && cache.holds(3) && cache.holds(4));
    }

    #[test]
    fn the_chance_is_used_up() {
        let mut cache = Cache::new(2, Clock::default());
        for page in [1, 2, 1, 3, 4] {
            cache.touch(page);
        }
        // 1 was spared once, for 3; then its bit was clear.
        assert!(!cache.holds(1) && cache.holds(3) && cache.holds(4));
    }

    #[test]
    fn when_all_are_referenced_the_oldest_goes() {
        let mut cache = Cache::new(3, Clock::default());
        for page in [1, 2, 3, 1, 2, 3, 4] {
            cache.touch(page);
        }
        assert!(!cache.holds(1) && cache.holds(2) && cache.holds(3) && cache.holds(4));
    }

    /// A hot set that is touched again and again while a scan passes through.
    fn misses(policy: impl Policy) -> u64 {
        let mut cache = Cache::new(16, policy);
        let mut scan = 1000;
        for round in 0..400_u64 {
            for hot in 0..8 {
                cache.touch(hot + round / 100 * 8);
            }
            for _ in 0..3 {
                scan += 1;
                cache.touch(scan);
            }
        }
        cache.misses
    }

    #[test]
    fn a_hot_set_survives_a_scan() {
        let (clock, fifo) = (misses(Clock::default()), misses(Fifo::default()));
        assert!(clock * 4 <= fifo * 3, "misses: clock {clock}, FIFO {fifo}");
    }
}
