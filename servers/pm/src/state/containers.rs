//! Containers: which exist, what each has of its own, and the ids and names that are seen in it.
//!
//! A container lives as long as a process has it, or a part of it, so nobody counts: who wants a number looks which are not in use
//! (`Containers::retain`). The system itself is number 0. Neighbours: `process::containers`, which makes them.

use super::credentials::Credentials;
use super::limited::Limited;
use abi::{Capability, Errno, Name, Part, Parts, container::CONTAINERS};
use alloc::vec::Vec;
use server::quota::Quota;

/// Longest name of a host.
pub const HOST_BYTES: usize = 64;
/// What an id is seen as that has none in a container.
pub const OVERFLOW_ID: u32 = 65534;
/// Containers that one user gets, and that are kept for root.
const USER_SHARE: usize = 24;
/// Distance of two lines of the log about refusals.
const LOG_NS: u64 = 1_000_000_000;
const RESERVED: usize = 8;

/// The one user, or group, of a container: the id that is seen there, and the system's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdMap {
    /// Inside.
    pub inside: u32,
    /// The system's.
    pub outside: u32,
}

impl IdMap {
    /// As vfs is told.
    pub fn to_word(self) -> u64 {
        u64::from(self.inside) | u64::from(self.outside) << 32
    }
}

/// Ids of users or of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// uid_map.
    Users = 0,
    /// gid_map.
    Groups = 1,
}

/// A name of the host.
#[derive(Clone, Copy, Debug)]
pub struct HostName {
    bytes: [u8; HOST_BYTES],
    length: u8,
}

impl HostName {
    /// A name that is not too long.
    pub fn new(name: &[u8]) -> HostName {
        let mut bytes = [0; HOST_BYTES];
        let length = name.len().min(HOST_BYTES);
        bytes[..length].copy_from_slice(&name[..length]);
        HostName { bytes, length: length as u8 }
    }

