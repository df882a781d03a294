//! `m3`, the command of M3-IPC, in Linux and in Skink: starts and ends containers, shows who is bound and what they wait for, binds processes.

#![forbid(unsafe_code)]

mod init;
mod trace;

use lexopt::prelude::{Long, Short, Value, ValueExt};
use m3core::backend::{self, ask};
use m3core::wire;
use m3ipc::call::Call;
use m3ipc::descriptor::{ContainerInfo, DrvsInfo, ProcessInfo, misc, rts};
use m3ipc::endpoint::Endpoint;
use m3ipc::error::Error;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;
use zerocopy::FromBytes;

const HELP: &str = "\
m3: containers of M3-IPC on this machine; in Linux without the module m3ipcd must run

usage: m3 COMMAND

  init VM [SETTING]...                  starts container VM (0 to 31), and the node first if need be
  end [VM]                              ends a container and its processes; without VM all, and the node
  containers                            lists the containers
  ps [VM]                               lists who is bound, and what they wait for
  trace VM [--for SECONDS]              prints what they do, a line for each change, until the container ends
  run VM NR COMMAND [ARGUMENT]...       runs a command bound to slot NR (-35 to 220)
  bind VM NR PID                        binds a process that runs
  unbind VM ENDPOINT                    ends the binding of a process
  info                                  limits of this node

settings of a container:

  --name NAME                           1 to 15 bytes, instead of vm and the number
  --processes N, --tasks N, --system N  slots for processes, tasks, system processes, instead of as many as the node allows
  --uid UID, --gid GID, --capability N  who may join besides root; each may be there several times
  --open                                every user may join

of the node, when it is not running yet:

  --node NODE                           its number, instead of 0
  --max-containers N, --max-nodes N, --max-processes N, --max-tasks N, --max-system N, --max-copy BYTES
                                        its limits, instead of the largest
";

/// Why a command did not succeed.
enum Problem {
    /// The command line is wrong.
    Usage(String),
    /// A call failed.
    Failed(&'static str, Error),
    /// Something else did.
    Other(String),
}

impl From<lexopt::Error> for Problem {
    fn from(error: lexopt::Error) -> Problem {
        Problem::Usage(error.to_string())
    }
}

fn failed(what: &'static str) -> impl FnOnce(Error) -> Problem {
    move |error| Problem::Failed(what, error)
}

fn main() -> ExitCode {
    match run(lexopt::Parser::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Problem::Usage(what)) => {
            eprintln!("m3: {what}; `m3 --help` tells the commands");
            ExitCode::from(2)
        }
        Err(Problem::Failed(what, error)) => {
            eprintln!("m3: {what} failed: {}, {}", error.c_name(), explain(error));
            ExitCode::FAILURE
        }
        Err(Problem::Other(what)) => {
            eprintln!("m3: {what}");
            ExitCode::FAILURE
        }
    }
}

/// Says what an error means, and what would help.
fn explain(error: Error) -> String {
    match error {
        Error::NotInitialised if !backend::has_broker() => "`m3 init` has not run".to_string(),
        Error::NotInitialised => {
            format!("no m3ipcd answers at {}, or `m3 init` has not run", wire::socket_path().display())
        }
        Error::ContainerNotRunning => "there is no such container; `m3 containers` lists them".to_string(),
        Error::NotPermitted if !backend::has_broker() => "this is for administrators".to_string(),
        Error::NotPermitted => "this is for root and the user who runs m3ipcd".to_string(),
        Error::SlotUsed => "the slot is in use; `m3 ps` lists them".to_string(),
        other => other.doc().join(" ").trim().trim_end_matches('.').to_lowercase(),
    }
}

