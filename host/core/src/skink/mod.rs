//! M3-IPC in Skink: messages by the kernel's primitives where both sides are direct members, by the server m3ipc otherwise
//! (`abi::m3ipc`; docs/adr/0074-m3ipc-binds-and-the-kernel-carries.md).
//!
//! A thread keeps how it stands with m3ipc, and the kernel's endpoints of its peers. What it keeps may be outdated in one way only: the thread or a
//! peer uses primitives no more. Then a primitive fails, or ends with a notification, and m3ipc says how to go on.

mod raw;

use abi::call::{RECEIVE, SEND, SENDNB, SENDREC};
use abi::m3ipc::own;
use abi::message::{KERNEL_LABELS, REPLY};
use abi::{Endpoint as Thread, Errno};
use m3ipc::call::Call;
use m3ipc::descriptor::{ContainerInfo, DrvsInfo, NodeInfo, Privileges, ProcessInfo, ProxiesInfo};
use m3ipc::endpoint::Endpoint;
use m3ipc::error::Error;
use m3ipc::message::Message;
use raw::Parcel;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// How a thread exchanges messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// m3ipc has not been asked.
    Unknown,
    /// By the kernel's primitives.
    Direct,
    /// By m3ipc.
    Mediated,
}

/// What a thread keeps.
struct State {
    generation: u64,
    mode: Mode,
    /// m3ipc may have something for it.
    has_more: bool,
    /// Names of peers, and the kernel's.
    peers: Vec<(i32, Thread)>,
}

thread_local! {
    static STATE: RefCell<State> =
        const { RefCell::new(State { generation: 0, mode: Mode::Unknown, has_more: false, peers: Vec::new() }) };
    /// What the thread has sent by primitives; m3ipc looks here.
    static SENT: AtomicU64 = const { AtomicU64::new(0) };
}

/// Whether this is Skink, with m3ipc.
pub fn is_here() -> bool {
    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;
    static IS_HERE: AtomicU8 = AtomicU8::new(UNKNOWN);
    match IS_HERE.load(Ordering::Relaxed) {
        UNKNOWN => {
            let answer = raw::call_plainly(own::MODE, [0; 4]);
            let is_here = answer != i64::from(Error::NotImplemented.to_result());
            IS_HERE.store(if is_here { YES } else { NO }, Ordering::Relaxed);
            is_here
        }
        known => known == YES,
    }
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
        STATE.with_borrow_mut(State::forget);
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
    STATE.with_borrow_mut(State::forget);
    checked(result)
}

/// `vcopy`. Returns how many bytes were copied.
///
/// # Errors
/// m3ipc's.
///
/// # Safety
/// Who calls has named memory that may change.
pub unsafe fn copy(from: (i32, usize), to: (i32, usize), bytes: i32) -> Result<i64, Error> {
    let words = [from.0 as u64, from.1 as u64, to.0 as u64, to.1 as u64, bytes as u64];
    // SAFETY: as the caller promises.
    checked(unsafe { raw::call(Call::Copy as u64, words) })
}

/// `notify`, `ntfy_value`.
///
/// # Errors
/// m3ipc's.
pub fn notify(to: i32, value: u64) -> Result<(), Error> {
    checked(raw::call_plainly(Call::NotifyValue as u64, [to.into(), value as i64, 0, 0])).map(drop)
}

