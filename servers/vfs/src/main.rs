//! vfs: descriptors, paths, mounts, pipes, poll, permissions. It stands between programs and the file systems and drivers.
//!
//! A call of a program is a message. What can be answered at once is; everything else becomes a task that asks file systems and drivers and
//! never keeps the server from receiving: vfs waits for nobody but vm, ds and rs.
//!
//! Reading order: `state` (what there is), `calls` (who does what), `walk` (paths), `data` (reading and writing), `pipe`, `exec`.
//! The book's chapter on files tells how they work together.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod attributes;
mod block;
mod buffer;
mod calls;
mod control;
mod data;
mod descriptor_calls;
mod descriptors;
mod directories;
mod directories_of;
mod event;
mod events;
mod exec;
mod file;
mod file_table;
mod keep;
mod lock_calls;
mod locks;
mod mount;
mod mounting;
mod names;
mod nodes;
mod open;
mod path;
mod peers;
mod permission;
mod pipe;
#[cfg(test)]
mod pipe_tests;
mod poll;
mod poll_calls;
mod process;
mod recovery;
#[cfg(test)]
mod recovery_tests;
mod repeated;
mod ring;
mod script;
mod stat;
mod state;
mod user;
mod vnode;
mod walk;

use abi::{Endpoint, Errno, Message, Word, endpoint::slot, message::LINUX_LABELS};
use alloc::boxed::Box;
use calls::Flow;
use keep::{KEEP_BYTES, Store};
use server::recover::Found;
use state::Vfs;
use sys::{keep::Keep, start::Birth};

sys::program!(main);

fn main(start: sys::Start) {
    let keep = Keep::take(KEEP_BYTES).expect("preserved memory is taken once");
    let (store, found) = Store::open(keep);
    let vfs: &'static Vfs = Box::leak(Box::new(Vfs::new(store, start.endpoint.generation())));
    vfs.runtime.before_sending(|answers| vfs.end_turn(answers));
    match found {
        Found::State | Found::Undone => vfs.restore(),
        Found::Nothing if start.birth == Birth::Fresh => {}
        Found::Nothing | Found::Damaged => {
            sys::log!("the predecessor's state is lost: programs have no files any more")
        }
    }
    vfs.runtime.spawn(async move {
        vfs.finish_recovery().await;
        if !vfs.mounted.get() {
            vfs.mount_all(start.arguments).await;
        }
        vfs.sync_periodically().await;
    });
    vfs.runtime.spawn(vfs.feed_pipes());
    vfs.runtime.serve(|message| handle(vfs, message), |from, _| notified(vfs, from))
}

/// One request, from its message to its answer.
async fn handle(vfs: &'static Vfs, message: Message) -> Option<Message> {
    if message.is_reply() {
        // The answer to a request that has been given up.
        return None;
    }
    if vfs.recovering.get() && !message.source.is_service() {
        // In a box, because each call's task would have room for it otherwise, and is moved about.
        Box::pin(vfs.wait_recovered()).await;
    }
    if message.source.is_service() {
        let reply = vfs.service_request(&message);
        vfs.sweep();
        return Some(reply);
    }
    if message.label >= LINUX_LABELS {
        return Some(message.reply(Err(Errno::ENOSYS)));
    }
    let flow = match vfs.processes.get(message.source) {
        Ok(process) => vfs.linux_call(&process, message.label, message.words),
        Err(error) => Flow::Done(Err(error)),
    };
    let result = match flow {
        Flow::Done(result) => result,
        Flow::Later => {
            vfs.sweep();
            return None;
        }
        Flow::Task(task) => task.await,
    };
    vfs.sweep();
    Some(reply(&message, result))
}

/// The answer to a Linux call: only word 0 counts.
fn reply(message: &Message, result: Result<u64, Errno>) -> Message {
    let mut reply = Message::new(message.label | abi::message::REPLY);
    reply.words[0] = result.to_word();
    reply
}

fn notified(vfs: &'static Vfs, from: Endpoint) {
    if from.slot() == slot::VM {
        vfs.serve_mappings();
    }
}
