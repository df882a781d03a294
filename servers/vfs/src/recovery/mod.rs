//! The start of a successor: rebuilds the heap from the preserved records. The file is long because each kind of record is restored here.
//!
//! Two steps. What the records say is restored at once, so that pm's requests can be answered; records that are corrupt or refer to nothing are
//! left out and reported. Then the file systems are told which nodes are in use, and asked for the attributes of each; calls of programs wait
//! until that is done. Names are looked up again when they are needed.

#![expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]

mod contexts;
mod owners;
mod sockets;
#[cfg(test)]
mod tests;

use crate::{
    base::{Base, closing::Closing},
    callers::Caller,
    callers::lives::{Identity, Life},
    calls::mmap::serve_vm,
    exec,
    files::{
        lend_uses,
        loops::LoopDevice,
        mount::{Another, Mount, NewMount},
        pages,
        vnode::{NodeRef, Running},
        watches::Inotify,
    },
    keep::{
        Kept,
        records::{
            BLOCK, FileEventRecord, LIST, LockRecord, MountRecord, NO_PLACE, NOWHERE, NodeRecord, OwnerRecord,
            TableRecord, ThreadRecord, TimerRecord,
        },
    },
    mounts,
    objects::{self, Inheritance, OpenFile, character::Character, epoll::epoll_of, inotify::InotifyFile},
    peers::{Role, Service},
    pipes::{Pipe, ring::Ring},
    processes::{
        Place, Process,
        descriptors::{DESCRIPTORS_MAX, Descriptors},
        directories::Directories,
        file_table::FileTable,
    },
    queues::Queue,
    sockets::Socket,
    state::Vfs,
};
use abi::{
    Errno, chardev,
    endpoint::slot,
    fs::{self, Use},
    info,
};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    string::String,
    vec::Vec,
};
use sys::{
    fallible::collect,
    grant::{Access, GrantedBuffer},
};

/// A restoration in progress.
struct Restoration {
    vfs: &'static Vfs,
    mounts: BTreeMap<u16, Rc<Mount>>,
    pipes: BTreeMap<u16, Rc<Pipe>>,
    queues: BTreeMap<u16, Rc<Queue>>,
    sockets: BTreeMap<u16, Rc<Socket>>,
    /// The first of what goes with the bytes of pipes, by their places.
    laden: BTreeMap<u16, u16>,
    /// Those of them whose receiving sockets have been found, that have not been looked through yet.
    received: Vec<Rc<Pipe>>,
    files: BTreeMap<u32, Rc<OpenFile>>,
    tables: BTreeMap<u16, Rc<FileTable>>,
    directories: BTreeMap<u16, Rc<Directories>>,
    /// Records that had to be left out.
    lost: usize,
}

/// Restores a predecessor's state. Until [`finish`] has run, calls of programs wait. Returns the terminals that are open.
pub fn restore(vfs: &'static Vfs) -> Vec<Use> {
    vfs.startup().postpone();
    let mut restoration = Restoration {
        vfs,
        mounts: BTreeMap::new(),
        pipes: BTreeMap::new(),
        queues: BTreeMap::new(),
        sockets: BTreeMap::new(),
        laden: BTreeMap::new(),
        received: Vec::new(),
        files: BTreeMap::new(),
        tables: BTreeMap::new(),
        directories: BTreeMap::new(),
        lost: vfs.base().store().damaged(),
    };
    restoration.run();
    vfs.base().mappings().restore_maps();
    restoration.restore_dirty();
    if restoration.lost > 0 {
        sys::log!("{} corrupt records of the predecessor are left out", restoration.lost);
    }
    vfs.base().store().settle();
    vfs.base().store().commit();
    restoration.terminals()
}

/// The second step, and the work for pm that the predecessor had in progress.
pub async fn finish(vfs: &'static Vfs, terminals: Vec<Use>) {
    let base = vfs.base();
    resume_work(vfs);
    if let Err(error) = claim_terminals(base, terminals).await {
        sys::log!("the driver of terminals refuses the list of those that are open: {error}");
    }
    for service in base.peers().file_systems() {
        if let Err(error) = claim_nodes(base, service).await {
            sys::log!("the file system in slot {} refuses the list of nodes in use: {error}", service.slot());
        }
    }
    if let Err(error) = base.files().settle_all(None).await {
        sys::log!("dirty pages of the predecessor are not written back yet: {error}");
    }
    let mounts = base.files().mounts.all();
    for node in mounts.iter().flat_map(|mount| mount.nodes()) {
        match base.files().stat(&node).await {
            Ok(stat) => node.refresh(&stat),
            // Of procfs: its process has ended meanwhile.
            Err(_) if node.mount().is_volatile() => {}
            Err(error) => sys::log!("node {:#x} of {} is lost: {error}", node.number(), node.mount().source()),
        }
    }
    all_have_come(vfs).await;
    vfs.startup().recover().await;
    base.mappings().release_restored_maps().await;
}

