//! poll and select: waiting for one of many descriptors.
//!
//! What vfs knows itself (files, pipes, queues) is looked at. A call that finds something, or must not wait, is answered at once, without a
//! task. Devices are asked, each by a request that stays with the device until it is ready or the call ends. Whatever happens fires the
//! program's event, and the handler looks again.

use super::{Entry, call, call::Call, done, task};
use crate::{
    base::{Base, Flow},
    events::poll::{self, Interest, POLLERR, POLLHUP, POLLNVAL, Sets},
    keep::records::Note,
    memory as user,
    objects::{Asking, End, OpenFile, Wanted},
    processes::Process,
};
use abi::{Errno, linux::nr};
use alloc::{boxed::Box, rc::Rc, vec::Vec};
use core::{cell::Cell, future::Future};
use server::quota::Share;
use sys::{fallible::TryVec, time};

/// Bytes that vfs has for one descriptor of a call.
const INTEREST_BYTES: usize = poll::POLLFD_BYTES + size_of::<Interest>();
/// Bytes that a question to a device is charged as: so all users together have 1,024, and one 384.
const QUESTION_BYTES: usize = 8 << 10;
/// A poll of up to so many descriptors may be answered without memory of the heap.
const FEW: usize = 8;
/// Reported whether asked for or not.
const ALWAYS: u32 = POLLERR | POLLHUP;

/// Requests to devices that are out for one call; they are ended when this is dropped.
#[derive(Default)]
struct Questions(Vec<Question>);

struct Question {
    /// Index of the interest.
    interest: usize,
    /// Events the device has found; `None`: it has not answered.
    answer: Rc<Cell<Option<u32>>>,
    end: Option<End>,
    /// What the user is charged until it ends.
    _charge: Share,
}

impl Questions {
    /// Whether a device has not answered.
    fn are_open(&self) -> bool {
        self.0.iter().any(|question| question.answer.get().is_none())
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        for question in &mut self.0 {
            if let (None, Some(end)) = (question.answer.get(), question.end.take()) {
                end();
            }
        }
    }
}

pub(super) const CALLS: &[Entry] = &[
    call(nr::POLL, |c| poll(c, c.milliseconds(2), None)),
    call(nr::PPOLL, |c| poll(c, c.timespec(2)?, signal_mask(c, c.words[3], c.words[4])?)),
    call(nr::SELECT, |c| {
        let limit = Limit { address: c.words[4], ns_per_part: 1000, deadline_ns: c.timeval(4)? };
        select(c, limit, None)
    }),
    call(nr::PSELECT6, |c| {
        let limit = Limit { address: c.words[4], ns_per_part: 1, deadline_ns: c.timespec(4)? };
        select(c, limit, signal_mask_at(c, c.words[5])?)
    }),
];

/// The signal mask of pselect6 and io_pgetevents, which have its address and its length in memory. As [`signal_mask`].
pub(super) fn signal_mask_at(call: &Call, both: u64) -> Result<Option<u64>, Errno> {
    if both == 0 {
        return Ok(None);
    }
    let [address, bytes] = user::fetch_words(call.process.caller.endpoint, both)?;
    signal_mask(call, address, bytes)
}

/// The signal mask of ppoll and epoll_pwait; `None`: the thread's own. `EINVAL`, `EFAULT`.
pub(super) fn signal_mask(call: &Call, address: u64, bytes: u64) -> Result<Option<u64>, Errno> {
    const MASK_BYTES: u64 = 8;
    match (address, bytes) {
        (0, _) => Ok(None),
        (_, MASK_BYTES) => user::fetch_words::<1>(call.process.caller.endpoint, address).map(|[mask]| Some(mask)),
        _ => Err(Errno::EINVAL),
    }
}

