//! vfs: descriptors, paths, mounts, pipes, poll, permissions. It stands between programs and the file systems and drivers.
//!
//! A call of a program is a message. What needs nobody else is answered at once; everything else becomes a task that asks file systems and
//! drivers while the server goes on receiving. vfs blocks only in requests to vm, ds and rs.
//!
//! The folders from top to bottom; imports go down only (layers.toml):
//!
//! | folder | topic |
//! |---|---|
//! | `recovery` | restores the state that a predecessor has left |
//! | `calls` | Linux calls, a file for each family; requests of pm, procfs and vm |
//! | `state` | the parts in one structure, which only the folders above see |
//! | `mounts` | mount, unmount, sync |
//! | `exec` | loads programs into vm |
//! | `open` | from a path to an open file |
//! | `pathname`, `paths` | path names as text, and their resolution |
//! | `processes` | threads of programs: descriptors, directories |
//! | `objects` | open files, a file for each kind of object |
//! | `sockets` | local sockets: names, connections |
//! | `base` | what open files stand on |
//! | `mappings` | files that are mapped: what vm has of them |
//! | `files` | vnodes, mounts, the name cache, locks, leases; requests to file systems |
//! | `aio` | contexts of asynchronous I/O |
//! | `queues` | message queues |
//! | `peers` | file systems and drivers, as vfs asks them |
//! | `callers` | who calls, and the call in progress; permissions |
//! | `pipes` | pipes and FIFOs, of bytes or messages |
//! | `events` | waiting and waking; poll; events for pm |
//! | `memory` | memory of programs, and structures in it |
//! | `devices` | which service drives a device node |
//! | `keep` | records that outlive vfs |
//!
//! A new call is an entry in the list of its family in `calls`, a new kind of descriptor a file in `objects`. docs/book/walk-read.md
//! follows a `read` through the folders.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod aio;
mod base;
mod cache;
mod callers;
mod calls;
mod devices;
mod events;
mod exec;
mod files;
mod keep;
mod mappings;
mod memory;
mod mounts;
mod objects;
mod open;
mod pathname;
mod paths;
mod peers;
mod pipes;
mod processes;
mod queues;
mod recovery;
mod sockets;
mod state;
#[cfg(test)]
mod tests;

use abi::{
    Endpoint, Errno, Message,
    endpoint::slot,
    kernel::Notify,
    message::{LINUX_LABELS, REPEATED},
    vm,
};
use alloc::{boxed::Box, vec::Vec};
use base::Flow;
use calls::{linux_call, mmap::serve_vm, repeated::awaits_a_giver, services::service_request};
use devices::Devices;
use keep::{KEEP_BYTES, Sizes, Store};
use recover::records::Found;
use server::Handlers;
use state::Vfs;
use sys::{ipc, keep::Keep, start::StartKind};

sys::program!(main);

fn main(start: sys::Start) {
    let keep = Keep::take(KEEP_BYTES).expect("preserved memory is taken once");
    let (store, found) = Store::open(keep, sizes());
    let vfs: &'static Vfs =
        Box::leak(Box::new(Vfs::new(store, start.endpoint.generation(), Devices::new(start.arguments))));
    let terminals = match found {
        Found::State | Found::Undone => recovery::restore(vfs),
        Found::Nothing if start.kind == StartKind::Fresh => Vec::new(),
        Found::Nothing | Found::Damaged => {
            sys::log!("the predecessor's state is lost: every program's descriptors are closed");
            Vec::new()
        }
    };
    vfs.base().runtime().spawn(async move {
        recovery::finish(vfs, terminals).await;
        if !vfs.startup().mounted().is_reached() {
            mounts::mount_all(vfs.base(), vfs.startup(), start.arguments).await;
        }
        mounts::measure_disks(vfs.base()).await;
        mounts::sync_periodically(vfs.base()).await;
    });
    vfs.base().runtime().spawn(vfs.base().peers().watch());
    vfs.base().runtime().spawn(vfs.in_flight().serve(vfs.base()));
    vfs.base().runtime().spawn(vfs.base().drop_unread());
    vfs.base().runtime().serve(vfs)
}

