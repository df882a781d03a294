//! Threads of programs as they call vfs: who each is, and the call it has in progress.
//!
//! A thread has at most one call in progress, because it waits for the answer. Descriptors and directories, which several threads may
//! share, are in `processes`; what serves a call below the paths needs only this.

pub mod lives;
mod part;
pub mod permission;
pub mod signals;

use crate::{
    events::{Event, Watchers},
    keep::{
        Kept, Store, Text,
        records::{IdMaps, Note, ThreadRecord},
    },
    pipes::Pipe,
};
use abi::{Endpoint, Errno, Message, Parts, chardev, endpoint::SLOTS, message::REPLY, vfs};
use alloc::{rc::Rc, vec::Vec};
use core::{
    cell::{Cell, RefCell},
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
};
use lives::Identity;
use part::Part;
use permission::Credentials;
use server::{OWN_TAG, Peer, Sleep};
use signals::Signals;
use sys::fallible::collect;

/// The object that the call in progress waits for.
#[derive(Debug, Default)]
pub enum Call {
    /// There is none, or it ends without waiting for long.
    #[default]
    None,
    /// It waits in a pipe.
    Pipe(Rc<Pipe>),
    /// Its handler waits for the caller's event, or for a device.
    Waiting,
    /// A device reads or writes for it, without a task.
    Device(Asked),
    /// The caller has been sent SIGPIPE, and the call ends with `Cancel`; bytes it has written.
    Signalled(u64),
}

/// A request at a device, which a signal ends early.
pub struct Asked {
    /// The device's driver.
    pub peer: Peer,
    /// The request.
    pub tag: u64,
    /// The device.
    pub minor: u64,
}

impl Asked {
    /// Has the device end the request: its reply comes soon.
    pub fn cancel(&self) {
        let (tag, minor) = (self.tag, self.minor);
        self.peer.cancel(tag, chardev::Cancel { tag, minor }.message());
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "request {:#x} of {:?}", self.tag, self.peer.name())
    }
}

/// One thread.
#[derive(Debug)]
pub struct Caller {
    /// The thread.
    pub endpoint: Endpoint,
    /// The process it belongs to.
    pub pid: u32,
    credentials: RefCell<Rc<Credentials>>,
    /// What is preserved of the thread; ids as in `credentials`.
    record: Kept<ThreadRecord>,
    call: RefCell<Call>,
    /// What a predecessor has noted about the call in progress, if it came before.
    note: Cell<Option<Note>>,
    /// A file system's answer to the first change of the call in progress, if it came before.
    recalled: RefCell<Option<Message>>,
    part: Part,
    event: Rc<Event>,
    /// pm has restored the signal mask after the call's wait.
    unmasked: Event,
    /// What is known of its pending signals.
    signals: Signals,
    /// The error a signal ends the call with.
    cancelled: Cell<Option<Errno>>,
    /// `Exit` has come: only handlers that have not ended yet hold this.
    gone: Cell<bool>,
}

impl Caller {
    /// A thread as this record says, which is preserved by [`Caller::save`]; `groups`: the supplementary ones.
    pub fn new(store: &Rc<Store>, record: ThreadRecord, groups: Vec<u32>) -> Caller {
        let [euid, egid, uid, gid] = record.ids;
        let [capabilities, real_capabilities] = record.capabilities;
        let contained = contained(&record);
        let credentials = Credentials { euid, egid, uid, gid, groups, capabilities, real_capabilities, contained };
        Caller {
            endpoint: record.endpoint,
            pid: record.pid,
            credentials: RefCell::new(Rc::new(credentials)),
            record: Kept::new(store, record.endpoint.slot() as u32, record),
            call: RefCell::default(),
            note: Cell::new(None),
            recalled: RefCell::default(),
            part: Part::default(),
            event: Rc::default(),
            unmasked: Event::default(),
            signals: Signals::default(),
            cancelled: Cell::new(None),
            gone: Cell::new(false),
        }
    }

    /// What is preserved of it.
    pub fn record(&self) -> ThreadRecord {
        self.record.get()
    }

    /// Preserves it for the first time.
    pub fn save(&self) {
        self.record.set(self.record.get());
    }

    /// Changes a part of its record, unless the thread has ended: then its place may be another's.
    pub fn update(&self, change: impl FnOnce(&mut ThreadRecord)) {
        if !self.gone.get() {
            self.record.update(change);
        }
    }

    /// Its process, as no later one with the same pid is.
    pub fn identity(&self) -> Identity {
        let record = self.record.get();
        Identity { pid: record.pid, generation: record.generation }
    }

    /// Its ids.
    pub fn credentials(&self) -> Rc<Credentials> {
        self.credentials.borrow().clone()
    }

    /// Changes its ids. `ENOMEM`: no room for the supplementary groups.
    pub fn set_credentials(&self, mut credentials: Credentials) -> Result<(), Errno> {
        credentials.contained = contained(&self.record());
        let store = self.record.store();
        let groups = save_groups(store, &credentials.groups, credentials.uid)?;
        store.release_text(self.record.get().groups);
        let Credentials { euid, egid, uid, gid, capabilities, real_capabilities, .. } = credentials;
        self.update(|record| {
            record.ids = [euid, egid, uid, gid];
            record.capabilities = [capabilities, real_capabilities];
            record.groups = groups;
        });
        self.credentials.replace(Rc::new(credentials));
        Ok(())
    }

