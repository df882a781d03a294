//! The primitives: how messages go between processes (`abi::call` has their full meaning).

use crate::{Result, raw};
use abi::{Endpoint, Errno, Message, call};

/// How often [`call_repeating`] tries: more deaths in a row mean that the request itself kills the server.
const REPEATS: usize = 10;

/// Sends and waits until the message is received.
///
/// # Errors
/// `EDEADSRCDST`: nobody there; `ECALLDENIED`: not in the destination bitmap; `ELOCKED`: a circle of waiting processes.
#[inline]
pub fn send(to: Endpoint, message: &Message) -> Result<()> {
    raw::primitive(call::SEND, to, message, Endpoint::NONE).map(drop)
}

/// Waits for a message from `from`, or from anybody with `Endpoint::ANY`.
///
/// # Errors
/// `EDEADSRCDST`: `from` is dead or dies.
#[inline]
pub fn receive(from: Endpoint) -> Result<Message> {
    raw::primitive(call::RECEIVE, from, &Message::default(), Endpoint::NONE)
}

/// Sends a request and waits for the answer of the same process. The answer's own result is the caller's to look at.
///
/// # Errors
/// As [`send`]; `EDEADSRCDST` also when the server died with the request in hand.
#[inline]
pub fn sendrec(to: Endpoint, request: &Message) -> Result<Message> {
    raw::primitive(call::SENDREC, to, request, Endpoint::NONE)
}

/// [`sendrec`], and an answer that is an error counts as error.
///
/// # Errors
/// As [`sendrec`], and whatever the server answers.
#[inline]
pub fn call(to: Endpoint, request: &Message) -> Result<Message> {
    let reply = sendrec(to, request)?;
    reply.result()?;
    Ok(reply)
}

/// [`call`] for requests that may be repeated: when the server dies with the request in hand, its successor gets it again.
/// `to` should be an `Endpoint::current`, else no successor will do.
///
/// # Errors
/// As [`call`]; `EDEADSRCDST` when no successor is expected, or ten servers in a row died.
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

/// Sets the caller's pending bit at `to`. Never waits.
///
/// # Errors
/// `EDEADSRCDST`, `ECALLDENIED`.
#[inline]
pub fn notify(to: Endpoint) -> Result<()> {
    raw::primitive(call::NOTIFY, to, &Message::default(), Endpoint::NONE).map(drop)
}

/// Sends if `to` is waiting for it.
///
/// # Errors
/// `ENOTREADY`: it is not; a notification from it tells when to try again. Else as [`send`].
#[inline]
pub fn send_nonblocking(to: Endpoint, message: &Message) -> Result<()> {
    raw::primitive(call::SENDNB, to, message, Endpoint::NONE).map(drop)
}

/// Answers `to`, which loses the answer if it does not wait for it, and waits for the next message from `from`.
///
/// # Errors
/// As [`receive`]. An error of the answer leaves the caller without a next message: it then calls [`receive`].
#[inline]
pub fn reply_receive(to: Endpoint, reply: &Message, from: Endpoint) -> Result<Message> {
    raw::primitive(call::REPLYREC, to, reply, from)
}

/// Sends to `to`, waiting until it is received, and is then at once waiting for the next message from `from`: how the result
/// of an asynchronous request is handed over.
///
/// # Errors
/// As [`send`] and [`receive`].
#[inline]
pub fn send_receive(to: Endpoint, message: &Message, from: Endpoint) -> Result<Message> {
    raw::primitive(call::SENDWAIT, to, message, from)
}
