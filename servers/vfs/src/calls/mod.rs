//! The Linux calls of programs: one table from number to handler, put together at compile time from the lists of the families.
//!
//! Each file of this folder is a family of calls: its `CALLS` says which numbers it has, how the arguments of each are taken apart, and
//! what a call that comes again means. What can be answered without waiting for anybody is answered at once; what waits becomes a task.
//! Neighbours: `call` (arguments), `repeated` (calls that come again), `services` (requests of pm and procfs, not in the table).

mod aio;
mod asynchronous;
mod attributes;
mod call;
mod data;
mod descriptors;
mod epoll;
mod eventfds;
mod handles;
mod inotify;
mod leases;
mod locks;
mod loops;
mod memory_file;
pub mod mmap;
mod mounts;
mod names;
mod open;
mod pidfds;
mod poll;
mod queues;
mod remove;
pub mod repeated;
mod seals;
pub mod services;
mod shown;
mod signalfds;
mod sockets;
mod splice;
mod stat;
mod timers;
mod xattrs;

use crate::{base::Flow, processes::Process, state::Vfs};
use abi::{
    Errno, Message,
    linux::{WITH_WORD, nr},
    message::REPEATED,
};
use alloc::rc::Rc;
use call::Call;
use core::future::Future;

type Handler = fn(&Call) -> Result<Flow, Errno>;

/// What a call asks of file systems that must not be made twice, when a successor of this vfs gets the call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Nothing: it asks, or sets what it set before.
    Nothing,
    /// One change, and the call is done with it.
    All,
    /// One change first, and more to do after it.
    First,
}

/// A call in the list of its family.
#[derive(Clone, Copy)]
struct Entry {
    number: u32,
    changes: Changes,
    handler: Handler,
}

const fn call(number: u32, handler: Handler) -> Entry {
    Entry { number, changes: Changes::Nothing, handler }
}

const fn change(number: u32, changes: Changes, handler: Handler) -> Entry {
    Entry { number, changes, handler }
}

const FAMILIES: [&[Entry]; 21] = [
    data::CALLS,
    splice::CALLS,
    descriptors::CALLS,
    locks::CALLS,
    poll::CALLS,
    open::CALLS,
    handles::CALLS,
    memory_file::CALLS,
    names::CALLS,
    attributes::CALLS,
    stat::CALLS,
    xattrs::CALLS,
    mounts::CALLS,
    queues::CALLS,
    sockets::CALLS,
    timers::CALLS,
    eventfds::CALLS,
    signalfds::CALLS,
    inotify::CALLS,
    epoll::CALLS,
    aio::CALLS,
];

/// Numbers are below this.
const NUMBERS: usize = 512;
const UNKNOWN: Entry = call(u32::MAX, |_| unknown());

static TABLE: [Entry; NUMBERS] = {
    let mut table = [UNKNOWN; NUMBERS];
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut index = 0;
        while index < FAMILIES[family].len() {
            let entry = FAMILIES[family][index];
            assert!(table[entry.number as usize].number == UNKNOWN.number, "two families have the same call");
            table[entry.number as usize] = entry;
            index += 1;
        }
        family += 1;
    }
    table
};

/// What the call with this number changes.
fn changes(number: u32) -> Changes {
    TABLE.get(number as usize).unwrap_or(&UNKNOWN).changes
}

/// Carries out a call of a program, as far as it goes without waiting. Inlined: a call would cost every call 20 ticks.
#[inline(always)]
pub fn linux_call(vfs: &'static Vfs, process: &Rc<Process>, message: &Message) -> Flow {
    let call = Call::new(vfs, process, &message.words);
    let number = message.words[6];
    if number & REPEATED != 0 {
        vfs.base().store().begin_call(message.source, number & !REPEATED);
        repeated::repeat(vfs, &call, message.label);
        return Flow::Later;
    }
    vfs.base().store().begin_call(message.source, number);
    process.caller.begin_new_call();
    begin(&call, message.label)
}

/// Carries out a call of which nothing has been done yet, or only what may be done twice.
fn begin(call: &Call, number: u32) -> Flow {
    let flow = match TABLE.get(number as usize) {
        Some(entry) => (entry.handler)(call),
        None => with_word(call, number),
    };
    flow.unwrap_or_else(|error| Flow::Done(Err(error)))
}

/// Carries out a call whose word the kernel has fetched. Not inlined: others would save more registers.
#[inline(never)]
fn with_word(call: &Call, number: u32) -> Result<Flow, Errno> {
    if number == nr::WRITE | WITH_WORD { data::write_word(call) } else { unknown() }
}

#[cold]
fn unknown() -> Result<Flow, Errno> {
    Err(Errno::ENOSYS)
}

fn done(result: Result<u64, Errno>) -> Result<Flow, Errno> {
    Ok(Flow::Done(result))
}

fn task(future: impl Future<Output = Result<u64, Errno>> + 'static) -> Result<Flow, Errno> {
    Ok(Flow::task(future))
}

/// `EINVAL` for flags that are not among those known.
fn allow(flags: u32, known: u32) -> Result<(), Errno> {
    if flags & !known == 0 { Ok(()) } else { Err(Errno::EINVAL) }
}

#[cfg(test)]
mod table_tests {
    use super::*;

    #[test]
    fn every_call_is_where_its_number_says() {
        let known = TABLE.iter().enumerate().filter(|(_, entry)| entry.number != UNKNOWN.number);
        assert!(known.clone().all(|(number, entry)| entry.number as usize == number));
        assert_eq!(known.count(), FAMILIES.iter().map(|family| family.len()).sum());
        assert!(TABLE.get(u32::MAX as usize).is_none());
    }

    #[test]
    fn calls_that_change_names_are_not_done_twice() {
        assert_eq!([nr::MKDIR, nr::OPEN, nr::WRITE].map(changes), [Changes::All, Changes::First, Changes::Nothing]);
    }
}