    /// Its text.
    pub fn text(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// One container.
#[derive(Clone, Copy, Debug)]
struct Container {
    /// Those of a process in it when it was made.
    parts: Parts,
    /// The users of who made it.
    above: u8,
    /// Who made it, as the system knows him.
    owner: u32,
    /// Whose share of all containers it is in.
    account: u32,
    maps: [Option<IdMap>; 2],
    /// The write that has set each: it may be made again.
    set_by: [u64; 2],
    /// setgroups(2) was forbidden.
    keeps_groups: bool,
    /// Host and domain.
    names: [HostName; 2],
    limited: Option<Limited>,
}

/// All containers but the system itself.
pub struct Containers {
    all: Vec<Option<Container>>,
    quota: Quota,
    /// When a refusal was logged last, monotonic.
    logged_ns: u64,
    /// How long services had run when somebody looked at the processor last.
    services_ns: u64,
}

impl Default for Containers {
    fn default() -> Self {
        Containers::new()
    }
}

impl Containers {
    /// There is none.
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn new() -> Containers {
        Containers {
            all: (0..CONTAINERS).map(|_| None).collect(),
            quota: Quota::new(CONTAINERS - 1, USER_SHARE, RESERVED),
            logged_ns: 0,
            services_ns: 0,
        }
    }

    /// Forgets those that are not in use, and among whose users no other one was made that is.
    pub fn retain(&mut self, is_used: impl Fn(u8) -> bool) {
        let mut kept: [bool; CONTAINERS] =
            core::array::from_fn(|number| self.all[number].is_some() && is_used(number as u8));
        let mut changes = true;
        while changes {
            changes = false;
            for number in 1..CONTAINERS {
                let above = self.all[number].filter(|_| kept[number]).map_or(0, |container| container.above);
                changes |= above != 0 && !core::mem::replace(&mut kept[usize::from(above)], true);
            }
        }
        for (number, entry) in self.all.iter_mut().enumerate().skip(1) {
            if let Some(container) = entry.filter(|_| !kept[number]) {
                self.quota.give(container.account, 1);
                *entry = None;
            }
        }
    }

    /// Makes a container for a process in `parts`, with parts of its own as the flags say. Returns the parts of a process in it. `ENOSPC`: there are
    /// too many, or the user has his share.
    pub fn create(&mut self, parts: Parts, flags: u64, owner: u32, names: [HostName; 2]) -> Result<Parts, Errno> {
        let free = self.all.iter().skip(1).position(Option::is_none).ok_or(Errno::ENOSPC)? + 1;
        let account = parts.account(owner);
        self.quota.take(account, 1).map_err(|_| Errno::ENOSPC)?;
        let above = parts.of(Part::Users);
        // What was forbidden above stays so.
        let keeps_groups = self.get(above).is_some_and(|container| container.keeps_groups);
        let parts = parts.inside(free as u8, flags);
        let (maps, set_by) = ([None; 2], [0; 2]);
        self.all[free] =
            Some(Container { parts, above, owner, account, maps, set_by, keeps_groups, names, limited: None });
        Ok(parts)
    }

    /// A container that has just been made gets limits, and one user and group, who are its superuser's. Returns the parts of a process in it.
    pub fn limit(&mut self, parts: Parts, limited: Limited, group: u32) -> Parts {
        let limits = parts.with_limits();
        if let Some(container) = self.get_mut(parts.of(Part::Whole)) {
            let of = |outside| Some(IdMap { inside: 0, outside });
            container.maps = [of(container.owner), of(group)];
            (container.keeps_groups, container.limited, container.parts) = (true, Some(limited), limits);
        }
        limits
    }

    /// The limits of a container.
    pub fn limited(&self, number: u8) -> Option<&Limited> {
        self.get(number)?.limited.as_ref()
    }

    /// The limits of a container, to be changed.
    pub fn limited_mut(&mut self, number: u8) -> Option<&mut Limited> {
        self.get_mut(number)?.limited.as_mut()
    }

    /// The container with limits that has this name.
    pub fn find(&self, name: Name) -> Option<u8> {
        (1..CONTAINERS as u8).find(|number| self.limited(*number).is_some_and(|limited| limited.name() == name))
    }

    /// Whether a container has a share of the processor.
    pub fn any_watched(&self) -> bool {
        (1..CONTAINERS as u8).any(|number| self.limited(number).is_some_and(Limited::is_watched))
    }

    /// Whether a refusal may be logged now: one at a time.
    pub fn may_log(&mut self, now_ns: u64) -> bool {
        let may = self.logged_ns == 0 || now_ns.saturating_sub(self.logged_ns) >= LOG_NS;
        if may {
            self.logged_ns = now_ns;
        }
        may
    }

    /// How long services have run since the last call, when they have run for so long.
    pub fn services_since(&mut self, run_ns: u64) -> u64 {
        // A service that was started anew begins at 0.
        run_ns.saturating_sub(core::mem::replace(&mut self.services_ns, run_ns))
    }

    fn get(&self, number: u8) -> Option<&Container> {
        self.all.get(usize::from(number)).and_then(Option::as_ref)
    }

    fn get_mut(&mut self, number: u8) -> Option<&mut Container> {
        self.all.get_mut(usize::from(number)).and_then(Option::as_mut)
    }

    /// The parts of a process in a container when it was made; for one that does not exist, the system's.
    pub fn parts(&self, number: u8) -> Parts {
        self.get(number).map_or(Parts::SYSTEM, |container| container.parts)
    }

    /// Whether a process has this right over a part of its world: over the system, or in the users to whom the container belongs.
    pub fn has(&self, who: &Credentials, capability: Capability, parts: Parts, part: Part) -> bool {
        who.has(capability)
            || who.has_inside(capability) && self.parts(parts.of(part)).of(Part::Users) == who.parts.of(Part::Users)
    }

    /// The name of the host (0) or domain (1) of a container; `None`: the system's.
    pub fn name(&self, parts: Parts, which: usize) -> Option<HostName> {
        self.get(parts.of(Part::Host)).map(|container| container.names[which])
    }

    /// Sets a name. Returns false for the system's.
    pub fn set_name(&mut self, parts: Parts, which: usize, name: HostName) -> bool {
        let container = self.get_mut(parts.of(Part::Host));
        container.map(|container| container.names[which] = name).is_some()
    }

    /// An id as it is seen by the users of a container.
    pub fn seen(&self, users: u8, kind: Kind, id: u32) -> u32 {
        if users == 0 {
            return id;
        }
        let map = self.map(users, kind).filter(|map| map.outside == id);
        map.map_or(OVERFLOW_ID, |map| map.inside)
    }

    /// The system's id of one that the users of a container mean. `EINVAL`: none.
    pub fn meant(&self, users: u8, kind: Kind, id: u32) -> Result<u32, Errno> {
        if users == 0 || id == u32::MAX {
            return Ok(id);
        }
        self.map(users, kind).filter(|map| map.inside == id).map(|map| map.outside).ok_or(Errno::EINVAL)
    }

    /// The system's id of the superuser of a container.
    pub fn superuser(&self, users: u8) -> Option<u32> {
        self.meant(users, Kind::Users, 0).ok()
    }

    /// The id of a container.
    pub fn map(&self, users: u8, kind: Kind) -> Option<IdMap> {
        self.get(users)?.maps[kind as usize]
    }

    /// Whether setgroups(2) is allowed by the container.
    pub fn allows_setgroups(&self, users: u8) -> bool {
        users == 0 || self.get(users).is_some_and(|container| !container.keeps_groups && container.maps[1].is_some())
    }

    /// What the file setgroups says.
    pub fn setgroups_text(&self, users: u8) -> &'static str {
        if self.get(users).is_some_and(|container| container.keeps_groups) { "deny" } else { "allow" }
    }

    /// Writes to the file setgroups: forbids it before there is a group. `EPERM`, `EINVAL`.
    pub fn set_setgroups(&mut self, users: u8, text: &[u8]) -> Result<(), Errno> {
        let container = self.get_mut(users).ok_or(Errno::EPERM)?;
        match text.trim_ascii() {
            b"deny" if container.maps[1].is_none() => container.keeps_groups = true,
            b"allow" if !container.keeps_groups => {}
            b"deny" | b"allow" => return Err(Errno::EPERM),
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    /// Writes to uid_map or gid_map: one line with one id, which must be the writer's own, and his who made the container. `EPERM`, `EINVAL`.
    pub fn set_map(
        &mut self,
        users: u8,
        kind: Kind,
        text: &[u8],
        writer: (u32, u32),
        write: u64,
    ) -> Result<IdMap, Errno> {
        let mut numbers = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?.split_ascii_whitespace();
        let mut number = || numbers.next().and_then(|word| word.parse::<u32>().ok()).ok_or(Errno::EINVAL);
        let (inside, named, count) = (number()?, number()?, number()?);
        if count == 0 || inside == u32::MAX || named == u32::MAX {
            return Err(Errno::EINVAL);
        }
        let container = self.get(users).ok_or(Errno::EPERM)?;
        let is_last = numbers.next().is_none();
        if !is_last || count != 1 || container.owner != writer.0 {
            return Err(Errno::EPERM);
        }
        let above = self.above(users);
        let outside = self.meant(above, kind, named).map_err(|_| Errno::EPERM)?;
        let own = match kind {
            Kind::Users => writer.0,
            Kind::Groups if container.keeps_groups => writer.1,
            Kind::Groups => return Err(Errno::EPERM),
        };
        if outside != own {
            return Err(Errno::EPERM);
        }
        let map = IdMap { inside, outside };
        let container = self.get_mut(users).ok_or(Errno::EPERM)?;
        let (known, set_by) = (&mut container.maps[kind as usize], &mut container.set_by[kind as usize]);
        if known.is_some() && (*known != Some(map) || *set_by != write) {
            return Err(Errno::EPERM);
        }
        (*known, *set_by) = (Some(map), write);
        Ok(map)
    }

    /// An id as those know it among whom the container with these users was made.
    pub fn named_above(&self, users: u8, kind: Kind, id: u32) -> u32 {
        self.seen(self.above(users), kind, id)
    }

    /// The users among whom the container with these was made.
    fn above(&self, users: u8) -> u8 {
        self.get(users).map_or(0, |container| container.above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: u64 = Part::Users.flag();
    const HOST: u64 = Part::Host.flag();

    fn create(containers: &mut Containers, parts: Parts, flags: u64, owner: u32) -> Result<Parts, Errno> {
        containers.create(parts, flags, owner, [HostName::new(b""); 2])
    }

    #[test]
    fn a_container_has_the_parts_that_were_asked_for_and_shares_the_others() {
        let mut containers = Containers::new();
        let outer = create(&mut containers, Parts::SYSTEM, USERS | HOST, 7).unwrap();
        let inner = create(&mut containers, outer, HOST, 7).unwrap();
        assert_eq!([outer, inner].map(|parts| parts.of(Part::Whole)), [1, 2]);
        assert_eq!([outer, inner].map(|parts| parts.of(Part::Users)), [1, 1]);
        assert_eq!([outer, inner].map(|parts| parts.of(Part::Host)), [1, 2]);
        assert_eq!(inner.of(Part::Mounts), 0);
    }

    #[test]
    fn a_user_gets_his_share_and_root_what_is_left() {
        let mut containers = Containers::new();
        let made = (0..CONTAINERS).filter(|_| create(&mut containers, Parts::SYSTEM, HOST, 7).is_ok()).count();
        assert_eq!(made, USER_SHARE);
        let others =
            (0..CONTAINERS as u32).filter(|user| create(&mut containers, Parts::SYSTEM, HOST, 8 + user).is_ok());
        assert_eq!(others.count(), CONTAINERS - 1 - USER_SHARE - RESERVED);
        let roots = (0..CONTAINERS).filter(|_| create(&mut containers, Parts::SYSTEM, HOST, 0).is_ok());
        assert_eq!(roots.count(), RESERVED);
        containers.retain(|number| number != 3);
        assert_eq!(create(&mut containers, Parts::SYSTEM, HOST, 0).map(|parts| parts.of(Part::Host)), Ok(3));
    }

    #[test]
    fn an_id_is_mapped_once_by_its_owner_and_nested_through_the_one_above() {
        let mut containers = Containers::new();
        let outer = create(&mut containers, Parts::SYSTEM, USERS, 1000).unwrap().of(Part::Users);
        assert_eq!(containers.seen(outer, Kind::Users, 1000), OVERFLOW_ID);
        let mut set = |users, text: &str, writer| containers.set_map(users, Kind::Users, text.as_bytes(), writer, 7);
        assert_eq!(set(0, "0 1000 1", (1000, 100)), Err(Errno::EPERM));
        for refused in ["0 1000 2", "0 0 1", "0 1000 1\n1 1001 1"] {
            assert_eq!(set(outer, refused, (1000, 100)), Err(Errno::EPERM), "{refused}");
        }
        for nonsense in ["", "0", "0 1000", "0 1000 0", "x 1000 1", "-1 1000 1", "4294967295 1000 1"] {
            assert_eq!(set(outer, nonsense, (1000, 100)), Err(Errno::EINVAL), "{nonsense}");
        }
        assert_eq!(set(outer, "0 1000 1\n", (1001, 100)), Err(Errno::EPERM));
        assert_eq!(set(outer, "0 1000 1\n", (1000, 100)), Ok(IdMap { inside: 0, outside: 1000 }));
        assert_eq!(set(outer, "5 1000 1\n", (1000, 100)), Err(Errno::EPERM));
        assert_eq!([1000, 0].map(|id| containers.seen(outer, Kind::Users, id)), [0, OVERFLOW_ID]);
        assert_eq!([0, 1000].map(|id| containers.meant(outer, Kind::Users, id)), [Ok(1000), Err(Errno::EINVAL)]);
        let parts = Parts::SYSTEM.inside(outer, USERS);
        let inner = create(&mut containers, parts, USERS, 1000).unwrap().of(Part::Users);
        assert_eq!(containers.set_map(inner, Kind::Users, b"77 1000 1", (1000, 100), 7), Err(Errno::EPERM));
        assert!(containers.set_map(inner, Kind::Users, b"77 0 1", (1000, 100), 7).is_ok());
        assert_eq!(containers.seen(inner, Kind::Users, 1000), 77);
        assert_eq!([outer, inner].map(|users| containers.superuser(users)), [Some(1000), None]);
    }

    #[test]
    fn a_group_is_mapped_when_groups_stay_as_they_are() {
        let mut containers = Containers::new();
        let users = create(&mut containers, Parts::SYSTEM, USERS, 1000).unwrap().of(Part::Users);
        assert_eq!(containers.set_map(users, Kind::Groups, b"0 100 1", (1000, 100), 7), Err(Errno::EPERM));
        assert_eq!(containers.set_setgroups(users, b"no"), Err(Errno::EINVAL));
        assert_eq!(containers.set_setgroups(users, b"deny\n"), Ok(()));
        assert_eq!(containers.set_setgroups(users, b"allow"), Err(Errno::EPERM));
        assert!(containers.set_map(users, Kind::Groups, b"0 100 1", (1000, 100), 7).is_ok());
        assert!(!containers.allows_setgroups(users) && containers.allows_setgroups(0));
    }
}
