//! `probe`: asks questions of the messages between processes, in a small language (`traces::probe`), for some time or until it is stopped.
//!
//!     probe 2 'vfs read bytes > 4096 { hist(latency) by caller }'
//!
//! The kernel records messages; they are looked at here. What was lost is counted. Exit status 1: the trace ring cannot be read; 2: the
//! command line or the probe is wrong.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use abi::Errno;
use abi::trace::event;
use core::fmt::{self, Write};
use sys::linux::Arguments;
use sys::linux_output::{Output, STANDARD_ERROR, STANDARD_OUTPUT};
use traces::calls::Calls;
use traces::observer::{Observer, after, is_own};
use traces::probe::Probe;
use traces::probe::evaluate::Evaluation;
use traces::probe::parse::parse;

const USAGE: &str = "usage: probe SECONDS 'SERVICE MESSAGE [CONDITION] { ACTION [by KEY, ...]; ... } ...' | --help\n";

const HELP: &str = "
Looks for so many seconds at each call of SERVICE by MESSAGE (a Linux call or a message of a protocol; * is any), when it has its reply.

  condition    FIELD == VALUE, also != < <= > >=; && || ( )
  action       count, sum(FIELD), min(FIELD), max(FIELD), avg(FIELD), hist(FIELD), quantize(FIELD), print
  field        latency (ns), result, errno, caller, server, label, origin (the program for which it is done), and the fields of the message
  value        a number, also 0x1000, 4k, 10us, or a name: EIO, dd

  probe 2 'vfs read bytes > 4096 { hist(latency) by caller }'
  probe 5 '* * errno != 0 { count by caller, label, errno }'
  probe 1 'ext2 * { quantize(latency) by label } vfs openat latency > 1ms { print }'

Only root may do this.
";

const REFUSED: i32 = 1;
const MISUSED: i32 = 2;
/// Longest observation, in seconds.
const MAX_SECONDS: u32 = 86_400;
const EVENTS: u64 = 1 << event::MESSAGE | 1 << event::NOTIFY;

sys::linux_program!(main);

fn main(arguments: Arguments) -> i32 {
    let first = arguments.get(1);
    if first == Some("--help") {
        let _ = write!(Output::new(STANDARD_OUTPUT), "{USAGE}{HELP}");
        return 0;
    }
    let seconds = first.and_then(|text| text.parse().ok()).filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
    let (Some(seconds), Some(text), 3) = (seconds, arguments.get(2), arguments.count()) else {
        complain(format_args!("expected a number of seconds from 1 to {MAX_SECONDS}, and a probe\n{USAGE}"));
        return MISUSED;
    };
    if let Err(error) = Observer::prepare() {
        return refuse(error);
    }
    match parse(text) {
        Ok(probes) => watch(seconds, probes).map_or_else(refuse, |()| 0),
        Err(problem) => {
            complain(format_args!(
                "{problem}\n  {text}\n  {:>1$}\n",
                '^',
                text[..problem.position].chars().count() + 1
            ));
            MISUSED
        }
    }
}

fn watch(seconds: u32, probes: alloc::vec::Vec<Probe>) -> Result<(), Errno> {
    let mut observer = Observer::new(EVENTS, 0)?;
    let mut calls = Calls::new();
    let mut evaluation = Evaluation::new(probes, observer.tsc_hz());
    // Errors of standard output are ignored: there is nowhere to report them.
    observer.watch(after(seconds), |names, records, batch| {
        let mut output = Output::new(STANDARD_OUTPUT);
        if batch.lost {
            calls.forget();
        }
        for call in records.iter().filter_map(|record| calls.take(record)) {
            if !is_own(names.get(call.origin)) && !is_own(names.get(call.caller)) {
                let _ = evaluation.take(&call, names, &mut output);
            }
        }
    })?;
    let _ = evaluation.show(&mut Output::new(STANDARD_OUTPUT));
    observer.warn("probe");
    Ok(())
}

fn complain(text: fmt::Arguments) {
    let _ = write!(Output::new(STANDARD_ERROR), "probe: {text}");
}

fn refuse(error: Errno) -> i32 {
    match error {
        Errno::EPERM | Errno::EACCES => {
            complain(format_args!("only root may do that: it shows the messages of all users\n"))
        }
        Errno::ENOENT | Errno::ENXIO => {
            complain(format_args!("there is no /dev/trace; 'service status trace' says whether its driver runs\n"));
        }
        Errno::EMFILE => complain(format_args!("too many programs read /dev/trace; end one of them\n")),
        error => complain(format_args!("/dev/trace cannot be read: {error}\n")),
    }
    REFUSED
}
