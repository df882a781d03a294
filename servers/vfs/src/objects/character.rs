//! Character devices: requests go to the driver, data straight between it and the program through a magic grant. Most are streams; one
//! with positions (a frame buffer) is read and written like a file whose end the driver knows.

use super::{Asking, Done, End, Inheritance, Kind, Object, OpenFile, Operation, Seek, Wanted, done, no_position};
use crate::{
    base::{
        Base, Flow,
        closing::{Closed, Closing},
    },
    callers::Caller,
    events::{
        Watchers,
        poll::{ANY, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM},
    },
    files::vnode::NodeRef,
    keep::records::{Note, ObjectRecord},
    memory::{self as user, buffer::UserBuffer},
    peers::{Peers, Service},
};
use abi::{
    Endpoint, Errno, Message, Part, chardev, container,
    tty::{MINOR_MASTER, MINOR_SLAVE},
};
use alloc::{boxed::Box, rc::Rc, vec::Vec};
use core::mem::take;
use server::Continuation;
use sys::{
    fallible::copied,
    grant::{Access, GrantedBuffer, MagicGrant},
};

/// ioctls of terminals that have the number of a group or session.
const TIOCGPGRP: u32 = 0x540f;
const TIOCSPGRP: u32 = 0x5410;
/// Types a byte.
const TIOCSTI: u32 = 0x5412;
const TIOCGSID: u32 = 0x5429;

/// At most so many bytes a request, so that other requests get in between.
const CHUNK: u64 = 1 << 20;
/// The same for pseudo-terminals, where each byte is looked at.
const PTY_CHUNK: u64 = 16 << 10;
/// Bytes of the program's memory that a device may reach in an ioctl.
const ARGUMENT_BYTES: u64 = 256;

/// What memory devices are ready for.
const ALWAYS_READY: u32 = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
/// The major number of /dev/zero and its like.
const MEMORY_MAJOR: u64 = 1;

/// What a driver lets a program map: see `vm::DeviceMapDone`.
#[derive(Clone, Copy, Debug)]
pub struct DeviceMemory {
    /// The driver that has replied.
    pub driver: Endpoint,
    /// The address.
    pub physical: u64,
    /// How programs reach it.
    pub caching: u64,
}

/// An open character device.
#[derive(Debug)]
pub struct Character {
    /// The special file.
    pub node: NodeRef,
    /// The driver.
    pub service: Service,
    /// Which of its devices.
    pub minor: u64,
    /// The device has positions.
    has_positions: bool,
    /// Fire after a transfer: what the device was ready for may be used up.
    watchers: Watchers,
}

impl Character {
    /// One that has just been opened.
    pub fn new(node: NodeRef, service: Service, minor: u64, has_positions: bool) -> Character {
        Character { node, service, minor, has_positions, watchers: Watchers::default() }
    }

    /// The service and the number of the pseudo-terminal whose master this is. `EIO`: it is a slave; `ENOTTY`: it is another device.
    pub fn master(&self) -> Result<(Service, u64), Errno> {
        match self.minor {
            MINOR_SLAVE.. => Err(Errno::EIO),
            MINOR_MASTER.. => Ok((self.service, self.minor - MINOR_MASTER)),
            _ => Err(Errno::ENOTTY),
        }
    }

    /// [`Object::ask_ready`], for nobody in particular.
    pub fn ask(&self, peers: &Peers, wanted: Wanted, stay: bool, done: Done) -> Result<End, Errno> {
        let request =
            chardev::Poll { minor: self.minor, events: wanted.events.into(), now: !stay, since: wanted.since.into() };
        let end = peers.ask_meanwhile(self.service, request.message(), done)?;
        Ok(Box::new(end))
    }

    /// Where the driver has what is to be mapped. `ENODEV`: it cannot be mapped.
    pub async fn map(&self, base: &Base, offset: u64, bytes: u64) -> Result<DeviceMemory, Errno> {
        let message = chardev::Map { minor: self.minor, offset, bytes }.message();
        let reply = base.peers().ask(self.service, message).await.map_err(|error| match error {
            Errno::ENOSYS => Errno::ENODEV,
            other => other,
        })?;
        let (physical, caching) = chardev::Map::results(&reply)?;
        Ok(DeviceMemory { driver: self.service.endpoint(), physical, caching })
    }

