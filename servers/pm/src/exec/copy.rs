//! Fetching strings and pointers from the program that calls `execve`, a page at a time: neighbouring strings cost one copy.

use crate::state::arguments::{Arguments, List, PATH_BYTES, STRING_BYTES};
use crate::system::System;
use abi::layout::PAGE_BYTES;
use abi::{Endpoint, Errno};
use alloc::vec::Vec;
use sys::fallible::TryVec;

/// A look at one page of a program's memory.
pub struct Window<'a, S> {
    system: &'a mut S,
    thread: Endpoint,
    /// First address of what `bytes` holds.
    start: u64,
    length: usize,
    bytes: [u8; PAGE_BYTES as usize],
}

impl<'a, S: System> Window<'a, S> {
    /// Nothing is fetched yet.
    pub fn new(system: &'a mut S, thread: Endpoint) -> Self {
        Window { system, thread, start: 0, length: 0, bytes: [0; PAGE_BYTES as usize] }
    }

    /// What there is from `address` to the end of its page. `EFAULT`.
    fn at(&mut self, address: u64) -> Result<&[u8], Errno> {
        let inside = address.checked_sub(self.start).is_some_and(|offset| offset < self.length as u64);
        if !inside {
            let length = (PAGE_BYTES - address % PAGE_BYTES) as usize;
            self.length = 0;
            self.system.read(self.thread, address, &mut self.bytes[..length])?;
            self.start = address;
            self.length = length;
        }
        Ok(&self.bytes[(address - self.start) as usize..self.length])
    }

    /// The word at `address`.
    pub fn word(&mut self, address: u64) -> Result<u64, Errno> {
        if let Some(&whole) = self.at(address)?.first_chunk::<8>() {
            return Ok(u64::from_le_bytes(whole));
        }
        // It lies across two pages.
        let mut word = [0; 8];
        for (n, byte) in word.iter_mut().enumerate() {
            *byte = self.at(address.wrapping_add(n as u64))?[0];
        }
        Ok(u64::from_le_bytes(word))
    }

    /// Hands the string at `address` to `take` in pieces; the second argument marks the last one. `too_long` over `limit` bytes with NUL.
    fn string(
        &mut self,
        mut address: u64,
        limit: usize,
        too_long: Errno,
        mut take: impl FnMut(&[u8], bool) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut total = 0;
        loop {
            let bytes = self.at(address)?;
            let end = bytes.iter().position(|&byte| byte == 0);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            total += piece.len();
            if total >= limit {
                return Err(too_long);
            }
            take(piece, end.is_some())?;
            if end.is_some() {
                return Ok(());
            }
            address = address.wrapping_add(piece.len() as u64);
        }
    }
}

/// A path; may be empty. `ENAMETOOLONG`.
pub fn path<S: System>(system: &mut S, thread: Endpoint, address: u64) -> Result<Vec<u8>, Errno> {
    let mut path = Vec::new();
    Window::new(system, thread)
        .string(address, PATH_BYTES, Errno::ENAMETOOLONG, |piece, _| path.try_extend_from_slice(piece))?;
    Ok(path)
}

/// Arguments and environment; a null list is an empty one. `E2BIG`, `EFAULT`, `ENOMEM`.
pub fn arguments<S: System>(system: &mut S, thread: Endpoint, argv: u64, envp: u64) -> Result<Arguments, Errno> {
    let mut arguments = Arguments::default();
    list(system, thread, argv, List::Argument, &mut arguments)?;
    list(system, thread, envp, List::Environment, &mut arguments)?;
    Ok(arguments)
}

fn list<S: System>(system: &mut S, thread: Endpoint, at: u64, kind: List, into: &mut Arguments) -> Result<(), Errno> {
    if at == 0 {
        return Ok(());
    }
    let pointers = pointers(system, thread, at)?;
    let mut window = Window::new(system, thread);
    for pointer in pointers {
        window.string(pointer, STRING_BYTES, Errno::E2BIG, |piece, last| into.push(kind, piece, last))?;
    }
    Ok(())
}

/// The pointers up to the null.
fn pointers<S: System>(system: &mut S, thread: Endpoint, mut address: u64) -> Result<Vec<u64>, Errno> {
    let mut window = Window::new(system, thread);
    let mut pointers = Vec::new();
    loop {
        let pointer = window.word(address)?;
        if pointer == 0 {
            return Ok(pointers);
        }
        if pointers.len() * 8 >= crate::state::arguments::TOTAL_BYTES {
            return Err(Errno::E2BIG);
        }
        pointers.try_push(pointer)?;
        address = address.wrapping_add(8);
    }
}
