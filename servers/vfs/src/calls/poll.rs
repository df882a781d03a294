//! poll and select: waiting for one of many descriptors.
//!
//! What vfs knows itself (files, pipes, queues) is looked at; devices are asked, each by a request that stays with the device until it is ready
//! or the call ends. Whatever happens fires the program's event, and the handler looks again.

use super::{Entry, call, call::Call, task};
use crate::{
    base::{Base, Flow},
    events::poll::{self, Interest, POLLERR, POLLHUP, POLLNVAL, Sets},
    keep::records::Note,
    memory as user,
    objects::End,
    peers::Peers,
    processes::Process,
};
use abi::{Errno, linux::nr};
use alloc::{boxed::Box, rc::Rc, vec::Vec};
use core::{cell::Cell, future::Future};
use sys::fallible::TryVec;

/// Bytes that vfs has for one descriptor of a call.
const INTEREST_BYTES: usize = poll::POLLFD_BYTES + size_of::<Interest>();
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
    call(nr::POLL, |c| task(poll(c.base(), c.process(), c.words[0], c.flags(1) as u64, c.milliseconds(2)))),
    call(nr::PPOLL, |c| {
        let poll = poll(c.base(), c.process(), c.words[0], c.flags(1) as u64, c.timespec(2)?);
        with_mask(c, signal_mask(c, c.words[3], c.words[4])?, poll)
    }),
    call(nr::SELECT, |c| {
        task(select(c.base(), c.process(), c.int(0), [1, 2, 3].map(|set| c.words[set]), c.timeval(4)?))
    }),
    call(nr::PSELECT6, |c| {
        let select = select(c.base(), c.process(), c.int(0), [1, 2, 3].map(|set| c.words[set]), c.timespec(4)?);
        let [address, bytes] = match c.words[5] {
            0 => [0, 0],
            both => user::fetch_words(c.process.caller.endpoint, both)?,
        };
        with_mask(c, signal_mask(c, address, bytes)?, select)
    }),
];

/// The signal mask of ppoll and pselect6; `None`: the thread's own. `EINVAL`, `EFAULT`.
fn signal_mask(call: &Call, address: u64, bytes: u64) -> Result<Option<u64>, Errno> {
    const MASK_BYTES: u64 = 8;
    match (address, bytes) {
        (0, _) => Ok(None),
        (_, MASK_BYTES) => user::fetch_words::<1>(call.process.caller.endpoint, address).map(|[mask]| Some(mask)),
        _ => Err(Errno::EINVAL),
    }
}

/// Waits with another signal mask in force. Before the call returns, pm has restored the thread's own or is about to run a handler. A
/// signal that the mask lets through ends the call also when nothing was to be waited for.
fn with_mask(
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

/// poll and ppoll. `deadline_ns`: `None` for ever, 0 not at all.
async fn poll(
    base: &'static Base,
    process: Rc<Process>,
    address: u64,
    count: u64,
    deadline_ns: Option<u64>,
) -> Result<u64, Errno> {
    if count > process.caller.descriptor_limit() as u64 {
        return Err(Errno::EINVAL);
    }
    let _memory = base.charge(process.caller.user(), count as usize * INTEREST_BYTES)?;
    let mut bytes = user::fetch_vec(process.caller.endpoint, address, count as usize * poll::POLLFD_BYTES)?;
    let mut interests = poll::decode_pollfds(&bytes)?;
    wait_ready(base, &process, &mut interests, deadline_ns).await?;
    let ready = poll::encode_pollfds(&interests, &mut bytes);
    user::store(process.caller.endpoint, address, &bytes)?;
    Ok(ready)
}

/// Descriptors that select looks at, whatever it is told: those of the table as it is, in whole words, as Linux.
fn set_limit(process: &Process) -> usize {
    const WORD_BITS: usize = 64;
    process.files().descriptors().len().max(1).next_multiple_of(WORD_BITS)
}

/// select and pselect6; `addresses` of the read, write and exception sets, 0 for none.
async fn select(
    base: &'static Base,
    process: Rc<Process>,
    count: i32,
    addresses: [u64; 3],
    deadline_ns: Option<u64>,
) -> Result<u64, Errno> {
    let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?.min(set_limit(&process));
    let _memory = base.charge(process.caller.user(), count * INTEREST_BYTES)?;
    let fetch = |address: u64| match address {
        0 => Ok(Vec::new()),
        _ => user::fetch_vec(process.caller.endpoint, address, poll::set_bytes(count)),
    };
    let asked = Sets { read: fetch(addresses[0])?, write: fetch(addresses[1])?, except: fetch(addresses[2])? };
    let mut interests = poll::decode_sets(&asked, count)?;
    wait_ready(base, &process, &mut interests, deadline_ns).await?;
    let (found, ready) = poll::encode_sets(&interests, &asked)?;
    for (address, set) in addresses.into_iter().zip([&found.read, &found.write, &found.except]) {
        user::store(process.caller.endpoint, address, set)?;
    }
    Ok(ready)
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
    ask_devices(base.peers(), process, interests, &mut questions, !ready && blocking)?;
    if !blocking || ready {
        // The devices answer at once; their answers are waited for.
        while questions.0.iter().any(|question| question.answer.get().is_none()) {
            process.caller.wait().await.map_err(no_restart)?;
        }
        look(process, interests, &questions);
        return Ok(());
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
    let Ok(file) = process.file(interest.descriptor) else { return POLLNVAL };
    match file.any().poll() {
        POLLNVAL => POLLNVAL,
        ready => ready & (interest.events | ALWAYS),
    }
}

/// Asks every device among the descriptors; `stay`: until it is ready.
fn ask_devices(
    peers: &Peers,
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
        let end = file.any().ask_ready(peers, interest.events | ALWAYS, stay, done)?;
        questions.0.try_push(Question { interest: index, answer, end: Some(end) })?;
    }
    Ok(())
}

fn watch(process: &Process, interests: &[Interest], on: bool) {
    for interest in interests {
        let Ok(file) = process.file(interest.descriptor) else { continue };
        for watchers in file.any().watchers().into_iter().flatten() {
            if on {
                watchers.add(process.caller.event());
            } else {
                watchers.remove(process.caller.event());
            }
        }
    }
}

/// When the first of the timers among the descriptors expires.
fn next_expiry(process: &Process, interests: &[Interest]) -> Option<u64> {
    let wakes_at = |interest: &Interest| process.file(interest.descriptor).ok()?.any().wakes_at();
    interests.iter().filter_map(wakes_at).min()
}

/// poll and select are never repeated after a signal.
fn no_restart(error: Errno) -> Errno {
    if error == Errno::ERESTARTSYS { Errno::EINTR } else { error }
}
