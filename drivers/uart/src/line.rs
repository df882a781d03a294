//! One serial line: its chip, its preserved state, and the requests that wait for it, oldest first.
//!
//! Invariants: a read waits only while nothing has come for it, a write only while the chip takes nothing, a drain only while the chip
//! still sends. While the ring is full, received bytes stay in the chip, which then stops its sender by RTS or, without flow
//! control, loses bytes and says so.

use crate::chip::{Chip, Registers};
use crate::settings::Settings;
use crate::store::{RING_BYTES, Store};
use abi::chardev::{Control, serial};
use abi::{Endpoint, Errno};
use alloc::collections::VecDeque;
use driver::Client;
use driver::chardev::{Answers, Held};

/// Most bytes moved for one request at a time; the rest is asked for again.
const CHUNK: usize = 256;
/// Causes served in one interrupt; a chip that claims more is broken, and waits for the next one.
const CAUSES_LIMIT: usize = 256;
/// With less room than this in the ring the other side is held back, with more it goes on.
const LOW_ROOM: usize = RING_BYTES / 4;
const HIGH_ROOM: usize = RING_BYTES / 2;

/// A write: who waits, with which buffer, and the position of its first byte.
struct Write {
    held: Held,
    client: Client,
    position: u64,
}

/// A line.
pub struct Line<R: Registers> {
    chip: Chip<R>,
    reads: VecDeque<(Held, Client)>,
    writes: VecDeque<Write>,
    drains: VecDeque<Held>,
    /// Goes ahead of everything.
    urgent: Option<u8>,
    holds_back: bool,
}

impl<R: Registers> Line<R> {
    /// The line behind these registers, with what a predecessor has preserved.
    pub fn find(registers: R, mut store: Store) -> Result<Self, Errno> {
        let chip = Chip::find(registers, store.settings())?;
        let (reads, writes, drains) = Default::default();
        let mut line = Line { chip, reads, writes, drains, urgent: None, holds_back: false };
        line.receive(&mut store)?;
        // The interrupt line has to be low for the next interrupt to be seen.
        line.serve_interrupt(&mut store)?;
        Ok(line)
    }

    /// A read of what came after the first `position` bytes.
    pub fn read(&mut self, mut store: Store, held: Held, client: Client, position: u64, answers: &mut Answers) {
        store.taken(position);
        self.reads.push_back((held, client));
        if let Err(error) = self.receive(&mut store) {
            sys::log!("receiving: {error}");
        }
        self.serve_reads(&mut store, answers);
    }

    /// A write of what comes after the first `position` bytes.
    pub fn write(&mut self, mut store: Store, held: Held, client: Client, position: u64, answers: &mut Answers) {
        self.writes.push_back(Write { held, client, position });
        self.serve_writes(&mut store, answers);
    }

    /// A request of `chardev::serial`.
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

    /// The chip's interrupt.
    pub fn interrupt(&mut self, mut store: Store, answers: &mut Answers) {
        if let Err(error) = self.serve_interrupt(&mut store) {
            sys::log!("interrupt: {error}");
        }
        let overruns = self.chip.take_overruns();
        if overruns > 0 {
            sys::log!("input was lost {overruns} times: it came faster than it was read");
        }
        self.serve_reads(&mut store, answers);
        self.serve_writes(&mut store, answers);
    }

    /// True while a drain waits: then [`Line::serve_drains`] is due again soon.
    pub fn has_drains(&self) -> bool {
        !self.drains.is_empty()
    }

    /// Answers the drains if everything has left the chip.
    pub fn serve_drains(&mut self, answers: &mut Answers) {
        match self.chip.has_sent_all() {
            Ok(false) => {}
            _ if !self.writes.is_empty() => {}
            result => self.drains.drain(..).for_each(|held| answers.give(held, result.map(|_| 0))),
        }
    }

    /// Ends a request.
    pub fn cancel(&mut self, asker: Endpoint, tag: u64, answers: &mut Answers) {
        let is_it = |held: &Held| held.asker() == asker && held.tag() == tag;
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
            // `serve_writes` asks again if that is not enough.
            self.chip.wait_for_room(false)?;
        }
        Ok(())
    }

    /// Takes in what there is room for.
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
            // The bytes stay: the next read says that they have been taken.
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

    /// True when nothing urgent waits any more.
    fn serve_urgent(&mut self) -> bool {
        let Some(byte) = self.urgent else { return true };
        if self.chip.transmit(&[byte], || ()) == Ok(0) {
            return false;
        }
        self.urgent = None;
        true
    }
}

/// Sends what has not been sent of a write. → how much of it has been sent now.
fn transmit<R: Registers>(chip: &mut Chip<R>, store: &mut Store, client: &Client, position: u64) -> Result<u64, Errno> {
    let before = store.already_sent(position, client.bytes());
    let mut bytes = [0; CHUNK];
    let wanted = CHUNK.min((client.bytes() - before) as usize);
    client.fetch(before, &mut bytes[..wanted])?;
    let sent = chip.transmit(&bytes[..wanted], || store.count_sent())?;
    Ok(before + sent as u64)
}
