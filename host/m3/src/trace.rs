//! `m3 trace`: what the members of a container do, a line for each change.
//!
//! Messages do not pass the broker, and nobody stops a process to look at it: a member is looked at every millisecond. What it did between two
//! looks is told by its counts.

use crate::{Problem, failed, state, text};
use m3core::backend::ask;
use m3ipc::call::Call;
use m3ipc::descriptor::{ContainerInfo, ProcessInfo, rts};
use m3ipc::error::Error;
use m3ipc::limits::NAME_BYTES;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};
use zerocopy::FromBytes;

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(1);
/// Looks at those who are known, between two looks at all slots: a slot may have another occupant while as many are bound.
const LOOKS: u32 = 100;

/// Returns the members of a container, by slot.
///
/// # Errors
/// The broker's.
pub fn members(info: &ContainerInfo) -> Result<BTreeMap<i32, ProcessInfo>, Error> {
    let mut members = BTreeMap::new();
    for slot in -info.tasks..info.processes {
        if let Some(process) = member(info.number, slot)? {
            members.insert(slot, process);
        }
    }
    Ok(members)
}

fn member(container: i32, slot: i32) -> Result<Option<ProcessInfo>, Error> {
    let (_, bytes) = ask(Call::ProcessInfo, &[container.into(), slot.into()], &[])?;
    let process = ProcessInfo::read_from_bytes(&bytes).map_err(|_| Error::Invalid)?;
    Ok((process.state & rts::SLOT_FREE == 0).then_some(process))
}

fn container(number: i32) -> Result<ContainerInfo, Error> {
    let (_, bytes) = ask(Call::VmInfo, &[number.into()], &[])?;
    ContainerInfo::read_from_bytes(&bytes).map_err(|_| Error::Invalid)
}

/// Prints changes until the container ends, the time is over, or nobody reads them any more.
///
/// # Errors
/// There is no such container, or no broker.
pub fn follow(number: i32, limit: Option<Duration>) -> Result<(), Problem> {
    let mut info = container(number).map_err(failed("look at the container"))?;
    let begin = Instant::now();
    let (mut known, mut looks) = (BTreeMap::new(), 0);
    while limit.is_none_or(|limit| begin.elapsed() < limit) {
        let now = match look(&info, &known, looks % LOOKS == 0) {
            Ok(now) => now,
            Err(Error::ContainerNotRunning | Error::NotInitialised) => break,
            Err(error) => return Err(Problem::Failed("look at a process", error)),
        };
        if !show(begin.elapsed(), &known, &now) {
            break;
        }
        known = now;
        looks += 1;
        std::thread::sleep(PERIOD);
        match container(number) {
            Ok(new) => {
                looks = if new.bound == info.bound { looks } else { 0 };
                info = new;
            }
            Err(_) => break,
        }
    }
    Ok(())
}

/// Looks at the known members, or at all slots.
fn look(
    info: &ContainerInfo,
    known: &BTreeMap<i32, ProcessInfo>,
    at_all: bool,
) -> Result<BTreeMap<i32, ProcessInfo>, Error> {
    if at_all {
        return members(info);
    }
    let mut now = BTreeMap::new();
    for &slot in known.keys() {
        if let Some(process) = member(info.number, slot)? {
            now.insert(slot, process);
        }
    }
    Ok(now)
}

/// Prints what has changed. Returns false when the output is closed.
fn show(time: Duration, before: &BTreeMap<i32, ProcessInfo>, now: &BTreeMap<i32, ProcessInfo>) -> bool {
    let mut lines = Vec::new();
    for (slot, gone) in before {
        if now.get(slot).is_none_or(|process| process.endpoint != gone.endpoint) {
            lines.push(line(time, gone, "unbound"));
        }
    }
    for (slot, process) in now {
        let old = before.get(slot).filter(|old| old.endpoint == process.endpoint);
        if old.is_some_and(|old| shown(old) == shown(process)) {
            continue;
        }
        let (sent, copies) = old.map_or((0, 0), |old| (old.local_sent, old.local_copies));
        let mut words = if old.is_none() { format!("bound, {}", state(process)) } else { state(process) };
        if process.local_sent != sent {
            words += &format!(", {} sent", process.local_sent.wrapping_sub(sent));
        }
        if process.local_copies != copies {
            words += &format!(", {} copied", process.local_copies.wrapping_sub(copies));
        }
        lines.push(line(time, process, &words));
    }
    let mut output = std::io::stdout().lock();
    lines.iter().all(|line| writeln!(output, "{line}").is_ok()) && output.flush().is_ok()
}

/// What a line depends on.
fn shown(process: &ProcessInfo) -> (String, [u8; NAME_BYTES], u64, u64) {
    (state(process), process.name, process.local_sent, process.local_copies)
}

fn line(time: Duration, process: &ProcessInfo, what: &str) -> String {
    format!("{:>10.3} {:>4} {:<15} {what}", time.as_secs_f64(), process.number, text(&process.name))
}
