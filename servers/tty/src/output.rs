//! Output processing (OPOST and the flags under it), the queue of output, and the cursor's column, which erasing a tab needs. The queue
//! is bounded: a writer waits while it is full.
//!
//! Positions count bytes since boot: the first byte in the queue has position `taken`. A byte leaves the queue when uart has it.
//!
//! Neighbours: `discipline` echoes through here, `terminal` takes bytes out for uart.

use crate::termios::{Termios, oflag};
use abi::Errno;
use alloc::collections::VecDeque;
use recover::snapshot::{Reader, Writer};
use sys::fallible::{self, TryQueue};

/// Writers wait when this many bytes are queued.
pub const HIGH_WATER: usize = 4096;
/// Echo may exceed that a little before it is dropped, as on Linux.
const ECHO_LIMIT: usize = HIGH_WATER + 1024;
/// Distance of tab stops.
const TAB: usize = 8;

/// Bytes waiting for the device.
pub struct Output {
    queue: VecDeque<u8>,
    /// Position of the first byte in the queue.
    taken: u64,
    column: usize,
    stopped: bool,
    /// Output has been dropped by a flush, which packet mode reports.
    flushed: bool,
}

impl Output {
    /// Nothing is queued; there is room for the echo.
    ///
    /// # Panics
    /// When there is no memory, at the start.
    pub fn new() -> Output {
        let queue = fallible::queue(ECHO_LIMIT + TAB).expect("tty starts with memory for its terminals");
        Output { queue, ..Output::without_memory() }
    }

    /// Nothing is queued, and memory is taken when it is needed.
    pub fn without_memory() -> Output {
        Output { queue: VecDeque::new(), taken: 0, column: 0, stopped: false, flushed: false }
    }

    /// The cursor's column.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Bytes that a writer may add, counted before processing.
    pub fn room(&self) -> usize {
        HIGH_WATER.saturating_sub(self.queue.len())
    }

    /// Bytes in the queue.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Stops or restarts the flow (^S, ^Q, TCXONC).
    pub fn set_stopped(&mut self, stopped: bool) {
        self.stopped = stopped;
    }

    /// True while ^S stops the output.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether output has been flushed since the last call.
    pub fn take_flushed(&mut self) -> bool {
        core::mem::take(&mut self.flushed)
    }

    /// Drops the queue.
    pub fn flush(&mut self) {
        self.flushed = true;
        self.taken += self.queue.len() as u64;
        self.queue.clear();
    }

    /// Queues as many of these bytes as there is room for. Returns how many.
    ///
    /// # Errors
    /// `ENOMEM`: none is queued.
    #[expect(clippy::disallowed_methods, reason = "room was made")]
    pub fn write_some(&mut self, termios: &Termios, bytes: &[u8]) -> Result<usize, Errno> {
        self.queue.try_make_room((bytes.len() * TAB).min(self.room() + TAB))?;
        if !termios.has_output(oflag::OPOST) {
            let fitting = &bytes[..bytes.len().min(self.room())];
            self.queue.extend(fitting);
            return Ok(fitting.len());
        }
        let mut done = 0;
        while done < bytes.len() && self.room() > 0 {
            let rest = &bytes[done..bytes.len().min(done + self.room())];
            let printable = rest.iter().take_while(|byte| (b' '..=b'~').contains(*byte)).count();
            self.queue.extend(&rest[..printable]);
            self.column += printable;
            done += printable;
            if let Some(&other) = rest.get(printable) {
                self.write(termios, other);
                done += 1;
            }
        }
        Ok(done)
    }

    /// Queues one byte that a program wrote, for which there is room.
    fn write(&mut self, termios: &Termios, byte: u8) {
        if !termios.has_output(oflag::OPOST) {
            return self.put(byte);
        }
        match byte {
            b'\n' if termios.has_output(oflag::ONLCR) => {
                self.put(b'\r');
                self.put(b'\n');
            }
            b'\n' => {
                if termios.has_output(oflag::ONLRET) {
                    self.column = 0;
                }
                self.put(b'\n');
            }
            b'\r' if termios.has_output(oflag::ONOCR) && self.column == 0 => {}
            b'\r' if termios.has_output(oflag::OCRNL) => self.put(b'\n'),
            b'\t' if termios.output & oflag::TABDLY == oflag::XTABS => {
                for _ in 0..tab_width(self.column) {
                    self.put(b' ');
                }
            }
            _ => self.put(byte),
        }
    }

