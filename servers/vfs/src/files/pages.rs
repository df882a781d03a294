//! The pages that vm has of a file: pages for private mappings (its image) and, while it is mapped shared, the pages that programs change.
//!
//! vm answers these requests at once and asks nobody for them, so they are calls. Neighbour: `mappings`, which fills the pages.

use super::vnode::NodeRef;
use crate::pathname;
use abi::{Endpoint, Errno, Message, vm};
use alloc::vec::Vec;
use sys::{
    fallible::{collect, copied},
    grant::{Access, GrantedBuffer},
    ipc,
};

/// Drops the image of a file whose content has changed: later mappings get another one.
pub fn forget_image(node: &NodeRef) {
    if node.take_image() {
        forget(node.mount().device(), node.number(), false);
    }
}

/// Drops the image of a file by device and inode number; `gone`: the file is freed. Returns whether programs may map images of it.
pub fn forget(device: u64, inode: u64, gone: bool) -> bool {
    let reply = ipc::call(Endpoint::VM, &vm::ImageForget { device, inode, gone }.message());
    match reply.and_then(|reply| vm::ImageForget::results(&reply)) {
        Ok(in_use) => in_use,
        Err(error) => {
            sys::log!("image of inode {inode:#x} of {device:#x} not forgotten: {error}");
            true
        }
    }
}

/// Puts what was written to a file into vm's pages, if it is mapped shared.
pub fn update(node: &NodeRef, offset: u64, data: Vec<u8>, size: u64) -> Result<(), Errno> {
    let Some(object) = node.shared_object().filter(|_| !data.is_empty()) else { return Ok(()) };
    let (bytes, size) = (data.len() as u64, size.max(offset + data.len() as u64));
    let granted = GrantedBuffer::new(data, Endpoint::VM, Access::Read)?;
    ipc::call(Endpoint::VM, &vm::SharedUpdate { object, offset, grant: granted.id(), bytes, size }.message()).map(drop)
}

/// Tells vm the size that the file has, or is about to have.
pub fn resize(node: &NodeRef, bytes: u64) -> Result<(), Errno> {
    match node.shared_object() {
        None => Ok(()),
        Some(object) => ipc::call(Endpoint::VM, &vm::SharedResize { object, bytes }.message()).map(drop),
    }
}

/// Tells vm the size that a file has got, if programs may map images of it; `old_bytes` may be `vm::UNKNOWN_BYTES`.
pub fn resize_images(node: &NodeRef, old_bytes: u64, bytes: u64) -> Result<(), Errno> {
    if !node.may_be_mapped() {
        return Ok(());
    }
    node.take_image();
    let (device, inode) = (node.mount().device(), node.number());
    let reply = ipc::call(Endpoint::VM, &vm::ImageResize { device, inode, old_bytes, bytes }.message())?;
    node.set_may_be_mapped(vm::ImageResize::results(&reply)?);
    Ok(())
}

/// Opens the image of a file: its pages in vm as of now. `path`: what it was opened by.
pub fn open_image(node: &NodeRef, path: &[u8]) -> Result<u64, Errno> {
    let (device, inode) = (node.mount().device(), node.number());
    let request = vm::ImageOpen { device, inode, version: node.version(), bytes: node.size() };
    let reply = ipc::call(Endpoint::VM, &request.message())?;
    node.set_image();
    let (image, has_name) = vm::ImageOpen::results(&reply)?;
    if !has_name {
        set_name(image, path);
    }
    Ok(image)
}

/// Opens the object behind all shared mappings of a file.
pub fn open_shared(node: &NodeRef, path: &[u8]) -> Result<u64, Errno> {
    let (device, inode, bytes) = (node.mount().device(), node.number(), node.size());
    let reply = ipc::call(Endpoint::VM, &vm::SharedOpen { device, inode, bytes }.message())?;
    let (object, has_name) = vm::SharedOpen::results(&reply)?;
    if !has_name {
        set_name(object, path);
    }
    Ok(object)
}

/// Tells vm the path of a file that is mapped, if it is known, for whom asks what is in a program's memory. Without memory nobody is told.
fn set_name(object: u64, path: &[u8]) {
    let bytes = path.len().min(vm::MAX_NAME_BYTES as usize);
    let name = pathname::known(path).and_then(|path| copied(&path[..bytes]));
    let Ok(granted) = name.and_then(|name| GrantedBuffer::new(name, Endpoint::VM, Access::Read)) else { return };
    tell_vm(&vm::FileName { object, grant: granted.id(), bytes: bytes as u64 }.message());
}

/// Closes an image.
pub fn close_image(image: u64) {
    tell_vm(&vm::ImageClose { image }.message());
}

/// Tells vm which images are held, each as often as it is in the list: what a predecessor held besides has ended.
pub fn claim_images(images: &[u64]) -> Result<(), Errno> {
    let list = collect(images.iter().flat_map(|image| image.to_le_bytes()))?;
    let list = GrantedBuffer::new(list, Endpoint::VM, Access::Read)?;
    ipc::call(Endpoint::VM, &vm::ClaimImages { grant: list.id(), images: images.len() as u64 }.message()).map(drop)
}

/// Tells vm something that it never refuses and whose result nobody needs.
fn tell_vm(message: &Message) {
    if let Err(error) = ipc::call(Endpoint::VM, message) {
        sys::log!("vm refuses request {:#x}: {error}", message.label);
    }
}
