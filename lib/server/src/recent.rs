//! Ring of the last messages received, for crash reports: rs finds it by its symbol in the memory of a dead server
//! (`servers/rs/src/autopsy.rs` has the same layout). It costs a few instructions per request.

use abi::Message;
use core::sync::atomic::{AtomicU64, Ordering};

/// Messages in the ring.
const ENTRIES: usize = 8;

/// For each message source and label, then its first word; at the end the total count.
static RING: [AtomicU64; 2 * ENTRIES + 1] = [const { AtomicU64::new(0) }; 2 * ENTRIES + 1];

/// Records a message that is about to be handled.
#[inline]
pub(crate) fn note(message: &Message) {
    let count = RING[2 * ENTRIES].load(Ordering::Relaxed);
    let at = 2 * (count as usize % ENTRIES);
    RING[at].store(u64::from(message.source.0) | u64::from(message.label) << 32, Ordering::Relaxed);
    RING[at + 1].store(message.words[0], Ordering::Relaxed);
    RING[2 * ENTRIES].store(count.wrapping_add(1), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::Endpoint;

    #[test]
    fn the_ring_holds_the_newest_messages_and_their_number() {
        for number in 0..11u64 {
            let mut message = Message { source: Endpoint::new(9, 2), ..Message::new(7) };
            message.words[0] = number;
            note(&message);
        }
        let word = |at: usize| RING[at].load(Ordering::Relaxed);
        let newest = (word(2 * ENTRIES) - 1) as usize % ENTRIES;
        assert_eq!((word(2 * newest), word(2 * newest + 1)), (u64::from(Endpoint::new(9, 2).0) | 7 << 32, 10));
    }
}
