//! Shared memory, and other processes' memory. Neighbour: `region` has what the library's buffers are made of.
//!
//! Invariants: a mapping is as long as its type, its memory object cannot shrink (it is sealed), and its type consists of atomics, for which every
//! bit pattern is valid. So no access faults, and what other processes write meanwhile is defined.

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::{self, Errno};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::{MembarrierCommand, membarrier};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::num::NonZeroI32;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, compiler_fence};

/// A type that may lie in memory which other processes write.
///
/// # Safety
/// It has a C layout and consists of atomics alone, so that every bit pattern is valid; all of them zero is its initial state.
pub unsafe trait Shared: Sync {}

// SAFETY: boards, desks and boxes are structures with a C layout of atomics and arrays of them.
unsafe impl Shared for crate::board::Board {}
// SAFETY: as above.
unsafe impl Shared for crate::desk::Desks {}
// SAFETY: as above.
unsafe impl Shared for crate::pair::Box {}

/// What memory is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Loads only: a store ends the process.
    Read,
    /// Loads and stores.
    Write,
}

/// A `T` in shared memory.
pub struct Mapping<T: Shared> {
    place: NonNull<T>,
    _kind: PhantomData<T>,
}

// SAFETY: `T` is `Sync`, and the mapping belongs to nobody else.
unsafe impl<T: Shared> Send for Mapping<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for Mapping<T> {}

impl<T: Shared> Mapping<T> {
    /// Makes a memory object that can neither grow nor shrink, and maps it.
    ///
    /// # Errors
    /// Those of `memfd_create(2)`, `ftruncate(2)` and `mmap(2)`.
    pub fn create(name: &str) -> io::Result<(OwnedFd, Mapping<T>)> {
        let fd = create_sealed(name, size_of::<T>() as u64)?;
        let mapping = Mapping::map(&fd, Access::Write)?;
        Ok((fd, mapping))
    }

    /// Maps a memory object that [`Mapping::create`] has made.
    ///
    /// # Errors
    /// `EINVAL`: it is too short, or could become so; and those of `mmap(2)`.
    pub fn map(fd: impl AsFd, access: Access) -> io::Result<Mapping<T>> {
        if sealed_bytes(&fd)? < size_of::<T>() as u64 {
            return Err(Errno::INVAL);
        }
        let protection = match access {
            Access::Read => ProtFlags::READ,
            Access::Write => ProtFlags::READ | ProtFlags::WRITE,
        };
        // SAFETY: a new mapping at an address that the kernel chooses touches no existing memory.
        let place =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), size_of::<T>(), protection, MapFlags::SHARED, fd, 0)? };
        let place = NonNull::new(place.cast()).ok_or(Errno::NOMEM)?;
        Ok(Mapping { place, _kind: PhantomData })
    }
}

impl<T: Shared> Deref for Mapping<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping is as long as `T`, page-aligned, cannot shrink, and lives until `drop`; `T` is valid in every state.
        unsafe { self.place.as_ref() }
    }
}

impl<T: Shared> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: `place` is a mapping of this length, and nobody has a reference any more. It can fail only for other addresses.
        let _ = unsafe { rustix::mm::munmap(self.place.as_ptr().cast(), size_of::<T>()) };
    }
}

/// Makes a memory object of zeros that can neither grow nor shrink.
///
/// # Errors
/// Those of `memfd_create(2)` and `ftruncate(2)`.
pub fn create_sealed(name: &str, bytes: u64) -> io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&fd, bytes)?;
    rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    rustix::fs::fchmod(&fd, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    Ok(fd)
}

/// Returns how many bytes of a memory object can be mapped and never fault.
///
/// # Errors
/// `EINVAL`: it is none, or can shrink.
pub fn sealed_bytes(fd: impl AsFd) -> io::Result<u64> {
    let seals = rustix::fs::fcntl_get_seals(&fd)?;
    let size = rustix::fs::fstat(&fd)?.st_size;
    if seals.contains(SealFlags::SHRINK) { u64::try_from(size).map_err(|_| Errno::INVAL) } else { Err(Errno::INVAL) }
}

