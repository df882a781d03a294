//! Descriptors that mean a process (pidfd_open(2)): ready for reading when it has ended.
//!
//! pm decides what a call with one does; vfs knows which process it means, and never another one with the same pid.

use super::{Inheritance, Kind, Object};
use crate::{
    callers::lives::{Identity, Life},
    events::{
        Watchers,
        poll::{ANY, POLLIN, POLLRDNORM},
    },
    files::{stat::Summary, vnode::NodeRef},
    keep::records::ObjectRecord,
};
use abi::Errno;
use alloc::rc::Rc;
use core::fmt::{self, Write};
use sys::text::Text;

/// See the head of the file.
#[derive(Debug)]
pub struct PidFd(Rc<Life>);

impl PidFd {
    /// A descriptor's object for a process.
    pub fn new(life: Rc<Life>) -> PidFd {
        PidFd(life)
    }

    /// The process.
    pub fn identity(&self) -> Identity {
        self.0.identity()
    }
}

impl Object for PidFd {
    fn record(&self) -> ObjectRecord {
        let Identity { pid, generation } = self.0.identity();
        ObjectRecord { minor: pid, more: generation.into(), ..ObjectRecord::of(Self::NUMBER) }
    }

    fn summary(&self) -> Result<Summary, Errno> {
        Ok(Summary { inode: 1, mode: 0o600, ..Summary::default() })
    }

    /// The number is negative when the process has ended: procfs finds out whether it is a zombie, which keeps its number.
    fn describe(&self, text: &mut Text) -> fmt::Result {
        let sign = if self.0.has_ended() { "-" } else { "" };
        writeln!(text, "Pid:\t{sign}{}", self.identity().pid)
    }

    fn poll(&self) -> u32 {
        if self.0.has_ended() { POLLIN | POLLRDNORM } else { 0 }
    }

    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [Some((self.0.watchers(), ANY)), None]
    }
}

impl Kind for PidFd {
    const NUMBER: u8 = 12;

    fn restore(record: &ObjectRecord, _: Option<NodeRef>, from: &mut dyn Inheritance) -> Option<Self> {
        Some(PidFd(from.life(Identity { pid: record.minor, generation: record.more as u32 })))
    }
}
