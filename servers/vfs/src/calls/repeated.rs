//! Calls that come again, because a predecessor of this vfs died before it had answered them.
//!
//! What a predecessor had done of such a call shows in three ways, and nothing is done twice:
//! * its result is noted: the whole call was done, and is answered with it;
//! * something else is noted: how far a transfer had come, where an append begins, until when to wait;
//! * a file system has its change: it is asked for the answer that it gave (`fs::Recall`, with the change's tag).
//!
//! Everything else of a call can be done again: it asks, or sets what it set before.

use crate::{
    calls::{self, Changes, Flow},
    files::vnode::{Description, NodeRef},
    keep::records::Note,
    processes::Process,
    state::Vfs,
};
use abi::{Errno, Message, Word, fs, message::REPLY};
use alloc::rc::Rc;

impl Vfs {
    /// Carries out a call that comes again.
    pub fn repeated_call(&'static self, process: &Rc<Process>, number: u32, words: &[u64; 7]) -> Flow {
        let note = self.base.store.noted(process.caller.endpoint, self.base.store.call_of(process.caller.endpoint));
        if let Some(Note::Result(word)) = note {
            return Flow::Done(Word::from_word(word));
        }
        process.caller.begin_call(note);
        let changes = calls::changes(number);
        if changes == Changes::Nothing {
            return self.new_call(process, number, words);
        }
        let (process, words) = (process.clone(), *words);
        Flow::task(async move {
            if let Some(reply) = self.recall(&process).await {
                if changes == Changes::All {
                    self.take_over(&reply);
                    return Ok(0);
                }
                process.caller.set_recalled(Some(reply));
            }
            let result = match self.new_call(&process, number, &words) {
                Flow::Done(result) => result,
                Flow::Task(task) => task.await,
                // Only calls on pipes are answered later, and they are not among these.
                Flow::Later => Err(Errno::EIO),
            };
            process.caller.set_recalled(None);
            result
        })
    }

    /// The answer that a file system has given to the change of this call, if it has made it.
    async fn recall(&self, process: &Process) -> Option<Message> {
        for service in self.base.peers.file_systems() {
            let reply = self.base.peers.ask_once(&process.caller, service, fs::Recall {}.message()).await;
            if let Ok(reply) = reply {
                return Some(reply);
            }
        }
        None
    }

    /// A node that was made for a call which does not open it: its use ends again.
    fn take_over(&self, reply: &Message) {
        if reply.label != fs::Create::LABEL | REPLY {
            return;
        }
        let mount = self.base.files.mounts.find(|mount| mount.service().slot() == reply.source.slot());
        if let (Some(mount), Ok(made)) = (mount, fs::Create::results(reply)) {
            self.base.peers.tell(mount.service(), fs::Put { node: made.0, count: 1 }.message());
        }
    }

    /// The file that a predecessor has made for this `open`, now that its name has been looked up: it counts as new.
    pub fn recalled_file(&self, process: &Process, directory: &NodeRef, found: Option<&NodeRef>) -> Option<NodeRef> {
        let reply = process.caller.recalled(fs::Create::LABEL)?;
        let made = Description::from(fs::Create::results(&reply).ok()?);
        let mount = found.filter(|node| node.number() == made.node).map_or(directory.mount(), |node| node.mount());
        Some(mount.adopt(made))
    }

    /// Whether a predecessor has emptied the file for this `open`.
    pub fn was_emptied(&self, process: &Process) -> bool {
        process.caller.recalled(fs::Truncate::LABEL).is_some()
    }
}
