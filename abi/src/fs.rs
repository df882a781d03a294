//! The protocol of file systems: requests of vfs to ext2, tmpfs, procfs and devfs. Asynchronous (tag in word 6).
//! A node is a number that the file system gives to a file in use. Names and paths come in grants, without NUL, one component; a short name
//! of a `Create`, an `Unlink` or an `UnlinkUnused` in the request itself ([`ShortName`]).

use crate::GrantId;

protocol! {
    /// File systems. From vfs only. Replies that describe a node: `node`, `mode` (type and permission bits, link count in the high half),
    /// `ids` (uid low, gid high half), `size`, `device` (of special files). Each such reply adds one use of the node; `Put` drops it.
    pub "fs" = 6;
    /// Mounts the file system on the block device whose service and minor are given (`service` name in the grant, may be empty), `flags`: Linux MS_RDONLY = 1.
    /// Returns the root node. Word 0 of the reply: flags `MOUNTED_*`.
    Mount = 1 { grant: GrantId, bytes: u64, minor: u64, flags: u64 } -> { node: u64, mode: u64, ids: u64, size: u64, device: u64 }
    /// Writes everything back, marks the file system clean and unmounts it. `EBUSY`: nodes are in use, and it is not forced.
    Unmount = 2 { node: u64, force: bool }
    /// Returns the node of `name` in the directory. vfs resolves "." itself, and ".." at the root of the file system. With `room` for it (144 bytes)
    /// the grant gets the node's `struct stat` in the place of the name.
    Lookup = 3 { directory: u64, grant: GrantId, bytes: u64, room: u64 } -> { node: u64, mode: u64, ids: u64, size: u64, device: u64 }
    /// Drops `count` uses of a node.
    Put = 4 { node: u64, count: u64 }
    /// Reads into the grant. Word 0 of the reply: bytes read (0: end of file); then the time of last access, in ns since 1970, `u64::MAX` if the
    /// read has left it as it was. `kept`: vfs keeps what it gets, so the file system need not.
    Read = 5 { node: u64, grant: GrantId, position: u64, bytes: u64, kept: bool } -> { accessed_ns: u64 }
    /// Writes from the grant, and removes the capabilities of a program, as other changes of content and owner do. `ids` decide whether
    /// reserved blocks may be used. `written_ns`: when a program has written it, in ns since 1970; 0: now. Word 0 of the reply: bytes written;
    /// then the new size.
    Write = 6 { node: u64, grant: GrantId, position: u64, bytes: u64, ids: u64, written_ns: u64 } -> { size: u64 }
    /// Fills the grant with `linux_dirent64` records from `position` (0: start; else the last reply's). Word 0 of the reply: bytes (0: end).
    /// `accessed_ns`: as of `Read`. At the position `DIRECTORY_END` there is nothing; no position is above.
    GetDents = 7 { node: u64, grant: GrantId, position: u64, bytes: u64 } -> { position: u64, accessed_ns: u64 }
    /// Makes a file, directory, or special file (type in `mode`). `name` and `bytes`: a `ShortName`, or the grant that holds the name and its
    /// length. `EEXIST`. Without a name (`bytes` 0) a regular file that ends with its last
    /// use, unless `Link` gives it a name; `EOPNOTSUPP`.
    Create = 8 { directory: u64, name: u64, bytes: u64, mode: u64, ids: u64, device: u64 } -> { node: u64, mode: u64, ids: u64, size: u64, device: u64 }
    /// Makes a symbolic link: the grant holds the name, then the target.
    Symlink = 9 { directory: u64, grant: GrantId, name_bytes: u64, target_bytes: u64, ids: u64 }
    /// Reads a symbolic link into the grant. `reader`: pid (low half) and endpoint (high half) of the
    /// thread that follows it: /proc/self and /proc/thread-self depend on it. Word 0 of the reply: length. For a link of /proc that leads into
    /// a process: the `pid` of that one, else 0, and the `descriptor` whose open file it stands for, or `LINK_PROGRAM`, `LINK_OTHER`.
    ReadLink = 10 { node: u64, grant: GrantId, bytes: u64, reader: u64 } -> { pid: u64, descriptor: u64 }
    /// Makes a hard link to a node.
    Link = 11 { directory: u64, grant: GrantId, bytes: u64, node: u64 }
    /// Unlinks a name of `node`, given as to `Create`: a file's, or with `directory_wanted` an empty directory's. Then drops `uses` uses of the node, as `Put` does; if
    /// it fails, none.
    Unlink = 12 { directory: u64, name: u64, bytes: u64, directory_wanted: bool, node: u64, uses: u64 }
    /// Renames; the grant holds the old name, then the new one. `flags`: 0; `RENAME_EXCHANGE`, which swaps the two names: `ENOENT`
    /// without the second, `EINVAL` if one is a directory above the other; or `RENAME_WHITEOUT`, which leaves a whiteout (a character device
    /// with number 0 and no permissions) under the old name: its owner (low half) and group follow the names in the grant.
    Rename = 13 { old_directory: u64, new_directory: u64, grant: GrantId, old_bytes: u64, new_bytes: u64, flags: u64 }
    /// Copies the file's `struct stat` (Linux x86-64, 144 bytes) into the grant; vfs fills st_dev.
    Stat = 14 { node: u64, grant: GrantId }
    /// Sets the permission bits. Returns, as `ChOwn` and `SetTimes` do, what the file's `struct stat` says since: `mode` (with the link count in the
    /// high half), `blocks` of 512 bytes, and its times in ns since 1970; `u64::MAX`: one that has no such number.
    ChMod = 15 { node: u64, mode: u64 } -> { mode: u64, blocks: u64, accessed_ns: u64, modified_ns: u64, changed_ns: u64 }
    /// Sets owner and group; a half of all ones leaves it unchanged. Clears the set-id bits of files as Linux does. Returns what
    /// `ChMod` does.
    ChOwn = 16 { node: u64, ids: u64 } -> { mode: u64, blocks: u64, accessed_ns: u64, modified_ns: u64, changed_ns: u64 }
    /// Truncates or extends the file to this size.
    Truncate = 17 { node: u64, size: u64 }
    /// Sets the times, in ns since 1970; `u64::MAX` leaves one unchanged, `u64::MAX - 1` is the present time. Returns what
    /// `ChMod` does.
    SetTimes = 18 { node: u64, accessed_ns: u64, modified_ns: u64 } -> { mode: u64, blocks: u64, accessed_ns: u64, modified_ns: u64, changed_ns: u64 }
    /// Copies `struct statfs` (Linux x86-64, 120 bytes) into the grant.
    StatFs = 19 { node: u64, grant: GrantId }
    /// Writes everything back.
    Sync = 20 { }
    /// Restores the uses after a restart of vfs: the grant holds `Use` records of all nodes that vfs has; every other node is
    /// released. A reply repeated after this (its request came again with the same tag) counts its node's use again.
    SetUses = 21 { grant: GrantId, bytes: u64 }
    /// Repeats the reply, label included, to the change with this tag (word 6): a restarted vfs asks for the calls that its
    /// predecessor had in progress. `ENOENT`: no change with this tag was made.
    Recall = 22 { }
    /// Changes the space that this range of the file has, and not its size. `mode`: `ALLOCATE_*`. `EFBIG`, `ENOSPC`.
    Allocate = 23 { node: u64, offset: u64, bytes: u64, mode: u64 }
    /// Copies between two files of one file system, or within one if the ranges are apart. `ids` as of `Write`. Word 0 of the reply: bytes
    /// copied (0: end of the source); then the new size of the target, and the time of last access of the source, in ns since 1970. `EXDEV`.
    CopyRange = 24 { from: u64, from_position: u64, to: u64, to_position: u64, bytes: u64, ids: u64 } -> { size: u64, accessed_ns: u64 }
    /// Reads an extended attribute: the grant holds its name, and gets the value behind it. Word 0 of the reply: length of the value.
    /// `ENODATA`, `EOPNOTSUPP`.
    GetXattr = 25 { node: u64, grant: GrantId, name_bytes: u64 }
    /// Sets an extended attribute: the grant holds its name, then the value. `flags`: Linux XATTR_CREATE = 1, XATTR_REPLACE = 2; `ids` as
    /// of `Write`. `EEXIST`, `ENODATA`, `ENOSPC`, `EOPNOTSUPP`.
    SetXattr = 26 { node: u64, grant: GrantId, name_bytes: u64, value_bytes: u64, flags: u64, ids: u64 }
    /// Removes the extended attribute whose name the grant holds. `ENODATA`, `EOPNOTSUPP`.
    RemoveXattr = 27 { node: u64, grant: GrantId, bytes: u64 }
    /// Fills the grant with the names of all extended attributes, each with a NUL behind it. Word 0 of the reply: their length. `ERANGE`: they
    /// are longer than `bytes`; `EOPNOTSUPP`.
    ListXattr = 28 { node: u64, grant: GrantId, bytes: u64 }
    /// Looks for data, or for a hole, from a position of a file on. Word 0 of the reply: 1, and where it begins; or 0, and where to go on looking.
    /// The end of the file is a hole. `ENXIO`: the position is behind the end, or no data follows.
    SeekData = 29 { node: u64, position: u64, hole: bool } -> { position: u64 }
    /// Returns what names the file on its file system as long as it exists, and no other file ever. `EOPNOTSUPP`.
    Handle = 30 { node: u64 } -> { inode: u64, generation: u64 }
    /// Returns the node of the file with this handle on the file system of `root`, one of its nodes. `ESTALE`: there is none;
    /// `EOPNOTSUPP`.
    OpenHandle = 31 { root: u64, inode: u64, generation: u64 } -> { node: u64, mode: u64, ids: u64, size: u64, device: u64 }
    /// Unlinks a name, given as to `Create`, of a file that vfs does not have in use. Returns its node, of which another file may get the number; 0: it has more
    /// names. `EBUSY`: vfs has it in use. `EISDIR`.
    UnlinkUnused = 32 { directory: u64, name: u64, bytes: u64 } -> { node: u64 }
    /// Drops uses, as `Put` does, of all nodes that the `Use` records in the grant name, at most `PUT_ALL_MOST`.
    PutAll = 33 { grant: GrantId, bytes: u64 }
}

