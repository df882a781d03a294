//! The lines of /proc/PID/fdinfo about a pidfd. vfs tells of which process it is, by the system's number, and whether that has ended; whether
//! it is a zombie, which keeps its number, only pm knows. Neighbour: `live`, which asks both.

use crate::text::Text;
use abi::container::{CONTAINERS, pid_shown};
use core::fmt::{self, Write};

/// What vfs tells of a pidfd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Where in the text its line begins, which is the last one.
    pub at: usize,
    /// The system's number of the process.
    pub pid: u32,
    /// Whether it has ended.
    pub has_ended: bool,
}

/// Finds vfs's line about a process; `None`: it is the text of another descriptor.
pub fn told(text: &[u8]) -> Option<Told> {
    const BEFORE: &[u8] = b"\nPid:\t";
    let at = text.windows(BEFORE.len()).position(|bytes| bytes == BEFORE)?;
    let number = core::str::from_utf8(&text[at + BEFORE.len()..]).ok()?.trim_ascii_end();
    let number: i64 = number.parse().ok()?;
    Some(Told { at: at + 1, pid: u32::try_from(number.unsigned_abs()).ok()?, has_ended: number < 0 })
}

/// Writes the lines as a container shows them (0: the system), of a process with this system's number; `None`: it is gone.
pub fn write(text: &mut Text, container: u8, pid: Option<u32>) -> fmt::Result {
    let Some(pid) = pid else { return text.write_str("Pid:\t-1\nNSpid:\t-1\n") };
    let shown = pid_shown(container, pid);
    write!(text, "Pid:\t{shown}\nNSpid:\t{shown}")?;
    let mut inside = (1..CONTAINERS as u8).map(|container| pid_shown(container, pid)).filter(|shown| *shown != 0);
    match inside.next() {
        Some(inner) if container == 0 => writeln!(text, "\t{inner}"),
        _ => text.write_str("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::container::first_pid;

    fn lines(container: u8, pid: Option<u32>) -> std::string::String {
        let text = Text::of(|text| write(text, container, pid)).expect("there is memory");
        std::string::String::from_utf8(text.to_vec()).expect("is UTF-8")
    }

    #[test]
    fn vfs_tells_of_a_process_that_lives_or_has_ended() {
        let found = |text: &[u8]| told(text).map(|told| (told.at, told.pid, told.has_ended));
        assert_eq!(found(b"pos:\t0\nPid:\t35\n"), Some((7, 35, false)));
        assert_eq!(found(b"pos:\t0\nPid:\t-35\n"), Some((7, 35, true)));
        assert_eq!(found(b"pos:\t0\nino:\t35\n"), None);
        assert_eq!(found(b"pos:\t0\nPid:\tx\n"), None);
    }

    #[test]
    fn numbers_are_those_of_the_container_that_shows_them() {
        assert_eq!(lines(0, Some(77)), "Pid:\t77\nNSpid:\t77\n");
        assert_eq!(lines(0, None), "Pid:\t-1\nNSpid:\t-1\n");
        let inside = first_pid(3) + 2;
        assert_eq!(lines(0, Some(inside)), std::format!("Pid:\t{inside}\nNSpid:\t{inside}\t2\n"));
        assert_eq!(lines(3, Some(inside)), "Pid:\t2\nNSpid:\t2\n");
        assert_eq!(lines(3, Some(77)), "Pid:\t0\nNSpid:\t0\n");
    }
}
