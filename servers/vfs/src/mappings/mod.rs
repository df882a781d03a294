//! Files that programs have mapped shared (MAP_SHARED): their pages are in vm, and vfs carries the bytes between there and the file system.
//!
//! From the first such mapping until everything is in the file again, vm's pages are the truth. The page cache has the same frames, so calls
//! read them there; before the file system is asked for pages, those that are changed are written back. What calls write goes to the file,
//! and then into vm's pages. A mapped vnode is held in
//! use. One task at a time writes a file back; vm hands pages out again until it is told that they are written, so that nothing depends on
//! this process going on.
//!
//! vfs calls vm, which answers at once, and asks file systems as always. Neighbours: `content` (reads and writes that heed this),
//! `files::pages` (what vm holds of a file), `calls::mmap`.

mod content;

pub use content::Written;

use crate::{
    cache::PageCache,
    events::{Event, Watchers},
    files::{Files, known::Change, mount::Mount, pages, vnode::NodeRef},
    peers::Peers,
};
use abi::{Endpoint, Errno, Message, fs, vm};
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};
use sys::fallible::{TryVec, filled};
use sys::{
    grant::{Access, GrantedBuffer},
    ipc,
};

/// Bytes of the buffer that pages are moved through.
pub const BUFFER_BYTES: u64 = 64 * 1024;

/// A file that is mapped shared.
pub struct SharedMap {
    /// The file.
    pub node: NodeRef,
    /// vm's object.
    object: u64,
    /// Mappings in progress, which vm does not know of yet.
    mapping: Cell<u32>,
    /// Some mapping may be written to, or may have been.
    written: Cell<bool>,
    /// A task writes it back.
    busy: Cell<bool>,
    idle: Watchers,
}

impl SharedMap {
    fn new(node: NodeRef, object: u64, written: bool) -> Rc<SharedMap> {
        node.set_shared_object(Some(object));
        let (mapping, written, busy) = (Cell::new(0), Cell::new(written), Cell::new(false));
        Rc::new(SharedMap { node, object, mapping, written, busy, idle: Watchers::default() })
    }

    async fn lock(&self) {
        let event = Rc::new(Event::default());
        self.idle.add(&event);
        while self.busy.replace(true) {
            event.wait().await;
        }
        self.idle.remove(&event);
    }

    fn unlock(&self) {
        self.busy.set(false);
        self.idle.fire();
    }
}

/// The files that are mapped shared.
pub struct Mappings {
    peers: Rc<Peers>,
    files: Rc<Files>,
    cache: Rc<PageCache>,
    maps: RefCell<Vec<Rc<SharedMap>>>,
}

impl Mappings {
    /// Nothing is mapped.
    pub fn new(peers: Rc<Peers>, files: Rc<Files>, cache: Rc<PageCache>) -> Mappings {
        Mappings { peers, files, cache, maps: RefCell::default() }
    }

    /// The mapped file of an object of vm's.
    pub fn shared_map(&self, object: u64) -> Option<Rc<SharedMap>> {
        self.maps.borrow().iter().find(|map| map.object == object).cloned()
    }

    fn map_of(&self, node: &NodeRef) -> Option<Rc<SharedMap>> {
        self.shared_map(node.shared_object()?)
    }

    /// The pages of a file, opened by this path, for a shared mapping, all of the range that the file has. The mapping is in progress until
    /// [`Mappings::end_mapping`]. `ENOSPC`: it is to be written, and there is no space for its holes.
    pub async fn begin_mapping(
        &self,
        (node, path): (&NodeRef, &[u8]),
        offset: u64,
        bytes: u64,
        may_write: bool,
    ) -> Result<u64, Errno> {
        if may_write {
            // A store cannot fail: there must be space for it.
            self.files.allocate(node, offset, bytes, fs::ALLOCATE_FILL).await?;
        }
        self.files.settle([Some(node)]).await?;
        let map = match self.map_of(node) {
            Some(map) => map,
            None => self.share(node, path)?,
        };
        map.mapping.set(map.mapping.get() + 1);
        map.written.set(map.written.get() || may_write);
        match self.fill_image(node, map.object, offset, bytes).await {
            Ok(()) => Ok(map.object),
            Err(error) => {
                self.end_mapping(map.object).await;
                Err(error)
            }
        }
    }

