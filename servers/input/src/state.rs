//! All devices and open files: who gets which events, which requests wait, and what has changed in a turn.

use crate::device::Device;
use crate::handle::{Content, Evdev, Handle};
use crate::ioctl::{Clock, Effect};
use crate::keys::Keys;
use crate::mice::{self, Mice};
use crate::queue::Queue;
use crate::world::World;
use crate::{handle, ioctl};
use abi::input::{EVENT_BYTES, Event, MINOR_KEYS, kind};
use abi::{Endpoint, Errno, GrantId, Message, chardev, fs::Use};
use alloc::boxed::Box;
use alloc::vec::Vec;
use recover::snapshot::{Reader, Writer};
use server::Pending;
use server::quota::Quota;
use sys::fallible;

/// Limit of devices.
pub const DEVICES: usize = 8;
/// Limit of open files.
pub const HANDLES: usize = 64;
/// Open files that one user gets, and those that only the superuser gets.
const PER_USER: usize = 16;
const RESERVE: usize = 16;
/// Requests that wait: vfs has at most one of each thread, but a table has a limit.
const WAITING: usize = 512;

/// Parts of the snapshot: devices, the keys, open files.
pub const KEYS_PART: usize = DEVICES;
/// See [`KEYS_PART`].
pub const FIRST_HANDLE_PART: usize = KEYS_PART + 1;
/// See [`KEYS_PART`].
pub const PARTS: usize = FIRST_HANDLE_PART + HANDLES;

/// Minors of nodes (Linux's), and the first one of open files.
const MINOR_MICE: u64 = 63;
const MINOR_EVENT: u64 = 64;
const MINOR_HANDLE: u64 = 0x100;

const POLLIN: u64 = 1;
const POLLOUT: u64 = 4;
const POLLERR: u64 = 8;
const POLLHUP: u64 = 16;
/// Events that are read and written at a time.
const CHUNK: usize = 64;

/// What a request waits for.
#[derive(Clone, Copy)]
enum Need {
    Read { grant: GrantId, bytes: u64 },
    Poll { events: u64 },
}

/// See the head of the file.
pub struct State {
    pub devices: Vec<Device>,
    handles: Vec<Option<Box<Handle>>>,
    keys: Keys,
    quota: Quota,
    /// Requests, each with the minor of its open file, or of console's keys.
    waiting: Pending<(u64, Need)>,
    /// Parts that the present turn has changed, one bit each.
    dirty: u128,
}

impl State {
    /// What a predecessor has left, or nothing.
    ///
    /// # Panics
    /// When there is no memory, at the start.
    pub fn restore(snapshots: &recover::snapshot::Snapshots) -> State {
        let no_memory = "input starts with memory for its tables";
        let device = |index| snapshots.load(index, Device::load).unwrap_or_else(Device::new);
        let load = |reader: &mut Reader| Handle::load(reader, DEVICES);
        let handle = |index| snapshots.load(FIRST_HANDLE_PART + index, load).map(Box::new);
        let mut state = State {
            devices: fallible::collect((0..DEVICES).map(device)).expect(no_memory),
            handles: fallible::collect((0..HANDLES).map(handle)).expect(no_memory),
            keys: snapshots.load(KEYS_PART, Keys::load).unwrap_or_else(Keys::new),
            quota: Quota::new(HANDLES, PER_USER, RESERVE),
            waiting: Pending::with_limit(WAITING).expect(no_memory),
            dirty: 0,
        };
        for handle in state.handles.iter().flatten() {
            state.quota.restore(handle.user, 1).expect(no_memory);
        }
        state
    }

    /// Takes the parts that have changed.
    pub fn take_dirty(&mut self) -> impl Iterator<Item = usize> + use<> {
        let dirty = core::mem::take(&mut self.dirty);
        (0..PARTS).filter(move |part| dirty & 1 << part != 0)
    }

    /// Saves one part. A closed file has no bytes.
    pub fn save(&self, part: usize, writer: &mut Writer) {
        match part {
            KEYS_PART => self.keys.save(writer),
            FIRST_HANDLE_PART.. => {
                self.handles[part - FIRST_HANDLE_PART].iter().for_each(|handle| handle.save(writer));
            }
            _ => self.devices[part].save(writer),
        }
    }

    /// A driver has sent events.
    pub fn take_in(&mut self, world: &mut impl World, device: usize, events: &[Event]) {
        for event in events {
            self.inject(world, device, *event);
        }
        self.devices[device].position = self.devices[device].position.wrapping_add(events.len() as u64);
        self.change(device);
        self.settle(world);
    }

    /// The driver has described a device.
    pub fn describe(&mut self, device: usize, description: abi::input::Description) {
        self.devices[device].description = Some(description);
        self.change(device);
    }