/// Waits, with another signal mask in force if there is one. Before the call returns, pm has restored the thread's own or is about to run a handler. A
/// signal that the mask lets through ends the call also when nothing was to be waited for.
pub(super) fn with_mask(
    call: &Call,
    mask: Option<u64>,
    wait: impl Future<Output = Result<u64, Errno>> + 'static,
) -> Result<Flow, Errno> {
    let Some(mask) = mask else { return task(wait) };
    let (base, process) = (call.base(), call.process());
    let caller = process.caller.clone();
    base.notices().mask(caller.endpoint, mask);
    task(async move {
        let result = wait.await;
        base.notices().unmask(caller.endpoint);
        caller.unmasked().wait().await;
        match (result, caller.take_cancelled()) {
            (Ok(0), Some(error)) => Err(no_restart(error)),
            _ => result,
        }
    })
}

/// poll and ppoll. `deadline_ns`: `None` for ever, 0 not at all. `EINVAL`: more descriptors than the caller may have.
fn poll(call: &Call, deadline_ns: Option<u64>, mask: Option<u64>) -> Result<Flow, Errno> {
    let (caller, address, count) = (&call.process.caller, call.words[0], call.flags(1) as usize);
    if count > caller.descriptor_limit() {
        return Err(Errno::EINVAL);
    }
    // Also with a mask: what is ready comes before a signal that the mask lets through, which stays pending. Where nothing is, it is looked for.
    let ends_at_once = deadline_ns == Some(0) && mask.is_none();
    if count <= FEW {
        let mut few = [0; FEW * poll::POLLFD_BYTES];
        let bytes = &mut few[..count * poll::POLLFD_BYTES];
        user::fetch(caller.endpoint, address, bytes)?;
        if let Some(ready) = poll_now(call.process, address, bytes, ends_at_once)? {
            return done(Ok(ready));
        }
    }
    let memory = call.base().charge(caller.user(), count * INTEREST_BYTES)?;
    let mut bytes = user::fetch_vec(caller.endpoint, address, count * poll::POLLFD_BYTES)?;
    if count > FEW
        && mask.is_some()
        && let Some(ready) = poll_now(call.process, address, &mut bytes, false)?
    {
        return done(Ok(ready));
    }
    with_mask(call, mask, wait_poll(call.base(), call.process(), memory, (address, bytes), deadline_ns))
}

/// Answers a poll that finds something or must not wait (`ends_at_once`), and asks no device. `None`: it is another.
fn poll_now(process: &Process, address: u64, bytes: &mut [u8], ends_at_once: bool) -> Result<Option<u64>, Errno> {
    let table = process.files();
    let descriptors = table.descriptors();
    let (mut ready, mut changed) = (0, false);
    for entry in bytes.as_chunks_mut().0 {
        let interest = poll::decode_pollfd(entry);
        let events = match descriptors.get(interest.descriptor) {
            Ok(file) if file.any().has_device() => return Ok(None),
            Ok(file) => ready_of(file, interest.events),
            Err(_) if interest.descriptor < 0 => 0,
            Err(_) => POLLNVAL,
        };
        ready += u64::from(events != 0);
        changed |= poll::set_found(entry, events);
    }
    if ready == 0 && !ends_at_once {
        return Ok(None);
    }
    if changed {
        user::store(process.caller.endpoint, address, bytes)?;
    }
    Ok(Some(ready))
}

/// A poll that may have to wait. `memory` is charged until it ends.
async fn wait_poll(
    base: &'static Base,
    process: Rc<Process>,
    memory: Share,
    (address, mut bytes): (u64, Vec<u8>),
    deadline_ns: Option<u64>,
) -> Result<u64, Errno> {
    let mut interests = poll::decode_pollfds(&bytes)?;
    wait_ready(base, &process, &mut interests, deadline_ns).await?;
    let ready = poll::encode_pollfds(&interests, &mut bytes);
    user::store(process.caller.endpoint, address, &bytes)?;
    drop(memory);
    Ok(ready)
}

/// Descriptors that select looks at, whatever it is told: those of the table as it is, in whole words, as Linux.
fn set_limit(process: &Process) -> usize {
    const WORD_BITS: usize = 64;
    process.files().descriptors().len().max(1).next_multiple_of(WORD_BITS)
}

/// The arguments of a select.
struct Selection {
    /// Of the read, write and exception sets; 0 for none.
    addresses: [u64; 3],
    asked: Sets,
    interests: Vec<Interest>,
    /// The memory that it takes, charged to the user.
    memory: Share,
}

