//! pm and the programs under it, driven call by call.

use super::fake::{Fake, FakeThread, MEMORY, Told};
use crate::pm::Pm;
use crate::state::random::Random;
use abi::endpoint::slot;
use abi::linux::{WITH_WORD, nr};
use abi::{Endpoint, Errno, Message, kernel, pm, vfs};
use std::vec::Vec;

type Result<T> = core::result::Result<T, Errno>;

/// pm and the programs under it.
pub struct World {
    pub pm: Pm<Fake>,
    pub init: Endpoint,
}

impl World {
    /// A system whose first program runs.
    pub fn new() -> World {
        let mut pm = Pm::new(Fake::default(), Random::new([1; 32]));
        let boot = Message { source: Endpoint::RS, ..pm::Boot {}.message() };
        assert_eq!(pm.handle(&boot).done().unwrap().result(), Ok(0));
        let init = Endpoint(*pm.programs.system.threads.keys().next().unwrap());
        let mut world = World { pm, init };
        world.exec_event(init, b"/sbin/init", 0);
        assert!(world.pm.programs.system.thread(init).runs);
        world
    }

    /// vfs has loaded what `thread` wants to exec.
    pub fn exec_event(&mut self, thread: Endpoint, text: &[u8], flags: u64) {
        self.pm.programs.system.exec_text = text.to_vec();
        self.file_event(vfs::EVENT_EXEC, thread, [5, 0, flags, 0]);
    }

    pub fn file_event(&mut self, kind: u64, process: Endpoint, values: [u64; 4]) {
        self.pm.programs.system.file_events.push_back((kind, process, values));
        self.pm.handle_notification(Endpoint::current(slot::VFS));
    }

    pub fn terminal_event(&mut self, signal: u64, group: u64) {
        self.pm.programs.system.terminal_events.push_back((signal, group));
        self.pm.handle_notification(Endpoint::current(slot::TTY));
    }

    /// Makes a Linux call. → its result if it came at once, by message or by a later reply; `None`: the caller waits, is gone, or runs on.
    pub fn call(&mut self, thread: Endpoint, number: u32, arguments: &[u64]) -> Option<Result<u64>> {
        let entry = self.pm.programs.system.thread(thread);
        entry.waits = true;
        entry.registers.linux_call = number as u64;
        let mut message = Message { source: thread, ..Message::new(number) };
        message.words[..arguments.len()].copy_from_slice(arguments);
        // As the kernel fetches it (`linux::FETCHED`).
        let mut word = [0; 8];
        if number == nr::RT_SIGPROCMASK
            && arguments[3] == 8
            && self.pm.programs.system.get(thread, arguments[1], &mut word).is_ok()
        {
            (message.label, message.words[5]) = (number | WITH_WORD, u64::from_le_bytes(word));
        }
        let before = self.pm.programs.system.replies.len();
        let kept = self.pm.programs.system.kept.iter().find(|kept| (kept.0, kept.1) == (thread, number)).copied();
        if let Some(reply) = self.pm.handle(&message).done() {
            self.pm.programs.system.thread(thread).waits = false;
            if let Some((.., answer)) = kept {
                assert_eq!(reply.result(), Ok(answer), "the kernel has another answer to call {number}");
            }
            return Some(reply.result());
        }
        let replies = &mut self.pm.programs.system.replies;
        let late = replies[before..].iter().position(|(to, _)| *to == thread)?;
        Some(replies.remove(before + late).1)
    }

    /// How many answers the kernel has been left for a thread.
    pub fn kept(&self, thread: Endpoint) -> usize {
        self.pm.programs.system.kept.iter().filter(|kept| kept.0 == thread).count()
    }

    /// The answer that `thread` got since it last waited, taken out of the record.
    pub fn answer(&mut self, thread: Endpoint) -> Option<Result<u64>> {
        let at = self.pm.programs.system.replies.iter().position(|(to, _)| *to == thread)?;
        Some(self.pm.programs.system.replies.remove(at).1)
    }

