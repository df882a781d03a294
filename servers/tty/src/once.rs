//! Reads and writes that happen once, although vfs may die before it has their answer and ask again.
//!
//! vfs gives a transfer a tag that is the same when a successor asks for it again (bit 63 is set). The result of a transfer is kept for
//! a while under its tag; a write that a dead vfs left waiting is taken up where it was.

use alloc::collections::VecDeque;
use server::OWN_TAG;

/// Results that are kept; vfs has at most one transfer of a program in hand, and asks again at once.
const KEPT: usize = 64;

/// What became of transfers with tags of their own.
#[derive(Default)]
pub struct Once {
    done: VecDeque<(u64, u64)>,
    begun: VecDeque<(u64, usize)>,
}

impl Once {
    /// The result of the transfer with this tag, if it has happened.
    pub fn result(&self, tag: u64) -> Option<u64> {
        self.done.iter().find(|(known, _)| *known == tag).map(|(_, result)| *result)
    }

    /// The transfer with this tag has moved `bytes` bytes and is over.
    pub fn finish(&mut self, tag: u64, bytes: u64) {
        keep(&mut self.done, tag, bytes);
    }

    /// The write with this tag has moved `bytes` bytes when its asker died.
    pub fn suspend(&mut self, tag: u64, bytes: usize) {
        keep(&mut self.begun, tag, bytes);
    }

    /// Bytes that the write with this tag has moved already.
    pub fn resume(&mut self, tag: u64) -> usize {
        let index = self.begun.iter().position(|(known, _)| *known == tag);
        index.and_then(|index| self.begun.remove(index)).map_or(0, |(_, bytes)| bytes)
    }
}

fn keep<T>(list: &mut VecDeque<(u64, T)>, tag: u64, value: T) {
    if tag & OWN_TAG == 0 {
        return;
    }
    if list.len() == KEPT {
        list.pop_front();
    }
    list.push_back((tag, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transfers_with_tags_of_their_own_are_remembered_for_a_while() {
        let mut once = Once::default();
        once.finish(5, 1);
        for number in 0..KEPT as u64 + 1 {
            once.finish(OWN_TAG | number, number);
        }
        assert_eq!((once.result(5), once.result(OWN_TAG), once.result(OWN_TAG | 64)), (None, None, Some(64)));
    }

    #[test]
    fn a_write_is_taken_up_once() {
        let mut once = Once::default();
        once.suspend(OWN_TAG | 1, 7);
        assert_eq!((once.resume(OWN_TAG | 1), once.resume(OWN_TAG | 1)), (7, 0));
    }
}
