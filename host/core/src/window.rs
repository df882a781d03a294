//! A stretch of memory that a thread has found to be there, as its calls ask for it: by one comparison.

use m3ipc::message::Message;
use std::cell::Cell;
use std::ops::Range;

/// The addresses at which a message may begin, so that all of it lies in memory that was found.
pub struct Window {
    first: Cell<usize>,
    count: Cell<usize>,
}

impl Window {
    /// A window without addresses.
    pub const fn empty() -> Window {
        Window { first: Cell::new(0), count: Cell::new(0) }
    }

    /// Whether a message may begin there.
    #[inline(always)]
    pub fn has(&self, address: usize) -> bool {
        address.wrapping_sub(self.first.get()) < self.count.get()
    }

    /// Sees this memory from now on, which is at least as long as a message.
    pub fn set(&self, memory: &Range<usize>) {
        self.first.set(memory.start);
        self.count.set(memory.len() - size_of::<Message>() + 1);
    }

    /// Sees what another one sees, if it may; else nothing.
    pub fn set_if(&self, may: bool, other: &Window) {
        self.first.set(other.first.get());
        self.count.set(if may { other.count.get() } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_lies_in_the_memory_with_all_its_bytes() {
        let window = Window::empty();
        assert!(![0, 0x1000, usize::MAX].into_iter().any(|address| window.has(address)));
        window.set(&(0x1000..0x2000));
        assert!([0x1000, 0x1001, 0x1fc0].into_iter().all(|address| window.has(address)));
        assert!(![0, 0xfff, 0x1fc1, 0x2000, usize::MAX].into_iter().any(|address| window.has(address)));
        let other = Window::empty();
        other.set_if(true, &window);
        assert!(other.has(0x1fc0));
        other.set_if(false, &window);
        assert!(!other.has(0x1000));
    }
}
