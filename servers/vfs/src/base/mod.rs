//! What open files stand on: the executor, preserved memory, file systems and drivers, pipes, mapped files, and events for pm.
//!
//! Everything here lives as long as the server. It knows nothing of descriptors, paths and calls, which are above it.

pub mod closing;
pub mod leases;
mod loops;

use crate::{
    cache::PageCache,
    callers::{Call, Caller, Callers, lives::Lives},
    devices::Devices,
    events::notices::{Notices, SIGPIPE},
    files::{Files, Shared, loops::Loops, mount::Mount, watches::Watches},
    keep::{
        Kept, Store,
        records::{AncillaryRecord, Extent, LimitRecord, Note, PipeRecord, SignalRecord},
    },
    mappings::Mappings,
    memory::{
        self as user,
        address::{self, Address, header},
    },
    peers::{Peers, Service},
    pipes::{World, ancillary::Ancillary, packets::Results, pool::Pipes, ring::Pages},
};
use abi::{Endpoint, Errno, Message, chardev, fs};
use alloc::{boxed::Box, collections::VecDeque, rc::Rc};
use closing::{Closed, Closing};
use core::cell::Cell;
use server::{
    Continuation, Runtime, Step,
    quota::{Quota, Share, Shares},
};
use sys::copy;

/// How a call goes on. Later: [`Base::answer`] will answer it.
pub type Flow = Step<Result<u64, Errno>>;

/// See the head of the file.
pub struct Base {
    devices: Devices,
    runtime: Runtime,
    store: Rc<Store>,
    callers: Rc<Callers>,
    lives: Rc<Lives>,
    peers: Rc<Peers>,
    files: Rc<Files>,
    cache: Rc<PageCache>,
    mappings: Mappings,
    loops: Loops,
    pipes: Pipes,
    notices: Notices,
    closing: Rc<Closing>,
    shared: Rc<Shared>,
    call_memory: Shares,
    /// Parts of calls that are in progress ([`Base::end_of_part`]).
    parts: Cell<usize>,
}

/// Bytes of memory that calls in progress have for what their arguments make long, and what a user gets of it.
const CALL_BYTES: usize = 8 << 20;
const USER_CALL_BYTES: usize = 3 << 20;
const RESERVED_CALL_BYTES: usize = 1 << 20;
/// Messages of sockets that have ended, the open files of which are closed in one turn. What these were sent follows in the next.
const DROPS: usize = 64;
/// Time between two of these turns.
const PAUSE_NS: u64 = 50_000;

impl Base {
    /// Nothing mounted, no programs. `generation`: of this incarnation.
    pub fn new(store: Store, generation: u32, devices: Devices) -> Base {
        let store = Rc::new(store);
        let runtime = Runtime::new();
        // Numbers that no predecessor has given.
        let first_number = (generation as u64) << 40;
        let shared = Rc::new(Shared::new(first_number + 1));
        let peers = Rc::new(Peers::new(runtime.clone(), store.clone()));
        let watches = Watches::new(store.clone(), first_number);
        let files = Rc::new(Files::new(peers.clone(), watches.clone(), store.clone()));
        let cache = Rc::new(PageCache::new(peers.clone(), store.sizes().cached_pages()));
        Base {
            devices,
            runtime,
            store: store.clone(),
            callers: Rc::default(),
            lives: Rc::default(),
            mappings: Mappings::new(peers.clone(), files.clone(), cache.clone()),
            cache,
            loops: Loops::new(&store),
            peers,
            files,
            pipes: Pipes::new(store.clone()),
            notices: Notices::default(),
            closing: Rc::new(Closing::new(store, first_number, shared.clone(), watches)),
            shared,
            call_memory: Shares::new(Quota::new(CALL_BYTES, USER_CALL_BYTES, RESERVED_CALL_BYTES)),
            parts: Cell::new(0),
        }
    }

