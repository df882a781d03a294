//! The protocol of file systems: what vfs asks of ext2, tmpfs, procfs, devfs. One request at a time and file system; asynchronous (tag in word 6).
//! A node is a number that the file system gives to a file in use. Names and paths come in grants, without NUL, one component.

use crate::GrantId;

protocol! {
    /// File systems. From vfs only. Replies that describe a node: `node`, `mode` (type and permission bits, link count in the high half),
    /// `ids` (uid low, gid high half), `size`, `device` (of special files). Each such reply adds one use of the node, taken back by `Put`.
    pub "fs" = 6;
    /// Mounts the file system on the block device whose service and minor are given (`service` name in the grant, may be empty), `flags`: Linux MS_RDONLY = 1.
    /// → the root node. Word 0: flags of `MOUNTED_*`.
    Mount = 1 { grant: GrantId, bytes: u64, minor: u64, flags: u64 } -> { node: u64, mode: u64, ids: u64, size: u64, device: u64 }
    /// Writes everything back, marks the file system clean, forgets it. `EBUSY`: nodes in use and not forced.
    Unmount = 2 { node: u64, force: bool }
    /// The file `name` in the directory. "." and ".." are never asked ("..": the parent is asked with that name, within the file system).
    Lookup = 3 { directory: u64, grant: GrantId, bytes: u64 } -> { node: u64, mode: u64, ids: u64, size: u64, device: u64 }
    /// Takes back `count` uses.
    Put = 4 { node: u64, count: u64 }
    /// Reads into the grant. → word 0: bytes (0: end).
    Read = 5 { node: u64, grant: GrantId, position: u64, bytes: u64 }
    /// Writes from the grant on behalf of `ids`, who may or may not take reserved blocks. → word 0: bytes; the new size.
    Write = 6 { node: u64, grant: GrantId, position: u64, bytes: u64, ids: u64 } -> { size: u64 }
    /// Fills the grant with `linux_dirent64` records from `position` (0: start; else what the last reply gave). → word 0: bytes (0: end).
    GetDents = 7 { node: u64, grant: GrantId, position: u64, bytes: u64 } -> { position: u64 }
    /// Makes a file, directory, or special file (type in `mode`). `EEXIST`.
    Create = 8 { directory: u64, grant: GrantId, bytes: u64, mode: u64, ids: u64, device: u64 } -> { node: u64, mode: u64, ids: u64, size: u64, device: u64 }
    /// Makes a symbolic link: the grant holds the name, then the target.
    Symlink = 9 { directory: u64, grant: GrantId, name_bytes: u64, target_bytes: u64, ids: u64 }
    /// Reads a symbolic link into the grant. `reader`: pid of the process that follows it (/proc/self depends on it). → word 0: length.
    ReadLink = 10 { node: u64, grant: GrantId, bytes: u64, reader: u64 }
    /// Makes a further name for a node.
    Link = 11 { directory: u64, grant: GrantId, bytes: u64, node: u64 }
    /// Removes a name: a file's, or with `directory_wanted` an empty directory's.
    Unlink = 12 { directory: u64, grant: GrantId, bytes: u64, directory_wanted: bool }
    /// Renames; the grant holds the old name, then the new one.
    Rename = 13 { old_directory: u64, new_directory: u64, grant: GrantId, old_bytes: u64, new_bytes: u64 }
    /// The file's `struct stat` (Linux x86-64, 144 bytes) into the grant; st_dev is vfs's to fill.
    Stat = 14 { node: u64, grant: GrantId }
    /// Permission bits.
    ChMod = 15 { node: u64, mode: u64 }
    /// Owner and group; a half of all ones leaves it. Clears set-id bits of files as Linux does.
    ChOwn = 16 { node: u64, ids: u64 } -> { mode: u64 }
    /// Sets the size.
    Truncate = 17 { node: u64, size: u64 }
    /// Times in ns since 1970; `u64::MAX` leaves one, `u64::MAX - 1` is now.
    SetTimes = 18 { node: u64, accessed_ns: u64, modified_ns: u64 }
    /// Linux `struct statfs` (120 bytes) into the grant.
    StatFs = 19 { node: u64, grant: GrantId }
    /// Writes everything back.
    Sync = 20 { }
    /// vfs, after its own restart: `Use` records of all nodes it holds, in the grant. Every other node has no uses any more. A reply
    /// that is given once more after this (its request came again with the same tag) counts its node's use again.
    SetUses = 21 { grant: GrantId, bytes: u64 }
    /// vfs, for a call that its predecessor had in hand: the reply that was given to the change with this tag (word 6), once more and with its
    /// label. `ENOENT`: no change with this tag has been made.
    Recall = 22 { }
    /// Takes space for what of the file lies in this range and has none yet: zeros as before. `ENOSPC`.
    Allocate = 23 { node: u64, offset: u64, bytes: u64 }
}

/// `Mount`: names may appear and vanish by themselves: vfs keeps no names (procfs, devfs).
pub const MOUNTED_VOLATILE: u64 = 1;
/// `Mount`: mounted read-only although not asked.
pub const MOUNTED_READ_ONLY: u64 = 2;

/// `Mount`: the content is in memory and nowhere else: there is nothing to write back (tmpfs). Its `minor` has the size in KiB in the low half
/// (0: as it likes), and in the high half a number that no other mount has.
pub const MOUNTED_IN_MEMORY: u64 = 4;

/// How often vfs uses a node.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// The node.
    pub node: u64,
    /// Uses.
    pub count: u64,
}
