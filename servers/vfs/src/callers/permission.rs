//! Who may do what with a file: the decision from ids and mode bits, as Linux takes it (path_resolution(7), credentials(7)).
//!
//! The rights of the superuser are capabilities, of which pm tells the effective ones.

use crate::keep::records::IdMaps;
use abi::{Capability, CapabilitySet, Errno, vfs::NO_ID_MAP};
use alloc::vec::Vec;

/// Type bits of a mode.
pub const S_IFMT: u32 = 0o170000;
/// FIFO.
pub const S_IFIFO: u32 = 0o010000;
/// Character device.
pub const S_IFCHR: u32 = 0o020000;
/// Directory.
pub const S_IFDIR: u32 = 0o040000;
/// Block device.
pub const S_IFBLK: u32 = 0o060000;
/// Regular file.
pub const S_IFREG: u32 = 0o100000;
/// Symbolic link.
pub const S_IFLNK: u32 = 0o120000;
/// Socket.
pub const S_IFSOCK: u32 = 0o140000;
/// Set user id.
pub const S_ISUID: u32 = 0o4000;
/// Set group id.
pub const S_ISGID: u32 = 0o2000;
/// Sticky.
pub const S_ISVTX: u32 = 0o1000;

/// Wanted rights, as the bits of one digit of a mode.
pub const READ: u32 = 4;
/// See [`READ`].
pub const WRITE: u32 = 2;
/// Execute a file, search a directory.
pub const EXECUTE: u32 = 1;

/// Ids of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// Effective user.
    pub euid: u32,
    /// Effective group.
    pub egid: u32,
    /// Real user.
    pub uid: u32,
    /// Real group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Effective capabilities.
    pub capabilities: CapabilitySet,
    /// Those with which access(2) judges.
    pub real_capabilities: CapabilitySet,
    /// Of a process in a container with users of its own: whom it knows there. Its capabilities count there only.
    pub contained: Option<IdMaps>,
}

/// What an id is seen as that has none in a container.
const OVERFLOW_ID: u32 = 65534;

fn seen(map: u64, id: u32) -> u32 {
    if map != NO_ID_MAP && (map >> 32) as u32 == id { map as u32 } else { OVERFLOW_ID }
}

fn meant(map: u64, id: u32) -> Result<u32, Errno> {
    if map != NO_ID_MAP && map as u32 == id { Ok((map >> 32) as u32) } else { Err(Errno::EINVAL) }
}

impl Credentials {
    /// Effective user and group, as file systems are told: user low, group high half.
    pub fn ids(&self) -> u64 {
        u64::from(self.euid) | u64::from(self.egid) << 32
    }

    /// With the real ids in place of the effective ones, as access(2) judges.
    pub fn real(&self) -> Credentials {
        Credentials { euid: self.uid, egid: self.gid, capabilities: self.real_capabilities, ..self.clone() }
    }

    /// Whether it has this right of the superuser over the system.
    #[inline]
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.has(capability) && self.contained.is_none()
    }

    /// Whether it has this right over a file: over all, or over those of its container's user and group.
    pub fn has_over(&self, capability: Capability, file: Attributes) -> bool {
        self.capabilities.has(capability)
            && self.contained.is_none_or(|maps| {
                let are_known = (maps.users >> 32) as u32 == file.uid && (maps.groups >> 32) as u32 == file.gid;
                are_known && maps.users != NO_ID_MAP && maps.groups != NO_ID_MAP
            })
    }

    /// Owner and group as the process sees them.
    pub fn seen(&self, (uid, gid): (u32, u32)) -> (u32, u32) {
        match self.contained {
            None => (uid, gid),
            Some(maps) => (seen(maps.users, uid), seen(maps.groups, gid)),
        }
    }

    /// The owner and group that the process means. `EINVAL`: it knows no such.
    pub fn meant(&self, uid: Option<u32>, gid: Option<u32>) -> Result<(Option<u32>, Option<u32>), Errno> {
        match self.contained {
            None => Ok((uid, gid)),
            Some(maps) => Ok((
                uid.map(|uid| meant(maps.users, uid)).transpose()?,
                gid.map(|gid| meant(maps.groups, gid)).transpose()?,
            )),
        }
    }

    /// Whether it has this right over what is its container's.
    pub fn has_inside(&self, capability: Capability) -> bool {
        self.capabilities.has(capability)
    }

    /// A member of this group.
    pub fn in_group(&self, gid: u32) -> bool {
        self.egid == gid || self.groups.contains(&gid)
    }
}

