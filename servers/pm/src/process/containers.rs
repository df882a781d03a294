//! `unshare`, `setns`, and what a new container of clone(2) is: which parts of its world a process has for itself.
//!
//! A container ends with the last process that has it, or a part of it. Nobody is told of that: who makes one forgets those that have ended first,
//! with the System V objects that are theirs. vfs notices by itself.

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::capabilities::Capabilities;
use crate::state::containers::{HostName, Kind};
use crate::state::credentials::Credentials;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::machine::Name;
use crate::system::System;
use abi::container::{CONTAINERS, PART_FLAGS};
use abi::{Capability, Endpoint, Errno, Part, Parts, pm, vfs};
use sys::fallible;

type Result<T> = core::result::Result<T, Errno>;

/// Flags of clone(2) that mean something to unshare(2).
mod flag {
    pub const VM: u64 = 0x100;
    pub const FS: u64 = 0x200;
    pub const FILES: u64 = 0x400;
    pub const SIGHAND: u64 = 0x800;
    pub const THREAD: u64 = 0x1_0000;
    pub const SYSVSEM: u64 = 0x4_0000;
    /// What a process with one thread has for itself anyway.
    pub const OF_THREADS: u64 = VM | SIGHAND | THREAD;
}

/// Parts that a container may have of its own. The network is the system's.
const OWN_PARTS: u64 = PART_FLAGS & !Part::Network.flag();
/// Longest text of uid_map, gid_map and setgroups.
const MAP_BYTES: u64 = 128;

