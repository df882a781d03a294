//! The files of /proc/drvs, which procfs asks for: `m3ipc::report` says what is in them.

use crate::server::M3ipc;
use crate::system::System;
use abi::m3ipc::{Request, TEXT_CONTAINER, TEXT_COUNTS, TEXT_NODE, TEXT_NODES, TEXT_PROCESSES, Text};
use abi::{Endpoint, Errno, GrantId, Message};
use core::fmt::{self, Write};
use m3ipc::descriptor::ProcessInfo;
use m3ipc::endpoint::Number;
use m3ipc::limits::{NODES, SLOTS};
use m3ipc::report;

/// Limit of what is written at once: a process, or all about a node or a container.
const PART_BYTES: usize = 512;

/// A part of a text. It is not on the heap, which outlives this process.
struct Part {
    bytes: [u8; PART_BYTES],
    length: usize,
}

impl Write for Part {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// Where a text goes to.
struct Output {
    to: Endpoint,
    grant: GrantId,
    limit: u64,
    written: u64,
}

impl Output {
    fn put<S: System>(
        &mut self,
        system: &mut S,
        write: impl FnOnce(&mut dyn Write) -> fmt::Result,
    ) -> Result<(), Errno> {
        let mut part = Part { bytes: [0; PART_BYTES], length: 0 };
        write(&mut part).map_err(|_| Errno::ENOSPC)?;
        if self.written + part.length as u64 > self.limit {
            return Err(Errno::ENOSPC);
        }
        system.write_grant(self.to, self.grant, self.written, &part.bytes[..part.length])?;
        self.written += part.length as u64;
        Ok(())
    }
}

impl<S: System> M3ipc<S> {
    /// Answers procfs.
    pub fn tell_files(&mut self, message: &Message) -> Message {
        match Request::decode(message) {
            Some(Request::Text(ask)) => message.reply(self.write_text(message.source, &ask)),
            Some(Request::Containers(_)) => abi::m3ipc::Containers::reply(message, 0, self.running().into()),
            Some(Request::Ends(_)) | None => message.reply(Err(Errno::ENOSYS)),
        }
    }

    /// The containers that run, a bit each.
    fn running(&self) -> u32 {
        self.containers.iter().fold(0, |bits, container| bits | 1 << container.number)
    }

    fn write_text(&mut self, to: Endpoint, ask: &Text) -> Result<u64, Errno> {
        let mut output = Output { to, grant: ask.grant, limit: ask.bytes, written: 0 };
        if matches!(ask.what, TEXT_NODE | TEXT_NODES) {
            self.write_of_node(ask.what, &mut output)?;
        } else {
            let container = u8::try_from(ask.container).ok().filter(|number| self.running() >> number & 1 != 0);
            self.write_of_container(ask.what, container.ok_or(Errno::ESRCH)?, &mut output)?;
        }
        Ok(output.written)
    }

    fn write_of_node(&mut self, what: u64, output: &mut Output) -> Result<(), Errno> {
        let (id, limits) = (self.node.id().ok(), *self.node.limits());
        let system = &mut self.system;
        if what == TEXT_NODE {
            return output.put(system, |out| report::node(out, id.map(|id| (id, &limits))));
        }
        let Some(own) = id else { return Ok(()) };
        output.put(system, |out| out.write_str(report::NODES_HEADING))?;
        for number in 0..NODES as u8 {
            let info = self.describe_node(own, number);
            output.put(&mut self.system, |out| report::other_node(out, &info))?;
        }
        Ok(())
    }

    fn write_of_container(&mut self, what: u64, number: u8, output: &mut Output) -> Result<(), Errno> {
        match what {
            TEXT_CONTAINER => {
                let info = self.container(number.into()).map_err(|_| Errno::ESRCH)?.describe();
                output.put(&mut self.system, |out| report::container(out, &info))
            }
            TEXT_PROCESSES => self.write_each(number, output, report::PROCESSES_HEADING, report::process),
            TEXT_COUNTS => self.write_each(number, output, report::COUNTS_HEADING, report::counts),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Writes a line for each process that is bound.
    fn write_each(
        &mut self,
        container: u8,
        output: &mut Output,
        heading: &str,
        write: fn(&mut dyn Write, &ProcessInfo) -> fmt::Result,
    ) -> Result<(), Errno> {
        let node = self.node.id().map_err(|_| Errno::ESRCH)?;
        output.put(&mut self.system, |out| out.write_str(heading))?;
        for slot in (0..SLOTS).map(Number::at) {
            if let Some(info) = self.describe(container, slot, node) {
                output.put(&mut self.system, |out| write(out, &info))?;
            }
        }
        Ok(())
    }
}