impl Selection {
    /// Fetches the sets. `EINVAL`: a negative count.
    fn fetch(call: &Call) -> Result<Selection, Errno> {
        let who = call.process.caller.endpoint;
        let count = usize::try_from(call.int(0)).map_err(|_| Errno::EINVAL)?.min(set_limit(call.process));
        let memory = call.base().charge(call.process.caller.user(), count * INTEREST_BYTES)?;
        let addresses = [1, 2, 3].map(|set| call.words[set]);
        let fetch = |address: u64| match address {
            0 => Ok(Vec::new()),
            _ => user::fetch_vec(who, address, poll::set_bytes(count)),
        };
        let asked = Sets { read: fetch(addresses[0])?, write: fetch(addresses[1])?, except: fetch(addresses[2])? };
        let interests = poll::decode_sets(&asked, count)?;
        Ok(Selection { addresses, asked, interests, memory })
    }

    /// Tells the program what was found.
    fn finish(self, process: &Process) -> Result<u64, Errno> {
        let (found, ready) = poll::encode_sets(&self.interests, &self.asked)?;
        for (address, set) in self.addresses.into_iter().zip([&found.read, &found.write, &found.except]) {
            user::store(process.caller.endpoint, address, set)?;
        }
        drop(self.memory);
        Ok(ready)
    }
}

/// The time-out of a select, of which the program is told what is left, as on Linux.
#[derive(Clone, Copy)]
struct Limit {
    /// Of the `struct timeval` or `struct timespec`; 0: none.
    address: u64,
    /// Of the second member of the structure.
    ns_per_part: u64,
    deadline_ns: Option<u64>,
}

impl Limit {
    /// Tells the program how long the call could have waited still. Memory that cannot be written changes nothing.
    fn finish(&self, process: &Process) {
        const NS_PER_S: u64 = 1_000_000_000;
        let Some(deadline_ns @ 1..) = self.deadline_ns else { return };
        let left_ns = deadline_ns.saturating_sub(time::now_ns());
        let words = [left_ns / NS_PER_S, left_ns % NS_PER_S / self.ns_per_part].map(u64::to_le_bytes);
        let _ = user::store(process.caller.endpoint, self.address, words.as_flattened());
    }
}

/// select and pselect6.
fn select(call: &Call, limit: Limit, mask: Option<u64>) -> Result<Flow, Errno> {
    let mut selection = Selection::fetch(call)?;
    let (base, process) = (call.base(), call.process());
    let asks = |interest: &Interest| process.file(interest.descriptor).is_ok_and(|file| file.any().has_device());
    if !selection.interests.iter().any(asks) {
        let ready = look(&process, &mut selection.interests, &Questions::default());
        if ready || mask.is_none() && limit.deadline_ns == Some(0) {
            limit.finish(&process);
            return done(selection.finish(&process));
        }
    }
    with_mask(call, mask, async move {
        let waited = wait_ready(base, &process, &mut selection.interests, limit.deadline_ns).await;
        limit.finish(&process);
        waited?;
        selection.finish(&process)
    })
}

/// Fills in what the descriptors are ready for, waiting until one is.
async fn wait_ready(
    base: &Base,
    process: &Rc<Process>,
    interests: &mut [Interest],
    deadline_ns: Option<u64>,
) -> Result<(), Errno> {
    let blocking = deadline_ns != Some(0);
    let mut questions = Questions::default();
    let ready = look(process, interests, &questions);
    ask_devices(base, process, interests, &mut questions, !ready && blocking)?;
    if !blocking || ready {
        // The devices answer at once; their answers are waited for.
        watch(process, interests, true);
        let mut waited = Ok(());
        while waited.is_ok() && (questions.are_open() || is_asking(process, interests)) {
            waited = process.caller.wait().await.map_err(no_restart);
        }
        watch(process, interests, false);
        look(process, interests, &questions);
        return waited;
    }
    if let Some(deadline_ns) = deadline_ns {
        process.caller.note(Note::Deadline(deadline_ns));
    }
    watch(process, interests, true);
    let mut result = Ok(false);
    while result == Ok(false) && !look(process, interests, &questions) {
        let wakes_at = next_expiry(process, interests).into_iter().chain(deadline_ns).min();
        let mut sleep = wakes_at.map(|at_ns| base.runtime().sleep_until(at_ns));
        let slept = process.caller.wait_or_sleep(sleep.as_mut()).await.map_err(no_restart);
        result = slept.map(|over| over && wakes_at == deadline_ns);
        let by = Asking { peers: base.peers(), caller: &process.caller };
        files(process, interests).for_each(|file| file.any().ask_again(&by));
    }
    watch(process, interests, false);
    result.map(drop)
}

