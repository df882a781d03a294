//! Reading and writing of pipes and sockets, as calls: what waits, what a signal ends, and SIGPIPE.

use crate::{
    calls::Flow,
    events::notices::SIGPIPE,
    keep::records::Note,
    memory::buffer::UserBuffer,
    pipes::{Outcome, Pipe},
    processes::{Call, Process},
    state::Vfs,
};
use abi::Errno;
use alloc::rc::Rc;

impl Vfs {
    /// Reads from a pipe.
    pub fn read_pipe(
        &self,
        process: &Process,
        pipe: &Rc<Pipe>,
        buffer: UserBuffer,
        nonblocking: bool,
    ) -> Result<Flow, Errno> {
        let outcome = pipe.read(self, buffer, nonblocking);
        self.pipe_flow(process, pipe, outcome)
    }

    /// Writes to a pipe; `quiet`: without a signal when nobody reads.
    pub fn write_pipe(
        &self,
        process: &Process,
        pipe: &Rc<Pipe>,
        mut buffer: UserBuffer,
        nonblocking: bool,
        quiet: bool,
    ) -> Result<Flow, Errno> {
        if let Some(Note::Moved(moved)) = process.note.get() {
            buffer.advance_all(moved);
        }
        let outcome = pipe.write(self, buffer, nonblocking);
        if outcome == Outcome::Done(Err(Errno::EPIPE)) {
            return self.broken_pipe(process, quiet);
        }
        self.pipe_flow(process, pipe, outcome)
    }

    /// A write that nobody reads.
    pub fn broken_pipe(&self, process: &Process, quiet: bool) -> Result<Flow, Errno> {
        if quiet {
            return Err(Errno::EPIPE);
        }
        *process.call.borrow_mut() = Call::Signalled(0);
        self.events.signal(process.endpoint, SIGPIPE);
        Ok(Flow::Later)
    }

    fn pipe_flow(&self, process: &Process, pipe: &Rc<Pipe>, outcome: Outcome) -> Result<Flow, Errno> {
        match outcome {
            Outcome::Done(result) => {
                self.store.has_moved();
                Ok(Flow::Done(result))
            }
            Outcome::Waiting => match process.cancelled.take() {
                // A signal came while the call was on its way from a predecessor.
                Some(error) => Ok(Flow::Done(match pipe.cancel(process.endpoint) {
                    Some(moved @ 1..) => Ok(moved),
                    _ => Err(error),
                })),
                None => {
                    *process.call.borrow_mut() = Call::Pipe(pipe.clone());
                    Ok(Flow::Later)
                }
            },
        }
    }
}
