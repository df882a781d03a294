//! The calls, whoever carries them: what the C functions are made of.
//!
//! Which back end there is, is found out at the first call. A thread that was bound itself has its own place, all others share their
//! process's. Every call notices a fork: a child has none of its parent's.

use crate::buffers;
use crate::client;
use crate::copy::{Copy, Way};
use crate::member::Member;
use crate::memory::ForkMark;
use crate::module;
use crate::skink;
use crate::wait::{Limit, now_ns};
use crate::wire::internal;
use m3ipc::call::Call;
use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::error::Error;
use m3ipc::limits::FOREVER;
use m3ipc::message::Message;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The process's own place, and the mark that tells whether it is this process's.
struct Process {
    member: Option<Arc<Member>>,
    mark: Option<ForkMark>,
    /// Tells the program from others that the process has executed before.
    program: u64,
}

static PROCESS: Mutex<Process> = Mutex::new(Process { member: None, mark: None, program: 0 });
/// Counts how often the process's place has changed.
static CHANGES: AtomicU64 = AtomicU64::new(1);
/// A broker has told this program, or the one that it was forked from, where it is bound.
static HAS_JOINED: AtomicBool = AtomicBool::new(false);

/// What a thread keeps.
struct Thread {
    member: Option<Arc<Member>>,
    /// Whether it was bound itself.
    is_own: bool,
    changes: u64,
    mark: Option<ForkMark>,
}

impl Thread {
    const fn new(mark: Option<ForkMark>) -> Thread {
        Thread { member: None, is_own: false, changes: 0, mark }
    }
}

thread_local! {
    static THREAD: RefCell<Thread> = const { RefCell::new(Thread::new(None)) };
    /// The way of the thread's last copy between buffers.
    static WAY: RefCell<Option<Way>> = const { RefCell::new(None) };
}

/// Returns where the calling thread is bound, asking the broker if it is not known.
///
/// # Errors
/// `NotBound`; `NotInitialised`: there is no broker.
pub fn member() -> Result<Arc<Member>, Error> {
    known_member()?.map_or_else(join, Ok)
}

/// Runs `work` as the calling thread's member, which it finds without a locked instruction.
#[inline(always)]
fn as_member<T>(mut work: impl FnMut(&Member) -> Result<T, Error>) -> Result<T, Error> {
    THREAD.with(|thread| {
        if let Ok(thread) = thread.try_borrow()
            && let Some(member) = thread.current()
        {
            return work(member);
        }
        work(&*member()?)
    })
}

fn known_member() -> Result<Option<Arc<Member>>, Error> {
    THREAD.with(|thread| {
        // A signal handler that runs in the middle of a call.
        let mut thread = thread.try_borrow_mut().map_err(|_| Error::Busy)?;
        if !thread.mark.as_ref().is_some_and(|mark| mark.is_mine()) {
            return Ok(None);
        }
        if !thread.is_own && thread.changes != CHANGES.load(Ordering::Acquire) {
            let process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
            thread.member.clone_from(&process.member);
            thread.changes = CHANGES.load(Ordering::Acquire);
        }
        Ok(thread.member.clone().filter(|member| member.is_bound()))
    })
}

impl Thread {
    /// Returns the member if it is known to be this process's, and bound.
    fn current(&self) -> Option<&Member> {
        let is_mine = self.mark.as_ref().is_some_and(|mark| mark.is_mine());
        let is_new = self.is_own || self.changes == CHANGES.load(Ordering::Acquire);
        self.member.as_deref().filter(|member| is_mine && is_new && member.is_bound())
    }
}

/// Asks the broker where this process or thread is bound.
fn join() -> Result<Arc<Member>, Error> {
    forget_after_fork()?;
    let program = PROCESS.lock().unwrap_or_else(PoisonError::into_inner).program;
    let answer = client::call(internal::JOIN, &[own_thread(), program.cast_signed()], &[])?;
    let number = Number::new((answer.value & 0xffff) as i32 - m3ipc::limits::TASKS as i32)?;
    let is_own = answer.value & 1 << 16 != 0;
    let member = Arc::new(Member::new(number, &answer.files)?);
    HAS_JOINED.store(true, Ordering::Relaxed);
    THREAD.with(|thread| {
        let mut thread = thread.try_borrow_mut().map_err(|_| Error::Busy)?;
        thread.member = Some(member.clone());
        thread.is_own = is_own;
        if !is_own {
            let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have asked too; they must share one.
            match process.member.as_ref().filter(|known| known.is_bound()) {
                Some(known) => thread.member = Some(known.clone()),
                None => process.member = Some(member.clone()),
            }
            thread.changes = CHANGES.fetch_add(1, Ordering::AcqRel) + 1;
        }
        thread.member.clone().ok_or(Error::NotBound)
    })
}

