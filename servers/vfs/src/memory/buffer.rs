//! A buffer in a program's memory, in one or several pieces, and how far a transfer has come in it.
//!
//! Neighbours: `iovec` builds it from the arguments of a call, `pipe`, `data` and the devices move bytes through it.

use abi::{Endpoint, Errno};
use alloc::vec::Vec;

/// One piece of a program's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// First byte.
    pub address: u64,
    /// Length.
    pub bytes: u64,
}

/// Memory of a program that a call reads from or writes to.
#[derive(Clone, Debug, Default)]
pub struct UserBuffer {
    /// Whose memory it is.
    pub owner: Endpoint,
    current: Piece,
    /// The pieces after the current one, last first.
    later: Vec<Piece>,
    moved: u64,
    left: u64,
}

impl UserBuffer {
    /// A buffer in one piece; nothing is allocated for it.
    pub fn new(owner: Endpoint, address: u64, bytes: u64) -> Self {
        UserBuffer { owner, current: Piece { address, bytes }, later: Vec::new(), moved: 0, left: bytes }
    }

    /// A buffer in these pieces, in order.
    pub fn from_pieces(owner: Endpoint, mut pieces: Vec<Piece>) -> Self {
        let left = pieces.iter().map(|piece| piece.bytes).sum();
        pieces.reverse();
        let current = pieces.pop().unwrap_or_default();
        let mut buffer = UserBuffer { owner, current, later: pieces, moved: 0, left };
        buffer.skip_empty();
        buffer
    }

    /// Bytes moved so far.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// Bytes still to move.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// What is left of the current piece; empty at the end.
    pub fn piece(&self) -> Piece {
        self.current
    }

    /// Takes note of `bytes` moved in the current piece.
    pub fn advance(&mut self, bytes: u64) {
        let bytes = bytes.min(self.current.bytes);
        self.moved += bytes;
        self.left -= bytes;
        self.current.address = self.current.address.wrapping_add(bytes);
        self.current.bytes -= bytes;
        self.skip_empty();
    }

    /// Takes note of `bytes` moved, in one piece or several.
    pub fn advance_all(&mut self, bytes: u64) {
        let mut left = bytes.min(self.left);
        while left > 0 {
            let step = left.min(self.current.bytes);
            self.advance(step);
            left -= step;
        }
    }

    fn skip_empty(&mut self) {
        while self.current.bytes == 0 {
            match self.later.pop() {
                Some(next) => self.current = next,
                None => return,
            }
        }
    }

    /// The result of a call that ends with `error`: what has been moved counts more.
    pub fn moved_or(&self, error: Errno) -> Result<u64, Errno> {
        if self.moved > 0 { Ok(self.moved) } else { Err(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_used_in_order_and_empty_ones_skipped() {
        let pieces = [(100, 0), (200, 3), (300, 0), (400, 2)].map(|(address, bytes)| Piece { address, bytes });
        let mut buffer = UserBuffer::from_pieces(Endpoint::NONE, pieces.to_vec());
        assert_eq!((buffer.left(), buffer.piece()), (5, Piece { address: 200, bytes: 3 }));
        buffer.advance(2);
        assert_eq!(buffer.piece(), Piece { address: 202, bytes: 1 });
        buffer.advance(1);
        assert_eq!(buffer.piece(), Piece { address: 400, bytes: 2 });
        buffer.advance(2);
        assert_eq!((buffer.left(), buffer.moved(), buffer.piece().bytes), (0, 5, 0));
    }

    #[test]
    fn an_error_after_some_bytes_is_a_short_transfer() {
        let mut buffer = UserBuffer::new(Endpoint::NONE, 0, 10);
        assert_eq!(buffer.moved_or(Errno::EAGAIN), Err(Errno::EAGAIN));
        buffer.advance(4);
        assert_eq!(buffer.moved_or(Errno::EAGAIN), Ok(4));
    }
}
