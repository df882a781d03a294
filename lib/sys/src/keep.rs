//! Preserved memory: bytes that a service finds again after its death, whatever it died of.
//!
//! A service may be killed between any two instructions, so the order in which bytes arrive matters: the accesses here
//! happen in program order. How to make a change all or nothing is the user's business.

use abi::layout::SERVICE_KEEP;
use core::sync::atomic::{AtomicBool, Ordering, compiler_fence};

static TAKEN: AtomicBool = AtomicBool::new(false);

/// The service's preserved memory.
#[derive(Debug)]
pub struct Keep {
    bytes: usize,
}

impl Keep {
    /// The preserved memory of `bytes` bytes, at most `keep_bytes` of the system file: the service dies at its first step beyond.
    /// It is there once: `None` the second time. On the host there is none.
    pub fn take(bytes: usize) -> Option<Keep> {
        (cfg!(target_os = "none") && !TAKEN.swap(true, Ordering::Relaxed)).then_some(Keep { bytes })
    }

    /// Its length.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True when it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies out from `offset`.
    ///
    /// # Panics
    /// When the range is not within.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        let start = (SERVICE_KEEP as usize + offset) as *const u8;
        // SAFETY: within the preserved memory (checked), which vm maps for the service's lifetime; only `Keep` uses it.
        unsafe { start.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        compiler_fence(Ordering::SeqCst);
    }

    /// Copies in at `offset`: after everything before and before everything after, itself in no order.
    ///
    /// # Panics
    /// When the range is not within.
    pub fn write(&mut self, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
        let start = (SERVICE_KEEP as usize + offset) as *mut u8;
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as in `read`, and `self` is borrowed exclusively.
        unsafe { start.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        compiler_fence(Ordering::SeqCst);
    }

    /// Writes one aligned word, which a death leaves either old or new.
    ///
    /// # Panics
    /// When the offset is not aligned or not within.
    pub fn write_word(&mut self, offset: usize, value: u64) {
        self.check(offset, 8);
        assert!(offset.is_multiple_of(8), "the word is not aligned");
        // SAFETY: as in `write`; aligned, since the start of the memory is.
        unsafe { ((SERVICE_KEEP as usize + offset) as *mut u64).write_volatile(value) };
        compiler_fence(Ordering::SeqCst);
    }

    fn check(&self, offset: usize, bytes: usize) {
        let within = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(within, "{bytes} bytes at {offset} are not within {} preserved bytes", self.bytes);
    }
}
