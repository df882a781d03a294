//! The Linux calls by number: takes the arguments apart and hands them to who does the work.
//!
//! What can be answered without waiting for anybody is answered at once; what waits becomes a task.

pub mod attributes;
pub mod data;
pub mod descriptors;
pub mod locks;
pub mod memory_file;
pub mod names;
pub mod open;
pub mod pipes;
pub mod poll;
pub mod queues;
pub mod services;
pub mod sockets;

use crate::{
    calls::{
        attributes::{AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, TIME_NOW, Target},
        names::Side,
    },
    keep::records::Note,
    memory as user,
    objects::{O_CREAT, O_TRUNC, O_WRONLY},
    paths::walk::Last,
    processes::{AT_FDCWD, Process},
    state::Vfs,
};
use abi::{Errno, Message, linux::nr, message::REPEATED};
use alloc::{rc::Rc, vec::Vec};
use core::future::Future;
use server::Step;
use sys::time;

/// How a call goes on. Later: `World::finish` or `Cancel` will answer it.
pub type Flow = Step<Result<u64, Errno>>;

/// unlinkat: rmdir.
const AT_REMOVEDIR: u32 = 0x200;
/// linkat: follow the old name.
const AT_SYMLINK_FOLLOW: u32 = 0x400;
/// Flags of the stat family that change nothing here.
const AT_STAT_IGNORED: u32 = 0x800 | 0x6000;
/// Bytes of the `struct open_how` that is known.
const OPEN_HOW_BYTES: u64 = 24;
const NS_PER_S: u64 = 1_000_000_000;

/// One call.
struct Call<'a> {
    vfs: &'static Vfs,
    process: &'a Rc<Process>,
    words: &'a [u64; 7],
}

impl Vfs {
    /// Carries out a call of a program, as far as it goes without waiting.
    pub fn linux_call(&'static self, message: &Message) -> Flow {
        let process = match self.processes.get(message.source) {
            Ok(process) => process,
            Err(error) => return Flow::Done(Err(error)),
        };
        self.store.begin_call(message.source, message.words[6] & !REPEATED);
        if message.words[6] & REPEATED != 0 {
            return self.repeated_call(&process, message.label, &message.words);
        }
        process.cancelled.set(None);
        process.note.set(None);
        self.new_call(&process, message.label, &message.words)
    }

    /// The same for a call of which nothing has been done yet, or what has been done does no harm.
    pub fn new_call(&'static self, process: &Rc<Process>, number: u32, words: &[u64; 7]) -> Flow {
        let call = Call { vfs: self, process, words };
        let own = || call.descriptors(number).or_else(|| call.queues(number));
        let outcome = call.data(number).or_else(own).unwrap_or_else(|| {
            call.names(number).unwrap_or_else(|| call.attributes(number).unwrap_or_else(|| call.rest(number)))
        });
        outcome.unwrap_or_else(|error| Flow::Done(Err(error)))
    }
}

/// `None`: another group has this call.
type Outcome = Option<Result<Flow, Errno>>;

fn done(result: Result<u64, Errno>) -> Result<Flow, Errno> {
    Ok(Flow::Done(result))
}

fn task(future: impl Future<Output = Result<u64, Errno>> + 'static) -> Result<Flow, Errno> {
    Ok(Flow::task(future))
}

/// A group of calls that answers `ENOSYS` does not have the call: none of the calls has this error of its own.
fn unless_unknown(outcome: Result<Flow, Errno>) -> Outcome {
    if matches!(outcome, Err(Errno::ENOSYS)) { None } else { Some(outcome) }
}

fn allow(flags: u32, known: u32) -> Result<(), Errno> {
    if flags & !known == 0 { Ok(()) } else { Err(Errno::EINVAL) }
}