/// What one thread at a time may use; others are refused, and never wait.
///
/// The thread that uses it first does so by plain stores, until another one comes. That one says so, has the kernel put a barrier between any two
/// instructions of the first one (`membarrier(2)`), and both use a locked instruction from then on (docs/adr/0110-promises-and-biased-locks.md).
pub struct Exclusive<T> {
    /// The thread that uses it by plain stores, [`NOBODY`] before the first one, [`ENDING`], or [`ANYBODY`].
    favourite: AtomicUsize,
    /// Set by the favourite while it uses it.
    is_used_by_favourite: AtomicBool,
    /// Set by others.
    is_used: AtomicBool,
    value: UnsafeCell<T>,
}

const NOBODY: usize = 0;
const ENDING: usize = usize::MAX - 1;
const ANYBODY: usize = usize::MAX;

// SAFETY: `value` is reached by whoever has set one of the two flags and found the other one not set.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    /// Makes one that nobody uses.
    pub fn new(value: T) -> Exclusive<T> {
        let favourite = AtomicUsize::new(NOBODY);
        let (is_used_by_favourite, is_used) = (AtomicBool::new(false), AtomicBool::new(false));
        Exclusive { favourite, is_used_by_favourite, is_used, value: UnsafeCell::new(value) }
    }

    /// Uses it until the result is dropped; `None`: somebody does.
    pub fn try_use(&self) -> Option<InUse<'_, T>> {
        if self.is_favourite() && self.is_used_by_favourite.load(Ordering::Relaxed) {
            return None;
        }
        self.use_as_favourite().or_else(|| self.use_as_any())
    }

    /// Uses it as the favourite; `None`: somebody does, or the caller is none.
    #[inline(always)]
    pub fn use_as_favourite(&self) -> Option<InUse<'_, T>> {
        if !self.is_favourite() || self.is_used_by_favourite.load(Ordering::Relaxed) {
            return None;
        }
        self.is_used_by_favourite.store(true, Ordering::Relaxed);
        // The other half of this fence is the kernel's barrier.
        compiler_fence(Ordering::SeqCst);
        // Dropping it, if another one has come meanwhile, takes the flag back.
        let used = InUse { of: self, flag: &self.is_used_by_favourite };
        if self.is_favourite() { Some(used) } else { None }
    }

    #[inline(always)]
    fn is_favourite(&self) -> bool {
        self.favourite.load(Ordering::Relaxed) == own_thread()
    }

    #[cold]
    fn use_as_any(&self) -> Option<InUse<'_, T>> {
        match self.favourite.load(Ordering::SeqCst) {
            ANYBODY => {}
            NOBODY => {
                let next = if has_barriers() { own_thread() } else { ANYBODY };
                // Whoever comes at the same time finds it taken, and ends that.
                let _ = self.favourite.compare_exchange(NOBODY, next, Ordering::SeqCst, Ordering::SeqCst);
                return self.try_use();
            }
            _ => {
                self.favourite.store(ENDING, Ordering::SeqCst);
                // It was registered for, so it cannot fail. The favourite has either set its flag or will find that it is none.
                let _ = membarrier(MembarrierCommand::PrivateExpedited);
                // Whoever comes before this has the kernel put one more.
                self.favourite.store(ANYBODY, Ordering::SeqCst);
            }
        }
        self.is_used.compare_exchange(false, true, Ordering::SeqCst, Ordering::Relaxed).ok()?;
        // Only now: dropping it gives back what nobody else has then.
        let used = InUse { of: self, flag: &self.is_used };
        if self.is_used_by_favourite.load(Ordering::SeqCst) { None } else { Some(used) }
    }
}

/// Returns a number of the calling thread that no other one has at the same time.
#[inline(always)]
fn own_thread() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| &raw const *place as usize)
}

/// Has the kernel put barriers into this process's threads when it is asked to. Returns whether it does.
fn has_barriers() -> bool {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
}

/// An [`Exclusive`] in use.
pub struct InUse<'a, T> {
    of: &'a Exclusive<T>,
    flag: &'a AtomicBool,
}

impl<T> Deref for InUse<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this is the only `InUse` of the value, until it is dropped.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for InUse<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T> Drop for InUse<'_, T> {
    fn drop(&mut self) {
        self.flag.store(false, Ordering::Release);
    }
}