    /// The devices of this system.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// The executor.
    #[inline]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// What outlives this process.
    #[inline]
    pub fn store(&self) -> &Rc<Store> {
        &self.store
    }

    /// Threads of programs.
    pub fn callers(&self) -> &Rc<Callers> {
        &self.callers
    }

    /// Processes that descriptors mean.
    pub fn lives(&self) -> &Rc<Lives> {
        &self.lives
    }

    /// Obeys what a container with limits may have. `ENOMEM`.
    pub fn apply_limits(&self, container: u8, record: &LimitRecord) -> Result<(), Errno> {
        let account = abi::container::account(container);
        self.store().limit_files(account, LimitRecord::limit(record.files))?;
        self.pipes().set_limit(account, LimitRecord::limit(record.pipes))
    }

    /// File systems and drivers.
    #[inline]
    pub fn peers(&self) -> &Rc<Peers> {
        &self.peers
    }

    /// Files in use.
    #[inline]
    pub fn files(&self) -> &Rc<Files> {
        &self.files
    }

    /// Content of files that is known.
    #[inline]
    pub fn cache(&self) -> &PageCache {
        &self.cache
    }

    /// Files that are mapped shared.
    #[inline]
    pub fn mappings(&self) -> &Mappings {
        &self.mappings
    }

    /// Loop devices.
    pub fn loops(&self) -> &Loops {
        &self.loops
    }

    /// Pipes.
    #[inline]
    pub fn pipes(&self) -> &Pipes {
        &self.pipes
    }

    /// What pm has to be told.
    #[inline]
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Open files that have ended.
    #[inline]
    pub fn closing(&self) -> &Rc<Closing> {
        &self.closing
    }

    /// Charges a user for memory of a call in progress, until the share is dropped. `ENOMEM`: the user's calls have all that they get.
    pub fn charge(&self, user: u32, bytes: usize) -> Result<Share, Errno> {
        self.call_memory.take(user, bytes).map_err(|_| Errno::ENOMEM)
    }

    /// Checks that a caller may write files up to `size` (RLIMIT_FSIZE). `EFBIG`, once pm has sent SIGXFSZ.
    pub async fn check_file_limit(&self, caller: &Caller, size: u64) -> Result<(), Errno> {
        if size <= caller.file_limit() {
            return Ok(());
        }
        self.notices.too_large(caller.endpoint);
        loop {
            caller.wait().await?;
        }
    }

    /// Has pm send the signal of an event with these values, which outlives vfs until pm has dealt with it.
    pub fn send_signal(&self, event: u64, values: [u64; 3]) {
        let record = SignalRecord { number: self.notices.new_number(), event, values };
        match self.store.new_signal(&record) {
            Some(place) => self.notices.preserved(place, &record),
            None => sys::log!("pm fetches no events: the signal of event {event} for {:#x} is lost", values[0]),
        }
    }

    /// What all mounts and open files share.
    pub fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// Carries out a part of a call to its end, as `flow` says, which may answer later as if it were a call.
    pub async fn end_of_part(&self, caller: &Caller, flow: Flow) -> Result<u64, Errno> {
        match flow {
            Flow::Done(result) => result,
            Flow::Task(task) => task.await,
            Flow::Later => {
                self.parts.set(self.parts.get() + 1);
                let result = caller.part().wait().await;
                self.parts.set(self.parts.get() - 1);
                result
            }
        }
    }

    #[cold]
    fn ends_part(&self, who: Endpoint, result: Result<u64, Errno>) -> bool {
        self.callers.get(who).is_some_and(|caller| caller.part().end(result))
    }

    /// Answers a call of a program that waits, or ends the part of it that does.
    pub fn answer(&self, who: Endpoint, result: Result<u64, Errno>) {
        if self.parts.get() > 0 && self.ends_part(who, result) {
            return;
        }
        self.runtime.answer(who, answer(result));
    }