/// Drops what belongs to the process that this one was forked from.
fn forget_after_fork() -> Result<(), Error> {
    THREAD.with(|thread| {
        let mut thread = thread.try_borrow_mut().map_err(|_| Error::Busy)?;
        if thread.mark.as_ref().is_some_and(|mark| mark.is_mine()) {
            return Ok(());
        }
        let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if !process.mark.as_ref().is_some_and(|mark| mark.is_mine()) {
            let mark = Some(ForkMark::new().map_err(|_| Error::NoMemory)?);
            *process = Process { member: None, mark, program: now_ns() };
            client::forget();
        }
        *thread = Thread::new(process.mark);
        Ok(())
    })
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
    if module::is_here() {
        return module::containers();
    }
    forget_after_fork()?;
    Ok(client::call(internal::CONTAINERS, &[], &[])?.bytes)
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
    bind(Call::ThreadBind, &[container, number, own_thread()])
}

/// Waits until the caller is bound by another process. Returns its endpoint.
///
/// # Errors
/// The broker's.
pub fn wait_for_bind(ms: i64) -> Result<i64, Error> {
    bind(Call::WaitForBind, &[ms, own_thread()])
}

fn own_thread() -> i64 {
    rustix::thread::gettid().as_raw_nonzero().get().into()
}

pub use crate::skink::{receive_at_once, send_at_once, send_receive_at_once};

/// Whether it is known that the module of Linux carries the messages.
#[inline(always)]
pub fn is_module() -> bool {
    module::is_known()
}

/// `send` without a limit, when [`is_module`].
///
/// # Errors
/// As [`Member::send`].
#[inline(always)]
pub fn send_by_module(to: i32, message: &Message) -> Result<(), Error> {
    module::send(Call::Send, to, message, FOREVER)
}

/// `receive` from the message's source without a limit, when [`is_module`].
///
/// # Errors
/// As [`Member::receive`].
#[inline(always)]
pub fn receive_by_module(message: &mut Message) -> Result<(), Error> {
    module::receive(Call::Receive, message.source, message, FOREVER)
}

/// `sendrec` with the message's source without a limit, when [`is_module`].
///
/// # Errors
/// As [`Member::send_receive`].
#[inline(always)]
pub fn send_receive_by_module(message: &mut Message) -> Result<(), Error> {
    module::send_receive(message.source, message, FOREVER)
}

/// Whether it is known that a broker has mapped what carries the messages.
#[inline(always)]
pub fn is_broker() -> bool {
    HAS_JOINED.load(Ordering::Relaxed)
}

/// `send` without a limit, when [`is_broker`].
///
/// # Errors
/// As [`Member::send`].
#[inline(always)]
pub fn send_by_box(to: i32, message: &Message) -> Result<(), Error> {
    as_member(|member| member.send(Endpoint::from_raw(to), message, Limit::Forever))
}

/// `receive` from the message's source without a limit, when [`is_broker`].
///
/// # Errors
/// As [`Member::receive`].
#[inline(always)]
pub fn receive_by_box(message: &mut Message) -> Result<(), Error> {
    as_member(|member| member.receive(Endpoint::from_raw(message.source), Limit::Forever, message))
}

/// `sendrec` with the message's source without a limit, when [`is_broker`].
///
/// # Errors
/// As [`Member::send_receive`].
#[inline(always)]
pub fn send_receive_by_box(message: &mut Message) -> Result<(), Error> {
    as_member(|member| member.send_receive(Endpoint::from_raw(message.source), message, Limit::Forever))
}

/// `send`.
///
/// # Errors
/// As [`Member::send`].
pub fn send(to: i32, message: &Message, ms: i64) -> Result<(), Error> {
    if skink::is_here() {
        return skink::send(to, message, ms);
    }
    if module::is_here() {
        return module::send(Call::Send, to, message, ms);
    }
    as_member(|member| member.send(Endpoint::from_raw(to), message, Limit::from_ms(ms)))
}

/// `receive`.
///
/// # Errors
/// As [`Member::receive`].
pub fn receive(from: i32, message: &mut Message, ms: i64) -> Result<(), Error> {
    if skink::is_here() {
        return skink::receive(from, ms).map(|received| *message = received);
    }
    if module::is_here() {
        return module::receive(Call::Receive, from, message, ms);
    }
    as_member(|member| member.receive(Endpoint::from_raw(from), Limit::from_ms(ms), message))
}

/// `sendrec`. The answer comes in the place of the message.
///
/// # Errors
/// As [`Member::send_receive`].
pub fn send_receive(to: i32, message: &mut Message, ms: i64) -> Result<(), Error> {
    if skink::is_here() {
        return skink::send_receive(to, message, ms).map(|received| *message = received);
    }
    if module::is_here() {
        return module::send_receive(to, message, ms);
    }
    as_member(|member| member.send_receive(Endpoint::from_raw(to), message, Limit::from_ms(ms)))
}

/// `rcvrqst`.
///
/// # Errors
/// As [`Member::receive_request`].
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
/// As [`Member::reply`].
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
/// As [`Member::notify`].
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
    let mark = THREAD.with(|thread| Some(thread.try_borrow().ok()?.mark.as_ref()?.word()));
    if let Some(way) = mark.and_then(|mark| Way::find(&copy, mark, &CHANGES)) {
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
            return Ok(Some(PROCESS.lock().unwrap_or_else(PoisonError::into_inner).program));
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
fn has_broker() -> bool {
    !skink::is_here() && !module::is_here()
}
