//! The message: 64 bytes, of which the first 8 say who sent it and what it is, and the rest has one of ten layouts.
//!
//! It is as large as a message of Skink's kernel and laid out as there, so that it travels in registers. On 32-bit machines it had 36 bytes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A message as it lies in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Message {
    /// Endpoint of the sender, which the receiver can rely on.
    pub source: i32,
    /// What the message is; the programs agree on that.
    pub kind: i32,
    /// The fields of a layout.
    pub words: [u64; PAYLOAD_WORDS],
}

/// Words behind `source` and `kind`.
pub const PAYLOAD_WORDS: usize = 7;

/// Bytes before the fields of a layout.
pub const HEAD_BYTES: usize = 8;

/// Bytes of a message.
pub const MESSAGE_BYTES: usize = HEAD_BYTES + PAYLOAD_WORDS * 8;

/// Set in `kind` of a notification; the rest is the index of the source's slot.
pub const NOTIFY: i32 = 0x1000;

/// In Skink, types from here to 0x3fff_ffff are notifications that members exchange by the kernel's primitives: the index of the source's slot is
/// added, and the first word is the value. Messages of programs with such types go through the server.
pub const DIRECT_NOTIFICATIONS: i32 = 0x3fff_ff00;

impl Message {
    /// Returns the message that tells of a notification, in layout 9: the value that was notified with, and when.
    pub fn notification(source: crate::endpoint::Endpoint, index: usize, value: u64, time_ns: u64) -> Message {
        let mut words = [0; PAYLOAD_WORDS];
        words[..2].copy_from_slice(&[value, time_ns]);
        Message { source: source.raw(), kind: NOTIFY | index as i32, words }
    }

    /// Whether it tells of a notification.
    pub fn is_notification(&self) -> bool {
        self.kind & !0xff == NOTIFY
    }
}

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `char`.
    Char,
    /// `short`.
    Short,
    /// `int`.
    Int,
    /// `long`, of 64 bits.
    Long,
    /// `unsigned long long`.
    Wide,
    /// `char *`.
    Pointer,
    /// `char [14]`.
    Text,
}

impl Field {
    /// Returns length and alignment in bytes.
    pub const fn size(self) -> (usize, usize) {
        match self {
            Field::Char => (1, 1),
            Field::Short => (2, 2),
            Field::Int => (4, 4),
            Field::Long | Field::Wide | Field::Pointer => (8, 8),
            Field::Text => (14, 1),
        }
    }

    /// Returns the part of a field's name that stands for its type.
    pub const fn letters(self) -> &'static str {
        match self {
            Field::Char => "c",
            Field::Short => "s",
            Field::Int => "i",
            Field::Long => "l",
            Field::Wide => "ull",
            Field::Pointer => "p",
            Field::Text => "ca",
        }
    }
}

/// The layouts, from 1 on: fields in their order. The third `int` of layout 1 is `m1_i3` in C.
pub const LAYOUTS: [&[Field]; 10] = {
    use Field::*;
    [
        &[Int, Int, Int, Pointer, Pointer, Pointer],
        &[Int, Int, Int, Long, Long, Pointer],
        &[Int, Int, Pointer, Text],
        &[Long, Long, Long, Long, Long],
        &[Char, Char, Int, Int, Long, Long, Long],
        &[Int, Int, Int, Long, Pointer],
        &[Int, Int, Int, Int, Pointer, Pointer],
        &[Int, Int, Pointer, Pointer, Pointer, Pointer],
        &[Wide, Wide, Long, Long, Long, Long, Short, Short, Short, Short],
        &[Wide, Int, Int, Int, Int, Long, Long, Long],
    ]
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{Endpoint, Number};

    /// Bytes of a structure with these fields, as a C compiler lays them out.
    fn bytes(fields: &[Field]) -> usize {
        let end = fields.iter().fold(0usize, |at, field| {
            let (length, alignment) = field.size();
            at.next_multiple_of(alignment) + length
        });
        end.next_multiple_of(fields.iter().map(|field| field.size().1).max().unwrap())
    }

    #[test]
    fn every_layout_fits_and_the_largest_fills_the_message() {
        assert_eq!(size_of::<Message>(), MESSAGE_BYTES);
        assert_eq!(LAYOUTS.map(bytes).into_iter().max(), Some(MESSAGE_BYTES - HEAD_BYTES));
    }

    #[test]
    fn a_notification_tells_its_source() {
        let source = Number::new(63).unwrap();
        let message = Message::notification(Endpoint::new(source, 0), source.index(), 5, 9);
        assert!(message.is_notification());
        assert_eq!((message.source, message.kind & 0xff, message.words[0], message.words[1]), (63, 98, 5, 9));
        assert!(!Message { kind: 0x1100, ..message }.is_notification());
    }
}