    /// Asks a file system for a call of a program, without a task: the call goes on as `then` says of the reply, whose errors are errors there.
    /// With a tag ([`Caller::change_tag`]) the request is one that must not be made twice.
    pub fn ask_then(
        &'static self,
        caller: &Caller,
        (service, message, tag): (Service, Message, Option<u64>),
        then: impl FnOnce(Result<Message, Errno>) -> Result<Flow, Errno> + 'static,
    ) -> Result<Flow, Errno> {
        self.peers.ask_then(service, message, tag, Box::new(Asked { base: self, who: caller.endpoint, then }))?;
        Ok(Flow::Later)
    }

    /// Goes on with a call of a program that has not been answered yet.
    pub fn go_on(&'static self, who: Endpoint, flow: Flow) {
        match flow {
            Flow::Task(task) => self.runtime.spawn(async move { self.go_on(who, Flow::Done(task.await)) }),
            Flow::Done(result) => {
                self.sweep();
                self.answer(who, result);
            }
            Flow::Later => self.sweep(),
        }
    }

    /// Does what the ends of open files and vnodes have left to do. Runs after each request.
    #[inline(always)] // Every call comes by here: with what it mostly need not do it takes 17 ticks more.
    pub fn sweep(&self) {
        if self.shared.wants_sweep() {
            self.sweep_all();
        }
    }

    /// Returns memory to vm after a peak of use.
    pub fn trim(&self) {
        self.closing.trim();
        self.store.trim();
    }

    #[inline(never)]
    fn sweep_all(&self) {
        let mut drops = DROPS;
        while self.shared.take_sweep() {
            while let Some(closed) = self.closing.take() {
                self.close(closed);
            }
            self.closing.drop_unread(&mut drops);
            if self.shared.take_sweep_of_mounts() {
                self.files.mounts.for_each_to_sweep(|mount| self.files.put_dropped(mount));
                while let Some(mount) = self.files.mounts.take_ended() {
                    self.end_mount(&mount);
                }
            }
        }
    }

    /// A mount that was taken out of the tree before has nothing in use any more. Its record stays until the file system is unmounted, if it
    /// was the last one of it.
    fn end_mount(&self, mount: &Rc<Mount>) {
        self.files.put_dropped(mount);
        let (record, file_system) = (mount.record(), mount.file_system().clone());
        if !file_system.is_hidden() {
            return self.store.remove_mount(record);
        }
        self.files.forget_mapped(&file_system);
        let (peers, store) = (self.peers.clone(), self.store.clone());
        self.runtime.spawn(async move {
            let request = fs::Unmount { node: file_system.root(), force: true };
            if let Err(error) = peers.ask(file_system.service(), request.message()).await {
                sys::log!("unmounting {} failed: {error}", file_system.source());
            }
            file_system.release_disk();
            store.remove_mount(record);
        });
    }

    /// Drops, a part in each turn, what was in queues that have ended, for ever.
    pub async fn drop_unread(&self) {
        loop {
            self.closing.wait_for_unread().await;
            self.runtime.sleep_ns(PAUSE_NS).await;
            self.closing.go_on();
            self.sweep();
        }
    }

    fn close(&self, closed: Closed) {
        match closed {
            Closed::Pipe { pipe, reads, writes } => pipe.close(self, reads, writes),
            Closed::Connection { incoming, outgoing, ends, refused } => {
                if refused || incoming.bytes() > 0 {
                    outgoing.reset(self);
                }
                incoming.discard(self);
                incoming.close(self, ends.0, false);
                outgoing.close(self, false, ends.1);
            }
            Closed::Device { service, minor } => self.peers.tell(service, chardev::Close { minor }.message()),
            Closed::Watched { node, path, mask } => {
                self.files.watches().happened(&node, &path, mask);
                self.files.watches().end_if_gone(&node);
            }
            Closed::Locks { node, number } => {
                node.locks().release_file(&self.store, node.record(), number);
                node.leases().forget(number);
            }
        }
    }
}