/// What decides about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Type and permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Attributes {
    fn is_type(&self, kind: u32) -> bool {
        self.mode & S_IFMT == kind
    }
}

/// `EACCES` unless the process has all the wanted rights.
pub fn check(who: &Credentials, file: Attributes, wanted: u32) -> Result<(), Errno> {
    let is_directory = file.is_type(S_IFDIR);
    if who.has_over(Capability::DacOverride, file) {
        let executable = is_directory || file.mode & 0o111 != 0;
        return if wanted & EXECUTE == 0 || executable { Ok(()) } else { Err(Errno::EACCES) };
    }
    if who.has_over(Capability::DacReadSearch, file) && (wanted == READ || is_directory && wanted & WRITE == 0) {
        return Ok(());
    }
    let shift = if who.euid == file.uid {
        6
    } else if who.in_group(file.gid) {
        3
    } else {
        0
    };
    if (file.mode >> shift) & wanted == wanted { Ok(()) } else { Err(Errno::EACCES) }
}

/// `EPERM` unless the process owns the file or may act as the owner of any (CAP_FOWNER): chmod, utimensat with given times, flag changes.
pub fn check_owner(who: &Credentials, file: Attributes) -> Result<(), Errno> {
    if who.euid == file.uid || who.has_over(Capability::FileOwner, file) { Ok(()) } else { Err(Errno::EPERM) }
}

/// `EPERM` when the sticky bit of the directory keeps the process from removing or renaming the file.
pub fn check_sticky(who: &Credentials, directory: Attributes, file: Attributes) -> Result<(), Errno> {
    if who.euid == file.uid || may_remove_any(who, directory) { Ok(()) } else { Err(Errno::EPERM) }
}

/// Whether the sticky bit of the directory lets the process remove or rename files of everybody.
pub fn may_remove_any(who: &Credentials, directory: Attributes) -> bool {
    directory.mode & S_ISVTX == 0 || who.euid == directory.uid || who.has(Capability::FileOwner)
}

/// The permission bits that chmod sets: set-group-id is dropped for those who are not in the file's group.
pub fn chmod_bits(who: &Credentials, file: Attributes, mode: u32) -> u32 {
    let mode = mode & 0o7777;
    if who.has(Capability::FileSetId) || who.in_group(file.gid) { mode } else { mode & !S_ISGID }
}

/// `EPERM` unless the process may give the file to these ids (`None` leaves one).
pub fn check_chown(who: &Credentials, file: Attributes, uid: Option<u32>, gid: Option<u32>) -> Result<(), Errno> {
    if who.has(Capability::Chown) || (uid.is_none() && gid.is_none()) {
        return Ok(());
    }
    let owner = who.euid == file.uid;
    let uid_kept = uid.is_none_or(|uid| uid == file.uid);
    let gid_own = gid.is_none_or(|gid| gid == file.gid || who.in_group(gid));
    if owner && uid_kept && gid_own { Ok(()) } else { Err(Errno::EPERM) }
}

/// The permission bits left after somebody without privileges has written to the file: set-id bits go
/// (set-group-id only where it means that, with the group's execute bit).
pub fn after_write(who: &Credentials, mode: u32) -> u32 {
    if who.has(Capability::FileSetId) || mode & S_IFMT != S_IFREG {
        return mode;
    }
    let sgid = if mode & 0o010 != 0 { S_ISGID } else { 0 };
    mode & !(S_ISUID | sgid)
}

