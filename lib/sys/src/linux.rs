//! Linux calls for native programs that a shell starts by `execve`, such as the command `service`.

use crate::{Result, raw};
use abi::Name;
use abi::linux::nr;

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

    /// Argument `index`; `None` past the end or when it is not UTF-8.
    pub fn get(&self, index: usize) -> Option<&'static str> {
        if index >= self.count {
            return None;
        }
        // SAFETY: `from_stack`'s caller vouches for `count` pointers to texts that end with NUL and stay as they are.
        let text = unsafe { core::ffi::CStr::from_ptr((*self.texts.add(index)).cast()) };
        text.to_str().ok()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// Writes to a descriptor. → bytes written.
///
/// # Errors
/// As write(2).
pub fn write(descriptor: i32, text: &[u8]) -> Result<usize> {
    let arguments = [descriptor as u64, text.as_ptr() as u64, text.len() as u64, 0, 0, 0];
    // SAFETY: write only reads the text.
    unsafe { raw::linux(nr::WRITE.into(), arguments) }.map(|written| written as usize)
}

/// Skink's call to rs: `operation` of `abi::rs::service_call`. The results are written into `buffer`.
///
/// # Errors
/// `EPERM`: not root; `ENOENT`: no such service; `EINVAL`.
pub fn service(operation: u64, name: Name, buffer: &mut [u8]) -> Result<u64> {
    let (low, high) = name.to_words();
    let arguments = [operation, low, high, buffer.as_mut_ptr() as u64, buffer.len() as u64, 0];
    // SAFETY: rs writes within the buffer, before the call returns.
    unsafe { raw::linux(nr::SKINK_SERVICE.into(), arguments) }
}

/// Ends the program.
pub fn exit(status: i32) -> ! {
    // SAFETY: nothing of the program is left to be changed.
    let _ = unsafe { raw::linux(nr::EXIT_GROUP.into(), [status as u64, 0, 0, 0, 0, 0]) };
    unreachable!("exit_group has returned")
}
