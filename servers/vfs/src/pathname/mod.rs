//! Path names as text: taking components off, joining link targets, canonical paths. Knows nothing of files.
//!
//! Invariant: a canonical path starts with `/`, holds no empty component, no `.` and no `..`, and ends with `/` only when it is the root's;
//! one that is too long is kept as `long` says.
//! Neighbours: `paths::walk` resolves what is split here; `processes` and `objects` keep canonical paths.

mod long;

pub use long::{is_known, keep, known};

use crate::memory::PATH_MAX;
use abi::Errno;
use alloc::vec::Vec;
use core::ops::Range;
use sys::fallible::{TryVec, with_capacity};

/// Longest component.
pub const NAME_MAX: usize = 255;
/// Most symbolic links followed in one resolution.
pub const LINKS_MAX: u32 = 40;

/// A component found by [`component`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Where it is in the path.
    pub name: Range<usize>,
    /// No component follows.
    pub last: bool,
    /// Slashes follow and nothing else: it has to be a directory.
    pub slash: bool,
}

/// The first component of `path` from `at` on, or `None` when only slashes are left. `ENAMETOOLONG` when it is longer than `NAME_MAX`.
pub fn component(path: &[u8], at: usize) -> Result<Option<Component>, Errno> {
    let Some(slashes) = path[at..].iter().position(|&byte| byte != b'/') else { return Ok(None) };
    let start = at + slashes;
    let rest = &path[start..];
    let length = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    if length > NAME_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    let behind = &rest[length..];
    let last = behind.iter().all(|&byte| byte == b'/');
    Ok(Some(Component { name: start..start + length, last, slash: last && !behind.is_empty() }))
}

/// Writes a number as text.
pub fn decimal(mut number: u64, digits: &mut [u8; 24]) -> &str {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return core::str::from_utf8(&digits[at..]).expect("digits are text");
        }
    }
}

/// What is left to resolve when a link with this target takes the place of everything before `rest`.
pub fn splice(target: &[u8], rest: &[u8]) -> Result<Vec<u8>, Errno> {
    if target.is_empty() {
        return Err(Errno::ENOENT);
    }
    if target.len() + rest.len() >= PATH_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    let mut path = with_capacity(target.len() + rest.len())?;
    path.try_extend_from_slice(target)?;
    path.try_extend_from_slice(rest)?;
    Ok(path)
}

/// Appends a component to a canonical path. `ENOMEM`.
pub fn push(canonical: &mut Vec<u8>, name: &[u8]) -> Result<(), Errno> {
    if canonical.last() != Some(&b'/') {
        canonical.try_push(b'/')?;
    }
    canonical.try_extend_from_slice(name)
}

/// The last component of a canonical path; empty for the root.
pub fn last(canonical: &[u8]) -> &[u8] {
    let start = canonical.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    &canonical[start..]
}

/// Takes the last component off a canonical path; the root stays what it is.
pub fn pop(canonical: &mut Vec<u8>) {
    if !is_known(canonical) {
        return long::pop(canonical);
    }
    let cut = canonical.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    canonical.truncate(cut.max(1));
}

/// The canonical `path` as seen by a process whose root is `root`; `None` when it lies outside.
pub fn below<'a>(path: &'a [u8], root: &[u8]) -> Option<&'a [u8]> {
    if root == b"/" {
        return Some(path);
    }
    match path.strip_prefix(root)? {
        b"" => Some(b"/"),
        rest if rest[0] == b'/' => Some(rest),
        _ => None,
    }
}

/// The canonical `path` after the directory `old` was renamed to `new`; `None` when it is not concerned, or cannot be told to be.
pub fn renamed(path: &[u8], old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    let rest = match is_known(path) {
        true => path.strip_prefix(old)?,
        false => path[1..].strip_prefix(known(old).ok()?.strip_prefix(b"/")?)?,
    };
    if !rest.is_empty() && rest[0] != b'/' {
        return None;
    }
    // Without memory for the new path the old one stays.
    let mut moved = with_capacity(new.len() + rest.len()).ok()?;
    moved.try_extend_from_slice(new).ok()?;
    moved.try_extend_from_slice(rest).ok()?;
    if !is_known(path) {
        long::mark(&mut moved);
    }
    keep(&mut moved);
    Some(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(path: &str) -> Vec<(&str, bool, bool)> {
        let mut at = 0;
        let mut found = Vec::new();
        while let Some(c) = component(path.as_bytes(), at).unwrap() {
            at = c.name.end;
            found.push((&path[c.name], c.last, c.slash));
        }
        found
    }

    #[test]
    fn components_are_taken_one_by_one() {
        assert_eq!(split("/usr//bin/ls"), [("usr", false, false), ("bin", false, false), ("ls", true, false)]);
        assert_eq!(split("a/"), [("a", true, true)]);
        assert_eq!(split("a//"), [("a", true, true)]);
        assert_eq!(split("///"), []);
        assert_eq!(split(""), []);
    }

    #[test]
    fn a_component_of_255_bytes_is_the_longest() {
        assert!(component(&[b'a'; 255], 0).is_ok());
        assert_eq!(component(&[b'a'; 256], 0), Err(Errno::ENAMETOOLONG));
    }

    #[test]
    fn a_link_replaces_what_was_resolved() {
        assert_eq!(splice(b"../x", b"/y/").unwrap(), b"../x/y/");
        assert_eq!(splice(b"", b"/y"), Err(Errno::ENOENT));
        assert_eq!(splice(&[b'a'; 4000], &[b'b'; 96]), Err(Errno::ENAMETOOLONG));
    }

    #[test]
    fn canonical_paths_grow_and_shrink() {
        let mut path = b"/".to_vec();
        push(&mut path, b"a").unwrap();
        push(&mut path, b"b").unwrap();
        assert_eq!(path, b"/a/b");
        pop(&mut path);
        assert_eq!(path, b"/a");
        pop(&mut path);
        pop(&mut path);
        assert_eq!(path, b"/");
    }

    #[test]
    fn a_changed_root_hides_what_is_above() {
        assert_eq!(below(b"/a/b", b"/"), Some(&b"/a/b"[..]));
        assert_eq!(below(b"/a/b", b"/a"), Some(&b"/b"[..]));
        assert_eq!(below(b"/a", b"/a"), Some(&b"/"[..]));
        assert_eq!(below(b"/ab", b"/a"), None);
    }

    #[test]
    fn paths_follow_a_renamed_directory() {
        assert_eq!(renamed(b"/a/b/c", b"/a/b", b"/x").unwrap(), b"/x/c");
        assert_eq!(renamed(b"/a/b", b"/a/b", b"/x").unwrap(), b"/x");
        assert_eq!(renamed(b"/a/bc", b"/a/b", b"/x"), None);
    }
}
