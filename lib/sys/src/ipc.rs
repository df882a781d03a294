//! The IPC primitives (defined in `abi::call`).

use crate::{Result, raw};
use abi::{Endpoint, Errno, Message, call};

/// Attempts of [`call_repeating`]: after so many crashes in a row the request itself is the likely cause.
const REPEATS: usize = 10;

/// Sends and waits until the message is received.
///
/// # Errors
/// `EDEADSRCDST`: no such process; `ECALLDENIED`: not in the destination bitmap; `ELOCKED`: deadlock.
#[inline]
pub fn send(to: Endpoint, message: &Message) -> Result<()> {
    raw::primitive(call::SEND, to, message, Endpoint::NONE).map(drop)
}

/// Waits for a message from `from`, or from any process with `Endpoint::ANY`.
///
/// # Errors
/// `EDEADSRCDST`: `from` has ended or ends.
#[inline]
pub fn receive(from: Endpoint) -> Result<Message> {
    raw::primitive(call::RECEIVE, from, &Message::default(), Endpoint::NONE)
}

/// Sends a request and waits for the reply of the same process. The caller checks the result in the reply.
///
/// # Errors
/// As [`send`]; `EDEADSRCDST` also if the server crashed with the request in progress.
#[inline]
pub fn sendrec(to: Endpoint, request: &Message) -> Result<Message> {
    raw::primitive(call::SENDREC, to, request, Endpoint::NONE)
}

/// Sends a request, waits for the reply, and returns its error as `Err`.
///
/// # Errors
/// As [`sendrec`], and the error in the reply.
#[inline]
pub fn call(to: Endpoint, request: &Message) -> Result<Message> {
    let reply = sendrec(to, request)?;
    reply.result()?;
    Ok(reply)
}

/// Makes a [`call()`] with an idempotent request: if the server crashes with the request in progress, it is repeated to the successor.
/// `to` must be an `Endpoint::current`, which names the successor too.
///
/// # Errors
/// As [`call()`]; `EDEADSRCDST` if no successor is expected, or ten servers in a row crashed.
pub fn call_repeating(to: Endpoint, request: &Message) -> Result<Message> {
    let mut last = call(to, request);
    for _ in 1..REPEATS {
        if last != Err(Errno::EDEADSRCDST) {
            break;
        }
        last = call(to, request);
    }
    last
}

/// Notifies `to`: sets the caller's pending bit there. Never blocks.
///
/// # Errors
/// `EDEADSRCDST`, `ECALLDENIED`.
#[inline]
pub fn notify(to: Endpoint) -> Result<()> {
    raw::primitive(call::NOTIFY, to, &Message::default(), Endpoint::NONE).map(drop)
}

/// Sends without blocking, if `to` is waiting for it.
///
/// # Errors
/// `ENOTREADY`: `to` is not waiting; it notifies the caller when it is. Else as [`send`].
#[inline]
pub fn send_nonblocking(to: Endpoint, message: &Message) -> Result<()> {
    raw::primitive(call::SENDNB, to, message, Endpoint::NONE).map(drop)
}

/// Replies to `to`, which loses the reply if it is not waiting for it, and waits for the next message from `from`.
///
/// # Errors
/// As [`receive`]. After an error of the reply no message was received: the caller then calls [`receive`].
#[inline]
pub fn reply_receive(to: Endpoint, reply: &Message, from: Endpoint) -> Result<Message> {
    raw::primitive(call::REPLYREC, to, reply, from)
}

/// Sends a request to `to`, if it is waiting for it, and waits for the next message from `from`.
///
/// # Errors
/// Of the request, as [`send_nonblocking`]; no message was received then. As [`receive`].
#[inline]
pub fn request_receive(to: Endpoint, request: &Message, from: Endpoint) -> Result<Message> {
    debug_assert!(!request.is_reply(), "a reply that is lost is no error");
    raw::primitive(call::REPLYREC, to, request, from)
}

/// Sends to `to`, waiting until it is received, and then atomically waits for the next message from `from`. Used for the reply to
/// an asynchronous request, whose client never blocks.
///
/// # Errors
/// As [`send`] and [`receive`].
#[inline]
pub fn send_receive(to: Endpoint, message: &Message, from: Endpoint) -> Result<Message> {
    raw::primitive(call::SENDWAIT, to, message, from)
}