/// Tells a process that was forked from its parent, and counts what has changed for all its threads: both by one word, which is 0 in a child.
#[derive(Clone, Copy)]
pub struct ForkMark(&'static AtomicU64);

/// The mark of no process.
static NOBODYS: AtomicU64 = AtomicU64::new(0);

impl ForkMark {
    /// The mark of no process.
    pub const NONE: ForkMark = ForkMark(&NOBODYS);

    /// Makes a mark.
    ///
    /// # Errors
    /// Those of `mmap(2)` and `madvise(2)`.
    pub fn new() -> io::Result<ForkMark> {
        let bytes = 4096;
        // SAFETY: a new mapping; it is never unmapped, so that the reference to its first word stays valid; zeros are a valid word.
        let word = unsafe {
            let place = rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?;
            rustix::mm::madvise(place, bytes, rustix::mm::Advice::LinuxWipeOnFork)?;
            &*place.cast::<AtomicU64>()
        };
        word.store(1, Ordering::Relaxed);
        Ok(ForkMark(word))
    }

    /// Returns its word, to watch it.
    pub(crate) fn word(self) -> &'static AtomicU64 {
        self.0
    }

    /// Whether this process is the one that made the mark.
    pub fn is_mine(self) -> bool {
        self.count() != 0
    }

    /// Returns the count of changes, or 0 in a process that did not make the mark.
    #[inline(always)]
    pub fn count(self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Counts a change, and returns the new count. For the process that made the mark.
    pub fn count_change(self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel) + 1
    }
}

/// Returns the processor that the calling thread runs on.
pub fn current_cpu() -> u32 {
    // SAFETY: it has no arguments; the C library reads it from memory that the kernel keeps up to date.
    unsafe { libc::sched_getcpu() }.cast_unsigned()
}

/// Lets `pid` and its descendants copy this process's memory, where a security module would not.
pub fn allow_copies_by(pid: i32) {
    // SAFETY: the call has no pointers. It fails where there is no such module: then no permission is needed.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, pid as libc::c_ulong, 0, 0, 0) };
}

/// A block of memory of a process.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// The process.
    pub pid: i32,
    /// Where it begins.
    pub address: usize,
}

impl Block {
    fn vector(self, offset: usize, bytes: usize) -> libc::iovec {
        libc::iovec { iov_base: self.address.wrapping_add(offset) as *mut libc::c_void, iov_len: bytes }
    }
}

/// Whether this process may access all bytes of a block of at most a page. When the kernel does not tell, it is taken to be so.
///
/// Nothing is changed by this: what may be written is written with what it is.
pub fn is_there(address: usize, bytes: usize, access: Access) -> bool {
    if address.checked_add(bytes).is_none_or(|end| end > isize::MAX as usize) {
        // The kernel's half. What it shows programs there cannot always be read as other memory can.
        return false;
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut read = [0u8; 2];
    let ends = [address, address + bytes - 1].map(|end| Block { pid: own, address: end }.vector(0, 1));
    let place = Block { pid: own, address: read.as_mut_ptr() as usize };
    let target = match access {
        Access::Read => [place.vector(0, 1), place.vector(1, 1)],
        Access::Write => ends,
    };
    // SAFETY: the kernel checks both vectors; it writes to `read`, or a byte of what the program has named to be written to where it is.
    match unsafe { libc::process_vm_readv(own, target.as_ptr(), 2, ends.as_ptr(), 2, 0) } {
        2 => true,
        0.. => false,
        _ => last_error() != Errno::FAULT,
    }
}

/// Bytes that [`copy`] moves at a time between two other processes.
const CHUNK_BYTES: usize = 256 << 10;

/// Copies between two processes, either of which may be this one. The kernel checks all addresses.
///
/// # Errors
/// `EFAULT`: a block is not mapped as it must be; what was before the first such page may have been copied. `EPERM`, `ESRCH`, `ENOMEM`.
///
/// # Safety
/// When `to` is this process, nothing there may be in use: it is the memory that the caller of a C function named for the purpose.
pub unsafe fn copy(from: Block, to: Block, bytes: usize) -> io::Result<()> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    if from.pid == own || to.pid == own {
        // SAFETY: as the caller promises.
        return unsafe { copy_directly(from, to, bytes, own) };
    }
    let mut buffer = vec![0u8; bytes.min(CHUNK_BYTES)];
    for start in (0..bytes).step_by(CHUNK_BYTES) {
        let length = (bytes - start).min(CHUNK_BYTES);
        let own_block = Block { pid: own, address: buffer.as_mut_ptr() as usize };
        let part = |block: Block| Block { address: block.address.wrapping_add(start), ..block };
        // SAFETY: the block here is the buffer, which is at least as long.
        unsafe {
            copy_directly(part(from), own_block, length, own)?;
            copy_directly(own_block, part(to), length, own)?;
        }
    }
    Ok(())
}

