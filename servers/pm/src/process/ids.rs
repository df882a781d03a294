//! The calls about user and group ids. Every change is told to vfs, which checks permissions.

use crate::programs::Programs;
use crate::state::containers::Kind;
use crate::state::credentials::{Credentials, Ids};
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::system::{FileIds, System};
use abi::{Capability, Errno, Part, limits};
use alloc::rc::Rc;
use sys::fallible;

type Result<T> = core::result::Result<T, Errno>;

/// Which ids a process may set to any value.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    /// CAP_SETUID.
    pub user: bool,
    /// CAP_SETGID.
    pub group: bool,
}

impl<S: System> Programs<S> {
    /// Who a thread's process is.
    pub fn credentials_of(&self, t: ThreadIndex) -> &Credentials {
        &self.table[self.table.process_of(t)].credentials
    }

    /// Changes ids by `change`, which is told what the caller may.
    pub fn change_ids(
        &mut self,
        p: ProcessIndex,
        change: impl FnOnce(&mut Credentials, Rights) -> Result<()>,
    ) -> Result<u64> {
        let old = &self.table[p].credentials;
        let (mut credentials, user, before) = (old.clone(), old.user, old.effective_word());
        let rights = Rights { user: old.has_inside(Capability::SetUid), group: old.has_inside(Capability::SetGid) };
        change(&mut credentials, rights)?;
        let superuser = self.table.superuser(p);
        credentials.capabilities.follow_user(&user.seen_by(superuser), &credentials.user.seen_by(superuser));
        if credentials.effective_word() != before {
            // What it has in memory is its former user's.
            self.table[p].control.dumpable = false;
        }
        self.forget_answers_of_all(p);
        self.table.set_credentials(p, credentials)?;
        self.tell_credentials(p);
        Ok(0)
    }

    /// Tells vfs, vm and m3ipc what they need to know of who a process is.
    pub fn tell_credentials(&mut self, p: ProcessIndex) {
        self.tell_vfs_ids(p);
        self.tell_vm_limits(p);
    }

    /// Tells vfs the ids of a process, for each of its threads, and m3ipc that they may have changed.
    pub fn tell_vfs_ids(&mut self, p: ProcessIndex) {
        if self.table[p].enrolled {
            self.tell_m3ipc();
        }
        let mut next = self.table[p].main();
        while let Some(t) = next {
            next = self.table[t].next();
            let superuser = self.table.superuser(p);
            let credentials = &self.table[p].credentials;
            let ids = FileIds {
                effective: credentials.file_word(),
                real: credentials.real_word(),
                capabilities: credentials.capabilities.effective(),
                real_capabilities: credentials.capabilities.of_real_user(credentials.user.seen_by(superuser).real),
            };
            self.system.vfs_set_ids(self.table[t].endpoint(), ids, credentials.groups());
        }
    }

    /// `getresuid`, `getresgid`.
    pub fn get_three_ids(&mut self, t: ThreadIndex, kind: Kind, ids: Ids, a: &[u64; 7]) -> Result<u64> {
        for (address, id) in a.iter().zip([ids.real, ids.effective, ids.saved]) {
            let id = self.table.seen(self.table.process_of(t), kind, id);
            self.write_u32(t, *address, id)?;
        }
        Ok(0)
    }

    /// `setfsuid`: returns the old id of file accesses, whether the new one is allowed or not.
    pub fn set_file_user(&mut self, p: ProcessIndex, id: u32) -> u64 {
        let (meant, superuser) = (self.table.meant(p, Kind::Users, id), self.table.superuser(p));
        let credentials = &mut self.table[p].credentials;
        let may = credentials.has_inside(Capability::SetUid);
        let before = credentials.user;
        if let Ok(id) = meant
            && credentials.user.set_file(id, may)
        {
            let (old, new) = (before.seen_by(superuser).file, credentials.user.seen_by(superuser).file);
            credentials.capabilities.follow_file_user(old, new);
            self.tell_vfs_ids(p);
        }
        u64::from(self.table.seen(p, Kind::Users, before.file))
    }

    /// `setfsgid`, as `setfsuid`.
    pub fn set_file_group(&mut self, p: ProcessIndex, id: u32) -> u64 {
        let meant = self.table.meant(p, Kind::Groups, id);
        let credentials = &mut self.table[p].credentials;
        let may = credentials.has_inside(Capability::SetGid);
        let old = credentials.group.file;
        if let Ok(id) = meant
            && credentials.group.set_file(id, may)
        {
            self.tell_vfs_ids(p);
        }
        u64::from(self.table.seen(p, Kind::Groups, old))
    }

    /// `getgroups(count, list)`.
    pub fn getgroups(&mut self, t: ThreadIndex, count: u64, address: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        let groups = self.table[p].credentials.groups();
        let have = groups.len() as u64;
        if count == 0 {
            return Ok(have);
        }
        if (count as i32) < 0 || count < have {
            return Err(Errno::EINVAL);
        }
        let bytes =
            fallible::collect(groups.iter().map(|group| self.table.seen(p, Kind::Groups, *group).to_le_bytes()))?;
        self.write_bytes(t, address, bytes.as_flattened())?;
        Ok(have)
    }

    /// `setgroups(count, list)`: with CAP_SETGID.
    pub fn setgroups(&mut self, t: ThreadIndex, count: u64, address: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        let who = &self.table[p].credentials;
        let is_allowed = self.table.containers.allows_setgroups(who.parts.of(Part::Users));
        if !who.has_inside(Capability::SetGid) || !is_allowed {
            return Err(Errno::EPERM);
        }
        if count > limits::GROUPS as u64 {
            return Err(Errno::EINVAL);
        }
        let mut bytes = fallible::filled([0; 4], count as usize)?;
        self.system.read(self.table[t].endpoint(), address, bytes.as_flattened_mut())?;
        let mut groups = fallible::collect(bytes.into_iter().map(u32::from_le_bytes))?;
        for group in &mut groups {
            *group = self.table.meant(p, Kind::Groups, *group)?;
        }
        // getgroups shows them in this order.
        groups.sort_unstable();
        self.table[p].credentials.groups = Some(Rc::new(groups));
        self.tell_vfs_ids(p);
        Ok(0)
    }
}
