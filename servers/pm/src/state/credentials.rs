//! User and group ids of a process, and Linux's rules for changing them (credentials(7)).
//! Pure: telling vfs about a change is the caller's business.

use super::capabilities::{Capabilities, Exec};
use super::containers::OVERFLOW_ID;
use abi::{Capability, CapabilitySet, Errno, Part, Parts, vfs::FileCapabilities};
use alloc::rc::Rc;
use alloc::vec::Vec;

/// "Leave this id as it is" in `setres*id` and `setre*id`.
const KEEP: u32 = u32::MAX;

/// Real, effective and saved id, of a user or of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ids {
    /// Who started the process.
    pub real: u32,
    /// Whose rights it has.
    pub effective: u32,
    /// Whose rights it may take back.
    pub saved: u32,
    /// Whose rights it has in accesses to files: the effective one's, until `setfsuid` or `setfsgid` chooses another.
    pub file: u32,
}

impl Ids {
    /// All three the same.
    #[cfg(test)]
    pub const fn all(id: u32) -> Ids {
        Ids { real: id, effective: id, saved: id, file: id }
    }

    fn are_all(&self, id: u32) -> bool {
        id == self.real && id == self.effective && id == self.saved
    }

    /// The same with 0 for this superuser, and for nobody else.
    pub fn seen_by(&self, superuser: Option<u32>) -> Ids {
        let seen = |id| match id {
            id if Some(id) == superuser => 0,
            0 => u32::MAX,
            id => id,
        };
        let Ids { real, effective, saved, file } = *self;
        Ids { real: seen(real), effective: seen(effective), saved: seen(saved), file: seen(file) }
    }

    /// Whether the real, effective or saved one is this.
    pub fn has(&self, id: u32) -> bool {
        id == self.real || id == self.effective || id == self.saved
    }

    /// Changes the effective id, which that of file accesses follows.
    pub fn set_effective(&mut self, id: u32) {
        self.effective = id;
        self.file = id;
    }

    /// Makes the effective id the saved one and that of file accesses, as a new program has them.
    fn take_effective(&mut self) {
        self.saved = self.effective;
        self.file = self.effective;
    }

    /// `setfsuid`, `setfsgid`. Returns whether the id is another now.
    pub fn set_file(&mut self, id: u32, privileged: bool) -> bool {
        let changes = id != KEEP && id != self.file && (privileged || self.has(id));
        if changes {
            self.file = id;
        }
        changes
    }

    /// `setuid`, `setgid`: all three for the privileged, else only the effective one. `EINVAL`, `EPERM`.
    pub fn set(&mut self, id: u32, privileged: bool) -> Result<(), Errno> {
        if id == KEEP {
            return Err(Errno::EINVAL);
        }
        if privileged {
            *self = Ids { real: id, effective: id, saved: id, file: id };
        } else if id == self.real || id == self.saved {
            self.set_effective(id);
        } else {
            return Err(Errno::EPERM);
        }
        Ok(())
    }

    /// `setresuid`, `setresgid`. `EPERM` unless privileged or each new id is one of the present three.
    pub fn set_all(&mut self, real: u32, effective: u32, saved: u32, privileged: bool) -> Result<(), Errno> {
        let allowed = |id| id == KEEP || privileged || self.has(id);
        if !(allowed(real) && allowed(effective) && allowed(saved)) {
            return Err(Errno::EPERM);
        }
        let pick = |new, old| if new == KEEP { old } else { new };
        self.real = pick(real, self.real);
        self.saved = pick(saved, self.saved);
        self.set_effective(pick(effective, self.effective));
        Ok(())
    }

    /// `setreuid`, `setregid`: the saved id follows the effective one when the real one is set, or the effective one to other than the real one.
    pub fn set_two(&mut self, real: u32, effective: u32, privileged: bool) -> Result<(), Errno> {
        let real_allowed = real == KEEP || privileged || real == self.real || real == self.effective;
        let effective_allowed = effective == KEEP || privileged || self.has(effective);
        if !(real_allowed && effective_allowed) {
            return Err(Errno::EPERM);
        }
        let old_real = self.real;
        if real != KEEP {
            self.real = real;
        }
        self.set_effective(if effective == KEEP { self.effective } else { effective });
        if real != KEEP || (effective != KEEP && effective != old_real) {
            self.saved = self.effective;
        }
        Ok(())
    }
}

