//! Explanations of errors, with a hint what to do next.

use crate::command::Command;
use abi::{Errno, Name};
use core::fmt;

/// Added to errors of reading a file, to distinguish them from those of rs.
const OF_FILE: i32 = 10_000;

/// Marks an error as one of reading a file.
pub fn of_file(error: Errno) -> Errno {
    Errno(error.0 + OF_FILE)
}

/// An error and the command that caused it.
pub struct Refusal<'a> {
    /// The error of rs, or marked by [`of_file`].
    pub error: Errno,
    /// The command.
    pub command: &'a Command<'a>,
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.command.name().unwrap_or_default();
        match (self.error, self.command) {
            (Errno(number), Command::Update(_, file)) if number > OF_FILE => match Errno(number - OF_FILE) {
                Errno::ENOENT => write!(f, "there is no file '{file}'"),
                error => write!(f, "'{file}' cannot be read: {error}"),
            },
            (error, Command::Update(_, file)) => self.refused_update(f, error, name, file),
            (error, Command::Top(_) | Command::Trace(_) | Command::Profile(..)) => refused_device(f, error),
            (Errno::ENOENT, _) => write!(f, "there is no service '{name}'; 'service list' shows them"),
            (Errno::ESRCH, _) => write!(f, "'{name}' is not running; 'service restart {name}' starts it"),
            (Errno::EPERM, Command::Restart(_)) => f.write_str("only root may do that, and not to rs or vm"),
            (Errno::EPERM, _) => f.write_str("only root may do that"),
            (Errno::ENODATA, _) => write!(f, "'{name}' has not crashed since the system started"),
            (Errno::EFAULT, Command::Inject(..)) => write!(f, "'{name}' has no memory at that address"),
            (Errno::EBUSY, Command::Reports) => f.write_str("another 'service reports' is running"),
            (error, _) => write!(f, "rs returned {error}"),
        }
    }
}

fn refused_device(f: &mut fmt::Formatter<'_>, error: Errno) -> fmt::Result {
    match error {
        Errno::ENOENT | Errno::ENXIO => {
            f.write_str("there is no /dev/trace; 'service status trace' says whether its driver runs")
        }
        Errno::EPERM | Errno::EACCES => f.write_str("only root may do that: it shows the messages of all users"),
        Errno::EMFILE => f.write_str("too many programs read /dev/trace; end one of them"),
        error => write!(f, "/dev/trace cannot be read: {error}"),
    }
}

impl Refusal<'_> {
    fn refused_update(&self, f: &mut fmt::Formatter<'_>, error: Errno, name: Name, file: &str) -> fmt::Result {
        match error {
            Errno::ENOENT => write!(f, "there is no service '{name}'; 'service list' shows them"),
            Errno::ESRCH => write!(f, "'{name}' is not running; 'service restart {name}' starts it"),
            Errno::EPERM => f.write_str("only root may do that, and not to rs or vm"),
            Errno::ENOEXEC => {
                write!(f, "'{file}' is no program for a service: expected a static ELF64 file linked at 0x400000")
            }
            Errno::EFBIG | Errno::ENOMEM => write!(f, "'{file}' is larger than rs accepts"),
            Errno::EBUSY => write!(f, "an update of '{name}' is in progress; try again when it has finished"),
            Errno::EOPNOTSUPP => write!(f, "'{name}' cannot be updated: its state would be lost"),
            Errno::ECANCELED => {
                write!(f, "the new program failed, and the old one runs again; 'service log {name}' may say why")
            }
            error => write!(f, "rs returned {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do_next() {
        let uart = Name::new("uart").expect("is a name");
        let text = |error, command: Command| Refusal { error, command: &command }.to_string();
        assert_eq!(text(Errno::ESRCH, Command::Kill(uart)), "'uart' is not running; 'service restart uart' starts it");
        assert_eq!(text(of_file(Errno::ENOENT), Command::Update(uart, "/x")), "there is no file '/x'");
        assert!(text(Errno::ENOENT, Command::Update(uart, "/x")).contains("'service list'"));
        assert!(text(Errno::ECANCELED, Command::Update(uart, "/x")).contains("service log uart"));
    }
}
