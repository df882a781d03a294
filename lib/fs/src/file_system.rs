//! What a file system offers to the server loop: the `FileSystem` trait and the values it speaks of.
//!
//! A node is named by its inode number. The loop resolves paths, checks search permission and moves
//! messages; the file system knows directories, data and attributes. Names are single components,
//! never empty and without `/`. No method blocks on anything but the block device.

use crate::Errno;
use crate::flights::Arrival;

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

/// On whose behalf a request is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

/// What `stat` tells of a node.
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

/// What `statfs` tells of a file system.
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

/// Where the bytes of a read go, in order.
pub trait DataSink {
    /// Accepts the next bytes. `EFAULT` when the caller's buffer does not take them.
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

/// Where the bytes of a write come from, in order.
pub trait DataSource {
    /// Fills `buffer` with the next bytes. `EFAULT` when the caller's buffer does not give them; what
    /// `buffer` then holds is unspecified.
    fn take(&mut self, buffer: &mut [u8]) -> Result<(), Errno>;
}

/// Where the entries of a directory go, in order.
pub trait EntrySink {
    /// Accepts one entry; `next` is the position from which the listing goes on after it and `mode` has
    /// the kind bits of the node, or 0 when they are not known. False when there is no room for it.
    fn entry(&mut self, node: NodeId, next: u64, mode: u32, name: &[u8]) -> bool;
}

/// New times of a node; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewTimes {
    /// Last access.
    pub accessed: Option<Timestamp>,
    /// Last change of the content.
    pub modified: Option<Timestamp>,
}

/// A mounted file system.
///
/// Every method answers `EIO` when the device fails, `EUCLEAN` when the format is broken where it looks,
/// `ESTALE` for a node that does not exist (any more), and every change `EROFS` on a read-only file
/// system. Further errors are named at the methods.
///
/// What a file system does not implement is what one that cannot be changed does: it refuses changes and
/// does not count users.
pub trait FileSystem {
    /// Whether names appear and vanish by themselves, so that nobody may remember them.
    fn is_volatile(&self) -> bool {
        false
    }

    /// Whether the content is in memory and nowhere else.
    fn is_in_memory(&self) -> bool {
        false
    }

    /// Whether some node other than the root has users.
    fn is_busy(&self) -> bool {
        false
    }

    /// The directory at the top.
    fn root(&self) -> NodeId;

    /// Attributes of a node.
    fn attributes(&mut self, node: NodeId) -> Result<Attributes, Errno>;

    /// The node that `name` means in `dir`, `.` and `..` included; `..` of the root is the root.
    /// `ENOTDIR`, `ENOENT`, `ENAMETOOLONG`.
    fn lookup(&mut self, dir: NodeId, name: &[u8]) -> Result<NodeId, Errno>;

    /// Counts one more user of the node: it keeps existing when its last name goes.
    fn get(&mut self, _node: NodeId) -> Result<(), Errno> {
        Ok(())
    }

    /// Counts `count` users less. When none is left and no name either, the node is freed.
    /// `EINVAL` when there are not so many.
    fn put(&mut self, _node: NodeId, _count: u32) -> Result<(), Errno> {
        Ok(())
    }

    /// Moves up to `len` bytes from `offset` to `sink`; the answer says how many, 0 at the end of the file.
    /// `EISDIR`, `EINVAL` for a node without data, the sink's error when nothing was moved.
    fn read(&mut self, node: NodeId, offset: u64, len: usize, sink: &mut dyn DataSink) -> Result<usize, Errno>;

    /// Moves `len` bytes from `source` to `offset`; the answer says how many, fewer when a limit is met.
    /// `EISDIR`, `EINVAL`, `EFBIG`, `ENOSPC`, the source's error when nothing was moved.
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

    /// Gives the entries of `dir` from `position` (0, or what an entry said) to `sink` until it is full.
    /// The answer is the position to go on from. `ENOTDIR`.
    fn read_dir(&mut self, dir: NodeId, position: u64, sink: &mut dyn EntrySink) -> Result<u64, Errno>;

    /// Makes a node that is neither directory nor symbolic link; `mode` has its kind, `device` its number
    /// if it is a device. `EEXIST`, `ENOTDIR`, `ENAMETOOLONG`, `ENOSPC`, `EINVAL` for another kind.
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