    fn share(&self, node: &NodeRef, path: &[u8]) -> Result<Rc<SharedMap>, Errno> {
        self.maps.borrow_mut().try_make_room(1)?;
        let map = SharedMap::new(node.clone(), pages::open_shared(node, path)?, false);
        self.maps.borrow_mut().try_push(map.clone())?;
        Ok(map)
    }

    /// Whether a file is mapped shared, and to be written to as far as is known.
    pub fn is_mapped_to_write(&self, node: &NodeRef) -> bool {
        self.map_of(node).is_some_and(|map| map.written.get())
    }

    /// Ends a mapping in progress: vm has mapped the file, or refused.
    pub async fn end_mapping(&self, object: u64) {
        if let Some(map) = self.shared_map(object) {
            map.mapping.set(map.mapping.get() - 1);
            self.release_map(object).await;
        }
    }

    /// Locks a mapped file, until `unlock`. False: it was closed meanwhile, and is not locked; another one may have been opened for the file.
    async fn lock(&self, map: &SharedMap) -> bool {
        map.lock().await;
        let is_open = self.shared_map(map.object).is_some();
        if !is_open {
            map.unlock();
        }
        is_open
    }

    /// Writes back what programs have changed within a part of a file: all of it, if they have not mapped it.
    pub async fn write_back(&self, node: &NodeRef, offset: u64, bytes: u64) -> Result<(), Errno> {
        while let Some(map) = self.map_of(node) {
            if self.lock(&map).await {
                let result = self.write_back_pages(&map, offset, offset.saturating_add(bytes)).await;
                map.unlock();
                return result;
            }
        }
        self.files.settle([Some(node)]).await
    }

    async fn write_back_pages(&self, map: &SharedMap, mut offset: u64, end: u64) -> Result<(), Errno> {
        let (node, object) = (&map.node, map.object);
        while offset < end {
            let room = GrantedBuffer::new(filled(0, BUFFER_BYTES as usize)?, Endpoint::VM, Access::Write)?;
            let request = vm::SharedTake { object, offset, end, grant: room.id(), bytes: BUFFER_BYTES };
            let reply = ipc::call(Endpoint::VM, &request.message())?;
            let bytes = reply.words[0];
            if bytes == 0 {
                return Ok(());
            }
            let start = vm::SharedTake::results(&reply)?;
            let mut data = room.take();
            data.truncate(bytes as usize);
            // In the same turn as vm's answer, so that nothing that is written later comes to the file earlier.
            self.put_pages(node, start, data).await?;
            ipc::call(Endpoint::VM, &vm::SharedWritten { object, offset: start, bytes }.message())?;
            node.mount().mark_dirty();
            pages::forget_image(node);
            offset = start + bytes;
        }
        Ok(())
    }

    async fn put_pages(&self, node: &NodeRef, mut position: u64, mut data: Vec<u8>) -> Result<(), Errno> {
        while !data.is_empty() {
            let service = node.service();
            let bytes = data.len() as u64;
            let lent = GrantedBuffer::new(data, service.endpoint(), Access::Read)?;
            let _change = Change::writing(node, bytes);
            let request = fs::Write { node: node.number(), grant: lent.id(), position, bytes, ids: 0, written_ns: 0 };
            let written = self.peers.ask(service, request.message()).await?.words[0].min(bytes);
            if written == 0 {
                return Err(Errno::ENOSPC);
            }
            position += written;
            data = lent.take().split_off(written as usize);
        }
        Ok(())
    }

