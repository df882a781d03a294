//! Files opened with O_PATH: a place in the tree, which cannot be read or written.

use super::{Inheritance, Kind, Object};
use crate::{files::vnode::NodeRef, keep::records::ObjectRecord};

/// See the head of the file. [`super::File::usable`] keeps most calls away from it.
#[derive(Debug)]
pub struct PathOnly {
    /// The file.
    pub node: NodeRef,
}

impl Object for PathOnly {
    fn record(&self) -> ObjectRecord {
        ObjectRecord::of(Self::NUMBER)
    }

    fn node(&self) -> Option<&NodeRef> {
        Some(&self.node)
    }
}

impl Kind for PathOnly {
    const NUMBER: u8 = 2;

    fn restore(_: &ObjectRecord, node: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        Some(PathOnly { node: node? })
    }
}
