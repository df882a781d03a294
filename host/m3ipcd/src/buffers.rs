//! Buffers of the library: memory of a member that others of its user may map, so that `vcopy` needs no call of the kernel
//! (docs/adr/0109-buffers-of-the-library.md). Who has which is on the board; here is the memory, and who may have how much.
//!
//! Neighbours: `m3core::buffers`, the library's half; `container`, which frees the buffers of those who end.

use crate::admission::Caller;
use crate::broker::{Answer, Broker, Turn};
use crate::calls::{ended, int};
use crate::container::Fate;
use m3core::board::Buffer;
use m3core::memory;
use m3core::process::{self, Process};
use m3core::region::PAGE_BYTES;
use m3core::wait::now_ns;
use m3ipc::endpoint::Number;
use m3ipc::error::Error;
use m3ipc::limits::{BUFFERS, MAX_COPY};

/// What the buffers and boxes of a user take.
#[derive(Clone, Copy, Default)]
pub struct Used {
    /// Open files: one each.
    pub files: usize,
    /// Bytes of buffers.
    pub bytes: u64,
}

impl Broker {
    /// Allocates a buffer for the caller's process, or tells it of one that a predecessor has allocated for the same request.
    pub fn allocate(&mut self, caller: &Caller, arguments: [i64; 6], is_repeated: bool) -> Result<Turn, Error> {
        let [address, bytes, program] = [arguments[0], arguments[1], arguments[2]].map(i64::cast_unsigned);
        let is_page = |number: u64| number.is_multiple_of(PAGE_BYTES as u64);
        if !is_page(address) || !is_page(bytes) || bytes == 0 || bytes > MAX_COPY {
            return Err(Error::Invalid);
        }
        let (container, leader) = self.place_of(caller.pid, caller.pid).ok_or(Error::NotBound)?;
        self.forget_program(container, leader, program);
        let supervisor = self.supervisor();
        let tables = self.container(container.into())?;
        let known = |place: &usize| tables.board().buffer(leader, *place).is_some_and(|known| known.address == address);
        let existing = (0..BUFFERS).find(known);
        if let Some(place) = existing.filter(|_| is_repeated) {
            let file = tables.buffer_file(leader, place)?;
            return Ok(Turn::Ended(Answer { files: vec![file], ..Answer::default() }));
        }
        let place = (0..BUFFERS).find(|place| tables.board().buffer_id(leader, *place) == 0);
        let place = place.filter(|_| existing.is_none()).ok_or(Error::ResourceBusy)?;
        self.admission.check_buffer(caller, self.used_by(caller.uid), bytes)?;
        let file = memory::create_sealed("m3ipc buffer", bytes).map_err(|_| Error::NoMemory)?;
        let copy = file.try_clone().map_err(|_| Error::NoMemory)?;
        // Later than all that were given by predecessors.
        self.last_buffer = now_ns().max(self.last_buffer + 1);
        let buffer = Buffer { id: self.last_buffer, address, bytes, program, uid: caller.uid };
        self.container_mut(container.into())?.add_buffer(leader, place, buffer, file, &supervisor)?;
        Ok(Turn::Ended(Answer { files: vec![copy], ..Answer::default() }))
    }

    /// Frees the caller's buffer at an address; there may be none, if it was bound anew since.
    pub fn free(&mut self, caller: &Caller, address: i64) -> Result<Turn, Error> {
        let supervisor = self.supervisor();
        if let Some((container, leader)) = self.place_of(caller.pid, caller.pid) {
            let container = self.container_mut(container.into())?;
            let address = address.cast_unsigned();
            container.free_buffers(leader, Fate::Ended, |buffer| buffer.address == address, &supervisor);
        }
        ended(0)
    }

    /// Hands out the memory of a buffer, to who may copy from and to its process's memory.
    pub fn buffer(&self, caller: &Caller, arguments: [i64; 6]) -> Result<Turn, Error> {
        let [container, leader, place, id, ..] = arguments;
        let tables = self.container(container)?;
        let leader = Number::new(int(leader)?)?;
        let place = usize::try_from(place).ok().filter(|place| *place < BUFFERS).ok_or(Error::Range)?;
        if self.own_container(caller).map(i64::from) != Ok(container) {
            return Err(Error::NotBound);
        }
        let owner = tables.board().occupant(leader).ok_or(Error::DestinationDied)?.pid;
        if !self.may_copy(caller, owner) {
            return Err(Error::NotPermitted);
        }
        if id == 0 || tables.board().buffer_id(leader, place) != id.cast_unsigned() {
            return Err(Error::AddressNotAvailable);
        }
        let file = tables.buffer_file(leader, place)?;
        Ok(Turn::Ended(Answer { files: vec![file], ..Answer::default() }))
    }

    /// Frees the buffers of programs that a process has executed before this one.
    pub fn forget_program(&mut self, container: i32, leader: Number, program: u64) {
        let supervisor = self.supervisor();
        if let Some(container) = self.containers.get_mut(&container) {
            container.free_buffers(leader, Fate::Ended, |buffer| buffer.program != program, &supervisor);
        }
    }

    /// Returns what the buffers and boxes of a user take.
    pub fn used_by(&self, uid: u32) -> Used {
        let mut used = Used::default();
        for container in self.containers.values() {
            used.files += container.boxes().paid_by(uid);
            for (leader, place) in container.buffers() {
                if let Some(buffer) = container.board().buffer(leader, place).filter(|buffer| buffer.uid == uid) {
                    used.files += 1;
                    used.bytes += buffer.bytes;
                }
            }
        }
        used
    }

    /// Whether a process may copy from and to another one's memory, or its own, by this broker or by its buffers. Its own may be that of another program
    /// by now, with more rights, while a child uses the connection.
    pub fn may_copy(&self, caller: &Caller, pid: i32) -> bool {
        let is_open = || {
            let process = Process::open(pid, process::started(pid)?)?;
            Some(process.is_open_to(&caller.process()?, caller.uid, caller.gid))
        };
        self.is_admin(caller) || is_open() == Some(true)
    }
}