/// Waits until the calls that the predecessor had in progress have come again, so that they can be begun in the order that they need
/// (`calls::repeated`): the messages of services are received before those of programs.
async fn all_have_come(vfs: &Vfs) {
    const PAUSE_NS: u64 = 100_000;
    let is_to_come = |caller: &Caller| {
        let waits = || sys::info::wait(caller.endpoint);
        caller.call_number() == 0
            && waits().is_ok_and(|(state, on)| state == info::state::ANSWERING && on.slot() == slot::VFS)
    };
    while vfs.processes().all().iter().any(|process| is_to_come(&process.caller)) {
        vfs.base().runtime().sleep_ns(PAUSE_NS).await;
    }
}

fn resume_work(vfs: &'static Vfs) {
    let (base, startup) = (vfs.base(), vfs.startup());
    let global = base.store().global();
    if global.mounted {
        startup.mounted().reach();
    }
    if global.sync != 0 {
        mounts::begin_sync(base, global.sync == 2);
    }
    if let Err(error) = claim_images(vfs) {
        sys::log!("images that the predecessor held are held for ever: {error}");
    }
    let mounts = base.files().mounts.all();
    for process in vfs.processes().all() {
        if let Some(record) = base.store().exec(process.caller.endpoint.slot()) {
            let program = mounts.iter().find(|mount| mount.record() == record.program.mount);
            let program = program.map(|mount| mount.restore(record.program.node));
            exec::resume(base, startup, &process, &record, program);
        }
    }
    serve_vm(base, vfs.processes(), startup);
}

/// Tells vm which images are held for an exec that is in progress.
fn claim_images(vfs: &Vfs) -> Result<(), Errno> {
    let processes = vfs.processes().all();
    let execs = processes.iter().filter_map(|process| vfs.base().store().exec(process.caller.endpoint.slot()));
    pages::claim_images(&collect(execs.flat_map(|exec| exec.images).filter(|image| *image != 0))?)
}

/// Tells a file system which of its nodes are in use.
async fn claim_nodes(base: &Base, service: Service) -> Result<(), Errno> {
    let mounts = base.files().mounts.all();
    let nodes = mounts.iter().filter(|mount| mount.service() == service).flat_map(|mount| mount.nodes());
    // A file counts once for each file system, however many mounts show it.
    let inodes: BTreeMap<(u64, u64), u64> =
        nodes.map(|node| ((node.number(), node.file_system().device()), node.uses())).collect();
    let (lent, bytes) = lend_uses(service, inodes.iter().map(|((number, _), uses)| (*number, *uses)))?;
    base.peers().ask(service, fs::SetUses { grant: lent.id(), bytes }.message()).await.map(drop)
}

/// Tells the driver of terminals which are open: what programs closed, or were opening, when the predecessor died is not.
async fn claim_terminals(base: &Base, terminals: Vec<Use>) -> Result<(), Errno> {
    let Ok(service) = base.devices().terminals().and_then(|name| base.peers().connect(name, Role::Driver)) else {
        return Ok(());
    };
    let bytes: Vec<u8> =
        terminals.iter().flat_map(|open| [open.node.to_le_bytes(), open.count.to_le_bytes()].concat()).collect();
    let length = bytes.len() as u64;
    let lent = GrantedBuffer::new(bytes, service.endpoint(), Access::Read)?;
    base.peers().ask(service, chardev::SetUses { grant: lent.id(), bytes: length }.message()).await.map(drop)
}

impl Restoration {
    /// The terminals that are open, by minor.
    fn terminals(&self) -> Vec<Use> {
        let name = self.vfs.base().devices().terminals().unwrap_or_default();
        let is_terminal = |service| {
            let driver = self.vfs.base().peers().name(service);
            driver.is_some_and(|driver| driver.as_str() == name)
        };
        let characters = self.files.values().filter_map(|file| file.object::<Character>());
        let mut counts = BTreeMap::new();
        for character in characters.filter(|character| is_terminal(character.service)) {
            *counts.entry(character.minor).or_insert(0) += 1;
        }
        counts.into_iter().map(|(node, count)| Use { node, count }).collect()
    }

