//! The protocol of character devices: requests of vfs to tty, devfs (memory devices) and rtc, and of tty to uart.
//! Asynchronous: a request may block for long; the tag in word 6 identifies it, in its reply and in `Cancel`.

use crate::GrantId;

protocol! {
    /// Character devices.
    pub "chardev" = 8;
    /// Opens a minor. `flags`: Linux O_*; `caller`: pid (low half) and process group (high half); `ids`: effective (low half) and real (high
    /// half) user id; `node`: the special file, if it is one of a file system of this driver's own, else 0. Word 0 of the reply:
    /// `OPENED_*`, and in the high half the minor that the open file has from now on, if that is another (/dev/ptmx, /dev/tty).
    Open = 1 { minor: u64, flags: u64, caller: u64, session: u64, ids: u64, node: u64 }
    /// The last descriptor of one open file is closed.
    Close = 2 { minor: u64 }
    /// Reads into the grant. Word 0 of the reply: bytes read. `EAGAIN` instead of blocking with `NONBLOCK` in `flags`.
    /// `caller`: process group (low half) and session (high half) of the reader.
    Read = 3 { minor: u64, grant: GrantId, bytes: u64, flags: u64, caller: u64 }
    /// Writes from the grant. Word 0 of the reply: bytes written. There is no position: `WriteAt` is for the devices that have one.
    /// `process`: pid of the writer.
    Write = 4 { minor: u64, grant: GrantId, bytes: u64, flags: u64, caller: u64, process: u64 }
    /// ioctl(2): `argument` as the program passed it; the grant covers 256 bytes of the program's memory at `argument`
    /// (copies of unmapped memory fail with `EFAULT`).
    /// `caller`: pid (low half) and process group (high half); `session` of the caller.
    /// A driver that needs further memory, to which the argument points, replies with where that is: `further_bytes` (at most
    /// `MAX_FURTHER_BYTES`, 0: the ioctl is done) at `further`. It is then asked to `Continue`.
    Control = 5 { minor: u64, request: u64, argument: u64, grant: GrantId, caller: u64, session: u64 }
        -> { further: u64, further_bytes: u64 }
    /// Waits for one of `events` (Linux POLLIN 1, POLLPRI 2, POLLOUT 4, POLLERR 8, POLLHUP 16); with `now` returns at once. Word 0 of the reply:
    /// the ready events, and from `ARRIVALS_SHIFT` on a number below 2^27 that is another when something has arrived after it was told; 0: the
    /// device does not count. `since`: such a number, from which the device is ready only when something has arrived for `events`; 0: none.
    Poll = 6 { minor: u64, events: u64, now: bool, since: u64 }
    /// Cancels the caller's request with this tag, of this minor, which returns `EINTR` or the bytes moved so far. `Cancel` itself has no reply.
    Cancel = 7 { tag: u64, minor: u64 }
    /// Restores the open files after a restart of vfs, before any of its other requests: the grant holds `fs::Use` records of minors and
    /// how many open files each has. What else was open is closed. `ENOSYS`: this driver does not count.
    SetUses = 8 { grant: GrantId, bytes: u64 }
    /// mmap(2): what the device has at `offset` for `bytes` bytes, both whole pages. Reply: the physical address, and how programs see it
    /// (`layout::map::COMBINED`, `UNCACHED` or 0). It must be memory of the driver's device or its DMA memory, which vm checks.
    /// `ENODEV`: the device cannot be mapped; `EINVAL`: it has less.
    Map = 9 { minor: u64, offset: u64, bytes: u64 } -> { physical: u64, caching: u64 }
    /// Goes on with an ioctl after the driver has asked for further memory. `request`: as in `Control`, and in the high half how many times
    /// the driver has asked. `grants`: the argument's (low half) and that of the memory asked for last (high half). The reply is as
    /// `Control`'s. A driver keeps nothing between the steps: after a restart of either side the ioctl begins anew.
    Continue = 10 { minor: u64, request: u64, argument: u64, grants: u64, caller: u64, session: u64 }
        -> { further: u64, further_bytes: u64 }
    /// As `Read`, of a device with positions (`OPENED_POSITIONS`), from `position` on. Word 0 of the reply: bytes read, 0 at the end.
    ReadAt = 11 { minor: u64, grant: GrantId, bytes: u64, position: u64 }
    /// As `Write`, of a device with positions. `ENOSPC`, `EFBIG`: nothing is there.
    WriteAt = 12 { minor: u64, grant: GrantId, bytes: u64, position: u64 }
}

/// `Read`, `Write`: do not block.
pub const NONBLOCK: u64 = 0x800;
/// `Poll`: where the number of arrivals begins in the reply.
pub const ARRIVALS_SHIFT: u32 = 32;
/// `Open`: the terminal has become the controlling terminal of the session.
pub const OPENED_CONTROLLING: u64 = 1;
/// `Open`: the device has positions: it is asked to `ReadAt` and `WriteAt`, lseek(2) works, and it is always ready.
pub const OPENED_POSITIONS: u64 = 2;

/// Limit of the further memory of one step of an ioctl, in bytes.
pub const MAX_FURTHER_BYTES: u64 = 64 << 10;
/// Limit of the steps of an ioctl: those of an `I2C_RDWR`, its list of messages and the 42 messages that Linux allows.
pub const MAX_FURTHER_STEPS: u64 = 43;

/// The half of the reply to `Open` that has the open file's minor.
pub const OPENED_MINOR_SHIFT: u32 = 32;

/// Requests of tty to uart. Each byte is read and written exactly once, even if either side restarts: `caller` of `Read` counts
/// the input bytes that tty has received, `caller` of `Write` the output bytes before these. uart keeps input until a later `Read`
/// acknowledges it, and skips output that it has sent already. A count that matches nothing uart knows resets its own.
pub mod serial {
    /// `Control`: speed, form of a character and flow control, as `argument` encodes them (`LINE_*`). `EINVAL`: the chip does not support them.
    pub const SET_LINE: u64 = 1;
    /// `Control`: returns the modem lines, encoded as by TIOCMGET (`MODEM_*`).
    pub const GET_MODEM: u64 = 2;
    /// `Control`: sets the outgoing modem lines to `argument`.
    pub const SET_MODEM: u64 = 3;
    /// `Control`: starts (1) or ends (0) a break.
    pub const SET_BREAK: u64 = 4;
    /// `Control`: replies once everything written has left the chip.
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
    /// `SET_LINE`: odd parity.
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
