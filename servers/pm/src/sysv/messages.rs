//! The calls for System V message queues: `msgget`, `msgsnd`, `msgrcv`, `msgctl`. The queues themselves are in `state::messages`.
//!
//! The message of a sender that waits stays in the sender's memory until there is room, so waiting costs pm nothing.

use crate::pm::{Pm, Step};
use crate::state::index::ThreadIndex;
use crate::state::ipc::{ALTER, READ};
use crate::state::messages::{MESSAGE_BYTES, QUEUE_BYTES, QUEUES, Queue, Wanted};
use crate::state::thread::{Doing, MessageReceive, MessageSend};
use crate::system::System;
use crate::sysv::IPC_64;
use abi::{Capability, Errno};
use sys::fallible;

type Result<T> = core::result::Result<T, Errno>;

/// Flags of msgsnd and msgrcv.
const IPC_NOWAIT: u64 = 0o4000;
const MSG_NOERROR: u64 = 0o10000;
const MSG_EXCEPT: u64 = 0o20000;
const MSG_COPY: u64 = 0o40000;

/// Commands of msgctl(2).
mod command {
    pub use crate::sysv::command::*;
    pub const MSG_STAT: u64 = 11;
    pub const MSG_INFO: u64 = 12;
    pub const MSG_STAT_ANY: u64 = 13;
}

/// Words of `struct msqid_ds`.
const STATUS_WORDS: usize = 15;
/// Bytes of a message's type, which precedes the text.
const KIND_BYTES: u64 = 8;

impl<S: System> Pm<S> {
    /// `msgget(key, flags)`: returns the identifier.
    pub fn msgget(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let (key, flags, now_s) = (a[0] as u32, a[1], self.programs.now_s());
        let who = self.programs.credentials_of(t);
        match self.messages.all.find(key, flags, who, |_| Ok(()))? {
            Some(id) => Ok(id.into()),
            None => self.messages.make(key, flags as u32, who, now_s).map(u64::from),
        }
    }