    fn run(&mut self) {
        let store = self.vfs.base().store().clone();
        for peer in store.peers() {
            if self.vfs.base().peers().restore(&peer).is_err() {
                self.lost += 1;
            }
        }
        for (container, limits) in store.limits() {
            self.lost += usize::from(self.vfs.base().apply_limits(container, &limits).is_err());
        }
        self.restore_mounts();
        self.lost += self.vfs.base().loops().restore(&store, |record| self.node(record));
        self.restore_queues();
        for thread in store.threads() {
            if let Err(Errno(_)) = self.restore_thread(&thread) {
                self.lost += 1;
            }
        }
        self.restore_ancillaries();
        let living: BTreeSet<Identity> = self.vfs.processes().all().iter().map(|one| one.caller.identity()).collect();
        self.vfs.base().lives().settle(|identity| living.contains(identity));
        self.restore_contexts(&living);
        self.connect_datagrams();
        let locks: Vec<(u16, LockRecord)> = store.locks().collect();
        locks.iter().for_each(|(place, lock)| self.restore_lock(*place, lock));
        let owners: Vec<(u16, OwnerRecord)> = store.owners().collect();
        owners.into_iter().for_each(|(place, owner)| self.restore_owner(place, owner));
        self.restore_watches();
        // Last: a registration looks at once whether its file is ready.
        self.restore_interests();
        self.vfs.base().loops().settle();
    }

    /// Restores the dirty pages of files.
    fn restore_dirty(&mut self) {
        let store = self.vfs.base().store().clone();
        for (place, record) in store.dirty_pages() {
            let node = self.node(record.node);
            let is_restored = self.vfs.base().files().restore_dirty(node.as_ref(), place, &record);
            self.lost += usize::from(!is_restored);
        }
    }

    /// Restores the registrations of epolls. Those of open files that have ended are none.
    fn restore_interests(&mut self) {
        let store = self.vfs.base().store().clone();
        let files: BTreeMap<u64, &Rc<OpenFile>> = self.files.values().map(|file| (file.number(), file)).collect();
        for (place, record, terms) in store.interests() {
            let (Some(epoll), Some(target)) = (files.get(&record.epoll), files.get(&record.target)) else { continue };
            store.claim_interest(place, record.user);
            let kept = Kept::new(&store, place, record);
            let restored = epoll_of(epoll).is_some_and(|epoll| epoll.restore(kept, terms, target).is_ok());
            self.lost += !restored as usize;
        }
    }

    /// Restores the watches of inotify instances, and their events in order. Those of instances that have ended are none.
    fn restore_watches(&mut self) {
        let store = self.vfs.base().store().clone();
        let instances: BTreeMap<u64, Rc<Inotify>> = self.files.values().filter_map(instance_of).collect();
        instances.iter().for_each(|(number, instance)| instance.set_number(*number));
        for (place, record) in store.watches() {
            let Some(instance) = instances.get(&record.instance) else { continue };
            store.claim_watch(place, &record);
            let restored = self.node(record.node).ok_or(Errno::EIO).and_then(|node| {
                self.vfs.base().files().watches().restore(instance, Kept::new(&store, place, record), node)
            });
            self.lost += restored.is_err() as usize;
        }
        let mut events: BTreeMap<u64, Vec<Kept<FileEventRecord>>> = BTreeMap::new();
        for (place, record) in store.file_events().filter(|(_, record)| instances.contains_key(&record.instance)) {
            store.claim_file_event(place, &record);
            events.entry(record.instance).or_default().push(Kept::new(&store, place, record));
        }
        for (number, mut events) in events {
            events.sort_by_key(|event| event.get().sequence);
            self.lost += instances[&number].restore_events(events).is_err() as usize;
        }
        self.lost += instances.values().filter(|instance| instance.restore_spare().is_err()).count();
    }

