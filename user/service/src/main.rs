//! `service`: the command that lists, kills, restarts and updates services, by system calls to rs. A native program.
//!
//! `tracing` shows what the kernel's trace ring tells. `command` parses the command line, `output` prints, `reports` is started by init and saves crash reports in files. Exit status 1 when rs refuses, 2 when the command line is wrong.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod command;
mod output;
mod refusal;
mod reports;
mod tracing;

use abi::rs::{REPORT_BYTES, ServiceRecord, service_call};
use abi::{Errno, Name};
use command::Command;
use core::ffi::CStr;
use core::fmt::Write;
use refusal::Refusal;
use sys::linux::{self, Arguments};
use sys::linux_output::{Output, STANDARD_ERROR, STANDARD_OUTPUT};
use sys::{Result, time};
use zerocopy::IntoBytes;

/// Exit statuses.
const REFUSED: i32 = 1;
const MISUSED: i32 = 2;
/// Capacity of the list of services: more than any system has.
const MAX_SERVICES: usize = 128;
/// Argument with the file of `update`.
const FILE_ARGUMENT: usize = 3;
/// Limit of a binary that `update` reads, in bytes; rs's own limit is lower.
const MAX_PROGRAM_BYTES: u64 = 64 << 20;

sys::linux_program!(main);

fn main(arguments: Arguments) -> i32 {
    match command::parse(arguments.count(), |index| arguments.get(index)) {
        Ok(command) => run(&command, &arguments),
        Err(problem) => {
            let _ = write!(Output::new(STANDARD_ERROR), "service: {problem}\n{}", command::USAGE);
            MISUSED
        }
    }
}

fn run(command: &Command, arguments: &Arguments) -> i32 {
    let simple = |operation, name| linux::service(operation, name, &mut [], 0).map(drop);
    let done = match command {
        Command::Help => {
            let _ = write!(Output::new(STANDARD_OUTPUT), "{}{}", command::USAGE, command::HELP);
            Ok(())
        }
        Command::List => list(),
        Command::Status(name) => status(*name),
        Command::Kill(name) => simple(service_call::KILL, *name),
        Command::Restart(name) => simple(service_call::RESTART, *name),
        Command::Update(name, _) => update(*name, arguments.get_bytes(FILE_ARGUMENT).unwrap_or_default()),
        Command::Log(name) => log(*name),
        Command::Inject(name, request) => {
            let mut request = *request;
            linux::service(service_call::INJECT, *name, request.as_mut_bytes(), 0).map(drop)
        }
        Command::Reports => reports::write_for_ever(),
        Command::Top(seconds) => tracing::top(*seconds),
        Command::Trace(seconds) => tracing::trace(*seconds),
        Command::Profile(seconds, hertz) => tracing::profile(*seconds, *hertz),
    };
    match done {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(Output::new(STANDARD_ERROR), "service: {}", Refusal { error, command });
            REFUSED
        }
    }
}

fn list() -> Result<()> {
    let mut records = [ServiceRecord::default(); MAX_SERVICES];
    let bytes = linux::service(service_call::LIST, Name::default(), records.as_mut_bytes(), 0)?;
    let count = bytes as usize / size_of::<ServiceRecord>();
    let mut output = Output::new(STANDARD_OUTPUT);
    // Errors of standard output are ignored: there is nowhere to report them.
    let _ = output::table(&mut output, &records[..count], time::now_ns());
    Ok(())
}

fn status(name: Name) -> Result<()> {
    let mut record = ServiceRecord::default();
    linux::service(service_call::STATUS, name, record.as_mut_bytes(), 0)?;
    let _ = output::details(&mut Output::new(STANDARD_OUTPUT), &record, time::now_ns());
    Ok(())
}

fn log(name: Name) -> Result<()> {
    let mut text = [0; REPORT_BYTES];
    let bytes = linux::service(service_call::LOG, name, &mut text, 0)?;
    let text = core::str::from_utf8(text.get(..bytes as usize).unwrap_or_default()).map_err(|_| Errno::EILSEQ)?;
    let _ = Output::new(STANDARD_OUTPUT).write_str(text);
    Ok(())
}

fn update(name: Name, path: &CStr) -> Result<()> {
    let file = linux::open(path, linux::open::READ, 0).map_err(refusal::of_file)?;
    let program = read_whole(file).map_err(refusal::of_file)?;
    linux::service(service_call::UPDATE, name, program, 0).map(drop)
}

/// Reads a whole file into fresh memory.
fn read_whole(file: i32) -> Result<&'static mut [u8]> {
    let bytes = linux::length(file)?;
    if bytes > MAX_PROGRAM_BYTES {
        return Err(Errno::EFBIG);
    }
    let memory = linux::memory((bytes as usize).max(1))?;
    let mut done = 0;
    while done < bytes as usize {
        match linux::read(file, &mut memory[done..])? {
            0 => break,
            read => done += read,
        }
    }
    linux::close(file)?;
    Ok(&mut memory[..done])
}
