//! A container: its descriptor, board and desks, the boxes of its pairs, and the buffers of its members.

use crate::boxes::{self, Boxes, Ends};
use crate::store::{self, Key};
use m3core::board::{Board, Buffer, Occupant, Writer};
use m3core::desk::{Desks, Doing, From, Takes};
use m3core::memory::{Access, Mapping};
use m3core::{pair, process, wait};
use m3ipc::descriptor::{ContainerInfo, ProcessInfo, misc, rts};
use m3ipc::endpoint::{DISTANCE, Endpoint, Number, next_generation};
use m3ipc::error::Error;
use m3ipc::limits::{BUFFERS, SLOTS};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use zerocopy::{FromBytes, IntoBytes};

/// What becomes of a process that is unbound.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes on, with the memory of its buffers.
    Lives,
    /// It has ended.
    Ended,
}

/// A container.
pub struct Container {
    info: ContainerInfo,
    board: Mapping<Board>,
    board_file: OwnedFd,
    desks: Mapping<Desks>,
    desks_file: OwnedFd,
    boxes: Boxes,
    /// Memory of buffers, by group leader and place.
    buffers: BTreeMap<(Number, usize), OwnedFd>,
}

/// All slots.
pub fn numbers() -> impl Iterator<Item = Number> {
    (0..SLOTS).map(Number::at)
}

