//! vfs: descriptors, paths, mounts, pipes, poll, permissions. It stands between programs and the file systems and drivers.
//!
//! A call of a program is a message. What can be answered at once is; everything else becomes a task that asks file systems and drivers and
//! never keeps the server from receiving: vfs waits for nobody but vm, ds and rs.
//!
//! | folder | topic |
//! |---|---|
//! | `calls` | the calls of programs, a file for each family; the requests of pm and procfs |
//! | `paths` | path names as text, and their resolution |
//! | `objects` | open files and what they refer to |
//! | `files` | vnodes, the name cache, locks, permissions, requests to file systems |
//! | `mounts` | mounted file systems; mount, unmount, sync |
//! | `mappings` | exec and mmap: files in the memory of programs |
//! | `processes` | threads of programs: descriptors, directories, ids |
//! | `pipes`, `queues`, `sockets` | bytes and messages between programs |
//! | `events` | waiting and waking; poll; events for pm |
//! | `memory` | memory of programs |
//! | `keep`, `recovery` | the state that outlives vfs, and what its successor does with it |
//!
//! `state` holds them together, `peers` are the services that vfs asks. The book's chapter on files tells how they work together.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod base;
mod callers;
mod calls;
mod events;
mod exec;
mod files;
mod keep;
mod mappings;
mod memory;
mod mounts;
mod objects;
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

use abi::{Endpoint, Errno, Message, endpoint::slot, message::LINUX_LABELS};
use alloc::boxed::Box;
use base::Flow;
use keep::{KEEP_BYTES, Store};
use recover::records::Found;
use state::Vfs;
use sys::{keep::Keep, start::Birth};

sys::program!(main);

fn main(start: sys::Start) {
    let keep = Keep::take(KEEP_BYTES).expect("preserved memory is taken once");
    let (store, found) = Store::open(keep);
    let vfs: &'static Vfs = Box::leak(Box::new(Vfs::new(store, start.endpoint.generation())));
    vfs.base.runtime.before_sending(|answers| vfs.base.store.end_turn(answers));
    match found {
        Found::State | Found::Undone => vfs.restore(),
        Found::Nothing if start.birth == Birth::Fresh => {}
        Found::Nothing | Found::Damaged => {
            sys::log!("the predecessor's state is lost: programs have no files any more")
        }
    }
    vfs.base.runtime.spawn(async move {
        vfs.finish_recovery().await;
        if !vfs.mounted.is_reached() {
            vfs.mount_all(start.arguments).await;
        }
        vfs.sync_periodically().await;
    });
    vfs.base.runtime.spawn(vfs.base.feed_pipes());
    vfs.base.runtime.serve(|message| handle(vfs, message), |result| answer(vfs, result), |from, _| notified(vfs, from))
}

/// One message, as far as it goes without waiting.
fn handle(vfs: &'static Vfs, message: &Message) -> Flow {
    if message.is_reply() {
        // The answer to a request that has been given up.
        return Flow::Later;
    }
    let flow = if message.source.is_service() {
        vfs.base.runtime.reply(message, &vfs.service_request(message));
        Flow::Later
    } else if message.label >= LINUX_LABELS {
        vfs.base.runtime.reply(message, &message.reply(Err(Errno::ENOSYS)));
        Flow::Later
    } else if !vfs.recovered.is_reached() {
        handle_recovered(vfs, *message);
        Flow::Later
    } else {
        vfs.linux_call(message)
    };
    if matches!(flow, Flow::Later) {
        vfs.base.sweep();
    }
    flow
}

/// A program's call that came while a predecessor's state is being restored.
fn handle_recovered(vfs: &'static Vfs, message: Message) {
    vfs.base.runtime.spawn(async move {
        vfs.recovered.wait().await;
        let result = match vfs.linux_call(&message) {
            Flow::Done(result) => Some(result),
            Flow::Task(task) => Some(task.await),
            Flow::Later => None,
        };
        vfs.base.sweep();
        if let Some(result) = result {
            vfs.base.answer(message.source, result);
        }
    });
}

/// The answer to a call that is over.
fn answer(vfs: &Vfs, result: Result<u64, Errno>) -> Message {
    vfs.base.sweep();
    base::answer(result)
}

fn notified(vfs: &'static Vfs, from: Endpoint) {
    if from.slot() == slot::VM {
        vfs.serve_vm();
    }
}
