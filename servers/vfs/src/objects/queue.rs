//! Open message queues. Messages go by calls of their own (`calls::queues`), not by read and write.

use super::{Inheritance, Kind, Object};
use crate::{
    callers::permission::Attributes,
    events::{Watchers, poll::ANY},
    files::{stat::Summary, vnode::NodeRef},
    keep::records::ObjectRecord,
    queues::Queue,
};
use abi::Errno;
use alloc::rc::Rc;

/// An open message queue.
#[derive(Debug)]
pub struct MessageQueue(pub Rc<Queue>);

impl Object for MessageQueue {
    fn record(&self) -> ObjectRecord {
        ObjectRecord { place: self.0.place(), ..ObjectRecord::of(Self::NUMBER) }
    }

    fn summary(&self) -> Result<Summary, Errno> {
        let Attributes { mode, uid, gid } = self.0.attributes();
        Ok(Summary { inode: self.0.place() as u64 + 1, mode, uid, gid, ..Summary::default() })
    }

    fn has_positions(&self) -> bool {
        true
    }

    fn poll(&self) -> u32 {
        self.0.poll()
    }

    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [Some((&self.0.watchers, ANY)), None]
    }

    fn forget(&self, table: u64) {
        self.0.forget_notification(table);
    }
}

impl Kind for MessageQueue {
    const NUMBER: u8 = 6;

    fn restore(record: &ObjectRecord, _: Option<NodeRef>, from: &mut dyn Inheritance) -> Option<Self> {
        from.queue(record.place).map(MessageQueue)
    }
}
