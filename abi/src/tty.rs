//! What tty tells pm beyond being a character device: signals of the terminal.

protocol! {
    /// Terminals. tty notifies pm when there are events.
    pub "tty" = 9;
    /// pm: the next event. `ENOENT`: none. `signal` for every process of `group` (SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGHUP, SIGCONT).
    NextEvent = 1 { } -> { signal: u64, group: u64 }
    /// pm: the session of this leader is over: it loses its terminal; SIGHUP and SIGCONT to the foreground group come as events.
    SessionEnd = 2 { session: u64 }
}
