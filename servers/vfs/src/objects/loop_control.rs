//! /dev/loop-control: finds loop devices that are free (loop(4)).

use super::{Inheritance, Kind, Object, Operation, done};
use crate::{
    base::Flow,
    events::poll::ALWAYS_READY,
    files::{stat::make_device, vnode::NodeRef},
    keep::records::ObjectRecord,
    memory::buffer::UserBuffer,
};
use abi::Errno;

mod ioctl {
    pub const LOOP_CTL_ADD: u32 = 0x4c80;
    pub const LOOP_CTL_REMOVE: u32 = 0x4c81;
    pub const LOOP_CTL_GET_FREE: u32 = 0x4c82;
}

/// Its device number.
pub const LOOP_CONTROL: u64 = make_device(10, 237);

/// The open control device.
#[derive(Debug)]
pub struct LoopControl {
    /// The special file.
    pub node: NodeRef,
}

impl Object for LoopControl {
    fn record(&self) -> ObjectRecord {
        ObjectRecord::of(Self::NUMBER)
    }

    fn node(&self) -> Option<&NodeRef> {
        Some(&self.node)
    }

    fn has_positions(&self) -> bool {
        true
    }

    /// A device has positions, also one that cannot be read.
    fn read(&self, _: &Operation, _: &mut UserBuffer, _at: Option<u64>) -> Result<Flow, Errno> {
        Err(Errno::EINVAL)
    }

    fn write(&self, _: &Operation, _: &mut UserBuffer, _at: Option<u64>) -> Result<Flow, Errno> {
        Err(Errno::EINVAL)
    }

    /// All devices exist from the start and for ever: to add one is `EEXIST` or `ENOSPC`, to remove one `EBUSY`.
    fn control(&self, on: &Operation, request: u32, argument: u64) -> Result<Flow, Errno> {
        let loops = on.base.loops();
        let number = argument as i32;
        match request {
            ioctl::LOOP_CTL_GET_FREE => done(loops.first_free()?),
            ioctl::LOOP_CTL_ADD if number < 0 => Err(Errno::ENOSPC),
            ioctl::LOOP_CTL_ADD => Err(loops.device(number as u64).map_or(Errno::ENOSPC, |_| Errno::EEXIST)),
            ioctl::LOOP_CTL_REMOVE if number < 0 => Err(Errno::EINVAL),
            ioctl::LOOP_CTL_REMOVE => Err(loops.device(number as u64).map_or(Errno::ENODEV, |_| Errno::EBUSY)),
            _ => Err(Errno::ENOSYS),
        }
    }

    fn poll(&self) -> u32 {
        ALWAYS_READY
    }
}

impl Kind for LoopControl {
    const NUMBER: u8 = 15;

    fn restore(_: &ObjectRecord, node: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        Some(LoopControl { node: node? })
    }
}
