//! Decodes the kernel's trace into text, with the names that `abi` has.
//!
//! The kernel writes its ring to the debug console as `abi::trace::Record`s. A line here is one event:
//! ticks since the first, what happened, who to whom, and the message's fields by name.
//!
//! A service may answer a Linux call with label 0 (the program sees the result alone), so the decoder
//! remembers what each thread asked: an answer has the name of its request.
//!
//! `explain` reads the same events and tells their story.

use abi::call::{KERNEL_CALL_NAMES, KERNEL_CALLS, SYSTEM_LABELS};
use abi::endpoint::{Endpoint, slot};
use abi::message::{LINUX_LABELS, REPLY};
use abi::privilege::{io, way};
use abi::trace::event;
use abi::{Errno, Field, Name, Word, linux};
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

const RECORD_BYTES: usize = size_of::<abi::trace::Record>();
/// The part of a label that names its protocol, without `REPLY`.
const SYSTEM_MASK: u32 = 0x7fff_0000;
/// An endpoint's slot, without its generation.
const SLOT_BITS: u32 = 0xfff;

/// Decodes the raw trace in the file `raw` to `to`.
///
/// # Errors
/// When the trace cannot be read or `to` cannot be written.
pub fn decode(raw: &Path, to: &mut impl Write) -> Result<()> {
    let mut to = BufWriter::new(to);
    let mut decoder = Decoder::default();
    for event in events(raw)? {
        writeln!(to, "{}", decoder.line(&event))?;
    }
    Ok(to.flush()?)
}

/// The events of the raw trace in the file `raw`, in order.
///
/// # Errors
/// When the file cannot be read.
pub fn events(raw: &Path) -> Result<Vec<Event>> {
    let bytes = fs::read(raw).with_context(|| format!("the kernel left no trace in {}", raw.display()))?;
    Ok(bytes.chunks_exact(RECORD_BYTES).map(Event::read).collect())
}

/// A record, read from its bytes; the fields are those of [`abi::trace::Record`].
#[derive(Clone)]
pub struct Event {
    /// TSC when it happened.
    pub tsc: u64,
    /// One of [`event`].
    pub kind: u32,
    /// Label, vector, or number of the call.
    pub label: u32,
    /// Endpoint of the thread that did it.
    pub from: u32,
    /// Endpoint of the thread it was done to.
    pub to: u32,
    /// Words of the message.
    pub words: [u64; 7],
}

impl Event {
    fn read(bytes: &[u8]) -> Self {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        Self {
            tsc: u64_at(0),
            kind: u32_at(8),
            label: u32_at(12),
            from: u32_at(16),
            to: u32_at(20),
            words: std::array::from_fn(|index| u64_at(24 + 8 * index)),
        }
    }
}

/// State from earlier events that decoding the next one needs.
#[derive(Default)]
pub struct Decoder {
    names: HashMap<u32, Name>,
    /// The last Linux call that a thread made of a service, by thread and service.
    asked: HashMap<(u32, u32), u32>,
    start: Option<u64>,
}

impl Decoder {
    fn line(&mut self, event: &Event) -> String {
        let start = *self.start.get_or_insert(event.tsc);
        self.learn(event);
        format!("{:>12} {}", event.tsc.wrapping_sub(start), self.what(event))
    }

    /// Remembers what later events need: names of services, and what was asked.
    pub fn learn(&mut self, event: &Event) {
        match event.kind {
            event::NAMED => {
                self.names.insert(event.to & SLOT_BITS, Name::from_words(event.words[0], event.words[1]));
            }
            event::MESSAGE if event.label < LINUX_LABELS => {
                self.asked.insert((event.from, event.to), event.label);
            }
            _ => {}
        }
    }

    /// The label of a message; of an answer to a Linux call, the label of the request.
    pub fn label(&self, event: &Event) -> u32 {
        let is_linux_answer = event.label & REPLY != 0 && event.label & !REPLY < LINUX_LABELS;
        match self.asked.get(&(event.to, event.from)) {
            Some(asked) if is_linux_answer => asked | REPLY,
            _ => event.label,
        }
    }

