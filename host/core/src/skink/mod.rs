//! M3-IPC in Skink: messages by the kernel's primitives where both sides are direct members, by the server m3ipc otherwise
//! (`abi::m3ipc`; docs/adr/0074-m3ipc-binds-and-the-kernel-carries.md). The file is long because each call has its fast path and the slow one beside it.
//!
//! A thread keeps how it stands with m3ipc, and the kernel's endpoints of its peers. What it keeps may be outdated in one way only: the thread or a
//! peer uses primitives no more. Then a primitive fails, or ends with a notification, and m3ipc says how to go on.

mod kept;
mod raw;

use crate::window::Window;
use abi::call::{RECEIVE, SEND, SENDNB, SENDREC};
use abi::m3ipc::own;
use abi::{Endpoint as Thread, Errno};
use kept::{Kept, Mode};
use m3ipc::call::Call;
use m3ipc::descriptor::{ContainerInfo, DrvsInfo, NodeInfo, Privileges, ProcessInfo, ProxiesInfo};
use m3ipc::endpoint::Endpoint;
use m3ipc::error::Error;
use m3ipc::limits::{SLOT_BITS, SYSTEM_PROCESSES, TASKS};
use m3ipc::message::{DIRECT_NOTIFICATIONS, Message};
use raw::Parcel;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU8, Ordering};

const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;
static IS_HERE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether this is Skink, with m3ipc.
#[inline]
pub fn is_here() -> bool {
    match IS_HERE.load(Ordering::Relaxed) {
        UNKNOWN => look(),
        known => known == YES,
    }
}

#[cold]
fn look() -> bool {
    let answer = raw::call_plainly(own::MODE, [0; 4]);
    let is_here = answer != i64::from(Error::NotImplemented.to_result());
    IS_HERE.store(if is_here { YES } else { NO }, Ordering::Relaxed);
    is_here
}

fn checked(result: i64) -> Result<i64, Error> {
    match i32::try_from(result).ok().and_then(Error::from_result) {
        // Endpoints of tasks are negative, too.
        Some(error) => Err(error),
        None => Ok(result),
    }
}

/// Makes a call that moves no messages. `bytes`: the descriptor or name that goes with it. Returns the result, and the descriptor that is told.
///
/// # Errors
/// m3ipc's.
pub fn ask(call: Call, arguments: &[i64], bytes: &[u8]) -> Result<(i64, Vec<u8>), Error> {
    let told = match call {
        Call::DrvsInfo => size_of::<DrvsInfo>(),
        Call::VmInfo => size_of::<ContainerInfo>(),
        Call::ProcessInfo => size_of::<ProcessInfo>(),
        Call::GetPrivileges => size_of::<Privileges>(),
        Call::NodeInfo => size_of::<NodeInfo>(),
        Call::ProxyInfo => size_of::<ProxiesInfo>(),
        _ => 0,
    };
    let mut buffer = vec![0; told.max(bytes.len())];
    buffer[..bytes.len()].copy_from_slice(bytes);
    let result = if buffer.is_empty() {
        let mut words = [0; 4];
        words[..arguments.len()].copy_from_slice(arguments);
        raw::call_plainly(call as u64, words)
    } else {
        raw::call_with_bytes(call as u64, arguments, &mut buffer)
    };
    if matches!(call, Call::Unbind | Call::VmEnd | Call::DrvsEnd) {
        kept::with(Kept::begin_anew);
    }
    let result = if call == Call::WaitForBindOf { result } else { checked(result)? };
    Ok((result, buffer))
}

/// Binds the caller, or waits for that. Returns its endpoint.
///
/// # Errors
/// m3ipc's.
pub fn bind(call: Call, arguments: &[i64]) -> Result<i64, Error> {
    let mut words = [0; 4];
    words[..arguments.len()].copy_from_slice(arguments);
    let result = raw::call_plainly(call as u64, words);
    kept::with(Kept::begin_anew);
    checked(result)
}

