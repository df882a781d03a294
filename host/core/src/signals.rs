//! The signals that end a program in good order, as something to wait for.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io;
use std::mem::MaybeUninit;

/// `SIGTERM`, `SIGINT` and `SIGHUP`, but for those that whoever started the program has it ignore. They are blocked from the beginning on, so
/// none is lost; a program that is executed inherits that, and must do the same.
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks them. To be called before there is a second thread.
    ///
    /// # Errors
    /// Those of `signalfd(2)`.
    pub fn block() -> std::io::Result<Signals> {
        // SAFETY: the set and the actions are the kernel's to write, and are as long as their types say; the descriptor is new, and nobody else's.
        unsafe {
            let mut set = MaybeUninit::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                let mut action = MaybeUninit::<libc::sigaction>::zeroed();
                libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
                if action.assume_init().sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(set.as_mut_ptr(), signal);
                }
            }
            libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            match libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => Err(std::io::Error::last_os_error()),
                fd => Ok(Signals(OwnedFd::from_raw_fd(fd))),
            }
        }
    }

    /// Whether one has come.
    pub fn have_come(&self) -> bool {
        let mut ends = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut ends, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    }

    /// Waits until one comes, or something can be read from `other`. Returns whether one has come.
    ///
    /// # Errors
    /// Those of `poll(2)`.
    pub fn come_before(&self, other: impl AsFd) -> io::Result<bool> {
        let mut ends = [PollFd::new(&self.0, PollFlags::IN), PollFd::new(&other, PollFlags::IN)];
        while let Err(error) = poll(&mut ends, None) {
            if error != io::Errno::INTR {
                return Err(error);
            }
        }
        Ok(!ends[0].revents().is_empty())
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
