//! A serial line: its chip, its preserved state, and the requests in progress, oldest first.
//!
//! Invariants: a read waits only while the ring has no byte for it, a write only while the transmit FIFO is full, a drain only while
//! the chip is sending. While the ring is full, received bytes stay in the chip, which then stops the sender by RTS or, without flow
//! control, overruns, which is logged.

use crate::chip::{Chip, Registers};
use crate::settings::Settings;
use crate::store::{RING_BYTES, Store};
use abi::chardev::{Control, serial};
use abi::{Endpoint, Errno};
use alloc::collections::VecDeque;
use driver::Client;
use driver::chardev::{Answers, Held};

/// Limit of bytes transferred per step of a request.
const CHUNK: usize = 256;
/// Limit of causes served in one interrupt: a defective chip must not block the driver.
const CAUSES_LIMIT: usize = 256;
/// Free space in the ring below which flow control stops the sender.
const LOW_ROOM: usize = RING_BYTES / 4;
const HIGH_ROOM: usize = RING_BYTES / 2;

/// A write in progress: request, buffer, and position of its first byte.
struct Write {
    held: Held,
    client: Client,
    position: u64,
}

/// A serial line.
pub struct Line<R: Registers> {
    chip: Chip<R>,
    reads: VecDeque<(Held, Client)>,
    writes: VecDeque<Write>,
    drains: VecDeque<Held>,
    /// Byte to be sent ahead of everything.
    urgent: Option<u8>,
    holds_back: bool,
}

impl<R: Registers> Line<R> {
    /// Opens the line behind these registers, with its predecessor's preserved state.
    pub fn find(registers: R, mut store: Store) -> Result<Self, Errno> {
        let chip = Chip::find(registers, store.settings())?;
        let (reads, writes, drains) = Default::default();
        let mut line = Line { chip, reads, writes, drains, urgent: None, holds_back: false };
        line.receive(&mut store)?;
        // The edge of the next interrupt needs the line to be low.
        line.serve_interrupt(&mut store)?;
        Ok(line)
    }

    /// Reads the input after the first `position` bytes.
    pub fn read(&mut self, mut store: Store, held: Held, client: Client, position: u64, answers: &mut Answers) {
        store.taken(position);
        self.reads.push_back((held, client));
        if let Err(error) = self.receive(&mut store) {
            sys::log!("receive failed: {error}");
        }
        self.serve_reads(&mut store, answers);
    }

    /// Writes output that follows the first `position` bytes.
    pub fn write(&mut self, mut store: Store, held: Held, client: Client, position: u64, answers: &mut Answers) {
        self.writes.push_back(Write { held, client, position });
        self.serve_writes(&mut store, answers);
    }

    /// Handles a request of `chardev::serial`.
    pub fn control(&mut self, mut store: Store, held: Held, control: &Control, answers: &mut Answers) {
        let result = match control.request {
            serial::SET_LINE => self.set(&mut store, control.argument),
            serial::GET_MODEM => self.chip.modem(),
            serial::SET_MODEM => self.chip.set_modem(control.argument).map(|()| 0),
            serial::SET_BREAK => self.chip.set_break(control.argument != 0).map(|()| 0),
            serial::SEND_NOW => {
                self.urgent = Some(control.argument as u8);
                self.serve_writes(&mut store, answers);
                Ok(0)
            }
            serial::DRAIN => {
                self.drains.push_back(held);
                return self.serve_drains(answers);
            }
            _ => Err(Errno::ENOTTY),
        };
        answers.give(held, result);
    }

    /// Handles the chip's interrupt.
    pub fn interrupt(&mut self, mut store: Store, answers: &mut Answers) {
        if let Err(error) = self.serve_interrupt(&mut store) {
            sys::log!("interrupt not served: {error}");
        }
        let overruns = self.chip.take_overruns();
        if overruns > 0 {
            sys::log!("{overruns} receive overruns: input arrived faster than it was read");
        }
        self.serve_reads(&mut store, answers);
        self.serve_writes(&mut store, answers);
    }