/// `vcopy`, in pieces as long as m3ipc copies at a time. Returns how many bytes were copied. When it fails, some of them may have been.
///
/// # Errors
/// m3ipc's.
///
/// # Safety
/// Who calls has named memory that may change.
pub unsafe fn copy(from: (i32, usize), to: (i32, usize), bytes: i32) -> Result<i64, Error> {
    let mut done = 0;
    loop {
        let at = |address: usize| address.wrapping_add(done as usize) as u64;
        let words = [from.0 as u64, at(from.1), to.0 as u64, at(to.1), (i64::from(bytes) - done) as u64];
        // SAFETY: as the caller promises.
        let piece = checked(unsafe { raw::call(Call::Copy as u64, words) })?;
        done += piece;
        if piece == 0 || done >= i64::from(bytes) {
            return Ok(done);
        }
    }
}

/// `notify`, `ntfy_value`. A peer that waits for it gets it as a message; m3ipc keeps it for one that does not.
///
/// # Errors
/// m3ipc's.
pub fn notify(to: i32, value: u64) -> Result<(), Error> {
    if kept::with(|state| state.notify_at_once(to, value)) {
        return Ok(());
    }
    checked(raw::call_plainly(Call::NotifyValue as u64, [to.into(), value as i64, 0, 0])).map(drop)
}

/// Messages of the calling thread lie there from now on.
pub fn see(readable: &Window, writable: &Window) {
    kept::with(|state| state.see(readable, writable));
}

/// `send` without a time limit by one primitive, in place: if this is Skink, the thread is direct, it knows the thread of its peer, and where the message
/// lies. Returns whether that was all; else the call of that name goes on from there.
///
/// # Safety
/// If `message` is the address of memory at all, that is a message of the caller's.
#[inline(always)]
pub unsafe fn send_at_once(to: i32, message: *const Message) -> bool {
    // SAFETY: the caller promises what such a message is.
    kept::with(|state| state.sends_from(message) && state.send_at_once(to, unsafe { &*message }))
}

/// `sendrec`, likewise.
///
/// # Safety
/// As [`send_at_once`].
#[inline(always)]
pub unsafe fn send_receive_at_once(peer: i32, message: *mut Message) -> bool {
    // SAFETY: as above.
    kept::with(|state| state.asks_in(message) && state.send_receive_at_once(peer, unsafe { &mut *message }))
}

/// `receive`, likewise.
///
/// # Safety
/// As [`send_at_once`].
#[inline(always)]
pub unsafe fn receive_at_once(from: i32, message: *mut Message) -> bool {
    // SAFETY: as above.
    kept::with(|state| state.receives_in(message) && state.receive_at_once(from, unsafe { &mut *message }))
}

/// Kinds that mean something to the kernel, or to this library, go by m3ipc.
#[inline(always)]
fn is_special(message: &Message) -> bool {
    message.kind >= DIRECT_NOTIFICATIONS
}

/// Whether a message by primitives is a notification.
#[inline(always)]
fn is_notification(kind: i32) -> bool {
    kind >= DIRECT_NOTIFICATIONS
}

/// `send`.
///
/// # Errors
/// As `Rendezvous::send`.
pub fn send(to: i32, message: &Message, limit_ms: i64) -> Result<(), Error> {
    let mut failed = kept::with(Kept::take_failed);
    let mut message = *message;
    limited(limit_ms, |state| {
        let sent = match failed.take() {
            Some(error) => Err(error),
            None => {
                let Some(thread) = state.direct_peer(to, &message)? else {
                    let arguments = [to.into(), limit_ms];
                    let result = raw::call_with_message(Call::Send as u64, arguments, &mut message);
                    return Ok(Some(checked(result).map(drop)?));
                };
                let primitive = if limit_ms == 0 { SENDNB } else { SEND };
                state.count(|| raw::primitive(primitive, Parcel::to(thread, &message)))
            }
        };
        match sent {
            Ok(_) => Ok(Some(())),
            Err(error) => state.resume(error, Call::Send, to, &mut message).map(|_| None),
        }
    })
}