    /// Whether it is one of the memory devices (mem(4)), whose position stays 0 wherever a program sets it, as on Linux. Other
    /// devices have no position.
    fn is_memory(&self) -> bool {
        self.node.special_device() >> 8 == MEMORY_MAJOR
    }

    fn transfer(
        &self,
        on: &Operation,
        buffer: &mut UserBuffer,
        at: Option<u64>,
        access: Access,
    ) -> Result<Flow, Errno> {
        if self.has_positions {
            let (base, caller, file, buffer) = (on.base, on.caller.clone(), on.file.clone(), take(buffer));
            return Ok(Flow::task(async move { transfer_at(base, &caller, &file, buffer, at, access).await }));
        }
        if !self.is_memory() {
            no_position(at)?;
        }
        if let Some(Note::Moved(moved)) = on.caller.noted() {
            buffer.advance_all(moved);
        }
        if buffer.left() == 0 {
            return done(buffer.moved());
        }
        let (caller, file) = (on.caller.clone(), Transferring(on.file.clone()));
        let transfer = Transfer { base: on.base, caller, file, buffer: take(buffer), access, asked: 0, grant: None };
        Box::new(transfer).go_on().map(|()| Flow::Later)
    }
}

/// The open file of a transfer in progress. At its end, those who watch the device learn that what it was ready for may be used up.
struct Transferring(Rc<OpenFile>);

impl Drop for Transferring {
    fn drop(&mut self) {
        if let Some(character) = self.0.object::<Character>() {
            character.watchers.fire_for(0);
        }
    }
}

impl Object for Character {
    fn record(&self) -> ObjectRecord {
        let (place, minor, more) = (self.service.slot() as u16, self.minor as u32, self.has_positions.into());
        ObjectRecord { place, minor, more, ..ObjectRecord::of(Self::NUMBER) }
    }

    fn node(&self) -> Option<&NodeRef> {
        Some(&self.node)
    }

    fn has_positions(&self) -> bool {
        self.has_positions || self.is_memory()
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        self.transfer(on, buffer, at, Access::Write)
    }

    fn write(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        self.transfer(on, buffer, at, Access::Read)
    }

    fn control(&self, on: &Operation, request: u32, argument: u64) -> Result<Flow, Errno> {
        let (base, caller, file) = (on.base, on.caller.clone(), on.file.clone());
        let device = (self.service, self.minor);
        Ok(Flow::task(async move {
            let result = control(base, &caller, device, request, argument).await;
            drop(file);
            result
        }))
    }

    fn seek(&self, seek: &Seek) -> Result<u64, Errno> {
        if self.has_positions {
            // As on Linux, where a special file has no size.
            return seek.within(|| 0);
        }
        if self.is_memory() { Ok(0) } else { Err(Errno::ESPIPE) }
    }

    fn poll(&self) -> u32 {
        if self.has_device() { 0 } else { ALWAYS_READY }
    }

    /// Memory devices and those with positions are always ready, and need not be asked.
    fn has_device(&self) -> bool {
        !self.is_memory() && !self.has_positions
    }

    fn ask_ready(&self, by: &Asking, wanted: Wanted, stay: bool, done: Done) -> Result<End, Errno> {
        self.ask(by.peers, wanted, stay, done)
    }

    fn is_asynchronous(&self) -> bool {
        !self.is_memory()
    }

    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [Some((&self.watchers, ANY)), None]
    }

    fn close(&self, closing: &Closing) {
        closing.add(Closed::Device { service: self.service, minor: self.minor });
    }
}

impl Kind for Character {
    const NUMBER: u8 = 3;

    fn restore(record: &ObjectRecord, node: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        let service = Service::at(record.place as usize);
        Some(Character::new(node?, service, record.minor as u64, record.more != 0))
    }
}

/// A read from (`access`: the device may write the program's memory) or a write to a character device, piece by piece as long as each is
/// moved in full. It is what goes on with the reply to its request.
struct Transfer {
    base: &'static Base,
    caller: Rc<Caller>,
    file: Transferring,
    buffer: UserBuffer,
    access: Access,
    /// Bytes of the piece in progress, and what lets the driver move them.
    asked: u64,
    grant: Option<MagicGrant>,
}

