//! The capabilities of a process, and Linux's rules for changing them (capabilities(7)). Pure.
//!
//! Invariants: what is effective is permitted; what is ambient is permitted and inheritable.

use super::credentials::Ids;
use abi::{Capability, CapabilitySet as Set, Errno, vfs::FileCapabilities};

/// Bits of PR_SET_SECUREBITS. The bit above each locks it.
mod secure {
    /// Executing as root gives no capabilities.
    pub const NO_ROOT: u32 = 1 << 0;
    /// Changes of user ids change no capabilities.
    pub const NO_SETUID_FIXUP: u32 = 1 << 2;
    /// Permitted capabilities outlive that all user ids become others than root's (PR_SET_KEEPCAPS).
    pub const KEEP: u32 = 1 << 4;
    /// No capability becomes ambient.
    pub const NO_AMBIENT_RAISE: u32 = 1 << 6;
    /// All of them.
    pub const ALL: u32 = NO_ROOT | NO_SETUID_FIXUP | KEEP | NO_AMBIENT_RAISE;
    /// The locks.
    pub const LOCKS: u32 = ALL << 1;
}

/// The sets of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    effective: Set,
    permitted: Set,
    inheritable: Set,
    bounding: Set,
    ambient: Set,
    secure_bits: u32,
}

/// How a process executes a file.
#[derive(Clone, Copy, Debug)]
pub struct Exec {
    /// User ids, with the set-user-id bit of the file applied.
    pub user: Ids,
    /// The effective user or group, with the bits of the file applied, is not the real one.
    pub is_set_id: bool,
    /// The capabilities of the file, if it has any.
    pub file: Option<FileCapabilities>,
    /// It gains nothing: PR_SET_NO_NEW_PRIVS, or it is traced by others.
    pub gains_none: bool,
}

/// What an exec makes of the capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AfterExec {
    /// Those of the new program.
    pub capabilities: Capabilities,
    /// The C library must not trust its environment.
    pub is_secure: bool,
    /// It would have gained ids or capabilities, which it must not.
    pub is_reduced: bool,
}

impl Default for Capabilities {
    /// Those of root, with which the first process begins.
    fn default() -> Self {
        Capabilities {
            effective: Set::ALL,
            permitted: Set::ALL,
            inheritable: Set::EMPTY,
            bounding: Set::ALL,
            ambient: Set::EMPTY,
            secure_bits: 0,
        }
    }
}

impl Capabilities {
    /// Those of the superuser if this is its id, else none.
    pub fn of_user(id: u32) -> Capabilities {
        let root = Capabilities::default();
        if id == 0 { root } else { Capabilities { effective: Set::EMPTY, permitted: Set::EMPTY, ..root } }
    }

    /// What counts in calls.
    pub fn effective(&self) -> Set {
        self.effective
    }

    /// What may become effective.
    pub fn permitted(&self) -> Set {
        self.permitted
    }

    /// What an exec keeps where the file agrees.
    pub fn inheritable(&self) -> Set {
        self.inheritable
    }

    /// What an exec can give.
    pub fn bounding(&self) -> Set {
        self.bounding
    }

    /// What an exec keeps.
    pub fn ambient(&self) -> Set {
        self.ambient
    }

    /// PR_GET_SECUREBITS.
    pub fn secure_bits(&self) -> u32 {
        self.secure_bits
    }

    fn is_secure(&self, bits: u32) -> bool {
        self.secure_bits & bits != 0
    }

    /// Those with which access(2) judges: of the real user.
    pub fn of_real_user(&self, real: u32) -> Set {
        match real {
            _ if self.is_secure(secure::NO_SETUID_FIXUP) => self.effective,
            0 => self.permitted,
            _ => Set::EMPTY,
        }
    }

    /// capset(2). `EPERM`.
    pub fn set(&mut self, effective: Set, permitted: Set, inheritable: Set) -> Result<(), Errno> {
        let may_inherit = match self.effective.has(Capability::SetCapabilities) {
            true => Set::ALL,
            false => self.inheritable.union(self.permitted),
        };
        let is_allowed = may_inherit.contains(inheritable)
            && self.inheritable.union(self.bounding).contains(inheritable)
            && self.permitted.contains(permitted)
            && permitted.contains(effective);
        if !is_allowed {
            return Err(Errno::EPERM);
        }
        let ambient = self.ambient.intersection(permitted).intersection(inheritable);
        *self = Capabilities { effective, permitted, inheritable, ambient, ..*self };
        Ok(())
    }

    /// PR_CAPBSET_DROP. `EINVAL`: no such capability; `EPERM`.
    pub fn drop_bounding(&mut self, number: u64) -> Result<(), Errno> {
        if !self.effective.has(Capability::SetCapabilities) {
            return Err(Errno::EPERM);
        }
        self.bounding = self.bounding.without(Set::numbered(number).ok_or(Errno::EINVAL)?);
        Ok(())
    }

