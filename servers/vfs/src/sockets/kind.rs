//! The types of sockets, as `socket(2)` numbers them.

/// What a socket transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes, between two that are connected (`SOCK_STREAM`).
    Stream,
    /// Messages, from anybody to anybody (`SOCK_DGRAM`).
    Datagrams,
    /// Messages, between two that are connected (`SOCK_SEQPACKET`).
    Packets,
}

impl Kind {
    /// `SOCK_*`.
    pub fn number(self) -> u8 {
        match self {
            Kind::Stream => 1,
            Kind::Datagrams => 2,
            Kind::Packets => 5,
        }
    }

    /// The kind with this number; any other number is that of a stream.
    #[inline]
    pub fn of(number: u8) -> Kind {
        match number {
            2 => Kind::Datagrams,
            5 => Kind::Packets,
            _ => Kind::Stream,
        }
    }
}