impl Transfer {
    /// Asks the driver to move the next piece.
    fn go_on(mut self: Box<Self>) -> Result<(), Errno> {
        let character = self.file.0.object::<Character>().ok_or(Errno::EIO)?;
        let (service, minor) = (character.service, character.minor);
        let flags = if self.file.0.nonblocking() { chardev::NONBLOCK } else { 0 };
        let caller = self.caller.group() & 0xffff_ffff | self.caller.session() << 32;
        let (piece, moved) = (self.buffer.piece(), self.buffer.moved());
        let bytes = piece.bytes.min(if minor < MINOR_MASTER { CHUNK } else { PTY_CHUNK });
        let lent = MagicGrant::new(self.buffer.owner, piece.address, bytes, service.endpoint(), self.access)?;
        let grant = lent.id();
        (self.asked, self.grant) = (bytes, Some(lent));
        let message = match self.access {
            Access::Read => {
                let process = self.caller.pid.into();
                chardev::Write { minor, grant, bytes, flags, caller, process }.message()
            }
            _ => chardev::Read { minor, grant, bytes, flags, caller }.message(),
        };
        let (base, caller) = (self.base, self.caller.clone());
        base.peers().ask_device_then(&caller, service, message, moved, self)
    }

    /// Takes note of what the driver has moved. Returns the result of the call; `None`: there is more to move.
    fn take_reply(&mut self, reply: Result<Message, Errno>) -> Option<Result<u64, Errno>> {
        let is_cancelled = self.caller.is_cancelled();
        let moved = match Peers::device_replied(&self.caller, reply) {
            Ok(reply) => reply.words[0].min(self.asked),
            Err(error) => return Some(self.buffer.moved_or(error)),
        };
        self.buffer.advance(moved);
        self.base.store().has_moved();
        // A terminal gives one line, however much was asked for.
        let is_short = moved < self.asked || self.access == Access::Write;
        if is_short || is_cancelled || self.buffer.left() == 0 {
            return Some(Ok(self.buffer.moved()));
        }
        self.caller.note(Note::Moved(self.buffer.moved()));
        None
    }
}

impl Continuation for Transfer {
    fn replied(mut self: Box<Self>, reply: Result<Message, Errno>) {
        let (base, who) = (self.base, self.caller.endpoint);
        let result = match self.take_reply(reply) {
            Some(result) => {
                drop(self);
                result
            }
            None => {
                let moved = self.buffer.moved();
                match self.go_on() {
                    Ok(()) => return,
                    // At least one piece was moved.
                    Err(_) => Ok(moved),
                }
            }
        };
        base.sweep();
        base.answer(who, result);
    }
}

/// Reads from or writes to a device with positions, until the driver moves less than it is asked to. Repeating a piece does no harm.
async fn transfer_at(
    base: &Base,
    caller: &Caller,
    file: &OpenFile,
    mut buffer: UserBuffer,
    at: Option<u64>,
    access: Access,
) -> Result<u64, Errno> {
    let Character { service, minor, .. } = *file.object::<Character>().ok_or(Errno::EIO)?;
    let start = at.unwrap_or_else(|| file.position());
    let mut result = Ok(());
    while buffer.left() > 0 && result.is_ok() {
        let piece = buffer.piece();
        let (bytes, position) = (piece.bytes.min(CHUNK), start.saturating_add(buffer.moved()));
        let lent = MagicGrant::new(buffer.owner, piece.address, bytes, service.endpoint(), access)?;
        let grant = lent.id();
        let message = match access {
            Access::Read => chardev::WriteAt { minor, grant, bytes, position }.message(),
            _ => chardev::ReadAt { minor, grant, bytes, position }.message(),
        };
        result = match base.peers().ask_device(caller, service, message).await {
            Ok(reply) => {
                let moved = reply.words[0].min(bytes);
                buffer.advance(moved);
                if moved < bytes {
                    break;
                }
                Ok(())
            }
            Err(error) => Err(error),
        };
    }
    if at.is_none() {
        file.set_position(start.saturating_add(buffer.moved()));
    }
    result.map(|()| buffer.moved()).or_else(|error| buffer.moved_or(error))
}

/// Writes to a character device from memory of vfs, of a call that has moved so many bytes already. Returns how many bytes it took.
pub async fn write_from(
    base: &Base,
    caller: &Caller,
    file: &OpenFile,
    data: Vec<u8>,
    moved: u64,
) -> Result<u64, Errno> {
    let device = file.object::<Character>().ok_or(Errno::EINVAL)?;
    let (service, minor, bytes) = (device.service, device.minor, data.len() as u64);
    let flags = if file.nonblocking() { chardev::NONBLOCK } else { 0 };
    let who = caller.group() & 0xffff_ffff | caller.session() << 32;
    let lent = GrantedBuffer::new(data, service.endpoint(), Access::Read)?;
    let process = caller.pid.into();
    let message = chardev::Write { minor, grant: lent.id(), bytes, flags, caller: who, process }.message();
    let reply = base.peers().ask_device_once(caller, service, message, moved).await?;
    device.watchers.fire_for(0);
    base.store().has_moved();
    Ok(reply.words[0].min(bytes))
}

