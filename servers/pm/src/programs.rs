//! Threads and processes with the kernel and the servers that act on them, and access to the memory of the calling program.
//!
//! Most calls need no more, and cannot reach timers, semaphores and the other parts of [`Pm`](crate::pm::Pm): they are methods of this, in
//! the folders of the topics. pm waits only for vm, vfs, tty and the kernel, all behind [`System`].

use crate::state::index::ThreadIndex;
use crate::state::load::Loads;
use crate::state::seccomp::Filters;
use crate::state::table::Table;
use crate::state::thread::Delivery;
use crate::system::System;
use abi::{Endpoint, Errno, info::state};

/// See the head of the file.
pub struct Programs<S> {
    /// The kernel and the other servers.
    pub system: S,
    /// Threads and processes.
    pub table: Table,
    /// Load averages.
    pub load: Loads,
    /// The signal that a thread is being given, by a handler or as the result of its call: one at a time.
    pub delivery: Option<Delivery>,
    /// Filters of seccomp.
    pub filters: Filters,
    /// The present incarnation of m3ipc, which is told when an enrolled process loses a thread.
    pub m3ipc: Option<Endpoint>,
}

impl<S: System> Programs<S> {
    /// From here on the call of this thread counts as done: a successor of pm that finds it again returns 0, and does nothing twice.
    pub fn note_done(&mut self, t: ThreadIndex) {
        self.note_result(t, Ok(0));
    }

    /// The same, of a call that returns something else.
    pub fn note_result(&mut self, t: ThreadIndex, result: Result<u64, Errno>) {
        self.table[t].outcome = Some(result);
    }

    /// No programs yet.
    pub fn new(system: S) -> Self {
        Programs {
            system,
            table: Table::new(),
            load: Loads::default(),
            delivery: None,
            filters: Filters::default(),
            m3ipc: None,
        }
    }

    /// Reads bytes at `address` of the program. `EFAULT`.
    pub fn read_bytes<const N: usize>(&mut self, t: ThreadIndex, address: u64) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        self.system.read(self.table[t].endpoint(), address, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads words at `address` of the program. `EFAULT`.
    pub fn read_words<const N: usize>(&mut self, t: ThreadIndex, address: u64) -> Result<[u64; N], Errno> {
        let mut words = [0; N];
        let mut bytes = [[0; 8]; N];
        self.system.read(self.table[t].endpoint(), address, bytes.as_flattened_mut())?;
        for (word, bytes) in words.iter_mut().zip(bytes) {
            *word = u64::from_le_bytes(bytes);
        }
        Ok(words)
    }

    /// Reads a word at `address` of the program. `EFAULT`.
    pub fn read_word(&mut self, t: ThreadIndex, address: u64) -> Result<u64, Errno> {
        self.read_words::<1>(t, address).map(|[word]| word)
    }

    /// Tells m3ipc that a thread has ended, that its call was ended, or that its process has other credentials.
    pub fn tell_m3ipc(&mut self) {
        if let Some(m3ipc) = self.m3ipc {
            self.system.notify(Endpoint::current(m3ipc.slot()));
        }
    }

    /// Writes what was there before a call that sets something, if the program wants to know. To be called before it is set: a pm that dies
    /// over the writing has a successor that does all of the call. An error is the result of the call, which sets it all the same.
    #[inline]
    pub fn write_old(&mut self, t: ThreadIndex, address: u64, old: &[u8]) -> Result<(), Errno> {
        if address == 0 { Ok(()) } else { self.write_bytes(t, address, old) }
    }

    /// Samples the load averages when it is time.
    pub fn sample_load(&mut self, now_ns: u64) {
        if self.load.is_due(now_ns) {
            let endpoints = ThreadIndex::all().map(|t| (t, self.table[t].endpoint()));
            let threads = endpoints.filter(|(_, endpoint)| *endpoint != Endpoint::NONE);
            let running =
                threads.filter(|(_, endpoint)| self.system.thread_use(*endpoint).state == state::READY).count();
            self.load.sample(now_ns, running as u64);
        }
    }

    /// Writes bytes to `address` of the program. `EFAULT`.
    pub fn write_bytes(&mut self, t: ThreadIndex, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.system.write(self.table[t].endpoint(), address, bytes)
    }

    /// Writes words to `address` of the program. `EFAULT`.
    pub fn write_words<const N: usize>(&mut self, t: ThreadIndex, address: u64, words: [u64; N]) -> Result<(), Errno> {
        let bytes = words.map(u64::to_le_bytes);
        self.write_bytes(t, address, bytes.as_flattened())
    }

    /// Writes 32 bits to `address` of the program. `EFAULT`.
    pub fn write_u32(&mut self, t: ThreadIndex, address: u64, value: u32) -> Result<(), Errno> {
        self.write_bytes(t, address, &value.to_le_bytes())
    }
}