/// Copies between two processes that both are others.
///
/// # Errors
/// As [`copy`]; `EINVAL`: one is this process.
pub fn copy_between_others(from: Block, to: Block, bytes: usize) -> io::Result<()> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    if [from.pid, to.pid].contains(&own) {
        return Err(Errno::INVAL);
    }
    // SAFETY: neither block is this process's.
    unsafe { copy(from, to, bytes) }
}

/// Copies between this process and another.
///
/// # Safety
/// As [`copy`].
unsafe fn copy_directly(from: Block, to: Block, bytes: usize, own: i32) -> io::Result<()> {
    let mut done = 0;
    while done < bytes {
        let (source, target) = (from.vector(done, bytes - done), to.vector(done, bytes - done));
        // SAFETY: the kernel checks both vectors; what it writes here is what the caller has promised not to use.
        let count = unsafe {
            match to.pid == own {
                true => libc::process_vm_readv(from.pid, &target, 1, &source, 1, 0),
                false => libc::process_vm_writev(to.pid, &source, 1, &target, 1, 0),
            }
        };
        match usize::try_from(count) {
            Ok(0) => return Err(Errno::FAULT),
            Ok(count) => done += count,
            Err(_) => return Err(last_error()),
        }
    }
    Ok(())
}

fn last_error() -> Errno {
    let number = std::io::Error::last_os_error().raw_os_error();
    number.map_or(Errno::IO, Errno::from_raw_os_error)
}

/// Makes the standard descriptor that a supervisor has passed, by its number, an owned one. Returns `None` when there is none.
///
/// It must be called once for each number.
pub fn inherited(number: i32) -> Option<OwnedFd> {
    // SAFETY: the call has no pointers; nobody else in this program uses the number, which its caller was given.
    let fd = unsafe {
        if libc::fcntl(number, libc::F_GETFD) < 0 {
            return None;
        }
        <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(number)
    };
    debug_assert_eq!(fd.as_raw_fd(), number);
    Some(fd)
}

/// Returns pid, user and group of who has connected a socket. `None`: it has no pid here, being outside of this process's pid namespace.
///
/// # Errors
/// Those of `getsockopt(2)`.
pub fn peer(socket: impl AsFd) -> io::Result<(Option<NonZeroI32>, u32, u32)> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to `peer`, for which every bit pattern is valid. (rustix's type has none for pid 0.)
    let got = unsafe {
        let place = (&raw mut peer).cast();
        libc::getsockopt(socket.as_fd().as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut bytes)
    };
    if got == 0 { Ok((NonZeroI32::new(peer.pid), peer.uid, peer.gid)) } else { Err(last_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn one_thread_at_a_time_uses_it_also_while_the_favourite_loses_it() {
        for _ in 0..200 {
            let counter = Exclusive::new(0u64);
            let counted = AtomicU64::new(0);
            let work = || {
                for _ in 0..2000 {
                    if let Some(mut used) = counter.try_use() {
                        assert!(counter.try_use().is_none(), "it is in use");
                        *used += 1;
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            };
            // The first one is the favourite; the other one comes at any time.
            std::thread::scope(|scope| {
                scope.spawn(work);
                scope.spawn(work);
            });
            let used = counter.try_use().expect("nobody uses it");
            assert_eq!(*used, counted.load(Ordering::Relaxed));
        }
    }
}
