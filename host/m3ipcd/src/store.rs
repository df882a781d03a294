//! What the worker deposits with the supervisor, and its successor gets back: packets with a key, bytes and open files. A packet with the key
//! of an earlier one replaces it. Neighbour: `partner`.

use m3core::wire::{self, ARGUMENTS, Request};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// What a deposit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The socket at which the broker listens.
    Listener,
    /// The node: its descriptor.
    Node,
    /// A container: its descriptor, board and desks.
    Container(i32),
    /// A box of two slots of a container.
    Box(i32, i32, i32),
    /// A buffer: its container, its group leader's slot, and its place there.
    Buffer(i32, i32, i32),
}

/// What one of the two says to the other.
pub enum Packet {
    /// This process speaks.
    Introduce(OwnedFd),
    /// Keep this.
    Keep(Key, Vec<u8>, Vec<OwnedFd>),
    /// Keep it no longer.
    Drop(Key),
    /// That was everything that there is to hand over.
    End,
}

const KEEP: u32 = 1;
const DROP: u32 = 2;
const END: u32 = 3;
const INTRODUCE: u32 = 4;

impl Key {
    fn words(self) -> [i64; 4] {
        match self {
            Key::Listener => [0, 0, 0, 0],
            Key::Node => [1, 0, 0, 0],
            Key::Container(container) => [2, container.into(), 0, 0],
            Key::Box(container, low, high) => [3, container.into(), low.into(), high.into()],
            Key::Buffer(container, leader, place) => [4, container.into(), leader.into(), place.into()],
        }
    }

    fn from_words(words: [i64; ARGUMENTS]) -> Option<Key> {
        let word = |at: usize| i32::try_from(words[at]).ok();
        match words[0] {
            0 => Some(Key::Listener),
            1 => Some(Key::Node),
            2 => Some(Key::Container(word(1)?)),
            3 => Some(Key::Box(word(1)?, word(2)?, word(3)?)),
            4 => Some(Key::Buffer(word(1)?, word(2)?, word(3)?)),
            _ => None,
        }
    }
}

fn send(to: BorrowedFd, kind: u32, key: Key, bytes: &[u8], files: &[BorrowedFd]) -> Result<(), Errno> {
    let mut request =
        Request { call: kind, is_repeated: 0, number: 0, arguments: [0; ARGUMENTS], bytes: bytes.to_vec() };
    request.arguments[..4].copy_from_slice(&key.words());
    wire::send(to, &request.encode(), files, SendFlags::empty())
}

/// Deposits something. With a supervisor that has ended, nothing: its successor gets all that the worker has then.
///
/// # Errors
/// The other end has no room.
pub fn keep(to: impl AsFd, key: Key, bytes: &[u8], files: &[BorrowedFd]) -> Result<(), Errno> {
    unless_ended(hand_over(to, key, bytes, files))
}

/// Takes a deposit back.
///
/// # Errors
/// As [`keep`].
pub fn drop(to: impl AsFd, key: Key) -> Result<(), Errno> {
    unless_ended(send(to.as_fd(), DROP, key, &[], &[]))
}

fn unless_ended(sent: Result<(), Errno>) -> Result<(), Errno> {
    if matches!(sent, Err(Errno::PIPE | Errno::CONNRESET)) { Ok(()) } else { sent }
}

/// Says who speaks.
///
/// # Errors
/// As [`hand_over`].
pub fn introduce(to: impl AsFd, process: OwnedFd) -> Result<(), Errno> {
    send(to.as_fd(), INTRODUCE, Key::Listener, &[], &[process.as_fd()])
}

/// Gives a new partner something to keep.
///
/// # Errors
/// The other end has ended, or has no room.
pub fn hand_over(to: impl AsFd, key: Key, bytes: &[u8], files: &[BorrowedFd]) -> Result<(), Errno> {
    send(to.as_fd(), KEEP, key, bytes, files)
}

/// Says that this was everything.
///
/// # Errors
/// As [`hand_over`].
pub fn end(to: impl AsFd) -> Result<(), Errno> {
    send(to.as_fd(), END, Key::Listener, &[], &[])
}

/// Receives a packet; `None`: the other end has ended, or says something else.
pub fn receive(from: impl AsFd) -> Option<Packet> {
    let (packet, mut files) = loop {
        match wire::receive(from.as_fd(), RecvFlags::empty()) {
            Err(Errno::INTR) => {}
            other => break other.ok()?,
        }
    };
    let request = Request::decode(&packet)?;
    let key = Key::from_words(request.arguments)?;
    match request.call {
        KEEP => Some(Packet::Keep(key, request.bytes, files)),
        DROP => Some(Packet::Drop(key)),
        END => Some(Packet::End),
        INTRODUCE => files.pop().map(Packet::Introduce),
        _ => None,
    }
}
