//! Requests to file systems, and what their replies change in vnodes and the name cache. The file is long because each request has a function.
//!
//! Each function makes one request of `abi::fs`. Callers have checked types and permissions.

use super::{
    Files, Mount,
    dirty::Leaving,
    known::{Change, Moment},
    pages,
    stat::{STAT_BYTES, STATFS_BYTES, Stat},
    vnode::{Description, NodeRef},
};
use crate::{callers::Caller, pathname};
use abi::{Errno, Message, Word, fs, vm};
use alloc::{rc::Rc, vec::Vec};
use sys::fallible::{copied, filled};
use sys::grant::{Access, GrantedBuffer};

/// What a symbolic link means.
pub struct LinkTarget {
    /// The path; of a link that stands for an open file without path, its name.
    pub path: Vec<u8>,
    /// The process that it leads into (/proc/PID/exe); 0: none.
    pub process: u32,
    /// What it stands for there.
    pub meaning: LinkMeaning,
}

impl LinkTarget {
    /// The path, for whoever needs more than what it stands for. `ENAMETOOLONG`: it is that of an open file or a directory, and not known.
    pub fn text(&self, link: &NodeRef) -> Result<&[u8], Errno> {
        if link.mount().is_volatile() { pathname::known(&self.path) } else { Ok(&self.path) }
    }
}

/// What a link of a process in /proc stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkMeaning {
    /// What is at its path.
    Path,
    /// The open file of a descriptor.
    Descriptor(i32),
    /// What the process executes.
    Program,
}

/// What a file system has put into a buffer about a node. Its files have blocks of that size.
fn stat_in(node: &NodeRef, bytes: &[u8]) -> Stat {
    let mut stat = Stat([0; STAT_BYTES]);
    stat.0.copy_from_slice(&bytes[..STAT_BYTES]);
    stat.set_device(node.mount().device());
    node.file_system().set_block_bytes(stat.block_bytes());
    stat
}

/// A name in a request, for as long as that is in progress: in its words if it is short, else granted.
struct SentName {
    words: (u64, u64),
    _lent: Option<GrantedBuffer>,
}

/// What a request that changes names holds until its reply: the name, if that is granted, and what must not be kept meanwhile.
pub struct Changing<const N: usize> {
    _sent: SentName,
    _change: Change<N>,
}

/// The removal of a name in progress.
pub struct Removal {
    changing: Changing<2>,
    /// Uses of the file that the request gives back.
    uses: u64,
    /// Its dirty page, which nobody will need.
    leaving: Option<Leaving>,
}

/// A request for a name in progress.
struct Question {
    lent: GrantedBuffer,
    moment: Moment,
}

impl Question {
    /// Returns the node that the reply is about, and keeps its attributes.
    #[inline(never)]
    fn answered(self, mount: &Rc<Mount>, reply: &Message) -> Result<NodeRef, Errno> {
        let node = mount.adopt(Description::from(fs::Lookup::results(reply)?));
        if !mount.changes_by_itself() {
            self.moment.learn(&node, reply.source, &stat_in(&node, &self.lent.take()));
        }
        Ok(node)
    }
}

/// The error of a file system that knows no handles: those without nodes of their own do not have the request.
fn without_handles(error: Errno) -> Errno {
    if error == Errno::ENOSYS { Errno::EOPNOTSUPP } else { error }
}

impl Files {
    /// Grants the file system of this node to read a text.
    fn lend(&self, node: &NodeRef, text: Vec<u8>) -> Result<GrantedBuffer, Errno> {
        GrantedBuffer::new(text, node.service().endpoint(), Access::Read)
    }

    /// Puts a name for the file system of this node into a request, or grants it.
    fn send(&self, node: &NodeRef, name: &[u8]) -> Result<SentName, Errno> {
        if let Some(short) = fs::ShortName::new(name) {
            return Ok(SentName { words: short.words(), _lent: None });
        }
        let lent = self.lend(node, copied(name)?)?;
        Ok(SentName { words: (lent.id().to_word(), name.len() as u64), _lent: Some(lent) })
    }