    /// To whom quotas are charged: its real user, or the container with limits that it is in.
    pub fn user(&self) -> u32 {
        let record = self.record.get();
        record.parts.account(record.ids[2])
    }

    /// Logs that something was refused to it, if it is in a container with limits, but not too often. Returns the error, `EPERM`.
    pub fn refuse(&self, what: &str) -> Errno {
        if let Some(container) = self.parts().limited()
            && self.record.store().may_log()
        {
            sys::log!("container {container}: {what} refused to process {}: EPERM", self.pid);
        }
        Errno::EPERM
    }

    /// What its descriptors are below (RLIMIT_NOFILE).
    pub fn descriptor_limit(&self) -> usize {
        self.record.get().descriptors as usize
    }

    /// The size up to which it may write files (RLIMIT_FSIZE).
    pub fn file_limit(&self) -> u64 {
        self.record.get().file_bytes
    }

    /// Bytes that the message queues of its user may have (RLIMIT_MSGQUEUE).
    pub fn message_limit(&self) -> u64 {
        self.record.get().message_bytes
    }

    /// Changes its resource limits.
    pub fn set_limits(&self, limits: &vfs::SetLimits) {
        self.update(|record| {
            record.descriptors = limits.descriptors.min(u64::from(u32::MAX)) as u32;
            record.file_bytes = limits.file_bytes;
            record.message_bytes = limits.message_bytes;
        });
    }

    /// Its containers.
    pub fn parts(&self) -> Parts {
        self.record.get().parts
    }

    /// The namespace of the mounts that it sees.
    pub fn mounts(&self) -> u16 {
        self.parts().of(abi::Part::Mounts).into()
    }

    /// Changes its containers.
    pub fn set_parts(&self, parts: Parts) {
        let has_other_users = parts.of(abi::Part::Users) != self.parts().of(abi::Part::Users);
        self.update(|record| record.parts = parts);
        if has_other_users {
            self.set_id_maps(IdMaps::NONE);
        }
    }

    /// Changes whom it knows in its container.
    pub fn set_id_maps(&self, maps: IdMaps) {
        self.update(|record| record.id_maps = maps);
        let mut credentials = Credentials::clone(&self.credentials.borrow());
        credentials.contained = contained(&self.record());
        self.credentials.replace(Rc::new(credentials));
    }

    /// Its session.
    pub fn session(&self) -> u64 {
        self.record.get().session as u64
    }

    /// Its process group.
    pub fn group(&self) -> u64 {
        self.record.get().group as u64
    }

    /// Changes session and process group.
    pub fn set_session(&self, session: u64, group: u64) {
        self.update(|record| (record.session, record.group) = (session as u32, group as u32));
    }

    /// The thread has ended.
    pub fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// The thread ends; its record has been taken out.
    pub fn set_gone(&self) {
        self.gone.set(true);
        self.record.store().release_text(self.record.get().groups);
    }

    /// A call begins that no predecessor has seen. A signal that was to end the last one does not end it.
    #[inline]
    pub fn begin_new_call(&self) {
        self.cancelled.set(None);
        self.note.set(None);
    }

    /// A call comes again; `note`: what a predecessor has noted about it.
    pub fn begin_call(&self, note: Option<Note>) {
        self.note.set(note);
    }

    /// Sets what the call in progress waits for; returns what it has waited for.
    pub fn set_call(&self, call: Call) -> Call {
        self.call.replace(call)
    }

    /// Whether the call in progress is worked on, by vfs or a file system, and does not wait for something that may never happen.
    pub fn is_served(&self) -> bool {
        matches!(*self.call.borrow(), Call::None)
    }

    /// What a predecessor has noted about the call in progress.
    pub fn noted(&self) -> Option<Note> {
        self.note.get()
    }

    /// Notes something about the call in progress, for a successor that gets it again.
    pub fn note(&self, note: Note) {
        self.record.store().note(self.endpoint, note);
    }

    /// Fires when the call may go on.
    pub fn event(&self) -> &Rc<Event> {
        &self.event
    }

    /// Fires when pm has restored the signal mask after the call's wait, or the thread has ended.
    pub fn unmasked(&self) -> &Event {
        &self.unmasked
    }

    /// What is known of its pending signals.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// The number of its call in progress; 0: there is none.
    pub fn call_number(&self) -> u64 {
        self.record.store().call_of(self.endpoint)
    }

    /// The call in progress ends with this error as soon as it would wait.
    pub fn cancel(&self, error: Errno) {
        self.cancelled.set(Some(error));
    }

    /// [`Caller::cancel`] for a call that waits already: wakes it.
    pub fn interrupt(&self, error: Errno) {
        self.cancel(error);
        self.event.fire();
    }

