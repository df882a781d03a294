//! Canonical paths that `PATH_MAX` bytes do not hold: those of directories that are reached step by step, and of what is in them.
//!
//! One is kept as its beginning and the number of components that follow, so that it is known again when as many have been left by `..`:
//! `/a/b/c/d`, cut behind `b`, is kept as `(a/b//0000000002`. A walk may append components, and takes them off like any others.
//! Neighbour: the parent module, which tells what a canonical path is.

use crate::memory::PATH_MAX;
use abi::Errno;
use alloc::vec::Vec;

/// The first byte, in place of `/`.
const MARK: u8 = b'(';
const DIGITS: usize = 10;
/// Two slashes and the number.
const NUMBER_BYTES: usize = 2 + DIGITS;

/// Whether all of a canonical path is known.
#[inline]
pub fn is_known(path: &[u8]) -> bool {
    path.first() != Some(&MARK)
}

/// The canonical path. `ENAMETOOLONG`: not all of it is known.
#[inline]
pub fn known(path: &[u8]) -> Result<&[u8], Errno> {
    if is_known(path) { Ok(path) } else { Err(Errno::ENAMETOOLONG) }
}

/// Makes a canonical path one that is kept. It fits `PATH_MAX` bytes.
#[inline]
pub fn keep(path: &mut Vec<u8>) {
    if path.len() >= PATH_MAX || !is_known(path) {
        shorten(path);
    }
}

/// Marks a path whose number another one has brought.
pub fn mark(path: &mut [u8]) {
    path[0] = MARK;
}

/// Takes the last component off a path of which not all is known.
pub fn pop(path: &mut Vec<u8>) {
    let end = last_slash(path);
    match path[..end].strip_suffix(b"/") {
        Some(beginning) => set_number(path, beginning.len(), number(&path[end + 1..]).saturating_sub(1)),
        None => path.truncate(end),
    }
}

#[cold]
fn shorten(path: &mut Vec<u8>) {
    let mut end = path.windows(2).position(|pair| pair == b"//").unwrap_or(path.len());
    // Behind the beginning are a number and what has been appended; two of each, when a rename has joined them.
    let (mut follow, mut is_number) = (0_u64, false);
    for part in path.get(end + 1..).unwrap_or_default().split(|&byte| byte == b'/') {
        follow = follow.wrapping_add(match part {
            b"" => 0,
            _ if is_number => number(part),
            _ => 1,
        });
        is_number = part.is_empty();
    }
    while end + NUMBER_BYTES > PATH_MAX {
        end = last_slash(&path[..end]);
        follow = follow.wrapping_add(1);
    }
    set_number(path, end, follow);
}

/// Cuts a path behind `end`, where at least [`NUMBER_BYTES`] are: `follow` components follow.
fn set_number(path: &mut Vec<u8>, end: usize, mut follow: u64) {
    if follow == 0 {
        path.truncate(end);
        path[0] = b'/';
        return;
    }
    path.truncate(end + NUMBER_BYTES);
    mark(path);
    path[end..end + 2].copy_from_slice(b"//");
    for digit in path[end + 2..].iter_mut().rev() {
        *digit = b'0' + (follow % 10) as u8;
        follow /= 10;
    }
}

/// Of what something else has written over it is some number.
fn number(digits: &[u8]) -> u64 {
    let digits = digits.iter().map(|digit| u64::from(digit.wrapping_sub(b'0')));
    digits.fold(0_u64, |number, digit| number.wrapping_mul(10).wrapping_add(digit))
}

/// The first byte of each path counts as one.
fn last_slash(path: &[u8]) -> usize {
    path.iter().rposition(|&byte| byte == b'/').unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::{last, pop, push, renamed};
    use super::*;

    const LEVEL: [u8; 100] = [b'x'; 100];

    fn kept(mut path: Vec<u8>) -> Vec<u8> {
        keep(&mut path);
        path
    }

    /// Goes down from the root, by one level or two at a time, as calls of their own or as one.
    fn deep(levels: usize, step: usize) -> Vec<u8> {
        (0..levels).step_by(step).fold(b"/".to_vec(), |mut path, _| {
            (0..step).for_each(|_| push(&mut path, &LEVEL).unwrap());
            kept(path)
        })
    }

    fn plain(levels: usize) -> Vec<u8> {
        [b"/", &LEVEL[..]].concat().repeat(levels)
    }

    #[test]
    fn the_longest_path_that_is_known_has_4095_bytes() {
        let path = |bytes| [b"/", &[b'x'; PATH_MAX][..bytes - 1]].concat();
        let longest = [&plain(39)[..], &path(PATH_MAX - 1 - plain(39).len())].concat();
        assert_eq!(kept(longest.clone()), longest);
        let mut longer = kept([&longest[..], b"x"].concat());
        assert_eq!((is_known(&longer), known(&longer)), (false, Err(Errno::ENAMETOOLONG)));
        pop(&mut longer);
        assert_eq!(longer, plain(39));
    }

    #[test]
    fn whoever_has_left_what_was_cut_off_knows_where_he_is() {
        for step in [1, 2, 20] {
            for levels in [40, 60, 200] {
                let mut path = deep(levels, step);
                for left in (0..levels).rev() {
                    assert_eq!((path.len() <= PATH_MAX, is_known(&path)), (true, left < 40), "{levels} by {step}");
                    pop(&mut path);
                    keep(&mut path);
                }
                assert_eq!(path, b"/");
            }
        }
    }

    #[test]
    fn what_was_appended_is_taken_off_first() {
        let mut path = deep(50, 1);
        let before = path.clone();
        push(&mut path, b"a").unwrap();
        push(&mut path, b"b").unwrap();
        assert_eq!(last(&path), b"b");
        pop(&mut path);
        assert_eq!(last(&path), b"a");
        pop(&mut path);
        assert_eq!(path, before);
    }

    #[test]
    fn a_rename_above_is_seen_and_one_that_cannot_be_told_is_not() {
        let top = [b"/", &LEVEL[..]].concat();
        let mut path = renamed(&deep(45, 1), &top, b"/new").unwrap();
        (0..44).for_each(|_| pop(&mut path));
        assert_eq!(path, b"/new");
        // To a place that is not known itself.
        let mut path = renamed(&deep(45, 1), &top, &[&deep(50, 1)[..], b"/new"].concat()).unwrap();
        assert!(path.len() <= PATH_MAX);
        (0..44).for_each(|_| pop(&mut path));
        assert!(!is_known(&path));
        (0..51).for_each(|_| pop(&mut path));
        assert_eq!(path, b"/");
        let unknown = [&deep(50, 1)[..], b"/name"].concat();
        assert_eq!((renamed(&unknown, &unknown, b"/new"), renamed(b"/a", b"/b", b"/c")), (None, None));
    }

    #[test]
    fn no_text_that_something_has_written_over_does_harm() {
        for text in
            ["(", "(/", "(//", "(a", "(a//", "(a//0000000000", "(a//xyz", "(a//0000000003//", "(//////", "(a///b//c"]
        {
            let mut path = text.as_bytes().to_vec();
            push(&mut path, b"name").unwrap();
            keep(&mut path);
            for _ in 0..20 {
                pop(&mut path);
                keep(&mut path);
            }
            let moved = renamed(text.as_bytes(), b"/a", b"/new");
            assert!(moved.is_none_or(|moved| moved.len() <= PATH_MAX));
        }
    }
}
