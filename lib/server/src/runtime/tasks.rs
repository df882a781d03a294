//! Slots for tasks. The handlers of a server are all of one type, so a slot's memory and waker serve one request after the other.

use super::Background;
use super::ready::{ReadySet, TASKS};
use abi::{Endpoint, Message};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// All slots are taken.
#[derive(Debug)]
pub struct Full;

/// What came of running a task.
pub enum Ran {
    /// It is done; its answer is for this asker.
    Finished(Endpoint, Option<Message>),
    /// It waits.
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

enum Body<F> {
    /// A request's task, or the empty place for the next one.
    Handler(Pin<Box<Option<F>>>),
    Background(Background),
    /// Nothing, and no memory yet.
    Empty,
}

struct Slot<F> {
    body: Body<F>,
    asker: Endpoint,
    waker: Waker,
}

/// All tasks of a server.
pub struct Tasks<F> {
    slots: Vec<Slot<F>>,
    /// Free slots; those used last come first, while their memory is in the cache.
    free: Vec<usize>,
    ready: Arc<ReadySet>,
    /// Where the search for the next task begins, so that everyone gets a turn.
    cursor: usize,
}

impl<F: Future<Output = Option<Message>>> Tasks<F> {
    /// No tasks.
    pub fn new() -> Self {
        Tasks { slots: Vec::new(), free: Vec::new(), ready: Arc::new(ReadySet::new()), cursor: 0 }
    }

    /// Starts a request's task. → its answer, if it is done at once.
    pub fn begin(&mut self, asker: Endpoint, task: F) -> Result<Option<Option<Message>>, Full> {
        let at = self.free_slot()?;
        let slot = &mut self.slots[at];
        slot.asker = asker;
        match &mut slot.body {
            Body::Handler(place) => place.as_mut().set(Some(task)),
            other => *other = Body::Handler(Box::pin(Some(task))),
        }
        Ok(match self.poll(at) {
            Ran::Finished(_, answer) => Some(answer),
            Ran::Waits => None,
        })
    }

    /// Puts a task in line that answers nobody. When there is no slot for it, it is a fault of the server.
    pub fn begin_background(&mut self, task: Background) {
        let at = self.free_slot().expect("the server has too many tasks of its own");
        self.slots[at].body = Body::Background(task);
        self.ready.insert(at);
    }

    /// Runs the next task that has been woken; `None` when all wait.
    pub fn run_next(&mut self) -> Option<Ran> {
        let at = self.ready.take(self.cursor)?;
        self.cursor = (at + 1) % TASKS;
        Some(self.poll(at))
    }

    fn free_slot(&mut self) -> Result<usize, Full> {
        if let Some(at) = self.free.pop() {
            return Ok(at);
        }
        let at = self.slots.len();
        if at == TASKS {
            return Err(Full);
        }
        let waker = Waker::from(Arc::new(SlotWaker { slot: at, ready: self.ready.clone() }));
        self.slots.push(Slot { body: Body::Empty, asker: Endpoint::NONE, waker });
        Ok(at)
    }

    fn poll(&mut self, at: usize) -> Ran {
        let slot = &mut self.slots[at];
        let mut context = Context::from_waker(&slot.waker);
        let answer = match &mut slot.body {
            Body::Handler(place) => {
                // A slot may be woken after its task has ended: by a waker that somebody kept.
                let Some(task) = place.as_mut().as_pin_mut() else { return Ran::Waits };
                let Poll::Ready(answer) = task.poll(&mut context) else { return Ran::Waits };
                place.as_mut().set(None);
                answer
            }
            Body::Background(task) => {
                if task.as_mut().poll(&mut context).is_pending() {
                    return Ran::Waits;
                }
                slot.body = Body::Empty;
                None
            }
            Body::Empty => return Ran::Waits,
        };
        self.free.push(at);
        Ran::Finished(slot.asker, answer)
    }
}
