//! Replies to the latest requests that changed something: a client that repeats a request, because it does not know whether
//! the request was executed, gets the same reply and no second execution.
//!
//! A reply is written before the transaction that it belongs to is committed and has that transaction's number: it counts
//! only once the commit has happened. A check word tells a reply that a death has left half written.

use abi::Message;
use sys::keep::Part;

use crate::lru::LruIndex;
use recover::check::check_word;

/// Number of replies that are kept.
pub const KEPT: usize = 64;
/// Bytes of all replies.
pub const BYTES: usize = KEPT * STRIDE;

/// Bytes of one reply.
const STRIDE: usize = 96;
/// Words of a reply before the check word: transaction, tag, source and label, the message's words.
const WORDS: usize = 10;

/// The table of replies.
pub struct Replies {
    part: Part,
    /// By the key of the request.
    index: LruIndex,
}

impl Replies {
    /// Clears the memory and returns an empty table in it.
    pub fn clear(part: &mut Part) {
        part.fill(0);
    }

    /// Opens the table in `part`. Ignores replies of transactions after `committed`: these were rolled back.
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn open(part: Part, committed: u64) -> Replies {
        let mut replies = Replies { part, index: LruIndex::new(KEPT) };
        let keys = (0..KEPT).map(|slot| {
            let words = replies.words(slot);
            let is_whole = replies.part.word(slot * STRIDE + 8 * WORDS) == check_word(0, words) && words[0] != 0;
            (is_whole && words[0] <= committed).then(|| key(words[1], words[2]))
        });
        let keys: alloc::vec::Vec<_> = keys.collect();
        for slot in 0..KEPT {
            if replies.part.word(slot * STRIDE) > committed {
                replies.part.put_word(slot * STRIDE, 0);
            }
        }
        replies.index = LruIndex::restore(KEPT, keys.into_iter());
        replies
    }

    /// Returns the number of the transaction and the reply if `request` has been executed.
    #[inline]
    pub fn find(&self, request: &Message) -> Option<(u64, Message)> {
        let origin = origin(request);
        let slot = self.index.find(key(request.tag(), origin))?;
        let words = self.words(slot);
        if words[1] != request.tag() || words[2] != origin {
            return None;
        }
        let mut reply = request.reply(Ok(0));
        reply.words.copy_from_slice(&words[3..]);
        Some((words[0], reply))
    }

    /// Stores the reply to `request` as part of transaction `number`, whose commit must follow at once.
    pub fn keep(&mut self, number: u64, request: &Message, reply: &Message) {
        let key = key(request.tag(), origin(request));
        let slot = match self.index.find(key) {
            Some(slot) => slot,
            None => self.take(key),
        };
        self.index.touch(slot);
        let mut words = [number, request.tag(), origin(request), 0, 0, 0, 0, 0, 0, 0];
        words[3..].copy_from_slice(&reply.words);
        let start = slot * STRIDE;
        let record = &mut self.part[start..start + STRIDE];
        for (word, bytes) in words.iter().chain([&check_word(0, words)]).zip(record.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn take(&mut self, key: u64) -> usize {
        if self.index.len() == KEPT
            && let Some(oldest) = self.index.oldest()
        {
            self.index.remove(oldest);
        }
        self.index.insert(key)
    }

    fn words(&self, slot: usize) -> [u64; WORDS] {
        core::array::from_fn(|word| self.part.word(slot * STRIDE + 8 * word))
    }
}

/// Client and tag: what identifies a request.
fn origin(request: &Message) -> u64 {
    (request.source.slot() as u64) << 32 | u64::from(request.label)
}

fn key(tag: u64, origin: u64) -> u64 {
    tag ^ origin.rotate_left(20)
}
