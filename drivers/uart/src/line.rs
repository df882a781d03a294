//! One serial line: its chip, and the requests that wait for it, oldest first.
//!
//! Invariant: a read waits only while the chip has nothing for it, a write only while the chip takes nothing.

use crate::chip::{Chip, Registers};
use abi::{Endpoint, Errno};
use alloc::collections::VecDeque;
use driver::Client;
use driver::chardev::{Answers, Held};

/// Most bytes moved for one request at a time; the rest is asked for again.
const CHUNK: usize = 256;

/// A line.
pub struct Line<R: Registers> {
    chip: Chip<R>,
    reads: VecDeque<(Held, Client)>,
    writes: VecDeque<(Held, Client)>,
}

impl<R: Registers> Line<R> {
    /// A line that nobody waits for.
    pub fn new(chip: Chip<R>) -> Self {
        Line { chip, reads: VecDeque::new(), writes: VecDeque::new() }
    }

    /// A read.
    pub fn read(&mut self, held: Held, client: Client, answers: &mut Answers) {
        self.reads.push_back((held, client));
        self.serve_reads(answers);
    }

    /// A write.
    pub fn write(&mut self, held: Held, client: Client, answers: &mut Answers) {
        self.writes.push_back((held, client));
        self.serve_writes(answers);
    }

    /// The chip's interrupt.
    pub fn interrupt(&mut self, answers: &mut Answers) {
        if let Err(error) = self.chip.interrupt() {
            sys::log!("interrupt: {error}");
        }
        let lost = self.chip.take_lost();
        if lost > 0 {
            sys::log!("{lost} bytes were lost: nobody read them in time");
        }
        self.serve_reads(answers);
        self.serve_writes(answers);
    }

    /// Ends a request.
    pub fn cancel(&mut self, asker: Endpoint, tag: u64, answers: &mut Answers) {
        for queue in [&mut self.reads, &mut self.writes] {
            let found = queue.iter().position(|(held, _)| held.asker() == asker && held.tag() == tag);
            if let Some((held, _)) = found.and_then(|at| queue.remove(at)) {
                answers.give(held, Err(Errno::EINTR));
            }
        }
    }

    fn serve_reads(&mut self, answers: &mut Answers) {
        while self.chip.has_received()
            && let Some((held, client)) = self.reads.pop_front()
        {
            let mut bytes = [0; CHUNK];
            let wanted = CHUNK.min(client.bytes() as usize);
            let count = self.chip.read(&mut bytes[..wanted]);
            answers.give(held, client.put(0, &bytes[..count]).map(|()| count as u64));
        }
    }

    fn serve_writes(&mut self, answers: &mut Answers) {
        while let Some((_, client)) = self.writes.front() {
            let mut bytes = [0; CHUNK];
            let wanted = CHUNK.min(client.bytes() as usize);
            let taken = client.fetch(0, &mut bytes[..wanted]).and_then(|()| self.chip.transmit(&bytes[..wanted]));
            if taken == Ok(0) && wanted > 0 {
                return;
            }
            if let Some((held, _)) = self.writes.pop_front() {
                answers.give(held, taken.map(|count| count as u64));
            }
        }
    }
}