    fn restore_mounts(&mut self) {
        let store = self.vfs.base().store().clone();
        let mut records: Vec<(u16, MountRecord)> = store.mounts().collect();
        // Each is behind that which it is over, since all roots are first.
        records.sort_by_key(|(place, record)| (record.covers != NodeRecord::NONE, *place));
        for (place, record) in &records {
            store.claim_mount(*place, record);
            let known = self.mounts.values().find(|mount| mount.device() == record.device);
            if let Some(known) = known {
                let another = Another {
                    target: store.text(record.target),
                    subtree: store.text(record.subtree),
                    flags: record.flags.into(),
                    namespace: record.namespace,
                    users: record.users,
                    locked: record.locked,
                };
                let mount = Mount::another(known.file_system(), another);
                self.restore_mount(*place, record, mount);
                continue;
            }
            let service = Service::at(record.service as usize);
            let name = self.vfs.base().peers().name(service);
            let source = String::from_utf8_lossy(&store.text(record.source)).into_owned();
            // The source of one without device is its type; others are named after their service.
            let kind = match name.as_ref() {
                _ if record.volatile => source.clone(),
                _ if record.journal => mounts::WITH_JOURNAL.into(),
                name => mounts::kind_of(name.map_or("?", |name| name.as_str())).into(),
            };
            let mount = Mount::new(
                NewMount {
                    service,
                    kind,
                    source,
                    target: store.text(record.target),
                    flags: record.flags.into(),
                    namespace: record.namespace,
                    users: record.users,
                    volatile: record.volatile,
                    fixed: record.fixed,
                    in_memory: record.in_memory,
                    device: record.device,
                },
                self.vfs.base().shared().clone(),
            );
            let file_system = mount.file_system();
            file_system.set_read_only(record.read_only);
            file_system.set_root(record.file_system_root);
            // What was written since the last sync is not known.
            mount.mark_dirty();
            file_system.note_all_mapped();
            mounts::use_disk(self.vfs.base(), &mount);
            self.restore_mount(*place, record, mount);
        }
        for (place, record) in records.iter().filter(|(_, record)| !record.detached) {
            let mount = self.mounts[place].clone();
            match self.node(record.covers) {
                Some(covered) => mount.cover(covered),
                None => mount.become_root(),
            }
        }
    }

    fn restore_mount(&mut self, place: u16, record: &MountRecord, mount: Rc<Mount>) {
        mount.preserve_at(place);
        if record.detached {
            mount.set_root_number(record.root);
        } else {
            mount.set_root(mount.restore(record.root));
        }
        self.mounts.insert(place, mount.clone());
        self.vfs.base().files().mounts.add(mount);
    }

    /// Restores queues. Unlinked ones end with the restoration, unless a descriptor refers to them.
    fn restore_queues(&mut self) {
        let store = self.vfs.base().store().clone();
        for (place, record) in store.queues() {
            store.claim_queue(place, &record);
            let Some(queue) = Queue::restore(&store, place, record) else {
                self.lost += 1;
                continue;
            };
            if record.named {
                self.vfs.queues().add(store.text(record.name), queue.clone());
            }
            self.queues.insert(place, queue);
        }
        let mut signals: Vec<_> = store.signals().collect();
        signals.sort_unstable_by_key(|(_, record)| record.number);
        for (place, record) in signals {
            store.claim_signal(place, record.user());
            self.vfs.base().notices().preserved(place, &record);
        }
    }

    fn node(&self, record: NodeRecord) -> Option<NodeRef> {
        Some(self.mounts.get(&record.mount)?.restore(record.node))
    }

    fn restore_thread(&mut self, record: &ThreadRecord) -> Result<(), Errno> {
        let table = self.table(record.table).ok_or(Errno::EIO)?;
        let directories = match record.directories {
            NOWHERE => None,
            place => Some(self.directories(place).ok_or(Errno::EIO)?),
        };
        let store = self.vfs.base().store();
        let groups = store.text(record.groups);
        let user = record.ids[2];
        store.claim_text(record.groups, user);
        let groups = groups.as_chunks().0.iter().map(|group| u32::from_le_bytes(*group)).collect();
        let process = Process::new(Caller::new(store, *record, groups), table, directories);
        process.restore_program(self.node(record.program).map(Running::restore));
        if let Some(exec) = self.vfs.base().store().exec(record.endpoint.slot()) {
            store.claim_text(exec.text, user);
        }
        self.vfs.processes().insert(Rc::new(process)).map(drop)
    }

    fn table(&mut self, place: u16) -> Option<Rc<FileTable>> {
        if let Some(known) = self.tables.get(&place) {
            return Some(known.clone());
        }
        let store = self.vfs.base().store().clone();
        let record = store.table(place)?;
        let mut descriptors = Descriptors::default();
        let (blocks, lists) = self.blocks(&record);
        store.claim_table(place, &lists, &blocks);
        for (index, &block) in blocks.iter().enumerate().filter(|(_, block)| **block != NO_PLACE) {
            for number in 0..BLOCK {
                let Some(descriptor) = store.descriptor(block, number) else { continue };
                match self.file(descriptor.file) {
                    Some(file) => {
                        let restored = descriptors.replace(index * BLOCK + number, file, descriptor.close_on_exec);
                        self.lost += restored.is_err() as usize;
                    }
                    None => self.lost += 1,
                }
            }
        }
        let table = FileTable::restore(&store, place, &record, descriptors, (blocks, lists)).ok()?;
        self.tables.insert(place, table.clone());
        Some(table)
    }

