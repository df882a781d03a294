//! What a thread keeps of how it stands with m3ipc: whether it uses primitives, and the kernel's endpoints of its peers.
//!
//! It has no destructor and is a constant at first, so that reaching it is one instruction and every call by primitives can afford to.
//! A child of a fork starts anew, whoever forked: the handler runs in the only thread that it has.

use super::raw;
use crate::window::Window;
use abi::{Endpoint as Thread, Errno};
use m3ipc::endpoint::Endpoint;
use m3ipc::message::Message;
use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a thread exchanges messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// m3ipc has not been asked; or this is not Skink.
    Unknown,
    /// By the kernel's primitives.
    Direct,
    /// By m3ipc.
    Mediated,
}

/// Peers that are remembered, by either name: as many as a container has.
const PEERS: usize = m3ipc::limits::SLOTS;

/// A peer.
#[derive(Clone, Copy)]
struct Peer {
    name: i32,
    thread: Thread,
}

impl Peer {
    /// None: no endpoint has this name.
    const NONE: Peer = Peer { name: i32::MIN, thread: Thread(0) };
}

/// What a thread keeps.
pub struct Kept {
    mode: Cell<Mode>,
    /// The mode is direct; and nothing else is to be received first.
    sends_by_primitives: Cell<bool>,
    receives_by_primitives: Cell<bool>,
    /// Where its messages lie (`crate::pages`).
    readable: Window,
    writable: Window,
    /// The same, as long as calls go by primitives: a call asks for both by one comparison.
    sent_from: Window,
    asked_in: Window,
    received_in: Window,
    /// Index of its slot.
    slot: Cell<u8>,
    /// Number of the binding that the rest is about; 0 before m3ipc has been asked.
    binding: Cell<i64>,
    /// m3ipc may have something for it.
    has_more: Cell<bool>,
    /// Why the primitive of a call failed that goes on by other means.
    failed: Cell<Option<Errno>>,
    /// It was the wait for an answer, and the request has been taken.
    answer_due: Cell<bool>,
    by_name: [Cell<Peer>; PEERS],
    by_thread: [Cell<Peer>; PEERS],
    /// What the thread has sent by primitives; m3ipc looks here.
    sent: AtomicU64,
    /// Notifications that came while it did not take any: sources, by the index of their slot, with name and value.
    early: [Cell<u64>; PEERS / 64],
    early_values: [Cell<(i32, u32)>; PEERS],
}

#[expect(clippy::declare_interior_mutable_const, reason = "elements of arrays, each of which is a cell of its own")]
const fn empty() -> Kept {
    const NONE: Cell<Peer> = Cell::new(Peer::NONE);
    const NO_SOURCE: Cell<u64> = Cell::new(0);
    const NO_VALUE: Cell<(i32, u32)> = Cell::new((0, 0));
    Kept {
        mode: Cell::new(Mode::Unknown),
        sends_by_primitives: Cell::new(false),
        receives_by_primitives: Cell::new(false),
        readable: Window::empty(),
        writable: Window::empty(),
        sent_from: Window::empty(),
        asked_in: Window::empty(),
        received_in: Window::empty(),
        slot: Cell::new(0),
        binding: Cell::new(0),
        has_more: Cell::new(false),
        failed: Cell::new(None),
        answer_due: Cell::new(false),
        by_name: [NONE; PEERS],
        by_thread: [NONE; PEERS],
        sent: AtomicU64::new(0),
        early: [NO_SOURCE; PEERS / 64],
        early_values: [NO_VALUE; PEERS],
    }
}

thread_local! {
    static KEPT: Kept = const { empty() };
}

/// Lets `act` use what the thread keeps.
#[inline(always)]
pub fn with<T>(act: impl FnOnce(&Kept) -> T) -> T {
    KEPT.with(act)
}

extern "C" fn forked() {
    with(Kept::begin_anew);
}

/// Sees to it that children of this process begin anew.
pub fn watch_forks() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| raw::at_fork(forked));
}

impl Kept {
    pub fn mode(&self) -> Mode {
        self.mode.get()
    }

    pub fn set_mode(&self, mode: Mode) {
        self.mode.set(mode);
        self.sends_by_primitives.set(mode == Mode::Direct);
        self.set_has_more(self.has_more());
    }

    pub fn has_more(&self) -> bool {
        self.has_more.get()
    }

    pub fn set_has_more(&self, has_more: bool) {
        self.has_more.set(has_more);
        self.receives_by_primitives.set(self.mode() == Mode::Direct && !has_more && !self.has_early());
        self.set_windows();
    }

    fn set_windows(&self) {
        self.sent_from.set_if(self.sends_by_primitives.get(), &self.readable);
        self.asked_in.set_if(self.sends_by_primitives.get(), &self.writable);
        self.received_in.set_if(self.receives_by_primitives.get(), &self.writable);
    }

    /// Messages of the thread lie there from now on.
    pub fn see(&self, readable: &Window, writable: &Window) {
        self.readable.set_if(true, readable);
        self.writable.set_if(true, writable);
        self.set_windows();
    }