/// `reply`.
///
/// # Errors
/// As `Rendezvous::reply`.
pub fn reply(to: i32, message: &Message) -> Result<(), Error> {
    let mut message = *message;
    limited(FOREVER, |state| {
        let Some(thread) = state.direct_peer(to, &message)? else {
            let result = raw::call_with_message(Call::Reply as u64, [to.into(), 0], &mut message);
            return Ok(Some(checked(result).map(drop)?));
        };
        match state.count(|| raw::primitive(SENDNB, Parcel::to(thread, &message))) {
            Ok(_) => Ok(Some(())),
            Err(Errno::ENOTREADY) => Err(Error::BadState),
            Err(error) => state.resume(error, Call::Reply, to, &mut message).map(|_| None),
        }
    })
}

/// `sendrec`.
///
/// # Errors
/// As `Rendezvous::send_receive`.
pub fn send_receive(to: i32, message: &Message, limit_ms: i64) -> Result<Message, Error> {
    if kept::with(Kept::take_answer_due) {
        return await_answer(to, limit_ms);
    }
    let mut failed = kept::with(Kept::take_failed);
    let mut message = *message;
    if limit_ms == 0 {
        // A peer that waits gets the request; only then is there something to wait for.
        send(to, &message, 0).map_err(|error| died(error, Error::PeerDied))?;
        return receive(to, FOREVER).map_err(|error| if error == Error::SourceDied { Error::PeerDied } else { error });
    }
    let answer = limited(limit_ms, |state| {
        let answered = match failed.take() {
            Some(error) => Err(error),
            None => {
                let peer = state.direct_peer(to, &message).map_err(|error| died(error, Error::PeerDied))?;
                let Some(thread) = peer else {
                    let arguments = [to.into(), limit_ms];
                    checked(raw::call_with_message(Call::SendReceive as u64, arguments, &mut message))?;
                    return Ok(Some(Some(message)));
                };
                state.count(|| raw::primitive(SENDREC, Parcel::to(thread, &message)))
            }
        };
        match answered {
            Ok(answer) => {
                message = received(answer, to);
                let is_answer = !is_notification(message.kind) || state.receive_answer(answer.peer, &mut message);
                Ok(Some(if is_answer { Some(message) } else { None }))
            }
            Err(error) => {
                let is_there = state.resume(error, Call::SendReceive, to, &mut message)?;
                Ok(is_there.then_some(Some(message)))
            }
        }
    })?;
    match answer {
        Some(answer) => Ok(answer),
        None => {
            kept::with(Kept::take_answer_due);
            await_answer(to, limit_ms)
        }
    }
}

/// The rest of a `sendrec` whose request was taken, and whose wait for the answer failed after a notification had interrupted it: nothing is sent
/// again.
#[cold]
fn await_answer(from: i32, limit_ms: i64) -> Result<Message, Error> {
    loop {
        let received = receive(from, limit_ms);
        let message = received.map_err(|error| if error == Error::SourceDied { Error::PeerDied } else { error })?;
        if !message.is_notification() {
            return Ok(message);
        }
        let slot = (message.kind & 0xff) as u8;
        kept::with(|state| state.keep_notification(slot, message.source, message.words[0] as u32));
    }
}

/// `receive`.
///
/// # Errors
/// As `Rendezvous::receive`.
pub fn receive(from: i32, limit_ms: i64) -> Result<Message, Error> {
    receive_what(from, limit_ms, false)
}

/// `rcvrqst`.
///
/// # Errors
/// As `Rendezvous::receive_request`.
pub fn receive_request(limit_ms: i64) -> Result<Message, Error> {
    receive_what(ANY, limit_ms, true)
}

