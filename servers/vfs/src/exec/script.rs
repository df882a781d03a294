//! The first line of scripts: `#!interpreter argument` (execve(2)).

use abi::Errno;
use alloc::vec::Vec;
use sys::fallible::{TryVec, copied};

/// Longest first line, the newline included.
const LINE_BYTES: usize = 256;

/// What the line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Path of the interpreter.
    pub interpreter: Vec<u8>,
    /// Its one argument, blanks and all; may be empty.
    pub argument: Vec<u8>,
}

/// Reads the line. `None`: not a script. `ENOEXEC`: the line has no interpreter, or ends within its name.
pub fn parse(head: &[u8]) -> Result<Option<Line>, Errno> {
    let Some(rest) = head.strip_prefix(b"#!") else { return Ok(None) };
    let rest = &rest[..rest.len().min(LINE_BYTES - 2)];
    let end = rest.iter().position(|&byte| byte == b'\n' || byte == 0);
    let line = rest[..end.unwrap_or(rest.len())].trim_ascii();
    let split = line.iter().position(|byte| matches!(byte, b' ' | b'\t'));
    let cut_off = end.is_none() && split.is_none() && head.len() >= LINE_BYTES;
    if line.is_empty() || cut_off {
        return Err(Errno::ENOEXEC);
    }
    let (interpreter, argument) = line.split_at(split.unwrap_or(line.len()));
    Ok(Some(Line { interpreter: copied(interpreter)?, argument: copied(argument.trim_ascii())? }))
}

impl Line {
    /// The arguments of the interpreter, each with a NUL behind it: its name, its argument, and what it executes: the script, or the arguments
    /// of that one's interpreter, if it is one itself.
    pub fn arguments(&self, executed: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut text = copied(&self.interpreter)?;
        text.try_push(0)?;
        if !self.argument.is_empty() {
            text.try_extend_from_slice(&self.argument)?;
            text.try_push(0)?;
        }
        text.try_extend_from_slice(executed)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(interpreter: &str, argument: &str) -> Line {
        Line { interpreter: interpreter.into(), argument: argument.into() }
    }

    #[test]
    fn the_line_names_interpreter_and_argument() {
        assert_eq!(parse(b"#!/bin/sh\necho"), Ok(Some(line("/bin/sh", ""))));
        assert_eq!(parse(b"#! /usr/bin/awk -f  \nx"), Ok(Some(line("/usr/bin/awk", "-f"))));
        assert_eq!(parse(b"#!/bin/a b  c\n"), Ok(Some(line("/bin/a", "b  c"))));
        assert_eq!(parse(b"#!/bin/sh"), Ok(Some(line("/bin/sh", ""))));
    }

    #[test]
    fn what_is_no_script_is_none() {
        assert_eq!(parse(b"\x7fELF"), Ok(None));
        assert_eq!(parse(b""), Ok(None));
        assert_eq!(parse(b"#"), Ok(None));
    }

    #[test]
    fn lines_without_interpreter_are_refused() {
        assert_eq!(parse(b"#!\n"), Err(Errno::ENOEXEC));
        assert_eq!(parse(b"#!   \n/bin/sh"), Err(Errno::ENOEXEC));
        let long = [b"#!".to_vec(), alloc::vec![b'a'; 4000]].concat();
        assert_eq!(parse(&long), Err(Errno::ENOEXEC));
    }

    #[test]
    fn the_interpreter_gets_its_argument_and_the_script() {
        let inner = line("/bin/awk", "-f").arguments(b"./x\0");
        assert_eq!(inner.as_deref(), Ok(&b"/bin/awk\0-f\0./x\0"[..]));
        assert_eq!(line("/bin/sh", "").arguments(&inner.unwrap()), Ok(b"/bin/sh\0/bin/awk\0-f\0./x\0".to_vec()));
    }
}