    /// Grants the file system of this node to fill a buffer.
    fn lend_room(&self, node: &NodeRef, bytes: usize) -> Result<GrantedBuffer, Errno> {
        GrantedBuffer::new(filled(0, bytes)?, node.service().endpoint(), Access::Write)
    }

    /// Looks a name up in the cache: the file, or that it does not exist; `None`: the file system has to be asked.
    pub fn known(&self, directory: &NodeRef, name: &[u8]) -> Option<Option<NodeRef>> {
        if directory.mount().changes_by_itself() { None } else { self.names.borrow_mut().get(directory.serial(), name) }
    }

    /// Looks a name up (one component, not `.`); `None`: no such name.
    pub async fn lookup(&self, directory: &NodeRef, name: &[u8]) -> Result<Option<NodeRef>, Errno> {
        match self.known(directory, name) {
            Some(found) => Ok(found),
            None => self.ask_for(directory, name).await,
        }
    }

    /// [`Files::lookup`] of a name that is not known.
    pub async fn ask_for(&self, directory: &NodeRef, name: &[u8]) -> Result<Option<NodeRef>, Errno> {
        let mount = directory.mount();
        let (question, request) = self.question(directory, name)?;
        let found = match self.peers.ask(mount.service(), request).await {
            Ok(reply) => Some(question.answered(mount, &reply)?),
            Err(Errno::ENOENT) => None,
            Err(error) => return Err(error),
        };
        self.learn(directory, name, found.clone());
        Ok(found)
    }

    /// Prepares the request for a name. Not inlined into what walks a path, which finds most names in the cache.
    #[inline(never)]
    fn question(&self, directory: &NodeRef, name: &[u8]) -> Result<(Question, Message), Errno> {
        let mount = directory.mount();
        self.make_room(mount);
        // The file system puts the attributes into the place of the name.
        let room = if mount.changes_by_itself() { 0 } else { STAT_BYTES };
        let mut buffer = filled(0, name.len().max(room))?;
        buffer[..name.len()].copy_from_slice(name);
        let lent = GrantedBuffer::new(buffer, mount.service().endpoint(), Access::ReadWrite)?;
        let (bytes, room) = (name.len() as u64, room as u64);
        let request = fs::Lookup { directory: directory.number(), grant: lent.id(), bytes, room };
        let moment = Moment::now(directory, self.peers.incarnation(mount.service()));
        Ok((Question { lent, moment }, request.message()))
    }

    /// Caches what a name means. The cache must not keep a mount in use that is not in the tree any more.
    fn learn(&self, directory: &NodeRef, name: &[u8], target: Option<NodeRef>) {
        if !directory.mount().changes_by_itself() && !directory.mount().is_detached() {
            let replaced = self.names.borrow_mut().set(directory.serial(), name, target);
            drop(replaced);
        }
    }

    /// A directory has been made, and nothing in it yet: the cache will know all its names.
    pub fn is_empty(&self, directory: &NodeRef) {
        self.names.borrow_mut().set_empty(directory.serial());
    }

    /// Caches what a name means since it was changed, which is no longer what other mounts of the file system have cached.
    fn relearn(&self, directory: &NodeRef, name: &[u8], target: Option<NodeRef>) {
        self.unlearn_elsewhere(directory, name);
        self.learn(directory, name, target);
    }

    /// Removes a name from the cache.
    pub fn unlearn(&self, directory: &NodeRef, name: &[u8]) {
        self.unlearn_elsewhere(directory, name);
        let forgotten = self.names.borrow_mut().forget(directory.serial(), name);
        drop(forgotten);
    }

    /// Removes a name from the cache, as other mounts show the directory.
    fn unlearn_elsewhere(&self, directory: &NodeRef, name: &[u8]) {
        if !directory.file_system().is_shared() {
            return;
        }
        let mounts = directory.file_system().mounts();
        for other in mounts.iter().filter_map(|mount| mount.known(directory.number())) {
            let forgotten = self.names.borrow_mut().forget(other.serial(), name);
            drop(forgotten);
        }
    }

