//! `service`: what people ask and tell rs. A native program that a shell starts.
//!
//! `service list`, `service status NAME`, `service kill NAME`, `service restart NAME`. Exit status 1 when rs refuses, 2 when the
//! command line is wrong.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

mod command;
mod output;

use abi::rs::{ServiceRecord, service_call};
use abi::{Errno, Name};
use command::Command;
use core::fmt::Write;
use output::Output;
use sys::linux::{self, Arguments};
use sys::{Result, plain, time};

const STANDARD_OUTPUT: i32 = 1;
const STANDARD_ERROR: i32 = 2;
/// Exit statuses.
const REFUSED: i32 = 1;
const MISUSED: i32 = 2;
/// More than a system has services.
const MOST_SERVICES: usize = 128;

sys::linux_program!(main);

fn main(arguments: Arguments) -> i32 {
    match command::parse(arguments.count(), |index| arguments.get(index)) {
        Ok(command) => run(&command),
        Err(problem) => {
            let _ = writeln!(Output::new(STANDARD_ERROR), "service: {problem}\n{}", command::USAGE);
            MISUSED
        }
    }
}

fn run(command: &Command) -> i32 {
    let done = match command {
        Command::List => list(),
        Command::Status(name) => status(*name),
        Command::Kill(name) => linux::service(service_call::KILL, *name, &mut []).map(drop),
        Command::Restart(name) => linux::service(service_call::RESTART, *name, &mut []).map(drop),
    };
    match done {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(Output::new(STANDARD_ERROR), "service: {}", reason(error, command));
            REFUSED
        }
    }
}

fn list() -> Result<()> {
    let mut records = [ServiceRecord::default(); MOST_SERVICES];
    let bytes = linux::service(service_call::LIST, Name::default(), plain::bytes_of_mut(&mut records))?;
    let count = bytes as usize / size_of::<ServiceRecord>();
    let mut output = Output::new(STANDARD_OUTPUT);
    // What cannot be written to standard output is seen by the shell, not by this program.
    let _ = output::table(&mut output, &records[..count], time::now_ns());
    Ok(())
}

fn status(name: Name) -> Result<()> {
    let mut record = [ServiceRecord::default()];
    linux::service(service_call::STATUS, name, plain::bytes_of_mut(&mut record))?;
    let _ = output::details(&mut Output::new(STANDARD_OUTPUT), &record[0], time::now_ns());
    Ok(())
}

/// What a refusal means.
fn reason(error: Errno, command: &Command) -> Reason<'_> {
    Reason { error, command }
}

struct Reason<'a> {
    error: Errno,
    command: &'a Command,
}

impl core::fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let name = self.command.name().unwrap_or_default();
        match self.error {
            Errno::ENOENT => write!(f, "there is no service '{name}'"),
            Errno::ESRCH => write!(f, "'{name}' is not running"),
            Errno::EPERM => f.write_str("only root may do that, and not to rs or vm"),
            other => write!(f, "rs answers {other}"),
        }
    }
}
