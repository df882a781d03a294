//! Slots for tasks, each with a waker that its successive tasks share.

use super::ready::{ReadySet, TASKS};
use crate::step::Task;
use abi::Endpoint;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::task::{Context, Poll, Waker};
use sys::fallible::TryVec;

/// Error: no slot is free.
#[derive(Debug)]
pub struct Full;

/// Result of running a task.
pub enum Ran<R> {
    /// It is done; its result is for this client.
    Finished(Endpoint, R),
    /// It waits, or has ended without a result.
    Waits,
}

/// Wakes one slot.
struct SlotWaker {
    slot: usize,
    ready: Arc<ReadySet>,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.ready.insert(self.slot);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.insert(self.slot);
    }
}

enum Body<R> {
    /// Task of a request.
    Request(Task<R>),
    /// Task without a client.
    Background(Task<()>),
    /// The slot is free.
    Empty,
}

struct Slot<R> {
    body: Body<R>,
    requester: Endpoint,
    waker: Waker,
}

/// All tasks of a server.
pub struct Tasks<R> {
    slots: Vec<Slot<R>>,
    /// Free slots; those used last come first, while their memory is in the cache.
    free: Vec<usize>,
    ready: Arc<ReadySet>,
    /// Start of the search for the next task, for fairness.
    cursor: usize,
}

impl<R> Tasks<R> {
    /// Returns an empty set of tasks.
    pub fn new() -> Self {
        Tasks { slots: Vec::new(), free: Vec::new(), ready: Arc::new(ReadySet::new()), cursor: 0 }
    }

    /// Starts a request's task. Returns its result if it is done at once.
    pub fn begin(&mut self, requester: Endpoint, task: Task<R>) -> Result<Option<R>, Full> {
        let at = self.free_slot()?;
        self.slots[at].requester = requester;
        self.slots[at].body = Body::Request(task);
        Ok(match self.poll(at) {
            Ran::Finished(_, result) => Some(result),
            Ran::Waits => None,
        })
    }

    /// How many tasks may begin.
    pub fn room(&self) -> usize {
        self.free.len() + (TASKS - self.slots.len())
    }

    /// Starts a task without a client; there is room for it.
    pub fn begin_background(&mut self, task: Task<()>) {
        let at = self.free_slot().expect("the caller has looked for room");
        self.slots[at].body = Body::Background(task);
        self.ready.insert(at);
    }

    /// Returns whether a task has been woken and not run since.
    #[inline]
    pub fn is_any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Runs the next task that has been woken; `None` when all wait.
    #[inline]
    pub fn run_next(&mut self) -> Option<Ran<R>> {
        let at = self.ready.take(self.cursor)?;
        self.cursor = (at + 1) % TASKS;
        Some(self.poll(at))
    }

    #[expect(clippy::disallowed_methods, reason = "`TASKS`: from the heap's reserve")]
    fn free_slot(&mut self) -> Result<usize, Full> {
        if let Some(at) = self.free.pop() {
            return Ok(at);
        }
        let at = self.slots.len();
        if at == TASKS {
            return Err(Full);
        }
        let waker = Waker::from(Arc::new(SlotWaker { slot: at, ready: self.ready.clone() }));
        self.free.reserve(self.slots.len() + 1);
        self.slots.push(Slot { body: Body::Empty, requester: Endpoint::NONE, waker });
        Ok(at)
    }

    fn poll(&mut self, at: usize) -> Ran<R> {
        let slot = &mut self.slots[at];
        let mut context = Context::from_waker(&slot.waker);
        let ran = match &mut slot.body {
            Body::Request(task) => match task.as_mut().poll(&mut context) {
                Poll::Ready(result) => Ran::Finished(slot.requester, result),
                Poll::Pending => return Ran::Waits,
            },
            Body::Background(task) => match task.as_mut().poll(&mut context) {
                Poll::Ready(()) => Ran::Waits,
                Poll::Pending => return Ran::Waits,
            },
            // A waker that was kept may wake a slot after its task has ended.
            Body::Empty => return Ran::Waits,
        };
        slot.body = Body::Empty;
        self.free.push_reserved(at);
        ran
    }
}