impl Container {
    /// Makes a container, and deposits it.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn new(info: ContainerInfo, node: i32, supervisor: &OwnedFd) -> Result<Container, Error> {
        let (board_file, board) = Mapping::<Board>::create("m3ipc board").map_err(|_| Error::NoMemory)?;
        let (desks_file, desks) = Mapping::create("m3ipc desks").map_err(|_| Error::NoMemory)?;
        Writer(&board).set_place(info.number, node);
        let files = [board_file.as_fd(), desks_file.as_fd()];
        let kept = store::keep(supervisor, Key::Container(info.number), info.as_bytes(), &files);
        kept.map_err(|_| Error::NoMemory)?;
        Ok(Container { info, board, board_file, desks, desks_file, boxes: Boxes::default(), buffers: BTreeMap::new() })
    }

    /// Takes over a predecessor's container.
    pub fn taken_over(bytes: &[u8], files: Vec<OwnedFd>) -> Option<Container> {
        let info = ContainerInfo::read_from_bytes(bytes).ok()?;
        let [board_file, desks_file]: [OwnedFd; 2] = files.try_into().ok()?;
        let board = Mapping::<Board>::map(&board_file, Access::Write).ok()?;
        let desks = Mapping::map(&desks_file, Access::Write).ok()?;
        Writer(&board).count_change();
        Some(Container {
            info,
            board,
            board_file,
            desks,
            desks_file,
            boxes: Boxes::default(),
            buffers: BTreeMap::new(),
        })
    }

    /// Takes over a predecessor's box.
    pub fn take_over_box(&mut self, low: i32, high: i32, bytes: &[u8], file: OwnedFd) {
        let uid = bytes.first_chunk().map_or(0, |uid| u32::from_le_bytes(*uid));
        if let (Ok(low), Ok(high)) = (Number::new(low), Number::new(high)) {
            self.boxes.add((low, high), file, uid);
        }
    }

    /// Takes over a predecessor's buffer, unless that one was about to free it, or had not yet told anybody of it.
    pub fn take_over_buffer(&mut self, leader: i32, place: i32, file: OwnedFd, supervisor: &OwnedFd) {
        let place = usize::try_from(place).ok().filter(|place| *place < BUFFERS);
        let (Ok(leader), Some(place)) = (Number::new(leader), place) else { return };
        let is_bound = self.board.occupant(leader).is_some();
        if is_bound && self.board.buffer_id(leader, place) != 0 {
            self.buffers.insert((leader, place), file);
        } else {
            Writer(&self.board).set_buffer(leader, place, None);
            empty(&file);
            let _ = store::drop(supervisor, self.buffer_key(leader, place));
        }
    }

    /// Gives a new supervisor all that there is of this container.
    ///
    /// # Errors
    /// As [`store::hand_over`].
    pub fn hand_over(&self, to: &OwnedFd) -> Result<(), Errno> {
        let files = [self.board_file.as_fd(), self.desks_file.as_fd()];
        store::hand_over(to, Key::Container(self.info.number), self.info.as_bytes(), &files)?;
        for (ends, file, uid) in self.boxes.all() {
            store::hand_over(to, self.box_key(ends), &uid.to_le_bytes(), &[file.as_fd()])?;
        }
        for ((leader, place), file) in &self.buffers {
            store::hand_over(to, self.buffer_key(*leader, *place), &[], &[file.as_fd()])?;
        }
        Ok(())
    }

    /// Returns the places of all buffers.
    pub fn buffers(&self) -> impl Iterator<Item = (Number, usize)> {
        self.buffers.keys().copied()
    }

    /// Returns the memory of a buffer.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn buffer_file(&self, leader: Number, place: usize) -> Result<OwnedFd, Error> {
        self.buffers.get(&(leader, place)).and_then(|file| file.try_clone().ok()).ok_or(Error::NoMemory)
    }

    /// Deposits a buffer, and writes it on the board.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn add_buffer(
        &mut self,
        leader: Number,
        place: usize,
        buffer: Buffer,
        file: OwnedFd,
        supervisor: &OwnedFd,
    ) -> Result<(), Error> {
        let key = self.buffer_key(leader, place);
        store::keep(supervisor, key, &[], &[file.as_fd()]).map_err(|_| Error::NoMemory)?;
        self.buffers.insert((leader, place), file);
        Writer(&self.board).set_buffer(leader, place, Some(buffer));
        Ok(())
    }

    /// Forgets the buffers of a group leader that are `meant`; their memory too, unless their process lives with it.
    pub fn free_buffers(&mut self, leader: Number, fate: Fate, meant: impl Fn(&Buffer) -> bool, supervisor: &OwnedFd) {
        for place in 0..BUFFERS {
            if self.board.buffer(leader, place).is_some_and(|buffer| meant(&buffer)) {
                Writer(&self.board).set_buffer(leader, place, None);
                if let Some(file) = self.buffers.remove(&(leader, place)) {
                    if fate == Fate::Ended {
                        empty(&file);
                    }
                    // What is kept too long is a file that nobody gets.
                    let _ = store::drop(supervisor, self.buffer_key(leader, place));
                }
            }
        }
    }

    fn box_key(&self, (low, high): Ends) -> Key {
        Key::Box(self.info.number, low.get(), high.get())
    }

    fn buffer_key(&self, leader: Number, place: usize) -> Key {
        Key::Buffer(self.info.number, leader.get(), place as i32)
    }

    /// Returns its descriptor.
    pub fn info(&self) -> ContainerInfo {
        let bound = numbers().filter(|number| self.board.occupant(*number).is_some()).count();
        ContainerInfo { bound: bound as i32, ..self.info }
    }

    /// Changes its descriptor.
    pub fn set_info(&mut self, info: ContainerInfo, supervisor: &OwnedFd) -> Result<(), Error> {
        let kept = store::keep(supervisor, Key::Container(info.number), info.as_bytes(), &[]);
        kept.map_err(|_| Error::NoMemory)?;
        self.info = info;
        Ok(())
    }

    /// Returns who is bound.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Returns board and desks for a member: the board for reading.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn files(&self) -> Result<Vec<OwnedFd>, Error> {
        let path = format!("/proc/self/fd/{}", self.board_file.as_raw_fd());
        let board = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let desks = self.desks_file.try_clone();
        match (board, desks) {
            (Ok(board), Ok(desks)) => Ok(vec![board, desks]),
            _ => Err(Error::NoMemory),
        }
    }

    /// Checks that the container has this slot.
    ///
    /// # Errors
    /// `Range`.
    pub fn slot(&self, number: i64) -> Result<Number, Error> {
        let number = i32::try_from(number).map_err(|_| Error::Range)?;
        let has = (-self.info.tasks..self.info.processes).contains(&number);
        if has { Number::new(number) } else { Err(Error::Range) }
    }

    /// Binds a process of this node to a free slot. Returns its endpoint.
    ///
    /// # Errors
    /// `SlotUsed`; `BadPid`: it has ended.
    pub fn bind(
        &mut self,
        number: Number,
        pid: i32,
        thread: i32,
        leader: Number,
        flags: u32,
    ) -> Result<Endpoint, Error> {
        let generation = next_generation(number, Writer(&self.board).generation(number));
        let started = process::started(pid).ok_or(Error::BadPid)?;
        let node = self.board.node();
        let leads = if leader == number { misc::GRPLEADER } else { 0 };
        let occupant = Occupant {
            incarnation: 0,
            endpoint: Endpoint::new(number, generation),
            pid,
            thread,
            leader,
            node,
            flags: flags | leads,
            started,
        };
        self.occupy(number, generation, &occupant, process::name(pid))
    }

    /// Binds a process of another node, or what stands for one, under its endpoint.
    ///
    /// # Errors
    /// `SlotUsed`; `StaleEndpoint`: it is no endpoint.
    pub fn bind_remote(
        &mut self,
        endpoint: Endpoint,
        node: i32,
        pid: i32,
        flags: u32,
        name: [u8; 16],
    ) -> Result<Endpoint, Error> {
        let number = endpoint.number()?;
        let generation = (endpoint.raw() - number.get()) / DISTANCE;
        let generation = u32::try_from(generation).map_err(|_| Error::StaleEndpoint)?;
        if Endpoint::new(number, generation) != endpoint {
            return Err(Error::StaleEndpoint);
        }
        let started = if pid == 0 { 0 } else { process::started(pid).ok_or(Error::BadPid)? };
        let occupant = Occupant { incarnation: 0, endpoint, pid, thread: pid, leader: number, node, flags, started };
        self.occupy(number, generation, &occupant, name)
    }

    fn occupy(
        &mut self,
        number: Number,
        generation: u32,
        occupant: &Occupant,
        name: [u8; 16],
    ) -> Result<Endpoint, Error> {
        if self.board.occupant(number).is_some() {
            return Err(Error::SlotUsed);
        }
        self.desks.desk(number).clear();
        Writer(&self.board).occupy(number, generation, occupant, name);
        Ok(occupant.endpoint)
    }

    /// Ends the binding of a process, with those of its threads if it leads a group. Whoever waits looks again.
    pub fn unbind(&mut self, number: Number, fate: Fate, supervisor: &OwnedFd) {
        let is_thread = |other: &Number| {
            *other != number && self.board.occupant(*other).is_some_and(|thread| thread.leader == number)
        };
        let mut gone: Vec<Number> = numbers().filter(is_thread).collect();
        gone.push(number);
        for number in gone {
            if self.board.occupant(number).is_some() {
                Writer(&self.board).vacate(number);
            }
            for ends in self.boxes.of(number) {
                self.boxes.remove(ends);
                // What is kept too long is a file that nobody gets.
                let _ = store::drop(supervisor, self.box_key(ends));
            }
        }
        self.ring_all();
        self.free_buffers(number, fate, |_| true, supervisor);
    }

    /// Wakes everybody, to look at the board again.
    pub fn ring_all(&self) {
        for number in numbers().filter(|number| self.board.occupant(*number).is_some()) {
            wait::ring(self.desks.desk(number));
        }
    }

    /// The boxes of pairs.
    pub fn boxes(&self) -> &Boxes {
        &self.boxes
    }

    /// Returns the box of two processes, which is made and deposited at first use; this user pays for it then.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn box_of(&mut self, own: Number, peer: Number, uid: u32, supervisor: &OwnedFd) -> Result<OwnedFd, Error> {
        let ends = boxes::ends(own, peer);
        if self.boxes.get(ends).is_none() {
            let (file, _) = Mapping::<pair::Box>::create("m3ipc box").map_err(|_| Error::NoMemory)?;
            store::keep(supervisor, self.box_key(ends), &uid.to_le_bytes(), &[file.as_fd()])
                .map_err(|_| Error::NoMemory)?;
            self.boxes.add(ends, file, uid);
        }
        if !self.board.boxes(peer).contains(own) {
            Writer(&self.board).add_box(own, peer);
            wait::ring(self.desks.desk(peer));
        }
        self.boxes.get(ends).and_then(|file| file.try_clone().ok()).ok_or(Error::NoMemory)
    }

    /// Notifies a process in the name of another slot.
    ///
    /// # Errors
    /// `Privileges`, `Overrun`.
    pub fn post(&self, to: Number, source: Number) -> Result<(), Error> {
        let desk = self.desks.desk(to);
        let is_meant = |doing| matches!(doing, Doing::Receiving(from, Takes::All) if from == From::Any || from == From::One(source));
        if !is_meant(desk.word().doing()) && !self.board.rights(to).is_system() {
            return Err(Error::Privileges);
        }
        let seen = desk.seen[source.index() / 64].load(std::sync::atomic::Ordering::SeqCst);
        if self.board.posted(to).contains(source) != (seen & 1 << (source.index() % 64) != 0) {
            return Err(Error::Overrun);
        }
        Writer(&self.board).post(to, source);
        loop {
            let word = desk.word();
            let next = match word.doing() {
                doing if is_meant(doing) => Doing::GotNote(source),
                Doing::Looking => Doing::LookingAgain,
                _ => break,
            };
            if desk.replace(word, word.with(next)) {
                break;
            }
        }
        wait::ring(desk);
        Ok(())
    }

    /// Ends the wait of a process that receives from anybody.
    ///
    /// # Errors
    /// `Running`.
    pub fn wake_up(&self, number: Number) -> Result<(), Error> {
        let desk = self.desks.desk(number);
        let word = desk.word();
        match word.doing() {
            Doing::Receiving(From::Any, _) if desk.replace(word, word.with(Doing::WokenUp)) => {
                wait::ring(desk);
                Ok(())
            }
            _ => Err(Error::Running),
        }
    }

    /// Describes a slot.
    pub fn describe(&self, number: Number) -> ProcessInfo {
        let none = Endpoint::NONE.raw();
        let free = ProcessInfo {
            number: number.get(),
            endpoint: none,
            container: self.info.number,
            state: rts::SLOT_FREE,
            pid: -1,
            node: -1,
            receives_from: none,
            sends_to: none,
            waits_for_move: none,
            waits_for_end: none,
            proxy: none,
            leader: none,
            ..ProcessInfo::default()
        };
        let Some(occupant) = self.board.occupant(number) else { return free };
        let desk = self.desks.desk(number);
        let endpoint = |number| self.board.last_endpoint(number).raw();
        let (mut state, receives_from, sends_to) = match desk.word().doing() {
            Doing::Receiving(From::Any, _) => (rts::RECEIVING, Endpoint::ANY.raw(), none),
            Doing::Receiving(From::One(from), _) | Doing::AwaitingAnswer(from) => {
                (rts::RECEIVING, endpoint(from), none)
            }
            Doing::Sending(to) => (rts::SENDING, none, endpoint(to)),
            Doing::SendingForAnswer(to) => (rts::SENDING | rts::RECEIVING, endpoint(to), endpoint(to)),
            _ => (0, none, none),
        };
        if occupant.node != self.board.node() {
            state |= rts::REMOTE;
        }
        ProcessInfo {
            endpoint: occupant.endpoint.raw(),
            state,
            pid: if occupant.thread == 0 { -1 } else { occupant.thread },
            node: occupant.node,
            nodes: 1u32.checked_shl(occupant.node.cast_unsigned()).unwrap_or(0),
            flags: occupant.flags,
            receives_from,
            sends_to,
            leader: endpoint(occupant.leader),
            local_sent: desk.sent.load(std::sync::atomic::Ordering::Relaxed),
            local_copies: desk.copied.load(std::sync::atomic::Ordering::Relaxed),
            // A process may execute another program after it was bound.
            name: if occupant.pid == 0 { self.board.name(number) } else { process::name(occupant.pid) },
            ..free
        }
    }
}

/// Frees the memory of a buffer: others may have it mapped for a while yet.
fn empty(file: &OwnedFd) {
    let bytes = rustix::fs::fstat(file).map_or(0, |stat| stat.st_size.cast_unsigned());
    // It cannot fail for memory; if it did, the last of those others would free it.
    let _ = rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn a_successor_has_members_find_out_anew_what_they_knew() {
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (supervisor, _kept) = pair.expect("there is a pair of sockets");
        let info = ContainerInfo::read_from_bytes(&[0; size_of::<ContainerInfo>()]).expect("zeros describe one");
        let container = Container::new(info, 0, &supervisor).expect("there is memory for a container");
        // The predecessor may have died between a change and its being counted.
        let before = container.board().changes();
        let files = [&container.board_file, &container.desks_file].map(|file| file.try_clone());
        let files = files.into_iter().collect::<Result<_, _>>().expect("there are descriptors");
        let successors = Container::taken_over(info.as_bytes(), files).expect("the deposit is whole");
        assert!(successors.board().changes() > before);
        assert_eq!(container.board().changes(), successors.board().changes(), "members have the same board mapped");
    }
}