    /// Formats the event as one line.
    pub fn what(&self, event: &Event) -> String {
        let (from, to) = (self.who(event.from), self.who(event.to));
        let label = self.label(event);
        match event.kind {
            event::MESSAGE => format!("{from} -> {to} {}", message(label, &event.words)),
            event::NOTIFY => format!("{from} ~> {to} notify {:#x}", event.words[1]),
            event::SWITCH => format!("switch {from} -> {to}"),
            event::KERNEL_CALL if event.to == Endpoint::SYSTEM.0 => {
                format!("SYSTEM calls {} for {from}", kernel_call(label, &event.words))
            }
            event::KERNEL_CALL => format!("{from} calls {}", kernel_call(label, &event.words)),
            event::PORT => format!("{from} {}", port_access(label, &event.words)),
            event::EXCEPTION => format!("{from} exception {label} at {:#x}", event.words[0]),
            event::INTERRUPT => format!("interrupt {label} -> {to}"),
            event::NAMED => format!("{to} is born"),
            kind => format!("event {kind} {from} {to} {label:#x} {:x?}", event.words),
        }
    }

    /// The name of a service, or the slot and generation.
    pub fn who(&self, endpoint: u32) -> String {
        let slot = endpoint & SLOT_BITS;
        match Endpoint(endpoint) {
            Endpoint::NONE => "nobody".to_string(),
            Endpoint::ANY => "anybody".to_string(),
            Endpoint::SYSTEM => "SYSTEM".to_string(),
            Endpoint::CLOCK => "CLOCK".to_string(),
            Endpoint::HARDWARE => "HARDWARE".to_string(),
            endpoint if endpoint == Endpoint::current(slot::IDLE) => "IDLE".to_string(),
            _ => match self.names.get(&slot) {
                Some(name) => name.to_string(),
                None => format!("{slot}.{}", endpoint >> SLOT_BITS.count_ones()),
            },
        }
    }
}

/// Name and fields of a message: a protocol's, a Linux call, or the bare numbers.
pub fn message(label: u32, words: &[u64; 7]) -> String {
    let is_reply = label & REPLY != 0;
    if let Some((protocol, info)) = abi::describe(label) {
        let name = format!("{}::{}", protocol.name, info.name);
        return match is_reply {
            true => format!("{name} = {}{}", result(words[0]), fields(info.reply, &words[1..])),
            false => format!("{name}{}", fields(info.request, words)),
        };
    }
    let name = match linux::name(label & !REPLY) {
        Some(name) => name.to_string(),
        None if label & SYSTEM_MASK == SYSTEM_LABELS => {
            format!("system::{}", call_name(KERNEL_CALLS + u64::from(label & !REPLY & !SYSTEM_MASK)))
        }
        None => format!("{:#x}", label & !REPLY),
    };
    match is_reply {
        true => format!("{name} = {}", result(words[0])),
        false => format!("{name}({})", numbers(&words[..6])),
    }
}

fn kernel_call(number: u32, words: &[u64; 7]) -> String {
    format!("{}({}) = {}", call_name(u64::from(number)), numbers(&words[..6]), result(words[6]))
}

/// The name of a kernel call.
pub fn call_name(number: u64) -> String {
    match KERNEL_CALL_NAMES.iter().find(|(_, call)| call.number() == number) {
        Some((name, _)) => (*name).to_string(),
        None => format!("native {number:#x}"),
    }
}

/// An access of a port that was no kernel call.
fn port_access(port: u32, words: &[u64; 7]) -> String {
    let [way, operation, value, .., outcome] = *words;
    let way = if way == u64::from(way::HAL) { "traps for" } else { "has emulated" };
    let string = if operation & io::STRING != 0 { " string" } else { "" };
    let bits = (operation & io::WIDTH) * 8;
    let access = match operation & io::OUT {
        0 => format!("IN{bits}{string} {port:#x}"),
        _ => format!("OUT{bits}{string} {port:#x}, {value:#x}"),
    };
    format!("{way} {access} = {}", result(outcome))
}

fn fields(fields: &[Field], words: &[u64]) -> String {
    let shown = fields.iter().zip(words).map(|(field, word)| format!(" {}={word:#x}", field.name));
    shown.collect()
}