fn run(mut parser: lexopt::Parser) -> Result<(), Problem> {
    let Some(first) = parser.next()? else { return Err(Problem::Usage("a command is missing".to_string())) };
    let command = match first {
        Long("help") | Short('h') => {
            print!("{HELP}");
            return Ok(());
        }
        Value(command) => command,
        other => return Err(other.unexpected().into()),
    };
    match command.to_str() {
        Some("init") => init::init(parser),
        Some("end") => end(parser),
        Some("containers") => no_more(parser).and_then(|()| show_containers()),
        Some("ps") => show_processes(parser),
        Some("trace") => trace(parser),
        Some("run") => run_bound(parser),
        Some("bind") => bind(parser),
        Some("unbind") => unbind(parser),
        Some("info") => no_more(parser).and_then(|()| info()),
        _ => Err(Problem::Usage(format!("there is no command '{}'", command.display()))),
    }
}

fn next_value(parser: &mut lexopt::Parser) -> Result<Option<OsString>, Problem> {
    match parser.next()? {
        None => Ok(None),
        Some(Value(value)) => Ok(Some(value)),
        Some(other) => Err(other.unexpected().into()),
    }
}

fn number(parser: &mut lexopt::Parser, what: &str) -> Result<i32, Problem> {
    // A slot may be negative, which is no option.
    let value = match parser.try_raw_args().and_then(|mut raw| raw.next_if(is_number)) {
        Some(value) => Some(value),
        None => next_value(parser)?,
    };
    let missing = || Problem::Usage(format!("{what} is missing"));
    value.ok_or_else(missing)?.parse().map_err(|error| Problem::Usage(format!("{what}: {error}")))
}

fn is_number(text: &std::ffi::OsStr) -> bool {
    text.to_str().is_some_and(|text| text.parse::<i32>().is_ok())
}

fn no_more(mut parser: lexopt::Parser) -> Result<(), Problem> {
    parser.next()?.map_or(Ok(()), |more| Err(more.unexpected().into()))
}

fn end(mut parser: lexopt::Parser) -> Result<(), Problem> {
    let vm = next_value(&mut parser)?;
    no_more(parser)?;
    match vm {
        Some(vm) => {
            let vm: i64 = vm.parse().map_err(|error| Problem::Usage(format!("VM: {error}")))?;
            ask(Call::VmEnd, &[vm], &[]).map(|_| ()).map_err(failed("end of the container"))
        }
        None => ask(Call::DrvsEnd, &[], &[]).map(|_| ()).map_err(failed("end of the node")),
    }
}

