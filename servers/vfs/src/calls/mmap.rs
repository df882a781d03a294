//! mmap and msync of files: requests that wait in vm, served by bringing the file's pages there. Of a device that can be mapped the
//! driver says where its memory is, and vm looks whether that is its own.

use crate::{
    base::Base,
    events::Startup,
    files::pages,
    mappings::{Mappings, ask_vm},
    objects::{
        OpenFile,
        character::{Character, DeviceMemory},
        regular::Regular,
        zero::Zero,
    },
    peers::program_error,
    processes::Processes,
};
use abi::{Endpoint, Errno, Message, vm};
use sys::{fallible::copied, ipc};

/// What vm takes for memory without a file.
const NO_IMAGE: u64 = 0;
/// mmap: shared with other processes.
const MAP_SHARED: u64 = 1;
/// mmap: the bits that tell shared from private.
const MAP_TYPE: u64 = 0xf;
/// mmap: writable, where `vm::NextFileMap` has it.
const PROT_WRITE: u64 = 2 << 32;

/// After a notification from vm: serves everything that waits there.
pub fn serve_vm(base: &'static Base, processes: &'static Processes, startup: &'static Startup) {
    serve_mappings(base, processes, startup);
    serve_shared_maps(base, startup);
}

/// Serves the mappings of files that wait in vm.
fn serve_mappings(base: &'static Base, processes: &'static Processes, startup: &'static Startup) {
    while let Ok(reply) = ipc::call(Endpoint::VM, &vm::NextFileMap {}.message()) {
        base.runtime().spawn(async move {
            startup.recovered().wait().await;
            serve_mapping(base, processes, &reply).await;
            base.sweep();
        });
    }
}

async fn serve_mapping(base: &Base, processes: &Processes, reply: &Message) {
    let Ok((process, descriptor, offset, bytes, flags)) = vm::NextFileMap::results(reply) else { return };
    let result = match processes.get(process).and_then(|process| process.file(descriptor)) {
        Ok(file) => map_file(base, &file, offset, bytes, flags).await,
        Err(error) => Err(error),
    };
    let (image, may_write, error) = match result {
        Ok((Content::Image(image), may_write)) => (image, may_write, 0),
        Ok((Content::Device(memory), may_write)) => return finish_device(process, memory, may_write),
        Err(error) => (0, false, program_error(error).0),
    };
    if let Err(error) = ipc::call(Endpoint::VM, &vm::FileMapDone { process, image, error, may_write }.message()) {
        sys::log!("mmap of {process:?} dropped: {error}");
    }
    let mappings = base.mappings();
    let is_shared = flags & MAP_TYPE & MAP_SHARED != 0;
    match (error, is_shared) {
        _ if image == NO_IMAGE => {}
        (0, true) => mappings.end_mapping(image).await,
        (0, false) => pages::close_image(image),
        _ => {}
    }
}

/// What a program is to see.
enum Content {
    /// vm's image or shared object, held by vfs; `NO_IMAGE`: memory without a file.
    Image(u64),
    /// Memory of a device.
    Device(DeviceMemory),
}

/// Has vm map memory of a device.
fn finish_device(process: Endpoint, memory: DeviceMemory, may_write: bool) {
    let DeviceMemory { driver, physical, caching } = memory;
    match ipc::call(Endpoint::VM, &vm::DeviceMapDone { process, driver, physical, caching, may_write }.message()) {
        Ok(_) | Err(Errno::ESRCH) => {}
        Err(error) => sys::log!("mmap of {process:?}: {driver:?} has no memory at {physical:#x} to show: {error}"),
    }
}

/// `EACCES`: the file is not open for this mapping.
fn check_rights(file: &OpenFile, flags: u64) -> Result<(), Errno> {
    let writes = flags & MAP_TYPE & MAP_SHARED != 0 && flags & PROT_WRITE != 0;
    let result = if writes { file.readable().and(file.writable()) } else { file.readable() };
    result.map_err(|_| Errno::EACCES)
}

/// Whether it is /dev/zero, a mapping of which is memory without a file (zero(4)).
fn is_zero(file: &OpenFile) -> bool {
    file.object().is_some_and(Zero::swallows)
}

/// Loads the range of a file, and returns what the program is to see of it, and whether the descriptor is open for writing.
async fn map_file(base: &Base, file: &OpenFile, offset: u64, bytes: u64, flags: u64) -> Result<(Content, bool), Errno> {
    file.usable()?;
    if is_zero(file) {
        check_rights(file, flags)?;
        return Ok((Content::Image(NO_IMAGE), file.writes()));
    }
    if let Some(device) = file.object::<Character>() {
        check_rights(file, flags)?;
        return Ok((Content::Device(device.map(base, offset, bytes).await?), file.writes()));
    }
    let mappings = base.mappings();
    let node = &file.object::<Regular>().ok_or(Errno::ENODEV)?.node;
    if node.mount().is_volatile() {
        return Err(Errno::ENODEV);
    }
    check_rights(file, flags)?;
    if flags & MAP_TYPE & MAP_SHARED != 0 {
        let is_sealed = node.seals().is_some_and(|seals| seals.check_write().is_err());
        if is_sealed && flags & PROT_WRITE != 0 {
            return Err(Errno::EPERM);
        }
        let may_write = file.writes() && !is_sealed;
        let path = copied(&file.path())?;
        let object = mappings.begin_mapping((node, &path), offset, bytes, may_write).await?;
        return Ok((Content::Image(object), may_write));
    }
    // What is written back now is a new version of the file.
    mappings.write_back(node, offset, bytes).await?;
    let image = pages::open_image(node, &file.path())?;
    let end = offset.saturating_add(bytes).min(node.size());
    match mappings.fill_image(node, image, offset, end.saturating_sub(offset)).await {
        Ok(()) => Ok((Content::Image(image), file.writes())),
        Err(error) => {
            pages::close_image(image);
            Err(error)
        }
    }
}

/// Serves what waits in vm for shared mappings: files that are no longer mapped, and programs in msync.
fn serve_shared_maps(base: &'static Base, startup: &'static Startup) {
    while let Ok(object) = ask_vm(vm::NextUnmapped {}.message(), vm::NextUnmapped::results) {
        base.runtime().spawn(async move {
            base.mappings().release_map(object).await;
            base.sweep();
        });
    }
    while let Ok((process, object)) = ask_vm(vm::NextSync {}.message(), vm::NextSync::results) {
        base.runtime().spawn(async move {
            startup.recovered().wait().await;
            let error = sync_map(base.mappings(), object).await.map_or_else(|error| program_error(error).0, |()| 0);
            // Refused when the program has ended.
            let _ = ipc::call(Endpoint::VM, &vm::SyncDone { process, error }.message());
        });
    }
}

/// msync: when it returns, the changed pages are on the disk.
async fn sync_map(mappings: &Mappings, object: u64) -> Result<(), Errno> {
    match mappings.shared_map(object) {
        Some(map) => mappings.sync_node(&map.node).await,
        None => Ok(()),
    }
}