/// Mode bits and group of a new file in this directory (set-group-id directories hand on their group, and the bit to directories;
/// executable files of others than the group's members lose it).
pub fn inherit(who: &Credentials, directory: Attributes, mode: u32) -> (u32, u32) {
    if directory.mode & S_ISGID == 0 {
        return (mode, who.egid);
    }
    // Else whoever may write the directory could make programs that run with its group.
    let foreign =
        mode & (S_ISGID | 0o010) == S_ISGID | 0o010 && !who.has(Capability::FileSetId) && !who.in_group(directory.gid);
    match mode & S_IFMT {
        S_IFDIR => (mode | S_ISGID, directory.gid),
        _ if foreign => (mode & !S_ISGID, directory.gid),
        _ => (mode, directory.gid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(euid: u32, egid: u32, groups: &[u32]) -> Credentials {
        let capabilities = if euid == 0 { CapabilitySet::ALL } else { CapabilitySet::EMPTY };
        let groups = groups.to_vec();
        let (real_capabilities, contained) = (capabilities, None);
        Credentials { euid, egid, uid: euid, gid: egid, groups, capabilities, real_capabilities, contained }
    }

    fn file(mode: u32, uid: u32, gid: u32) -> Attributes {
        Attributes { mode, uid, gid }
    }

    #[test]
    fn the_first_class_that_fits_decides() {
        let f = file(S_IFREG | 0o047, 10, 20);
        assert_eq!(check(&user(10, 20, &[]), f, READ), Err(Errno::EACCES));
        assert_eq!(check(&user(11, 20, &[]), f, READ), Ok(()));
        assert_eq!(check(&user(11, 20, &[]), f, WRITE), Err(Errno::EACCES));
        assert_eq!(check(&user(11, 1, &[20]), f, READ | WRITE), Err(Errno::EACCES));
        assert_eq!(check(&user(11, 1, &[]), f, READ | WRITE | EXECUTE), Ok(()));
    }

    #[test]
    fn root_may_all_but_execute_what_nobody_may() {
        let root = user(0, 0, &[]);
        assert_eq!(check(&root, file(S_IFREG, 1, 1), READ | WRITE), Ok(()));
        assert_eq!(check(&root, file(S_IFREG | 0o666, 1, 1), EXECUTE), Err(Errno::EACCES));
        assert_eq!(check(&root, file(S_IFREG | 0o001, 1, 1), EXECUTE), Ok(()));
        assert_eq!(check(&root, file(S_IFDIR, 1, 1), EXECUTE), Ok(()));
    }

    #[test]
    fn sticky_directories_protect_the_files_of_others() {
        let tmp = file(S_IFDIR | S_ISVTX | 0o777, 0, 0);
        let theirs = file(S_IFREG | 0o666, 5, 5);
        assert_eq!(check_sticky(&user(5, 5, &[]), tmp, theirs), Ok(()));
        assert_eq!(check_sticky(&user(6, 6, &[]), tmp, theirs), Err(Errno::EPERM));
        assert_eq!(check_sticky(&user(0, 0, &[]), tmp, theirs), Ok(()));
        assert_eq!(check_sticky(&user(6, 6, &[]), file(S_IFDIR | 0o777, 0, 0), theirs), Ok(()));
    }

    #[test]
    fn only_root_gives_files_away() {
        let f = file(S_IFREG | 0o644, 5, 5);
        assert_eq!(check_chown(&user(5, 5, &[7]), f, None, Some(7)), Ok(()));
        assert_eq!(check_chown(&user(5, 5, &[7]), f, None, Some(8)), Err(Errno::EPERM));
        assert_eq!(check_chown(&user(5, 5, &[7]), f, Some(6), None), Err(Errno::EPERM));
        assert_eq!(check_chown(&user(6, 5, &[]), f, None, Some(5)), Err(Errno::EPERM));
        assert_eq!(check_chown(&user(0, 0, &[]), f, Some(6), Some(6)), Ok(()));
    }

    #[test]
    fn writing_takes_set_id_bits_away() {
        let u = user(5, 5, &[]);
        assert_eq!(after_write(&u, S_IFREG | 0o6755), S_IFREG | 0o755);
        assert_eq!(after_write(&u, S_IFREG | 0o2644), S_IFREG | 0o2644);
        assert_eq!(after_write(&user(0, 0, &[]), S_IFREG | 0o6755), S_IFREG | 0o6755);
    }

    #[test]
    fn set_group_id_directories_hand_on_their_group() {
        let directory = file(S_IFDIR | S_ISGID | 0o775, 0, 42);
        assert_eq!(inherit(&user(5, 6, &[]), directory, S_IFREG | 0o644), (S_IFREG | 0o644, 42));
        assert_eq!(inherit(&user(5, 6, &[]), directory, S_IFDIR | 0o755), (S_IFDIR | S_ISGID | 0o755, 42));
        assert_eq!(inherit(&user(5, 6, &[]), file(S_IFDIR, 0, 42), S_IFREG), (S_IFREG, 6));
        let program = S_IFREG | S_ISGID | 0o775;
        assert_eq!(inherit(&user(5, 6, &[]), directory, program), (S_IFREG | 0o775, 42));
        assert_eq!(inherit(&user(5, 6, &[42]), directory, program), (program, 42));
    }

    #[test]
    fn chmod_drops_set_group_id_for_strangers_to_the_group() {
        let f = file(S_IFREG | 0o644, 5, 9);
        assert_eq!(chmod_bits(&user(5, 5, &[]), f, 0o2755), 0o755);
        assert_eq!(chmod_bits(&user(5, 9, &[]), f, 0o2755), 0o2755);
    }
}
