//! The bit sets of poll(2) and select(2), between the programs' memory and one list of interests.

use abi::Errno;
use alloc::vec::Vec;
use sys::fallible::{collect, filled};

/// Data to read.
pub const POLLIN: u32 = 0x1;
/// Urgent data.
pub const POLLPRI: u32 = 0x2;
/// Room to write.
pub const POLLOUT: u32 = 0x4;
/// Error, always reported.
pub const POLLERR: u32 = 0x8;
/// Hang-up, always reported.
pub const POLLHUP: u32 = 0x10;
/// No such descriptor.
pub const POLLNVAL: u32 = 0x20;
/// As `POLLIN`.
pub const POLLRDNORM: u32 = 0x40;
/// As `POLLOUT`.
pub const POLLWRNORM: u32 = 0x100;
/// Every event.
pub const ANY: u32 = u32::MAX;
/// What concerns those who read.
pub const OF_READERS: u32 = !(POLLOUT | POLLWRNORM);
/// What concerns those who write.
pub const OF_WRITERS: u32 = !(POLLIN | POLLRDNORM);
/// What files are ready for at any time.
pub const ALWAYS_READY: u32 = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
/// What makes a descriptor readable for select.
const SELECT_IN: u32 = POLLIN | POLLRDNORM | POLLHUP | POLLERR;
/// What makes it writable.
const SELECT_OUT: u32 = POLLOUT | POLLWRNORM | POLLERR;

/// One descriptor, what is asked of it and what it is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// The descriptor; negative ones are passed over.
    pub descriptor: i32,
    /// Events asked for.
    pub events: u32,
    /// Events found.
    pub ready: u32,
}

/// Bytes of one `struct pollfd`.
pub const POLLFD_BYTES: usize = 8;

/// From a `struct pollfd`.
#[inline]
pub fn decode_pollfd(entry: &[u8; POLLFD_BYTES]) -> Interest {
    Interest {
        descriptor: i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]),
        events: u16::from_le_bytes([entry[4], entry[5]]) as u32,
        ready: 0,
    }
}

/// Writes the events found into a `struct pollfd`. Returns whether others were there.
#[inline]
pub fn set_found(entry: &mut [u8; POLLFD_BYTES], ready: u32) -> bool {
    let found = (ready as u16).to_le_bytes();
    let changed = entry[6..8] != found;
    entry[6..8].copy_from_slice(&found);
    changed
}

/// From an array of `struct pollfd`. `ENOMEM`.
pub fn decode_pollfds(bytes: &[u8]) -> Result<Vec<Interest>, Errno> {
    collect(bytes.as_chunks().0.iter().map(decode_pollfd))
}

/// Writes the events found back into the array. Returns how many descriptors have any.
pub fn encode_pollfds(interests: &[Interest], bytes: &mut [u8]) -> u64 {
    for (interest, entry) in interests.iter().zip(bytes.as_chunks_mut::<POLLFD_BYTES>().0) {
        set_found(entry, interest.ready);
    }
    interests.iter().filter(|interest| interest.ready != 0).count() as u64
}

/// The three sets of select; empty ones were not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sets {
    /// Descriptors to read from.
    pub read: Vec<u8>,
    /// Descriptors to write to.
    pub write: Vec<u8>,
    /// Descriptors with exceptional conditions.
    pub except: Vec<u8>,
}

/// Bytes of a set for `count` descriptors: whole words.
pub fn set_bytes(count: usize) -> usize {
    count.div_ceil(64) * 8
}

fn holds(set: &[u8], number: usize) -> bool {
    set.get(number / 8).is_some_and(|byte| byte & 1 << (number % 8) != 0)
}