    /// The request that makes a file, directory or special file in a directory that is settled. [`Files::created`] takes its reply.
    pub fn ask_to_create(
        &self,
        directory: &NodeRef,
        name: &[u8],
        mode: u32,
        ids: u64,
        device: u64,
    ) -> Result<(Message, Changing<1>), Errno> {
        self.make_room(directory.mount());
        let sent = self.send(directory, name)?;
        let ((name_word, bytes), mode) = (sent.words, mode as u64);
        let request = fs::Create { directory: directory.number(), name: name_word, bytes, mode, ids, device };
        Ok((request.message(), Changing { _sent: sent, _change: Change::of(directory) }))
    }

    /// The file that was made, as the reply says. A directory adds a link to its parent.
    pub fn created(
        &self,
        _changing: Changing<1>,
        directory: &NodeRef,
        name: &[u8],
        reply: &Message,
    ) -> Result<NodeRef, Errno> {
        let mount = directory.mount();
        let node = mount.adopt(Description::from(fs::Create::results(reply)?));
        node.dirty().set_blank(node.size() == 0);
        mount.mark_dirty();
        if node.is_directory() {
            directory.add_link();
        }
        self.relearn(directory, name, Some(node.clone()));
        self.watches.created(directory, name, node.is_directory());
        Ok(node)
    }

    /// Makes a regular file without a name on the file system of a directory. Done again, it is another file: the one that a call of a
    /// predecessor of this vfs has made has ended with its only use.
    pub async fn create_nameless(&self, directory: &NodeRef, mode: u32, ids: u64) -> Result<NodeRef, Errno> {
        let mount = directory.mount();
        let mode = u64::from(mode);
        let request = fs::Create { directory: directory.number(), name: 0, bytes: 0, mode, ids, device: 0 };
        let reply = self.peers.ask(mount.service(), request.message()).await?;
        Ok(mount.adopt(Description::from(fs::Create::results(&reply)?)))
    }

    /// Makes a symbolic link.
    pub async fn make_link(
        &self,
        caller: &Caller,
        directory: &NodeRef,
        name: &[u8],
        target: &[u8],
        ids: u64,
    ) -> Result<(), Errno> {
        self.settle([Some(directory)]).await?;
        let lent = self.lend(directory, [name, target].concat())?;
        let (name_bytes, target_bytes) = (name.len() as u64, target.len() as u64);
        let _change = Change::of(directory);
        let request = fs::Symlink { directory: directory.number(), grant: lent.id(), name_bytes, target_bytes, ids };
        self.peers.ask_once(caller, directory.service(), request.message()).await?;
        directory.mount().mark_dirty();
        self.unlearn(directory, name);
        self.watches.created(directory, name, false);
        Ok(())
    }

    /// The target of a symbolic link, at most `room` bytes of it.
    pub async fn read_link(&self, node: &NodeRef, room: usize, reader: &Caller) -> Result<LinkTarget, Errno> {
        let lent = self.lend_room(node, room)?;
        let reader = u64::from(reader.pid) | u64::from(reader.endpoint.0) << 32;
        let request = fs::ReadLink { node: node.number(), grant: lent.id(), bytes: room as u64, reader };
        let reply = self.peers.ask(node.service(), request.message()).await?;
        let mut path = lent.take();
        path.truncate(reply.words[0] as usize);
        let (pid, descriptor) = fs::ReadLink::results(&reply)?;
        let meaning = match descriptor {
            fs::LINK_OTHER => LinkMeaning::Path,
            fs::LINK_PROGRAM => LinkMeaning::Program,
            descriptor => LinkMeaning::Descriptor(descriptor as i32),
        };
        Ok(LinkTarget { path, process: pid as u32, meaning })
    }

    /// Links a node under one more name.
    pub async fn link(&self, caller: &Caller, directory: &NodeRef, name: &[u8], node: &NodeRef) -> Result<(), Errno> {
        let lent = self.lend(directory, copied(name)?)?;
        let bytes = name.len() as u64;
        self.settle([Some(node)]).await?;
        let _change = Change::new([Some(directory), Some(node)]);
        let request = fs::Link { directory: directory.number(), grant: lent.id(), bytes, node: node.number() };
        self.peers.ask_once(caller, directory.service(), request.message()).await?;
        directory.mount().mark_dirty();
        node.add_link();
        self.unlearn(directory, name);
        self.watches.linked(directory, name, node);
        Ok(())
    }