/// `PutAll`: records in one request at most.
pub const PUT_ALL_MOST: usize = 64;

/// `ReadLink`: the link stands for something else than an open file or the program.
pub const LINK_OTHER: u64 = u64::MAX;
/// `ReadLink`: the link stands for the file that the process executes.
pub const LINK_PROGRAM: u64 = u64::MAX - 1;

/// A node is the number of a volume of its file system above these bits, and in them what `st_ino` says of the file.
pub const INODE_BITS: u32 = 56;

/// What `st_ino` says of a node.
pub const fn inode_of(node: u64) -> u64 {
    node & ((1 << INODE_BITS) - 1)
}

/// The volume of a node: for one of procfs, the tree that it is in.
pub const fn volume_of(node: u64) -> u64 {
    node >> INODE_BITS
}

/// The node of /proc/PID on a file system of the kind proc: procfs and vfs know the process behind it by its number.
pub const fn process_folder(pid: u32) -> u64 {
    (pid as u64) << 40 | 2
}

/// The process of `process_folder`. `None`: the node is of something else.
pub const fn process_of_folder(node: u64) -> Option<u32> {
    let pid = (node >> 40) as u32;
    if pid != 0 && node == process_folder(pid) { Some(pid) } else { None }
}

/// The tree of procfs that shows the processes of a container: `Mount::minor` of a file system of the kind proc.
pub const fn tree_of_container(container: u8) -> u64 {
    if container == 0 { TREE_PROC } else { TREE_SYS + container as u64 }
}