/// Looks at everything once. True when something is ready.
fn look(process: &Process, interests: &mut [Interest], questions: &Questions) -> bool {
    for interest in interests.iter_mut().filter(|interest| interest.descriptor >= 0) {
        interest.ready = ready_now(process, interest);
    }
    for question in &questions.0 {
        let interest = &mut interests[question.interest];
        interest.ready |= question.answer.get().unwrap_or(0) & (interest.events | ALWAYS);
    }
    interests.iter().any(|interest| interest.ready != 0)
}

fn ready_now(process: &Process, interest: &Interest) -> u32 {
    process.file(interest.descriptor).map_or(POLLNVAL, |file| ready_of(&file, interest.events))
}

/// The events of those asked for that an open file is ready for.
fn ready_of(file: &OpenFile, events: u32) -> u32 {
    match file.any().poll() {
        POLLNVAL => POLLNVAL,
        ready => ready & (events | ALWAYS),
    }
}

/// Asks every device among the descriptors; `stay`: until it is ready. `ENOMEM`: the user asks too many.
fn ask_devices(
    base: &Base,
    process: &Rc<Process>,
    interests: &[Interest],
    questions: &mut Questions,
    stay: bool,
) -> Result<(), Errno> {
    for (index, interest) in interests.iter().enumerate() {
        let Ok(file) = process.file(interest.descriptor) else { continue };
        if !file.any().has_device() {
            continue;
        }
        let answer = Rc::new(Cell::new(None));
        let (result, event) = (answer.clone(), process.caller.event().clone());
        let done = Box::new(move |reply: Result<abi::Message, Errno>| {
            result.set(Some(reply.map_or(POLLERR, |reply| reply.words[0] as u32)));
            event.fire();
        });
        questions.0.try_make_room(1)?;
        let charge = base.charge(process.caller.user(), QUESTION_BYTES)?;
        let by = Asking { peers: base.peers(), caller: &process.caller };
        let end = file.any().ask_ready(&by, Wanted::of(interest.events | ALWAYS), stay, done)?;
        questions.0.try_push(Question { interest: index, answer, end: Some(end), _charge: charge })?;
    }
    Ok(())
}

fn watch(process: &Process, interests: &[Interest], on: bool) {
    for interest in interests {
        let Ok(file) = process.file(interest.descriptor) else { continue };
        for (watchers, _) in file.any().watchers().into_iter().flatten() {
            if on {
                watchers.add(process.caller.event());
            } else {
                watchers.remove(process.caller.event());
            }
        }
    }
}

fn files(process: &Process, interests: &[Interest]) -> impl Iterator<Item = Rc<OpenFile>> {
    interests.iter().filter_map(|interest| process.file(interest.descriptor).ok())
}

/// Whether a device below an epoll among the descriptors has not answered.
fn is_asking(process: &Process, interests: &[Interest]) -> bool {
    files(process, interests).any(|file| file.any().is_asking())
}

/// When the first of the timers among the descriptors expires.
fn next_expiry(process: &Process, interests: &[Interest]) -> Option<u64> {
    files(process, interests).filter_map(|file| file.any().wakes_at()).min()
}

/// poll and select are never repeated after a signal.
pub(super) fn no_restart(error: Errno) -> Errno {
    if error == Errno::ERESTARTSYS { Errno::EINTR } else { error }
}