    /// Whether it sends by primitives.
    pub fn sends_by_primitives(&self) -> bool {
        self.sends_by_primitives.get()
    }

    /// Whether it sends by primitives, and may read a message there.
    #[inline(always)]
    pub fn sends_from(&self, message: *const Message) -> bool {
        self.sent_from.has(message as usize)
    }

    /// Whether it sends by primitives, and may read and write a message there.
    #[inline(always)]
    pub fn asks_in(&self, message: *const Message) -> bool {
        self.asked_in.has(message as usize)
    }

    /// Whether it receives everything by primitives, m3ipc has nothing for it, and it may write a message there.
    #[inline(always)]
    pub fn receives_in(&self, message: *const Message) -> bool {
        self.received_in.has(message as usize)
    }

    pub fn set_failed(&self, error: Errno) {
        self.failed.set(Some(error));
    }

    /// Returns why the primitive of this call failed, if it was made already.
    pub fn take_failed(&self) -> Option<Errno> {
        self.failed.take()
    }

    pub fn set_answer_due(&self) {
        self.answer_due.set(true);
    }

    /// Whether the request of this call was taken already, so that only the answer is to be waited for.
    pub fn take_answer_due(&self) -> bool {
        self.answer_due.take()
    }

    /// Forgets mode and peers: m3ipc is to be asked again.
    pub fn forget(&self) {
        self.set_mode(Mode::Unknown);
        for peer in self.by_name.iter().chain(&self.by_thread) {
            peer.set(Peer::NONE);
        }
    }

    /// The binding with this number, in this slot, is the present one: what is there of another is dropped.
    pub fn belong_to(&self, binding: i64, slot: u8) {
        self.slot.set(slot);
        if self.binding.replace(binding) != binding {
            self.drop_what_came();
        }
    }

    fn drop_what_came(&self) {
        self.sent.store(0, Ordering::Relaxed);
        self.early.iter().for_each(|set| set.set(0));
    }

    /// Index of the thread's slot.
    pub fn slot(&self) -> u8 {
        self.slot.get()
    }

    /// A thread that has just been bound, or is in a child, has nothing of an earlier binding.
    pub fn begin_anew(&self) {
        self.forget();
        self.binding.set(0);
        self.drop_what_came();
        self.set_has_more(false);
    }

    /// Returns the thread of this name, if it is known.
    #[inline(always)]
    pub fn thread_of(&self, name: i32) -> Option<Thread> {
        let peer = self.by_name[name as usize % PEERS].get();
        (peer.name == name).then_some(peer.thread)
    }

    /// Returns the name of this thread, if it is known.
    #[inline(always)]
    pub fn name_of(&self, thread: Thread) -> Option<i32> {
        let peer = self.by_thread[thread.slot() % PEERS].get();
        (peer.thread == thread).then_some(peer.name)
    }

    /// Remembers a peer, in place of one that collides with it.
    pub fn remember(&self, name: i32, thread: Thread) {
        let peer = Peer { name, thread };
        self.by_name[name as usize % PEERS].set(peer);
        self.by_thread[thread.slot() % PEERS].set(peer);
    }

    /// Forgets the peer of this name.
    pub fn forget_peer(&self, name: i32) {
        if let Some(thread) = self.thread_of(name) {
            self.by_name[name as usize % PEERS].set(Peer::NONE);
            self.by_thread[thread.slot() % PEERS].set(Peer::NONE);
        }
    }

    /// Counts a message that is sent by a primitive, or one less.
    #[inline(always)]
    pub fn count_sent(&self, by: u64) {
        let sent = &self.sent;
        sent.store(sent.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
    }

    /// Address of the count.
    pub fn counter_address(&self) -> i64 {
        std::ptr::from_ref(&self.sent) as i64
    }

    fn has_early(&self) -> bool {
        self.early.iter().any(|set| set.get() != 0)
    }

    /// Keeps a notification that the call in progress does not take. One of each source is kept.
    pub fn keep_notification(&self, slot: u8, name: i32, value: u32) {
        let set = &self.early[usize::from(slot) / 64];
        set.set(set.get() | 1 << (slot % 64));
        self.early_values[usize::from(slot)].set((name, value));
        self.receives_by_primitives.set(false);
        self.set_windows();
    }

    /// Takes a notification that was kept, of `from` or of the lowest slot that there is. Returns slot, name and value.
    pub fn take_notification(&self, from: i32) -> Option<(u8, i32, u32)> {
        let slots = (0..PEERS).map(|slot| slot as u8);
        let is_kept = |slot: &u8| self.early[usize::from(*slot) / 64].get() & 1 << (slot % 64) != 0;
        let named = |slot: &u8| from == Endpoint::ANY.raw() || self.early_values[usize::from(*slot)].get().0 == from;
        let slot = slots.filter(is_kept).find(named)?;
        let set = &self.early[usize::from(slot) / 64];
        set.set(set.get() & !(1 << (slot % 64)));
        self.set_has_more(self.has_more());
        let (name, value) = self.early_values[usize::from(slot)].get();
        Some((slot, name, value))
    }
}
