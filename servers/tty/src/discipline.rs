//! The line discipline, between bytes of the keyboard and reads of programs (termios(3), "Canonical and noncanonical mode").
//!
//! Bytes come in by `receive`; it edits the line, echoes into `Output`, and reports signals. Programs take bytes out by `read`.
//! Positions count bytes since boot: the first byte in `ready` has position `taken`. Invariant: `line_ends` (canonical mode only)
//! never decrease and lie within `ready`; the line being edited is not in `ready` yet.
//! Neighbours: `termios` (settings), `output` (echo), `terminal` (who waits for input).

use crate::output::{Output, front_of, tab_width};
use crate::termios::{Termios, cc, iflag, lflag};
use abi::Errno;
use alloc::{collections::VecDeque, vec::Vec};
use recover::snapshot::{Reader, Writer};
use sys::fallible::{TryQueue, TryVec};

/// Limit of unread input, and of a line with its end, in bytes (limits.h, MAX_CANON).
pub const MAX_INPUT: usize = 4096;
/// Limit of complete lines of unread input; an end of file is a line of no bytes.
const MAX_LINES: usize = 1024;
/// Ends of lines are saved as distances from the first byte, several in a number.
const PACKED_ENDS: u32 = 4;
const END_BITS: u32 = u64::BITS / PACKED_ENDS;
const BELL: u8 = 7;
const DELETE: u8 = 127;

/// A signal that a key sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySignal {
    /// ^C
    Interrupt,
    /// ^\
    Quit,
    /// ^Z
    Suspend,
}

/// Input side of one terminal.
pub struct Discipline {
    /// Input that programs may read.
    ready: VecDeque<u8>,
    /// Position of the first byte in `ready`.
    taken: u64,
    /// Ends of the complete lines in `ready`. A line without bytes is an end of file.
    line_ends: VecDeque<u64>,
    /// The line being edited.
    edit: Vec<u8>,
    /// Column where the line being edited began.
    edit_column: usize,
    /// ^V was typed: the next byte is taken literally.
    literal: bool,
    /// Input has been dropped by a flush, which packet mode reports.
    flushed: bool,
}

impl Discipline {
    /// Without input, and with memory for as much as there can be.
    ///
    /// # Panics
    /// When there is no memory, at the start.
    pub fn new() -> Discipline {
        let mut discipline = Discipline::without_memory();
        discipline.reserve(MAX_INPUT).expect("tty starts with memory for its terminals");
        discipline
    }

    /// Without input: [`Discipline::reserve`] goes before each that comes.
    pub fn without_memory() -> Discipline {
        Discipline {
            ready: VecDeque::new(),
            taken: 0,
            line_ends: VecDeque::new(),
            edit: Vec::new(),
            edit_column: 0,
            literal: false,
            flushed: false,
        }
    }

