//! Control messages of sendmsg and recvmsg (cmsg(3)): open files (`SCM_RIGHTS`) and ids of the sender (`SCM_CREDENTIALS`).

use super::{SOL_SOCKET, messages::On};
use crate::{
    keep::records::Ucred,
    memory as user,
    objects::{
        OpenFile,
        rights::{Carried, MAX_FILES, carried},
        socket::flag::CMSG_CLOEXEC,
    },
    pipes::{
        Pipe,
        ancillary::Cargo,
        packets::{Parcel, flag::CTRUNC},
    },
    processes::{Process, Processes},
    sockets::PASSCRED,
};
use abi::{Capability, Endpoint, Errno};
use alloc::{rc::Rc, vec::Vec};
use core::ops::Range;
use sys::fallible::{TryVec, filled};

const SCM_RIGHTS: u32 = 1;
const SCM_CREDENTIALS: u32 = 2;
/// Bytes of `struct cmsghdr`, of a descriptor, of `struct ucred`.
const HEAD_BYTES: usize = 16;
const DESCRIPTOR_BYTES: usize = 4;
const UCRED_BYTES: usize = 12;
/// Control messages lie at multiples of this.
const ALIGNMENT: usize = 8;
/// Most bytes of control messages that are sent: what Linux lends a socket for options.
const MAX_BYTES: u64 = 20_480;
/// Bytes of control messages that need no memory of the heap.
const SHORT: usize = 64;
/// Bytes of all that is received: ids, and as many descriptors as there may be.
const RECEIVED_BYTES: usize = received_bytes(MAX_FILES);
/// Files that are received with ids in so many bytes.
const FEW: usize = 4;
const _: () = assert!(received_bytes(FEW) <= SHORT);
/// What a receiver that asks is told of a sender who has not said who he is.
const NOBODY: Ucred = Ucred { pid: 0, uid: 65_534, gid: 65_534 };

/// What a program sends besides bytes.
#[derive(Debug, Default)]
pub struct Control {
    files: Vec<Rc<OpenFile>>,
    sender: Option<Ucred>,
}

impl Control {
    /// The control messages in so many bytes of a program's memory. `ENOBUFS`: too many; `EINVAL`: not well-formed, of an unknown type,
    /// or too many descriptors; `EBADF`; `EPERM`, `ESRCH`: ids that are not the sender's; `EFAULT`, `ENOMEM`.
    pub fn fetch(process: &Process, processes: &Processes, address: u64, bytes: u64) -> Result<Control, Errno> {
        match bytes {
            0 => Ok(Control::default()),
            1..=SHORT_BYTES => {
                let mut short = [0; SHORT];
                user::fetch(process.caller.endpoint, address, &mut short[..bytes as usize])?;
                Control::parse(process, processes, &short[..bytes as usize])
            }
            _ if bytes <= MAX_BYTES => {
                let mut long = filled(0, bytes as usize)?;
                user::fetch(process.caller.endpoint, address, &mut long)?;
                Control::parse(process, processes, &long)
            }
            _ => Err(Errno::ENOBUFS),
        }
    }

    fn parse(process: &Process, processes: &Processes, mut bytes: &[u8]) -> Result<Control, Errno> {
        let mut control = Control::default();
        while let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES) {
            let [low, high, level, kind] = numbers(head);
            let length = u64::from(low) | u64::from(high) << 32;
            let length = usize::try_from(length).ok().filter(|length| *length <= bytes.len());
            let data = length.and_then(|length| rest.get(..length.checked_sub(HEAD_BYTES)?)).ok_or(Errno::EINVAL)?;
            match (level, kind) {
                (SOL_SOCKET, SCM_RIGHTS) => control.add_files(process, data)?,
                (SOL_SOCKET, SCM_CREDENTIALS) => control.sender = Some(sender(process, processes, data)?),
                (SOL_SOCKET, _) => return Err(Errno::EINVAL),
                _ => {}
            }
            bytes = bytes.get((HEAD_BYTES + data.len()).next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        }
        Ok(control)
    }

    fn add_files(&mut self, process: &Process, data: &[u8]) -> Result<(), Errno> {
        let descriptors = data.as_chunks().0;
        if self.files.len() + descriptors.len() > MAX_FILES {
            return Err(Errno::EINVAL);
        }
        for descriptor in descriptors {
            self.files.try_push(process.file(i32::from_le_bytes(*descriptor))?)?;
        }
        Ok(())
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.sender.is_none()
    }

    /// As it goes into a pipe. `ETOOMANYREFS`: the sender has too many open files in flight; `ENOMEM`.
    pub fn load(self, on: &On, pipe: &Rc<Pipe>) -> Result<Cargo, Errno> {
        let Control { files, sender } = self;
        if files.is_empty() {
            return Ok(Cargo { sender, rights: None });
        }
        let caller = &on.process().caller;
        let who = caller.credentials();
        let is_limited = !who.has(Capability::SysResource) && !who.has(Capability::SysAdmin);
        let limit = is_limited.then(|| caller.descriptor_limit());
        let carried = Carried::new(on.flight(), files, pipe, caller.user(), limit)?;
        Ok(Cargo { sender, rights: Some(carried) })
    }
}

const SHORT_BYTES: u64 = SHORT as u64;

const fn received_bytes(files: usize) -> usize {
    2 * HEAD_BYTES + 16 + (files * DESCRIPTOR_BYTES).next_multiple_of(ALIGNMENT)
}

fn numbers<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let words = bytes.as_chunks().0;
    core::array::from_fn(|index| words.get(index).map_or(0, |word| u32::from_le_bytes(*word)))
}