    /// `msgsnd(id, message, bytes, flags)`.
    pub fn msgsnd(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Step {
        match self.begin_send(t, a) {
            Ok(None) => Step::Done(Ok(0)),
            Ok(Some(send)) => self.wait_for_messages(t, send.id, Doing::MessageSending(send)),
            Err(error) => error.into(),
        }
    }

    /// Sends a message; `Some`: it has to wait.
    fn begin_send(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<Option<MessageSend>> {
        let (id, address, flags) = (a[0] as u32, a[1], a[3]);
        let bytes = usize::try_from(a[2]).ok().filter(|bytes| *bytes <= MESSAGE_BYTES).ok_or(Errno::EINVAL)?;
        let [kind] = self.programs.read_words(t, address)?;
        if (kind as i64) < 1 {
            return Err(Errno::EINVAL);
        }
        if !self.messages.all.get(id)?.head.allows(self.programs.credentials_of(t), ALTER) {
            return Err(Errno::EACCES);
        }
        let send = MessageSend { id, address, bytes };
        match self.try_send(t, send)? {
            Some(kind) => {
                self.serve_waiting(id, Some(kind));
                Ok(None)
            }
            None if flags & IPC_NOWAIT != 0 => Err(Errno::EAGAIN),
            None => Ok(Some(send)),
        }
    }

    /// Puts a message into its queue. Returns its type; `None`: there is no room.
    fn try_send(&mut self, t: ThreadIndex, send: MessageSend) -> Result<Option<i64>> {
        if !self.messages.all.get(send.id)?.has_room(send.bytes) {
            return Ok(None);
        }
        let [kind] = self.programs.read_words(t, send.address)?;
        let mut text = fallible::filled(0, send.bytes)?;
        let endpoint = self.programs.table[t].endpoint();
        self.programs.system.read(endpoint, send.address.wrapping_add(KIND_BYTES), &mut text)?;
        let sender = (self.programs.pid_of(t), self.programs.credentials_of(t).account());
        let now_s = self.programs.now_s();
        // Another thread may have written into a message that waits.
        let kind = (kind as i64).max(1);
        self.messages.add(send.id, kind, text, sender, now_s)?;
        // Others are served before it is answered: a pm that dies then must not send it twice.
        self.programs.note_done(t);
        Ok(Some(kind))
    }

    /// `msgrcv(id, message, bytes, type, flags)`: returns the length of the text.
    pub fn msgrcv(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Step {
        let (id, address, flags) = (a[0] as u32, a[1], a[4]);
        let Some(bytes) = usize::try_from(a[2]).ok().filter(|bytes| *bytes <= i64::MAX as usize) else {
            return Errno::EINVAL.into();
        };
        if flags & MSG_COPY != 0 {
            return self.copy_message(t, a, bytes).into();
        }
        let wanted = Wanted::new(a[3] as i64, flags & MSG_EXCEPT != 0);
        let receive = MessageReceive { id, address, bytes, wanted, truncates: flags & MSG_NOERROR != 0 };
        match self.check_receive(t, id).and_then(|()| self.try_receive(t, receive)) {
            Ok(Some(bytes)) => {
                self.serve_waiting(id, None);
                Step::Done(Ok(bytes))
            }
            Ok(None) if flags & IPC_NOWAIT != 0 => Errno::ENOMSG.into(),
            Ok(None) => self.wait_for_messages(t, id, Doing::MessageReceiving(receive)),
            Err(error) => error.into(),
        }
    }

    /// `EINVAL`, `EACCES`.
    fn check_receive(&mut self, t: ThreadIndex, id: u32) -> Result<()> {
        let may = self.messages.all.get(id)?.head.allows(self.programs.credentials_of(t), READ);
        if may { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Takes the message that is wanted. Returns the length of its text; `None`: there is no such message.
    fn try_receive(&mut self, t: ThreadIndex, receive: MessageReceive) -> Result<Option<u64>> {
        let MessageReceive { id, bytes, wanted, truncates, .. } = receive;
        let queue = self.messages.all.get(id)?;
        let Some(position) = queue.find(wanted) else { return Ok(None) };
        if !truncates && queue.letter(position).is_some_and(|letter| letter.text.len() > bytes) {
            return Err(Errno::E2BIG);
        }
        let stored = self.store_message(t, id, position, receive.address, bytes)?;
        let (pid, now_s) = (self.programs.pid_of(t), self.programs.now_s());
        self.messages.take(id, position, pid, now_s)?;
        self.programs.note_result(t, Ok(stored));
        Ok(Some(stored))
    }

    /// Copies type and at most `bytes` bytes of a message to the program. Returns the length of the text copied. `EFAULT`: the message stays.
    fn store_message(&mut self, t: ThreadIndex, id: u32, position: usize, address: u64, bytes: usize) -> Result<u64> {
        let letter = self.messages.all.get(id)?.letter(position).ok_or(Errno::EINVAL)?;
        let text = &letter.text[..letter.text.len().min(bytes)];
        self.programs.write_words(t, address, [letter.kind as u64])?;
        self.programs.write_bytes(t, address.wrapping_add(KIND_BYTES), text)?;
        Ok(text.len() as u64)
    }

    /// msgrcv with MSG_COPY: copies the message at a position, which stays.
    fn copy_message(&mut self, t: ThreadIndex, a: &[u64; 7], bytes: usize) -> Result<u64> {
        let (id, position, flags) = (a[0] as u32, a[3] as usize, a[4]);
        if flags & IPC_NOWAIT == 0 || flags & MSG_EXCEPT != 0 {
            return Err(Errno::EINVAL);
        }
        self.check_receive(t, id)?;
        let letter = self.messages.all.get(id)?.letter(position).ok_or(Errno::ENOMSG)?;
        if flags & MSG_NOERROR == 0 && letter.text.len() > bytes {
            return Err(Errno::E2BIG);
        }
        self.store_message(t, id, position, a[1], bytes)
    }

    fn wait_for_messages(&mut self, t: ThreadIndex, id: u32, doing: Doing) -> Step {
        if self.programs.table.has_work(t) {
            return Errno::EINTR.into();
        }
        let endpoint = self.programs.table[t].endpoint();
        let queued = self.messages.all.get(id).and_then(|queue| match doing {
            Doing::MessageSending(_) => queue.senders.add(t, endpoint),
            _ => queue.receivers.add(t, endpoint),
        });
        if let Err(error) = queued {
            return error.into();
        }
        self.programs.table[t].doing = doing;
        Step::Later
    }

    /// Ends the wait of a thread for a message or room.
    pub fn end_message_wait(&mut self, t: ThreadIndex, result: Result<u64>) {
        let id = match &self.programs.table[t].doing {
            Doing::MessageSending(send) => send.id,
            Doing::MessageReceiving(receive) => receive.id,
            _ => return,
        };
        if let Ok(queue) = self.messages.all.get(id) {
            queue.senders.remove(t);
            queue.receivers.remove(t);
        }
        self.finish(t, result);
    }

    /// Serves those who wait after a message has come (of type `kind`) or room has been made: what a sender puts in may satisfy a receiver,
    /// which makes room for the next sender.
    fn serve_waiting(&mut self, id: u32, mut kind: Option<i64>) {
        loop {
            if let Some(kind) = kind {
                self.serve_receiver(id, |wanted| wanted.accepts(kind));
            }
            kind = self.serve_sender(id);
            if kind.is_none() {
                return;
            }
        }
    }

    /// Serves those who wait whom pm's predecessor did not: it may have died with a message in its queue.
    pub fn serve_waiting_again(&mut self) {
        for p in self.programs.all_processes() {
            for t in self.programs.threads_of(p) {
                let id = match self.programs.table[t].doing {
                    Doing::MessageReceiving(receive) => receive.id,
                    Doing::MessageSending(send) => send.id,
                    _ => continue,
                };
                while self.serve_receiver(id, |_| true) {}
                self.serve_waiting(id, None);
            }
        }
    }

    /// The receiver that has waited longest, of those who may want a message that has come and do, takes it. Returns whether there is one.
    fn serve_receiver(&mut self, id: u32, may_want: impl Fn(Wanted) -> bool) -> bool {
        let mut position = 0;
        while let Some((t, endpoint)) = self.messages.all.get(id).ok().and_then(|queue| queue.receivers.get(position)) {
            let result = match self.programs.table[t].doing {
                Doing::MessageReceiving(receive)
                    if self.programs.table.find(endpoint) == Some(t)
                        && receive.id == id
                        && may_want(receive.wanted) =>
                {
                    self.try_receive(t, receive)
                }
                _ => Ok(None),
            };
            match result {
                Ok(None) => position += 1,
                Ok(Some(bytes)) => {
                    self.end_message_wait(t, Ok(bytes));
                    return true;
                }
                // The message is for the next one.
                Err(error) => self.end_message_wait(t, Err(error)),
            }
        }
        false
    }

    /// Lets the sender that has waited longest, of those whose message fits, send it. Returns its type; `None`: none fits.
    fn serve_sender(&mut self, id: u32) -> Option<i64> {
        let mut position = 0;
        while let Some((t, endpoint)) = self.messages.all.get(id).ok().and_then(|queue| queue.senders.get(position)) {
            let result = match self.programs.table[t].doing {
                Doing::MessageSending(send) if self.programs.table.find(endpoint) == Some(t) && send.id == id => {
                    self.try_send(t, send)
                }
                _ => Ok(None),
            };
            match result {
                Ok(None) => position += 1,
                Ok(kind) => {
                    self.end_message_wait(t, Ok(0));
                    return kind;
                }
                Err(error) => self.end_message_wait(t, Err(error)),
            }
        }
        None
    }

    /// `msgctl(id, command, buffer)`.
    pub fn msgctl(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let (id, command, address) = (a[0] as u32, a[1] & 0xffff_ffff & !IPC_64, a[2]);
        match command {
            command::RMID => self.remove_queue(t, id),
            command::SET => self.set_queue(t, id, address),
            command::STAT => {
                self.check_receive(t, id)?;
                self.queue_status(t, id, address).map(|()| 0)
            }
            command::MSG_STAT | command::MSG_STAT_ANY => {
                let id = self.messages.all.at(id as usize)?.head.id();
                if command == command::MSG_STAT {
                    self.check_receive(t, id)?;
                }
                self.queue_status(t, id, address).map(|()| id.into())
            }
            command::IPC_INFO | command::MSG_INFO => self.queue_info(t, command, address),
            _ => Err(Errno::EINVAL),
        }
    }

    fn remove_queue(&mut self, t: ThreadIndex, id: u32) -> Result<u64> {
        let removed = self.messages.remove(id, self.programs.credentials_of(t))?;
        self.programs.note_done(t);
        for (waiter, endpoint) in removed.senders.iter().chain(removed.receivers.iter()) {
            let waits = match &self.programs.table[waiter].doing {
                Doing::MessageSending(send) => send.id == id,
                Doing::MessageReceiving(receive) => receive.id == id,
                _ => false,
            };
            if waits && self.programs.table.find(endpoint) == Some(waiter) {
                self.end_message_wait(waiter, Err(Errno::EIDRM));
            }
        }
        Ok(0)
    }

    /// IPC_SET: owner, rights, and the limit of bytes, which CAP_SYS_RESOURCE raises beyond the usual.
    fn set_queue(&mut self, t: ThreadIndex, id: u32, address: u64) -> Result<u64> {
        const LIMIT_WORD: u64 = 11;
        let (owner, mode) = self.programs.read_owner(t, address)?;
        let [limit] = self.programs.read_words(t, address.wrapping_add(8 * LIMIT_WORD))?;
        let now_s = self.programs.now_s();
        let who = self.programs.credentials_of(t);
        let queue = self.messages.all.get(id)?;
        if limit > QUEUE_BYTES as u64 && !who.has(Capability::SysResource) {
            return Err(Errno::EPERM);
        }
        queue.head.change(who, owner, mode, now_s)?;
        queue.limit = limit as usize;
        self.serve_waiting(id, None);
        Ok(0)
    }

    fn queue_status(&mut self, t: ThreadIndex, id: u32, address: u64) -> Result<()> {
        let words = status(self.messages.all.get(id)?);
        self.programs.write_words(t, address, words)
    }

    /// `struct msginfo`: the limits, and for MSG_INFO how many queues, messages and bytes there are. Returns the highest index in use.
    fn queue_info(&mut self, t: ThreadIndex, command: u64, address: u64) -> Result<u64> {
        const SEGMENT_BYTES: i32 = 16;
        const SEGMENTS: i32 = 0xffff;
        let of_queue = QUEUE_BYTES as i32;
        let (pool, map, headers) = match command {
            command::MSG_INFO => {
                let (queues, letters, bytes) = self.messages.used();
                (queues as i32, letters as i32, bytes as i32)
            }
            _ => (QUEUES as i32 * (of_queue / 1024), of_queue, of_queue),
        };
        // msgpool, msgmap, msgmax, msgmnb, msgmni, msgssz, msgtql, msgseg
        let info = [pool, map, MESSAGE_BYTES as i32, of_queue, QUEUES as i32, SEGMENT_BYTES, headers, SEGMENTS];
        self.programs.write_bytes(t, address, info.map(i32::to_le_bytes).as_flattened())?;
        Ok(self.messages.all.highest_index() as u64)
    }
}

/// A `struct msqid_ds`.
fn status(queue: &Queue) -> [u64; STATUS_WORDS] {
    let mut words = [0; STATUS_WORDS];
    let (letters, bytes) = queue.used();
    words[..3].copy_from_slice(&queue.head.words());
    let times = [queue.sent.1, queue.received.1, queue.head.changed_s];
    words[6..9].copy_from_slice(&times);
    words[9..12].copy_from_slice(&[bytes as u64, letters as u64, queue.limit as u64]);
    words[12] = queue.sent.0 as u64 | (queue.received.0 as u64) << 32;
    words
}
