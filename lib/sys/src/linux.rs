//! Linux calls for native programs that a shell starts by `execve`, such as the command `service`.
//!
//! The flags are those of Linux on x86-64 (asm-generic/fcntl.h, mman-common.h).

use crate::{Result, raw};
use abi::linux::nr;
use abi::{Errno, Name};
use core::ffi::CStr;

/// The arguments of a program, its own name first.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    count: usize,
    texts: *const *const u8,
}

impl Arguments {
    /// # Safety
    /// `stack` points to argc and argv as `execve` leaves them, which stay as they are.
    #[cfg(target_os = "none")]
    pub(crate) unsafe fn from_stack(stack: *const u64) -> Arguments {
        // SAFETY: passed on: the first word is argc, the pointers follow.
        unsafe { Arguments { count: *stack as usize, texts: stack.add(1).cast() } }
    }

    /// Returns argument `index`; `None` past the end or if it is not UTF-8.
    pub fn get(&self, index: usize) -> Option<&'static str> {
        self.get_bytes(index)?.to_str().ok()
    }

    /// Returns the bytes of argument `index`; `None` past the end.
    pub fn get_bytes(&self, index: usize) -> Option<&'static CStr> {
        if index >= self.count {
            return None;
        }
        // SAFETY: `from_stack`'s caller vouches for `count` pointers to texts that end with NUL and stay as they are.
        Some(unsafe { CStr::from_ptr((*self.texts.add(index)).cast()) })
    }

    /// Returns the value of a variable of the environment.
    pub fn variable(&self, name: &str) -> Option<&'static str> {
        let mut next = self.environment();
        loop {
            // SAFETY: as in `get_bytes`; a null pointer ends the environment.
            let text = unsafe { *next };
            if text.is_null() {
                return None;
            }
            // SAFETY: as above.
            let text = unsafe { CStr::from_ptr(text.cast()) }.to_str().ok();
            let value = text.and_then(|text| text.strip_prefix(name)?.strip_prefix('='));
            if value.is_some() {
                return value;
            }
            // SAFETY: it was not the last.
            next = unsafe { next.add(1) };
        }
    }

    /// The environment follows the arguments and a null pointer.
    fn environment(&self) -> *const *const u8 {
        // SAFETY: `from_stack`'s caller vouches for this.
        unsafe { self.texts.add(self.count + 1) }
    }

    /// Becomes another program: that at `path`, with the arguments from `first` on and the same environment. Returns why it does not.
    pub fn execute(&self, path: &CStr, first: usize) -> Errno {
        let first = first.min(self.count);
        // SAFETY: within the arguments, or the null pointer that ends them.
        let arguments = unsafe { self.texts.add(first) };
        let words = [path.as_ptr() as u64, arguments as u64, self.environment() as u64, 0, 0, 0];
        // SAFETY: execve reads the texts, and returns only if nothing has changed.
        match unsafe { raw::linux(nr::EXECVE.into(), words) } {
            Err(error) => error,
            Ok(_) => Errno::EIO,
        }
    }

    /// Returns the number of arguments.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// Writes to a descriptor. Returns the bytes written.
///
/// # Errors
/// As write(2).
pub fn write(descriptor: i32, text: &[u8]) -> Result<usize> {
    let arguments = [descriptor as u64, text.as_ptr() as u64, text.len() as u64, 0, 0, 0];
    // SAFETY: write only reads the text.
    unsafe { raw::linux(nr::WRITE.into(), arguments) }.map(|written| written as usize)
}

/// Modes of opening a file.
pub mod open {
    #![allow(missing_docs)]
    pub const READ: u64 = 0;
    pub const WRITE: u64 = 0o1;
    pub const READ_WRITE: u64 = 0o2;
    pub const CREATE: u64 = 0o100;
    pub const EXCLUSIVE: u64 = 0o200;
    pub const TRUNCATE: u64 = 0o1000;
}

const SEEK_SET: u64 = 0;
const SEEK_END: u64 = 2;
const READ_AND_WRITE: u64 = 1 | 2;
const PRIVATE_ANONYMOUS: u64 = 2 | 0x20;

