//! The `FileSystem` trait, which the server loop calls, and the types of its arguments and results. The file is long because
//! the trait has a method for each request, with what each promises.
//!
//! A node is named by its inode number. The loop resolves paths, checks search permission and moves messages; the file system knows
//! directories, data and attributes. Names are single components, never empty and without `/`. No method blocks on anything but the device.

use alloc::vec::Vec;

use crate::flights::Arrival;
use abi::{Endpoint, Errno};

/// Inode number.
pub type NodeId = u64;

/// Longest name of a directory entry, in bytes.
pub const NAME_MAX: usize = 255;

/// Bits of a mode that tell the kind of node.
pub const S_IFMT: u32 = 0o170_000;
/// Socket.
pub const S_IFSOCK: u32 = 0o140_000;
/// Symbolic link.
pub const S_IFLNK: u32 = 0o120_000;
/// Regular file.
pub const S_IFREG: u32 = 0o100_000;
/// Block device.
pub const S_IFBLK: u32 = 0o060_000;
/// Directory.
pub const S_IFDIR: u32 = 0o040_000;
/// Character device.
pub const S_IFCHR: u32 = 0o020_000;
/// Named pipe.
pub const S_IFIFO: u32 = 0o010_000;
/// Set user id on execution.
pub const S_ISUID: u32 = 0o4000;
/// Set group id on execution; on a directory, new nodes get its group.
pub const S_ISGID: u32 = 0o2000;
/// Execution by the group.
pub const S_IXGRP: u32 = 0o010;

/// A point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 00:00 UTC.
    pub seconds: i64,
    /// Nanoseconds within the second, below 10^9.
    pub nanos: u32,
}

/// The user on whose behalf a request is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// Identifies a write, which has the same number when it is made again after a death. 0: not known.
    pub write: u64,
}

/// Who follows a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub thread: Endpoint,
}

/// Attributes of a node, for `stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Inode number.
    pub node: NodeId,
    /// Kind and permission bits.
    pub mode: u32,
    /// Directory entries that name the node.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device node, in Linux's encoding of user space.
    pub device: u64,
    /// Size in bytes.
    pub size: u64,
    /// Preferred size of a transfer, in bytes.
    pub block_size: u32,
    /// Space taken, in units of 512 bytes.
    pub blocks: u64,
    /// Last access.
    pub accessed: Timestamp,
    /// Last change of the content.
    pub modified: Timestamp,
    /// Last change of the node.
    pub changed: Timestamp,
}

impl Attributes {
    /// Whether the node is a directory.
    pub fn is_directory(&self) -> bool {
        self.mode & S_IFMT == S_IFDIR
    }

    /// Whether the node is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.mode & S_IFMT == S_IFLNK
    }
}

/// Figures of a file system, for `statfs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Magic number of the format, as Linux reports it.
    pub kind: u64,
    /// Bytes of a block.
    pub block_size: u64,
    /// Blocks for data.
    pub blocks: u64,
    /// Free blocks.
    pub blocks_free: u64,
    /// Free blocks that an ordinary user may take.
    pub blocks_available: u64,
    /// Inodes.
    pub nodes: u64,
    /// Free inodes.
    pub nodes_free: u64,
    /// Identity of the file system.
    pub id: u64,
    /// Whether it refuses every change.
    pub read_only: bool,
}

/// Receives the bytes of a read, in order.
pub trait DataSink {
    /// Accepts the next bytes. `EFAULT` if the caller's buffer is not writable.
    fn put(&mut self, data: &[u8]) -> Result<(), Errno>;

    /// Accepts `len` bytes of zero.
    fn put_zeros(&mut self, len: usize) -> Result<(), Errno> {
        const ZEROS: [u8; 1024] = [0; 1024];
        let mut rest = len;
        while rest > 0 {
            let chunk = rest.min(ZEROS.len());
            self.put(&ZEROS[..chunk])?;
            rest -= chunk;
        }
        Ok(())
    }
}

/// Supplies the bytes of a write, in order.
pub trait DataSource {
    /// Fills `buffer` with the next bytes. `EFAULT` if the caller's buffer is not readable; the content of
    /// `buffer` is unspecified then.
    fn take(&mut self, buffer: &mut [u8]) -> Result<(), Errno>;
}

