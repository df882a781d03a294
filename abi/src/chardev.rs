//! The protocol of character devices: vfs speaks it to tty, devfs (memory devices) and rtc; tty speaks it to uart.
//! Asynchronous: a request may wait for long; the tag in word 6 names it, in its reply and in `Cancel`.

use crate::GrantId;

protocol! {
    /// Character devices.
    pub "chardev" = 8;
    /// Opens a minor for a process of this pid, group and session. `flags`: Linux O_*. Word 0 of the reply: `OPENED_*`.
    Open = 1 { minor: u64, flags: u64, pid: u64, group: u64, session: u64 }
    /// The last descriptor of one open file is closed.
    Close = 2 { minor: u64 }
    /// Reads into the grant. → word 0: bytes. With `NONBLOCK` in flags `EAGAIN` instead of waiting. `caller`: group (low) and session (high half) of the reader.
    Read = 3 { minor: u64, grant: GrantId, bytes: u64, flags: u64, caller: u64 }
    /// Writes from the grant. → word 0: bytes. `position` in memory devices is not needed.
    Write = 4 { minor: u64, grant: GrantId, bytes: u64, flags: u64, caller: u64 }
    /// Linux ioctl: `argument` as given; the grant covers 256 bytes of the program's memory at `argument` (NONE when that is not mapped... the copy then gives `EFAULT`).
    /// `pid`: low half pid; high half group. `session` of the caller.
    Control = 5 { minor: u64, request: u64, argument: u64, grant: GrantId, caller: u64, session: u64 }
    /// Waits until one of `events` (Linux POLLIN 1, POLLOUT 4, POLLHUP 16) is there; `now` answers at once. → word 0: events.
    Poll = 6 { minor: u64, events: u64, now: bool }
    /// Ends the waiting request with this tag (of this caller): it is answered with `EINTR`, or with what it has moved. This request itself is not answered.
    Cancel = 7 { tag: u64 }
}

/// `Read`, `Write`: do not wait.
pub const NONBLOCK: u64 = 0x800;
/// `Open`: the terminal has become the controlling terminal of the session.
pub const OPENED_CONTROLLING: u64 = 1;