    /// The blocks of a descriptor table, and the lists of those that its record does not have itself.
    fn blocks(&self, record: &TableRecord) -> (Vec<u32>, Vec<u32>) {
        let store = self.vfs.base().store();
        let mut blocks = record.blocks.to_vec();
        let mut lists = Vec::new();
        let mut next = record.list;
        // A list that something has written into may refer to one before it.
        while let Some(list) = store.list(next).filter(|_| lists.len() < DESCRIPTORS_MAX / BLOCK / LIST + 1) {
            lists.push(next);
            blocks.extend_from_slice(&list.blocks);
            next = list.next;
        }
        let end = blocks.iter().rposition(|place| *place != NO_PLACE).map_or(0, |last| last + 1);
        blocks.truncate(end);
        (blocks, lists)
    }

    fn file(&mut self, place: u32) -> Option<Rc<OpenFile>> {
        if let Some(known) = self.files.get(&place) {
            return Some(known.clone());
        }
        let store = self.vfs.base().store();
        let found = store.file(place)?;
        store.claim_file(place, &found.0);
        let node = self.node(found.0.node);
        let file = objects::restore(place, found, node, self)?;
        self.files.insert(place, file.clone());
        Some(file)
    }

    fn directories(&mut self, place: u16) -> Option<Rc<Directories>> {
        if let Some(known) = self.directories.get(&place) {
            return Some(known.clone());
        }
        let store = self.vfs.base().store().clone();
        let record = store.directories(place)?;
        let directory = |(node, text)| -> Option<Place> {
            let path = store.text(text);
            // A path that something has written into must not lead anybody astray.
            let path: &[u8] = if path.first() == Some(&b'/') { &path } else { b"/" };
            Some(Place { node: self.node(node)?, path: path.into() })
        };
        let both = (directory(record.root)?, directory(record.working)?);
        store.claim_directories(place, &record);
        let directories = Directories::restore(Kept::new(&store, place.into(), record), both.0, both.1);
        self.directories.insert(place, directories.clone());
        Some(directories)
    }
}

/// The inotify instance of an open file, with the file's number.
fn instance_of(file: &Rc<OpenFile>) -> Option<(u64, Rc<Inotify>)> {
    Some((file.number(), file.object::<InotifyFile>()?.0.clone()))
}

impl Inheritance for Restoration {
    fn pipe(&mut self, place: u16) -> Option<Rc<Pipe>> {
        if let Some(known) = self.pipes.get(&place) {
            return Some(known.clone());
        }
        let store = self.vfs.base().store();
        let record = store.pipe(place)?;
        let ring = Ring::restore(&record, |page| store.next_page(page))?;
        let charge = self.vfs.base().pipes().restore_charge(record.user, ring.capacity()).ok()?;
        store.claim_pipe(place, ring.pages());
        let pipe = Rc::new(Pipe::new(place, ring, charge));
        self.pipes.insert(place, pipe.clone());
        if record.extent.ancillary != NOWHERE {
            self.laden.insert(place, record.extent.ancillary);
        }
        Some(pipe)
    }

    fn has_packets(&mut self, pipe: &Rc<Pipe>) {
        if self.laden.contains_key(&pipe.record()) {
            self.received.push(pipe.clone());
        }
    }

    fn queue(&mut self, place: u16) -> Option<Rc<Queue>> {
        self.queues.get(&place).cloned()
    }

    fn timer(&mut self, place: u16) -> Option<Kept<TimerRecord>> {
        let store = self.vfs.base().store();
        let record = store.timer(place)?;
        store.claim_timer(place, record.user);
        Some(Kept::new(store, place.into(), record))
    }

    fn socket(&mut self, place: u16) -> Option<Rc<Socket>> {
        self.restore_socket(place)
    }

    /// Taken for one that lives, until all threads are known.
    fn life(&mut self, identity: Identity) -> Rc<Life> {
        self.vfs.base().lives().of(identity, || true)
    }

    fn loop_device(&mut self, number: u64) -> Option<Rc<LoopDevice>> {
        self.vfs.base().loops().device(number).ok()
    }

    fn has_inode(&mut self, inode: u64) {
        self.vfs.base().pipes().has_inode(inode);
    }

    fn closing(&self) -> &Rc<Closing> {
        self.vfs.base().closing()
    }
}