const ANY: i32 = Endpoint::ANY.raw();
const FOREVER: i64 = m3ipc::limits::FOREVER;

fn receive_what(from: i32, limit_ms: i64, messages_only: bool) -> Result<Message, Error> {
    let mut failed = kept::with(Kept::take_failed);
    let mut message = Message::default();
    limited(limit_ms, |state| {
        let result = match failed.take() {
            Some(error) => Err(error),
            None => {
                if !messages_only && let Some((slot, name, value)) = state.take_notification(from) {
                    return Ok(Some(notification(slot, name, value)));
                }
                let is_direct = state.known_mode()? == Mode::Direct;
                let source = match from {
                    ANY => is_direct.then_some(Thread::ANY),
                    from => state.direct_peer(from, &message).map_err(|error| died(error, Error::SourceDied))?,
                };
                let Some(source) = source else {
                    let result = match messages_only {
                        true => raw::call_rcvrqst(Call::ReceiveRequest as u64, &mut message, limit_ms),
                        false => raw::call_with_message(Call::Receive as u64, [from.into(), limit_ms], &mut message),
                    };
                    return checked(result).map(|_| Some(message));
                };
                if state.has_more() && state.fetch(from, messages_only, &mut message)? {
                    return Ok(Some(message));
                }
                if state.mode() != Mode::Direct {
                    return Ok(None);
                }
                raw::primitive(RECEIVE, Parcel { peer: source, kind: 0, words: [0; 7] })
            }
        };
        match result {
            Ok(parcel) if parcel.peer.is_application() => {
                let message = received(parcel, from);
                if !is_notification(message.kind) {
                    return Ok(Some(message));
                }
                let (slot, value) = (message.kind as u8, message.words[0] as u32);
                if messages_only {
                    state.keep_notification(slot, message.source, value);
                    return Ok(None);
                }
                Ok(Some(notification(slot, message.source, value)))
            }
            Ok(_) => {
                state.set_has_more(true);
                Ok(None)
            }
            Err(error) => state.resume(error, Call::Receive, from, &mut message).map(|_| None),
        }
    })
    .map_err(|error| if limit_ms == 0 && error == Error::TimedOut { Error::Again } else { error })
}

/// The message that tells of a notification that came by a primitive.
fn notification(slot: u8, name: i32, value: u32) -> Message {
    let time_ns = clock_gettime(ClockId::Monotonic);
    let time_ns = time_ns.tv_sec.cast_unsigned() * 1_000_000_000 + time_ns.tv_nsec.cast_unsigned();
    Message::notification(Endpoint::from_raw(name), slot.into(), value.into(), time_ns)
}

/// The error of a call whose peer has ended.
fn died(error: Error, of_call: Error) -> Error {
    if error == Error::DestinationDied { of_call } else { error }
}

/// Tries until there is a result or an error, within a time limit.
fn limited<T>(limit_ms: i64, mut attempt: impl FnMut(&Kept) -> Result<Option<T>, Error>) -> Result<T, Error> {
    kept::with(|state| {
        let is_limited = limit_ms >= 0 && state.known_mode()? == Mode::Direct;
        if is_limited {
            checked(raw::call_plainly(own::LIMIT, [limit_ms, 0, 0, 0]))?;
        }
        let result = loop {
            match attempt(state) {
                Ok(Some(done)) => break Ok(done),
                Ok(None) => {}
                Err(error) => break Err(error),
            }
        };
        if is_limited {
            // The result stands whether or not it can be taken back.
            raw::call_plainly(own::LIMIT, [FOREVER, 0, 0, 0]);
        }
        result
    })
}

/// Keeps why a primitive failed for the call that goes on. `counted`: what is taken back of the count.
#[cold]
#[inline(never)]
fn fail(status: i64, counted: u64) -> bool {
    kept::with(|state| {
        state.count_sent(counted);
        state.set_failed(Errno(-status as i32));
    });
    false
}