    /// Forks. → pid and endpoint of the child.
    pub fn fork(&mut self, parent: Endpoint) -> (u64, Endpoint) {
        let pid = self.call(parent, abi::linux::nr::FORK, &[]).unwrap().unwrap();
        (pid, self.newest())
    }

    /// A child of the first process with these ids.
    pub fn user(&mut self, user: u64, group: u64) -> (u64, Endpoint) {
        let (pid, child) = self.fork(self.init);
        assert_eq!(self.call(child, abi::linux::nr::SETGID, &[group]), Some(Ok(0)));
        assert_eq!(self.call(child, abi::linux::nr::SETUID, &[user]), Some(Ok(0)));
        (pid, child)
    }

    /// The thread that was made last.
    pub fn newest(&self) -> Endpoint {
        self.pm.programs.system.newest()
    }

    /// What pm told the kernel and the other servers since this was asked last.
    pub fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.pm.programs.system.told)
    }

    /// A thread as the kernel has it.
    pub fn thread(&mut self, thread: Endpoint) -> &mut FakeThread {
        self.pm.programs.system.thread(thread)
    }

    pub fn is_there(&self, thread: Endpoint) -> bool {
        self.pm.programs.system.threads.contains_key(&thread.0)
    }

    /// The kernel lets an interrupted thread report itself. `call`: the Linux call that has just ended with `rax`.
    pub fn report_interrupted(&mut self, thread: Endpoint, ended: Option<(u32, Result<u64>)>) -> Option<Result<u64>> {
        let entry = self.pm.programs.system.thread(thread);
        assert!(std::mem::take(&mut entry.interrupted), "nobody has interrupted {thread:?}");
        entry.waits = true;
        entry.blocked_on = Endpoint::NONE;
        if let Some((call, result)) = ended {
            entry.registers.linux_call = call as u64;
            entry.registers.rax = abi::Word::to_word(result);
        }
        let message = Message { source: thread, ..kernel::Interrupted {}.message() };
        self.pm.handle(&message).done().map(|reply| reply.result())
    }

    pub fn write(&mut self, thread: Endpoint, address: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.pm.programs.system.put(thread, address, &bytes).unwrap();
    }

    pub fn write_bytes(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) {
        self.pm.programs.system.put(thread, address, bytes).unwrap();
    }

    pub fn read_bytes(&mut self, thread: Endpoint, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = std::vec![0; length];
        self.pm.programs.system.get(thread, address, &mut bytes).unwrap();
        bytes
    }

    pub fn words<const N: usize>(&mut self, thread: Endpoint, address: u64) -> [u64; N] {
        core::array::from_fn(|n| self.read(thread, address + 8 * n as u64))
    }

    pub fn read(&mut self, thread: Endpoint, address: u64) -> u64 {
        let mut bytes = [0; 8];
        self.pm.programs.system.get(thread, address, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }

    /// Sets a handler with these flags (SA_RESTORER is added).
    pub fn handle_signal(&mut self, thread: Endpoint, signal: u64, flags: u64) {
        self.write(thread, MEMORY.start, &[0xaaaa, flags | crate::state::signal::action::RESTORER, 0xbbbb, 0]);
        let set = self.call(thread, abi::linux::nr::RT_SIGACTION, &[signal, MEMORY.start, 0, 8]);
        assert_eq!(set, Some(Ok(0)));
        self.pm.programs.system.thread(thread).registers.rsp = MEMORY.end - 64;
    }

    pub fn set_time(&mut self, now_ns: u64) {
        self.pm.programs.system.now_ns = now_ns;
        if self.pm.programs.system.alarm.is_some_and(|alarm| alarm <= now_ns) {
            self.pm.programs.system.alarm = None;
            self.pm.handle_notification(Endpoint::CLOCK);
        }
    }
}
