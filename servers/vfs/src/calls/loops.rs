//! Requests of ioctl that only loop devices have (loop(4)).

use super::{call::Call, done};
use crate::{
    base::Flow,
    files::{
        loops::{LO_FLAGS_AUTOCLEAR, LO_FLAGS_PARTSCAN, LO_FLAGS_READ_ONLY, LOOP_MAJOR, LoopDevice, Settings},
        stat,
        vnode::NodeRef,
    },
    memory as user,
    objects::{
        OpenFile,
        block::{Block, Disk},
        regular::Regular,
    },
};
use abi::{Capability, Errno};
use alloc::rc::Rc;

mod request {
    pub const LOOP_SET_FD: u32 = 0x4c00;
    pub const LOOP_CLR_FD: u32 = 0x4c01;
    pub const LOOP_SET_STATUS64: u32 = 0x4c04;
    pub const LOOP_GET_STATUS64: u32 = 0x4c05;
    pub const LOOP_SET_CAPACITY: u32 = 0x4c07;
    pub const LOOP_SET_DIRECT_IO: u32 = 0x4c08;
    pub const LOOP_SET_BLOCK_SIZE: u32 = 0x4c09;
    pub const LOOP_CONFIGURE: u32 = 0x4c0a;
    /// Those that loop devices take; others are those of all block devices.
    pub const ALL: core::ops::RangeInclusive<u32> = 0x4c00..=0x4c0f;
}

/// Accepted, and not kept: data goes through caches.
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// Flags that `LOOP_CONFIGURE` takes.
const CONFIGURED: u32 = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR | LO_FLAGS_PARTSCAN | LO_FLAGS_DIRECT_IO;
/// Flags that `LOOP_SET_STATUS64` sets; it clears only the first.
const SETTABLE: u32 = LO_FLAGS_AUTOCLEAR | LO_FLAGS_PARTSCAN;
/// Bytes of `struct loop_info64` and of `struct loop_config`.
const INFO_BYTES: usize = 232;
const CONFIG_BYTES: usize = 304;
/// Where the info begins in a config.
const CONFIG_INFO: usize = 8;
/// Bytes of an encryption key.
const KEY_BYTES: u32 = 32;
/// Bytes of `lo_file_name`, and where it begins.
const NAME_BYTES: usize = 64;
const NAME: usize = 56;
/// Bytes of a block.
const BLOCKS: core::ops::RangeInclusive<u32> = 512..=4096;

/// `struct loop_info64`.
struct Info([u8; INFO_BYTES]);

impl Info {
    fn word(&self, index: usize) -> u64 {
        u64::from_le_bytes(core::array::from_fn(|byte| self.0[index * 8 + byte]))
    }

    fn half(&self, index: usize) -> u32 {
        u32::from_le_bytes(core::array::from_fn(|byte| self.0[40 + index * 4 + byte]))
    }

    fn set_word(&mut self, index: usize, value: u64) {
        self.0[index * 8..][..8].copy_from_slice(&value.to_le_bytes());
    }

    fn set_half(&mut self, index: usize, value: u32) {
        self.0[40 + index * 4..][..4].copy_from_slice(&value.to_le_bytes());
    }

    /// `EINVAL`: encrypted; `EOVERFLOW`.
    fn settings(&self) -> Result<Settings<'_>, Errno> {
        let [_, kind, key_bytes, flags] = core::array::from_fn(|index| self.half(index));
        if key_bytes > KEY_BYTES || kind != 0 {
            return Err(Errno::EINVAL);
        }
        let (offset, limit) = (self.word(3), self.word(4));
        if offset > i64::MAX as u64 || limit > i64::MAX as u64 {
            return Err(Errno::EOVERFLOW);
        }
        let name = &self.0[NAME..][..NAME_BYTES - 1];
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(Settings { offset, limit, flags, name: &name[..length] })
    }
}

/// Serves a request about a loop device; `None`: it is no request, or no device, of this sort.
pub fn control(call: &Call, file: &Rc<OpenFile>, request: u32) -> Option<Result<Flow, Errno>> {
    let Disk::Loop(disk) = &file.object::<Block>().filter(|_| request::ALL.contains(&request))?.device else {
        return None;
    };
    Some(serve(call, file, disk.device(), request).and_then(|()| done(Ok(0))))
}

