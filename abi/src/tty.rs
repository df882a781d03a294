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
