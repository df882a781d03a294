//! The other one of the two processes, supervisor or worker: one starts it, knows when it has ended, and ends it.
//!
//! Whichever of the two outlives the other one starts a new partner and hands over what there is to keep. Neighbour: `store` has what they say
//! to each other.

use crate::store::{self, Packet};
use m3core::memory;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// In the environment of a process that the other one has started: which of the two it is.
const ROLE: &str = "M3IPCD_ROLE";
/// The socket to the process that has started this one is its standard input.
const STARTER: i32 = 0;
/// A partner that dies sooner than this has its successor later.
const SHORT_LIFE: Duration = Duration::from_millis(100);
/// How much later.
pub const BACK_OFF: Duration = Duration::from_millis(200);

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Supervisor,
    Worker,
}

impl Role {
    /// What this process was started as, if it was by its partner.
    pub fn of_this_process() -> Option<Role> {
        let role = std::env::var_os(ROLE)?;
        [Role::Supervisor, Role::Worker].into_iter().find(|known| role == known.name())
    }

    fn name(self) -> &'static str {
        match self {
            Role::Supervisor => "supervisor",
            Role::Worker => "worker",
        }
    }
}

/// The other process.
pub struct Partner {
    socket: Rc<OwnedFd>,
    process: OwnedFd,
    pid: i32,
    /// When this process started it; `None`: it was the other way round.
    child: Option<Child>,
    since: Instant,
}

impl Partner {
    /// Starts one.
    ///
    /// # Errors
    /// There are no open files, or no processes.
    pub fn start(role: Role) -> io::Result<Partner> {
        let (own, others) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let arguments = std::env::args_os().skip(1);
        // A program that was replaced meanwhile has its new version work from now on; one that was removed is still there under this name.
        let program = std::env::current_exe().ok().filter(|path| path.exists()).unwrap_or("/proc/self/exe".into());
        store::introduce(&own, pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?)?;
        let mut child =
            Command::new(program).args(arguments).env(ROLE, role.name()).stdin(Stdio::from(others)).spawn()?;
        let pid = child.id() as i32;
        let process = Pid::from_raw(pid).ok_or(Errno::SRCH).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let process = process.inspect_err(|_| {
            // It has been told nothing yet.
            let _ = child.kill().and_then(|()| child.wait());
        })?;
        Ok(Partner { socket: Rc::new(own), process, pid, child: Some(child), since: Instant::now() })
    }

    /// The partner that has started this process; `None`: none has, or it has ended.
    pub fn starter() -> Option<Partner> {
        let socket = memory::inherited(STARTER)?;
        let (pid, ..) = memory::peer(&socket).ok()?;
        let Some(Packet::Introduce(process)) = store::receive(&socket) else { return None };
        let pid = pid.map_or(0, std::num::NonZero::get);
        Some(Partner { socket: Rc::new(socket), process, pid, child: None, since: Instant::now() })
    }

    /// The socket to it.
    pub fn socket(&self) -> &Rc<OwnedFd> {
        &self.socket
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Asks it to end as this process does.
    pub fn ask_to_end(&self) {
        // It may have ended.
        let _ = pidfd_send_signal(&self.process, Signal::TERM);
    }

    /// Ends it, if it has not yet, and waits for that. Returns how it has ended.
    pub fn end(&mut self) -> String {
        // Whatever it does with a socket that nobody reads: it has ended, or shall.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
        let pid = self.pid;
        if let Some(Ok(status)) = self.child.as_mut().map(Child::wait) {
            return format!("pid {pid}, {status}");
        }
        while poll(&mut [PollFd::new(&self.process, PollFlags::IN)], None) == Err(Errno::INTR) {}
        format!("pid {pid}")
    }

    /// How long its successor should wait, which may die as soon.
    pub fn pause(&self) -> Duration {
        if self.since.elapsed() < SHORT_LIFE { BACK_OFF } else { Duration::ZERO }
    }
}
