//! Files opened with O_PATH: a place in the tree, which cannot be read or written.

use super::{Inheritance, Kind, Object};
use crate::{
    files::vnode::{Crowd, NodeRef},
    keep::records::ObjectRecord,
};
use abi::Errno;

/// See the head of the file. [`super::OpenFile::usable`] keeps most calls away from it.
#[derive(Debug)]
pub struct PathOnly {
    /// The file.
    pub node: NodeRef,
    /// What its user is charged for it.
    pub crowd: Crowd,
}

impl Object for PathOnly {
    fn record(&self) -> ObjectRecord {
        ObjectRecord::of(Self::NUMBER)
    }

    fn hold(&self, user: u32) -> Result<(), Errno> {
        self.crowd.set(&self.node, user)
    }

    fn node(&self) -> Option<&NodeRef> {
        Some(&self.node)
    }
}

impl Kind for PathOnly {
    const NUMBER: u8 = 2;

    fn restore(_: &ObjectRecord, node: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        Some(PathOnly { node: node?, crowd: Crowd::default() })
    }
}
