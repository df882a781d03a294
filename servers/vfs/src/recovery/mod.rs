//! What a vfs does first when it comes after another: makes the heap from the preserved records again.
//!
//! Two steps. What the records say is restored at once, so that pm's requests can be answered; records that are damaged or refer to nothing are
//! left out and reported. Then the file systems are told which nodes are in use, and asked for the attributes of each; calls of programs wait
//! until that is done. Names are looked up again when they are needed.

pub mod repeated;
#[cfg(test)]
mod tests;

use crate::{
    files::{permission::Credentials, vnode::NodeRef},
    keep::{
        Used,
        records::{BLOCK, FileRecord, Kind, LockRecord, MountRecord, NOWHERE, NodeRecord, ThreadRecord},
    },
    mounts::{Mount, NewMount, mounting::shown_kind},
    objects::{Object, OpenFile, timer::Timer},
    peers::Service,
    pipes::{Pipe, ring::Ring},
    processes::{Place, Process, descriptors::Descriptors, directories::Directories, file_table::FileTable},
    queues::Queue,
    sockets::Socket,
    state::Vfs,
};
use abi::{Errno, fs};
use alloc::{collections::BTreeMap, rc::Rc, string::String, vec::Vec};
use core::cell::RefCell;
use sys::grant::{Access, GrantedBuffer};

/// A restoration under way.
struct Restoration {
    vfs: &'static Vfs,
    mounts: BTreeMap<u16, Rc<Mount>>,
    pipes: BTreeMap<u16, Rc<Pipe>>,
    queues: BTreeMap<u16, Rc<Queue>>,
    files: BTreeMap<u16, Rc<OpenFile>>,
    tables: BTreeMap<u16, Rc<FileTable>>,
    directories: BTreeMap<u16, Rc<Directories>>,
    used: Used,
    /// Records that had to be left out.
    lost: usize,
}

impl Vfs {
    /// Restores a predecessor's state. Until [`Vfs::finish_recovery`] has run, calls of programs wait.
    pub fn restore(&'static self) {
        self.recovering.set(true);
        let mut restoration = Restoration {
            vfs: self,
            mounts: BTreeMap::new(),
            pipes: BTreeMap::new(),
            queues: BTreeMap::new(),
            files: BTreeMap::new(),
            tables: BTreeMap::new(),
            directories: BTreeMap::new(),
            used: Used::default(),
            lost: self.store.damaged(),
        };
        restoration.run();
        self.restore_maps();
        if restoration.lost > 0 {
            sys::log!("{} records of the predecessor are damaged and left out", restoration.lost);
        }
        self.store.rebuild(&restoration.used);
        self.store.commit();
    }

    /// The second step, and what the predecessor had in hand for pm.
    pub async fn finish_recovery(&'static self) {
        self.resume_work();
        for service in self.peers.file_systems() {
            if let Err(error) = self.claim_nodes(service).await {
                sys::log!("the file system in slot {} does not take the nodes in use: {error}", service.slot());
            }
        }
        let mounts = self.mounts.borrow().clone();
        for node in mounts.iter().flat_map(|mount| mount.nodes()) {
            match self.stat(&node).await {
                Ok(stat) => node.refresh(&stat),
                // Of procfs: its process has ended meanwhile.
                Err(_) if node.mount.volatile => {}
                Err(error) => sys::log!("node {:#x} of {} is lost: {error}", node.node, node.mount.source),
            }
        }
        self.recovering.set(false);
        self.recovery_watchers.fire();
        self.release_restored_maps().await;
    }

    /// Waits until a predecessor's state is restored.
    pub async fn wait_recovered(&self) {
        if !self.recovering.get() {
            return;
        }
        let event = Rc::new(crate::events::Event::default());
        self.recovery_watchers.add(&event);
        while self.recovering.get() {
            event.wait().await;
        }
        self.recovery_watchers.remove(&event);
    }

    fn resume_work(&'static self) {
        let global = self.store.global();
        if global.mounted {
            self.set_mounted();
        }
        if global.sync != 0 {
            self.begin_sync(global.sync == 2);
        }
        for process in self.processes.all() {
            if let Some(record) = self.store.exec(process.endpoint.slot()) {
                self.resume_exec(&process, &record);
            }
        }
        self.serve_mappings();
        self.serve_shared_maps();
    }

    /// Tells a file system which of its nodes are in use.
    async fn claim_nodes(&self, service: Service) -> Result<(), Errno> {
        let mounts = self.mounts.borrow().clone();
        let nodes = mounts.iter().filter(|mount| mount.service == service).flat_map(|mount| mount.nodes());
        let bytes: Vec<u8> =
            nodes.flat_map(|node| [node.node.to_le_bytes(), node.uses().to_le_bytes()].concat()).collect();
        let length = bytes.len() as u64;
        let lent = GrantedBuffer::new(bytes, service.endpoint(), Access::Read)?;
        self.ask(service, fs::SetUses { grant: lent.id(), bytes: length }.message()).await.map(drop)
    }
}

