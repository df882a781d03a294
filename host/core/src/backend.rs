//! The calls, whoever carries them: what the C functions are made of.
//!
//! Which back end there is, is found out at the first call. Neighbour: `place` says where the calling thread is bound.

use crate::buffers;
use crate::client;
use crate::copy::{Copy, Way};
use crate::module;
use crate::pages::has_message;
use crate::place::{self, as_member, at_once, forget_after_fork, join, member};
use crate::skink;
use crate::wait::Limit;
use crate::wire::internal;
use m3ipc::call::Call;
use m3ipc::endpoint::Endpoint;
use m3ipc::error::Error;
use m3ipc::limits::{CONTAINERS, FOREVER};
use m3ipc::message::Message;
use std::cell::RefCell;

thread_local! {
    /// The way of the thread's last copy between buffers.
    static WAY: RefCell<Option<Way>> = const { RefCell::new(None) };
}

/// Asks the broker, whoever the caller is. Returns the result and the bytes.
///
/// # Errors
/// The broker's.
pub fn ask(call: Call, arguments: &[i64], bytes: &[u8]) -> Result<(i64, Vec<u8>), Error> {
    if skink::is_here() {
        return skink::ask(call, arguments, bytes);
    }
    if module::is_here() {
        return module::ask(call, arguments, bytes);
    }
    forget_after_fork()?;
    let answer = client::call(call as u32, arguments, bytes)?;
    Ok((answer.value, answer.bytes))
}

/// Returns the descriptors of all containers, one behind the other.
///
/// # Errors
/// The broker's.
pub fn containers() -> Result<Vec<u8>, Error> {
    if has_broker() {
        forget_after_fork()?;
        return Ok(client::call(internal::CONTAINERS, &[], &[])?.bytes);
    }
    ask(Call::DrvsInfo, &[], &[])?;
    let told = (0..CONTAINERS as i64).filter_map(|number| ask(Call::VmInfo, &[number], &[]).ok());
    Ok(told.flat_map(|(_, bytes)| bytes).collect())
}

/// Binds the caller, and maps what that needs. Returns the endpoint.
///
/// # Errors
/// The broker's.
pub fn bind(call: Call, arguments: &[i64]) -> Result<i64, Error> {
    if skink::is_here() {
        return skink::bind(call, arguments);
    }
    if module::is_here() {
        return module::ask(call, arguments, &[]).map(|(value, _)| value);
    }
    ask(call, arguments, &[])?;
    Ok(join()?.endpoint.raw().into())
}

/// Binds the calling thread. Returns its endpoint.
///
/// # Errors
/// The broker's.
pub fn bind_thread(container: i64, number: i64) -> Result<i64, Error> {
    bind(Call::ThreadBind, &[container, number, place::own_thread()])
}

/// Waits until the caller is bound by another process. Returns its endpoint.
///
/// # Errors
/// The broker's.
pub fn wait_for_bind(ms: i64) -> Result<i64, Error> {
    bind(Call::WaitForBind, &[ms, place::own_thread()])
}

pub use crate::memory::Access;
pub use crate::pages::has;
pub use crate::skink::{receive_at_once, send_at_once, send_receive_at_once};

/// The message that a program has named to be read; `None`: it is not there.
///
/// # Safety
/// If `message` is the address of memory at all, that is a message of the caller's.
#[inline(always)]
pub unsafe fn readable<'a>(message: *const Message) -> Option<&'a Message> {
    // SAFETY: it is there, and the caller promises what it is.
    has_message(message as usize, Access::Read).then(|| unsafe { &*message })
}

/// The message that a program has named to be read and written; `None`: it is not there, or may not be written.
///
/// # Safety
/// As [`readable`].
#[inline(always)]
pub unsafe fn writable<'a>(message: *mut Message) -> Option<&'a mut Message> {
    // SAFETY: as above.
    has_message(message as usize, Access::Write).then(|| unsafe { &mut *message })
}

/// Whether it is known that the module of Linux carries the messages.
#[inline(always)]
pub fn is_module() -> bool {
    module::is_known()
}

