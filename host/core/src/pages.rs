//! Whether the memory is there that a program names for a message or a descriptor (docs/adr/0151-the-kernel-is-asked-once-for-a-page.md).
//!
//! Only the kernel knows. It is asked for each descriptor, and of messages once for a page: a thread keeps the pages that it has found, and windows of what its last
//! message lay in. So memory that is unmapped or protected after a call has found it is taken to be there still.
//!
//! Neighbours: `window`; `memory` asks the kernel; [`crate::skink`] has windows of its own.

use crate::memory::{self, Access};
use crate::region::PAGE_BYTES;
use crate::skink;
use crate::window::Window;
use m3ipc::message::Message;
use std::cell::Cell;

/// Pages that a thread keeps, by the lowest bits of their numbers.
const KEPT: usize = 16;

/// What a thread has found.
struct Found {
    /// Of the last message that was read.
    readable: Window,
    /// Of the last message that was written.
    writable: Window,
    /// Numbers of pages, twice, and one more where it may be written.
    pages: [Cell<usize>; KEPT],
}

thread_local! {
    static FOUND: Found = const { Found::new() };
}

impl Found {
    const fn new() -> Found {
        // No page has this number.
        Found { readable: Window::empty(), writable: Window::empty(), pages: [const { Cell::new(usize::MAX) }; KEPT] }
    }

    #[inline(always)]
    fn window(&self, access: Access) -> &Window {
        match access {
            Access::Read => &self.readable,
            Access::Write => &self.writable,
        }
    }

    fn keeps(&self, page: usize, access: Access) -> bool {
        let kept = self.pages[page % KEPT].get();
        kept == page << 1 | 1 || access == Access::Read && kept == page << 1
    }

    fn keep(&self, page: usize, access: Access) {
        if !self.keeps(page, access) {
            self.pages[page % KEPT].set(page << 1 | usize::from(access == Access::Write));
        }
    }

    /// Looks for a message among the pages that are kept, and else asks `is_there`. Returns whether it is there.
    ///
    /// What is only to be read is nearly always to be written later, so both are asked at once.
    fn look(&self, address: usize, access: Access, is_there: impl Fn(Access) -> bool) -> bool {
        let Some(last) = address.checked_add(size_of::<Message>() - 1) else { return false };
        let pages = address / PAGE_BYTES..=last / PAGE_BYTES;
        let is_kept = |access| pages.clone().all(|page| self.keeps(page, access));
        let found = match access {
            _ if is_kept(Access::Write) => Access::Write,
            Access::Read if is_kept(Access::Read) => Access::Read,
            _ if is_there(Access::Write) => Access::Write,
            Access::Read if is_there(Access::Read) => Access::Read,
            _ => return false,
        };
        let memory = pages.start() * PAGE_BYTES..(pages.end() + 1) * PAGE_BYTES;
        pages.for_each(|page| self.keep(page, found));
        self.window(access).set(&memory);
        self.window(found).set(&memory);
        true
    }
}

/// Whether a message is there, and may be read or written.
#[inline(always)]
pub fn has_message(address: usize, access: Access) -> bool {
    FOUND.with(|found| found.window(access).has(address)) || look(address, access)
}

#[cold]
#[inline(never)]
fn look(address: usize, access: Access) -> bool {
    FOUND.with(|found| {
        let is_there = found.look(address, access, |access| has(address, size_of::<Message>(), access));
        skink::see(&found.readable, &found.writable);
        is_there
    })
}

/// Whether so many bytes are there, which are at most a page, and may be read or written.
pub fn has(address: usize, bytes: usize, access: Access) -> bool {
    address != 0 && memory::is_there(address, bytes, access)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 0x7000_0000;

    fn never(_: Access) -> bool {
        false
    }

    fn for_reading(access: Access) -> bool {
        access == Access::Read
    }

    fn always(_: Access) -> bool {
        true
    }

    #[test]
    fn the_kernel_is_asked_once_for_a_page() {
        let found = Found::new();
        assert!(!found.look(PAGE, Access::Read, never), "what is not there is not kept");
        assert!(!found.readable.has(PAGE));
        assert!(found.look(PAGE, Access::Read, for_reading));
        assert!(found.readable.has(PAGE + 1) && !found.writable.has(PAGE));
        assert!(found.look(PAGE + 128, Access::Read, never), "it is kept");
        assert!(!found.look(PAGE, Access::Write, for_reading), "whether it may be written is asked, too");
        assert!(found.look(PAGE + PAGE_BYTES, Access::Read, always));
        let is_seen = |address| (found.readable.has(address), found.writable.has(address));
        assert_eq!(is_seen(PAGE + PAGE_BYTES), (true, true), "it was asked for at once");
        assert_eq!(is_seen(PAGE), (false, false));
        assert!(found.look(PAGE, Access::Read, never), "both are kept");
        assert_eq!(is_seen(PAGE), (true, false));
        assert!(found.look(PAGE + PAGE_BYTES, Access::Write, never));
    }

    #[test]
    fn both_pages_of_a_message_must_be_there() {
        let found = Found::new();
        let across = PAGE + PAGE_BYTES - 8;
        assert!(found.look(PAGE, Access::Write, always));
        assert!(!found.look(across, Access::Write, never), "the second one is not");
        assert!(found.look(across, Access::Write, always));
        let is_seen = |address| found.writable.has(address);
        assert!(is_seen(PAGE) && is_seen(across) && !is_seen(PAGE + 2 * PAGE_BYTES - 8));
        assert!(!found.look(usize::MAX - 8, Access::Read, always), "a message that begins anew at null");
    }

    #[test]
    fn the_kernel_tells_what_is_there() {
        let mut message = Message::default();
        let address = std::ptr::from_mut(&mut message) as usize;
        let constant = std::ptr::from_ref(&PAGE_BYTES) as usize;
        assert!(has_message(address, Access::Write) && has_message(address, Access::Read));
        assert!(has(constant, 8, Access::Read) && !has(constant, 8, Access::Write), "constants are not writable");
        let nowhere = [0, 8, 1 << 46, 1 << 63, usize::MAX - 4095, usize::MAX - 7];
        for access in [Access::Read, Access::Write] {
            assert!(!nowhere.into_iter().any(|address| has(address, 8, access) || has_message(address, access)));
        }
    }
}