    /// Returns whether a drain is in progress, so that [`Line::serve_drains`] has to be called again soon.
    pub fn has_drains(&self) -> bool {
        !self.drains.is_empty()
    }

    /// Completes the drains if all bytes have left the chip.
    pub fn serve_drains(&mut self, answers: &mut Answers) {
        match self.chip.has_sent_all() {
            Ok(false) => {}
            _ if !self.writes.is_empty() => {}
            result => self.drains.drain(..).for_each(|held| answers.give(held, result.map(|_| 0))),
        }
    }

    /// Cancels a request.
    pub fn cancel(&mut self, requester: Endpoint, tag: u64, answers: &mut Answers) {
        let is_it = |held: &Held| held.requester() == requester && held.tag() == tag;
        let read = self.reads.iter().position(|(held, _)| is_it(held)).and_then(|at| self.reads.remove(at));
        let write = self.writes.iter().position(|write| is_it(&write.held)).and_then(|at| self.writes.remove(at));
        for held in read.map(|(held, _)| held).into_iter().chain(write.map(|write| write.held)) {
            answers.give(held, Err(Errno::EINTR));
        }
    }

    fn set(&mut self, store: &mut Store, packed: u64) -> Result<u64, Errno> {
        let settings = Settings::unpack(packed)?;
        store.set_settings(settings);
        self.chip.set(settings).map(|()| 0)
    }

    fn serve_interrupt(&mut self, store: &mut Store) -> Result<(), Errno> {
        for _ in 0..CAUSES_LIMIT {
            if !self.chip.has_interrupted()? {
                break;
            }
            self.receive(store)?;
            // `serve_writes` requests the rest.
            self.chip.wait_for_room(false)?;
        }
        Ok(())
    }

    /// Moves received bytes from the chip into the ring.
    fn receive(&mut self, store: &mut Store) -> Result<(), Errno> {
        self.chip.receive(store.room(), |byte| store.push(byte))?;
        let room = store.room();
        self.holds_back = if self.holds_back { room < HIGH_ROOM } else { room < LOW_ROOM };
        self.chip.set_receiving(!self.holds_back)
    }

    fn serve_reads(&mut self, store: &mut Store, answers: &mut Answers) {
        while store.waiting() > 0
            && let Some((held, client)) = self.reads.pop_front()
        {
            let mut bytes = [0; CHUNK];
            let wanted = CHUNK.min(client.bytes() as usize);
            let count = store.peek(&mut bytes[..wanted]);
            // The bytes stay in the ring until the next read acknowledges them.
            answers.give(held, client.put(0, &bytes[..count]).map(|()| count as u64));
        }
    }

    fn serve_writes(&mut self, store: &mut Store, answers: &mut Answers) {
        if !self.serve_urgent() {
            return;
        }
        while let Some(Write { client, position, .. }) = self.writes.front() {
            let taken = transmit(&mut self.chip, store, client, *position);
            if taken == Ok(0) && client.bytes() > 0 {
                return;
            }
            if let Some(Write { held, .. }) = self.writes.pop_front() {
                answers.give(held, taken);
            }
        }
    }

    /// Sends the urgent byte. Returns whether none is left.
    fn serve_urgent(&mut self) -> bool {
        let Some(byte) = self.urgent else { return true };
        if self.chip.transmit(&[byte], || ()) == Ok(0) {
            return false;
        }
        self.urgent = None;
        true
    }
}

/// Sends the unsent rest of a write. Returns the number of bytes sent.
fn transmit<R: Registers>(chip: &mut Chip<R>, store: &mut Store, client: &Client, position: u64) -> Result<u64, Errno> {
    let before = store.already_sent(position, client.bytes());
    let mut bytes = [0; CHUNK];
    let wanted = CHUNK.min((client.bytes() - before) as usize);
    client.fetch(before, &mut bytes[..wanted])?;
    let sent = chip.transmit(&bytes[..wanted], || store.count_sent())?;
    Ok(before + sent as u64)
}
