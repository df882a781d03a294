//! The calls about user and group ids. Every change is told to vfs, which checks permissions.

use crate::programs::Programs;
use crate::state::credentials::{Credentials, Ids};
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::system::System;
use abi::Errno;
use alloc::vec::Vec;

type Result<T> = core::result::Result<T, Errno>;

/// Most supplementary groups, as in Linux.
const MAX_GROUPS: u64 = 65536;
/// `struct __user_cap_header_struct`: the version with 64 bits.
const CAPABILITY_VERSION: u32 = 0x2008_0522;
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
        self.table.set_credentials(p, credentials)?;
        self.tell_vfs_ids(p);
        Ok(0)
    }

    /// Tells vfs the ids of a process, for each of its threads.
    pub fn tell_vfs_ids(&mut self, p: ProcessIndex) {
        let mut next = self.table[p].main();
        while let Some(t) = next {
            next = self.table[t].next();
            let credentials = &self.table[p].credentials;
            let (effective, real) = (credentials.effective_word(), credentials.real_word());
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
        let bytes: Vec<u8> = groups.iter().flat_map(|group| group.to_le_bytes()).collect();
        self.write_bytes(t, address, &bytes)?;
        Ok(have)
    }

    /// `setgroups(count, list)`: root only.
    pub fn setgroups(&mut self, t: ThreadIndex, count: u64, address: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        if !self.table[p].credentials.is_root() {
            return Err(Errno::EPERM);
        }
        if count > MAX_GROUPS {
            return Err(Errno::EINVAL);
        }
        let mut bytes = alloc::vec![[0; 4]; count as usize];
        self.system.read(self.table[t].endpoint(), address, bytes.as_flattened_mut())?;
        let groups = bytes.into_iter().map(u32::from_le_bytes).collect();
        self.table[p].credentials.groups = Some(groups);
        self.tell_vfs_ids(p);
        Ok(0)
    }

    /// `capget(header, data)`: root has all capabilities, nobody else any.
    pub fn capget(&mut self, t: ThreadIndex, header: u64, data: u64) -> Result<u64> {
        let target = self.capability_target(t, header)?;
        if data != 0 {
            let root = self.table[target].credentials.is_root();
            let [low, high] = if root { ALL_CAPABILITIES } else { [0, 0] };
            // Effective, permitted, inheritable; low words first.
            let words = [low, low, 0, high, high, 0].map(u32::to_le_bytes);
            self.write_bytes(t, data, words.as_flattened())?;
        }
        Ok(0)
    }

    /// `capset(header, data)`: accepted from root, without effect, since pm knows only root and others.
    pub fn capset(&mut self, t: ThreadIndex, header: u64, data: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        if self.capability_target(t, header)? != p {
            return Err(Errno::EPERM);
        }
        let wanted = self.read_bytes::<24>(t, data)?;
        let any = wanted.iter().any(|byte| *byte != 0);
        if any && !self.table[p].credentials.is_root() { Err(Errno::EPERM) } else { Ok(0) }
    }

    fn capability_target(&mut self, t: ThreadIndex, header: u64) -> Result<ProcessIndex> {
        let word = self.read_word(t, header)?;
        if word as u32 != CAPABILITY_VERSION {
            self.write_u32(t, header, CAPABILITY_VERSION)?;
            return Err(Errno::EINVAL);
        }
        self.table.process_or_self(self.table.process_of(t), (word >> 32) as i32)
    }
}
