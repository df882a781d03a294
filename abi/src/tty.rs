//! The protocol between tty and pm: signals of terminals. (Reads and writes are `chardev`.)

protocol! {
    /// Terminals. tty notifies pm when there are events.
    pub "tty" = 9;
    /// pm: returns the first event but that with the number `done`, which pm has dealt with. `ENOENT`: none. `signal` for every process of the group `target` (SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU,
    /// SIGWINCH, SIGHUP, SIGCONT), or with `TO_PROCESS` for the process with that pid: what it has asked for with `VT_SETMODE`, or 0, which
    /// only asks whether the process exists. If it does not, `ProcessGone` follows. With `CHANGES` besides, the process wants to change the
    /// terminal from the background: its group gets SIGTTOU, unless it need not, or nobody could continue it; then `Background` follows.
    NextEvent = 1 { done: u64 } -> { number: u64, signal: u64, target: u64 }
    /// pm: the session of this leader has ended and loses its terminal; SIGHUP and SIGCONT to the foreground group come as events.
    SessionEnd = 2 { session: u64 }
    /// pm, before the machine ends: returns when all output of the terminals has been sent, or after a second: a line that is stopped must
    /// not keep the machine running.
    Drain = 3 { }
    /// pm: the process to which tty had a signal has ended. Screens that it draws on and terminals whose switch it decides are taken back.
    ProcessGone = 4 { process: u64 }
    /// pm: what a process wants to do to its terminal from the background is `allowed`, since it ignores or blocks SIGTTOU, or fails with
    /// `EIO`, since its group is orphaned.
    Background = 5 { process: u64, allowed: bool }
}

/// `NextEvent`: the target is a process.
pub const TO_PROCESS: u64 = 1 << 32;
/// `NextEvent`: the target is a process that wants to change its terminal from the background.
pub const CHANGES: u64 = 1 << 33;
/// Major number of the slaves of pseudo-terminals (Linux's): the node of slave N is `makedev(PTS_MAJOR, N)`.
pub const PTS_MAJOR: u8 = 136;
/// Major and minor number of /dev/ptmx (Linux's), each opening of which makes a pseudo-terminal.
pub const PTMX: (u8, u8) = (5, 2);
/// Pseudo-terminals at a time (Linux's kernel.pty.max).
pub const MAX_PTYS: usize = 4096;
/// `chardev`: the minor of master 0; that of master N is N more.
pub const MINOR_MASTER: u64 = 0x1_0000;
/// `chardev`: the minor of slave 0.
pub const MINOR_SLAVE: u64 = 0x2_0000;