impl Restoration {
    fn run(&mut self) {
        let store = self.vfs.store.clone();
        for peer in store.peers() {
            if self.vfs.peers.restore(&self.vfs.runtime, &peer).is_err() {
                self.lost += 1;
            }
        }
        self.restore_mounts();
        self.restore_queues();
        for thread in store.threads() {
            if let Err(Errno(_)) = self.restore_thread(&thread) {
                self.lost += 1;
            }
        }
        let locks: Vec<(u16, LockRecord)> = store.locks().collect();
        locks.iter().for_each(|(place, lock)| self.restore_lock(*place, lock));
    }

    fn restore_mounts(&mut self) {
        let store = self.vfs.store.clone();
        let mut records: Vec<(u16, MountRecord)> = store.mounts().collect();
        // The root file system is the first.
        records.sort_by_key(|(place, record)| (record.covers != NodeRecord::NONE, *place));
        for (place, record) in &records {
            self.used.texts.extend([record.source, record.target]);
            let service = Service::at(record.service as usize);
            let name = self.vfs.peers.name(service);
            let mount = Mount::new(
                NewMount {
                    service,
                    kind: shown_kind(name.as_ref().map_or("?", |name| name.as_str())).into(),
                    source: String::from_utf8_lossy(&store.text(record.source)).into_owned(),
                    target: store.text(record.target),
                    flags: record.flags,
                    volatile: record.volatile,
                    in_memory: record.in_memory,
                    device: record.device,
                },
                self.vfs.shared.clone(),
            );
            mount.record.set(*place);
            // What was written since the last sync is not known.
            mount.dirty.set(!record.volatile && !record.in_memory);
            let root = mount.restore(record.root);
            mount.root.replace(Some(root));
            self.mounts.insert(*place, mount.clone());
            self.vfs.mounts.borrow_mut().push(mount);
        }
        for (place, record) in &records {
            if let Some(covered) = self.node(record.covers) {
                let mount = self.mounts[place].clone();
                mount.covers.replace(Some(covered.clone()));
                covered.covered.replace(Some(mount));
            }
        }
    }

    /// Queues without a name end with this restoration, unless somebody has them open.
    fn restore_queues(&mut self) {
        let store = self.vfs.store.clone();
        for (place, record) in store.queues() {
            let Some(queue) = Queue::restore(&store, place, record) else {
                self.lost += 1;
                continue;
            };
            self.used.queues.insert(place);
            self.used.texts.push(record.name);
            if record.named {
                self.vfs.queues.borrow_mut().insert(store.text(record.name), queue.clone());
            }
            self.queues.insert(place, queue);
        }
        for (place, record) in store.signals() {
            self.used.signals.insert(place);
            self.vfs.put_message_event(place, &record);
        }
    }

    fn node(&self, record: NodeRecord) -> Option<NodeRef> {
        Some(self.mounts.get(&record.mount)?.restore(record.node))
    }

    fn restore_thread(&mut self, record: &ThreadRecord) -> Result<(), Errno> {
        let table = self.table(record.table).ok_or(Errno::EIO)?;
        let mut process = Process::new(&self.vfs.store, record.endpoint, record.pid, table);
        if record.directories != NOWHERE {
            process.directories = RefCell::new(Some(self.directories(record.directories).ok_or(Errno::EIO)?));
        }
        let groups = self.vfs.store.text(record.groups);
        self.used.texts.push(record.groups);
        let [euid, egid, uid, gid] = record.ids;
        let groups = groups.as_chunks().0.iter().map(|group| u32::from_le_bytes(*group)).collect();
        process.credentials = RefCell::new(Rc::new(Credentials { euid, egid, uid, gid, groups }));
        process.saved_groups.set(record.groups);
        process.session.set(record.session as u64);
        process.group.set(record.group as u64);
        process.first.set(record.first);
        if let Some(exec) = self.vfs.store.exec(record.endpoint.slot()) {
            self.used.texts.push(exec.text);
        }
        self.vfs.processes.insert(Rc::new(process)).map(drop)
    }

