//! The message: 64 bytes, the only thing processes exchange (docs/book/ideas.md, 1).
//!
//! It is passed in registers, which only `lib/sys` and `kernel/x86_64` access:
//!
//! | register | meaning |
//! |---|---|
//! | `rax` | in: number of the call (`call`); out: 0 or the negative error |
//! | `rdi rsi rdx r10 r8 r9 r12` | words 0 to 6 |
//! | `r13` | low half: endpoint (in: destination, or source to receive from; out: source), high half: label |
//! | `r14` | `REPLYREC` only: source to receive from |
//!
//! A Linux system call puts its six arguments into words 0 to 5 by the same registers, and its number into the label.

use crate::{Endpoint, Errno, GrantId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Set in the label of a reply: `request label | REPLY`.
pub const REPLY: u32 = 0x8000_0000;

/// Labels from here up to `REPLY` are the kernel's; a program that sends one gets `EINVAL`.
pub const KERNEL_LABELS: u32 = 0x4000_0000;

/// Word 6 of a Linux call is its number among the calls of its thread: no two calls of a thread have the same. A call that
/// is repeated, because its server died before it replied, keeps its number and has this bit set.
pub const REPEATED: u64 = 1 << 63;

/// Labels below this are Linux system calls, delivered by a route.
pub const LINUX_LABELS: u32 = 0x1000;

/// One message. In memory (vector 33) it is exactly these 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Message {
    /// Sender, written by the kernel.
    pub source: Endpoint,
    /// Kind of message: a Linux system call number, or `protocol << 16 | message`, with `REPLY` for replies.
    pub label: u32,
    /// The content. In replies word 0 is the result: not negative, or a negative error number.
    /// Word 6 is the tag of an asynchronous request, which its reply repeats.
    pub words: [u64; 7],
}

const _: () = assert!(core::mem::size_of::<Message>() == 64);

impl Message {
    /// Returns a message with this label and zeros as content.
    pub const fn new(label: u32) -> Self {
        Message { source: Endpoint::NONE, label, words: [0; 7] }
    }

    /// Returns the reply to this message: its label marked as reply, its tag, and `result` in word 0.
    pub fn reply(&self, result: Result<u64, Errno>) -> Message {
        let mut reply = Message::new(self.label | REPLY);
        reply.words[0] = result.to_word();
        reply.words[6] = self.words[6];
        reply
    }

    /// Returns whether this is a reply, not a request or a notification.
    pub const fn is_reply(&self) -> bool {
        self.label & REPLY != 0
    }

    /// Returns the result in word 0 of a reply.
    pub fn result(&self) -> Result<u64, Errno> {
        Result::from_word(self.words[0])
    }

    /// Returns the tag of an asynchronous request or reply.
    pub const fn tag(&self) -> u64 {
        self.words[6]
    }
}

/// A type whose values fit into one word of a message.
pub trait Word: Copy {
    /// Encodes the value.
    fn to_word(self) -> u64;
    /// Decodes a value; bits beyond the type are ignored.
    fn from_word(word: u64) -> Self;
}

macro_rules! integer_words {
    ($($t:ty),*) => { $(impl Word for $t {
        fn to_word(self) -> u64 { self as u64 }
        fn from_word(word: u64) -> Self { word as $t }
    })* };
}
integer_words!(u64, i64, u32, i32, u16, u8);

impl Word for bool {
    fn to_word(self) -> u64 {
        self as u64
    }
    fn from_word(word: u64) -> Self {
        word != 0
    }
}

impl Word for Endpoint {
    fn to_word(self) -> u64 {
        self.0 as u64
    }
    fn from_word(word: u64) -> Self {
        Endpoint(word as u32)
    }
}

impl Word for GrantId {
    fn to_word(self) -> u64 {
        self.0 as u64
    }
    fn from_word(word: u64) -> Self {
        GrantId(word as u32)
    }
}

impl Word for Result<u64, Errno> {
    fn to_word(self) -> u64 {
        match self {
            Ok(value) => value,
            Err(error) => (-(error.0 as i64)) as u64,
        }
    }
    fn from_word(word: u64) -> Self {
        match word as i64 {
            negative @ -4095..=-1 => Err(Errno(-negative as i32)),
            _ => Ok(word),
        }
    }
}
