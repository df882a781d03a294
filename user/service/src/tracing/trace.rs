//! `service trace`: every event, a line each, in microseconds since the first.

use abi::Word;
use abi::message::REPLY;
use abi::trace::{Record, event};
use alloc::collections::BTreeMap;
use core::fmt::{self, Write};
use sys::Result;
use sys::linux_output::{Output, STANDARD_OUTPUT};
use traces::calls::Calls;
use traces::label::Label;
use traces::names::Names;
use traces::observer::{Observer, after, is_own, ns};

const EVENTS: u64 =
    1 << event::MESSAGE | 1 << event::NOTIFY | 1 << event::INTERRUPT | 1 << event::EXCEPTION | 1 << event::NAMED;

/// Prints events for so many seconds.
///
/// # Errors
/// Those of [`Observer::new`] and [`Observer::watch`].
pub fn trace(seconds: u32) -> Result<()> {
    Observer::prepare()?;
    let mut observer = Observer::new(EVENTS, 0)?;
    let tsc_hz = observer.tsc_hz();
    let mut lines = Lines { tsc_hz, start: None, asked: BTreeMap::new() };
    let mut calls = Calls::new();
    observer.watch(after(seconds), |names, records, batch| {
        let mut output = Output::new(STANDARD_OUTPUT);
        if batch.lost {
            calls.forget();
            // Errors of standard output are ignored: there is nowhere to report them.
            let _ = output.write_str("... events were lost here\n");
        }
        for record in records {
            // What is done for this program is not shown either.
            let is_for_own = is_own(names.get(calls.chain(record.from).origin()));
            calls.take(record);
            if !is_for_own && !is_own(names.get(record.from)) && !is_own(names.get(record.to)) {
                let _ = lines.write(&mut output, names, record);
            }
        }
    })?;
    observer.warn("service");
    Ok(())
}

struct Lines {
    tsc_hz: u64,
    start: Option<u64>,
    /// What a thread asked of another last: replies to Linux calls do not say.
    asked: BTreeMap<(u32, u32), u32>,
}

impl Lines {
    fn write(&mut self, out: &mut impl Write, names: &Names, record: &Record) -> fmt::Result {
        let Record { tsc, event, label, from, to, words } = *record;
        let [from_name, to_name] = [from, to].map(|thread| names.get(thread));
        let start = *self.start.get_or_insert(tsc);
        let us = ns(tsc.wrapping_sub(start), self.tsc_hz) / 1000;
        match event {
            event::MESSAGE if label & REPLY != 0 => {
                let asked = self.asked.remove(&(to.0, from.0)).unwrap_or(label & !REPLY);
                let result = Result::<u64>::from_word(words[0]);
                write!(out, "{us:>9} {from_name} -> {to_name} {} = ", Label(asked))?;
                match result {
                    Ok(value) => writeln!(out, "{value:#x}"),
                    Err(error) => writeln!(out, "{error}"),
                }
            }
            event::MESSAGE => {
                if self.asked.len() > 4096 {
                    self.asked.clear();
                }
                self.asked.insert((from.0, to.0), label);
                write!(out, "{us:>9} {from_name} -> {to_name} {}", Label(label))?;
                write_fields(out, Label(label), &words)
            }
            event::NOTIFY => writeln!(out, "{us:>9} {from_name} ~> {to_name}"),
            event::INTERRUPT => writeln!(out, "{us:>9} interrupt {label} ~> {to_name}"),
            event::EXCEPTION => {
                writeln!(out, "{us:>9} {from_name} exception {label} at {:#x}, address {:#x}", words[1], words[0])
            }
            event::NAMED => writeln!(out, "{us:>9} {to_name} has started"),
            _ => Ok(()),
        }
    }
}

/// The fields of a request by name.
fn write_fields(out: &mut impl Write, label: Label, words: &[u64; 7]) -> fmt::Result {
    out.write_str("(")?;
    let mut separator = "";
    for (index, word) in words.iter().take(6).enumerate() {
        if let Some(name) = label.field_name(index) {
            write!(out, "{separator}{name} {word:#x}")?;
            separator = ", ";
        }
    }
    out.write_str(")\n")
}
