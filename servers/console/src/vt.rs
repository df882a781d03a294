//! One virtual terminal: the emulator, what of its output has been shown, and the input that tty has not taken.
//!
//! Preserved are a snapshot of the emulator, taken when it is in the middle of no sequence, and the bytes shown since then. A successor shows
//! these again. So a turn saves a few KiB, whatever the size of the screen.
//!
//! Invariant: the log holds the bytes from the snapshot's position to `shown`.

use crate::grid::Size;
use crate::switch::Switch;
use crate::terminal::Terminal;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use recover::snapshot::{Reader, Writer};
use sys::Errno;
use sys::fallible::{self, TryQueue, TryVec};

/// A snapshot is taken when the log is longer.
const LOG_BYTES: usize = 4096;
/// Limit of the log: the longest sequence behind that.
const MAX_LOG: usize = 12 << 10;
/// Input that waits for tty; more is dropped: nobody types so far ahead.
const INPUT_BYTES: usize = 4096;

/// What a screen shows (`KDSETMODE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The terminal.
    Text,
    /// What a program draws.
    Graphics,
}

/// What keys become (`KDSKBMODE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Characters, in UTF-8.
    Text,
    /// Key codes as they are (`K_MEDIUMRAW`).
    Codes,
    /// Nothing: a program reads them elsewhere.
    Nothing,
}

/// See the head of the file.
pub struct Vt {
    terminal: Terminal,
    shows: Shows,
    keys: Keys,
    switch: Switch,
    /// Bytes of output that have been shown, as tty counts them.
    shown: u64,
    log: Vec<u8>,
    input: VecDeque<u8>,
    /// tty's number of the first byte of `input`.
    first: u64,
    /// The snapshot has to be taken again.
    stale: bool,
    /// The log or the input has changed.
    changed: bool,
}

