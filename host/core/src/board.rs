//! The board: who is bound in a container. The broker writes it, members map it for reading.
//!
//! A slot's incarnation is even while it is free and odd while somebody is bound; it changes at each bind and unbind. Whoever has seen an
//! incarnation knows by one load whether that process is still bound.

use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::error::Error;
use m3ipc::limits::{BUFFERS, SLOTS};
use m3ipc::rights::{Level, Rights, SlotSet, Trap};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// The board of a container.
#[repr(C)]
pub struct Board {
    /// Number of the container.
    container: AtomicI32,
    /// Number of this node.
    node: AtomicI32,
    /// Counts unbinds and changes of rights: what ends that a call may be made.
    changes: AtomicU64,
    unused: [AtomicU64; 6],
    slots: [Slot; SLOTS],
    buffers: [[Entry; BUFFERS]; SLOTS],
}

/// A buffer of the library's, of the process whose group leader is in a slot.
#[repr(C)]
struct Entry {
    /// No other buffer ever has it; 0: there is none here.
    id: AtomicU64,
    address: AtomicU64,
    bytes: AtomicU64,
    program: AtomicU64,
    uid: AtomicU64,
}

/// What is known of a slot.
#[repr(C, align(256))]
struct Slot {
    incarnation: AtomicU32,
    endpoint: AtomicI32,
    pid: AtomicI32,
    thread: AtomicI32,
    leader: AtomicI32,
    node: AtomicI32,
    flags: AtomicU32,
    generation: AtomicU32,
    /// Number and level of its rights; the rest is in `traps` and the sets.
    id: AtomicU32,
    level: AtomicU32,
    traps: AtomicU32,
    /// Not 0 when the rights are less than a new process has.
    is_restricted: AtomicU32,
    sends_to: Bits,
    receives_from: Bits,
    /// The slots that have a box in common with this one.
    boxes: Bits,
    /// Sources of notifications that the broker has posted for others: a bit is turned at each.
    posted: Bits,
    /// Start of the process, in ticks since boot: tells it from another one with its pid.
    started: AtomicU64,
    warn: AtomicI32,
    warned: AtomicI32,
    calls: AtomicU64,
    alarm: AtomicU64,
    name: [AtomicU64; 2],
}

type Bits = [AtomicU64; SLOTS / 64];

fn load(bits: &Bits) -> SlotSet {
    SlotSet::from_bits(std::array::from_fn(|at| bits[at].load(SeqCst)))
}

fn store(bits: &Bits, set: SlotSet) {
    for (word, value) in bits.iter().zip(set.bits()) {
        word.store(value, SeqCst);
    }
}

/// Who is bound in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// Its incarnation.
    pub incarnation: u32,
    /// Its endpoint.
    pub endpoint: Endpoint,
    /// Its process, 0 for one on another node.
    pub pid: i32,
    /// Its thread; the process for one that was not bound as a thread.
    pub thread: i32,
    /// Slot of its group leader.
    pub leader: Number,
    /// Where it runs.
    pub node: i32,
    /// What it is: bits of [`m3ipc::descriptor::misc`].
    pub flags: u32,
    /// When its process began.
    pub started: u64,
}

/// A buffer of the library's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// No other buffer ever has it, and it is not 0.
    pub id: u64,
    /// Where it begins in its process.
    pub address: u64,
    /// How long it is.
    pub bytes: u64,
    /// Tells the program that has allocated it from one that its process executes later.
    pub program: u64,
    /// Whose it is.
    pub uid: u32,
}

impl Buffer {
    /// Whether a block lies in it.
    pub fn has(&self, address: u64, bytes: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|offset| offset <= self.bytes && bytes <= self.bytes - offset)
    }
}

impl Board {
    /// Returns the number of the container.
    pub fn container(&self) -> i32 {
        self.container.load(Relaxed)
    }

    /// Returns the number of this node.
    pub fn node(&self) -> i32 {
        self.node.load(Relaxed)
    }

    /// Returns the count of unbinds and changes of rights. That a call may be made, found out after reading it, is true as long as it is the same.
    #[inline(always)]
    pub fn changes(&self) -> u64 {
        self.changes.load(SeqCst)
    }

    /// Returns the word of [`Board::changes`], to watch it.
    pub(crate) fn changes_word(&self) -> &AtomicU64 {
        &self.changes
    }

    /// Returns the incarnation of a slot.
    pub fn incarnation(&self, slot: Number) -> u32 {
        self.slot(slot).incarnation.load(SeqCst)
    }

    /// Whether a slot's occupant has other rights than a new process.
    #[inline(always)]
    pub(crate) fn is_restricted(&self, slot: Number) -> bool {
        self.slot(slot).is_restricted.load(Acquire) != 0
    }

    /// Returns the word of the number of a buffer, to watch it.
    pub(crate) fn buffer_word(&self, leader: Number, place: usize) -> &AtomicU64 {
        &self.buffers[leader.index()][place].id
    }