fn serve(call: &Call, file: &OpenFile, device: &LoopDevice, request: u32) -> Result<(), Errno> {
    let (who, argument) = (call.process.caller.endpoint, call.words[2]);
    match request {
        request::LOOP_SET_FD => configure(call, file, device, argument as i32, 0, &Info([0; INFO_BYTES])),
        request::LOOP_CONFIGURE => {
            let mut config = [0; CONFIG_BYTES];
            user::fetch(who, argument, &mut config)?;
            let half = |at: usize| u32::from_le_bytes(core::array::from_fn(|byte| config[at + byte]));
            let info = Info(core::array::from_fn(|byte| config[CONFIG_INFO + byte]));
            configure(call, file, device, half(0) as i32, half(4), &info)
        }
        request::LOOP_CLR_FD => device.clear(),
        request::LOOP_GET_STATUS64 if argument == 0 => Err(Errno::EINVAL),
        request::LOOP_GET_STATUS64 => user::store(who, argument, &status(call, device)?.0),
        _ if !file.writes() && !call.process.caller.credentials().has(Capability::SysAdmin) => Err(Errno::EPERM),
        request::LOOP_SET_STATUS64 => {
            let mut info = Info([0; INFO_BYTES]);
            user::fetch(who, argument, &mut info.0)?;
            set_status(device, &info)
        }
        request::LOOP_SET_CAPACITY => device.measure(),
        request::LOOP_SET_DIRECT_IO => {
            device.backing()?;
            if argument == 0 { Ok(()) } else { Err(Errno::EINVAL) }
        }
        request::LOOP_SET_BLOCK_SIZE => {
            device.backing()?;
            device.set_block_bytes(block_bytes(argument as u32)?)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// Puts the file of a descriptor behind a device.
fn configure(
    call: &Call,
    file: &OpenFile,
    device: &LoopDevice,
    descriptor: i32,
    block: u32,
    info: &Info,
) -> Result<(), Errno> {
    let backing = call.process.file(descriptor)?;
    backing.usable()?;
    if device.backing().is_ok() {
        return Err(Errno::EBUSY);
    }
    let node = &backing.object::<Regular>().ok_or(Errno::EINVAL)?.node;
    check_file(node)?;
    if info.half(3) & !CONFIGURED != 0 {
        return Err(Errno::EINVAL);
    }
    let block = if block == 0 { *BLOCKS.start() as u16 } else { block_bytes(block)? };
    let mut settings = info.settings()?;
    settings.flags &= !LO_FLAGS_DIRECT_IO;
    if !backing.writes() || !file.writes() {
        settings.flags |= LO_FLAGS_READ_ONLY;
    }
    device.bind(node.clone(), &settings, block)
}

/// `EINVAL`: the file's size is not known, or it is itself on a file system that is mounted from a loop device.
fn check_file(node: &NodeRef) -> Result<(), Errno> {
    let mount = node.mount();
    let is_looped = stat::major(mount.device()) == LOOP_MAJOR;
    if mount.is_volatile() || is_looped { Err(Errno::EINVAL) } else { Ok(()) }
}

fn block_bytes(bytes: u32) -> Result<u16, Errno> {
    if BLOCKS.contains(&bytes) && bytes.is_power_of_two() { Ok(bytes as u16) } else { Err(Errno::EINVAL) }
}

fn set_status(device: &LoopDevice, info: &Info) -> Result<(), Errno> {
    let old = device.backing()?.flags();
    let mut settings = info.settings()?;
    settings.flags = settings.flags & SETTABLE | old & !LO_FLAGS_AUTOCLEAR;
    device.set(&settings)
}

fn status(call: &Call, device: &LoopDevice) -> Result<Info, Errno> {
    let backing = device.backing()?;
    let (node, record) = (backing.node(), backing.record());
    let mut info = Info([0; INFO_BYTES]);
    let words = [node.mount().device(), node.number() & u64::from(u32::MAX), 0, record.offset, record.limit];
    words.into_iter().enumerate().for_each(|(index, word)| info.set_word(index, word));
    info.set_half(0, device.number() as u32);
    info.set_half(3, record.flags.into());
    let name = call.base().store().text(record.name);
    let length = name.len().min(NAME_BYTES - 1);
    info.0[NAME..][..length].copy_from_slice(&name[..length]);
    Ok(info)
}
