//! How calls reach the module of Linux: a device, and what its `ioctl`s take.

use crate::{descriptor::Request, limits::FOREVER, message::Message};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The device.
pub const PATH: &str = "/dev/m3ipc";

/// Number of the `ioctl` of a call, with the call's number added. Its argument is the address of a [`Parcel`], for calls with a message, or of a
/// [`Request`].
pub const IOCTL: u32 = 0x4d00;

/// How calls with a message, and notifications, are made by `posix_fadvise`: the message's address is the offset, this the length, and the `ioctl`'s number
/// the advice. `upper`: the limit in milliseconds, or the notification's value.
pub fn peer_word(peer: i32, upper: i64) -> u64 {
    let upper = upper.clamp(i32::MIN.into(), i32::MAX.into());
    (upper as u64) << 32 | u64::from(peer as u32)
}

/// What calls with a message take by `ioctl`, and those that receive return.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Parcel {
    /// How long the call waits, in milliseconds.
    pub limit_ms: i64,
    /// The message. Its source is the peer's endpoint, or `ANY`, when the call is made.
    pub message: Message,
}

impl Parcel {
    /// A message for, or from, this peer.
    pub fn new(peer: i32, message: &Message, limit_ms: i64) -> Parcel {
        Parcel { limit_ms: limit_ms.max(FOREVER), message: Message { source: peer, ..*message } }
    }
}

impl Request {
    /// A call with these arguments, in the order of its prototype. Addresses of descriptors and names are among them.
    pub fn new(arguments: &[i64]) -> Request {
        let mut request = Request::default();
        for (place, argument) in request.arguments.iter_mut().zip(arguments) {
            *place = *argument;
        }
        request
    }
}
