//! `service reports`: saves each crash report of rs in a file of /var/log/crash.
//!
//! rs never waits for a file system, so this program, an ordinary client of Linux calls, waits for rs. If the file system itself has
//! crashed, the report is written as soon as it is restarted.

use abi::rs::{REPORT_BYTES, ReportHead, service_call};
use abi::{Errno, Name};
use core::ffi::CStr;
use core::fmt::{self, Write};
use sys::Result;
use sys::linux::{self, open};
use zerocopy::FromBytes;

/// Directory of the reports and its parent, in the order of creation.
const FOLDERS: [&CStr; 3] = [c"/var", c"/var/log", c"/var/log/crash"];
const FOLDER_MODE: u64 = 0o755;
const FILE_MODE: u64 = 0o644;
/// Limit of files of one service; the last one is then overwritten.
const MAX_FILES: u32 = 100;
/// Capacity of the path of a report, in bytes.
const PATH_BYTES: usize = 64;

/// Waits for reports and saves them, forever.
///
/// # Errors
/// `EBUSY`: another instance is running; those of rs and of the file system.
pub fn write_for_ever() -> Result<()> {
    make_folders()?;
    let mut buffer = [0; REPORT_BYTES];
    let mut next = 1;
    loop {
        let bytes = linux::service(service_call::REPORT, Name::default(), &mut buffer, next)?;
        let (head, _) = ReportHead::read_from_prefix(&buffer).map_err(|_| Errno::EPROTO)?;
        let text = buffer.get(size_of::<ReportHead>()..bytes as usize).ok_or(Errno::EPROTO)?;
        write_file(head.name, text)?;
        next = head.number + 1;
    }
}

fn make_folders() -> Result<()> {
    for folder in FOLDERS {
        match linux::make_folder(folder, FOLDER_MODE) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Saves a report in the next file of the service that does not exist yet.
fn write_file(name: Name, text: &[u8]) -> Result<()> {
    let file = create(name)?;
    let mut rest = text;
    while !rest.is_empty() {
        let written = linux::write(file, rest)?;
        rest = rest.get(written.max(1)..).unwrap_or_default();
    }
    linux::close(file)
}

fn create(name: Name) -> Result<i32> {
    for number in 1..MAX_FILES {
        match linux::open(Path::of(name, number)?.as_c_str()?, open::WRITE | open::CREATE | open::EXCLUSIVE, FILE_MODE)
        {
            Err(Errno::EEXIST) => {}
            result => return result,
        }
    }
    let last = Path::of(name, MAX_FILES)?;
    linux::open(last.as_c_str()?, open::WRITE | open::CREATE | open::TRUNCATE, FILE_MODE)
}

/// Returns the path of a report, terminated by NUL.
struct Path {
    bytes: [u8; PATH_BYTES],
    used: usize,
}

impl Path {
    fn of(name: Name, number: u32) -> Result<Path> {
        let mut path = Path { bytes: [0; PATH_BYTES], used: 0 };
        write!(path, "/var/log/crash/{name}-{number}.txt").map_err(|_| Errno::ENAMETOOLONG)?;
        Ok(path)
    }

    fn as_c_str(&self) -> Result<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::ENAMETOOLONG)
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.used + text.len();
        // The last byte stays NUL.
        let room = self.bytes[..PATH_BYTES - 1].get_mut(self.used..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_named_after_its_service_and_a_number() {
        let path = Path::of(Name::new("virtio_blk").expect("is a name"), 7).expect("is short");
        assert_eq!(path.as_c_str(), Ok(c"/var/log/crash/virtio_blk-7.txt"));
        let longest = Path::of(Name::new("sixteen_letters_").expect("is a name"), MAX_FILES).expect("is short");
        assert!(longest.as_c_str().is_ok());
    }
}
