//! The protocol between tty and pm: signals of terminals. (Reads and writes are `chardev`.)

protocol! {
    /// Terminals. tty notifies pm when there are events.
    pub "tty" = 9;
    /// pm: returns the next event. `ENOENT`: none. `signal` for every process of `group` (SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGHUP, SIGCONT).
    NextEvent = 1 { } -> { signal: u64, group: u64 }
    /// pm: the session of this leader has ended and loses its terminal; SIGHUP and SIGCONT to the foreground group come as events.
    SessionEnd = 2 { session: u64 }
    /// pm, before the machine ends: returns when all output of the terminals has been sent, or after a second: a line that is stopped must
    /// not keep the machine running.
    Drain = 3 { }
}

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