    /// Repeats the keys that are held, those whose time has come.
    pub fn repeat(&mut self, world: &mut impl World) {
        for index in 0..DEVICES {
            if let Some(packet) = self.devices[index].repeat(world.now_ns()) {
                self.pass(index, &packet);
            }
        }
        self.settle(world);
    }

    /// When a key is to be repeated next.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.devices.iter().filter_map(|device| device.held().map(|held| held.deadline_ns)).min()
    }

    /// Carries out a request.
    pub fn request(&mut self, world: &mut impl World, message: &Message, request: chardev::Request) {
        use chardev::Request;
        self.waiting.forget_stale(message);
        let result = match request {
            Request::Open(open) => self.open(message, open).map(Some),
            Request::Close(close) => self.close(close.minor).map(Some),
            Request::Read(read) if read.minor == MINOR_KEYS => self.read_keys(message, &read),
            Request::Read(read) => self.read(world, message, &read),
            Request::Write(write) => self.write(world, message, &write).map(Some),
            Request::Control(control) if control.minor == MINOR_KEYS => self.keys_control(world, &control).map(Some),
            Request::Control(control) => self.control(world, message, &control).map(Some),
            Request::Poll(poll) => self.poll(message, &poll),
            Request::Cancel(cancel) => return self.cancel(world, message.source, cancel.tag),
            Request::SetUses(uses) => self.set_uses(world, message, uses).map(Some),
            // It has neither memory nor positions, and asks for no further memory.
            Request::Map(_) => Err(Errno::ENODEV),
            Request::Continue(_) => Err(Errno::ENOTTY),
            Request::ReadAt(_) | Request::WriteAt(_) => Err(Errno::ESPIPE),
        };
        match result {
            Ok(Some(value)) => world.answer(message, Ok(value)),
            Ok(None) => {}
            Err(error) => world.answer(message, Err(error)),
        }
        self.settle(world);
    }

    fn inject(&mut self, world: &mut impl World, device: usize, event: Event) {
        let lights = self.devices[device].lights;
        if let Some(packet) = self.devices[device].take(event) {
            // A copy, because the device and the readers are one state.
            let mut copy = [Event::default(); CHUNK];
            let count = packet.len().min(CHUNK);
            copy[..count].copy_from_slice(&packet[..count]);
            self.devices[device].passed();
            self.pass(device, &copy[..count]);
        }
        if self.devices[device].lights != lights {
            world.set_lights(device, self.devices[device].lights);
        }
        self.change(device);
    }

    /// Passes a packet on: to the file that has the device for itself, or to all of the device, to the mice and to console.
    fn pass(&mut self, device: usize, packet: &[Event]) {
        let Some(description) = self.devices[device].description else { return };
        let grabs =
            |handle: &Handle| matches!(&handle.content, Content::Evdev(evdev) if evdev.device == device && evdev.grabs);
        let grabbed = self.handles.iter().flatten().any(|handle| grabs(handle));
        let mut changed = 0;
        for (index, handle) in self.handles.iter_mut().enumerate() {
            let Some(handle) = handle else { continue };
            if grabbed && !grabs(handle) {
                continue;
            }
            match &mut handle.content {
                Content::Evdev(evdev) if evdev.device == device && !evdev.revoked => evdev.queue.add(packet),
                Content::Mice(mice) if mice::shows(&description) => mice.add(&description, packet),
                _ => continue,
            }
            changed |= 1 << (FIRST_HANDLE_PART + index);
        }
        self.dirty |= changed;
        if !grabbed && self.keys.add(packet) {
            self.change(KEYS_PART);
        }
    }

    fn change(&mut self, part: usize) {
        self.dirty |= 1 << part;
    }

    fn handle(&mut self, minor: u64) -> Result<(usize, &mut Handle), Errno> {
        let index = minor.checked_sub(MINOR_HANDLE).ok_or(Errno::EINVAL)? as usize;
        let handle = self.handles.get_mut(index).and_then(Option::as_mut).ok_or(Errno::ENODEV)?;
        self.dirty |= 1 << (FIRST_HANDLE_PART + index);
        handle.open_tag = 0;
        Ok((index, handle))
    }

    fn open(&mut self, message: &Message, open: chardev::Open) -> Result<u64, Errno> {
        let tag = message.tag();
        let known = |handle: &Option<Box<Handle>>| handle.as_ref().is_some_and(|handle| handle.open_tag == tag);
        if let Some(index) = self.handles.iter().position(known).filter(|_| tag != 0) {
            return Ok((MINOR_HANDLE + index as u64) << chardev::OPENED_MINOR_SHIFT);
        }
        let content = match open.minor {
            MINOR_MICE => Content::Mice(Mice::new()?),
            minor => {
                let device = minor.checked_sub(MINOR_EVENT).ok_or(Errno::ENXIO)? as usize;
                let is_present = self.devices.get(device).is_some_and(|device| device.description.is_some());
                if !is_present {
                    return Err(Errno::ENODEV);
                }
                Content::Evdev(Evdev { device, queue: Queue::new()?, clock: Clock::Real, grabs: false, revoked: false })
            }
        };
        let index = self.handles.iter().position(Option::is_none).ok_or(Errno::ENFILE)?;
        fallible::admit()?;
        let user = (open.ids >> 32) as u32;
        self.quota.take(user, 1).map_err(|refusal| refusal.errno(Errno::EMFILE, Errno::ENFILE))?;
        self.handles[index] = Some(Box::new(Handle { content, user, open_tag: tag, written: (0, 0) }));
        self.change(FIRST_HANDLE_PART + index);
        Ok((MINOR_HANDLE + index as u64) << chardev::OPENED_MINOR_SHIFT)
    }

    fn close(&mut self, minor: u64) -> Result<u64, Errno> {
        if let Ok((index, handle)) = self.handle(minor) {
            let user = handle.user;
            self.handles[index] = None;
            self.quota.give(user, 1);
        }
        Ok(0)
    }

    fn read(&mut self, world: &mut impl World, message: &Message, read: &chardev::Read) -> Result<Option<u64>, Errno> {
        let need = Need::Read { grant: read.grant, bytes: read.bytes };
        match self.attempt(world, message, read.minor, need) {
            Some(result) => result.map(Some),
            None if read.bytes == 0 => Ok(Some(0)),
            None if read.flags & chardev::NONBLOCK != 0 => Err(Errno::EAGAIN),
            None => self.wait(message, read.minor, need),
        }
    }

    fn read_keys(&mut self, message: &Message, read: &chardev::Read) -> Result<Option<u64>, Errno> {
        if !message.source.is_service() {
            return Err(Errno::EPERM);
        }
        self.keys.acknowledge(read.caller);
        self.change(KEYS_PART);
        self.wait(message, MINOR_KEYS, Need::Read { grant: read.grant, bytes: read.bytes })
    }

    /// Console sets the lights of all keyboards.
    fn keys_control(&mut self, world: &mut impl World, control: &chardev::Control) -> Result<u64, Errno> {
        if control.request != abi::input::SET_LEDS {
            return Err(Errno::ENOTTY);
        }
        let time_ns = world.now_ns();
        for device in 0..DEVICES {
            for code in 0..3_u16 {
                let value = (control.argument >> code & 1) as i32;
                self.inject(world, device, Event { time_ns, kind: kind::LED, code, value });
            }
        }
        Ok(0)
    }

    fn write(&mut self, world: &mut impl World, message: &Message, write: &chardev::Write) -> Result<u64, Errno> {
        let (_, handle) = self.handle(write.minor)?;
        let (tag, bytes) = handle.written;
        if tag == message.tag() && tag != 0 {
            return Ok(bytes);
        }
        let mut buffer = [0; CHUNK * handle::EVENT_BYTES];
        let count = (write.bytes as usize).min(buffer.len());
        world.copy_in(message, write.grant, 0, &mut buffer[..count])?;
        let written = match &mut handle.content {
            Content::Mice(mice) => {
                mice.write(&buffer[..count]);
                count
            }
            Content::Evdev(_) => {
                let device = handle.evdev()?.device;
                let records = buffer[..count].as_chunks::<{ handle::EVENT_BYTES }>().0;
                if records.is_empty() && count > 0 {
                    return Err(Errno::EINVAL);
                }
                let time_ns = world.now_ns();
                for record in records {
                    self.inject(world, device, handle::event_of(record, time_ns));
                }
                records.len() * handle::EVENT_BYTES
            }
        };
        self.handle(write.minor)?.1.written = (message.tag(), written as u64);
        Ok(written as u64)
    }

    fn control(&mut self, world: &mut impl World, message: &Message, control: &chardev::Control) -> Result<u64, Errno> {
        let (index, handle) = self.handle(control.minor)?;
        let device = handle.evdev()?.device;
        let effect = ioctl::carry_out(&mut self.devices[device], world, message, control)?;
        self.change(device);
        let holder = self.handles.iter().position(|handle| {
            let evdev = handle.as_ref().map(|handle| &handle.content);
            matches!(evdev, Some(Content::Evdev(evdev)) if evdev.device == device && evdev.grabs)
        });
        let evdev = self.handle(control.minor)?.1.evdev()?;
        match effect {
            Effect::Result(result) => return Ok(result),
            Effect::Told(kind, result) => {
                evdev.queue.forget(kind);
                return Ok(result);
            }
            Effect::Grab if holder.is_some() => return Err(Errno::EBUSY),
            Effect::Grab => evdev.grabs = true,
            Effect::Release if holder != Some(index) => return Err(Errno::EINVAL),
            Effect::Release => evdev.grabs = false,
            Effect::Revoke => (evdev.revoked, evdev.grabs) = (true, false),
            Effect::SetClock(clock) if evdev.clock != clock => {
                evdev.clock = clock;
                evdev.queue.restart(world.now_ns());
            }
            Effect::SetClock(_) => {}
        }
        Ok(0)
    }

    fn poll(&mut self, message: &Message, poll: &chardev::Poll) -> Result<Option<u64>, Errno> {
        let ready = self.ready(poll.minor) & (poll.events | POLLERR | POLLHUP);
        if poll.now || ready != 0 {
            return Ok(Some(ready));
        }
        self.wait(message, poll.minor, Need::Poll { events: poll.events })
    }

    fn ready(&self, minor: u64) -> u64 {
        let index = minor.wrapping_sub(MINOR_HANDLE) as usize;
        let Some(Some(handle)) = self.handles.get(index) else { return POLLERR | POLLHUP };
        match &handle.content {
            Content::Evdev(evdev) if evdev.revoked => POLLERR | POLLHUP,
            Content::Evdev(_) | Content::Mice(_) => POLLOUT | if handle.is_readable() { POLLIN } else { 0 },
        }
    }

    /// Keeps a request until it gets what it needs.
    fn wait(&mut self, request: &Message, minor: u64, need: Need) -> Result<Option<u64>, Errno> {
        if self.waiting.add(request, (minor, need)) { Ok(None) } else { Err(Errno::ENOMEM) }
    }

    fn cancel(&mut self, world: &mut impl World, source: Endpoint, tag: u64) {
        if let Some(request) = self.waiting.cancel(source, tag) {
            world.answer(&request, Err(Errno::EINTR));
        }
    }

    /// Replies to every waiting request that can be, oldest first.
    fn settle(&mut self, world: &mut impl World) {
        let mut waiting = core::mem::take(&mut self.waiting);
        waiting.settle(|request, (minor, need)| {
            let result = self.attempt(world, request, *minor, *need);
            result.inspect(|result| world.answer(request, *result)).is_some()
        });
        self.waiting = waiting;
    }

    /// The result of a request that waits; `None`: it still has to.
    fn attempt(
        &mut self,
        world: &mut impl World,
        request: &Message,
        minor: u64,
        need: Need,
    ) -> Option<Result<u64, Errno>> {
        match need {
            Need::Poll { events } => {
                let ready = self.ready(minor) & (events | POLLERR | POLLHUP);
                (ready != 0).then_some(Ok(ready))
            }
            Need::Read { grant, bytes } if minor == MINOR_KEYS => {
                let mut buffer = [0; CHUNK * EVENT_BYTES];
                let limit = (bytes as usize / EVENT_BYTES).min(CHUNK);
                let mut count = 0;
                for (record, event) in buffer.as_chunks_mut().0.iter_mut().take(limit).zip(self.keys.iter()) {
                    *record = event.to_bytes();
                    count += EVENT_BYTES;
                }
                let copied = || world.copy_out(request, grant, &buffer[..count]).map(|()| count as u64);
                (count > 0).then(copied)
            }
            Need::Read { grant, bytes } => {
                let mut buffer = [0; CHUNK * handle::EVENT_BYTES];
                let offset_ns = world.real_ns().wrapping_sub(world.now_ns());
                let tag = request.tag();
                let read = |(_, handle): (usize, &mut Handle)| handle.read(tag, bytes as usize, offset_ns, &mut buffer);
                match self.handle(minor).and_then(read) {
                    Ok(None) => None,
                    Ok(Some(count)) => Some(world.copy_out(request, grant, &buffer[..count]).map(|()| count as u64)),
                    Err(error) => Some(Err(error)),
                }
            }
        }
    }

    /// vfs has restarted: what it has not open is closed.
    fn set_uses(&mut self, world: &mut impl World, message: &Message, uses: chardev::SetUses) -> Result<u64, Errno> {
        const USE_BYTES: usize = size_of::<Use>();
        const MAX_USES: u64 = 1 << 12;
        if uses.bytes > MAX_USES * USE_BYTES as u64 {
            return Err(Errno::EINVAL);
        }
        let mut buffer = fallible::filled(0, uses.bytes as usize)?;
        world.copy_in(message, uses.grant, 0, &mut buffer)?;
        let mut open = [false; HANDLES];
        for record in buffer.as_chunks::<USE_BYTES>().0 {
            let minor = record[..8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            if let Some(slot) = open.get_mut(minor.wrapping_sub(MINOR_HANDLE) as usize) {
                *slot = true;
            }
        }
        for (index, _) in open.into_iter().enumerate().filter(|(_, is_open)| !is_open) {
            self.close(MINOR_HANDLE + index as u64)?;
        }
        Ok(0)
    }
}
