//! A buffer in a program's memory, in one or several pieces, and how far a transfer has come in it.
//!
//! Of a vector of pieces only a few are here at a time, and the others are fetched when their turn comes: so a call that waits holds the same
//! little memory whatever the program has given it. Neighbours: `memory` builds it from the arguments of a call, `pipes`, `objects`
//! and the devices move bytes through it.

use super::{fetch, fetch_words};
use abi::{Endpoint, Errno};
use alloc::boxed::Box;

/// One piece of a program's memory (`struct iovec`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// First byte.
    pub address: u64,
    /// Length.
    pub bytes: u64,
}

/// Bytes of a `struct iovec`.
const PIECE_BYTES: usize = 16;
/// Pieces fetched at a time.
const WINDOW: usize = 16;

/// The pieces after the current one: the first of them, and where the program has the rest.
#[derive(Clone, Debug, Default)]
struct Vector {
    fetched: [Piece; WINDOW],
    /// Range of `fetched` still to come.
    next: usize,
    end: usize,
    /// Where the pieces not fetched yet begin, and how many they are.
    address: u64,
    further: usize,
}

impl Vector {
    /// Takes the next piece; fetches some when there is none here. `EFAULT`.
    fn take(&mut self, owner: Endpoint) -> Result<Option<Piece>, Errno> {
        if self.next == self.end {
            self.refill(owner)?;
        }
        let piece = self.fetched[..self.end].get(self.next).copied();
        self.next += piece.is_some() as usize;
        Ok(piece)
    }

    fn refill(&mut self, owner: Endpoint) -> Result<(), Errno> {
        let count = self.further.min(WINDOW);
        let mut bytes = [0; WINDOW * PIECE_BYTES];
        fetch(owner, self.address, &mut bytes[..count * PIECE_BYTES])?;
        let words = bytes.as_chunks::<8>().0.as_chunks::<2>().0;
        for (piece, [address, length]) in self.fetched.iter_mut().zip(&words[..count]) {
            *piece = Piece { address: u64::from_le_bytes(*address), bytes: u64::from_le_bytes(*length) };
        }
        (self.next, self.end) = (0, count);
        self.address = self.address.wrapping_add((count * PIECE_BYTES) as u64);
        self.further -= count;
        Ok(())
    }
}

/// Memory of a program that a call reads from or writes to.
#[derive(Clone, Debug, Default)]
pub struct UserBuffer {
    /// Whose memory it is.
    pub owner: Endpoint,
    current: Piece,
    later: Option<Box<Vector>>,
    moved: u64,
    left: u64,
}

impl UserBuffer {
    /// A buffer in one piece; nothing is allocated for it.
    pub fn new(owner: Endpoint, address: u64, bytes: u64) -> Self {
        UserBuffer { owner, current: Piece { address, bytes }, later: None, moved: 0, left: bytes }
    }

    /// A buffer in `count` pieces that the program has at `address`, of which up to `limit` bytes are used. `EINVAL`: a negative length;
    /// `EFAULT`.
    pub fn of_vector(owner: Endpoint, address: u64, count: usize, limit: u64) -> Result<Self, Errno> {
        if count == 1 {
            let [address, bytes] = fetch_words(owner, address)?;
            check_length(bytes)?;
            return Ok(UserBuffer::new(owner, address, bytes.min(limit)));
        }
        let mut vector = Vector { address, further: count, ..Vector::default() };
        vector.refill(owner)?;
        let begin = vector.clone();
        let mut left = 0;
        while let Some(piece) = vector.take(owner)? {
            check_length(piece.bytes)?;
            left = limit.min(left + piece.bytes);
        }
        let later = (count > 0).then(|| Box::new(begin));
        let mut buffer = UserBuffer { owner, current: Piece::default(), later, moved: 0, left };
        buffer.skip_empty();
        Ok(buffer)
    }

    /// Bytes moved so far.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// Bytes still to move.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Shortens what is left to at most so many bytes.
    pub fn truncate(&mut self, left: u64) {
        self.left = self.left.min(left);
        self.current.bytes = self.current.bytes.min(self.left);
    }

    /// What is left of the current piece; empty at the end.
    pub fn piece(&self) -> Piece {
        self.current
    }

    /// Takes note of `bytes` moved in the current piece.
    #[inline]
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

    /// Goes on to the next piece with any bytes. When the program has changed or unmapped its vector meanwhile, the buffer ends early.
    #[inline]
    fn skip_empty(&mut self) {
        if self.current.bytes == 0 && self.left > 0 {
            self.take_next();
        }
    }

    #[inline(never)]
    fn take_next(&mut self) {
        while self.current.bytes == 0 && self.left > 0 {
            match self.later.as_mut().map(|later| later.take(self.owner)) {
                Some(Ok(Some(next))) => self.current = Piece { bytes: next.bytes.min(self.left), ..next },
                _ => self.left = 0,
            }
        }
    }

    /// The result of a call that ends with `error`: what has been moved counts more.
    pub fn moved_or(&self, error: Errno) -> Result<u64, Errno> {
        if self.moved > 0 { Ok(self.moved) } else { Err(error) }
    }
}

/// `EINVAL` for a negative length.
fn check_length(bytes: u64) -> Result<(), Errno> {
    if bytes as i64 <= -1 { Err(Errno::EINVAL) } else { Ok(()) }
}

#[cfg(test)]
impl UserBuffer {
    /// A buffer in these pieces, all of which are here.
    pub fn from_pieces(owner: Endpoint, pieces: &[Piece]) -> Self {
        let mut vector = Vector { end: pieces.len(), ..Vector::default() };
        vector.fetched[..pieces.len()].copy_from_slice(pieces);
        let left = pieces.iter().map(|piece| piece.bytes).sum();
        let mut buffer = UserBuffer { owner, current: Piece::default(), later: Some(Box::new(vector)), moved: 0, left };
        buffer.skip_empty();
        buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_used_in_order_and_empty_ones_skipped() {
        let pieces = [(100, 0), (200, 3), (300, 0), (400, 2)].map(|(address, bytes)| Piece { address, bytes });
        let mut buffer = UserBuffer::from_pieces(Endpoint::NONE, &pieces);
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
