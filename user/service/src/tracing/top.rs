//! `service top`: for each pair of processes and each call how often, and how long from request to reply; and who used the processor.

use abi::endpoint::{FIRST_SERVICE, SERVICE_SLOTS};
use abi::info::{self, KernelInfo};
use abi::trace::event;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use sys::Result;
use sys::linux_output::{Output, STANDARD_OUTPUT};
use traces::calls::Calls;
use traces::histogram::Histogram;
use traces::latency::Latencies;
use traces::names::Who;
use traces::observer::{Observer, after, is_own, ns};

/// Rows that are shown of each table: a screen has 24 lines.
const ROWS: usize = 14;
const PROCESSORS: usize = 6;
const EVENTS: u64 = 1 << event::MESSAGE | 1 << event::NOTIFY;
/// Moves to the top of the screen and clears it.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows the table for so many seconds, or every second a new one.
///
/// # Errors
/// Those of [`Observer::new`] and [`Observer::watch`].
pub fn top(seconds: Option<u32>) -> Result<()> {
    Observer::prepare()?;
    let mut observer = Observer::new(EVENTS, 0)?;
    loop {
        let usage = Usage::now()?;
        let table = watch(&mut observer, seconds.unwrap_or(1))?;
        let mut output = Output::new(STANDARD_OUTPUT);
        let clear = if seconds.is_none() { CLEAR } else { "" };
        let shown = output.write_str(clear).and_then(|()| show(&mut output, &observer, &table, &usage.since()?));
        if seconds.is_some() || shown.is_err() {
            observer.warn("service");
            return Ok(());
        }
    }
}

fn watch(observer: &mut Observer, seconds: u32) -> Result<Latencies<Who>> {
    let (mut calls, mut table) = (Calls::new(), Latencies::new());
    let mut ended = Vec::new();
    observer.watch(after(seconds), |names, records, batch| {
        if batch.lost {
            calls.forget();
        }
        ended.extend(records.iter().filter_map(|record| calls.take(record)));
        for call in ended.drain(..) {
            let [caller, server, origin] = [call.caller, call.server, call.origin].map(|thread| names.get(thread));
            if !is_own(origin) && !is_own(caller) {
                table.add((caller, server, call.label), call.ticks);
            }
        }
    })?;
    Ok(table)
}

fn show(out: &mut Output, observer: &Observer, table: &Latencies<Who>, usage: &[(Who, u64)]) -> fmt::Result {
    writeln!(out, "{:<15} {:<15} {:<24} {:>8} {:>9} {:>9} {:>9}", "FROM", "TO", "CALL", "COUNT", "P50", "P99", "MAX")?;
    let rows = table.sorted();
    for ((from, to, label), histogram) in rows.iter().take(ROWS) {
        // A label has no width of its own.
        let label = alloc::format!("{label}");
        write!(out, "{from:<15} {to:<15} {label:<24} ")?;
        figures(out, observer, histogram)?;
    }
    let others = rows.iter().skip(ROWS).map(|(_, histogram)| histogram.count()).sum::<u64>() + table.others().count();
    writeln!(out, "{others} further calls; {} events lost", observer.lost())?;
    writeln!(out, "{:<15} {:>9}", "PROCESSOR", "SHARE")?;
    for (who, thousandths) in usage.iter().take(PROCESSORS) {
        writeln!(out, "{who:<15} {:>6}.{} %", thousandths / 10, thousandths % 10)?;
    }
    Ok(())
}

fn figures(out: &mut Output, observer: &Observer, histogram: &Histogram) -> fmt::Result {
    write!(out, "{:>8}", histogram.count())?;
    for ticks in [histogram.percentile(50), histogram.percentile(99), histogram.max()] {
        write!(out, " {:>9}", Duration(ns(ticks, observer.tsc_hz())))?;
    }
    writeln!(out)
}

/// A time in the unit that fits.
struct Duration(u64);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            ns @ ..10_000 => alloc::format!("{ns} ns"),
            ns @ ..10_000_000 => alloc::format!("{} us", ns / 1_000),
            ns @ ..10_000_000_000 => alloc::format!("{} ms", ns / 1_000_000),
            ns => alloc::format!("{} s", ns / 1_000_000_000),
        };
        f.pad(&text)
    }
}

/// What has used the processor until now, in nanoseconds: all, nobody, and each service.
struct Usage {
    now_ns: u64,
    idle_ns: u64,
    services: Vec<(Who, u64)>,
}

impl Usage {
    fn now() -> Result<Usage> {
        let KernelInfo { now_ns, idle_ns, .. } = sys::info::get(info::KERNEL, 0)?;
        let threads = (FIRST_SERVICE..SERVICE_SLOTS).filter_map(|slot| sys::info::thread(slot).ok());
        let services = threads.map(|thread| (Who::new(thread.name.as_str()), thread.run_ns)).collect();
        Ok(Usage { now_ns, idle_ns, services })
    }

    /// The shares of the time since then in thousandths, the largest first; what is left is that of programs.
    fn since(&self) -> core::result::Result<Vec<(Who, u64)>, fmt::Error> {
        let now = Usage::now().map_err(|_| fmt::Error)?;
        let all = now.now_ns.saturating_sub(self.now_ns).max(1);
        let share = |used: u64| used.saturating_mul(1000) / all;
        let idle = now.idle_ns.saturating_sub(self.idle_ns);
        // A service that was restarted meanwhile began at 0.
        let before = |who| self.services.iter().find(|(known, _)| *known == who).map_or(0, |(_, used)| *used);
        let used = |who, ns: u64| ns.checked_sub(before(who)).unwrap_or(ns);
        let mut shares: Vec<_> = now.services.iter().map(|&(who, ns)| (who, used(who, ns))).collect();
        let programs = all.saturating_sub(idle + shares.iter().map(|(_, used)| used).sum::<u64>());
        shares.extend([(Who::new("idle"), idle), (Who::new("programs"), programs)]);
        shares.retain(|(_, used)| *used > 0);
        shares.sort_by_key(|(_, used)| core::cmp::Reverse(*used));
        Ok(shares.into_iter().map(|(who, used)| (who, share(used))).collect())
    }
}