    /// PR_SET_SECUREBITS. `EPERM`: a locked bit, a lock that is released, an unknown bit, or no right to change any.
    pub fn set_secure_bits(&mut self, bits: u64) -> Result<(), Errno> {
        let old = u64::from(self.secure_bits);
        let locks = old & u64::from(secure::LOCKS);
        let is_locked = locks >> 1 & (old ^ bits) != 0 || locks & !bits != 0;
        let is_unknown = bits & !u64::from(secure::ALL | secure::LOCKS) != 0;
        if is_locked || is_unknown || !self.effective.has(Capability::SetCapabilities) {
            return Err(Errno::EPERM);
        }
        self.secure_bits = bits as u32;
        Ok(())
    }

    /// PR_GET_KEEPCAPS.
    pub fn are_kept(&self) -> bool {
        self.is_secure(secure::KEEP)
    }

    /// PR_SET_KEEPCAPS. `EPERM`: it is locked.
    pub fn keep(&mut self, keeps: bool) -> Result<(), Errno> {
        if self.is_secure(secure::KEEP << 1) {
            return Err(Errno::EPERM);
        }
        self.secure_bits = if keeps { self.secure_bits | secure::KEEP } else { self.secure_bits & !secure::KEEP };
        Ok(())
    }

    /// PR_CAP_AMBIENT_RAISE. `EPERM`: it is not permitted and inheritable, or this is switched off.
    pub fn raise_ambient(&mut self, which: Set) -> Result<(), Errno> {
        let may = self.permitted.contains(which) && self.inheritable.contains(which);
        if !may || self.is_secure(secure::NO_AMBIENT_RAISE) {
            return Err(Errno::EPERM);
        }
        self.ambient = self.ambient.union(which);
        Ok(())
    }

    /// PR_CAP_AMBIENT_LOWER, PR_CAP_AMBIENT_CLEAR_ALL.
    pub fn lower_ambient(&mut self, which: Set) {
        self.ambient = self.ambient.without(which);
    }

    /// The user ids have changed by setuid(2) or a relative.
    pub fn follow_user(&mut self, old: &Ids, new: &Ids) {
        if self.is_secure(secure::NO_SETUID_FIXUP) {
            return;
        }
        if old.has(0) && !new.has(0) {
            if !self.are_kept() {
                self.permitted = Set::EMPTY;
                self.effective = Set::EMPTY;
            }
            self.ambient = Set::EMPTY;
        }
        match (old.effective, new.effective) {
            (0, 0) => {}
            (0, _) => self.effective = Set::EMPTY,
            (_, 0) => self.effective = self.permitted,
            _ => {}
        }
    }

    /// The user id of file accesses has changed by setfsuid(2).
    pub fn follow_file_user(&mut self, old: u32, new: u32) {
        if self.is_secure(secure::NO_SETUID_FIXUP) {
            return;
        }
        match (old, new) {
            (0, 0) => {}
            (0, _) => self.effective = self.effective.without(Set::OF_FILES),
            (_, 0) => self.effective = self.effective.union(self.permitted.intersection(Set::OF_FILES)),
            _ => {}
        }
    }

    /// execve(2). `EPERM`: the file's are to be effective at once, and the bounding set forbids some.
    pub fn after_exec(&self, exec: &Exec) -> Result<AfterExec, Errno> {
        let file = exec.file.unwrap_or_default();
        let mut permitted =
            self.bounding.intersection(file.permitted).union(self.inheritable.intersection(file.inheritable));
        if file.are_effective && !permitted.contains(file.permitted) {
            return Err(Errno::EPERM);
        }
        let mut are_effective = file.are_effective;
        let (real, effective) = (exec.user.real, exec.user.effective);
        // A set-user-id program of root's that has capabilities of its own gets those alone.
        let is_narrowed = exec.file.is_some() && effective == 0 && real != 0;
        if !self.is_secure(secure::NO_ROOT) && !is_narrowed {
            if effective == 0 || real == 0 {
                permitted = self.bounding.union(self.inheritable);
            }
            are_effective |= effective == 0;
        }
        let is_reduced = exec.gains_none && (exec.is_set_id || !self.permitted.contains(permitted));
        if is_reduced {
            permitted = permitted.intersection(self.permitted);
        }
        let ambient = if exec.file.is_some() || exec.is_set_id { Set::EMPTY } else { self.ambient };
        let permitted = permitted.union(ambient);
        let effective = if are_effective { permitted } else { ambient };
        let is_secure = exec.is_set_id || real != 0 && (are_effective || !ambient.contains(permitted));
        let secure_bits = self.secure_bits & !secure::KEEP;
        let capabilities = Capabilities { effective, permitted, ambient, secure_bits, ..*self };
        Ok(AfterExec { capabilities, is_secure, is_reduced })
    }
}

#[cfg(test)]
#[path = "capabilities_tests.rs"]
mod tests;