    /// Makes room for so many bytes of input.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), Errno> {
        let input = (self.len() + bytes).min(MAX_INPUT);
        self.ready.try_make_room(input.saturating_sub(self.ready.len()))?;
        self.edit.try_make_room(input.saturating_sub(self.edit.len()))?;
        let lines = (self.line_ends.len() + bytes).min(MAX_LINES);
        self.line_ends.try_make_room(lines - self.line_ends.len() + 1)
    }

    /// Takes in one byte from the device. Returns the signal it sends, if any.
    pub fn receive(&mut self, termios: &Termios, output: &mut Output, byte: u8) -> Option<KeySignal> {
        let byte = self.translate(termios, byte)?;
        if self.literal {
            self.literal = false;
            self.insert(termios, output, byte);
            return None;
        }
        if self.flow_control(termios, output, byte) {
            return None;
        }
        if let Some(signal) = key_signal(termios, byte) {
            self.echo_signal(termios, output, byte);
            return Some(signal);
        }
        if termios.has_local(lflag::ICANON) {
            self.canonical(termios, output, byte);
        } else {
            self.raw(termios, output, byte);
        }
        None
    }

    /// Takes in bytes that become readable as they are (`Termios::passes_input_on`). What does not fit is dropped.
    #[expect(clippy::disallowed_methods, reason = "room was made")]
    pub fn receive_plain(&mut self, bytes: &[u8]) {
        self.literal = false;
        let room = MAX_INPUT - self.ready.len().min(MAX_INPUT);
        self.ready.extend(&bytes[..bytes.len().min(room)]);
    }

    /// Bytes of input that there is room for: any number while a line has to be completed before any read. In canonical mode a place is
    /// kept for the end of the line.
    pub fn room(&self, termios: &Termios) -> usize {
        if self.waits_for_line_end(termios) {
            return usize::MAX;
        }
        let most = if termios.has_local(lflag::ICANON) { MAX_INPUT - 1 } else { MAX_INPUT };
        most.saturating_sub(self.len())
    }

    /// Bytes that a read would get now; `None`: it has to wait; `Some(0)`: an end of file.
    pub fn readable(&self, termios: &Termios, wanted: usize) -> Option<usize> {
        if termios.has_local(lflag::ICANON) {
            return self.line_ends.front().map(|&end| ((end - self.taken) as usize).min(wanted));
        }
        let minimum = usize::from(termios.characters[cc::VMIN]).min(wanted);
        (self.ready.len() >= minimum).then(|| self.ready.len().min(wanted))
    }

    /// Bytes of input that can be read, for FIONREAD and poll.
    pub fn available(&self, termios: &Termios) -> usize {
        match termios.has_local(lflag::ICANON) {
            true => self.line_ends.back().map_or(0, |&end| (end - self.taken) as usize),
            false => self.ready.len(),
        }
    }

    /// True when a read would not wait for data: for poll, which ignores VMIN.
    pub fn has_input(&self, termios: &Termios) -> bool {
        if termios.has_local(lflag::ICANON) { !self.line_ends.is_empty() } else { !self.ready.is_empty() }
    }

    /// Unread bytes, including those of the line being edited.
    pub fn len(&self) -> usize {
        self.ready.len() + self.edit.len()
    }

    /// True when more input is useful: there is room, or a line has to be completed before any read.
    pub fn wants_input(&self, termios: &Termios, bytes: usize) -> bool {
        self.room(termios) >= bytes
    }

    fn waits_for_line_end(&self, termios: &Termios) -> bool {
        termios.has_local(lflag::ICANON) && self.line_ends.is_empty()
    }

    /// The first `wanted` bytes (of one line in canonical mode), or as many as there are.
    pub fn front(&mut self, termios: &Termios, wanted: usize) -> &[u8] {
        let there = match (termios.has_local(lflag::ICANON), self.line_ends.front()) {
            (false, _) => self.ready.len(),
            (true, Some(&end)) => (end - self.taken) as usize,
            (true, None) => 0,
        };
        front_of(&mut self.ready, wanted.min(there))
    }

    /// Removes the bytes that `front` has shown; of an empty line, the line.
    pub fn take(&mut self, termios: &Termios, count: usize) {
        self.ready.drain(..count);
        self.taken += count as u64;
        if termios.has_local(lflag::ICANON) && self.line_ends.front() == Some(&self.taken) {
            self.line_ends.pop_front();
        }
    }

    /// The position up to which there was ever input, and how many lines wait: what arrives makes either grow. And up to which it is read.
    pub fn positions(&self) -> ([u64; 2], u64) {
        ([self.end(), self.line_ends.len() as u64], self.taken)
    }

    /// What differs between any two states one of which has come from the other by a single byte, a flush, or new settings.
    pub fn extent(&self) -> [u64; 6] {
        let lengths = [self.ready.len(), self.edit.len(), self.line_ends.len(), self.edit_column];
        let [ready, edit, lines, column] = lengths.map(|length| length as u64);
        [self.taken, ready, edit, lines, column, self.literal.into()]
    }

    /// Saves the state into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        writer.numbers([self.taken, self.edit_column as u64, self.literal.into()]);
        writer.run(self.ready.as_slices());
        writer.run((&self.edit, &[]));
        writer.number(self.line_ends.len() as u64);
        let mut ends = self.line_ends.iter().map(|&end| end - self.taken);
        while let Some(first) = ends.next() {
            let further = (1..PACKED_ENDS).map(|at| ends.next().unwrap_or(0) << (at * END_BITS));
            writer.number(first | further.sum::<u64>());
        }
    }

    /// Loads the state from a snapshot.
    pub fn load(reader: &mut Reader) -> Option<Discipline> {
        let (taken, edit_column, literal) = (reader.number()?, reader.number()? as usize, reader.number()? != 0);
        let mut discipline = Discipline { taken, edit_column, literal, ..Discipline::without_memory() };
        let (ready, edit) = (reader.run()?, reader.run()?);
        if ready.len() + edit.len() > MAX_INPUT {
            return None;
        }
        discipline.reserve(ready.len() + edit.len()).ok()?;
        ready.iter().for_each(|&byte| discipline.ready.push_back_reserved(byte));
        discipline.edit.try_extend_from_slice(edit).ok()?;
        let lines = Some(reader.number()?).filter(|&lines| lines <= MAX_LINES as u64)?;
        discipline.line_ends.try_make_room(lines as usize).ok()?;
        let (mut last, mut packed) = (taken, 0);
        for line in 0..lines {
            packed = if line % u64::from(PACKED_ENDS) == 0 { reader.number()? } else { packed >> END_BITS };
            let end = taken + (packed & !(u64::MAX << END_BITS));
            let lies_within = end >= last && end - taken <= ready.len() as u64;
            discipline.line_ends.push_back_reserved(Some(end).filter(|_| lies_within)?);
            last = end;
        }
        Some(discipline)
    }

    /// Whether input has been flushed since the last call.
    pub fn take_flushed(&mut self) -> bool {
        core::mem::take(&mut self.flushed)
    }

    /// Drops all input.
    pub fn flush(&mut self) {
        self.flushed = true;
        self.taken += self.ready.len() as u64;
        self.ready.clear();
        self.line_ends.clear();
        self.edit.clear();
        self.literal = false;
    }

    /// Changes the settings from `old` to `new`; typed input stays readable in the new mode.
    pub fn mode_changed(&mut self, old: &Termios, new: &Termios) {
        let was_canonical = old.has_local(lflag::ICANON);
        let is_canonical = new.has_local(lflag::ICANON);
        if was_canonical && !is_canonical {
            self.make_ready();
            self.line_ends.clear();
        } else if !was_canonical && is_canonical && !self.ready.is_empty() {
            self.line_ends.push_back_reserved(self.end());
        }
    }

    fn translate(&self, termios: &Termios, byte: u8) -> Option<u8> {
        let byte = if termios.has_input(iflag::ISTRIP) { byte & 0x7f } else { byte };
        match byte {
            b'\r' if termios.has_input(iflag::IGNCR) => None,
            b'\r' if termios.has_input(iflag::ICRNL) => Some(b'\n'),
            b'\n' if termios.has_input(iflag::INLCR) => Some(b'\r'),
            _ => Some(byte),
        }
    }

    /// Handles ^S and ^Q. True when the byte is consumed.
    fn flow_control(&mut self, termios: &Termios, output: &mut Output, byte: u8) -> bool {
        if !termios.has_input(iflag::IXON) {
            return false;
        }
        if termios.is_character(byte, cc::VSTOP) {
            output.set_stopped(true);
            return true;
        }
        let starts = termios.is_character(byte, cc::VSTART);
        if output.is_stopped() && (starts || termios.has_input(iflag::IXANY)) {
            output.set_stopped(false);
        }
        starts
    }

    fn echo_signal(&mut self, termios: &Termios, output: &mut Output, byte: u8) {
        if !termios.has_local(lflag::NOFLSH) {
            self.flush();
            output.flush();
        }
        output.set_stopped(false);
        self.echo(termios, output, byte);
    }

    fn raw(&mut self, termios: &Termios, output: &mut Output, byte: u8) {
        if self.ready.len() >= MAX_INPUT {
            return self.overflow(termios, output);
        }
        self.ready.push_back_reserved(byte);
        self.echo(termios, output, byte);
    }

    fn canonical(&mut self, termios: &Termios, output: &mut Output, byte: u8) {
        let extended = termios.has_local(lflag::IEXTEN);
        if termios.is_character(byte, cc::VERASE) {
            self.erase_character(termios, output);
        } else if extended && termios.is_character(byte, cc::VWERASE) {
            self.erase_word(termios, output);
        } else if termios.is_character(byte, cc::VKILL) {
            self.kill_line(termios, output);
        } else if extended && termios.is_character(byte, cc::VLNEXT) {
            self.literal = true;
            if termios.has_local(lflag::ECHO) && termios.has_local(lflag::ECHOCTL) {
                output.echo(termios, b'^');
                output.echo(termios, b'\x08');
            }
        } else if extended && termios.is_character(byte, cc::VREPRINT) {
            self.reprint(termios, output);
        } else if termios.is_character(byte, cc::VEOF) {
            self.end_line();
        } else if byte == b'\n' || self.is_line_end(termios, byte) {
            self.finish_line(termios, output, byte);
        } else {
            self.insert(termios, output, byte);
        }
    }

    fn is_line_end(&self, termios: &Termios, byte: u8) -> bool {
        termios.is_character(byte, cc::VEOL)
            || termios.has_local(lflag::IEXTEN) && termios.is_character(byte, cc::VEOL2)
    }

    fn insert(&mut self, termios: &Termios, output: &mut Output, byte: u8) {
        if !termios.has_local(lflag::ICANON) {
            return self.raw(termios, output, byte);
        }
        // One place stays free for the end of the line.
        if self.edit.len() + self.ready.len() >= MAX_INPUT - 1 {
            return self.overflow(termios, output);
        }
        if self.edit.is_empty() {
            self.edit_column = output.column();
        }
        self.edit.push_reserved(byte);
        self.echo(termios, output, byte);
    }

    fn finish_line(&mut self, termios: &Termios, output: &mut Output, byte: u8) {
        if self.len() == MAX_INPUT {
            return self.overflow(termios, output);
        }
        let echo_newline = byte == b'\n' && termios.has_local(lflag::ECHONL);
        if termios.has_local(lflag::ECHO) || echo_newline {
            output.echo(termios, byte);
        }
        self.edit.push_reserved(byte);
        self.end_line();
    }

    fn end_line(&mut self) {
        if self.line_ends.len() < MAX_LINES {
            self.make_ready();
            self.line_ends.push_back_reserved(self.end());
        }
    }

    /// Lets programs read what was being edited.
    fn make_ready(&mut self) {
        self.edit.drain(..).for_each(|byte| self.ready.push_back_reserved(byte));
    }

    /// Position after the last byte in `ready`.
    fn end(&self) -> u64 {
        self.taken + self.ready.len() as u64
    }

    fn overflow(&self, termios: &Termios, output: &mut Output) {
        if termios.has_input(iflag::IMAXBEL) {
            output.echo(termios, BELL);
        }
    }

    fn erase_character(&mut self, termios: &Termios, output: &mut Output) {
        let Some(mut byte) = self.edit.pop() else { return };
        if termios.has_input(iflag::IUTF8) {
            while is_utf8_continuation(byte) {
                let Some(previous) = self.edit.pop() else { break };
                byte = previous;
            }
        }
        if !termios.has_local(lflag::ECHO) {
            return;
        }
        if termios.has_local(lflag::ECHOE) {
            self.rub_out(termios, output, byte);
        } else {
            self.echo(termios, output, termios.characters[cc::VERASE]);
        }
    }

    fn erase_word(&mut self, termios: &Termios, output: &mut Output) {
        let mut in_word = false;
        while let Some(&byte) = self.edit.last() {
            let word_byte = byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
            if in_word && !word_byte {
                break;
            }
            in_word |= word_byte;
            self.erase_character(termios, output);
        }
    }

    fn kill_line(&mut self, termios: &Termios, output: &mut Output) {
        if termios.has_local(lflag::ECHO) && termios.has_local(lflag::ECHOKE) && termios.has_local(lflag::ECHOE) {
            while !self.edit.is_empty() {
                self.erase_character(termios, output);
            }
            return;
        }
        self.edit.clear();
        self.echo(termios, output, termios.characters[cc::VKILL]);
        if termios.has_local(lflag::ECHOK) && termios.has_local(lflag::ECHO) {
            output.echo(termios, b'\n');
        }
    }

    fn reprint(&mut self, termios: &Termios, output: &mut Output) {
        self.echo(termios, output, termios.characters[cc::VREPRINT]);
        output.echo(termios, b'\n');
        self.edit_column = output.column();
        for index in 0..self.edit.len() {
            self.echo(termios, output, self.edit[index]);
        }
    }

    /// Erases `byte`, the last of the line, from the screen.
    fn rub_out(&self, termios: &Termios, output: &mut Output, byte: u8) {
        let width = if byte == b'\t' {
            tab_width(self.edit.iter().fold(self.edit_column, |column, &b| column + width_at(termios, column, b)))
        } else {
            width_at(termios, 0, byte)
        };
        for _ in 0..width {
            if byte == b'\t' {
                output.echo(termios, b'\x08');
            } else {
                for erase in *b"\x08 \x08" {
                    output.echo(termios, erase);
                }
            }
        }
    }

    fn echo(&self, termios: &Termios, output: &mut Output, byte: u8) {
        if !termios.has_local(lflag::ECHO) {
            return;
        }
        if is_shown_with_caret(termios, byte) {
            output.echo(termios, b'^');
            output.echo(termios, byte ^ 0x40);
        } else {
            output.echo(termios, byte);
        }
    }
}

fn key_signal(termios: &Termios, byte: u8) -> Option<KeySignal> {
    if !termios.has_local(lflag::ISIG) {
        return None;
    }
    let keys = [(cc::VINTR, KeySignal::Interrupt), (cc::VQUIT, KeySignal::Quit), (cc::VSUSP, KeySignal::Suspend)];
    keys.into_iter().find(|(index, _)| termios.is_character(byte, *index)).map(|(_, signal)| signal)
}

fn is_shown_with_caret(termios: &Termios, byte: u8) -> bool {
    let control = byte < 32 && byte != b'\n' && byte != b'\t' || byte == DELETE;
    control && termios.has_local(lflag::ECHOCTL)
}

fn width_at(termios: &Termios, column: usize, byte: u8) -> usize {
    match byte {
        b'\t' => tab_width(column),
        _ if is_shown_with_caret(termios, byte) => 2,
        _ if byte < 32 || byte == DELETE => 0,
        _ if termios.has_input(iflag::IUTF8) && is_utf8_continuation(byte) => 0,
        _ => 1,
    }
}

fn is_utf8_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
#[path = "discipline_tests.rs"]
mod tests;