impl Vt {
    /// An empty terminal.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(size: Size) -> Result<Vt, Errno> {
        Ok(Vt {
            terminal: Terminal::new(size)?,
            shows: Shows::Text,
            keys: Keys::Text,
            switch: Switch::Free,
            shown: 0,
            log: fallible::with_capacity(MAX_LOG)?,
            input: fallible::queue(INPUT_BYTES)?,
            first: 0,
            stale: true,
            changed: true,
        })
    }

    /// The emulator.
    pub fn terminal(&self) -> &Terminal {
        &self.terminal
    }

    /// The emulator, to be drawn.
    pub fn terminal_mut(&mut self) -> &mut Terminal {
        &mut self.terminal
    }

    /// What the screen shows while this terminal has it.
    pub fn shows(&self) -> Shows {
        self.shows
    }

    /// Sets it.
    pub fn set_shows(&mut self, shows: Shows) {
        (self.shows, self.changed) = (shows, true);
    }

    /// What keys become.
    pub fn keys(&self) -> Keys {
        self.keys
    }

    /// Sets it.
    pub fn set_keys(&mut self, keys: Keys) {
        (self.keys, self.changed) = (keys, true);
    }

    /// Who decides whether it is left.
    pub fn switch(&self) -> Switch {
        self.switch
    }

    /// Sets it.
    pub fn set_switch(&mut self, switch: Switch) {
        (self.switch, self.changed) = (switch, true);
    }

    /// How many of the `bytes` bytes of output from `position` on have been shown already. A position that fits nothing begins anew.
    pub fn already_shown(&mut self, position: u64, bytes: u64) -> u64 {
        let shown = self.shown.wrapping_sub(position);
        if shown <= bytes {
            return shown;
        }
        (self.shown, self.changed) = (position, true);
        0
    }

    /// Shows output.
    pub fn write(&mut self, bytes: &[u8]) {
        self.terminal.write(bytes);
        self.shown = self.shown.wrapping_add(bytes.len() as u64);
        self.changed = true;
        if self.log.len() + bytes.len() <= MAX_LOG {
            bytes.iter().for_each(|byte| self.log.push_reserved(*byte));
        } else {
            // A sequence without end: what it would do is lost with a death, and nothing else.
            self.stale = true;
        }
        self.stale |= self.log.len() > LOG_BYTES;
        self.take_answers();
    }

    /// Shows text that is not tty's. It is not in the log, so a snapshot is due.
    pub fn insert(&mut self, text: &[u8]) {
        self.terminal.write(text);
        (self.stale, self.changed) = (true, true);
    }

    /// Adds input. Returns false if there is no room for all of it.
    pub fn type_in(&mut self, bytes: &[u8]) -> bool {
        let fits = self.input.len() + bytes.len() <= INPUT_BYTES;
        if fits {
            bytes.iter().for_each(|byte| self.input.push_back_reserved(*byte));
            self.changed = true;
        }
        fits
    }

    /// Forgets the input before `position` of tty's count. A count that fits nothing begins anew.
    pub fn acknowledge(&mut self, position: u64) {
        let count = position.wrapping_sub(self.first);
        if count > 0 {
            if count <= self.input.len() as u64 {
                self.input.drain(..count as usize);
            }
            (self.first, self.changed) = (position, true);
        }
    }

    /// Copies the first input out; it stays until it is acknowledged. Returns how much.
    pub fn peek(&self, buffer: &mut [u8]) -> usize {
        let count = self.input.len().min(buffer.len());
        buffer.iter_mut().zip(&self.input).for_each(|(slot, byte)| *slot = *byte);
        count
    }

    /// Takes another size.
    ///
    /// # Errors
    /// `ENOMEM`: it stays.
    pub fn resize(&mut self, size: Size) -> Result<(), Errno> {
        if self.terminal.screen().size() != size {
            self.terminal.screen_mut().resize(size)?;
            (self.stale, self.changed) = (true, true);
        }
        Ok(())
    }

    /// Which parts have to be saved: the snapshot, and what belongs to it. A snapshot is due only between two sequences.
    pub fn take_changes(&mut self) -> (bool, bool) {
        let snapshot = self.stale && self.terminal.is_at_rest();
        if snapshot {
            self.stale = false;
            self.log.clear();
        }
        (snapshot, core::mem::take(&mut self.changed) || snapshot)
    }

    /// Saves the snapshot.
    pub fn save_terminal(&self, writer: &mut Writer) {
        self.terminal.save(writer);
    }

    /// Saves what belongs to it.
    pub fn save(&self, writer: &mut Writer) {
        writer.number(self.shown);
        writer.number(self.first);
        writer.number(self.shows as u64 | (self.keys as u64) << 8);
        self.switch.save(writer);
        writer.run(self.input.as_slices());
        writer.run((&self.log, &[]));
    }

    /// Loads what belongs to a snapshot, and shows again what was shown after it.
    pub fn load(terminal: Terminal, reader: &mut Reader) -> Option<Vt> {
        let mut vt = Vt { terminal, ..Vt::new(Size::USUAL).ok()? };
        (vt.shown, vt.first) = (reader.number()?, reader.number()?);
        let modes = reader.number()?;
        vt.shows = if modes & 1 == 0 { Shows::Text } else { Shows::Graphics };
        vt.keys = [Keys::Text, Keys::Codes, Keys::Nothing].into_iter().find(|keys| *keys as u64 == modes >> 8)?;
        vt.switch = Switch::load(reader)?;
        let input = reader.run()?;
        input.iter().take(INPUT_BYTES).for_each(|byte| vt.input.push_back_reserved(*byte));
        let log = reader.run()?;
        vt.terminal.write(log);
        vt.terminal.screen_mut().answers.clear();
        log.iter().take(MAX_LOG).for_each(|byte| vt.log.push_reserved(*byte));
        (vt.stale, vt.changed) = (vt.log.len() > LOG_BYTES, false);
        Some(vt)
    }

    fn take_answers(&mut self) {
        let answers = &mut self.terminal.screen_mut().answers;
        if !answers.is_empty() {
            let room = INPUT_BYTES - self.input.len();
            answers.drain(..).take(room).for_each(|byte| self.input.push_back_reserved(byte));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(vt: &mut Vt, last: &mut Vec<u8>) -> Vt {
        let (snapshot, _) = vt.take_changes();
        let mut writer = Writer::default();
        if snapshot {
            vt.save_terminal(&mut writer);
            *last = writer.bytes().to_vec();
            writer.clear();
        }
        vt.save(&mut writer);
        let terminal = Terminal::load(&mut Reader::new(last)).expect("was saved");
        Vt::load(terminal, &mut Reader::new(writer.bytes())).expect("was saved")
    }

    fn state(vt: &Vt) -> (Vec<u64>, (usize, usize), Vec<u8>, u64) {
        let screen = vt.terminal().screen();
        let cells = (0..screen.size().rows).flat_map(|row| screen.grid.row(row).iter().map(|cell| cell.0));
        let cursor = (screen.cursor.row, screen.cursor.column);
        (cells.collect(), cursor, vt.input.iter().copied().collect(), vt.shown)
    }

    #[test]
    fn a_successor_shows_the_same_after_every_write() {
        let mut vt = Vt::new(Size { rows: 7, columns: 30 }).expect("there is memory");
        let (mut last, mut random) = (Vec::new(), 5_u64);
        for round in 0..3000 {
            let bytes: Vec<u8> = (0..random >> 59)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    [b"\x1b[;123mHJc?\r\nabc"[(random >> 40) as usize % 16], (random >> 50) as u8]
                        [(random >> 63) as usize]
                })
                .collect();
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(3);
            vt.write(&bytes);
            let successor = saved(&mut vt, &mut last);
            assert_eq!(state(&successor), state(&vt), "round {round}");
            if round % 3 == 0 {
                vt = successor;
            }
        }
    }

    #[test]
    fn output_that_was_shown_is_known_and_input_waits_until_it_is_taken() {
        let mut vt = Vt::new(Size::USUAL).expect("there is memory");
        vt.write(b"abc");
        assert_eq!([vt.already_shown(0, 5), vt.already_shown(3, 5), vt.already_shown(900, 5)], [3, 0, 0]);
        assert!(vt.type_in(b"xyz"));
        let mut buffer = [0; 2];
        assert_eq!((vt.peek(&mut buffer), buffer), (2, *b"xy"));
        vt.acknowledge(2);
        assert_eq!((vt.peek(&mut buffer), buffer[0]), (1, b'z'));
        vt.write(b"\x1b[6n");
        vt.acknowledge(3);
        assert_eq!(vt.peek(&mut [0; 20]), 6);
        assert!(!vt.type_in(&[0; INPUT_BYTES]));
    }
}
