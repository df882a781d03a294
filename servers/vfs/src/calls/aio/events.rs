//! io_getevents and io_pgetevents: completed requests of a context, as soon as there are enough.
//!
//! Events are copied to the program and leave the context in the turn that answers the call, or that notes how many they are. A wait leaves
//! them in the context until it has enough, unless the context is full: so what it has noted is its deadline nearly always.

use super::{
    super::{
        call::Call,
        done,
        poll::{no_restart, with_mask},
    },
    context_of,
};
use crate::{
    aio::{Context, EVENT_BYTES},
    base::{Base, Flow},
    callers::Caller,
    keep::records::Note,
    memory as user,
};
use abi::Errno;
use alloc::rc::Rc;
use sys::time;

const NS_PER_S: i128 = 1_000_000_000;

/// The deadline of the `struct timespec` in argument 4; `None`: for ever, 0: no waiting. As on Linux every number is taken, and a negative time is
/// for ever.
pub(super) fn deadline(call: &Call) -> Result<Option<u64>, Errno> {
    if call.words[4] == 0 {
        return Ok(None);
    }
    if let Some(Note::Deadline(deadline_ns)) = call.process.caller.noted() {
        return Ok(Some(deadline_ns));
    }
    let [seconds, nanoseconds] = user::fetch_words::<2>(call.process.caller.endpoint, call.words[4])?;
    let wait_ns = i128::from(seconds as i64) * NS_PER_S + i128::from(nanoseconds as i64);
    let wait_ns = u64::try_from(wait_ns.min(i64::MAX.into())).ok();
    Ok(wait_ns.map(|wait_ns| if wait_ns == 0 { 0 } else { time::now_ns().saturating_add(wait_ns) }))
}

/// A wait for events.
pub(super) struct Wait {
    base: &'static Base,
    caller: Rc<Caller>,
    context: Rc<Context>,
    /// Where events go.
    address: u64,
    /// How many there may be, and how many the call waits for.
    most: u64,
    least: u64,
    /// `None` for ever, 0 not at all.
    deadline_ns: Option<u64>,
}

impl Wait {
    /// Begins the call; `mask`: the signal mask while it waits. `EINVAL`: no such context, or impossible numbers.
    pub(super) fn begin(call: &Call, deadline_ns: Option<u64>, mask: Option<u64>) -> Result<Flow, Errno> {
        let [_, least, most, address] = call.first();
        let (base, caller, context) = (call.base(), call.process.caller.clone(), context_of(call)?);
        if least as i64 <= -1 || (least as i64) > most as i64 {
            return Err(Errno::EINVAL);
        }
        let wait = Wait { base, caller, context, address, most, least, deadline_ns };
        // Also with a mask, as epoll_pwait.
        let is_over = wait.deadline_ns == Some(0) && mask.is_none();
        match wait.collected_before() {
            0 if wait.has_enough(0) || is_over => done(wait.collect(0)),
            _ => with_mask(call, mask, wait.run()),
        }
    }

    /// How many events a predecessor has handed over for the call.
    fn collected_before(&self) -> u64 {
        match self.caller.noted() {
            Some(Note::Moved(count)) => count,
            _ => 0,
        }
    }

    /// Whether there are as many as the call waits for besides the `count` that it has.
    fn has_enough(&self, count: u64) -> bool {
        self.context.completed() >= self.least.saturating_sub(count)
    }

    /// Hands events over behind the `count` that were. Returns how many they are then. `EFAULT`: none were.
    fn collect(&self, count: u64) -> Result<u64, Errno> {
        let store = |first: u64, bytes: &[u8]| {
            let address = self.address.wrapping_add((count + first) * EVENT_BYTES as u64);
            user::store(self.caller.endpoint, address, bytes)
        };
        self.base.store().has_moved();
        match self.context.collect(self.most - count, store) {
            Err(_) if count > 0 => Ok(count),
            further => Ok(count + further?),
        }
    }

    /// Waits for events and hands them over.
    async fn run(self) -> Result<u64, Errno> {
        let count = self.collected_before();
        if let (Some(deadline_ns @ 1..), 0) = (self.deadline_ns, count) {
            self.caller.note(Note::Deadline(deadline_ns));
        }
        self.context.watchers().add(self.caller.event());
        let result = self.collect_enough(count).await;
        self.context.watchers().remove(self.caller.event());
        result
    }

    async fn collect_enough(&self, mut count: u64) -> Result<u64, Errno> {
        let mut sleep = self.deadline_ns.map(|deadline_ns| self.base.runtime().sleep_until(deadline_ns));
        loop {
            if self.context.has_ended() {
                return if count > 0 { Ok(count) } else { Err(Errno::EINVAL) };
            }
            if self.has_enough(count) {
                return self.collect(count);
            }
            if self.context.completed() == self.context.requests() {
                // No more complete before these are handed over.
                count = self.collect(count)?;
                self.caller.note(Note::Moved(count));
            }
            match self.caller.wait_or_sleep(sleep.as_mut()).await {
                Ok(false) => {}
                Ok(true) => return self.collect(count),
                Err(error) => return self.interrupted(count, error),
            }
        }
    }

    /// A signal ends the wait: what has completed counts more.
    fn interrupted(&self, count: u64, error: Errno) -> Result<u64, Errno> {
        match self.collect(count)? {
            0 => Err(no_restart(error)),
            count => Ok(count),
        }
    }
}