async fn control(
    base: &Base,
    caller: &Caller,
    device: (Service, u64),
    request: u32,
    argument: u64,
) -> Result<u64, Errno> {
    let (service, minor) = device;
    if request == TIOCSTI && caller.parts().limited().is_some() {
        // What it types is read by whoever reads the terminal next, perhaps a shell outside.
        return Err(caller.refuse("TIOCSTI"));
    }
    if matches!(request, TIOCGPGRP | TIOCSPGRP | TIOCGSID) && caller.parts().of(Part::Processes) != 0 {
        return control_group(base, caller, device, request, argument).await;
    }
    let grant = MagicGrant::new(caller.endpoint, argument, ARGUMENT_BYTES, service.endpoint(), Access::ReadWrite)?;
    let who = caller.pid as u64 | caller.group() << 32;
    let (number, session) = (request as u64, caller.session());
    let message =
        chardev::Control { minor, request: number, argument, grant: grant.id(), caller: who, session }.message();
    let asked = (number, argument, grant);
    loop {
        let incarnation = base.peers().incarnation(service);
        let reply = base.peers().ask_device(caller, service, message).await?;
        let result = match chardev::Control::results(&reply)? {
            (_, 0) => return Ok(reply.words[0]),
            further => control_further(base, caller, device, &asked, further).await,
        };
        // A successor that does not know the steps before refuses the next one: the ioctl begins anew.
        if result.is_ok() || caller.is_cancelled() || base.peers().incarnation(service) == incarnation {
            return result;
        }
    }
}

/// Goes on with an ioctl whose argument points to further memory, piece by piece as the driver asks for it. The driver reaches nothing
/// that the program could not. `EIO`: the driver asks for too much, or for ever.
async fn control_further(
    base: &Base,
    caller: &Caller,
    (service, minor): (Service, u64),
    &(request, argument, ref grant): &(u64, u64, MagicGrant),
    mut further: (u64, u64),
) -> Result<u64, Errno> {
    let who = caller.pid as u64 | caller.group() << 32;
    for step in 1..=chardev::MAX_FURTHER_STEPS {
        let (address, bytes) = further;
        if bytes > chardev::MAX_FURTHER_BYTES {
            break;
        }
        let piece = MagicGrant::new(caller.endpoint, address, bytes, service.endpoint(), Access::ReadWrite)?;
        let message = chardev::Continue {
            minor,
            request: request | step << 32,
            argument,
            grants: u64::from(grant.id().0) | u64::from(piece.id().0) << 32,
            caller: who,
            session: caller.session(),
        };
        let reply = base.peers().ask_device(caller, service, message.message()).await?;
        further = chardev::Continue::results(&reply)?;
        if further.1 == 0 {
            return Ok(reply.words[0]);
        }
    }
    Err(Errno::EIO)
}

/// A call about the group or session of a terminal, of which a program in a container knows its container's numbers.
async fn control_group(
    base: &Base,
    caller: &Caller,
    (service, minor): (Service, u64),
    request: u32,
    argument: u64,
) -> Result<u64, Errno> {
    let container = caller.parts().of(Part::Processes);
    let mut bytes = [0; 4];
    user::fetch(caller.endpoint, argument, &mut bytes)?;
    if request == TIOCSPGRP {
        let group = container::pid_meant(container, u32::from_le_bytes(bytes)).ok_or(Errno::ESRCH)?;
        bytes = group.to_le_bytes();
    }
    let lent = GrantedBuffer::new(copied(&bytes)?, service.endpoint(), Access::ReadWrite)?;
    let who = caller.pid as u64 | caller.group() << 32;
    let (number, session, grant) = (request as u64, caller.session(), lent.id());
    let message = chardev::Control { minor, request: number, argument, grant, caller: who, session }.message();
    let reply = base.peers().ask_device(caller, service, message).await?;
    if request != TIOCSPGRP {
        let told = lent.take().first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        user::store(caller.endpoint, argument, &container::pid_shown(container, told).to_le_bytes())?;
    }
    Ok(reply.words[0])
}