    /// Removes the name of `node`; that of a directory with the link of its `..`. If the caller alone has a file in use, the file system frees it
    /// at once: whoever gets it meanwhile has asked for it, and been counted. A directory that is not empty stays, with the names known in it.
    pub async fn unlink(&self, caller: &Caller, directory: &NodeRef, name: &[u8], node: &NodeRef) -> Result<(), Errno> {
        self.settle([Some(node)]).await?;
        let (request, removal) = self.ask_to_remove(directory, name, node)?;
        let reply = self.peers.ask_once(caller, directory.service(), request).await;
        self.removed(removal, directory, name, node, reply)
    }

    /// The request of [`Files::unlink`] for a node that is settled, or [ends with its name](Files::ends_with_its_name). [`Files::removed`] takes its reply.
    pub fn ask_to_remove(&self, directory: &NodeRef, name: &[u8], node: &NodeRef) -> Result<(Message, Removal), Errno> {
        let sent = self.send(directory, name)?;
        let directory_wanted = node.is_directory();
        let uses = if directory_wanted { 0 } else { self.take_own_uses(directory, name, node) };
        let leaving = if uses > 0 { self.begin_leaving(node) } else { None };
        let _change = Change::removing([Some(directory), Some(node)]);
        let ((name_word, bytes), number) = (sent.words, node.number());
        let request =
            fs::Unlink { directory: directory.number(), name: name_word, bytes, directory_wanted, node: number, uses };
        Ok((request.message(), Removal { changing: Changing { _sent: sent, _change }, uses, leaving }))
    }

    /// The name of a node has been removed, or not, as the reply says.
    pub fn removed(
        &self,
        Removal { changing, uses, leaving }: Removal,
        directory: &NodeRef,
        name: &[u8],
        node: &NodeRef,
        reply: Result<Message, Errno>,
    ) -> Result<(), Errno> {
        drop(changing);
        if let Some(leaving) = leaving {
            self.end_leaving(node, leaving, reply.is_ok());
        }
        reply.inspect_err(|_| node.add_uses(uses))?;
        directory.mount().mark_dirty();
        node.unlinked();
        if node.is_directory() {
            directory.remove_link();
            self.unlearn(node, b"..");
        }
        self.relearn(directory, name, None);
        self.watches.unlinked(directory, name, node);
        Ok(())
    }

    /// The request that removes the name of a file that is not known, in a directory that is settled. [`Files::removed_unknown`] takes its reply.
    pub fn ask_to_remove_unknown(&self, directory: &NodeRef, name: &[u8]) -> Result<(Message, Changing<1>), Errno> {
        let sent = self.send(directory, name)?;
        let _change = Change::removing([Some(directory)]);
        let (name, bytes) = sent.words;
        let request = fs::UnlinkUnused { directory: directory.number(), name, bytes };
        Ok((request.message(), Changing { _sent: sent, _change }))
    }

    /// The name of a file that was not known has been removed, or not, as the reply says. Errors as of `UnlinkUnused`.
    pub fn removed_unknown(
        &self,
        changing: Changing<1>,
        directory: &NodeRef,
        name: &[u8],
        reply: Result<Message, Errno>,
    ) -> Result<(), Errno> {
        drop(changing);
        if matches!(reply, Ok(_) | Err(Errno::ENOENT)) {
            self.relearn(directory, name, None);
        }
        let node = fs::UnlinkUnused::results(&reply?)?;
        self.forget_gone(directory.file_system(), node);
        directory.mount().mark_dirty();
        self.watches.unlinked_unknown(directory, name);
        Ok(())
    }

    /// Takes the uses of a file that only the caller and the name cache have in use, under this name, which is not known any more.
    fn take_own_uses(&self, directory: &NodeRef, name: &[u8], node: &NodeRef) -> u64 {
        self.unlearn(directory, name);
        node.take_own_uses()
    }