    /// Returns who is bound in a slot.
    pub fn occupant(&self, number: Number) -> Option<Occupant> {
        let slot = self.slot(number);
        let incarnation = slot.incarnation.load(Acquire);
        (incarnation % 2 == 1).then(|| Occupant {
            incarnation,
            endpoint: Endpoint::from_raw(slot.endpoint.load(Relaxed)),
            pid: slot.pid.load(Relaxed),
            thread: slot.thread.load(Relaxed),
            leader: Number::new(slot.leader.load(Relaxed)).unwrap_or(number),
            node: slot.node.load(Relaxed),
            flags: slot.flags.load(Relaxed),
            started: slot.started.load(Relaxed),
        })
    }

    /// Returns the slot of a process by its name, and its incarnation.
    ///
    /// # Errors
    /// As `Rendezvous::locate`.
    pub fn locate(&self, endpoint: Endpoint) -> Result<(Number, u32), Error> {
        let number = endpoint.number()?;
        let slot = self.slot(number);
        let incarnation = slot.incarnation.load(Acquire);
        if slot.endpoint.load(Relaxed) != endpoint.raw() {
            // A slot in which nobody was ever bound has generation 0.
            let is_first = slot.endpoint.load(Relaxed) == 0 && endpoint == Endpoint::new(number, 0);
            return Err(if is_first { Error::DestinationDied } else { Error::StaleEndpoint });
        }
        if incarnation.is_multiple_of(2) { Err(Error::DestinationDied) } else { Ok((number, incarnation)) }
    }

    /// Returns the name of a slot's occupant, or of the last one.
    pub fn last_endpoint(&self, number: Number) -> Endpoint {
        Endpoint::from_raw(self.slot(number).endpoint.load(Relaxed))
    }

    /// Returns the rights of a slot's occupant.
    pub fn rights(&self, number: Number) -> Rights {
        let slot = self.slot(number);
        if slot.is_restricted.load(Acquire) == 0 {
            return Rights::of_new(number);
        }
        let levels = [Level::User, Level::Server, Level::Task, Level::System, Level::Kernel, Level::Proxy];
        Rights {
            id: slot.id.load(Relaxed) as u16,
            level: levels.get(slot.level.load(Relaxed) as usize).copied().unwrap_or(Level::User),
            traps: slot.traps.load(Relaxed),
            sends_to: load(&slot.sends_to),
            receives_from: load(&slot.receives_from),
        }
    }

    /// Whether a process may make this call.
    pub fn may_call(&self, number: Number, trap: Trap) -> bool {
        let slot = self.slot(number);
        slot.is_restricted.load(Acquire) == 0 || slot.traps.load(Relaxed) & 1 << trap as u32 != 0
    }

    /// Whether a process may send to another, and that one may receive from it.
    pub fn may_send(&self, from: Number, to: Number) -> bool {
        let (sender, receiver) = (self.slot(from), self.slot(to));
        let has =
            |bits: &Bits, number: Number| bits[number.index() / 64].load(SeqCst) & 1 << (number.index() % 64) != 0;
        (sender.is_restricted.load(Acquire) == 0 || has(&sender.sends_to, to))
            && (receiver.is_restricted.load(Acquire) == 0 || has(&receiver.receives_from, from))
    }

    /// Whether a process may receive from another.
    pub fn may_receive(&self, from: Number, to: Number) -> bool {
        let receiver = self.slot(to);
        receiver.is_restricted.load(Acquire) == 0 || load(&receiver.receives_from).contains(from)
    }

    /// Returns the node of a slot's occupant.
    pub fn node_of(&self, number: Number) -> i32 {
        self.slot(number).node.load(Relaxed)
    }

    /// Returns what else `setpriv` sets: the slot to warn, the call mask and the alarm.
    pub fn extra_rights(&self, number: Number) -> (i32, u64, u64) {
        let slot = self.slot(number);
        (slot.warn.load(Relaxed), slot.calls.load(Relaxed), slot.alarm.load(Relaxed))
    }

    /// Returns the name of a slot's occupant.
    pub fn name(&self, number: Number) -> [u8; 16] {
        let words = &self.slot(number).name;
        let mut name = [0; 16];
        for (bytes, word) in name.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        name
    }

    /// Returns the slots that have a box in common with this one.
    pub fn boxes(&self, number: Number) -> SlotSet {
        load(&self.slot(number).boxes)
    }

    /// Returns the bit that the broker turns when it posts a notification of one process for another.
    #[inline(always)]
    pub fn posted_bit(&self, to: Number, source: Number) -> bool {
        self.slot(to).posted[source.index() / 64].load(SeqCst) & 1 << (source.index() % 64) != 0
    }

    /// Returns the bits that the broker turns when it posts a notification.
    pub fn posted(&self, number: Number) -> SlotSet {
        load(&self.slot(number).posted)
    }

    /// Returns the number of the buffer in this place of a group leader's, or 0.
    pub fn buffer_id(&self, leader: Number, place: usize) -> u64 {
        self.buffers[leader.index()][place].id.load(Acquire)
    }

