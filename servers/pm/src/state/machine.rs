//! The machine as programs see it: its names, and whether it is about to end.

use crate::system::End;
use alloc::vec::Vec;

/// A name of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Of sethostname(2).
    Host = 0,
    /// Of setdomainname(2).
    Domain = 1,
}

/// Names and fate of the machine.
pub struct Machine {
    host: Vec<u8>,
    domain: Vec<u8>,
    /// A random number that tells this boot from others.
    boot: [u64; 2],
    /// How it ends as soon as vfs has written everything back.
    end: Option<End>,
}

impl Machine {
    /// A machine that has just been switched on; `boot` is its random number.
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn new(boot: [u64; 2]) -> Self {
        Machine { host: b"skink".to_vec(), domain: b"(none)".to_vec(), boot, end: None }
    }

    /// The random number of this boot.
    pub fn boot(&self) -> [u64; 2] {
        self.boot
    }

    /// One of its names.
    pub fn name(&self, which: Name) -> &[u8] {
        match which {
            Name::Host => &self.host,
            Name::Domain => &self.domain,
        }
    }

    /// Changes one of its names.
    pub fn set_name(&mut self, which: Name, name: Vec<u8>) {
        match which {
            Name::Host => self.host = name,
            Name::Domain => self.domain = name,
        }
    }

    /// The machine ends so when everything has been written back.
    pub fn begin_end(&mut self, end: End) {
        self.end = Some(end);
    }

    /// How the machine ends, now that everything has been written back; once.
    pub fn take_end(&mut self) -> Option<End> {
        self.end.take()
    }
}