/// `send` without a limit, when [`is_module`].
///
/// # Errors
/// As `Member::send`.
#[inline(always)]
pub fn send_by_module(to: i32, message: &Message) -> Result<(), Error> {
    module::send(Call::Send, to, message, FOREVER)
}

/// `receive` without a limit, when [`is_module`].
///
/// # Errors
/// As `Member::receive`.
#[inline(always)]
pub fn receive_by_module(from: i32, message: &mut Message) -> Result<(), Error> {
    module::receive(Call::Receive, from, message, FOREVER)
}

/// `sendrec` without a limit, when [`is_module`].
///
/// # Errors
/// As `Member::send_receive`.
#[inline(always)]
pub fn send_receive_by_module(to: i32, message: &mut Message) -> Result<(), Error> {
    module::send_receive(to, message, FOREVER)
}

/// Whether it is known that a broker has mapped what carries the messages.
#[inline(always)]
pub fn is_broker() -> bool {
    place::has_joined()
}

/// `send` without a limit, when [`is_broker`].
///
/// # Errors
/// As `Member::send`.
#[inline(always)]
pub fn send_by_box(to: i32, mut message: &Message) -> Result<(), Error> {
    let to = Endpoint::from_raw(to);
    at_once(
        &mut message,
        |member, message| member.send_at_once(to, message),
        |message| send_in_linux(to, message, Limit::Forever),
    )
}

/// `receive` without a limit, when [`is_broker`].
///
/// # Errors
/// As `Member::receive`.
#[inline(always)]
pub fn receive_by_box(from: i32, message: &mut Message) -> Result<(), Error> {
    let from = Endpoint::from_raw(from);
    at_once(
        message,
        |member, message| member.receive_at_once(from, message),
        |message| receive_in_linux(from, message, Limit::Forever),
    )
}

/// `sendrec` without a limit, when [`is_broker`].
///
/// # Errors
/// As `Member::send_receive`.
#[inline(always)]
pub fn send_receive_by_box(to: i32, message: &mut Message) -> Result<(), Error> {
    let to = Endpoint::from_raw(to);
    at_once(
        message,
        |member, message| member.send_receive_at_once(to, message),
        |message| send_receive_in_linux(to, message, Limit::Forever),
    )
}

/// `send`.
///
/// # Errors
/// As `Member::send`.
pub fn send(to: i32, message: &Message, ms: i64) -> Result<(), Error> {
    if skink::is_here() {
        return skink::send(to, message, ms);
    }
    if module::is_here() {
        return module::send(Call::Send, to, message, ms);
    }
    send_in_linux(Endpoint::from_raw(to), message, Limit::from_ms(ms))
}

/// `receive`.
///
/// # Errors
/// As `Member::receive`.
pub fn receive(from: i32, message: &mut Message, ms: i64) -> Result<(), Error> {
    if skink::is_here() {
        return skink::receive(from, ms).map(|received| *message = received);
    }
    if module::is_here() {
        return module::receive(Call::Receive, from, message, ms);
    }
    receive_in_linux(Endpoint::from_raw(from), message, Limit::from_ms(ms))
}

/// `sendrec`. The answer comes in the place of the message.
///
/// # Errors
/// As `Member::send_receive`.
pub fn send_receive(to: i32, message: &mut Message, ms: i64) -> Result<(), Error> {
    if skink::is_here() {
        return skink::send_receive(to, message, ms).map(|received| *message = received);
    }
    if module::is_here() {
        return module::send_receive(to, message, ms);
    }
    send_receive_in_linux(Endpoint::from_raw(to), message, Limit::from_ms(ms))
}

#[inline(never)]
fn send_in_linux(to: Endpoint, message: &Message, limit: Limit) -> Result<(), Error> {
    as_member(|member| member.send(to, message, limit))
}

#[inline(never)]
fn receive_in_linux(from: Endpoint, message: &mut Message, limit: Limit) -> Result<(), Error> {
    as_member(|member| member.receive(from, limit, message))
}

