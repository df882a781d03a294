//! Start of a program, its arguments, and its exit.

use crate::raw;
use abi::call::KernelCall;
use abi::{Endpoint, layout};
#[cfg(target_os = "none")]
use core::sync::atomic::{AtomicU32, Ordering};

/// The start kind: why a service starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartKind {
    /// The first incarnation.
    Fresh,
    /// The predecessor crashed, hung or was killed.
    Restarted,
    /// The predecessor was replaced by a new binary.
    Updated,
}

impl StartKind {
    /// Decodes `abi::layout::start_kind`; an unknown value counts as `Restarted`, which assumes least.
    pub const fn from_word(word: u64) -> StartKind {
        match word {
            layout::start_kind::FRESH => StartKind::Fresh,
            layout::start_kind::UPDATED => StartKind::Updated,
            _ => StartKind::Restarted,
        }
    }
}

/// The arguments of `main` of a service.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The start kind.
    pub kind: StartKind,
    /// `arguments` of the system file.
    pub arguments: &'static str,
    /// Its own endpoint.
    pub endpoint: Endpoint,
}

impl Start {
    /// Returns the value of `key=value` among the arguments, which are separated by blanks.
    pub fn argument(&self, key: &str) -> Option<&'static str> {
        let pairs = self.arguments.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        pairs.filter(|(name, _)| *name == key).map(|(_, value)| value).next()
    }
}

#[cfg(target_os = "none")]
static ENDPOINT: AtomicU32 = AtomicU32::new(Endpoint::NONE.0);

/// Returns the program's own endpoint; `NONE` in programs that were started by `execve`.
#[cfg(target_os = "none")]
pub fn endpoint() -> Endpoint {
    Endpoint(ENDPOINT.load(Ordering::Relaxed))
}

/// Returns the endpoint of the simulated service whose thread this is, or `NONE`.
#[cfg(not(target_os = "none"))]
pub fn endpoint() -> Endpoint {
    crate::host::endpoint()
}

/// Returns the program's name.
#[cfg(target_os = "none")]
pub fn name() -> &'static str {
    entry::name()
}

/// Returns the program's name.
#[cfg(not(target_os = "none"))]
pub fn name() -> &'static str {
    "test"
}

/// Exits; rs (or pm) receives the status.
pub fn exit(status: i32) -> ! {
    let _ = raw::kernel(KernelCall::Exit, [status as i64 as u64, 0, 0, 0, 0, 0]);
    unreachable!("Exit has returned")
}

/// Declares the main function of a service: `fn main(start: sys::Start)`. When it returns the service exits with status 0.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        #[cfg(target_os = "none")]
        const _: () = {
            extern "C" fn start(
                kind: u64,
                text: *const u8,
                bytes: usize,
                heap: *mut u8,
                heap_bytes: usize,
                own: u64,
            ) -> ! {
                let name = env!("CARGO_PKG_NAME");
                // SAFETY: the kernel starts the program here, with the registers that vm and rs have set.
                unsafe { $crate::start::entry::service(kind, text, bytes, heap, heap_bytes, own, name, $main) }
            }
            $crate::start::__entry!("xor ebp, ebp", "mov rcx, r10", "call {start}", "ud2", start);
        };
    };
}

/// Declares the main function of a program started by `execve`: `fn main(arguments: sys::linux::Arguments) -> i32`, which
/// returns the exit status. Such a program has no heap.
#[macro_export]
macro_rules! linux_program {
    ($main:path) => {
        #[cfg(target_os = "none")]
        const _: () = {
            extern "C" fn start(stack: *const u64) -> ! {
                // SAFETY: execve starts the program here, with this pointer to its arguments.
                unsafe { $crate::start::entry::linux(stack, env!("CARGO_PKG_NAME"), $main) }
            }
            $crate::start::__entry!("xor ebp, ebp", "mov rdi, rsp", "call {start}", "ud2", start);
        };
    };
}

/// Defines the first instructions. Part of `program!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __entry {
    ($($line:literal),*, $start:ident) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        extern "C" fn _start() -> ! {
            core::arch::naked_asm!($($line),*, start = sym $start)
        }
    };
}

#[doc(hidden)]
pub use __entry;

/// Functions that the entry macros call. Not for programs.
#[doc(hidden)]
#[cfg(target_os = "none")]
pub mod entry {
    use super::*;
    use crate::linux::Arguments;
    use core::sync::atomic::{AtomicPtr, AtomicUsize};

    static NAME: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
    static NAME_BYTES: AtomicUsize = AtomicUsize::new(0);

    pub fn name() -> &'static str {
        let start = NAME.load(Ordering::Relaxed);
        if start.is_null() {
            return "?";
        }
        // SAFETY: `set_name` stored start and length of a static text, and a program has one thread.
        let bytes = unsafe { core::slice::from_raw_parts(start, NAME_BYTES.load(Ordering::Relaxed)) };
        core::str::from_utf8(bytes).unwrap_or("?")
    }

    fn set_name(name: &'static str) {
        NAME_BYTES.store(name.len(), Ordering::Relaxed);
        NAME.store(name.as_ptr().cast_mut(), Ordering::Relaxed);
    }

    /// # Safety
    /// Called once, first, with the registers that a service starts with.
    #[expect(clippy::too_many_arguments, reason = "one for each register that is set at the start")]
    pub unsafe fn service(
        kind: u64,
        text: *const u8,
        text_bytes: usize,
        heap: *mut u8,
        heap_bytes: usize,
        own: u64,
        name: &'static str,
        main: fn(Start),
    ) -> ! {
        set_name(name);
        ENDPOINT.store(own as u32, Ordering::Relaxed);
        crate::time::find_clock_page(endpoint());
        if crate::retained::begin_life() {
            crate::heap::take_over();
            crate::grant::revoke_all();
        } else {
            // SAFETY: rs and vm give each service a heap of this length that nothing else uses.
            unsafe { crate::heap::claim(heap, heap_bytes) };
        }
        let text = if text_bytes == 0 {
            &[]
        } else {
            // SAFETY: vm has put the argument text there for the service's lifetime and nobody writes to it.
            unsafe { core::slice::from_raw_parts(text, text_bytes) }
        };
        let arguments = core::str::from_utf8(text).expect("the arguments are not UTF-8");
        main(Start { kind: StartKind::from_word(kind), arguments, endpoint: Endpoint(own as u32) });
        exit(0)
    }

    /// # Safety
    /// Called once, first, with the stack pointer that `execve` leaves.
    pub unsafe fn linux(stack: *const u64, name: &'static str, main: fn(Arguments) -> i32) -> ! {
        set_name(name);
        // SAFETY: a program started by execve finds argc and argv at the top of its stack, valid while it runs.
        let arguments = unsafe { Arguments::from_stack(stack) };
        crate::linux::exit(main(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_found_by_its_key() {
        let start =
            Start { kind: StartKind::Fresh, arguments: "root=ext2,vda ro  /proc=procfs", endpoint: Endpoint::NONE };
        assert_eq!(start.argument("/proc"), Some("procfs"));
        assert_eq!(start.argument("root"), Some("ext2,vda"));
        assert_eq!(start.argument("ro"), None);
    }
}
