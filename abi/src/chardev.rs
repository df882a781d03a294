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

/// What tty asks of uart. Reads and writes are exactly-once: word `caller` of `Read` is how many bytes of the line's input tty has
/// taken in so far, and of `Write` how many bytes of its output came before these. uart keeps input until a later `Read` says
/// that it has been taken, and skips output that it has sent. A position that fits nothing it knows begins the count anew.
pub mod serial {
    /// `Control`: speed, form of a character and flow control, as `argument` has them (`LINE_*`). `EINVAL`: the chip cannot.
    pub const SET_LINE: u64 = 1;
    /// `Control` → the modem lines, as Linux's TIOCMGET has them (`MODEM_*`).
    pub const GET_MODEM: u64 = 2;
    /// `Control`: sets the outgoing modem lines to those of `argument`.
    pub const SET_MODEM: u64 = 3;
    /// `Control`: begins (1) or ends (0) a break.
    pub const SET_BREAK: u64 = 4;
    /// `Control`: is answered when everything written has left the chip.
    pub const DRAIN: u64 = 5;
    /// `Control`: sends one byte ahead of everything written (XON, XOFF).
    pub const SEND_NOW: u64 = 6;

    /// `SET_LINE`: the low half is the speed in bit/s, 0: hang up.
    pub const LINE_RATE: u64 = 0xffff_ffff;
    /// `SET_LINE`: first of two bits with the length of a character, less 5.
    pub const LINE_LENGTH_SHIFT: u32 = 32;
    /// `SET_LINE`: two stop bits.
    pub const LINE_TWO_STOP: u64 = 1 << 34;
    /// `SET_LINE`: a parity bit.
    pub const LINE_PARITY: u64 = 1 << 35;
    /// `SET_LINE`: ones in all are odd.
    pub const LINE_ODD: u64 = 1 << 36;
    /// `SET_LINE`: the parity bit is always 1 (odd) or 0.
    pub const LINE_STICK: u64 = 1 << 37;
    /// `SET_LINE`: flow control by RTS and CTS.
    pub const LINE_RTS_CTS: u64 = 1 << 38;
    /// 115,200 bit/s, 8 bits, no parity, one stop bit.
    pub const LINE_INITIAL: u64 = 115_200 | 3 << LINE_LENGTH_SHIFT;

    /// Loopback (out): what the chip sends comes back as what it receives, and does not leave it.
    pub const MODEM_LOOP: u64 = 0x8000;
    /// Data terminal ready (out).
    pub const MODEM_DTR: u64 = 0x002;
    /// Request to send (out).
    pub const MODEM_RTS: u64 = 0x004;
    /// Clear to send (in).
    pub const MODEM_CTS: u64 = 0x020;
    /// Carrier detect (in).
    pub const MODEM_CD: u64 = 0x040;
    /// Ring indicator (in).
    pub const MODEM_RI: u64 = 0x080;
    /// Data set ready (in).
    pub const MODEM_DSR: u64 = 0x100;
}