#[inline(never)]
fn send_receive_in_linux(to: Endpoint, message: &mut Message, limit: Limit) -> Result<(), Error> {
    as_member(|member| member.send_receive(to, message, limit))
}

/// `rcvrqst`.
///
/// # Errors
/// As `Member::receive_request`.
pub fn receive_request(message: &mut Message, ms: i64) -> Result<(), Error> {
    if skink::is_here() {
        return skink::receive_request(ms).map(|received| *message = received);
    }
    if module::is_here() {
        return module::receive(Call::ReceiveRequest, Endpoint::ANY.raw(), message, ms);
    }
    as_member(|member| member.receive_request(Limit::from_ms(ms), message))
}

/// `reply`.
///
/// # Errors
/// As `Member::reply`.
pub fn reply(to: i32, message: &Message) -> Result<(), Error> {
    if skink::is_here() {
        return skink::reply(to, message);
    }
    if module::is_here() {
        return module::send(Call::Reply, to, message, 0);
    }
    as_member(|member| member.reply(Endpoint::from_raw(to), message))
}

/// `notify`, `ntfy_value`.
///
/// # Errors
/// As `Member::notify`.
pub fn notify(to: i32, value: u64) -> Result<(), Error> {
    if skink::is_here() {
        return skink::notify(to, value);
    }
    if module::is_here() {
        return module::notify(to, value);
    }
    as_member(|member| member.notify(Endpoint::from_raw(to), value))
}

/// `vcopy` as this thread's last one has gone, if it is between the same two buffers. Returns whether it is done; else [`copy`] does it, or says why not.
///
/// # Safety
/// As [`copy`].
#[inline(always)]
pub unsafe fn copy_at_once(from: (i32, usize), to: (i32, usize), bytes: i32) -> bool {
    WAY.with(|way| {
        // SAFETY: as the caller promises.
        way.try_borrow().is_ok_and(|way| way.as_ref().is_some_and(|way| unsafe { way.copy(from, to, bytes as usize) }))
    })
}

/// `vcopy`. Returns how many bytes.
///
/// # Errors
/// As `Rendezvous::check_copy`; `CallDenied`; `Range`; `AddressNotAvailable`: a block is not mapped; `NotPermitted`; `BadState`: a party has stopped
/// waiting meanwhile.
///
/// # Safety
/// The caller has named the memory that is written, if it is its own.
pub unsafe fn copy(from: (i32, usize), to: (i32, usize), bytes: i32) -> Result<i64, Error> {
    if skink::is_here() {
        // SAFETY: as the caller promises.
        return unsafe { skink::copy(from, to, bytes) };
    }
    if module::is_here() {
        // SAFETY: as the caller promises.
        return unsafe { module::copy(from, to, bytes) };
    }
    let copy = Copy::check(&member()?, from, to, bytes)?;
    if let Some(way) = place::changes_word().and_then(|changes| Way::find(&copy, changes)) {
        // SAFETY: as the caller promises.
        let is_done = unsafe { way.copy(from, to, bytes as usize) };
        WAY.with(|kept| kept.try_borrow_mut().map(|mut kept| *kept = Some(way))).ok();
        if is_done {
            return Ok(bytes.into());
        }
    }
    // SAFETY: as the caller promises.
    unsafe { copy.run() }
}

/// Allocates a buffer of at least so many bytes for the caller, who must be bound. Returns its address.
///
/// # Errors
/// As [`buffers::allocate`]; `NotBound`.
pub fn allocate(bytes: i64) -> Result<usize, Error> {
    buffers::allocate(bytes, || {
        if has_broker() {
            member()?;
            return Ok(Some(place::program()));
        }
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        ask(Call::GetEndpoint, &[pid.into()], &[]).map(|_| None)
    })
}

/// Frees a buffer.
///
/// # Errors
/// As [`buffers::free`].
pub fn free(address: usize) -> Result<(), Error> {
    buffers::free(address, has_broker())
}

/// Whether a broker carries the calls.
pub fn has_broker() -> bool {
    !skink::is_here() && !module::is_here()
}
