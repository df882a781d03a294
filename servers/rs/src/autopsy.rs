//! What is taken from a dead service before its memory goes to the successor, and what a crash report makes of it.
//!
//! Taking is quick and needs no memory: registers, the top of the stack, and the ring in which `lib/server` notes the last messages. The
//! text is made when the successor runs. Nothing of a dead service can be trusted: what is garbled is shown as it is, or left out.

use crate::backtrace::{self, Frame, Stack};
use crate::record::{Cause, Death};
use crate::reports::Text;
use abi::archive::Archive;
use abi::call::inject;
use abi::info::{ThreadInfo, state};
use abi::layout::SERVICE_STACK_END;
use abi::registers::Registers;
use abi::symbols::{self, Symbols};
use abi::{Endpoint, Errno, Word};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use sys::{copy, thread};

/// How much of the stack is taken.
const STACK_BYTES: usize = 8192;
/// Entries of the ring of messages (`server::recent`): source and label, first word; then the count of all messages.
const RING_ENTRIES: usize = 8;
const RING_BYTES: usize = (2 * RING_ENTRIES + 1) * 8;
/// The CPU's exceptions that have a short name (Intel SDM, volume 3, table 6-1).
const VECTORS: [(u64, &str); 8] = [
    (0, "divide error"),
    (3, "breakpoint"),
    (5, "bound range exceeded"),
    (6, "invalid opcode"),
    (12, "stack fault"),
    (13, "general protection"),
    (14, "page fault"),
    (17, "alignment check"),
];

/// What is left of the service that was examined last.
pub struct Remains {
    archive: Archive<'static>,
    info: Option<ThreadInfo>,
    registers: Option<Registers>,
    stack: Vec<u8>,
    stack_used: usize,
    ring: [u8; RING_BYTES],
    has_ring: bool,
}

impl Remains {
    /// Room for one, allocated once. Symbols are in the archive.
    #[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "at the start")]
    pub fn new(archive: Archive<'static>) -> Remains {
        Remains {
            archive,
            info: None,
            registers: None,
            stack: vec![0; STACK_BYTES],
            stack_used: 0,
            ring: [0; RING_BYTES],
            has_ring: false,
        }
    }

    /// Takes what is needed of a thread, which does not run afterwards.
    pub fn take(&mut self, endpoint: Endpoint, ring: u64) {
        // Fails for one that does not exist any more, of which then nothing is known.
        let _ = thread::stop(endpoint);
        self.info = sys::info::thread(endpoint.slot()).ok();
        let mut registers = Registers::ZERO;
        self.registers = thread::registers(endpoint, &mut registers).ok().map(|()| registers);
        let sp = self.registers.map_or(SERVICE_STACK_END, |registers| registers.rsp);
        let there = SERVICE_STACK_END.saturating_sub(sp).min(STACK_BYTES as u64) as usize;
        let taken = copy::from_process(endpoint, sp, &mut self.stack[..there]);
        self.stack_used = if taken.is_ok() { there } else { 0 };
        self.has_ring = ring != 0 && copy::from_process(endpoint, ring, &mut self.ring).is_ok();
    }

    #[expect(clippy::disallowed_macros, reason = "short texts of the system file: from the heap's reserve")]
    /// Writes the report of a death. `binary` names the program in the archive; `name_of` the service in a slot.
    pub fn describe<'a>(
        &self,
        text: &mut Text,
        death: &Death,
        binary: &str,
        name_of: impl Fn(Endpoint) -> Option<&'a str>,
    ) -> fmt::Result {
        writeln!(text, "end: {}", Sentence(death.cause))?;
        if let Some(info) = &self.info {
            self.describe_state(text, info, &name_of)?;
        }
        let Some(registers) = &self.registers else { return writeln!(text, "nothing is left of it") };
        describe_registers(text, registers)?;
        let symbols = self.archive.find(&format!("{binary}{}", symbols::SUFFIX)).filter(|_| !death.is_updated);
        match symbols.and_then(|file| Symbols::new(file.data)) {
            Some(symbols) => self.describe_frames(text, registers, &symbols)?,
            None => writeln!(text, "backtrace: there are no symbols of this program")?,
        }
        if self.has_ring { self.describe_messages(text, &name_of) } else { Ok(()) }
    }

    fn describe_state<'a>(
        &self,
        text: &mut Text,
        info: &ThreadInfo,
        name_of: &impl Fn(Endpoint) -> Option<&'a str>,
    ) -> fmt::Result {
        let of_report = matches!(info.state, state::FAULTING);
        write!(text, "messages: {} sent and received", info.messages)?;
        if !of_report && info.blocked_on != Endpoint::NONE {
            write!(text, "; it waits for {}", Party(info.blocked_on, name_of(info.blocked_on)))?;
        }
        writeln!(text)
    }

    fn describe_frames(&self, text: &mut Text, registers: &Registers, symbols: &Symbols) -> fmt::Result {
        writeln!(text, "backtrace:")?;
        let stack = Stack { start: registers.rsp, bytes: &self.stack[..self.stack_used] };
        let innermost = Frame { ip: registers.rip, sp: registers.rsp, bp: registers.rbp, is_guess: false };
        for (depth, frame) in backtrace::frames(symbols, &stack, innermost).enumerate() {
            let guess = if frame.is_guess { " (guessed)" } else { "" };
            match symbols.function(frame.ip.saturating_sub(u64::from(depth > 0))) {
                Some(function) => {
                    let offset = frame.ip - function.start;
                    writeln!(text, "  {:#x} {}+{offset:#x}{guess}", frame.ip, function.name)?;
                }
                None => writeln!(text, "  {:#x} ?", frame.ip)?,
            }
        }
        Ok(())
    }

    fn describe_messages<'a>(&self, text: &mut Text, name_of: &impl Fn(Endpoint) -> Option<&'a str>) -> fmt::Result {
        let word = |at: usize| u64::from_le_bytes(self.ring[8 * at..8 * at + 8].try_into().unwrap_or_default());
        let count = word(2 * RING_ENTRIES);
        let labels = self.archive.find(symbols::LABELS).map_or(&[][..], |file| file.data);
        writeln!(text, "last messages received, the newest first:")?;
        for age in 0..count.min(RING_ENTRIES as u64) {
            let at = 2 * ((count - 1 - age) % RING_ENTRIES as u64) as usize;
            let (head, first) = (word(at), word(at + 1));
            let (source, label) = (Endpoint(head as u32), (head >> 32) as u32);
            let name = label_name(labels, label).unwrap_or("?");
            writeln!(
                text,
                "  {name} (label {label:#x}) from {}, first word {first:#x}",
                Party(source, name_of(source))
            )?;
        }
        Ok(())
    }
}