impl<S: System> Programs<S> {
    /// Whether a process may make a container with these parts. `EINVAL`: it cannot have them; `EPERM`.
    pub fn check_container(&self, p: ProcessIndex, flags: u64) -> Result<()> {
        let who = &self.table[p].credentials;
        if flags & PART_FLAGS & !OWN_PARTS != 0 {
            return Err(Errno::EINVAL);
        }
        // Numbers are shown in one container besides the system itself.
        if flags & Part::Processes.flag() != 0 && who.parts.of(Part::Processes) != 0 {
            return Err(Errno::ENOSPC);
        }
        if flags & Part::Users.flag() != 0 {
            let users = who.parts.of(Part::Users);
            let is_known =
                |kind, id| users == 0 || self.table.containers.map(users, kind).is_some_and(|map| map.outside == id);
            // Who is nobody in a container can be nobody's superuser.
            let is_somebody = is_known(Kind::Users, who.user.effective) && is_known(Kind::Groups, who.group.effective);
            return if is_somebody { Ok(()) } else { Err(Errno::EPERM) };
        }
        if who.has_inside(Capability::SysAdmin) { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// Makes a container for a process that shares the world of `p` but for these parts. `ENOSPC`.
    fn new_container(&mut self, p: ProcessIndex, flags: u64, names: [HostName; 2]) -> Result<Parts> {
        let who = &self.table[p].credentials;
        let (parts, owner) = (who.parts, who.user.effective);
        let parts = self.table.containers.create(parts, flags & PART_FLAGS, owner, names)?;
        if flags & Part::Processes.flag() != 0 {
            self.table.begin_container(parts.of(Part::Processes));
        }
        Ok(parts)
    }

    /// The container of the number of a child: the one that was made for it, or that its parent has chosen, or its parent's. `ENOMEM`: the first
    /// process of that has ended.
    pub fn container_of_child(&self, parent: ProcessIndex, made: Option<Parts>) -> Result<u8> {
        let own = self.table[parent].credentials.parts.of(Part::Processes);
        let inherited = self.table[parent].children.unwrap_or(own);
        let container = made.map(|parts| parts.of(Part::Processes)).filter(|made| *made != own).unwrap_or(inherited);
        let is_over = || self.table.has_begun(container) && self.table.first_of_container(container).is_none();
        if container != 0 && is_over() { Err(Errno::ENOMEM) } else { Ok(container) }
    }

    /// Who a process is when it is in other containers; among users of its own it has every right.
    fn entered(&self, p: ProcessIndex, parts: Parts) -> Credentials {
        let who = self.table[p].credentials.clone();
        let has_new_users = parts.of(Part::Users) != who.parts.of(Part::Users);
        let capabilities = if has_new_users { Capabilities::default() } else { who.capabilities };
        Credentials { parts, capabilities, ..who }
    }

    /// A process is in other containers now. `EAGAIN`: these have as many processes as they may.
    pub fn enter(&mut self, p: ProcessIndex, parts: Parts) -> Result<()> {
        let who = self.entered(p, parts);
        self.table.set_credentials(p, who)
    }

    /// Tells vfs the ids of the users among whom a process is.
    pub fn tell_id_map(&mut self, p: ProcessIndex) {
        let users = self.table[p].credentials.parts.of(Part::Users);
        let [user, group] = [Kind::Users, Kind::Groups]
            .map(|kind| self.table.containers.map(users, kind).map_or(vfs::NO_ID_MAP, |map| map.to_word()));
        let mut next = self.table[p].main();
        while let Some(t) = next {
            next = self.table[t].next();
            self.system.vfs_set_id_map(self.table[t].endpoint(), user, group);
        }
    }

    /// The containers of a process that vfs knows in its former ones: vfs is told.
    fn move_into(&mut self, t: ThreadIndex, parts: Parts, unshared: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        self.system.vfs_set_parts(self.table[t].endpoint(), parts, unshared)?;
        if self.table[p].credentials.parts != parts {
            self.forget_answers_of_all(p);
            self.enter(p, parts)?;
            // A successor of pm tells vfs the rest.
            self.note_done(t);
            self.tell_id_map(p);
            self.tell_credentials(p);
        }
        Ok(0)
    }

    /// `setns(descriptor, flags)`: into containers of the process that a pidfd means.
    pub fn setns(&mut self, t: ThreadIndex, descriptor: i32, flags: u64) -> Result<u64> {
        let (identity, _) = self.system.vfs_pidfd(self.table[t].endpoint(), descriptor)?;
        if flags == 0 || flags & !OWN_PARTS != 0 {
            return Err(Errno::EINVAL);
        }
        let p = self.table.process_of(t);
        let target = self.table.process_by_pid(identity.pid).ok_or(Errno::ESRCH)?;
        if self.table[target].identity() != identity {
            return Err(Errno::ESRCH);
        }
        if self.table[p].threads() != 1 {
            return Err(Errno::EINVAL);
        }
        let (who, theirs) = (&self.table[p].credentials, self.table[target].credentials.parts);
        let wanted = || Part::ALL.into_iter().filter(|part| flags & part.flag() != 0);
        let may = |part| self.table.containers.has(who, Capability::SysAdmin, theirs, part);
        if !wanted().all(may) {
            return Err(Errno::EPERM);
        }
        let parts = wanted().fold(who.parts, |parts, part| parts.with(part, theirs.of(part)));
        let is_all = Part::ALL.into_iter().all(|part| parts.of(part) == theirs.of(part));
        // Limits are never left, and nobody comes into them who was made outside.
        let parts = if is_all && theirs.limited() == who.parts.limited() { theirs } else { parts };
        // A process keeps its number: its children are in the other container.
        if flags & Part::Processes.flag() != 0 {
            self.table[p].children = Some(theirs.of(Part::Processes));
        }
        let parts = parts.with(Part::Processes, self.table[p].credentials.parts.of(Part::Processes));
        self.move_into(t, parts, vfs::FORK_FS)
    }

    /// `pm::SetIdMap`.
    pub fn set_id_map(&mut self, from: Endpoint, ask: &pm::SetIdMap) -> Result<u64> {
        let p = u32::try_from(ask.pid).ok().and_then(|pid| self.table.process_by_pid(pid)).ok_or(Errno::ESRCH)?;
        if ask.bytes > MAP_BYTES || ask.bytes == 0 {
            return Err(Errno::EINVAL);
        }
        let mut text = fallible::filled(0, ask.bytes as usize)?;
        self.system.read_grant(from, ask.grant, &mut text)?;
        let users = self.table[p].credentials.parts.of(Part::Users);
        let writer = (ask.ids as u32, (ask.ids >> 32) as u32);
        let kind = match ask.what {
            pm::TEXT_USER_MAP => Kind::Users,
            pm::TEXT_GROUP_MAP => Kind::Groups,
            pm::TEXT_SETGROUPS => {
                self.table.containers.set_setgroups(users, &text)?;
                return Ok(ask.bytes);
            }
            _ => return Err(Errno::EINVAL),
        };
        self.table.containers.set_map(users, kind, &text, writer, ask.write)?;
        for member in self.table.positions() {
            if self.table.is_used(member) && self.table[member].credentials.parts.of(Part::Users) == users {
                self.forget_answers_of_all(member);
                self.tell_id_map(member);
            }
        }
        Ok(ask.bytes)
    }
}

impl<S: System> Pm<S> {
    /// The names that a process sees of its host.
    pub fn host_names(&self, p: ProcessIndex) -> [HostName; 2] {
        let parts = self.programs.table[p].credentials.parts;
        let own = |which, name| {
            let own = self.programs.table.containers.name(parts, which);
            own.unwrap_or_else(|| HostName::new(self.machine.name(name)))
        };
        [own(0, Name::Host), own(1, Name::Domain)]
    }

    /// A container for the process `p`, or a child of it, before which those that have ended are forgotten.
    pub fn make_container(&mut self, p: ProcessIndex, flags: u64) -> Result<Parts> {
        self.programs.check_container(p, flags)?;
        self.forget_ended_containers();
        let names = self.host_names(p);
        self.programs.new_container(p, flags, names)
    }

    /// Forgets the containers that no process has, nor a part of them, with the System V objects in them.
    pub fn forget_ended_containers(&mut self) {
        let mut used = [false; CONTAINERS];
        for (_, process) in self.programs.table.processes() {
            let parts = process.credentials.parts;
            if let Some(used) = process.children.and_then(|children| used.get_mut(usize::from(children))) {
                *used = true;
            }
            for part in Part::ALL.into_iter().chain([Part::Whole]) {
                if let Some(used) = used.get_mut(usize::from(parts.of(part))) {
                    *used = true;
                }
            }
        }
        let is_used = |number: u8| used.get(usize::from(number)).is_some_and(|used| *used);
        self.programs.table.containers.retain(is_used);
        self.forget_ipc(is_used);
    }

    /// `unshare(flags)`.
    pub fn unshare(&mut self, t: ThreadIndex, flags: u64) -> Result<u64> {
        if flags & !(OWN_PARTS | flag::FS | flag::FILES | flag::SYSVSEM | flag::OF_THREADS) != 0 {
            return Err(Errno::EINVAL);
        }
        let p = self.programs.table.process_of(t);
        let of_process = flags & (PART_FLAGS | flag::OF_THREADS | flag::SYSVSEM) != 0;
        if of_process && self.programs.table[p].threads() != 1 {
            return Err(Errno::EINVAL);
        }
        let before = self.programs.table[p].credentials.parts;
        let parts = match flags & PART_FLAGS {
            0 => before,
            own => self.make_container(p, own)?,
        };
        if flags & Part::Processes.flag() != 0 {
            self.programs.table[p].children = Some(parts.of(Part::Processes));
        }
        let parts = parts.with(Part::Processes, before.of(Part::Processes));
        let bit = |flag, vfs| if flags & flag != 0 { vfs } else { 0 };
        let of_directories = flag::FS | Part::Mounts.flag() | Part::Users.flag();
        let unshared = bit(flag::FILES, vfs::FORK_FILES) | bit(of_directories, vfs::FORK_FS);
        self.programs.move_into(t, parts, unshared)
    }

    /// Sets a name that a process sees of its host.
    pub fn name_host(&mut self, p: ProcessIndex, which: Name, name: alloc::vec::Vec<u8>) {
        let parts = self.programs.table[p].credentials.parts;
        if !self.programs.table.containers.set_name(parts, which as usize, HostName::new(&name)) {
            self.machine.set_name(which, name);
        }
    }
}