/// A message as programs have it. `expected`: who sends it, if that is known.
fn received(parcel: Parcel, expected: i32) -> Message {
    let source = if expected == ANY { kept::with(|state| state.name(parcel.peer)) } else { expected };
    Message { source, kind: parcel.kind.cast_signed(), words: parcel.words }
}

impl Kept {
    #[inline(always)]
    fn send_at_once(&self, to: i32, message: &Message) -> bool {
        if is_special(message) {
            return false;
        }
        let Some(thread) = self.thread_of(to) else { return false };
        self.count_sent(1);
        let status = raw::send(thread, message);
        status >= 0 || fail(status, u64::MAX)
    }

    #[inline(always)]
    fn send_receive_at_once(&self, to: i32, message: &mut Message) -> bool {
        let Some(thread) = self.thread_of(to) else { return false };
        if is_special(message) {
            return false;
        }
        self.count_sent(1);
        // The answer has this source.
        message.source = to;
        let (status, kind) = raw::send_receive(thread, message);
        if status < 0 {
            return fail(status, u64::MAX);
        }
        message.kind = kind;
        !is_notification(kind) || self.receive_answer(thread, message)
    }

    /// What came in place of an answer was a notification: it is kept, and the answer is waited for. Returns false when that fails.
    #[cold]
    #[inline(never)]
    fn receive_answer(&self, thread: Thread, message: &mut Message) -> bool {
        while is_notification(message.kind) {
            self.keep_notification(message.kind as u8, message.source, message.words[0] as u32);
            let (status, sender, kind) = raw::receive(thread, message);
            if status < 0 {
                self.set_answer_due();
                return fail(status, 0);
            }
            // m3ipc tells of something: that is for the next receiving.
            if !sender.is_application() {
                self.set_has_more(true);
                message.kind = DIRECT_NOTIFICATIONS;
                continue;
            }
            message.kind = kind;
        }
        true
    }

    /// Notifies a peer that waits for a message, by a primitive.
    fn notify_at_once(&self, to: i32, value: u64) -> bool {
        if !self.sends_by_primitives() || usize::from(self.slot()) >= TASKS + SYSTEM_PROCESSES {
            return false;
        }
        // Who may not be notified so is asked for each time, as the peers of a thread that sends by m3ipc are.
        let Ok(Some(thread)) = self.direct_peer(to, &Message::default()) else { return false };
        let kind = (DIRECT_NOTIFICATIONS | i32::from(self.slot())).cast_unsigned();
        let words = [value, 0, 0, 0, 0, 0, 0];
        raw::primitive(SENDNB, Parcel { peer: thread, kind, words }).is_ok()
    }

    #[inline(always)]
    fn receive_at_once(&self, from: i32, message: &mut Message) -> bool {
        let source = if from == ANY { Some(Thread::ANY) } else { self.thread_of(from) };
        let Some(source) = source else { return false };
        let (status, sender, kind) = raw::receive(source, message);
        if status < 0 {
            return fail(status, 0);
        }
        message.kind = kind;
        match self.name_of(sender) {
            Some(name) if !is_notification(kind) => message.source = name,
            _ => return self.receive_else(sender, message),
        }
        true
    }

    /// What ended the wait is not a message of a peer that has sent something before: it is a notification, m3ipc that has something, or a
    /// message of a new peer.
    #[inline(never)]
    fn receive_else(&self, sender: Thread, message: &mut Message) -> bool {
        if !sender.is_application() {
            self.set_has_more(true);
            return false;
        }
        message.source = self.name(sender);
        if is_notification(message.kind) {
            *message = notification(message.kind as u8, message.source, message.words[0] as u32);
        }
        true
    }

    /// Sends by a primitive, and counts that.
    fn count(&self, send: impl FnOnce() -> Result<Parcel, Errno>) -> Result<Parcel, Errno> {
        self.count_sent(1);
        send().inspect_err(|_| self.count_sent(u64::MAX))
    }