    /// Renames `node`, over `replaced` if the new name has been used. A directory takes the link of its `..` along. `whiteout`: the ids of
    /// the whiteout that gets the old name.
    pub async fn rename(
        &self,
        caller: &Caller,
        from: (&NodeRef, &[u8]),
        to: (&NodeRef, &[u8]),
        node: &NodeRef,
        replaced: Option<&NodeRef>,
        whiteout: Option<u64>,
    ) -> Result<(), Errno> {
        self.settle([Some(node), replaced]).await?;
        let _change = Change::new([Some(from.0), Some(to.0), Some(node), replaced]);
        let flags = if whiteout.is_some() { fs::RENAME_WHITEOUT } else { 0 };
        self.ask_to_rename(caller, from, to, flags, whiteout.unwrap_or(0)).await?;
        if let Some(replaced) = replaced {
            replaced.unlinked();
        }
        if node.is_directory() {
            from.0.remove_link();
            if replaced.is_none() {
                to.0.add_link();
            }
        }
        match whiteout {
            Some(_) => self.unlearn(from.0, from.1),
            None => self.relearn(from.0, from.1, None),
        }
        self.relearn(to.0, to.1, Some(node.clone()));
        self.unlearn(node, b"..");
        self.watches.moved(from, to, node, replaced);
        Ok(())
    }

    /// Swaps the names of two nodes. Each directory takes the link of its `..` along.
    pub async fn exchange(
        &self,
        caller: &Caller,
        first: (&NodeRef, &[u8]),
        second: (&NodeRef, &[u8]),
        node: &NodeRef,
        other: &NodeRef,
    ) -> Result<(), Errno> {
        self.settle([Some(node), Some(other)]).await?;
        let _change = Change::new([Some(first.0), Some(second.0), Some(node), Some(other)]);
        self.ask_to_rename(caller, first, second, fs::RENAME_EXCHANGE, 0).await?;
        for (node, from, to) in [(node, first.0, second.0), (other, second.0, first.0)] {
            if node.is_directory() {
                from.remove_link();
                to.add_link();
            }
        }
        self.relearn(first.0, first.1, Some(other.clone()));
        self.relearn(second.0, second.1, Some(node.clone()));
        self.unlearn(node, b"..");
        self.unlearn(other, b"..");
        self.watches.moved(first, second, node, None);
        self.watches.moved(second, first, other, None);
        Ok(())
    }

    async fn ask_to_rename(
        &self,
        caller: &Caller,
        from: (&NodeRef, &[u8]),
        to: (&NodeRef, &[u8]),
        flags: u64,
        ids: u64,
    ) -> Result<(), Errno> {
        let lent = self.lend(from.0, [from.1, to.1, &ids.to_le_bytes()].concat())?;
        let request = fs::Rename {
            old_directory: from.0.number(),
            new_directory: to.0.number(),
            grant: lent.id(),
            old_bytes: from.1.len() as u64,
            new_bytes: to.1.len() as u64,
            flags,
        };
        self.peers.ask_once(caller, from.0.service(), request.message()).await?;
        from.0.mount().mark_dirty();
        Ok(())
    }

    /// Everything about a node.
    pub async fn stat(&self, node: &NodeRef) -> Result<Stat, Errno> {
        match node.known_stat().with(|stat| *stat) {
            Some(stat) => Ok(stat),
            None => self.ask_for_stat(node).await,
        }
    }

    /// [`Files::stat`] of a node of which it is not known.
    async fn ask_for_stat(&self, node: &NodeRef) -> Result<Stat, Errno> {
        let version = node.known_stat().version();
        let lent = self.lend_room(node, STAT_BYTES)?;
        let request = fs::Stat { node: node.number(), grant: lent.id() };
        let reply = self.peers.ask(node.service(), request.message()).await?;
        let stat = node.known_stat().corrected(stat_in(node, &lent.take()));
        if !node.mount().changes_by_itself() {
            node.known_stat().learn(&stat, reply.source, version);
        }
        Ok(stat)
    }

