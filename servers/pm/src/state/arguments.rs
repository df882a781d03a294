//! The arguments and environment of a program, between its old memory and the new: one block of strings, each ended
//! by NUL, arguments first, with Linux's limits.

use crate::system::ProgramName;
use abi::Errno;
use alloc::vec::Vec;
use sys::fallible::{self, TryVec};

/// Longest string with its NUL.
pub const STRING_BYTES: usize = 128 * 1024;
/// Most bytes of all strings and pointers together.
pub const TOTAL_BYTES: usize = 2 << 20;
/// Longest path with its NUL.
pub const PATH_BYTES: usize = 4096;

const POINTER_BYTES: usize = 8;

/// Strings for a new program.
#[derive(Debug, Default)]
pub struct Arguments {
    strings: Vec<u8>,
    argument_count: usize,
    environment_count: usize,
    /// Where the environment starts in `strings`.
    environment_start: usize,
}

/// Which list a string belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// argv.
    Argument,
    /// envp; comes after all arguments.
    Environment,
}

impl Arguments {
    /// Adds a piece of a string; `last` ends it with NUL. `E2BIG`, `ENOMEM`.
    pub fn push(&mut self, list: List, piece: &[u8], last: bool) -> Result<(), Errno> {
        let bytes = self.strings.len() + piece.len() + 1;
        let pointers = (self.argument_count + self.environment_count + 1) * POINTER_BYTES;
        if bytes + pointers > TOTAL_BYTES {
            return Err(Errno::E2BIG);
        }
        self.strings.try_make_room(piece.len() + 1)?;
        self.strings.try_extend_from_slice(piece)?;
        if last {
            self.end_string(list);
        }
        Ok(())
    }

    fn end_string(&mut self, list: List) {
        self.strings.push_reserved(0);
        match list {
            List::Argument => {
                self.argument_count += 1;
                self.environment_start = self.strings.len();
            }
            List::Environment => self.environment_count += 1,
        }
    }

    /// The arguments of a script's interpreter: `first` replaces the first argument, if any.
    pub fn replace_first(&mut self, first: &[&[u8]]) -> Result<(), Errno> {
        let old = self.arguments().next().map_or(0, |string| string.len() + 1);
        let new: usize = first.iter().map(|string| string.len() + 1).sum();
        if self.strings.len() - old + new > TOTAL_BYTES {
            return Err(Errno::E2BIG);
        }
        let had_first = (self.argument_count > 0) as usize;
        self.strings.try_make_room(new)?;
        let bytes = first.iter().flat_map(|string| string.iter().copied().chain([0]));
        self.strings.splice(..old, bytes);
        self.argument_count = self.argument_count - had_first + first.len();
        self.environment_start = self.environment_start - old + new;
        Ok(())
    }

    /// A copy. `ENOMEM`.
    pub fn try_clone(&self) -> Result<Arguments, Errno> {
        Ok(Arguments { strings: fallible::copied(&self.strings)?, ..*self })
    }

    /// Number of arguments.
    pub fn argument_count(&self) -> usize {
        self.argument_count
    }

    /// The arguments without their NULs.
    pub fn arguments(&self) -> impl Iterator<Item = &[u8]> {
        split(&self.strings[..self.environment_start], self.argument_count)
    }

    /// The environment without the NULs.
    pub fn environment(&self) -> impl Iterator<Item = &[u8]> {
        split(&self.strings[self.environment_start..], self.environment_count)
    }

    /// All strings with their NULs.
    pub fn strings(&self) -> &[u8] {
        &self.strings
    }

    /// Where the environment starts in `strings`.
    pub fn environment_start(&self) -> usize {
        self.environment_start
    }
}

fn split(strings: &[u8], count: usize) -> impl Iterator<Item = &[u8]> {
    strings.split(|&byte| byte == 0).take(count)
}

/// An `execve` in progress.
#[derive(Debug)]
pub struct Execution {
    /// What is executed.
    pub program: ProgramName,
    /// What the program will be told.
    pub arguments: Arguments,
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Arguments for tests.
    pub fn arguments(argv: &[&str], envp: &[&str]) -> Arguments {
        let mut made = Arguments::default();
        argv.iter().for_each(|s| made.push(List::Argument, s.as_bytes(), true).unwrap());
        envp.iter().for_each(|s| made.push(List::Environment, s.as_bytes(), true).unwrap());
        made
    }

    #[test]
    fn a_script_gets_interpreter_and_path_in_front() {
        let mut made = arguments(&["./x", "", "b"], &["A=1"]);
        made.replace_first(&[b"/bin/sh", b"-e", b"./x"]).unwrap();
        assert_eq!(made.arguments().collect::<Vec<_>>(), [&b"/bin/sh"[..], b"-e", b"./x", b"", b"b"]);
        assert_eq!(made.environment().collect::<Vec<_>>(), [b"A=1"]);
    }

    #[test]
    fn a_script_without_arguments_gets_them_all_the_same() {
        let mut made = arguments(&[], &["A=1"]);
        made.replace_first(&[b"/bin/sh", b"x"]).unwrap();
        assert_eq!(made.arguments().collect::<Vec<_>>(), [&b"/bin/sh"[..], b"x"]);
        assert_eq!(made.environment().collect::<Vec<_>>(), [b"A=1"]);
    }

    #[test]
    fn two_megabytes_are_the_end() {
        let mut made = Arguments::default();
        let big = [b'x'; STRING_BYTES - 1];
        let error = (0..20).find_map(|_| made.push(List::Argument, &big, true).err());
        assert_eq!(error, Some(Errno::E2BIG));
        assert!(made.strings().len() + 8 * made.argument_count() <= TOTAL_BYTES);
    }
}