impl Handlers for &'static Vfs {
    type Outcome = Result<u64, Errno>;

    #[inline]
    fn request(&self, message: &Message) -> Flow {
        swept(self, handled(handle(self, message)))
    }

    /// Inlined into the receive loop: a call would cost every call 20 ticks.
    #[inline(always)]
    fn call(&self, message: &Message) -> Flow {
        let flow = match self.startup().recovered().is_reached().then(|| self.processes().get(message.source)) {
            Some(Ok(process)) => linux_call(self, &process, message),
            _ => handled(handle(self, message)),
        };
        swept(self, flow)
    }

    #[inline]
    fn reply(&self, outcome: Result<u64, Errno>) -> Message {
        self.base().sweep();
        base::answer(outcome)
    }

    fn notified(&self, from: Endpoint, _: Notify) {
        notified(self, from);
    }

    #[inline]
    fn before_sending(&self, results: impl Iterator<Item = (Endpoint, u64)>) {
        self.base().store().end_turn(results);
    }
}

/// How much of the tables is used, by the machine's memory.
fn sizes() -> Sizes {
    let reply = ipc::call(Endpoint::VM, &vm::MemoryInfo {}.message());
    let info = reply.and_then(|reply| vm::MemoryInfo::results(&reply));
    info.map_or(Sizes::WHOLE, |(total, ..)| Sizes::for_memory(total))
}

/// Sweeps what a request that is not answered yet has left to do; of the others it is swept with their reply.
#[inline(always)]
fn swept(vfs: &'static Vfs, flow: Flow) -> Flow {
    if matches!(flow, Flow::Later) {
        vfs.base().sweep();
    }
    flow
}

/// How the message goes on that [`handle`] has returned this for.
#[inline(always)]
fn handled(result: Result<(), Errno>) -> Flow {
    match result {
        Ok(()) => Flow::Later,
        Err(error) => Flow::Done(Err(error)),
    }
}

/// Handles a message that is no call of a program that is known, or a call that came while a predecessor's state is being restored. What has
/// to be replied is. `ESRCH`: the caller of a Linux call is not known. Not a `Flow`, which every call would take from memory then.
#[inline(never)]
fn handle(vfs: &'static Vfs, message: &Message) -> Result<(), Errno> {
    if message.is_reply() {
        // The reply to a request that has been dropped.
    } else if message.source.is_service() {
        if !vfs.base().serve_block(message) {
            vfs.base().runtime().reply(message, &service_request(vfs, message));
        }
    } else if message.label >= LINUX_LABELS {
        vfs.base().runtime().reply(message, &message.reply(Err(Errno::ENOSYS)));
    } else if vfs.startup().recovered().is_reached() {
        return Err(Errno::ESRCH);
    } else {
        handle_recovered(vfs, *message);
    }
    Ok(())
}

/// Handles a call that came while a predecessor's state is being restored: it waits for that. Those that the predecessor had in progress are
/// all among these, since recovery waits for them.
fn handle_recovered(vfs: &'static Vfs, message: Message) {
    vfs.base().store().begin_call(message.source, message.words[6] & !REPEATED);
    let startup = vfs.startup();
    let milestone = if awaits_a_giver(&message) { startup.takers() } else { startup.recovered() };
    vfs.base().runtime().spawn(async move {
        milestone.wait().await;
        let flow = match vfs.processes().get(message.source) {
            Ok(process) => linux_call(vfs, &process, &message),
            Err(error) => Flow::Done(Err(error)),
        };
        vfs.base().go_on(message.source, flow);
    });
}

fn notified(vfs: &'static Vfs, from: Endpoint) {
    match from.slot() {
        slot::VM => serve_vm(vfs.base(), vfs.processes(), vfs.startup()),
        slot::RS => {
            vfs.base().trim();
            vfs.in_flight().collect();
        }
        _ => {}
    }
}