    /// Closes a file that is no longer mapped, after writing everything back.
    pub async fn release_map(&self, object: u64) {
        let Some(map) = self.shared_map(object) else { return };
        if self.lock(&map).await {
            if map.mapping.get() == 0 {
                self.close_map(&map).await;
            }
            map.unlock();
        }
    }

    async fn close_map(&self, map: &Rc<SharedMap>) {
        let object = map.object;
        // Nobody will read a file again that has no name and is not open.
        let mut lose = map.node.is_unlinked() && !map.node.leases().is_open();
        if !lose && let Err(error) = self.write_back_pages(map, 0, u64::MAX).await {
            sys::log!("writes to node {:#x} by mmap are lost: {error}", map.node.number());
            lose = true;
        }
        // `EBUSY`: it is mapped again.
        if map.mapping.get() == 0 && ipc::call(Endpoint::VM, &vm::SharedClose { object, lose }.message()).is_ok() {
            map.node.set_shared_object(None);
            if lose {
                map.node.set_content(None);
            }
            self.maps.borrow_mut().retain(|other| other.object != object);
        }
    }

    /// Writes back the mapped files of a file system; `None`: of all that are on a device. Dirty pages of those in memory too.
    pub async fn write_back_all(&self, mount: Option<&Rc<Mount>>) -> Result<(), Errno> {
        let maps = self.maps.borrow().clone();
        let mut result = self.files.settle_all(mount.map(|mount| &**mount)).await;
        for map in maps {
            let wanted = mount.map_or(!map.node.mount().is_in_memory(), |mount| Rc::ptr_eq(mount, map.node.mount()));
            if wanted {
                result = result.and(self.write_back(&map.node, 0, u64::MAX).await);
            }
        }
        result
    }

    /// Closes the files of a file system that are no longer mapped, before it is unmounted.
    #[expect(clippy::disallowed_methods, reason = "for unmounting")]
    pub async fn release_maps(&self, mount: &Rc<Mount>) {
        let maps: Vec<u64> = {
            let all = self.maps.borrow();
            all.iter().filter(|map| Rc::ptr_eq(mount, map.node.mount())).map(|map| map.object).collect()
        };
        for object in maps {
            self.release_map(object).await;
        }
        if let Err(error) = self.files.settle_all(Some(mount)).await {
            sys::log!("dirty pages on {} stay: {error}", mount.source());
        }
    }

    /// Writes a file back and syncs its file system; nothing to do for a file system in memory.
    pub async fn sync_node(&self, node: &NodeRef) -> Result<(), Errno> {
        if node.mount().is_in_memory() {
            return Ok(());
        }
        self.write_back(node, 0, u64::MAX).await?;
        self.files.take_failure(node)?;
        self.peers.ask(node.service(), fs::Sync {}.message()).await.map(drop)
    }

    /// Restores the mapped files from vm, after a restart.
    #[expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]
    pub fn restore_maps(&self) {
        let mut after = 0;
        while let Ok((object, device, inode)) = ask_vm(vm::NextShared { after }.message(), vm::NextShared::results)
            && object != after
        {
            after = object;
            match self.files.mounts.find(|mount| mount.device() == device) {
                Some(mount) => self.maps.borrow_mut().push(SharedMap::new(mount.restore(inode), object, true)),
                None => sys::log!("a mapped file on device {device:#x} has no mount"),
            }
        }
    }

    /// Closes the files that were unmapped during a restart, when calls are served again.
    #[expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]
    pub async fn release_restored_maps(&self) {
        let objects: Vec<u64> = self.maps.borrow().iter().map(|map| map.object).collect();
        for object in objects {
            self.release_map(object).await;
        }
    }
}

/// Fetches the next event of vm.
pub fn ask_vm<T>(request: Message, results: impl FnOnce(&Message) -> Result<T, Errno>) -> Result<T, Errno> {
    results(&ipc::call(Endpoint::VM, &request)?)
}
