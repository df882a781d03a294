//! Message queues in preserved memory: what each is, its messages, and signals about them that pm has not fetched.
//!
//! A queue owns a run of the message area, with a slot for each message that it may hold and one more, because a slot that is emptied is not
//! filled again in the same turn. A message counts while its cell is set; its bytes and its number lie in the slot, written before.
//!
//! ```text
//! cell    length and priority; its place is that of the slot
//! slot    number (8 bytes; messages of one priority go out in its order), then the bytes
//! ```

use super::{
    Store,
    pool::{Pool, ROOT},
    records::{QueueRecord, SignalRecord},
};
use abi::{Endpoint, Errno};
use alloc::vec::Vec;

/// Bytes of a place of the message area.
pub const PLACE_BYTES: usize = 64;
const NUMBER_BYTES: usize = 8;
const PRIORITY_BITS: u32 = 16;
/// Slots beyond those that messages fill.
const SPARE_SLOTS: u32 = 1;

impl QueueRecord {
    fn slot_places(&self) -> u32 {
        (NUMBER_BYTES + self.message_bytes as usize).div_ceil(PLACE_BYTES) as u32
    }

    fn slots(&self) -> u32 {
        self.most_messages + SPARE_SLOTS
    }

    /// Places of its run; `None`: more than there can be.
    fn places(&self) -> Option<u32> {
        self.slot_places().checked_mul(self.slots())
    }
}

/// The slots of a queue.
#[derive(Debug)]
pub struct Slots {
    first: u32,
    slot_places: u32,
    pool: Pool,
}

impl Slots {
    fn new(record: &QueueRecord) -> Slots {
        let pool = Pool::new(record.slots() as usize);
        Slots { first: record.first, slot_places: record.slot_places(), pool }
    }

    fn place(&self, slot: u32) -> usize {
        (self.first + slot * self.slot_places) as usize
    }
}

/// A message in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Held {
    pub slot: u32,
    pub bytes: u32,
    pub priority: u16,
    pub number: u64,
}

impl Store {
    /// Makes an empty queue; its record's name and run are filled in. `ENOSPC`: too many queues, or no room for its messages.
    pub fn new_queue(&self, record: &mut QueueRecord, name: &[u8]) -> Result<(u16, Slots), Errno> {
        let turn = self.turn();
        let first = record.places().and_then(|places| self.runs.take(places, record.uid, turn)).ok_or(Errno::ENOSPC)?;
        let name = self.put_text(name, record.uid).inspect_err(|_| self.runs.release(first, turn))?;
        let Some(place) = self.queues.pool.take(record.uid, turn) else {
            self.runs.release(first, turn);
            self.release_text(name);
            return Err(Errno::ENOSPC);
        };
        (record.first, record.name) = (first, name);
        let slots = Slots::new(record);
        (0..record.slots()).for_each(|slot| self.messages.clear_unreferenced(&self.recover, slots.place(slot)));
        self.queues.table.set(&self.recover, place, record);
        Ok((place as u16, slots))
    }

    /// Frees a queue and its messages at the end of the turn.
    #[expect(clippy::disallowed_methods, reason = "at most as many as there are queues")]
    pub fn release_queue(&self, place: u16, record: QueueRecord) {
        self.ended_queues.borrow_mut().push((place, record));
        self.has_ended_queues.set(true);
        self.has_moved();
    }

    #[cold]
    pub(super) fn release_ended_queues(&self) {
        self.has_ended_queues.set(false);
        for (place, record) in self.ended_queues.take() {
            self.queues.table.clear(&self.recover, place as usize);
            self.release(&self.queues, place as usize);
            self.runs.release(record.first, self.turn());
            self.release_text(record.name);
        }
    }

    /// Adds a message to a queue. `None`: all free slots were emptied in this turn, and cannot be reused yet.
    pub fn put_message(&self, slots: &Slots, number: u64, priority: u16, bytes: &[u8]) -> Option<Held> {
        let slot = slots.pool.take(ROOT, self.turn())? as u32;
        let place = slots.place(slot);
        self.slots.write(&self.recover, place * PLACE_BYTES, &number.to_le_bytes());
        self.slots.write(&self.recover, place * PLACE_BYTES + NUMBER_BYTES, bytes);
        let held = Held { slot, bytes: bytes.len() as u32, priority, number };
        self.messages.set(&self.recover, place, (held.bytes as u64) << PRIORITY_BITS | priority as u64);
        Some(held)
    }

    /// Copies a message to a program's memory.
    pub fn copy_message(&self, slots: &Slots, held: &Held, to: Endpoint, address: u64) -> Result<(), Errno> {
        let offset = slots.place(held.slot) * PLACE_BYTES + NUMBER_BYTES;
        self.slots.store(&self.recover, offset, held.bytes as usize, to, address)
    }

    /// Removes a message from its queue.
    pub fn take_message(&self, slots: &Slots, held: &Held) {
        self.messages.clear(&self.recover, slots.place(held.slot));
        slots.pool.release(held.slot as usize, self.turn());
    }

    /// Notes a signal that pm is to send. `None`: pm has not fetched any for too long, or the user has his share.
    pub fn new_signal(&self, record: &SignalRecord) -> Option<u16> {
        let place = self.signals.pool.take(record.user(), self.turn())?;
        self.signals.table.set(&self.recover, place, record);
        Some(place as u16)
    }

    /// Removes a signal that pm has fetched.
    pub fn release_signal(&self, place: u16) {
        self.signals.table.clear(&self.recover, place as usize);
        self.release(&self.signals, place as usize);
    }

    /// All queues.
    pub fn queues(&self) -> impl Iterator<Item = (u16, QueueRecord)> + '_ {
        self.queues.table.entries(&self.recover).filter_map(|(place, entry)| Some((place as u16, entry.record()?)))
    }

    /// All signals.
    pub fn signals(&self) -> impl Iterator<Item = (u16, SignalRecord)> + '_ {
        self.signals.table.entries(&self.recover).filter_map(|(place, entry)| Some((place as u16, entry.record()?)))
    }

    /// A queue as a predecessor has left it, and its messages. `None`: the record is inconsistent.
    #[expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]
    pub fn restore_queue(&self, record: &QueueRecord) -> Option<(Slots, Vec<Held>)> {
        if !self.runs.claim(record.first, record.places()?) {
            return None;
        }
        let slots = Slots::new(record);
        let messages: Vec<Held> = (0..record.slots()).filter_map(|slot| self.held(&slots, slot)).collect();
        let sound = messages.iter().all(|held| held.bytes <= record.message_bytes);
        messages.iter().for_each(|held| slots.pool.claim(held.slot as usize, ROOT));
        slots.pool.settle();
        sound.then_some((slots, messages))
    }

    fn held(&self, slots: &Slots, slot: u32) -> Option<Held> {
        let place = slots.place(slot);
        let value = self.messages.get(&self.recover, place).record()?;
        let mut number = [0; NUMBER_BYTES];
        self.slots.read(&self.recover, place * PLACE_BYTES, &mut number);
        let number = u64::from_le_bytes(number);
        Some(Held { slot, bytes: (value >> PRIORITY_BITS) as u32, priority: value as u16, number })
    }
}