    fn table(&mut self, place: u16) -> Option<Rc<FileTable>> {
        if let Some(known) = self.tables.get(&place) {
            return Some(known.clone());
        }
        let store = self.vfs.store.clone();
        let record = store.table(place)?;
        let mut descriptors = Descriptors::default();
        for (index, &block) in record.blocks.iter().enumerate().filter(|(_, block)| **block != NOWHERE) {
            self.used.blocks.insert(block);
            for number in 0..BLOCK {
                let Some(descriptor) = store.descriptor(block, number) else { continue };
                match self.file(descriptor.file) {
                    Some(file) => {
                        let number = (index * BLOCK + number) as i32;
                        let _ = descriptors.replace(number, file, descriptor.close_on_exec);
                    }
                    None => self.lost += 1,
                }
            }
        }
        self.used.tables.insert(place);
        let table = FileTable::restore(&store, place, &record, descriptors);
        self.tables.insert(place, table.clone());
        Some(table)
    }

    fn file(&mut self, place: u16) -> Option<Rc<OpenFile>> {
        if let Some(known) = self.files.get(&place) {
            return Some(known.clone());
        }
        let found = self.vfs.store.file(place)?;
        let object = self.object(&found.0)?;
        self.used.files.insert(place);
        self.used.texts.push(found.0.path);
        let file = OpenFile::restore(&self.vfs.closing, object, place, found);
        self.files.insert(place, file.clone());
        Some(file)
    }

    fn object(&mut self, record: &FileRecord) -> Option<Object> {
        let node = self.node(record.node);
        Some(match record.kind {
            Kind::Node => Object::Node(node?),
            Kind::Null => Object::Null(node?),
            Kind::Path => Object::Path(node?),
            Kind::Device { service, minor } => {
                Object::Device { node: node?, service: Service::at(service as usize), minor: minor as u64 }
            }
            Kind::Block { service, minor, bytes } => {
                Object::Block { node: node?, service: Service::at(service as usize), minor: minor as u64, bytes }
            }
            Kind::Pipe { pipe, inode, reads, writes } => {
                let pipe = self.pipe(pipe)?;
                pipe.open(reads, writes);
                if let Some(node) = &node {
                    *node.fifo.borrow_mut() = Rc::downgrade(&pipe);
                }
                self.vfs.next_pipe.set(self.vfs.next_pipe.get().max(inode + 1));
                Object::Pipe { pipe, node, inode, reads, writes }
            }
            Kind::Queue { queue } => Object::Queue(self.queues.get(&queue)?.clone()),
            Kind::Socket { incoming, outgoing, inode, reads, writes } => {
                self.vfs.next_pipe.set(self.vfs.next_pipe.get().max(inode + 1));
                Object::Socket(Socket::new(self.pipe(incoming)?, self.pipe(outgoing)?, inode, (reads, writes)))
            }
            Kind::Timer { timer } => {
                let store = &self.vfs.store;
                self.used.timers.insert(timer);
                Object::Timer(Timer::restore(store, timer, store.timer(timer)?))
            }
        })
    }

    fn pipe(&mut self, place: u16) -> Option<Rc<Pipe>> {
        if let Some(known) = self.pipes.get(&place) {
            return Some(known.clone());
        }
        let store = self.vfs.store.clone();
        let ring = Ring::restore(&store.pipe(place)?, |page| store.next_page(page))?;
        self.used.pipes.insert(place);
        self.used.pages.extend(ring.pages());
        let pipe = Rc::new(Pipe::new(place, ring));
        self.pipes.insert(place, pipe.clone());
        Some(pipe)
    }

    fn directories(&mut self, place: u16) -> Option<Rc<Directories>> {
        if let Some(known) = self.directories.get(&place) {
            return Some(known.clone());
        }
        let store = self.vfs.store.clone();
        let record = store.directories(place)?;
        let directory = |(node, text)| -> Option<Place> {
            let path = store.text(text);
            // A path that something has written into must not lead anybody astray.
            let path: &[u8] = if path.first() == Some(&b'/') { &path } else { b"/" };
            Some(Place { node: self.node(node)?, path: path.into() })
        };
        let both = (directory(record.root)?, directory(record.working)?);
        self.used.directories.insert(place);
        self.used.texts.extend([record.root.1, record.working.1]);
        let directories = Directories::restore(&store, place, &record, both);
        self.directories.insert(place, directories.clone());
        Some(directories)
    }

    /// A lock whose owner has ended, or of a file that nobody has open, is none.
    fn restore_lock(&mut self, place: u16, record: &LockRecord) {
        let owner = self.files.values().find(|file| record.whole && file.number == record.owner);
        let held = owner.is_some() || !record.whole && self.tables.values().any(|table| table.number == record.owner);
        self.used.locks.insert(place);
        match self.node(record.node) {
            Some(node) if held => {
                self.vfs.restore_lock(&node, place, record);
                owner.into_iter().for_each(|file| file.flocked.set(true));
            }
            _ => self.vfs.store.release_lock(place),
        }
    }
}