/// Makes the reply to a Linux call, whose result is word 0.
pub fn answer(result: Result<u64, Errno>) -> Message {
    let mut reply = Message::new(abi::message::REPLY);
    reply.words[0] = abi::Word::to_word(result);
    reply
}

/// A call that goes on when its file system has replied.
struct Asked<F> {
    base: &'static Base,
    who: Endpoint,
    then: F,
}

impl<F: FnOnce(Result<Message, Errno>) -> Result<Flow, Errno>> Continuation for Asked<F> {
    fn replied(self: Box<Self>, reply: Result<Message, Errno>) {
        let Asked { base, who, then } = *self;
        let flow = then(Peers::file_system_replied(reply));
        base.go_on(who, flow.unwrap_or_else(|error| Flow::Done(Err(error))));
    }
}

impl Pages for Base {
    fn take(&self) -> Option<u16> {
        self.store.new_page()
    }

    fn give(&self, page: u16) {
        self.store.release_page(page);
    }

    fn link(&self, before: u16, page: u16) {
        self.store.link_page(before, page);
    }

    fn fill(&self, page: u16, at: usize, bytes: usize, from: Endpoint, address: u64) -> Result<(), Errno> {
        self.store.fetch(page, at, bytes, from, address).map_err(user::fault)
    }

    fn drain(&self, page: u16, at: usize, bytes: usize, to: Endpoint, address: u64) -> Result<(), Errno> {
        self.store.store(page, at, bytes, to, address).map_err(user::fault)
    }

    fn write(&self, page: u16, at: usize, bytes: &[u8]) {
        self.store.write(page, at, bytes);
    }

    fn read(&self, page: u16, at: usize, into: &mut [u8]) {
        self.store.read(page, at, into);
    }

    fn save(&self, pipe: u16, record: &PipeRecord) {
        self.store.set_pipe(pipe, record);
    }

    fn save_extent(&self, pipe: u16, extent: Extent) {
        self.store.set_pipe_extent(pipe, extent);
    }

    fn end(&self, pipe: u16) {
        self.store.release_pipe(pipe);
    }
}

impl World for Base {
    fn copy(&self, from: Endpoint, from_address: u64, to: Endpoint, to_address: u64, bytes: u64) -> Result<(), Errno> {
        self.store.has_moved();
        copy::between(from, from_address, to, to_address, bytes)
    }

    fn is_mapped(&self, who: Endpoint, address: u64) -> bool {
        user::fetch(who, address, &mut [0]).is_ok()
    }

    fn note_moved(&self, who: Endpoint, moved: u64) {
        self.store.note(who, Note::Moved(moved));
    }

    fn finish(&self, who: Endpoint, result: Result<u64, Errno>) {
        if let Some(caller) = self.callers.get(who) {
            caller.set_call(Call::None);
            self.answer(who, result);
        }
    }

    fn report(&self, to: Endpoint, results: &Results, name: &Address, flags: u32) -> Result<(), Errno> {
        match *results {
            Results::Nowhere => Ok(()),
            Results::Name { address, length_address } => address::store_sender(to, name, address, length_address),
            Results::Header { address, name_address, name_bytes, flags: asked } => {
                header::store(to, address, (name_address, name_bytes), name, flags | asked, 0)
            }
        }
    }

    fn new_ancillary(&self, record: AncillaryRecord) -> Result<Kept<AncillaryRecord>, Errno> {
        self.store.new_ancillary(record)
    }

    fn discard(&self, unread: VecDeque<Ancillary>) {
        self.closing.discard(unread);
    }

    fn broken(&self, who: Endpoint, moved: u64) {
        if let Some(caller) = self.callers.get(who) {
            caller.set_call(Call::Signalled(moved));
            self.notices.signal(who, SIGPIPE);
        }
    }
}