/// The interests that the sets state, ascending. `ENOMEM`.
pub fn decode_sets(sets: &Sets, count: usize) -> Result<Vec<Interest>, Errno> {
    let interest = |number: usize| {
        let mut events = 0;
        if holds(&sets.read, number) {
            events |= SELECT_IN;
        }
        if holds(&sets.write, number) {
            events |= SELECT_OUT;
        }
        if holds(&sets.except, number) {
            events |= POLLPRI;
        }
        (events != 0).then_some(Interest { descriptor: number as i32, events, ready: 0 })
    };
    collect((0..count).filter_map(interest))
}

/// Returns the sets of what was found, of the same lengths as `asked`, and how many bits are set. `EBADF`: a descriptor is not open.
pub fn encode_sets(interests: &[Interest], asked: &Sets) -> Result<(Sets, u64), Errno> {
    let empty = |set: &Vec<u8>| filled(0, set.len());
    let mut found = Sets { read: empty(&asked.read)?, write: empty(&asked.write)?, except: empty(&asked.except)? };
    let mut count = 0;
    for interest in interests {
        if interest.ready & POLLNVAL != 0 {
            return Err(Errno::EBADF);
        }
        let number = interest.descriptor as usize;
        let sets = [
            (&asked.read, &mut found.read, SELECT_IN),
            (&asked.write, &mut found.write, SELECT_OUT),
            (&asked.except, &mut found.except, POLLPRI),
        ];
        for (wanted, result, events) in sets {
            if holds(wanted, number) && interest.ready & events != 0 {
                result[number / 8] |= 1 << (number % 8);
                count += 1;
            }
        }
    }
    Ok((found, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn pollfds_are_read_and_written_back() {
        let mut bytes = vec![3, 0, 0, 0, 1, 0, 9, 9, 255, 255, 255, 255, 4, 0, 9, 9];
        let mut interests = decode_pollfds(&bytes).unwrap();
        assert_eq!(interests[0], Interest { descriptor: 3, events: POLLIN, ready: 0 });
        assert_eq!(interests[1].descriptor, -1);
        interests[0].ready = POLLIN | POLLHUP;
        assert_eq!(encode_pollfds(&interests, &mut bytes), 1);
        assert_eq!(bytes[6..8], [0x11, 0]);
        assert_eq!(bytes[14..16], [0, 0]);
    }

    #[test]
    fn select_finds_the_bits_it_was_asked_for() {
        let asked =
            Sets { read: vec![0b1001, 0, 0, 0, 0, 0, 0, 0], write: vec![0b1000, 0, 0, 0, 0, 0, 0, 0], except: vec![] };
        let mut interests = decode_sets(&asked, 4).unwrap();
        assert_eq!(interests.iter().map(|i| i.descriptor).collect::<Vec<_>>(), [0, 3]);
        interests[0].ready = POLLOUT;
        interests[1].ready = POLLIN | POLLOUT;
        let (found, count) = encode_sets(&interests, &asked).unwrap();
        assert_eq!((found.read[0], found.write[0], count), (0b1000, 0b1000, 2));
        assert_eq!(found.read.len(), 8);
    }

    #[test]
    fn a_hang_up_is_readable_and_an_error_both() {
        let asked = Sets { read: vec![1; 8], write: vec![1; 8], except: vec![] };
        let mut interests = decode_sets(&asked, 1).unwrap();
        interests[0].ready = POLLHUP;
        assert_eq!(encode_sets(&interests, &asked).unwrap().1, 1);
        interests[0].ready = POLLERR;
        assert_eq!(encode_sets(&interests, &asked).unwrap().1, 2);
        interests[0].ready = POLLNVAL;
        assert_eq!(encode_sets(&interests, &asked), Err(Errno::EBADF));
    }

    #[test]
    fn descriptors_beyond_the_count_are_ignored() {
        let asked = Sets { read: vec![0xff; 8], ..Sets::default() };
        assert_eq!(decode_sets(&asked, 3).unwrap().len(), 3);
        assert_eq!(set_bytes(1), 8);
        assert_eq!(set_bytes(65), 16);
    }
}
