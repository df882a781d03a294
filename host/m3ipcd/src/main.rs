//! m3ipcd, the broker of M3-IPC in Linux: who is bound where, boxes, rights, deaths. Messages do not pass it.
//!
//! There are two processes. The *supervisor* holds what must not be lost; the *worker* does the work, and deposits all that it makes with the
//! supervisor (`store`) before anybody learns of it. Whichever of the two dies has a successor within milliseconds: a worker gets the deposits back
//! and goes on, a supervisor gets all that the worker has. Members notice a delay, and only if they ask something meanwhile.
//!
//! Neighbours: `partner` is how the two hold each other, `container` has a container's tables, `broker` the loop and the connections, `calls` and `bindings` what each call does.

#![forbid(unsafe_code)]

mod admission;
mod bindings;
mod boxes;
mod broker;
mod buffers;
mod calls;
mod container;
mod partner;
mod store;
mod supervisor;

use partner::Role;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
m3ipcd: the broker of M3-IPC

usage: m3ipcd [--socket PATH] [--uid UID]... [--gid GID]... [--buffers MIB]

  --socket PATH   listen there instead of $M3IPC_SOCKET or m3ipcd.sock in $XDG_RUNTIME_DIR (/run for root)
  --uid UID       this user's processes may be bound too, besides root's and those of the broker's own user
  --gid GID       and those of this group
  --buffers MIB   memory for all buffers together, instead of an eighth of the machine's; a user has an eighth of it, root half

It stays in the foreground. It is two processes, and either of them has a successor when it is killed or crashes; SIGTERM, SIGINT or SIGHUP
to either ends both. `m3 init` starts containers, `m3 --help` tells the rest.
";

/// What the command line says.
pub struct Options {
    socket: PathBuf,
    uids: Vec<u32>,
    gids: Vec<u32>,
    buffer_bytes: Option<u64>,
}

fn options() -> Result<Option<Options>, lexopt::Error> {
    use lexopt::prelude::{Long, Short, ValueExt};
    let mut options =
        Options { socket: m3core::wire::socket_path(), uids: Vec::new(), gids: Vec::new(), buffer_bytes: None };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("socket") => options.socket = parser.value()?.into(),
            Long("uid") => options.uids.push(parser.value()?.parse()?),
            Long("gid") => options.gids.push(parser.value()?.parse()?),
            Long("buffers") => options.buffer_bytes = Some(u64::from(parser.value()?.parse::<u32>()?) << 20),
            Long("help") | Short('h') => return Ok(None),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Some(options))
}

/// Boxes, buffers and connections are open files, and the supervisor keeps what its worker deposits: as many as the administrator allows.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        eprintln!("m3ipcd: limit of open files not raised: {error}");
    }
}

/// Returns how many files may be open.
fn file_limit() -> usize {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |limit| limit as usize)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("m3ipcd: {error}; --help tells the options");
            return ExitCode::from(2);
        }
    };
    raise_file_limit();
    let ended = match Role::of_this_process() {
        Some(Role::Worker) => broker::work(&options),
        Some(Role::Supervisor) => supervisor::succeed().map_err(|error| error.to_string()),
        None => supervisor::begin(&options).map_err(|error| format!("{}: {error}", options.socket.display())),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("m3ipcd: {error}");
            ExitCode::FAILURE
        }
    }
}