    /// Whether the call in progress is to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.get().is_some()
    }

    /// Takes the error that the call in progress is to end with.
    pub fn take_cancelled(&self) -> Option<Errno> {
        self.cancelled.take()
    }

    /// The tag of the next change that the call in progress asks of a file system: a call makes at most one that must not be made twice.
    /// `None`: no call is in progress.
    pub fn change_tag(&self) -> Option<u64> {
        let number = self.record.store().call_of(self.endpoint);
        (number != 0).then_some(OWN_TAG | (self.endpoint.0 as u64) << 32 | number & 0xffff_ffff)
    }

    /// The part of its call that is in progress.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// The tag of a transfer from or to a character device, when the call has moved so many bytes already.
    pub fn transfer_tag(&self, moved: u64) -> u64 {
        // Spread over all bits, so that a part hardly ever begins with the tag with which the one before has gone on.
        let part = self.part.number().wrapping_mul(0x9e37_79b9);
        let which = self.record.store().call_of(self.endpoint) as u32 ^ (moved as u32).rotate_left(16) ^ part;
        OWN_TAG | (self.endpoint.0 as u64) << 32 | which as u64
    }

    /// Sets the answer that a file system has given to the change of this call before.
    pub fn set_recalled(&self, reply: Option<Message>) {
        self.recalled.replace(reply);
    }

    /// Takes that answer, if the change was of this kind (label of the request).
    pub fn recalled(&self, label: u32) -> Option<Message> {
        self.recalled.borrow_mut().take_if(|reply| reply.label == label | REPLY)
    }

    /// Whether the reply to this request is one that a predecessor of this vfs has got.
    pub fn recalls(&self, label: u32) -> bool {
        self.recalled.borrow().as_ref().is_some_and(|reply| reply.label == label | REPLY)
    }

    /// Waits for the event, or until a signal ends the call with its error.
    pub async fn wait(&self) -> Result<(), Errno> {
        self.wait_or_sleep(None).await.map(drop)
    }

    /// Waits for the signal that ends the call. Returns its error.
    pub async fn wait_for_signal(&self) -> Result<u64, Errno> {
        loop {
            self.wait().await?;
        }
    }

    /// Waits until a state is reached whose changes fire `watchers`, or a signal ends the call with its error.
    pub async fn wait_until(&self, watchers: &Watchers, is_reached: impl Fn() -> bool) -> Result<(), Errno> {
        watchers.add(&self.event);
        let mut waited = Ok(());
        while waited.is_ok() && !is_reached() {
            waited = self.wait().await;
        }
        watchers.remove(&self.event);
        waited
    }

    /// [`Caller::wait`], or until the sleep is over. Returns true then.
    pub async fn wait_or_sleep(&self, mut sleep: Option<&mut Sleep>) -> Result<bool, Errno> {
        if let Some(error) = self.cancelled.take() {
            return Err(error);
        }
        self.set_call(Call::Waiting);
        let mut event = pin!(self.event.wait());
        let expired = poll_fn(|context| {
            if event.as_mut().poll(context).is_ready() {
                return Poll::Ready(false);
            }
            match sleep.as_mut().map(|sleep| Pin::new(&mut **sleep).poll(context)) {
                Some(Poll::Ready(())) => Poll::Ready(true),
                _ => Poll::Pending,
            }
        })
        .await;
        self.set_call(Call::None);
        match self.cancelled.take() {
            Some(error) => Err(error),
            None => Ok(expired),
        }
    }
}

/// Whom a thread knows in its container, if that has users of its own.
fn contained(record: &ThreadRecord) -> Option<IdMaps> {
    (record.parts.of(abi::Part::Users) != 0).then_some(record.id_maps)
}

/// Preserves supplementary groups of a user. `ENOMEM`: no room.
pub fn save_groups(store: &Store, groups: &[u32], user: u32) -> Result<Text, Errno> {
    if groups.is_empty() {
        return Ok(Text::EMPTY);
    }
    let bytes = collect(groups.iter().flat_map(|group| group.to_le_bytes()))?;
    store.put_text(&bytes, user)
}

/// All threads, by slot.
#[derive(Debug)]
pub struct Callers(RefCell<Vec<Option<Rc<Caller>>>>);

impl Default for Callers {
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    fn default() -> Self {
        Callers(RefCell::new((0..SLOTS).map(|_| None).collect()))
    }
}

impl Callers {
    /// The thread with this endpoint, generation included.
    pub fn get(&self, endpoint: Endpoint) -> Option<Rc<Caller>> {
        let table = self.0.borrow();
        table.get(endpoint.slot())?.as_ref().filter(|caller| caller.endpoint == endpoint).cloned()
    }

    /// Enters a thread into its slot, in place of the one there.
    pub fn insert(&self, caller: Rc<Caller>) {
        if let Some(slot) = self.0.borrow_mut().get_mut(caller.endpoint.slot()) {
            slot.replace(caller);
        }
    }

    /// Takes a thread out.
    pub fn remove(&self, endpoint: Endpoint) {
        if let Some(slot) = self.0.borrow_mut().get_mut(endpoint.slot()) {
            slot.take_if(|caller| caller.endpoint == endpoint);
        }
    }
}
