//! Calls that come again, because a predecessor of this vfs died before it had answered them.
//!
//! What a predecessor had done of such a call shows in three ways, and nothing is done twice:
//! * its result is noted: the whole call was done, and is answered with it;
//! * something else is noted: how far a transfer had come, where an append begins, until when to wait;
//! * a file system has its change: it is asked for the answer that it gave (`fs::Recall`, with the change's tag).
//!
//! Everything else of a call can be done again: it asks, or sets what it set before.
//!
//! The kernel makes them again in the order of threads, not in that in which they came. So those on whose waiting the outcome of another
//! call depends are begun first ([`awaits_a_giver`]).

use crate::{
    callers::Caller,
    calls::{self, Changes, Flow, call::Call},
    files::Files,
    keep::records::Note,
    objects::O_NONBLOCK,
    peers::Peers,
    state::Vfs,
};
use abi::{Message, Word, fs, linux::nr, message::REPLY};

/// Whether another call ends differently when this one waits already: a message for which a receiver waits announces nothing, and an open
/// of a FIFO for writing that does not wait finds the reader.
pub fn awaits_a_giver(message: &Message) -> bool {
    let waits = |flags: u64| flags & u64::from(O_NONBLOCK) == 0;
    match message.label {
        nr::MQ_TIMEDRECEIVE => true,
        nr::OPEN => waits(message.words[1]),
        nr::OPENAT => waits(message.words[2]),
        _ => false,
    }
}

/// Carries out a call that comes again, and answers it.
pub(super) fn repeat(vfs: &'static Vfs, call: &Call, number: u32) {
    let caller = &call.process.caller;
    let note = call.store().noted(caller.endpoint, call.store().call_of(caller.endpoint));
    if let Some(Note::Result(word)) = note {
        return call.base().go_on(caller.endpoint, Flow::Done(Word::from_word(word)));
    }
    caller.begin_call(note);
    let changes = calls::changes(number);
    if changes == Changes::Nothing {
        return call.base().go_on(caller.endpoint, calls::begin(call, number));
    }
    let (base, process, words) = (call.base(), call.process(), *call.words);
    base.runtime().spawn(async move {
        let call = Call::new(vfs, &process, &words);
        if let Some(reply) = recall(call.peers(), &process.caller).await {
            // Nobody has told those who watch.
            call.files().watches().lost_events();
            if changes == Changes::All {
                take_over(call.files(), &reply);
                return base.go_on(process.caller.endpoint, Flow::Done(Ok(0)));
            }
            process.caller.set_recalled(Some(reply));
        }
        let flow = match calls::begin(&call, number) {
            Flow::Task(task) => Flow::Done(task.await),
            // What asks a file system without a task has no use for what was recalled.
            flow => flow,
        };
        process.caller.set_recalled(None);
        base.go_on(process.caller.endpoint, flow);
    });
}

/// The reply that a file system has sent to the change of this call, if it has made it.
async fn recall(peers: &Peers, caller: &Caller) -> Option<Message> {
    for service in peers.file_systems() {
        let reply = peers.ask_once(caller, service, fs::Recall {}.message()).await;
        if let Ok(reply) = reply {
            return Some(reply);
        }
    }
    None
}

/// Ends the use of a node that was made for a call which does not open it.
fn take_over(files: &Files, reply: &Message) {
    if reply.label == fs::Create::LABEL | REPLY
        && let Ok(made) = fs::Create::results(reply)
    {
        files.put_created(reply.source, made.0);
    }
}
