//! `service profile`: samples by the timer, as folded stacks: the program, the calls of the services that work for it, and the function.

use abi::endpoint::SERVICE_SLOTS;
use abi::trace::{Record, event};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::fmt::{self, Write};
use sys::Result;
use sys::linux_output::{Output, STANDARD_ERROR, STANDARD_OUTPUT};
use traces::calls::{Calls, Chain};
use traces::names::{Names, Who};
use traces::observer::{Observer, after, function, is_own};

const EVENTS: u64 = 1 << event::SAMPLE | 1 << event::MESSAGE | 1 << event::NOTIFY;
/// Limit of different places that are kept: samples elsewhere are counted.
const MAX_PLACES: usize = 1 << 16;

/// Where a sample was taken: the stack without the function, who ran, and the address; 0: in the kernel.
type Place = (String, Who, bool, u64);

/// Samples for so many seconds and prints the stacks.
///
/// # Errors
/// Those of [`Observer::new`] and [`Observer::watch`].
pub fn profile(seconds: u32, hertz: u32) -> Result<()> {
    Observer::prepare()?;
    let mut observer = Observer::new(EVENTS, hertz)?;
    let (mut calls, mut samples) = (Calls::new(), Samples::default());
    observer.watch(after(seconds), |names, records, batch| {
        if batch.lost {
            calls.forget();
        }
        for record in records {
            calls.take(record);
            if record.event == event::SAMPLE {
                samples.add(names, record, &calls.chain(record.from));
            }
        }
    })?;
    // Errors of standard output are ignored: there is nowhere to report them.
    let _ = samples.print(&mut Output::new(STANDARD_OUTPUT));
    let _ = samples.summary(&mut Output::new(STANDARD_ERROR));
    observer.warn("service");
    Ok(())
}

#[derive(Default)]
struct Samples {
    places: BTreeMap<Place, u64>,
    by_who: BTreeMap<Who, u64>,
    total: u64,
    elsewhere: u64,
}

impl Samples {
    fn add(&mut self, names: &Names, record: &Record, chain: &Chain) {
        let who = names.get(record.from);
        self.total += 1;
        *self.by_who.entry(who).or_default() += 1;
        let is_service = record.from.slot() < SERVICE_SLOTS;
        let address = if record.label & 1 != 0 { 0 } else { record.words[0] };
        let place = (stack(names, chain), who, is_service, address);
        if self.places.len() >= MAX_PLACES && !self.places.contains_key(&place) {
            self.elsewhere += 1;
            return;
        }
        *self.places.entry(place).or_default() += 1;
    }

    /// Prints a line for each stack with its number of samples.
    fn print(&self, out: &mut impl Write) -> fmt::Result {
        let mut folded = BTreeMap::<String, u64>::new();
        for ((stack, who, is_service, address), count) in &self.places {
            if is_own(*who) || stack.split(';').next().is_some_and(|first| is_own(Who::new(first))) {
                continue;
            }
            let place = match (address, is_service) {
                (0, _) => "[kernel]".into(),
                (_, true) => function(*who, *address).unwrap_or_else(|| format!("[{who}]")),
                (_, false) => format!("[{who}]"),
            };
            let line = if who.as_str() == "idle" { stack.clone() } else { format!("{stack};{place}") };
            *folded.entry(line).or_default() += count;
        }
        folded.iter().try_for_each(|(line, count)| writeln!(out, "{line} {count}"))
    }

    fn summary(&self, out: &mut impl Write) -> fmt::Result {
        writeln!(out, "service: {} samples", self.total)?;
        let mut shares: alloc::vec::Vec<_> = self.by_who.iter().collect();
        shares.sort_by_key(|(_, count)| core::cmp::Reverse(**count));
        for (who, count) in shares {
            writeln!(out, "{who:<15} {count:>8} {:>3} %", count * 100 / self.total.max(1))?;
        }
        if self.elsewhere > 0 {
            writeln!(out, "service: {} samples at too many places are in no stack", self.elsewhere)?;
        }
        Ok(())
    }
}

/// The frames of a chain: the program, then for each request its name and who serves it.
fn stack(names: &Names, chain: &Chain) -> String {
    let mut text = String::new();
    for (thread, label) in chain.frames() {
        // A string takes everything.
        let _ = match label {
            None => write!(text, "{}", names.get(*thread)),
            Some(label) if label.is_linux() => write!(text, ";{label}();{}", names.get(*thread)),
            Some(label) => write!(text, ";{label};{}", names.get(*thread)),
        };
    }
    text
}
