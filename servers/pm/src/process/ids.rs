//! The calls about user and group ids. Every change is told to vfs, which checks permissions.

use crate::programs::Programs;
use crate::state::credentials::{Credentials, Ids};
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::system::System;
use abi::{Errno, limits};
use alloc::rc::Rc;
use sys::fallible;

type Result<T> = core::result::Result<T, Errno>;

/// Versions of `struct __user_cap_header_struct`, the preferred one first, and how many 32-bit halves their sets have.
const CAPABILITY_VERSIONS: [(u32, usize); 3] = [(0x2008_0522, 2), (0x2007_1026, 2), (0x1998_0330, 1)];
/// All capabilities Linux 6.1 knows, as low and high word.
const ALL_CAPABILITIES: [u32; 2] = [u32::MAX, 0x1ff];

impl<S: System> Programs<S> {
    /// Changes ids by `change`, which is told whether the caller is root.
    pub fn change_ids(
        &mut self,
        p: ProcessIndex,
        change: impl FnOnce(&mut Credentials, bool) -> Result<()>,
    ) -> Result<u64> {
        let mut credentials = self.table[p].credentials.clone();
        let root = credentials.is_root();
        change(&mut credentials, root)?;
        let before = self.table[p].credentials.effective_word();
        if credentials.effective_word() != before {
            // What it has in memory is its former user's.
            self.table[p].control.dumpable = false;
        }
        self.table.set_credentials(p, credentials)?;
        self.tell_vfs_ids(p);
        self.tell_vm_limits(p);
        Ok(0)
    }

    /// Tells vfs the ids of a process, for each of its threads.
    pub fn tell_vfs_ids(&mut self, p: ProcessIndex) {
        let mut next = self.table[p].main();
        while let Some(t) = next {
            next = self.table[t].next();
            let credentials = &self.table[p].credentials;
            let (effective, real) = (credentials.file_word(), credentials.real_word());
            self.system.vfs_set_ids(self.table[t].endpoint(), effective, real, credentials.groups());
        }
    }

    /// `getresuid`, `getresgid`.
    pub fn get_three_ids(&mut self, t: ThreadIndex, ids: Ids, a: &[u64; 7]) -> Result<u64> {
        for (address, id) in a.iter().zip([ids.real, ids.effective, ids.saved]) {
            self.write_u32(t, *address, id)?;
        }
        Ok(0)
    }

    /// `setfsuid`, `setfsgid`: returns the old id of file accesses, whether the new one is allowed or not.
    pub fn set_file_id(&mut self, p: ProcessIndex, id: u32, which: impl Fn(&mut Credentials) -> &mut Ids) -> u64 {
        let credentials = &mut self.table[p].credentials;
        let root = credentials.is_root();
        let ids = which(credentials);
        let old = ids.file;
        if ids.set_file(id, root) {
            self.tell_vfs_ids(p);
        }
        u64::from(old)
    }

    /// `getgroups(count, list)`.
    pub fn getgroups(&mut self, t: ThreadIndex, count: u64, address: u64) -> Result<u64> {
        let groups = self.table[self.table.process_of(t)].credentials.groups();
        let have = groups.len() as u64;
        if count == 0 {
            return Ok(have);
        }
        if (count as i32) < 0 || count < have {
            return Err(Errno::EINVAL);
        }
        let bytes = fallible::collect(groups.iter().map(|group| group.to_le_bytes()))?;
        self.write_bytes(t, address, bytes.as_flattened())?;
        Ok(have)
    }

    /// `setgroups(count, list)`: root only.
    pub fn setgroups(&mut self, t: ThreadIndex, count: u64, address: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        if !self.table[p].credentials.is_root() {
            return Err(Errno::EPERM);
        }
        if count > limits::GROUPS as u64 {
            return Err(Errno::EINVAL);
        }
        let mut bytes = fallible::filled([0; 4], count as usize)?;
        self.system.read(self.table[t].endpoint(), address, bytes.as_flattened_mut())?;
        let mut groups = fallible::collect(bytes.into_iter().map(u32::from_le_bytes))?;
        // getgroups shows them in this order.
        groups.sort_unstable();
        self.table[p].credentials.groups = Some(Rc::new(groups));
        self.tell_vfs_ids(p);
        Ok(0)
    }

    /// `capget(header, data)`: root has all capabilities, nobody else any. Without data it only tells the version.
    pub fn capget(&mut self, t: ThreadIndex, header: u64, data: u64) -> Result<u64> {
        let (target, halves) = match self.capability_target(t, header) {
            Err(Errno::EINVAL) if data == 0 => return Ok(0),
            found => found?,
        };
        if data != 0 {
            let permitted = self.capabilities(target);
            // Effective, permitted, inheritable; low words first.
            let words = [0, 1].map(|half| [permitted[half], permitted[half], 0].map(u32::to_le_bytes));
            self.write_bytes(t, data, words[..halves].as_flattened().as_flattened())?;
        }
        Ok(0)
    }

    /// `capset(header, data)`: what a process may have is accepted without effect, since pm knows only root and others. `EPERM`: more.
    pub fn capset(&mut self, t: ThreadIndex, header: u64, data: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        let (target, halves) = self.capability_target(t, header)?;
        if target != p {
            return Err(Errno::EPERM);
        }
        let mut wanted = [[[0; 4]; 3]; 2];
        self.system.read(self.table[t].endpoint(), data, wanted[..halves].as_flattened_mut().as_flattened_mut())?;
        let have = self.capabilities(p);
        let is_within = wanted.iter().zip(have).zip(ALL_CAPABILITIES).all(|((sets, have), known)| {
            // As Linux: what is no capability is ignored.
            let [effective, permitted, inheritable] = sets.map(|set| u32::from_le_bytes(set) & known);
            (permitted | inheritable) & !have == 0 && effective & !permitted == 0
        });
        if is_within { Ok(0) } else { Err(Errno::EPERM) }
    }

    fn capabilities(&self, p: ProcessIndex) -> [u32; 2] {
        if self.table[p].credentials.is_root() { ALL_CAPABILITIES } else { [0; 2] }
    }

    /// The process that a header means, and how many 32-bit halves its version has. `EINVAL`: an unknown version; the header then has the
    /// one that is known.
    fn capability_target(&mut self, t: ThreadIndex, header: u64) -> Result<(ProcessIndex, usize)> {
        let word = self.read_word(t, header)?;
        let Some(halves) = CAPABILITY_VERSIONS.iter().find(|known| known.0 == word as u32).map(|known| known.1) else {
            self.write_u32(t, header, CAPABILITY_VERSIONS[0].0)?;
            return Err(Errno::EINVAL);
        };
        let pid = (word >> 32) as i32;
        if pid < 0 {
            return Err(Errno::EINVAL);
        }
        Ok((self.table.process_or_self(self.table.process_of(t), pid)?, halves))
    }
}
