//! pm's state as a whole, and what all parts need of it: access to the memory of the calling program.
//!
//! Each topic (`process`, `signal`, `time`, `exec`, `sysv`, `machine`) is a folder of `impl Pm` blocks over this. The topics do not
//! import each other; what they share is here and in `state`. pm waits only for vm, vfs, tty and the kernel, all behind [`System`].

use crate::state::index::ThreadIndex;
use crate::state::machine::Machine;
use crate::state::random::Random;
use crate::state::semaphores::Sets;
use crate::state::services::Services;
use crate::state::table::Table;
use crate::state::timers::Timers;
use crate::system::System;
use abi::Errno;
use recover::in_progress::InProgress;

/// The outcome of a Linux call: its result, or `Later` when the thread waits, has ended, or runs with new registers.
pub type Step = server::SyncStep<Result<u64, Errno>>;

/// The process manager.
pub struct Pm<S> {
    /// The kernel and the other servers.
    pub system: S,
    /// Threads and processes.
    pub table: Table,
    /// Timers of programs.
    pub timers: Timers,
    /// For `getrandom` and AT_RANDOM.
    pub random: Random,
    /// Services, for the process list.
    pub services: Services,
    /// Names and fate of the machine.
    pub machine: Machine,
    /// System V semaphores.
    pub semaphores: Sets,
    /// The message in progress.
    pub in_progress: InProgress,
}

impl<S: System> Pm<S> {
    /// pm before its first message.
    pub fn new(system: S, random: Random) -> Self {
        Pm {
            system,
            table: Table::new(),
            timers: Timers::default(),
            random,
            services: Services::default(),
            machine: Machine::default(),
            semaphores: Sets::default(),
            in_progress: InProgress::default(),
        }
    }

    /// Reads bytes at `address` of the program. `EFAULT`.
    pub fn read_bytes<const N: usize>(&mut self, t: ThreadIndex, address: u64) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        self.system.read(self.table[t].endpoint, address, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads words at `address` of the program. `EFAULT`.
    pub fn read_words<const N: usize>(&mut self, t: ThreadIndex, address: u64) -> Result<[u64; N], Errno> {
        let mut words = [0; N];
        let mut bytes = [[0; 8]; N];
        self.system.read(self.table[t].endpoint, address, bytes.as_flattened_mut())?;
        for (word, bytes) in words.iter_mut().zip(bytes) {
            *word = u64::from_le_bytes(bytes);
        }
        Ok(words)
    }

    /// Reads a word at `address` of the program. `EFAULT`.
    pub fn read_word(&mut self, t: ThreadIndex, address: u64) -> Result<u64, Errno> {
        self.read_words::<1>(t, address).map(|[word]| word)
    }

    /// Writes bytes to `address` of the program. `EFAULT`.
    pub fn write_bytes(&mut self, t: ThreadIndex, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.system.write(self.table[t].endpoint, address, bytes)
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