fn numbers(words: &[u64]) -> String {
    let shown: Vec<String> = words.iter().map(|word| format!("{word:#x}")).collect();
    shown.join(", ")
}

fn result(word: u64) -> String {
    match Result::<u64, Errno>::from_word(word) {
        Ok(value) => format!("{value:#x}"),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u32, label: u32, from: u32, to: u32, words: &[u64]) -> Event {
        let mut all = [0; 7];
        all[..words.len()].copy_from_slice(words);
        Event { tsc: 1000, kind, label, from, to, words: all }
    }

    #[test]
    fn messages_have_the_names_of_their_protocol() {
        let mut decoder = Decoder::default();
        let (low, high) = Name::new("virtio_blk").expect("is a name").to_words();
        decoder.line(&event(event::NAMED, 0, 0, 12, &[low, high]));
        let request = event(event::MESSAGE, abi::block::Read::LABEL, 0x1011, 12, &[0, 7, 4096, 512]);
        let line = decoder.line(&request);
        assert_eq!(line.trim(), "0 17.1 -> virtio_blk block::Read minor=0x0 grant=0x7 position=0x1000 bytes=0x200");
        let reply = event(event::MESSAGE, abi::block::Read::LABEL | REPLY, 12, 0x1011, &[(-5i64) as u64]);
        assert_eq!(decoder.line(&reply).trim(), "0 virtio_blk -> 17.1 block::Read = EIO");
    }

    #[test]
    fn kernel_calls_by_message_have_their_names() {
        let mut decoder = Decoder::default();
        let label = SYSTEM_LABELS | abi::call::KernelCall::DevIo as u32;
        let request = decoder.line(&event(event::MESSAGE, label, 12, 0, &[0x71, 1]));
        assert!(request.ends_with("12.0 -> SYSTEM system::DevIo(0x71, 0x1, 0x0, 0x0, 0x0, 0x0)"), "{request}");
        let reply = decoder.line(&event(event::MESSAGE, label | REPLY, 0, 12, &[0x26]));
        assert!(reply.ends_with("SYSTEM -> 12.0 system::DevIo = 0x26"), "{reply}");
    }

    #[test]
    fn port_accesses_say_their_way() {
        let words = [u64::from(way::HAL), 1 | io::OUT, 0x41, 0, 0, 0, 0];
        let line = Decoder::default().line(&event(event::PORT, 0x3f8, 12, 0, &words));
        assert!(line.ends_with("12.0 traps for OUT8 0x3f8, 0x41 = 0x0"), "{line}");
    }

    #[test]
    fn linux_calls_have_their_names() {
        let line = Decoder::default().line(&event(
            event::MESSAGE,
            linux::number("write").expect("is a call"),
            200,
            8,
            &[1, 2, 3],
        ));
        assert!(line.ends_with("200.0 -> 8.0 write(0x1, 0x2, 0x3, 0x0, 0x0, 0x0)"), "{line}");
    }

    #[test]
    fn answers_have_the_name_of_their_request() {
        let mut decoder = Decoder::default();
        let call = |name| linux::number(name).expect("is a call");
        decoder.line(&event(event::MESSAGE, call("openat"), 200, 8, &[]));
        decoder.line(&event(event::MESSAGE, call("getpid"), 200, 7, &[]));
        decoder.line(&event(event::MESSAGE, call("write"), 201, 8, &[]));
        let line = decoder.line(&event(event::MESSAGE, REPLY, 8, 200, &[3]));
        assert!(line.ends_with("8.0 -> 200.0 openat = 0x3"), "{line}");
        // A protocol's answer has its own label.
        let line = decoder.line(&event(event::MESSAGE, abi::fs::Put::LABEL | REPLY, 8, 200, &[0]));
        assert!(line.ends_with("8.0 -> 200.0 fs::Put = 0x0"), "{line}");
    }

    #[test]
    fn a_record_is_read_as_the_kernel_writes_it() {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = 5;
        bytes[8] = 4;
        bytes[24 + 48] = 9;
        let event = Event::read(&bytes);
        assert_eq!((event.tsc, event.kind, event.words[6]), (5, 4, 9));
    }
}