/// Receives the entries of a directory, in order.
pub trait EntrySink {
    /// Accepts one entry; `next` is the position at which the listing continues after it, and `mode` has
    /// the kind bits of the node, or 0 if they are unknown. Returns false if the entry does not fit.
    fn entry(&mut self, node: NodeId, next: u64, mode: u32, name: &[u8]) -> bool;
}

/// New times of a node; `None` keeps a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewTimes {
    /// Last access.
    pub accessed: Option<Timestamp>,
    /// Last change of the content.
    pub modified: Option<Timestamp>,
}

/// A change of the space that a range of a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// The holes before the end of the file get blocks, which read as zeros.
    Fill,
    /// As `Fill`, and there must be space for what lies beyond the end.
    FillAndCheck,
    /// Blocks are freed, and the rest of the range is zeroed.
    Punch,
    /// Allocated blocks are zeroed, and holes stay.
    Zero,
}

/// What setting an extended attribute expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XattrMode {
    /// Nothing.
    Any,
    /// The attribute does not exist.
    Create,
    /// It exists.
    Replace,
}

/// A mounted file system.
///
/// Every method fails with `EIO` if the device fails, `EUCLEAN` if it meets a corrupt structure, `ESTALE`
/// for a node that does not exist, and every change fails with `EROFS` on a read-only file system. Further
/// errors are listed at the methods.
///
/// The default methods suit a read-only file system: they refuse changes and do not count users.
pub trait FileSystem {
    /// Whether names appear and vanish without a request, so that look-ups may not be cached.
    fn is_volatile(&self) -> bool {
        false
    }

    /// Whether there are the same names always, and attributes change by requests alone, so that a volatile one may be cached all the same.
    fn is_fixed(&self) -> bool {
        false
    }

    /// Whether the content exists in memory only.
    fn is_in_memory(&self) -> bool {
        false
    }

    /// Whether it has a journal.
    fn has_journal(&self) -> bool {
        false
    }

    /// Returns memory that it does not need any more. Called now and then, between requests.
    fn trim(&mut self) {}

    /// Whether some node other than the root has users.
    fn is_busy(&self) -> bool {
        false
    }

    /// Returns the root directory.
    fn root(&self) -> NodeId;

    /// Returns the attributes of a node.
    fn attributes(&mut self, node: NodeId) -> Result<Attributes, Errno>;

    /// Returns the size of a regular file, which the reply to each write tells. Errors as of `attributes`.
    fn size(&mut self, node: NodeId) -> Result<u64, Errno> {
        Ok(self.attributes(node)?.size)
    }

    /// Looks `name` up in `dir`, `.` and `..` included; `..` of the root is the root.
    /// `ENOTDIR`, `ENOENT`, `ENAMETOOLONG`.
    fn lookup(&mut self, dir: NodeId, name: &[u8]) -> Result<NodeId, Errno>;

    /// Returns the generation of a node: two files that have the same number one after the other differ in it. `EOPNOTSUPP`.
    fn generation(&mut self, _node: NodeId) -> Result<u32, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Returns the node with this number and generation, if there is a file that has them. `ESTALE`, `EOPNOTSUPP`.
    fn by_handle(&mut self, _number: u64, _generation: u32) -> Result<NodeId, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Increments the use count of the node: the node outlives its last name while it is in use.
    fn get(&mut self, _node: NodeId) -> Result<(), Errno> {
        Ok(())
    }

    /// Subtracts `count` from the use count. Frees the node if it has neither users nor names left.
    /// `EINVAL` if the node has fewer users. May follow `unlink` and `remove_dir` in one request.
    fn put(&mut self, _node: NodeId, _count: u32) -> Result<(), Errno> {
        Ok(())
    }

    /// Copies up to `len` bytes from `offset` on to `sink`. Returns the number of bytes, 0 at the end of the
    /// file. `EISDIR`, `EINVAL` for a node without data, the sink's error if nothing was copied.
    fn read(&mut self, node: NodeId, offset: u64, len: usize, sink: &mut dyn DataSink) -> Result<usize, Errno>;

    /// The caller of the read that has just copied `bytes` bytes from `offset` on keeps them: the file system need not.
    fn forget_content(&mut self, _node: NodeId, _offset: u64, _bytes: usize) {}

    /// Copies `len` bytes from `source` to `offset`. Returns the number of bytes, fewer at a limit.
    /// `EISDIR`, `EINVAL`, `EFBIG`, `ENOSPC`, the source's error if nothing was copied.
    fn write(
        &mut self,
        _node: NodeId,
        _offset: u64,
        _len: usize,
        _source: &mut dyn DataSource,
        _caller: Caller,
    ) -> Result<usize, Errno> {
        Err(Errno::EROFS)
    }