/// What a file gives to a process that executes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gain {
    /// Set-user-id: its owner.
    pub user: Option<u32>,
    /// Set-group-id: its group.
    pub group: Option<u32>,
    /// Its capabilities.
    pub file: Option<FileCapabilities>,
    /// The process is to gain nothing (PR_SET_NO_NEW_PRIVS).
    pub is_forbidden: bool,
    /// Somebody traces the process who could use what it gains.
    pub is_seen: bool,
    /// The id of the superuser among whose users it is; `None`: there is none.
    pub superuser: Option<u32>,
}

/// Who a process is.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// User ids.
    pub user: Ids,
    /// Group ids.
    pub group: Ids,
    /// Supplementary groups, shared with the children until somebody changes theirs.
    pub groups: Option<Rc<Vec<u32>>>,
    /// Rights.
    pub capabilities: Capabilities,
    /// Its containers. Among users of their own rights count for what is theirs alone.
    pub parts: Parts,
}

impl Credentials {
    /// The supplementary groups.
    pub fn groups(&self) -> &[u32] {
        self.groups.as_ref().map_or(&[], |groups| groups.as_slice())
    }

    /// Whether it has this right over the system now.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.effective().has(capability) && !self.is_contained()
    }

    /// Whether it has this right over what belongs to the users among whom it is.
    pub fn has_inside(&self, capability: Capability) -> bool {
        self.capabilities.effective().has(capability)
    }

    /// To whom quotas charge what it takes: its real user, or the container with limits that it is in.
    #[inline]
    pub fn account(&self) -> u32 {
        self.parts.account(self.user.real)
    }

    /// Whether it is among users of a container's own.
    pub fn is_contained(&self) -> bool {
        self.parts.of(Part::Users) != 0
    }

    /// Whether it has this right over a process.
    pub fn has_over(&self, capability: Capability, target: &Credentials) -> bool {
        let are_equal = self.parts.of(Part::Users) == target.parts.of(Part::Users);
        self.has(capability) || are_equal && self.has_inside(capability)
    }

    /// Its effective capabilities, as far as they are rights over the system.
    pub fn of_system(&self) -> CapabilitySet {
        if self.is_contained() { CapabilitySet::EMPTY } else { self.capabilities.effective() }
    }

    /// May send a signal to a process with these credentials (kill(2)).
    pub fn may_signal(&self, target: &Credentials) -> bool {
        let own = [self.user.real, self.user.effective];
        let is_right = self.has_over(Capability::Kill, target);
        let target = &target.user;
        is_right || own.contains(&target.real) || own.contains(&target.saved)
    }

    /// All user and all group ids of a process are the real ones of this.
    pub fn owns(&self, target: &Credentials) -> bool {
        target.user.are_all(self.user.real) && target.group.are_all(self.group.real)
    }

    /// May look into a process with these credentials (ptrace(2)): it is its owner, and has at least its rights.
    pub fn may_inspect(&self, target: &Credentials) -> bool {
        let is_above = self.capabilities.permitted().contains(target.capabilities.permitted());
        self.has_over(Capability::SysPtrace, target) || self.owns(target) && is_above
    }

    /// execve(2) of a file whose bits say that it runs as this user, and as this group. Returns whether the C library must not trust its
    /// environment. `EPERM`: the file has capabilities that the process may not get.
    pub fn after_exec(&self, gain: &Gain) -> Result<(Credentials, bool), Errno> {
        let mut new = self.clone();
        if let Some(user) = gain.user {
            new.user.effective = user;
        }
        if let Some(group) = gain.group {
            new.group.effective = group;
        }
        let is_set_id = new.user.effective != new.user.real || new.group.effective != new.group.real;
        let exec = Exec {
            user: new.user.seen_by(gain.superuser),
            is_set_id,
            file: gain.file,
            gains_none: gain.is_forbidden || gain.is_seen,
        };
        let after = self.capabilities.after_exec(&exec)?;
        if after.is_reduced && (gain.is_forbidden || !self.has(Capability::SetUid)) {
            (new.user.effective, new.group.effective) = (new.user.real, new.group.real);
        }
        new.user.take_effective();
        new.group.take_effective();
        new.capabilities = after.capabilities;
        Ok((new, after.is_secure))
    }

    /// Ids of file accesses as vfs wants them: user in the low half, group in the high half.
    pub fn file_word(&self) -> u64 {
        self.user.file as u64 | (self.group.file as u64) << 32
    }

    /// Effective ids, packed the same way.
    pub fn effective_word(&self) -> u64 {
        self.user.effective as u64 | (self.group.effective as u64) << 32
    }

    /// Effective ids as services are told: the system's superuser in a container is none of theirs, and who is in one with limits is to them that
    /// container.
    pub fn word_of_system(&self) -> u64 {
        if self.parts.limited().is_some() {
            return u64::from(self.account()) | u64::from(OVERFLOW_ID) << 32;
        }
        let is_superuser = self.is_contained() && self.user.effective == 0;
        if is_superuser { u64::from(OVERFLOW_ID) | u64::from(OVERFLOW_ID) << 32 } else { self.effective_word() }
    }

    /// Real ids, packed the same way.
    pub fn real_word(&self) -> u64 {
        self.user.real as u64 | (self.group.real as u64) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setuid_of_root_changes_all_and_cannot_be_undone() {
        let mut ids = Ids::all(0);
        ids.set(1000, true).unwrap();
        assert_eq!(ids, Ids::all(1000));
        assert_eq!(ids.set(0, false), Err(Errno::EPERM));
    }

    #[test]
    fn a_set_user_id_program_may_go_back_and_forth() {
        let mut ids = Ids { real: 1000, effective: 5, saved: 5, file: 5 };
        ids.set(1000, false).unwrap();
        assert_eq!(ids, Ids { real: 1000, effective: 1000, saved: 5, file: 1000 });
        ids.set(5, false).unwrap();
        assert_eq!(ids.effective, 5);
    }

    #[test]
    fn setreuid_moves_the_saved_id_as_linux_does() {
        let mut ids = Ids { real: 1000, effective: 5, saved: 5, file: 5 };
        ids.set_two(5, 1000, false).unwrap();
        assert_eq!(ids, Ids { real: 5, effective: 1000, saved: 1000, file: 1000 });
        let mut kept = Ids { real: 1000, effective: 5, saved: 5, file: 5 };
        kept.set_two(KEEP, 1000, false).unwrap();
        assert_eq!(kept, Ids { real: 1000, effective: 1000, saved: 5, file: 1000 });
    }

    #[test]
    fn setresuid_takes_only_present_ids_without_privilege() {
        let mut ids = Ids { real: 1, effective: 2, saved: 3, file: 2 };
        assert_eq!(ids.set_all(4, KEEP, KEEP, false), Err(Errno::EPERM));
        ids.set_all(3, KEEP, 1, false).unwrap();
        assert_eq!(ids, Ids { real: 3, effective: 2, saved: 1, file: 2 });
    }

    #[test]
    fn signals_need_a_common_user_or_root() {
        let user =
            |id| Credentials { user: Ids::all(id), capabilities: Capabilities::of_user(id), ..Default::default() };
        let of = |user| Credentials { user, ..Default::default() };
        assert!(user(0).may_signal(&of(Ids::all(7))));
        assert!(user(7).may_signal(&of(Ids { real: 7, effective: 0, saved: 0, file: 0 })));
        assert!(!user(7).may_signal(&of(Ids { real: 0, effective: 7, saved: 0, file: 7 })));
        let parts = Parts::SYSTEM.inside(1, Part::Users.flag());
        let contained = Credentials { parts, ..user(0) };
        assert!(!contained.may_signal(&of(Ids::all(7))) && !contained.has(Capability::Kill));
        assert!(contained.may_signal(&Credentials { parts, ..of(Ids::all(7)) }));
    }
}
