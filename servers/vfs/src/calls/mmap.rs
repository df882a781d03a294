//! mmap and msync of files: requests that wait in vm, served by bringing the file's pages there.

use crate::{files::pages, mappings::ask_vm, objects::regular::Regular, peers::program_error, state::Vfs};
use abi::{Endpoint, Errno, Message, vm};
use sys::ipc;

/// mmap: shared with other processes.
const MAP_SHARED: u64 = 1;
/// mmap: the bits that tell shared from private.
const MAP_TYPE: u64 = 0xf;
/// mmap: writable, where `vm::NextFileMap` has it.
const PROT_WRITE: u64 = 2 << 32;

impl Vfs {
    /// After a notification from vm: serves everything that waits there.
    pub fn serve_vm(&'static self) {
        self.serve_mappings();
        self.serve_shared_maps();
    }

    /// Serves the mappings of files that wait in vm.
    fn serve_mappings(&'static self) {
        while let Ok(reply) = ipc::call(Endpoint::VM, &vm::NextFileMap {}.message()) {
            self.base.runtime.spawn(async move {
                self.serve_mapping(&reply).await;
                self.base.sweep();
            });
        }
    }

    async fn serve_mapping(&self, reply: &Message) {
        let Ok((process, descriptor, offset, bytes, flags)) = vm::NextFileMap::results(reply) else { return };
        let result = self.map_file(process, descriptor, offset, bytes, flags).await;
        let is_shared = flags & MAP_TYPE & MAP_SHARED != 0;
        let (image, may_write, error) = match result {
            Ok((image, may_write)) => (image, may_write, 0),
            Err(error) => (0, false, program_error(error).0),
        };
        if let Err(error) = ipc::call(Endpoint::VM, &vm::FileMapDone { process, image, error, may_write }.message()) {
            // The program is gone.
            sys::log!("vm refuses a mapping for {process:?}: {error}");
        }
        match (error, is_shared) {
            (0, true) => self.base.mappings.end_mapping(image).await,
            (0, false) => pages::close_image(image),
            _ => {}
        }
    }

    /// The image or shared file, loaded in the range and held by vfs; whether the descriptor is open for writing.
    async fn map_file(
        &self,
        process: Endpoint,
        descriptor: i32,
        offset: u64,
        bytes: u64,
        flags: u64,
    ) -> Result<(u64, bool), Errno> {
        self.recovered.wait().await;
        let process = self.processes.get(process)?;
        let file = process.file(descriptor)?;
        file.usable()?;
        let node = &file.object::<Regular>().ok_or(Errno::ENODEV)?.node;
        if node.mount().is_volatile() {
            return Err(Errno::ENODEV);
        }
        file.readable().map_err(|_| Errno::EACCES)?;
        if flags & MAP_TYPE & MAP_SHARED != 0 {
            if flags & PROT_WRITE != 0 {
                file.writable().map_err(|_| Errno::EACCES)?;
            }
            return Ok((self.base.mappings.begin_mapping(node, offset, bytes, file.writes()).await?, file.writes()));
        }
        // What is written back now is a new version of the file.
        self.base.mappings.write_back(node, offset, bytes).await?;
        let image = pages::open_image(node)?;
        let end = offset.saturating_add(bytes).min(node.size());
        match self.base.mappings.fill_image(node, image, offset, end.saturating_sub(offset)).await {
            Ok(()) => Ok((image, file.writes())),
            Err(error) => {
                pages::close_image(image);
                Err(error)
            }
        }
    }

    /// After a notification from vm: files that nobody maps any more, and programs that wait in msync.
    fn serve_shared_maps(&'static self) {
        while let Ok(object) = ask_vm(vm::NextUnmapped {}.message(), vm::NextUnmapped::results) {
            self.base.runtime.spawn(async move {
                self.base.mappings.release_map(object).await;
                self.base.sweep();
            });
        }
        while let Ok((process, object)) = ask_vm(vm::NextSync {}.message(), vm::NextSync::results) {
            self.base.runtime.spawn(async move {
                let error = self.sync_map(object).await.map_or_else(|error| program_error(error).0, |()| 0);
                // Refused when the program is gone.
                let _ = ipc::call(Endpoint::VM, &vm::SyncDone { process, error }.message());
            });
        }
    }

    /// msync: what is written back is on the disk then.
    async fn sync_map(&self, object: u64) -> Result<(), Errno> {
        self.recovered.wait().await;
        let Some(map) = self.base.mappings.shared_map(object) else { return Ok(()) };
        self.base.mappings.sync_node(&map.node).await
    }
}