    /// A write that has just been carried out was made by a program at this time, in ns since 1970; 0: now.
    fn set_written(&mut self, _node: NodeId, _written_ns: u64) -> Result<(), Errno> {
        Ok(())
    }

    /// The time of last access that the last read or listing has set, if it has set one; once.
    fn take_accessed(&mut self) -> Option<Timestamp> {
        None
    }

    /// Lists the entries of `dir` from `position` on (0, or the `next` of an entry) until `sink` is full.
    /// Returns the position to continue at. `ENOTDIR`.
    fn read_dir(&mut self, dir: NodeId, position: u64, sink: &mut dyn EntrySink) -> Result<u64, Errno>;

    /// Creates a node that is neither directory nor symbolic link; `mode` has its kind, `device` the number
    /// of a device node. `EEXIST`, `ENOTDIR`, `ENAMETOOLONG`, `ENOSPC`, `EINVAL` for another kind.
    fn make_node(
        &mut self,
        _dir: NodeId,
        _name: &[u8],
        _mode: u32,
        _device: u64,
        _caller: Caller,
    ) -> Result<NodeId, Errno> {
        Err(Errno::EROFS)
    }

    /// Creates a regular file without a name, near `dir`, with one user. `ENOSPC`, `EOPNOTSUPP`.
    fn make_nameless(&mut self, _dir: NodeId, _mode: u32, _caller: Caller) -> Result<NodeId, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Creates a directory. Errors as `make_node`, and `EMLINK`.
    fn make_dir(&mut self, _dir: NodeId, _name: &[u8], _mode: u32, _caller: Caller) -> Result<NodeId, Errno> {
        Err(Errno::EROFS)
    }

    /// Creates a symbolic link to `target`. Errors as `make_node`; `ENAMETOOLONG` also for the target.
    fn make_symlink(&mut self, _dir: NodeId, _name: &[u8], _target: &[u8], _caller: Caller) -> Result<NodeId, Errno> {
        Err(Errno::EROFS)
    }