/// Whether a node of a file system of the kind proc belongs to a process.
pub const fn is_of_process(node: u64) -> bool {
    node >> 40 & 0xffff != 0
}

/// `Mount`: names appear and vanish without a request, so vfs must not cache them (procfs, devpts), unless it is `MOUNTED_FIXED` (devfs).
pub const MOUNTED_VOLATILE: u64 = 1;
/// `Mount`: mounted read-only although read-write was requested.
pub const MOUNTED_READ_ONLY: u64 = 2;

/// `Mount`: the content is in memory only, so there is nothing to write back (tmpfs). The low half of its `minor` is the size in KiB
/// (0: the file system's default), the high half a number that no other mount has.
pub const MOUNTED_IN_MEMORY: u64 = 4;
/// `Mount`: what names mean, and which there are, never changes, and attributes by requests alone: vfs may keep them although the file system is
/// volatile.
pub const MOUNTED_FIXED: u64 = 8;
/// `Mount`: the file system has a journal, so its type is ext3.
pub const MOUNTED_JOURNAL: u64 = 16;

/// `Mount`, to procfs: the low half of `minor` for the tree of processes.
pub const TREE_PROC: u64 = 0;
/// `Mount`, to procfs: the low half of `minor` for sysfs.
pub const TREE_SYS: u64 = 1;

