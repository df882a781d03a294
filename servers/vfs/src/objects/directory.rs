//! Open directories. `calls::data` lists them, `paths` starts from them.

use super::{Inheritance, Kind, Object, Operation, Seek};
use crate::{
    base::Flow,
    events::poll::ALWAYS_READY,
    files::vnode::{Crowd, NodeRef},
    keep::records::ObjectRecord,
    memory::buffer::UserBuffer,
};
use abi::Errno;

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    /// The directory.
    pub node: NodeRef,
    /// What its user is charged for it.
    pub crowd: Crowd,
}

impl Object for Directory {
    fn record(&self) -> ObjectRecord {
        ObjectRecord::of(Self::NUMBER)
    }

    fn hold(&self, user: u32) -> Result<(), Errno> {
        self.crowd.set(&self.node, user)
    }

    fn node(&self) -> Option<&NodeRef> {
        Some(&self.node)
    }

    fn read(&self, _: &Operation, _: &mut UserBuffer, _: Option<u64>) -> Result<Flow, Errno> {
        Err(Errno::EISDIR)
    }

    fn has_positions(&self) -> bool {
        true
    }

    fn seek(&self, seek: &Seek) -> Result<u64, Errno> {
        seek.within(|| self.node.size())
    }

    fn poll(&self) -> u32 {
        ALWAYS_READY
    }
}

impl Kind for Directory {
    const NUMBER: u8 = 9;

    fn restore(_: &ObjectRecord, node: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        Some(Directory { node: node?, crowd: Crowd::default() })
    }
}