    /// Copies the target of a symbolic link into `target`, truncated to its length. Returns the number of
    /// bytes. `EINVAL` if the node is no symbolic link.
    fn read_link(&mut self, _node: NodeId, _target: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// As `read_link`, for a link whose target depends on who follows it (/proc/self).
    fn read_link_for(&mut self, node: NodeId, _reader: Reader, target: &mut [u8]) -> Result<usize, Errno> {
        self.read_link(node, target)
    }

    /// The process that a link leads into, and the descriptor that it stands for, or `LINK_*` of `abi::fs` (/proc/PID/fd).
    fn process_behind(&self, _node: NodeId) -> Option<(u32, u64)> {
        None
    }

    /// Creates a hard link to `node`. `EPERM` for a directory, `EEXIST`, `EMLINK`, `ENOSPC`.
    fn link(&mut self, _dir: NodeId, _name: &[u8], _node: NodeId, _caller: Caller) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Removes a name of a node that is no directory. `ENOENT`, `EISDIR`.
    fn unlink(&mut self, _dir: NodeId, _name: &[u8]) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// As `unlink`, of a node without users. Returns the node; `None`: it has more names. `EBUSY`: it has users.
    fn unlink_unused(&mut self, _dir: NodeId, _name: &[u8]) -> Result<Option<NodeId>, Errno> {
        Err(Errno::EROFS)
    }

    /// Removes an empty directory. `ENOENT`, `ENOTDIR`, `ENOTEMPTY`, `EINVAL` for `.`.
    fn remove_dir(&mut self, _dir: NodeId, _name: &[u8]) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Renames a node, replacing an existing one. `ENOENT`; `EINVAL` into its own subtree; `EISDIR`,
    /// `ENOTDIR`, `ENOTEMPTY` when the two do not match; `EBUSY` for `.` and `..`; `EMLINK`, `ENOSPC`.
    fn rename(
        &mut self,
        _old_dir: NodeId,
        _old_name: &[u8],
        _new_dir: NodeId,
        _new_name: &[u8],
        _caller: Caller,
    ) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Renames a node as [`FileSystem::rename`] does, and leaves a whiteout of the caller under the old name, unless both names are those of
    /// one node. `EINVAL`: the file system has no whiteouts.
    fn rename_leaving_whiteout(
        &mut self,
        _old_dir: NodeId,
        _old_name: &[u8],
        _new_dir: NodeId,
        _new_name: &[u8],
        _caller: Caller,
    ) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    /// Swaps two names of nodes of any kinds. `ENOENT`; `EINVAL` if one is a directory above the other; `EBUSY` for `.` and `..`;
    /// `EMLINK`, `ENOSPC`.
    fn exchange(
        &mut self,
        _first_dir: NodeId,
        _first_name: &[u8],
        _second_dir: NodeId,
        _second_name: &[u8],
    ) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Truncates or extends a regular file to `size` bytes. `EISDIR`, `EINVAL`, `EFBIG`.
    fn truncate(&mut self, _node: NodeId, _size: u64) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Changes the space that a range of a regular file has; the file keeps its size. `EISDIR`, `EINVAL`, `EFBIG`, `ENOSPC`.
    fn allocate(&mut self, _node: NodeId, _offset: u64, _bytes: u64, _how: Allocation) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Looks for data, or for a hole, from `offset` of a regular file on, for a bounded time. Returns whether it was found, and where, or
    /// where to go on. The end of the file is a hole. `ENXIO`: `offset` is behind the end, or no data follows; `EOPNOTSUPP`: all is data.
    fn seek_data(&mut self, _node: NodeId, _offset: u64, _hole: bool) -> Result<(bool, u64), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Sets the permission bits.
    fn set_mode(&mut self, _node: NodeId, _mode: u32) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Sets owner and group; `None` keeps one. Clears the set-id bits of a program.
    fn set_owner(&mut self, _node: NodeId, _uid: Option<u32>, _gid: Option<u32>) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Sets times.
    fn set_times(&mut self, _node: NodeId, _times: NewTimes) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Returns the value of an extended attribute. `ENODATA`, `EOPNOTSUPP`.
    fn xattr(&mut self, _node: NodeId, _name: &[u8]) -> Result<Vec<u8>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Returns the names of all extended attributes, each with a NUL behind it. `EOPNOTSUPP`.
    fn xattr_names(&mut self, _node: NodeId) -> Result<Vec<u8>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Sets an extended attribute. `EEXIST`, `ENODATA`: as `mode` says; `ENOSPC`, `EOPNOTSUPP`.
    fn set_xattr(
        &mut self,
        _node: NodeId,
        _name: &[u8],
        _value: &[u8],
        _mode: XattrMode,
        _caller: Caller,
    ) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Removes an extended attribute. `ENODATA`, `EOPNOTSUPP`.
    fn remove_xattr(&mut self, _node: NodeId, _name: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Replaces all use counts by those in `uses`, sorted by node; nodes not listed have no users.
    fn set_uses(&mut self, _uses: &[(NodeId, u32)]) -> Result<(), Errno> {
        Ok(())
    }

    /// Returns the fetch that the current request misses, if any. The result of such a request is void, except for the bytes that a read
    /// has copied: its changes since the last commit must be rolled back, and it runs again.
    fn take_missed(&mut self) -> Option<Arrival> {
        None
    }

    /// Whether the current request has changed anything since the last commit.
    fn is_changed(&self) -> bool {
        false
    }

    /// Caches the blocks that have arrived.
    fn collect(&mut self) {}

    /// Stores the changes of the current request in preserved memory, where the commit that follows makes them durable. On failure
    /// the request is rolled back.
    fn settle(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Ends the transaction of the current request, which has been committed.
    fn committed(&mut self) {}

    /// Brings what a predecessor has changed to the device, before the first change of this incarnation. A failure is reported to
    /// that change.
    fn catch_up(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Continues the background work that requests leave, in transactions of its own.
    fn clean_up(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Rolls back part of the current request: restores `bytes` at `place` of the preserved memory, if this file system covers it.
    /// `reload` follows.
    fn put_back(&mut self, _place: usize, _bytes: &[u8]) {}

    /// Rebuilds everything that is not in preserved memory from there.
    fn reload(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Returns what a successor gets in `MountRequest::memo`.
    fn memo(&self) -> [u64; 4] {
        [0; 4]
    }

    /// Returns the figures for `statfs`.
    fn statistics(&self) -> Statistics;

    /// Writes all dirty blocks and flushes the device.
    fn sync(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Unmounts: drops all uses, frees the nodes left without name, writes all dirty blocks and marks the
    /// file system clean.
    fn unmount(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}