impl Call<'_> {
    fn int(&self, index: usize) -> i32 {
        self.words[index] as i32
    }

    fn flags(&self, index: usize) -> u32 {
        self.words[index] as u32
    }

    fn process(&self) -> Rc<Process> {
        self.process.clone()
    }

    fn path(&self, index: usize) -> Result<Vec<u8>, Errno> {
        user::fetch_path(self.process.endpoint, self.words[index])
    }

    /// A path relative to the working directory.
    fn here(&self, index: usize) -> Result<Side, Errno> {
        Ok((AT_FDCWD, self.path(index)?))
    }

    /// A descriptor and the path relative to it.
    fn at(&self, index: usize) -> Result<Side, Errno> {
        Ok((self.int(index), self.path(index + 1)?))
    }

    fn target_here(&self, index: usize, flags: u32) -> Result<Target, Errno> {
        Ok(Target::new(AT_FDCWD, self.path(index)?, flags))
    }

    /// A missing path with AT_EMPTY_PATH means the descriptor, as in fstat.
    fn target_at(&self, index: usize, flags: u32) -> Result<Target, Errno> {
        let path = match self.words[index + 1] {
            0 if flags & AT_EMPTY_PATH != 0 => Vec::new(),
            _ => self.path(index + 1)?,
        };
        Ok(Target::new(self.int(index), path, flags))
    }

    fn target_descriptor(&self) -> Result<Target, Errno> {
        let descriptor = self.int(0);
        self.process.file(descriptor)?;
        Ok(Target::new(descriptor, Vec::new(), AT_EMPTY_PATH))
    }

    /// The target of a call on a descriptor that a mere place does not serve.
    fn target_usable(&self) -> Result<Target, Errno> {
        self.process.file(self.int(0))?.usable()?;
        self.target_descriptor()
    }

    fn data(&self, number: u32) -> Outcome {
        let (vfs, process, w) = (self.vfs, self.process, self.words);
        let descriptor = self.int(0);
        let whole = || user::buffer(process.endpoint, w[1], w[2]);
        let vector = || user::vector(process.endpoint, w[1], w[2]);
        let position = || if w[3] as i64 <= -1 { Err(Errno::EINVAL) } else { Ok(Some(w[3])) };
        Some(match number {
            nr::READ => whole().and_then(|buffer| vfs.read(process, descriptor, buffer, None)),
            nr::WRITE => whole().and_then(|buffer| vfs.write(process, descriptor, buffer, None)),
            nr::READV => vector().and_then(|buffer| vfs.read(process, descriptor, buffer, None)),
            nr::WRITEV => vector().and_then(|buffer| vfs.write(process, descriptor, buffer, None)),
            nr::PREAD64 => position().and_then(|at| vfs.read(process, descriptor, whole()?, at)),
            nr::PWRITE64 => position().and_then(|at| vfs.write(process, descriptor, whole()?, at)),
            nr::PREADV => position().and_then(|at| vfs.read(process, descriptor, vector()?, at)),
            nr::PWRITEV => position().and_then(|at| vfs.write(process, descriptor, vector()?, at)),
            nr::SENDFILE => task(vfs.sendfile(self.process(), descriptor, self.int(1), w[2], w[3])),
            nr::GETDENTS64 => task(vfs.read_directory(self.process(), descriptor, w[1], w[2], false)),
            nr::GETDENTS => task(vfs.read_directory(self.process(), descriptor, w[1], w[2], true)),
            _ => return None,
        })
    }

    fn descriptors(&self, number: u32) -> Outcome {
        let (vfs, process, w) = (self.vfs, self.process, self.words);
        let descriptor = self.int(0);
        Some(match number {
            nr::CLOSE => done(vfs.close_descriptor(process, descriptor)),
            nr::CLOSE_RANGE => done(vfs.close_range(process, self.flags(0), self.flags(1), self.flags(2))),
            nr::LSEEK => done(vfs.seek(process, descriptor, w[1] as i64, self.flags(2))),
            nr::DUP => done(vfs.dup(process, descriptor)),
            nr::DUP2 => done(vfs.dup_to(process, descriptor, self.int(1), 0, true)),
            nr::DUP3 => done(vfs.dup_to(process, descriptor, self.int(1), self.flags(2), false)),
            nr::PIPE => done(vfs.pipe(process, w[0], 0)),
            nr::PIPE2 => done(vfs.pipe(process, w[0], self.flags(1))),
            nr::FCNTL => vfs.fcntl(process, descriptor, self.flags(1), w[2]),
            nr::IOCTL => vfs.ioctl(process, descriptor, self.flags(1), w[2]),
            nr::FLOCK => task(vfs.flock(self.process(), descriptor, self.flags(1))),
            nr::FCHDIR => done(vfs.fchdir(process, descriptor)),
            nr::FSYNC | nr::FDATASYNC | nr::SYNCFS => self.sync_file(descriptor),
            nr::FADVISE64 | nr::READAHEAD | nr::SYNC_FILE_RANGE => self.advice(descriptor),
            nr::FALLOCATE => task(vfs.allocate_call(self.process(), descriptor, self.flags(1), w[2], w[3])),
            nr::POLL => {
                let wait_ms = self.int(2);
                let deadline_ns = match wait_ms {
                    _ if let Some(Note::Deadline(deadline_ns)) = process.note.get() => Some(deadline_ns),
                    0 => Some(0),
                    1.. => Some(time::now_ns() + wait_ms as u64 * 1_000_000),
                    _ => None,
                };
                task(vfs.poll(self.process(), w[0], self.flags(1) as u64, deadline_ns))
            }
            nr::PPOLL => self
                .timespec(2)
                .and_then(|deadline| task(vfs.poll(self.process(), w[0], self.flags(1) as u64, deadline))),
            nr::SELECT => self
                .timeval(4)
                .and_then(|deadline| task(vfs.select(self.process(), descriptor, [w[1], w[2], w[3]], deadline))),
            nr::PSELECT6 => self
                .timespec(4)
                .and_then(|deadline| task(vfs.select(self.process(), descriptor, [w[1], w[2], w[3]], deadline))),
            _ => return None,
        })
    }

    fn queues(&self, number: u32) -> Outcome {
        let (vfs, process, w) = (self.vfs, self.process, self.words);
        let [a, b, c, d, e, ..] = *w;
        let buffer = |address: u64, bytes: u64| user::buffer(process.endpoint, address, bytes);
        Some(match number {
            nr::MQ_OPEN => done(vfs.mq_open(process, [a, b, c, d])),
            nr::MQ_UNLINK => done(vfs.mq_unlink(process, a)),
            nr::MQ_TIMEDSEND => vfs.mq_send(process, [a, b, c, d, e]),
            nr::MQ_TIMEDRECEIVE => vfs.mq_receive(process, [a, b, c, d, e]),
            nr::MQ_NOTIFY => done(vfs.mq_notify(process, self.int(0), b)),
            nr::MQ_GETSETATTR => done(vfs.mq_attributes(process, self.int(0), b, c)),
            nr::SOCKETPAIR => done(vfs.socketpair(process, [a, b, c, d])),
            nr::SENDTO => buffer(b, c).and_then(|data| vfs.send_to(process, self.int(0), data, d as u32, w[5])),
            nr::RECVFROM => buffer(b, c).and_then(|room| vfs.receive_from(process, self.int(0), room, d as u32, w[5])),
            nr::SENDMSG => vfs.send_message(process, self.int(0), b, self.flags(2)),
            nr::RECVMSG => vfs.receive_message(process, self.int(0), b, self.flags(2)),
            nr::SHUTDOWN => done(vfs.shut_down(process, self.int(0), self.flags(1))),
            nr::GETSOCKOPT => done(vfs.socket_option(process, [a, b, c, d, e])),
            nr::SETSOCKOPT => done(vfs.set_socket_option(process, self.int(0), self.flags(1), self.flags(2))),
            nr::GETSOCKNAME | nr::GETPEERNAME => done(vfs.socket_name(process, self.int(0), b, c)),
            nr::TIMERFD_CREATE => done(vfs.timer_create(process, self.flags(0), self.flags(1))),
            nr::TIMERFD_SETTIME => done(vfs.timer_set(process, [a, b, c, d])),
            nr::TIMERFD_GETTIME => done(vfs.timer_get(process, self.int(0), b)),
            _ => return None,
        })
    }

    fn names(&self, number: u32) -> Outcome {
        let (vfs, w) = (self.vfs, self.words);
        unless_unknown((|| match number {
            nr::OPEN => task(vfs.open(self.process(), AT_FDCWD, self.path(0)?, self.flags(1), self.flags(2))),
            nr::OPENAT => task(vfs.open(self.process(), self.int(0), self.path(1)?, self.flags(2), self.flags(3))),
            nr::OPENAT2 => self.openat2(),
            nr::CREAT => {
                task(vfs.open(self.process(), AT_FDCWD, self.path(0)?, O_CREAT | O_TRUNC | O_WRONLY, self.flags(1)))
            }
            nr::MEMFD_CREATE => task(vfs.create_memory_file(self.process(), self.path(0)?, self.flags(1))),
            nr::CHDIR => task(vfs.chdir(self.process(), self.path(0)?)),
            nr::CHROOT => task(vfs.chroot(self.process(), self.path(0)?)),
            nr::GETCWD => done(vfs.getcwd(self.process, w[0], w[1])),
            nr::MKDIR => task(vfs.mkdir(self.process(), self.here(0)?, self.flags(1))),
            nr::MKDIRAT => task(vfs.mkdir(self.process(), self.at(0)?, self.flags(2))),
            nr::MKNOD => task(vfs.mknod(self.process(), self.here(0)?, self.flags(1), w[2])),
            nr::MKNODAT => task(vfs.mknod(self.process(), self.at(0)?, self.flags(2), w[3])),
            nr::RMDIR => task(vfs.rmdir(self.process(), self.here(0)?)),
            nr::UNLINK => task(vfs.unlink_path(self.process(), self.here(0)?)),
            nr::UNLINKAT if self.flags(2) == AT_REMOVEDIR => task(vfs.rmdir(self.process(), self.at(0)?)),
            nr::UNLINKAT if self.flags(2) == 0 => task(vfs.unlink_path(self.process(), self.at(0)?)),
            nr::UNLINKAT => Err(Errno::EINVAL),
            nr::RENAME => task(vfs.rename_path(self.process(), self.here(0)?, self.here(1)?, 0)),
            nr::RENAMEAT => task(vfs.rename_path(self.process(), self.at(0)?, self.at(2)?, 0)),
            nr::RENAMEAT2 => task(vfs.rename_path(self.process(), self.at(0)?, self.at(2)?, self.flags(4))),
            nr::LINK => task(vfs.link_path(self.process(), self.here(0)?, self.here(1)?, Last::Keep)),
            nr::LINKAT => {
                allow(self.flags(4), AT_SYMLINK_FOLLOW)?;
                let last = if self.flags(4) == 0 { Last::Keep } else { Last::Follow };
                task(vfs.link_path(self.process(), self.at(0)?, self.at(2)?, last))
            }
            nr::SYMLINK => task(vfs.symlink(self.process(), self.path(0)?, self.here(1)?)),
            nr::SYMLINKAT => task(vfs.symlink(self.process(), self.path(0)?, self.at(1)?)),
            nr::READLINK => {
                let side = self.here(0)?;
                if side.1.is_empty() {
                    return Err(Errno::ENOENT);
                }
                task(vfs.readlink(self.process(), side, w[1], w[2]))
            }
            nr::READLINKAT => task(vfs.readlink(self.process(), self.at(0)?, w[2], w[3])),
            _ => Err(Errno::ENOSYS),
        })())
    }

    fn attributes(&self, number: u32) -> Outcome {
        let (vfs, w) = (self.vfs, self.words);
        let nofollow = AT_SYMLINK_NOFOLLOW;
        unless_unknown((|| match number {
            nr::STAT => task(vfs.stat_target(self.process(), self.target_here(0, 0)?, w[1])),
            nr::LSTAT => task(vfs.stat_target(self.process(), self.target_here(0, nofollow)?, w[1])),
            nr::FSTAT => task(vfs.stat_target(self.process(), self.target_descriptor()?, w[1])),
            nr::NEWFSTATAT => {
                allow(self.flags(3), nofollow | AT_EMPTY_PATH | AT_STAT_IGNORED)?;
                task(vfs.stat_target(self.process(), self.target_at(0, self.flags(3))?, w[2]))
            }
            nr::STATX => {
                allow(self.flags(2), nofollow | AT_EMPTY_PATH | AT_STAT_IGNORED)?;
                task(vfs.statx_target(self.process(), self.target_at(0, self.flags(2))?, w[4]))
            }
            nr::STATFS => task(vfs.statfs_target(self.process(), self.target_here(0, 0)?, w[1])),
            nr::FSTATFS => task(vfs.statfs_target(self.process(), self.target_descriptor()?, w[1])),
            nr::ACCESS => task(vfs.access(self.process(), self.target_here(0, 0)?, self.flags(1))),
            nr::FACCESSAT => task(vfs.access(self.process(), self.target_at(0, 0)?, self.flags(2))),
            nr::FACCESSAT2 => {
                allow(self.flags(3), nofollow | AT_EMPTY_PATH | attributes::AT_EACCESS)?;
                task(vfs.access(self.process(), self.target_at(0, self.flags(3))?, self.flags(2)))
            }
            nr::CHMOD => task(vfs.chmod(self.process(), self.target_here(0, 0)?, self.flags(1))),
            nr::FCHMOD => task(vfs.chmod(self.process(), self.target_usable()?, self.flags(1))),
            nr::FCHMODAT => task(vfs.chmod(self.process(), self.target_at(0, 0)?, self.flags(2))),
            nr::CHOWN => task(vfs.chown(self.process(), self.target_here(0, 0)?, self.flags(1), self.flags(2))),
            nr::LCHOWN => task(vfs.chown(self.process(), self.target_here(0, nofollow)?, self.flags(1), self.flags(2))),
            nr::FCHOWN => task(vfs.chown(self.process(), self.target_usable()?, self.flags(1), self.flags(2))),
            nr::FCHOWNAT => {
                allow(self.flags(4), nofollow | AT_EMPTY_PATH)?;
                task(vfs.chown(self.process(), self.target_at(0, self.flags(4))?, self.flags(2), self.flags(3)))
            }
            nr::UTIME => self.utime(),
            nr::UTIMES => self.set_times(self.target_here(0, 0)?, w[1], attributes::decode_timevals),
            nr::FUTIMESAT => self.set_times(self.target_or_descriptor(0)?, w[2], attributes::decode_timevals),
            nr::UTIMENSAT => {
                allow(self.flags(3), nofollow | AT_EMPTY_PATH)?;
                let target = match w[1] {
                    0 => self.target_or_descriptor(0)?,
                    _ => self.target_at(0, self.flags(3))?,
                };
                self.set_times(target, w[2], attributes::decode_timespecs)
            }
            nr::TRUNCATE => task(vfs.truncate(self.process(), self.target_here(0, 0)?, w[1])),
            nr::FTRUNCATE => task(vfs.ftruncate(self.process(), self.int(0), w[1])),
            _ => Err(Errno::ENOSYS),
        })())
    }

    fn rest(&self, number: u32) -> Result<Flow, Errno> {
        let (vfs, w) = (self.vfs, self.words);
        match number {
            nr::UMASK => {
                let directories = self.process.directories()?;
                done(Ok(directories.set_umask(self.flags(0) & 0o777) as u64))
            }
            nr::SYNC => task(async move { vfs.sync().await.map(|()| 0) }),
            nr::MOUNT => {
                let text = |index: usize| if w[index] == 0 { Ok(Vec::new()) } else { self.path(index) };
                task(vfs.mount_call(self.process(), text(0)?, self.path(1)?, text(2)?, w[3], text(4)?))
            }
            nr::UMOUNT2 => task(vfs.unmount_call(self.process(), self.path(0)?)),
            nr::SOCKET => Err(Errno::EAFNOSUPPORT),
            nr::GETXATTR | nr::LGETXATTR | nr::FGETXATTR | nr::LISTXATTR | nr::LLISTXATTR | nr::FLISTXATTR => {
                Err(Errno::EOPNOTSUPP)
            }
            _ => Err(Errno::ENOSYS),
        }
    }

    fn sync_file(&self, descriptor: i32) -> Result<Flow, Errno> {
        let vfs = self.vfs;
        let file = self.process.file(descriptor)?;
        file.usable()?;
        let node = file.node().cloned().ok_or(Errno::EINVAL)?;
        task(async move {
            vfs.sync_node(&node).await?;
            Ok(0)
        })
    }

    /// Advice that vfs takes note of by doing nothing.
    fn advice(&self, descriptor: i32) -> Result<Flow, Errno> {
        let file = self.process.file(descriptor)?;
        match file.object {
            crate::objects::Object::Pipe { .. } => Err(Errno::ESPIPE),
            _ => done(Ok(0)),
        }
    }

    /// openat2: flags and mode of `struct open_how`; rules for the resolution are not known here.
    fn openat2(&self) -> Result<Flow, Errno> {
        if self.words[3] < OPEN_HOW_BYTES {
            return Err(Errno::EINVAL);
        }
        let [flags, mode, resolve] = user::fetch_words::<3>(self.process.endpoint, self.words[2])?;
        if resolve != 0 || flags > u32::MAX as u64 || mode & !0o7777 != 0 {
            return Err(Errno::EINVAL);
        }
        task(self.vfs.open(self.process(), self.int(0), self.path(1)?, flags as u32, mode as u32))
    }

    fn target_or_descriptor(&self, index: usize) -> Result<Target, Errno> {
        match self.words[index + 1] {
            0 => self.target_descriptor(),
            _ => self.target_at(index, 0),
        }
    }

    fn set_times(
        &self,
        target: Target,
        address: u64,
        decode: fn([u64; 4]) -> Result<[u64; 2], Errno>,
    ) -> Result<Flow, Errno> {
        let times = match address {
            0 => [TIME_NOW, TIME_NOW],
            _ => decode(user::fetch_words::<4>(self.process.endpoint, address)?)?,
        };
        task(self.vfs.set_times_of(self.process(), target, times))
    }

    /// utime: whole seconds.
    fn utime(&self) -> Result<Flow, Errno> {
        let times = match self.words[1] {
            0 => [TIME_NOW, TIME_NOW],
            address => user::fetch_words::<2>(self.process.endpoint, address)?
                .map(|seconds| attributes::nanoseconds_since_1970(seconds, 0)),
        };
        task(self.vfs.set_times_of(self.process(), self.target_here(0, 0)?, times))
    }

    /// The deadline of a `struct timespec` argument; `None`: for ever.
    fn timespec(&self, index: usize) -> Result<Option<u64>, Errno> {
        self.deadline(index, NS_PER_S, 1)
    }

    /// The deadline of a `struct timeval` argument.
    fn timeval(&self, index: usize) -> Result<Option<u64>, Errno> {
        self.deadline(index, 1_000_000, 1000)
    }

    fn deadline(&self, index: usize, parts_per_s: u64, ns_per_part: u64) -> Result<Option<u64>, Errno> {
        if self.words[index] == 0 {
            return Ok(None);
        }
        if let Some(Note::Deadline(deadline_ns)) = self.process.note.get() {
            return Ok(Some(deadline_ns));
        }
        let [seconds, parts] = user::fetch_words::<2>(self.process.endpoint, self.words[index])?;
        if seconds as i64 <= -1 || parts >= parts_per_s {
            return Err(Errno::EINVAL);
        }
        let wait_ns = seconds.saturating_mul(NS_PER_S).saturating_add(parts * ns_per_part);
        Ok(Some(if wait_ns == 0 { 0 } else { time::now_ns().saturating_add(wait_ns) }))
    }
}