    /// How this thread exchanges messages.
    ///
    /// # Errors
    /// `NotBound`.
    fn known_mode(&self) -> Result<Mode, Error> {
        if self.mode() == Mode::Unknown {
            kept::watch_forks();
            let mode = match checked(raw::call_plainly(own::MODE, [self.counter_address(), 0, 0, 0]))? {
                0 => Mode::Mediated,
                binding => {
                    self.belong_to(binding >> SLOT_BITS, binding as u8);
                    Mode::Direct
                }
            };
            self.set_mode(mode);
        }
        Ok(self.mode())
    }

    /// The thread that a message goes to by primitives; `None`: it goes by m3ipc.
    ///
    /// # Errors
    /// As `Rendezvous::locate`; `BadPeer`.
    fn direct_peer(&self, name: i32, message: &Message) -> Result<Option<Thread>, Error> {
        if self.known_mode()? != Mode::Direct || is_special(message) {
            return Ok(None);
        }
        if let Some(thread) = self.thread_of(name) {
            return Ok(Some(thread));
        }
        let found = checked(raw::call_plainly(own::RESOLVE, [name.into(), 0, 0, 0]))?;
        if found == 0 {
            return Ok(None);
        }
        let thread = Thread(found as u32);
        self.remember(name, thread);
        Ok(Some(thread))
    }

    fn name(&self, thread: Thread) -> i32 {
        self.name_of(thread).unwrap_or_else(|| self.ask_name(thread))
    }

    #[cold]
    #[inline(never)]
    fn ask_name(&self, thread: Thread) -> i32 {
        let name = raw::call_plainly(own::NAME, [thread.0.into(), 0, 0, 0]);
        // A sender that has ended since, and whose slot another process has.
        if name < own::FOUND.cast_signed() {
            return Endpoint::NONE.raw();
        }
        self.remember(name as i32, thread);
        name as i32
    }

    /// Receives what m3ipc has. Returns whether there was something.
    ///
    /// # Errors
    /// As `receive`, but for `Again`.
    fn fetch(&self, from: i32, messages_only: bool, message: &mut Message) -> Result<bool, Error> {
        // SAFETY: the message is ours.
        let result = unsafe {
            let place = std::ptr::from_mut(message) as u64;
            raw::call(own::FETCH, [i64::from(from) as u64, place, messages_only.into(), 0, 0])
        };
        if result == own::REDO.cast_signed() {
            self.forget();
            return Ok(false);
        }
        match checked(result) {
            Ok(result) => {
                self.set_has_more(result != own::LAST.cast_signed());
                Ok(true)
            }
            Err(Error::Again) => {
                self.set_has_more(from != ANY || messages_only);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Why m3ipc, or a signal, has ended a primitive, as the call fails with it.
    fn ended_by(&self, number: i32, call: Call, peer: i32) -> Error {
        let error = Error::from_result(number.saturating_neg()).unwrap_or(Error::Invalid);
        if error != Error::DestinationDied {
            return error;
        }
        self.forget_peer(peer);
        match call {
            Call::Receive => Error::SourceDied,
            Call::SendReceive => Error::PeerDied,
            _ => error,
        }
    }

    /// A primitive has failed. Returns whether the answer is there; else the call is to be made again.
    ///
    /// # Errors
    /// Why it failed.
    fn resume(&self, error: Errno, call: Call, peer: i32, message: &mut Message) -> Result<bool, Error> {
        match error {
            Errno::EDEADSRCDST | Errno::ECALLDENIED => self.forget_peer(peer),
            Errno::ENOTREADY => return Err(Error::Again),
            Errno::ELOCKED => return Err(Error::Locked),
            // m3ipc has ended it.
            Errno(number) => return Err(self.ended_by(number, call, peer)),
        }
        match raw::resume(call as u64, peer.into(), message) {
            0 => Ok(true),
            result => {
                checked(result)?;
                self.forget();
                Ok(false)
            }
        }
    }
}
