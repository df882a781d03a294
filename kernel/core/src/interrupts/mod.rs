//! Interrupt lines: which driver is told of which interrupt, and when a line is masked.
//!
//! A driver hooks a line under a number of its own (0 to 63) and gets that bit in a notification from HARDWARE. Drivers
//! may share a line; it stays masked while one of them has not yet enabled it again. Neighbours: `notify` (delivers),
//! `privilege` (which lines a driver may have), `life` (death releases them).

pub mod deferred;

use crate::{Machine, Node, ipc::notify, rights::allows_line, rooms::tracing, stop::Stop};

use abi::{Endpoint, Errno, endpoint::slot, kernel::irq, privilege::MSI};

/// Lines (legacy and message-signalled) of one node.
pub const LINES: usize = 256;
/// Most hooks of all drivers together.
const HOOKS: usize = 64;

/// A driver's hold on a line; `owner` 0: unused.
#[derive(Clone, Copy, Debug)]
struct Hook {
    owner: u16,
    line: u16,
    bit: u8,
    reenable: bool,
    /// The driver has to enable the line before it may fire again.
    closed: bool,
}

/// All hooks.
#[derive(Debug)]
pub struct Lines {
    hooks: [Hook; HOOKS],
}

impl Lines {
    pub const NEW: Lines = Lines { hooks: [Hook { owner: 0, line: 0, bit: 0, reenable: false, closed: false }; HOOKS] };

    fn find(&self, owner: usize, bit: u64) -> Option<usize> {
        self.hooks.iter().position(|hook| hook.owner == owner as u16 && hook.bit as u64 == bit)
    }

    fn on_line(&self, line: u16) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().filter(move |hook| hook.owner != 0 && hook.line == line)
    }

    /// A line is open when every driver on it has enabled it.
    fn is_open(&self, line: u16) -> bool {
        self.on_line(line).all(|hook| !hook.closed)
    }
}

/// `IrqSet (line, hook, policy)`. `EINVAL`: no such line, hook or policy. `EBUSY`: the caller uses this hook
/// already. `EAGAIN`: too many hooks.
pub fn set_line<M: Machine>(node: &mut Node, m: &mut M, line: u64, bit: u64, policy: u64) -> Result<u64, Errno> {
    if line >= LINES as u64 || !matches!(policy, irq::MASK_UNTIL_ENABLED | irq::REENABLE) {
        return Err(Errno::EINVAL);
    }
    if !allows_line(node.privileges(node.caller()), line) {
        return Err(Errno::ECALLDENIED);
    }
    let index = free_hook(node, bit)?;
    let line16 = line as u16;
    if node.lines.on_line(line16).next().is_none() {
        m.line_open(line as usize)?;
    } else {
        m.line_mask(line as usize);
    }
    let reenable = policy == irq::REENABLE;
    node.lines.hooks[index] =
        Hook { owner: node.caller() as u16, line: line16, bit: bit as u8, reenable, closed: !reenable };
    unmask_if_open(node, m, line16);
    Ok(0)
}

/// `MsiSet (hook)` → address and data.
pub fn set_msi<M: Machine>(node: &mut Node, m: &mut M, bit: u64) -> Result<u64, Stop> {
    if node.privileges(node.caller()).flags & MSI == 0 {
        return Err(Errno::ECALLDENIED.into());
    }
    let index = free_hook(node, bit)?;
    let msi = m.msi_open()?;
    node.lines.hooks[index] =
        Hook { owner: node.caller() as u16, line: msi.line as u16, bit: bit as u8, reenable: true, closed: false };
    let frame = &mut node.threads.running_mut().frame;
    frame.rdi = msi.address;
    frame.rsi = msi.data;
    Ok(0)
}

fn free_hook(node: &Node, bit: u64) -> Result<usize, Errno> {
    if bit >= 64 {
        return Err(Errno::EINVAL);
    }
    if node.lines.find(node.caller(), bit).is_some() {
        return Err(Errno::EBUSY);
    }
    node.lines.hooks.iter().position(|hook| hook.owner == 0).ok_or(Errno::EAGAIN)
}

/// `IrqEnable (hook)`. `EINVAL`: the caller has no such hook.
pub fn enable_line<M: Machine>(node: &mut Node, m: &mut M, bit: u64) -> Result<u64, Errno> {
    let index = node.lines.find(node.caller(), bit).ok_or(Errno::EINVAL)?;
    let hook = &mut node.lines.hooks[index];
    hook.closed = false;
    let line = hook.line;
    unmask_if_open(node, m, line);
    Ok(0)
}

/// `IrqDisable (hook)`: the line stays masked until the caller enables it. `EINVAL`: the caller has no such hook.
pub fn disable_line<M: Machine>(node: &mut Node, m: &mut M, bit: u64) -> Result<u64, Errno> {
    let index = node.lines.find(node.caller(), bit).ok_or(Errno::EINVAL)?;
    let hook = &mut node.lines.hooks[index];
    hook.closed = true;
    m.line_mask(hook.line as usize);
    Ok(0)
}

/// `IrqRemove (hook)`. `EINVAL`: the caller has no such hook.
pub fn remove_line<M: Machine>(node: &mut Node, m: &mut M, bit: u64) -> Result<u64, Errno> {
    let index = node.lines.find(node.caller(), bit).ok_or(Errno::EINVAL)?;
    release_hook(node, m, index);
    Ok(0)
}

/// Gives up all hooks of a thread.
pub fn release_lines<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    for index in 0..HOOKS {
        if node.lines.hooks[index].owner == slot as u16 {
            release_hook(node, m, index);
        }
    }
}

fn release_hook<M: Machine>(node: &mut Node, m: &mut M, index: usize) {
    let line = node.lines.hooks[index].line;
    node.lines.hooks[index].owner = 0;
    if node.lines.on_line(line).next().is_none() {
        m.line_mask(line as usize);
        m.line_close(line as usize);
    } else {
        unmask_if_open(node, m, line);
    }
}

fn unmask_if_open<M: Machine>(node: &mut Node, m: &mut M, line: u16) {
    if node.lines.is_open(line) {
        m.line_unmask(line as usize);
    }
}

/// True when a driver has hooked this line.
pub fn has_driver(node: &Node, line: usize) -> bool {
    node.lines.on_line(line as u16).next().is_some()
}

/// The interrupt of a line is put off: it may come again meanwhile only where its driver wants that.
pub fn mask_as_driver_wants<M: Machine>(node: &mut Node, m: &mut M, line: usize) {
    if !node.lines.on_line(line as u16).any(|hook| hook.reenable) {
        m.line_mask(line);
    }
}

/// Tells the drivers of a line that it has fired.
pub fn deliver_interrupt<M: Machine>(node: &mut Node, m: &mut M, line: usize) {
    node.interrupts += 1;
    let mut wanted = false;
    for index in 0..HOOKS {
        let hook = &mut node.lines.hooks[index];
        if hook.owner == 0 || hook.line as usize != line {
            continue;
        }
        wanted = true;
        hook.closed = !hook.reenable;
        let (owner, bit) = (hook.owner as usize, hook.bit);
        if node.tracing.is_on() {
            tracing::trace_interrupt(node, m, owner, line);
        }
        node.threads[owner].hooks |= 1 << bit;
        notify::post(node, m, owner, slot::HARDWARE, Endpoint::HARDWARE);
    }
    if !wanted || !node.lines.is_open(line as u16) {
        m.line_mask(line);
    }
}