/// `send`.
///
/// # Errors
/// As `Rendezvous::send`.
pub fn send(to: i32, message: &Message, limit_ms: i64) -> Result<(), Error> {
    let mut message = *message;
    limited(limit_ms, |state| {
        let Some(thread) = state.direct_peer(to, &message)? else {
            let arguments = [to.into(), limit_ms];
            return Ok(Some(checked(raw::call_with_message(Call::Send as u64, arguments, &mut message)).map(drop)?));
        };
        let primitive = if limit_ms == 0 { SENDNB } else { SEND };
        match state.count(|| raw::primitive(primitive, Parcel::to(thread, &message))) {
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
            let arguments = [to.into(), 0];
            return Ok(Some(checked(raw::call_with_message(Call::Reply as u64, arguments, &mut message)).map(drop)?));
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
    let mut message = *message;
    if limit_ms == 0 {
        // A peer that waits gets the request; only then is there something to wait for.
        send(to, &message, 0).map_err(|error| died(error, Error::PeerDied))?;
        return receive(to, FOREVER).map_err(|error| if error == Error::SourceDied { Error::PeerDied } else { error });
    }
    limited(limit_ms, |state| {
        let peer = state.direct_peer(to, &message).map_err(|error| died(error, Error::PeerDied))?;
        let Some(thread) = peer else {
            let arguments = [to.into(), limit_ms];
            checked(raw::call_with_message(Call::SendReceive as u64, arguments, &mut message))?;
            return Ok(Some(message));
        };
        match state.count(|| raw::primitive(SENDREC, Parcel::to(thread, &message))) {
            Ok(answer) => Ok(Some(state.received(answer, to))),
            Err(error) => {
                let is_there = state.resume(error, Call::SendReceive, to, &mut message)?;
                Ok(is_there.then_some(message))
            }
        }
    })
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
    let mut message = Message::default();
    limited(limit_ms, |state| {
        let is_direct = state.mode()? == Mode::Direct;
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
        if state.has_more && state.fetch(from, messages_only, &mut message)? {
            return Ok(Some(message));
        }
        if state.mode != Mode::Direct {
            return Ok(None);
        }
        match raw::primitive(RECEIVE, Parcel { peer: source, kind: 0, words: [0; 7] }) {
            Ok(parcel) if parcel.peer.is_application() => Ok(Some(state.received(parcel, from))),
            Ok(_) => {
                state.has_more = true;
                Ok(None)
            }
            Err(error) => state.resume(error, Call::Receive, from, &mut message).map(|_| None),
        }
    })
    .map_err(|error| if limit_ms == 0 && error == Error::TimedOut { Error::Again } else { error })
}

/// The error of a call whose peer has ended.
fn died(error: Error, of_call: Error) -> Error {
    if error == Error::DestinationDied { of_call } else { error }
}

/// Tries until there is a result or an error, within a time limit.
fn limited<T>(limit_ms: i64, mut attempt: impl FnMut(&mut State) -> Result<Option<T>, Error>) -> Result<T, Error> {
    STATE.with_borrow_mut(|state| {
        let is_limited = limit_ms >= 0 && state.mode()? == Mode::Direct;
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

impl State {
    fn forget(&mut self) {
        *self = State { generation: raw::generation(), mode: Mode::Unknown, has_more: false, peers: Vec::new() };
    }

    /// Sends by a primitive, and counts that.
    #[inline(always)]
    fn count(&self, send: impl FnOnce() -> Result<Parcel, Errno>) -> Result<Parcel, Errno> {
        let count =
            |by: u64| SENT.with(|sent| sent.store(sent.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed));
        count(1);
        send().inspect_err(|_| count(u64::MAX))
    }

    /// How this thread exchanges messages.
    ///
    /// # Errors
    /// `NotBound`.
    fn mode(&mut self) -> Result<Mode, Error> {
        if self.mode == Mode::Unknown || self.generation != raw::generation() {
            self.forget();
            let counter = SENT.with(|sent| std::ptr::from_ref(sent) as i64);
            self.mode = match checked(raw::call_plainly(own::MODE, [counter, 0, 0, 0]))? {
                0 => Mode::Mediated,
                _ => Mode::Direct,
            };
        }
        Ok(self.mode)
    }

    /// The thread that a message goes to by primitives; `None`: it goes by m3ipc.
    ///
    /// # Errors
    /// As `Rendezvous::locate`; `BadPeer`.
    fn direct_peer(&mut self, name: i32, message: &Message) -> Result<Option<Thread>, Error> {
        // Kinds that are the kernel's go by m3ipc.
        let is_kernels = (KERNEL_LABELS..REPLY).contains(&message.kind.cast_unsigned());
        if self.mode()? != Mode::Direct || is_kernels {
            return Ok(None);
        }
        if let Some((_, thread)) = self.peers.iter().find(|(known, _)| *known == name) {
            return Ok(Some(*thread));
        }
        let found = checked(raw::call_plainly(own::RESOLVE, [name.into(), 0, 0, 0]))?;
        if found == 0 {
            return Ok(None);
        }
        let thread = Thread(found as u32);
        self.peers.retain(|(known, _)| known != &name);
        self.peers.push((name, thread));
        Ok(Some(thread))
    }

    /// A message as programs have it. `expected`: who sends it, if that is known.
    fn received(&mut self, parcel: Parcel, expected: i32) -> Message {
        let name = match expected {
            ANY => self.name(parcel.peer),
            expected => expected,
        };
        Message { source: name, kind: parcel.kind.cast_signed(), words: parcel.words }
    }

    fn name(&mut self, thread: Thread) -> i32 {
        if let Some((name, _)) = self.peers.iter().find(|(_, known)| *known == thread) {
            return *name;
        }
        let name = raw::call_plainly(own::NAME, [thread.0.into(), 0, 0, 0]);
        // A sender that has ended since has none.
        if name < own::FOUND.cast_signed() {
            return Endpoint::NONE.raw();
        }
        self.peers.push((name as i32, thread));
        name as i32
    }

    /// Receives what m3ipc has. Returns whether there was something.
    ///
    /// # Errors
    /// As `receive`, but for `Again`.
    fn fetch(&mut self, from: i32, messages_only: bool, message: &mut Message) -> Result<bool, Error> {
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
            Ok(_) => Ok(true),
            Err(Error::Again) => {
                self.has_more = from != ANY || messages_only;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// A primitive has failed. Returns whether the answer is there; else the call is to be made again.
    ///
    /// # Errors
    /// Why it failed.
    fn resume(&mut self, error: Errno, call: Call, peer: i32, message: &mut Message) -> Result<bool, Error> {
        match error {
            Errno::EDEADSRCDST | Errno::ECALLDENIED => {}
            Errno::ENOTREADY => return Err(Error::Again),
            Errno::ELOCKED => return Err(Error::Locked),
            Errno::EINTR => return Err(Error::Interrupted),
            _ => return Err(Error::Invalid),
        }
        self.peers.retain(|(known, _)| *known != peer);
        match raw::resume(call as u64, peer.into(), message) {
            0 => Ok(true),
            result => {
                checked(result)?;
                let has_more = self.has_more;
                self.forget();
                self.has_more = has_more;
                Ok(false)
            }
        }
    }
}