/// The ids that a sender gives: its own, or those that its capabilities allow. `EINVAL`, `EPERM`, `ESRCH`.
fn sender(process: &Process, processes: &Processes, data: &[u8]) -> Result<Ucred, Errno> {
    if data.len() != UCRED_BYTES {
        return Err(Errno::EINVAL);
    }
    let [pid, uid, gid] = numbers(data);
    let caller = &process.caller;
    let ids = caller.credentials();
    let may_pid = pid == caller.pid || ids.has(Capability::SysAdmin);
    let may_uid = [ids.uid, ids.euid].contains(&uid) || ids.has(Capability::SetUid);
    let may_gid = [ids.gid, ids.egid].contains(&gid) || ids.has(Capability::SetGid);
    if !(may_pid && may_uid && may_gid) {
        return Err(Errno::EPERM);
    }
    if pid != caller.pid && !processes.has_pid(pid) {
        return Err(Errno::ESRCH);
    }
    Ok(Ucred { pid, uid, gid })
}

/// Where a receiver has room for control messages.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// 0: nowhere.
    pub address: u64,
    /// How much.
    pub bytes: u64,
}

impl Room {
    /// Whether there is none, however little comes.
    pub fn is_none(&self) -> bool {
        self.address == 0
    }

    /// Gives a receiver what has come with its message. Returns how many bytes have been written, and flags of the message.
    pub fn store(&self, on: &On, parcel: &Parcel, flags: u32) -> (u64, u32) {
        let (cargo, asks) = (&parcel.cargo, parcel.arrived && on.socket().has_option(PASSCRED));
        let carried = cargo.rights.as_ref().and_then(carried);
        let files = carried.map_or(&[][..], Carried::files);
        if !asks && files.is_empty() {
            return (0, 0);
        }
        if self.is_none() {
            return (0, CTRUNC);
        }
        if files.len() <= FEW {
            self.store_in(Written::<SHORT>::new(self.bytes), on, cargo, carried, asks, flags)
        } else {
            self.store_in(Written::<RECEIVED_BYTES>::new(self.bytes), on, cargo, carried, asks, flags)
        }
    }

    /// Puts the control messages together in `written`, and gives them to the receiver.
    fn store_in<const N: usize>(
        &self,
        mut written: Written<N>,
        on: &On,
        cargo: &Cargo,
        carried: Option<&Carried>,
        asks: bool,
        flags: u32,
    ) -> (u64, u32) {
        if asks {
            let Ucred { pid, uid, gid } = cargo.sender.unwrap_or(NOBODY);
            written.add(SCM_CREDENTIALS, [pid, uid, gid].map(u32::to_le_bytes).as_flattened());
        }
        if let Some(carried) = carried {
            on.flight().given(carried);
        }
        let given = written.add_files(on.process(), carried.map_or(&[], Carried::files), flags & CMSG_CLOEXEC != 0);
        let stored = written.store(on.process().caller.endpoint, self.address);
        if stored.is_err() {
            let mut given = written.bytes[given].as_chunks().0.iter().map(|descriptor| i32::from_le_bytes(*descriptor));
            let closed = given.all(|descriptor| on.process().files().close(descriptor).is_ok());
            debug_assert!(closed, "they have just been given");
            return (0, CTRUNC);
        }
        (written.length as u64, written.flags)
    }
}

/// Control messages for a receiver, up to `N` bytes.
struct Written<const N: usize> {
    bytes: [u8; N],
    length: usize,
    room: usize,
    flags: u32,
}

impl<const N: usize> Written<N> {
    /// None yet, for a receiver with so much room.
    fn new(room: u64) -> Written<N> {
        Written { bytes: [0; N], length: 0, room: room as usize, flags: 0 }
    }

    fn store(&self, who: Endpoint, address: u64) -> Result<(), Errno> {
        user::store(who, address, &self.bytes[..self.length])
    }

    /// Puts the head of a message there, and returns where its data go.
    fn put(&mut self, kind: u32, length: usize) -> &mut [u8] {
        let head = self.length;
        self.bytes[head..head + 8].copy_from_slice(&(length as u64).to_le_bytes());
        self.bytes[head + 8..head + HEAD_BYTES]
            .copy_from_slice([SOL_SOCKET, kind].map(u32::to_le_bytes).as_flattened());
        self.length += length.next_multiple_of(ALIGNMENT).min(self.room - self.length);
        &mut self.bytes[head + HEAD_BYTES..head + length]
    }

    /// Adds a message, or as much of it as there is room for.
    fn add(&mut self, kind: u32, data: &[u8]) {
        let room = self.room - self.length;
        let length = (HEAD_BYTES + data.len()).min(room);
        if length < HEAD_BYTES + data.len() {
            self.flags |= CTRUNC;
        }
        if room >= HEAD_BYTES {
            self.put(kind, length).copy_from_slice(&data[..length - HEAD_BYTES]);
        }
    }

    /// Gives a process descriptors of files, as many as there is room for and it may have. Returns where they stand.
    fn add_files(&mut self, process: &Process, files: &[Rc<OpenFile>], close_on_exec: bool) -> Range<usize> {
        let room = (self.room - self.length).saturating_sub(HEAD_BYTES) / DESCRIPTOR_BYTES;
        let data = self.length + HEAD_BYTES;
        let mut given = 0;
        for (file, place) in files.iter().take(room).zip(self.bytes[data..].as_chunks_mut().0) {
            let Ok(descriptor) = process.insert(file.clone(), close_on_exec) else { break };
            *place = (descriptor as i32).to_le_bytes();
            given += 1;
        }
        if given < files.len() {
            self.flags |= CTRUNC;
        }
        let bytes = given * DESCRIPTOR_BYTES;
        if given > 0 {
            self.put(SCM_RIGHTS, HEAD_BYTES + bytes);
        }
        data..data + bytes
    }
}