/// Position of a directory behind its last name, of file systems that say so. All others are below: vfs preserves so many bits of the position of an open file.
pub const DIRECTORY_END: u64 = (1 << 48) - 1;

/// `Allocate`: allocates blocks for the holes before the end of the file; they read as zeros.
pub const ALLOCATE_FILL: u64 = 0;
/// `Allocate`: as `ALLOCATE_FILL`, and checks that there is space for the part beyond the end, which is not reserved.
pub const ALLOCATE_CHECK: u64 = 1;
/// `Allocate`: frees the blocks, and zeroes the parts of blocks at both ends of the range.
pub const ALLOCATE_PUNCH: u64 = 2;
/// `Allocate`: zeroes what is allocated; holes stay.
pub const ALLOCATE_ZERO: u64 = 3;

/// `Rename`: both names exist, and are swapped at once.
pub const RENAME_EXCHANGE: u64 = 2;
/// `Rename`: a whiteout gets the old name.
pub const RENAME_WHITEOUT: u64 = 4;

/// Bytes of the longest [`ShortName`].
pub const SHORT_NAME_MAX: usize = 15;

/// A name of up to 15 bytes in two words of a request: the name, and in the last byte its length. The length of a granted name, below 2^56,
/// leaves that byte 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortName([u8; 16]);

impl ShortName {
    /// `None`: the name is empty or too long, and has to be granted.
    #[inline]
    pub fn new(text: &[u8]) -> Option<ShortName> {
        let mut name = [0; 16];
        if text.is_empty() || text.len() > SHORT_NAME_MAX {
            return None;
        }
        name[..text.len()].copy_from_slice(text);
        name[SHORT_NAME_MAX] = text.len() as u8;
        Some(ShortName(name))
    }

    /// Encodes it as the words `name` and `bytes`.
    #[inline]
    pub fn words(self) -> (u64, u64) {
        let bits = u128::from_le_bytes(self.0);
        (bits as u64, (bits >> 64) as u64)
    }

    /// Decodes these words. `None`: the name is granted.
    #[inline]
    pub fn from_words(name: u64, bytes: u64) -> Option<ShortName> {
        let text = (u128::from(name) | u128::from(bytes) << 64).to_le_bytes();
        (1..=SHORT_NAME_MAX as u8).contains(&text[SHORT_NAME_MAX]).then_some(ShortName(text))
    }

    /// Returns the name.
    #[inline]
    pub fn text(&self) -> &[u8] {
        &self.0[..usize::from(self.0[SHORT_NAME_MAX]).min(SHORT_NAME_MAX)]
    }
}

/// The uses that vfs has of a node.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// The node.
    pub node: u64,
    /// Number of uses.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_in_the_words_and_a_granted_one_is_told_from_it() {
        for text in [&b"a"[..], b"file1234", b"fifteen bytes l"] {
            let (name, bytes) = ShortName::new(text).unwrap().words();
            assert_eq!(ShortName::from_words(name, bytes).unwrap().text(), text);
        }
        assert_eq!((ShortName::new(b""), ShortName::new(b"sixteen bytes lo")), (None, None));
        for bytes in [0, 1, 255, (1 << 56) - 1, 16 << 56, u64::MAX] {
            assert_eq!(ShortName::from_words(7, bytes), None, "{bytes:#x}");
        }
    }
}