fn containers() -> Result<Vec<ContainerInfo>, Problem> {
    let bytes = backend::containers().map_err(failed("list of containers"))?;
    let infos = bytes.chunks_exact(size_of::<ContainerInfo>());
    Ok(infos.filter_map(|info| ContainerInfo::read_from_bytes(info).ok()).collect())
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

fn show_containers() -> Result<(), Problem> {
    let all = containers()?;
    println!("{:>3} {:<15} {:>5} {:>5} {:>5}  NODES", "VM", "NAME", "BOUND", "PROCS", "TASKS");
    for info in all {
        let nodes: Vec<String> =
            (0..32).filter(|node| info.nodes & 1 << node != 0).map(|node| node.to_string()).collect();
        let (name, nodes) = (text(&info.name), nodes.join(","));
        println!("{:>3} {name:<15} {:>5} {:>5} {:>5}  {nodes}", info.number, info.bound, info.processes, info.tasks);
    }
    Ok(())
}

fn show_processes(mut parser: lexopt::Parser) -> Result<(), Problem> {
    let only = next_value(&mut parser)?;
    no_more(parser)?;
    let only: Option<i32> = match only {
        Some(vm) => Some(vm.parse().map_err(|error| Problem::Usage(format!("VM: {error}")))?),
        None => None,
    };
    let all = containers()?;
    if let Some(vm) = only.filter(|vm| !all.iter().any(|info| info.number == *vm)) {
        return Err(Problem::Other(format!("container {vm} does not run; `m3 containers` lists those that do")));
    }
    println!(
        "{:>3} {:>4} {:>10} {:>8} {:>4} {:<15} {:>10} {:>8}  STATE",
        "VM", "NR", "ENDPOINT", "PID", "NODE", "NAME", "SENT", "COPIES"
    );
    for info in all.iter().filter(|info| only.is_none_or(|vm| vm == info.number)) {
        let members = trace::members(info).map_err(failed("list of processes"))?;
        members.values().for_each(show_process);
    }
    Ok(())
}

fn trace(mut parser: lexopt::Parser) -> Result<(), Problem> {
    let vm = number(&mut parser, "VM")?;
    let mut limit = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("for") => limit = Some(Duration::from_secs(parser.value()?.parse()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    trace::follow(vm, limit)
}

fn show_process(process: &ProcessInfo) {
    println!(
        "{:>3} {:>4} {:>10} {:>8} {:>4} {:<15} {:>10} {:>8}  {}",
        process.container,
        process.number,
        process.endpoint,
        process.pid,
        process.node,
        text(&process.name),
        process.local_sent,
        process.local_copies,
        state(process)
    );
}

fn state(process: &ProcessInfo) -> String {
    let peer = |endpoint| if endpoint == Endpoint::ANY.raw() { "anybody".to_string() } else { format!("{endpoint}") };
    let mut words = Vec::new();
    if process.state & rts::REMOTE != 0 {
        words.push("remote".to_string());
    }
    if process.flags & misc::GRPLEADER == 0 && process.leader != process.endpoint {
        words.push(format!("thread of {}", process.leader));
    }
    if process.state & rts::SENDING != 0 {
        words.push(format!("sending to {}", peer(process.sends_to)));
    } else if process.state & rts::RECEIVING != 0 {
        words.push(format!("receiving from {}", peer(process.receives_from)));
    } else {
        words.push("running".to_string());
    }
    words.join(", ")
}

fn run_bound(mut parser: lexopt::Parser) -> Result<(), Problem> {
    let (vm, slot) = (number(&mut parser, "VM")?, number(&mut parser, "NR")?);
    let mut command = parser.raw_args()?;
    let program = command.next().ok_or_else(|| Problem::Usage("COMMAND is missing".to_string()))?;
    backend::bind(Call::Bind, &[vm.into(), slot.into()]).map_err(failed("binding"))?;
    // The binding is the process's, whatever it executes.
    let error = Command::new(&program).args(command).exec();
    Err(Problem::Other(format!("{} cannot be executed: {error}", program.display())))
}

fn bind(mut parser: lexopt::Parser) -> Result<(), Problem> {
    let (vm, slot) = (number(&mut parser, "VM")?, number(&mut parser, "NR")?);
    let pid = number(&mut parser, "PID")?;
    no_more(parser)?;
    let bound = ask(Call::LocalBind, &[vm.into(), pid.into(), slot.into()], &[]).map_err(failed("binding"))?;
    println!("{}", bound.0);
    Ok(())
}

fn unbind(mut parser: lexopt::Parser) -> Result<(), Problem> {
    let (vm, endpoint) = (number(&mut parser, "VM")?, number(&mut parser, "ENDPOINT")?);
    no_more(parser)?;
    ask(Call::Unbind, &[vm.into(), endpoint.into()], &[]).map(|_| ()).map_err(failed("unbinding"))
}

fn info() -> Result<(), Problem> {
    let (node, bytes) = ask(Call::DrvsInfo, &[], &[]).map_err(failed("question"))?;
    let limits = DrvsInfo::read_from_bytes(&bytes)
        .map_err(|_| Problem::Other("m3 and M3-IPC are of different versions".to_string()))?;
    match backend::has_broker() {
        true => println!("node {node}, socket {}", wire::socket_path().display()),
        false => println!("node {node}"),
    }
    println!("{} containers, {} nodes", limits.containers, limits.nodes);
    println!("{} slots for processes, {} for tasks a container", limits.processes, limits.tasks);
    println!("copies of at most {} bytes", limits.max_copy);
    Ok(())
}