fn describe_registers(text: &mut Text, registers: &Registers) -> fmt::Result {
    let r = registers;
    let rows = [
        [("rip", r.rip), ("rsp", r.rsp), ("rbp", r.rbp), ("flags", r.rflags)],
        [("rax", r.rax), ("rbx", r.rbx), ("rcx", r.rcx), ("rdx", r.rdx)],
        [("rsi", r.rsi), ("rdi", r.rdi), ("r8", r.r8), ("r9", r.r9)],
        [("r10", r.r10), ("r11", r.r11), ("r12", r.r12), ("r13", r.r13)],
        [("r14", r.r14), ("r15", r.r15), ("fs", r.fs_base), ("gs", r.gs_base)],
    ];
    writeln!(text, "registers:")?;
    for row in rows {
        for (name, value) in row {
            write!(text, "  {name:<5} {value:016x}")?;
        }
        writeln!(text)?;
    }
    Ok(())
}

/// The name of a label in the archive's list.
fn label_name(labels: &'static [u8], label: u32) -> Option<&'static str> {
    let text = core::str::from_utf8(labels).ok()?;
    let wanted = label & !abi::message::REPLY;
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(number, _)| u32::from_str_radix(number, 16) == Ok(wanted))
        .map(|(_, name)| name)
}

/// Somebody messages come from, or go to.
struct Party<'a>(Endpoint, Option<&'a str>);

impl fmt::Display for Party<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Endpoint::ANY, _) => f.write_str("anybody"),
            (Endpoint::CLOCK, _) => f.write_str("the clock"),
            (Endpoint::HARDWARE, _) => f.write_str("the hardware"),
            (_, Some(name)) => f.write_str(name),
            (other, None) => write!(f, "thread {}", other.slot()),
        }
    }
}

/// Why something ended, as people say it.
pub struct Sentence(pub Cause);

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Cause::Exited(status @ ..0) => {
                write!(f, "failed to initialise itself: {}", Errno(status.unsigned_abs() as i32))
            }
            Cause::Exited(101) => f.write_str("panicked (exit status 101; the kernel's log has its last words)"),
            Cause::Exited(status) => write!(f, "exited with status {status}"),
            Cause::Silent => f.write_str("silent: it did not answer in time"),
            Cause::Killed => f.write_str("killed"),
            Cause::Dependant => f.write_str("restarted with a service it depends on"),
            Cause::Exception(exception) if exception.vector == inject::VECTOR => {
                write!(f, "killed as injected, at {:#x}", exception.ip)
            }
            Cause::Exception(exception) => {
                let name = VECTORS.iter().find(|(vector, _)| *vector == exception.vector).map_or("?", |(_, name)| name);
                write!(f, "exception {} ({name}) at {:#x}", exception.vector, exception.ip)?;
                match core::result::Result::<u64, Errno>::from_word(exception.error) {
                    Err(refusal) => write!(f, ", address {:#x}: {refusal}", exception.address),
                    Ok(code) => write!(f, ", error code {code:#x}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::kernel::Exception;

    #[test]
    fn causes_are_told_in_words() {
        let fault = Exception { vector: 14, error: Err(Errno::EFAULT).to_word(), ip: 0x40_1000, address: 0x10 };
        let text = |cause| Sentence(cause).to_string();
        assert_eq!(text(Cause::Exception(fault)), "exception 14 (page fault) at 0x401000, address 0x10: EFAULT");
        let trap = Exception { vector: 6, error: 0, ..fault };
        assert_eq!(text(Cause::Exception(trap)), "exception 6 (invalid opcode) at 0x401000, error code 0x0");
        assert_eq!(text(Cause::Exited(-5)), "failed to initialise itself: EIO");
        assert_eq!(text(Cause::Exited(3)), "exited with status 3");
    }

    #[test]
    fn labels_are_named_replies_as_their_requests() {
        let labels = b"1 Linux::write\n80001 block::Open\n";
        assert_eq!(label_name(labels, 1), Some("Linux::write"));
        assert_eq!(label_name(labels, 0x8008_0001), Some("block::Open"));
        assert_eq!(label_name(labels, 2), None);
    }
}
