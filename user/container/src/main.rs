//! `container`: the command that makes containers with limits, and lists, enters and kills them, by system calls to pm. A native program.
//!
//! `command` parses the command line, `world` makes the root and what is in it, `output` prints. docs/book/containers.md explains containers.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

mod command;
mod output;
mod world;

use abi::container::{CONTAINERS, ContainerRecord, container_call};
use abi::{Errno, Name};
use command::{Command, Run};
use core::ffi::CStr;
use core::fmt::{self, Write};
use sys::linux::Arguments;
use sys::linux_output::{Output, STANDARD_ERROR, STANDARD_OUTPUT};
use sys::linux_processes as processes;
use world::Failure;
use zerocopy::{FromBytes, IntoBytes};

/// Exit statuses.
const REFUSED: i32 = 1;
const MISUSED: i32 = 2;
const NOT_MADE: i32 = 125;
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;
/// Between two looks whether a killed container has ended.
const LOOK_MS: u32 = 1;
/// Where commands are looked for without PATH.
const PATHS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const PATH_BYTES: usize = 1024;
const LIST_BYTES: usize = CONTAINERS * size_of::<ContainerRecord>();

sys::linux_program!(main);

fn main(arguments: Arguments) -> i32 {
    match command::parse(arguments.count(), |index| arguments.get(index)) {
        Ok(command) => run(&command, &arguments),
        Err(problem) => {
            complain(format_args!("{problem}\n{}", command::USAGE));
            MISUSED
        }
    }
}

fn complain(text: fmt::Arguments) {
    let _ = writeln!(Output::new(STANDARD_ERROR), "container: {text}");
}

fn run(command: &Command, arguments: &Arguments) -> i32 {
    let done = match command {
        Command::Help => {
            let _ = write!(Output::new(STANDARD_OUTPUT), "{}{}", command::USAGE, command::HELP);
            Ok(())
        }
        Command::Run(run) => return run_in_new(run, arguments),
        Command::Exec(name, command) => return run_inside(*name, arguments, *command),
        Command::List => list(),
        Command::Kill(name) => kill(*name),
    };
    match done {
        Ok(()) => 0,
        Err((name, error)) => {
            refused(name, error);
            REFUSED
        }
    }
}

/// Says why pm refused something.
fn refused(name: Name, error: Errno) {
    match error {
        Errno::EPERM => complain(format_args!("only root may do that, and nobody inside a container")),
        Errno::ENOENT => complain(format_args!("there is no container '{name}'; 'container list' shows them")),
        Errno::EEXIST => {
            complain(format_args!("there is a container '{name}' already; 'container kill {name}' ends it"))
        }
        Errno::ENOSPC => complain(format_args!("there are too many containers; 'container list' shows them")),
        Errno::EAGAIN => complain(format_args!("'{name}' has as many processes as it may")),
        error => complain(format_args!("'{name}': pm returned {error}")),
    }
}

fn run_in_new(run: &Run, arguments: &Arguments) -> i32 {
    let mut settings = run.settings;
    if let Err(Failure { step, error }) = world::set_priorities(run.scheduling) {
        complain(format_args!("{step}: {error}"));
        return NOT_MADE;
    }
    match processes::container(container_call::CREATE, run.name, settings.as_mut_bytes()) {
        Ok(0) => begin(arguments, run.command, world::make(run, arguments).and_then(|()| world::close_others())),
        made => wait_for(run.name, made),
    }
}

fn run_inside(name: Name, arguments: &Arguments, command: usize) -> i32 {
    match processes::container(container_call::ENTER, name, &mut []) {
        Ok(0) => begin(arguments, command, world::close_others()),
        made => wait_for(name, made),
    }
}

/// The parent's part: its exit status is that of its child.
fn wait_for(name: Name, made: sys::Result<u64>) -> i32 {
    match made.and_then(processes::wait) {
        Ok(end) => end.status(),
        Err(error) => {
            refused(name, error);
            NOT_MADE
        }
    }
}

/// The child's part: becomes the command, when its world is made.
fn begin(arguments: &Arguments, command: usize, made: Result<(), Failure>) -> i32 {
    if let Err(Failure { step, error }) = made {
        complain(format_args!("{step}: {error}"));
        return NOT_MADE;
    }
    let Some(name) = arguments.get_bytes(command) else { return NOT_MADE };
    let error = execute(name, arguments, command);
    complain(format_args!("{}: {error}", name.to_str().unwrap_or("?")));
    if error == Errno::ENOENT { NOT_FOUND } else { NOT_EXECUTABLE }
}

/// Executes a command, looked for in PATH if its name is no path. Returns why that failed.
fn execute(name: &CStr, arguments: &Arguments, first: usize) -> Errno {
    if name.to_bytes().contains(&b'/') {
        return arguments.execute(name, first);
    }
    let mut error = Errno::ENOENT;
    for folder in arguments.variable("PATH").unwrap_or(PATHS).split(':') {
        let mut path = [0; PATH_BYTES];
        let parts = [folder.as_bytes(), b"/", name.to_bytes_with_nul()];
        let mut used = 0;
        for part in parts {
            if let Some(to) = path.get_mut(used..used + part.len()) {
                to.copy_from_slice(part);
            }
            used += part.len();
        }
        if let Ok(path) = CStr::from_bytes_until_nul(&path)
            && used <= PATH_BYTES
        {
            match arguments.execute(path, first) {
                Errno::ENOENT | Errno::ENOTDIR => {}
                other => error = other,
            }
        }
    }
    error
}

/// The containers that there are.
fn records(buffer: &mut [u8; LIST_BYTES]) -> sys::Result<&[ContainerRecord]> {
    let bytes = processes::container(container_call::LIST, Name::default(), buffer)?;
    let text = buffer.get(..bytes as usize).ok_or(Errno::EINVAL)?;
    <[ContainerRecord]>::ref_from_bytes(text).map_err(|_| Errno::EINVAL)
}

fn list() -> Result<(), (Name, Errno)> {
    let mut buffer = [0; LIST_BYTES];
    let records = records(&mut buffer).map_err(|error| (Name::default(), error))?;
    output::table(&mut Output::new(STANDARD_OUTPUT), records).map_err(|_| (Name::default(), Errno::EIO))
}

/// Kills a container and waits until its name is free: all its processes have been waited for.
fn kill(name: Name) -> Result<(), (Name, Errno)> {
    processes::container(container_call::KILL, name, &mut []).map_err(|error| (name, error))?;
    let mut buffer = [0; LIST_BYTES];
    loop {
        let records = records(&mut buffer).map_err(|error| (name, error))?;
        if !records.iter().any(|record| record.name == name) {
            return Ok(());
        }
        processes::sleep_ms(LOOK_MS);
    }
}
