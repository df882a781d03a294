//! /dev/null, which needs no driver.

use super::{Inheritance, Kind, Object, Operation, Seek, done};
use crate::{
    base::Flow, events::poll::ALWAYS_READY, files::vnode::NodeRef, keep::records::ObjectRecord,
    memory::buffer::UserBuffer,
};
use abi::Errno;

/// Its minor number (devices.txt of Linux).
pub const MINOR: u64 = 3;

/// See the head of the file.
#[derive(Debug)]
pub struct Null {
    /// The special file.
    pub node: NodeRef,
}

impl Object for Null {
    fn record(&self) -> ObjectRecord {
        ObjectRecord::of(Self::NUMBER)
    }

    fn node(&self) -> Option<&NodeRef> {
        Some(&self.node)
    }

    fn read(&self, _: &Operation, _: &mut UserBuffer, _: Option<u64>) -> Result<Flow, Errno> {
        done(0)
    }

    fn write(&self, _: &Operation, buffer: &mut UserBuffer, _: Option<u64>) -> Result<Flow, Errno> {
        done(buffer.left())
    }

    fn has_positions(&self) -> bool {
        true
    }

    fn seek(&self, _: &Seek) -> Result<u64, Errno> {
        Ok(0)
    }

    fn poll(&self) -> u32 {
        ALWAYS_READY
    }
}

impl Kind for Null {
    const NUMBER: u8 = 1;

    fn restore(_: &ObjectRecord, node: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        Some(Null { node: node? })
    }
}
