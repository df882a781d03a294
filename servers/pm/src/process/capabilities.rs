//! capget(2), capset(2), and the options of prctl(2) about capabilities.

use crate::programs::Programs;
use crate::state::capabilities::Capabilities;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::system::System;
use abi::{CapabilitySet as Set, Errno};

type Result<T> = core::result::Result<T, Errno>;

/// Versions of `struct __user_cap_header_struct`, the preferred one first, and how many 32-bit halves their sets have.
const VERSIONS: [(u32, usize); 3] = [(0x2008_0522, 2), (0x2007_1026, 2), (0x1998_0330, 1)];

/// What PR_CAP_AMBIENT does.
mod ambient {
    pub const IS_SET: u64 = 1;
    pub const RAISE: u64 = 2;
    pub const LOWER: u64 = 3;
    pub const CLEAR_ALL: u64 = 4;
}

impl<S: System> Programs<S> {
    /// `capget(header, data)`. Without data it only tells the version.
    pub fn capget(&mut self, t: ThreadIndex, header: u64, data: u64) -> Result<u64> {
        let (target, halves) = match self.capability_target(t, header) {
            Err(Errno::EINVAL) if data == 0 => return Ok(0),
            found => found?,
        };
        if data != 0 {
            let own = &self.table[target].credentials.capabilities;
            let sets = [own.effective(), own.permitted(), own.inheritable()].map(Set::bits);
            // Low words first.
            let words = [0, 32].map(|shift| sets.map(|set| ((set >> shift) as u32).to_le_bytes()));
            self.write_bytes(t, data, words[..halves].as_flattened().as_flattened())?;
        }
        Ok(0)
    }

    /// `capset(header, data)`. `EPERM`: more than it may have, or another process.
    pub fn capset(&mut self, t: ThreadIndex, header: u64, data: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        let (target, halves) = self.capability_target(t, header)?;
        if target != p {
            return Err(Errno::EPERM);
        }
        let mut words = [[[0; 4]; 3]; 2];
        self.system.read(self.table[t].endpoint(), data, words[..halves].as_flattened_mut().as_flattened_mut())?;
        let [low, high] = words.map(|sets| sets.map(|word| u64::from(u32::from_le_bytes(word))));
        let [effective, permitted, inheritable] =
            core::array::from_fn(|which| Set::from_bits(low[which] | high[which] << 32));
        self.change_capabilities(p, |own| own.set(effective, permitted, inheritable))
    }

    /// `prctl(PR_CAPBSET_READ)`.
    pub fn has_bounding(&self, p: ProcessIndex, number: u64) -> Result<u64> {
        let which = Set::numbered(number).ok_or(Errno::EINVAL)?;
        Ok(self.table[p].credentials.capabilities.bounding().contains(which).into())
    }

    /// `prctl(PR_CAP_AMBIENT)`.
    pub fn ambient(&mut self, p: ProcessIndex, a: &[u64; 7]) -> Result<u64> {
        let [_, what, number, rest @ ..] = *a;
        if rest[..2] != [0; 2] {
            return Err(Errno::EINVAL);
        }
        if what == ambient::CLEAR_ALL && number == 0 {
            return self.change_capabilities(p, |own| {
                own.lower_ambient(Set::ALL);
                Ok(())
            });
        }
        let which = Set::numbered(number).filter(|_| what != ambient::CLEAR_ALL).ok_or(Errno::EINVAL)?;
        match what {
            ambient::IS_SET => Ok(self.table[p].credentials.capabilities.ambient().contains(which).into()),
            ambient::RAISE => self.change_capabilities(p, |own| own.raise_ambient(which)),
            ambient::LOWER => self.change_capabilities(p, |own| {
                own.lower_ambient(which);
                Ok(())
            }),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Changes the capabilities of a process, at once or not at all, and tells those who check them.
    pub fn change_capabilities(
        &mut self,
        p: ProcessIndex,
        change: impl FnOnce(&mut Capabilities) -> Result<()>,
    ) -> Result<u64> {
        let mut new = self.table[p].credentials.capabilities;
        change(&mut new)?;
        self.table[p].credentials.capabilities = new;
        self.tell_credentials(p);
        Ok(0)
    }

    /// The process that a header means, and how many 32-bit halves its version has. `EINVAL`: an unknown version; the header then has the
    /// one that is known.
    fn capability_target(&mut self, t: ThreadIndex, header: u64) -> Result<(ProcessIndex, usize)> {
        let word = self.read_word(t, header)?;
        let Some(halves) = VERSIONS.iter().find(|known| known.0 == word as u32).map(|known| known.1) else {
            self.write_u32(t, header, VERSIONS[0].0)?;
            return Err(Errno::EINVAL);
        };
        let pid = self.table.pid_meant(self.table.process_of(t), (word >> 32) as i32);
        if pid < 0 {
            return Err(Errno::EINVAL);
        }
        Ok((self.table.process_or_self(self.table.process_of(t), pid)?, halves))
    }
}