    /// Everything about the node's file system, in which the pages of new files count.
    pub async fn stat_fs(&self, node: &NodeRef) -> Result<Vec<u8>, Errno> {
        self.settle_all(Some(node.mount())).await?;
        let lent = self.lend_room(node, STATFS_BYTES)?;
        let request = fs::StatFs { node: node.number(), grant: lent.id() };
        self.peers.ask(node.service(), request.message()).await?;
        Ok(lent.take())
    }

    /// What names a file on its file system: inode number and generation. `EOPNOTSUPP`.
    pub async fn handle(&self, node: &NodeRef) -> Result<(u32, u32), Errno> {
        let request = fs::Handle { node: node.number() };
        let reply = self.peers.ask(node.service(), request.message()).await.map_err(without_handles)?;
        let (inode, generation) = fs::Handle::results(&reply)?;
        let half = |word: u64| u32::try_from(word).map_err(|_| Errno::EOPNOTSUPP);
        Ok((half(inode)?, half(generation)?))
    }

    /// The file with such a handle on the file system that a node is on, seen through the node's mount. `ESTALE`.
    pub async fn open_handle(&self, place: &NodeRef, (inode, generation): (u32, u32)) -> Result<NodeRef, Errno> {
        let request = fs::OpenHandle { root: place.number(), inode: inode.into(), generation: generation.into() };
        let reply = self.peers.ask(place.service(), request.message()).await;
        let reply = reply.map_err(|error| if error == Errno::ENOMEM { error } else { Errno::ESTALE })?;
        Ok(place.mount().adopt(Description::from(fs::OpenHandle::results(&reply)?)))
    }

    /// Sets the size. If a predecessor has set it for this call, only vm is told: others may have written to the file since.
    pub async fn set_size(&self, caller: &Caller, node: &NodeRef, size: u64) -> Result<(), Errno> {
        if caller.recalled(fs::Truncate::LABEL).is_some() {
            pages::resize(node, node.size())?;
            return pages::resize_images(node, vm::UNKNOWN_BYTES, node.size());
        }
        if size < node.size() {
            // Before the file system: nothing beyond the new end may be written back.
            pages::resize(node, size)?;
        }
        self.settle([Some(node)]).await?;
        let _change = Change::of(node);
        node.set_content(None);
        let old_size = node.size();
        self.peers.ask_once(caller, node.service(), fs::Truncate { node: node.number(), size }.message()).await?;
        node.mount().mark_dirty();
        node.set_size(size);
        pages::resize(node, size)?;
        pages::resize_images(node, old_size, size)
    }

    /// Truncates a file to a size that it had before a call that failed.
    pub async fn restore_size(&self, node: &NodeRef, size: u64) -> Result<(), Errno> {
        self.settle([Some(node)]).await?;
        let _change = Change::of(node);
        node.set_content(None);
        self.peers.ask(node.service(), fs::Truncate { node: node.number(), size }.message()).await?;
        node.set_size(size);
        pages::resize(node, size)
    }

    /// Changes the space that a part of a file has; `mode`: `ALLOCATE_*` of `abi::fs`.
    pub async fn allocate(&self, node: &NodeRef, offset: u64, bytes: u64, mode: u64) -> Result<(), Errno> {
        let space = if mode == fs::ALLOCATE_PUNCH { 0 } else { bytes };
        self.settle_for([Some(node)], space).await?;
        let _change = Change::filling([Some(node)], space);
        node.set_content(None);
        let request = fs::Allocate { node: node.number(), offset, bytes, mode };
        self.peers.ask(node.service(), request.message()).await?;
        node.mount().mark_dirty();
        Ok(())
    }

    /// Where data, or a hole, begins in a file from a position on. `ENXIO`: behind the end, or no data follows.
    pub async fn seek_data(&self, node: &NodeRef, mut position: u64, hole: bool) -> Result<u64, Errno> {
        if node.known_stat().new_size() > 0 {
            self.settle([Some(node)]).await?;
        }
        loop {
            let request = fs::SeekData { node: node.number(), position, hole };
            let reply = self.peers.ask(node.service(), request.message()).await?;
            let before = position;
            position = fs::SeekData::results(&reply)?;
            if reply.words[0] != 0 {
                return Ok(position);
            }
            if position <= before {
                return Err(Errno::EIO);
            }
        }
    }
}