    /// Returns the buffer in this place of a group leader's.
    pub fn buffer(&self, leader: Number, place: usize) -> Option<Buffer> {
        let entry = &self.buffers[leader.index()][place];
        let id = entry.id.load(Acquire);
        let buffer = Buffer {
            id,
            address: entry.address.load(Acquire),
            bytes: entry.bytes.load(Acquire),
            program: entry.program.load(Acquire),
            uid: entry.uid.load(Acquire) as u32,
        };
        // Who finds the same number again has read nothing of a later buffer.
        (id != 0 && entry.id.load(Acquire) == id).then_some(buffer)
    }

    #[inline(always)]
    fn slot(&self, number: Number) -> &Slot {
        &self.slots[number.index()]
    }
}

/// What only the broker does: members have mapped the board for reading, where a store would end them.
pub struct Writer<'a>(pub &'a Board);

impl Writer<'_> {
    /// Says whose board it is.
    pub fn set_place(&self, container: i32, node: i32) {
        self.0.container.store(container, Relaxed);
        self.0.node.store(node, Relaxed);
    }

    /// Returns the generation of a slot's occupant, or of the last one.
    pub fn generation(&self, number: Number) -> u32 {
        self.0.slot(number).generation.load(Relaxed)
    }

    /// Binds somebody to a free slot, with the rights of a new process.
    pub fn occupy(&self, number: Number, generation: u32, occupant: &Occupant, name: [u8; 16]) {
        let slot = self.0.slot(number);
        slot.generation.store(generation, Relaxed);
        slot.endpoint.store(occupant.endpoint.raw(), Relaxed);
        slot.pid.store(occupant.pid, Relaxed);
        slot.thread.store(occupant.thread, Relaxed);
        slot.leader.store(occupant.leader.get(), Relaxed);
        slot.node.store(occupant.node, Relaxed);
        slot.flags.store(occupant.flags, Relaxed);
        slot.started.store(occupant.started, Relaxed);
        slot.is_restricted.store(0, Relaxed);
        slot.warn.store(Endpoint::NONE.raw(), Relaxed);
        slot.calls.store(!0, Relaxed);
        slot.alarm.store(0, Relaxed);
        for (word, bytes) in slot.name.iter().zip(name.chunks_exact(8)) {
            word.store(u64::from_le_bytes(bytes.try_into().unwrap_or_default()), Relaxed);
        }
        store(&slot.boxes, SlotSet::NONE);
        store(&slot.posted, SlotSet::NONE);
        slot.incarnation.fetch_add(1, SeqCst);
    }

    /// Frees a slot.
    pub fn vacate(&self, number: Number) {
        self.0.slot(number).incarnation.fetch_add(1, SeqCst);
        self.count_change();
        for slot in &self.0.slots {
            slot.boxes[number.index() / 64].fetch_and(!(1 << (number.index() % 64)), SeqCst);
        }
    }

    /// Says what buffer a group leader's process has in this place.
    pub fn set_buffer(&self, leader: Number, place: usize, buffer: Option<Buffer>) {
        let entry = &self.0.buffers[leader.index()][place];
        entry.id.store(0, SeqCst);
        if let Some(buffer) = buffer {
            entry.address.store(buffer.address, SeqCst);
            entry.bytes.store(buffer.bytes, SeqCst);
            entry.program.store(buffer.program, SeqCst);
            entry.uid.store(buffer.uid.into(), SeqCst);
            entry.id.store(buffer.id, SeqCst);
        }
    }

    /// Sets the rights of a process.
    pub fn set_rights(&self, number: Number, rights: Rights, (warn, calls, alarm): (i32, u64, u64)) {
        let slot = self.0.slot(number);
        slot.id.store(rights.id.into(), Relaxed);
        slot.level.store(rights.level as u32, Relaxed);
        slot.traps.store(rights.traps, Relaxed);
        store(&slot.sends_to, rights.sends_to);
        store(&slot.receives_from, rights.receives_from);
        slot.warn.store(warn, Relaxed);
        slot.calls.store(calls, Relaxed);
        slot.alarm.store(alarm, Relaxed);
        slot.is_restricted.store(1, SeqCst);
        self.count_change();
    }

    /// Has everybody find out anew what it knew of slots. A successor does so: its predecessor may have died between a change and this.
    pub fn count_change(&self) {
        self.0.changes.fetch_add(1, SeqCst);
    }

    /// Says that two slots have a box in common.
    pub fn add_box(&self, one: Number, other: Number) {
        for (own, peer) in [(one, other), (other, one)] {
            self.0.slot(own).boxes[peer.index() / 64].fetch_or(1 << (peer.index() % 64), SeqCst);
        }
    }

    /// Posts a notification in the name of `source`.
    pub fn post(&self, to: Number, source: Number) {
        self.0.slot(to).posted[source.index() / 64].fetch_xor(1 << (source.index() % 64), SeqCst);
    }
}