/// Opens a file in one of the modes of `open`; a created file gets permissions `mode`. Returns the descriptor.
///
/// # Errors
/// As open(2).
pub fn open(path: &CStr, way: u64, mode: u64) -> Result<i32> {
    // SAFETY: open only reads the path.
    let descriptor = unsafe { raw::linux(nr::OPEN.into(), [path.as_ptr() as u64, way, mode, 0, 0, 0]) }?;
    i32::try_from(descriptor).map_err(|_| Errno::EBADF)
}

/// Closes a descriptor.
///
/// # Errors
/// As close(2).
pub fn close(descriptor: i32) -> Result<()> {
    // SAFETY: close touches no memory of the program.
    unsafe { raw::linux(nr::CLOSE.into(), [descriptor as u64, 0, 0, 0, 0, 0]) }.map(drop)
}

/// Reads from a descriptor. Returns the bytes read, 0 at the end.
///
/// # Errors
/// As read(2).
pub fn read(descriptor: i32, into: &mut [u8]) -> Result<usize> {
    let arguments = [descriptor as u64, into.as_mut_ptr() as u64, into.len() as u64, 0, 0, 0];
    // SAFETY: read writes within the buffer, before it returns.
    unsafe { raw::linux(nr::READ.into(), arguments) }.map(|bytes| bytes as usize)
}

/// Reads from a position of the file behind a descriptor. Returns the bytes read, 0 at the end.
///
/// # Errors
/// As pread(2).
pub fn read_at(descriptor: i32, into: &mut [u8], position: u64) -> Result<usize> {
    let arguments = [descriptor as u64, into.as_mut_ptr() as u64, into.len() as u64, position, 0, 0];
    // SAFETY: pread writes within the buffer, before it returns.
    unsafe { raw::linux(nr::PREAD64.into(), arguments) }.map(|bytes| bytes as usize)
}

/// Returns the length of the file behind a descriptor, and sets its position to 0.
///
/// # Errors
/// As lseek(2).
pub fn length(descriptor: i32) -> Result<u64> {
    // SAFETY: lseek touches no memory of the program.
    let seek = |whence| unsafe { raw::linux(nr::LSEEK.into(), [descriptor as u64, 0, whence, 0, 0, 0]) };
    let bytes = seek(SEEK_END)?;
    seek(SEEK_SET)?;
    Ok(bytes)
}

/// Maps zeroed memory for the program's lifetime.
///
/// # Errors
/// As mmap(2).
pub fn memory(bytes: usize) -> Result<&'static mut [u8]> {
    let arguments = [0, bytes as u64, READ_AND_WRITE, PRIVATE_ANONYMOUS, u64::MAX, 0];
    // SAFETY: without MAP_FIXED the new mapping replaces none.
    let start = unsafe { raw::linux(nr::MMAP.into(), arguments) }?;
    // SAFETY: these bytes have just been mapped, readable and writable, and nobody else knows of them.
    Ok(unsafe { core::slice::from_raw_parts_mut(start as *mut u8, bytes) })
}

/// Makes a directory.
///
/// # Errors
/// As mkdir(2).
pub fn make_folder(path: &CStr, mode: u64) -> Result<()> {
    // SAFETY: mkdir only reads the path.
    unsafe { raw::linux(nr::MKDIR.into(), [path.as_ptr() as u64, mode, 0, 0, 0, 0]) }.map(drop)
}

/// Makes Skink's system call to rs: `operation` of `abi::rs::service_call`, which reads from `buffer` or writes its results there.
///
/// # Errors
/// `EPERM`: not root; `ENOENT`: no such service; `EINVAL`; others as the operation says.
pub fn service(operation: u64, name: Name, buffer: &mut [u8], value: u64) -> Result<u64> {
    let (low, high) = name.to_words();
    let arguments = [operation, low, high, buffer.as_mut_ptr() as u64, buffer.len() as u64, value];
    // SAFETY: rs writes within the buffer, before the call returns.
    unsafe { raw::linux(nr::SKINK_SERVICE.into(), arguments) }
}

/// Ends the program.
pub fn exit(status: i32) -> ! {
    // SAFETY: nothing of the program is left to be changed.
    let _ = unsafe { raw::linux(nr::EXIT_GROUP.into(), [status as u64, 0, 0, 0, 0, 0]) };
    unreachable!("exit_group has returned")
}