    /// Makes a directory. Errors as `make_node`, and `EMLINK`.
    fn make_dir(&mut self, _dir: NodeId, _name: &[u8], _mode: u32, _caller: Caller) -> Result<NodeId, Errno> {
        Err(Errno::EROFS)
    }

    /// Makes a symbolic link to `target`. Errors as `make_node`; `ENAMETOOLONG` also for the target.
    fn make_symlink(&mut self, _dir: NodeId, _name: &[u8], _target: &[u8], _caller: Caller) -> Result<NodeId, Errno> {
        Err(Errno::EROFS)
    }

    /// Copies the target of a symbolic link into `target`, cut to its length; the answer says how many
    /// bytes. `EINVAL` when it is none.
    fn read_link(&mut self, _node: NodeId, _target: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// As `read_link`, for a link whose target depends on the pid of the process that follows it (/proc/self).
    fn read_link_for(&mut self, node: NodeId, _reader: u32, target: &mut [u8]) -> Result<usize, Errno> {
        self.read_link(node, target)
    }

    /// Gives `node` one more name. `EPERM` for a directory, `EEXIST`, `EMLINK`, `ENOSPC`.
    fn link(&mut self, _dir: NodeId, _name: &[u8], _node: NodeId, _caller: Caller) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Removes a name that is not a directory's. `ENOENT`, `EISDIR`.
    fn unlink(&mut self, _dir: NodeId, _name: &[u8]) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Removes an empty directory. `ENOENT`, `ENOTDIR`, `ENOTEMPTY`, `EINVAL` for `.`.
    fn remove_dir(&mut self, _dir: NodeId, _name: &[u8]) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Moves a name, over an existing one if need be. `ENOENT`; `EINVAL` into its own subtree; `EISDIR`,
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

    /// Cuts or extends a regular file to `size` bytes. `EISDIR`, `EINVAL`, `EFBIG`.
    fn truncate(&mut self, _node: NodeId, _size: u64) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Takes space for holes within a range of a regular file, as far as the file goes. `EINVAL`, `ENOSPC`.
    fn allocate(&mut self, _node: NodeId, _offset: u64, _bytes: u64) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Sets the permission bits.
    fn set_mode(&mut self, _node: NodeId, _mode: u32) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Sets owner and group; `None` leaves one as it is. Takes set-id bits away from a program.
    fn set_owner(&mut self, _node: NodeId, _uid: Option<u32>, _gid: Option<u32>) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Sets times.
    fn set_times(&mut self, _node: NodeId, _times: NewTimes) -> Result<(), Errno> {
        Err(Errno::EROFS)
    }

    /// Makes the use counts those in `uses` (sorted by node); every node that is not there has no users any more.
    fn set_uses(&mut self, _uses: &[(NodeId, u32)]) -> Result<(), Errno> {
        Ok(())
    }

    /// What the present request has to wait for when it has missed a block: whatever it has returned means nothing then, but for the
    /// bytes that a read has moved. What it has changed since the last commit must be undone, and it runs again.
    fn take_missed(&mut self) -> Option<Arrival> {
        None
    }

    /// Whether the present request has changed anything that must be undone when it has missed a block.
    fn is_changed(&self) -> bool {
        false
    }

    /// Takes in the blocks that have arrived.
    fn collect(&mut self) {}

    /// Puts what the request in hand has changed into preserved memory: the commit that follows makes it last. After a failure the
    /// request is undone.
    fn settle(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// The request in hand has been committed.
    fn committed(&mut self) {}

    /// Goes on with what requests have left to do in the background, in transactions of its own.
    fn clean_up(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// The request in hand is undone: puts `bytes` back to `place` of the preserved memory, if that is here. `reload` follows.
    fn put_back(&mut self, _place: usize, _bytes: &[u8]) {}

    /// Forgets what is not in preserved memory.
    fn reload(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// What a successor gets in `MountRequest::memo`.
    fn memo(&self) -> [u64; 4] {
        [0; 4]
    }

    /// Figures of the whole.
    fn statistics(&self) -> Statistics;

    /// Writes everything down and makes it durable.
    fn sync(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Ends the use of the file system: drops every user of every node, writes everything down and marks
    /// it clean.
    fn unmount(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}
