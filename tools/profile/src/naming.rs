//! The names of programs.

use crate::Guest;

/// Longest name of a program.
const NAME_BYTES: usize = 64;

/// Returns the name of a program executed with this path and these arguments: that of argument 0, since one file may be many programs.
pub fn program(guest: &impl Guest, path: u64, arguments: u64) -> Option<String> {
    let mut first = [0; 8];
    let there = guest.read(arguments, &mut first) == first.len();
    let called = there.then(|| name_at(guest, u64::from_le_bytes(first))).flatten();
    called.or_else(|| name_at(guest, path))
}

/// Returns the last component of the path at this address, without the `-` of a login shell.
pub fn name_at(guest: &impl Guest, address: u64) -> Option<String> {
    let mut path = [0; 4096];
    let there = guest.read(address, &mut path);
    let path = path[..there].split(|&byte| byte == 0).next()?;
    let name = path.rsplit(|&byte| byte == b'/').next()?;
    let name = name.strip_prefix(b"-").unwrap_or(name);
    let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES)]).into_owned();
    (!name.is_empty()).then_some(name)
}
