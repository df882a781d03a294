//! The protocol between tty and console, beside `chardev::serial`: the terminals that are shown on a screen. Bytes go as over a serial line, each
//! exactly once.

/// Terminals on the screen.
pub const TERMINALS: usize = 6;
/// `chardev`, tty to console: the minor of terminal 1.
pub const MINOR_TERMINAL: u64 = 0x8000;
/// `Control`: returns the terminal's size as soon as it is not `argument`: rows in the low 16 bits, columns in the next.
pub const WAIT_FOR_SIZE: u64 = 0x100;
