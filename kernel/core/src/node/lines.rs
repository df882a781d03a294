//! Hooks: which driver is told of which interrupt line, and which lines wait for a driver to enable them again.
//!
//! Neighbours: `interrupts` (the calls, and the machine's masks).

use abi::Errno;
use zerocopy::FromZeros;

/// Lines (legacy and message-signalled) of one node.
pub const LINES: usize = 256;
/// Limit of all drivers' hooks together.
const HOOKS: usize = 64;

/// A driver's hold on a line.
#[derive(Clone, Copy, Debug, FromZeros)]
pub struct Hook {
    /// Slot of the driver; 0: the hook is unused.
    pub owner: u16,
    /// The line.
    pub line: u16,
    /// The driver's number for it.
    pub bit: u8,
    /// The line may fire again without having been enabled.
    pub reenable: bool,
    /// The driver has to enable the line before it may fire again.
    pub closed: bool,
}

/// All hooks.
#[derive(Debug, FromZeros)]
pub struct Lines {
    hooks: [Hook; HOOKS],
}

impl Lines {
    fn on_line(&self, line: usize) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().filter(move |hook| hook.owner != 0 && hook.line as usize == line)
    }

    /// Returns the hook of `owner` with this number. `EINVAL`: there is none.
    pub fn find(&mut self, owner: usize, bit: u64) -> Result<&mut Hook, Errno> {
        let mut hooks = self.hooks.iter_mut();
        hooks.find(|hook| hook.owner == owner as u16 && hook.bit as u64 == bit).ok_or(Errno::EINVAL)
    }

    /// Returns an unused hook for `owner` to have under this number. `EINVAL`: there is no such number. `EBUSY`: it is in use.
    /// `EAGAIN`: all hooks are.
    pub fn free_hook(&mut self, owner: usize, bit: u64) -> Result<&mut Hook, Errno> {
        if bit >= 64 {
            return Err(Errno::EINVAL);
        }
        if self.find(owner, bit).is_ok() {
            return Err(Errno::EBUSY);
        }
        self.hooks.iter_mut().find(|hook| hook.owner == 0).ok_or(Errno::EAGAIN)
    }

    /// Frees a hook of `owner`, and returns its line.
    pub fn free_one_of(&mut self, owner: usize) -> Option<usize> {
        let hook = self.hooks.iter_mut().find(|hook| hook.owner == owner as u16)?;
        hook.owner = 0;
        Some(hook.line as usize)
    }

    /// Returns true when every driver on the line has enabled it.
    pub fn is_open(&self, line: usize) -> bool {
        self.on_line(line).all(|hook| !hook.closed)
    }

    /// Returns true when a driver has hooked the line.
    pub fn has_driver(&self, line: usize) -> bool {
        self.on_line(line).next().is_some()
    }

    /// Returns true when a driver lets the line fire again without enabling it.
    pub fn is_reenabled(&self, line: usize) -> bool {
        self.on_line(line).any(|hook| hook.reenable)
    }

    /// Records that a line has fired in its next hook from number `from` on. Returns the hook, and the number to go on with.
    pub fn fire(&mut self, line: usize, from: usize) -> Option<(Hook, usize)> {
        let is_on = |hook: &Hook| hook.owner != 0 && hook.line as usize == line;
        let index = (from..HOOKS).find(|&index| is_on(&self.hooks[index]))?;
        self.hooks[index].closed = !self.hooks[index].reenable;
        Some((self.hooks[index], index + 1))
    }
}