    /// Queues one byte of echo; dropped when the queue is overfull, or there is no memory for more.
    pub fn echo(&mut self, termios: &Termios, byte: u8) {
        if self.queue.len() < ECHO_LIMIT && self.queue.try_make_room(TAB).is_ok() {
            self.write(termios, byte);
        }
    }

    /// Queues a byte as it is (XON, XOFF).
    ///
    /// # Errors
    /// `ENOMEM`; `EAGAIN`: the queue is overfull.
    pub fn send_now(&mut self, byte: u8) -> Result<(), Errno> {
        if self.queue.len() >= ECHO_LIMIT {
            return Err(Errno::EAGAIN);
        }
        self.queue.try_push_back(byte)
    }

    /// Copies out up to `buffer.len()` bytes for the device; none while stopped. Returns the position of the first, and the count.
    pub fn peek(&self, buffer: &mut [u8]) -> (u64, usize) {
        if self.stopped {
            return (self.taken, 0);
        }
        let count = buffer.len().min(self.queue.len());
        for (slot, byte) in buffer.iter_mut().zip(&self.queue) {
            *slot = *byte;
        }
        (self.taken, count)
    }

    /// The first `wanted` bytes of the queue, or as many as there are, stopped or not, and the position after them.
    pub fn front(&mut self, wanted: usize) -> (&[u8], u64) {
        let count = wanted.min(self.queue.len());
        (front_of(&mut self.queue, count), self.taken + count as u64)
    }

    /// The device has every byte before `position`. Some may have been dropped in the meantime.
    pub fn taken(&mut self, position: u64) {
        let count = (position.saturating_sub(self.taken)).min(self.queue.len() as u64);
        self.queue.drain(..count as usize);
        self.taken += count;
    }

    /// The position of the first byte in the queue, and of the end of the queue.
    pub fn positions(&self) -> (u64, u64) {
        (self.taken, self.taken + self.queue.len() as u64)
    }

    /// What differs between any two states one of which has come from the other by an echo, a flush, or a stop.
    pub fn extent(&self) -> [u64; 4] {
        [self.taken, self.queue.len() as u64, self.column as u64, self.stopped.into()]
    }

    /// Saves the state into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        writer.numbers([self.taken, self.column as u64, self.stopped.into()]);
        writer.run(self.queue.as_slices());
    }

    /// Loads the state from a snapshot.
    pub fn load(reader: &mut Reader) -> Option<Output> {
        let (taken, column, stopped) = (reader.number()?, reader.number()? as usize, reader.number()? != 0);
        let mut output = Output { taken, column, stopped, ..Output::without_memory() };
        let queued = reader.run()?;
        output.queue.try_make_room(queued.len()).ok()?;
        queued.iter().for_each(|&byte| output.queue.push_back_reserved(byte));
        Some(output)
    }

    fn put(&mut self, byte: u8) {
        self.column = column_after(self.column, byte);
        self.queue.push_back_reserved(byte);
    }
}

/// The first `count` bytes of a queue, which has as many.
pub fn front_of(queue: &mut VecDeque<u8>, count: usize) -> &[u8] {
    if queue.as_slices().0.len() < count {
        queue.make_contiguous();
    }
    &queue.as_slices().0[..count]
}

/// Columns from `column` to the next tab stop.
pub fn tab_width(column: usize) -> usize {
    TAB - column % TAB
}

/// The column after `byte` was printed at `column`.
fn column_after(column: usize, byte: u8) -> usize {
    match byte {
        b'\r' => 0,
        b'\x08' => column.saturating_sub(1),
        b'\t' => column + tab_width(column),
        b' '..=b'~' => column + 1,
        // The first byte of a UTF-8 character takes a column, the rest none.
        0xc0.. => column + 1,
        _ => column,
    }
}
