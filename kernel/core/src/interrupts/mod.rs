//! Interrupt lines: which driver is told of which interrupt, and when a line is masked.
//!
//! A driver hooks a line under a number of its own (0 to 63) and gets that bit in a notification from HARDWARE. Drivers
//! may share a line; it stays masked while one of them has not yet enabled it again. Neighbours: `notify` (delivers),
//! `privilege` (which lines a driver may have), `life` (death releases them).

use crate::{
    Machine, Node, ipc::notify, node::lines::Hook, node::lines::LINES, priority::SYSTEM_QUEUE, probes::tracing,
    rights::allows_line, stop::Stop,
};

use abi::{Endpoint, Errno, endpoint::slot, kernel::irq, privilege::MSI};

/// `IrqSet (line, hook, policy)`. `EINVAL`: no such line, hook or policy. `EBUSY`: the caller uses this hook
/// already. `EAGAIN`: too many hooks.
pub fn set_line<M: Machine>(node: &mut Node, m: &mut M, line: u64, bit: u64, policy: u64) -> Result<u64, Errno> {
    if line >= LINES as u64 || !matches!(policy, irq::MASK_UNTIL_ENABLED | irq::REENABLE) {
        return Err(Errno::EINVAL);
    }
    if !allows_line(node.privileges(node.caller()), line) {
        return Err(Errno::ECALLDENIED);
    }
    let (owner, line) = (node.caller(), line as usize);
    let had_driver = node.lines.has_driver(line);
    let hook = node.lines.free_hook(owner, bit)?;
    if had_driver {
        m.line_mask(line, true);
    } else {
        m.line_open(line)?;
    }
    let reenable = policy == irq::REENABLE;
    *hook = Hook { owner: owner as u16, line: line as u16, bit: bit as u8, reenable, closed: !reenable };
    unmask_if_open(node, m, line);
    Ok(0)
}

/// `MsiSet (hook)` → address and data.
pub fn set_msi<M: Machine>(node: &mut Node, m: &mut M, bit: u64) -> Result<u64, Stop> {
    if node.privileges(node.caller()).flags & MSI == 0 {
        return Err(Errno::ECALLDENIED.into());
    }
    let owner = node.caller();
    let hook = node.lines.free_hook(owner, bit)?;
    let msi = m.msi_open()?;
    *hook = Hook { owner: owner as u16, line: msi.line as u16, bit: bit as u8, reenable: true, closed: false };
    let frame = &mut node.threads.running_mut().frame;
    (frame.rdi, frame.rsi) = (msi.address, msi.data);
    Ok(0)
}

/// `IrqEnable (hook)`. `EINVAL`: the caller has no such hook.
pub fn enable_line<M: Machine>(node: &mut Node, m: &mut M, bit: u64) -> Result<u64, Errno> {
    let hook = node.lines.find(node.caller(), bit)?;
    hook.closed = false;
    let line = hook.line as usize;
    unmask_if_open(node, m, line);
    Ok(0)
}

/// `IrqDisable (hook)`: the line stays masked until the caller enables it. `EINVAL`: the caller has no such hook.
pub fn disable_line<M: Machine>(node: &mut Node, m: &mut M, bit: u64) -> Result<u64, Errno> {
    let hook = node.lines.find(node.caller(), bit)?;
    hook.closed = true;
    m.line_mask(hook.line as usize, true);
    Ok(0)
}

/// `IrqRemove (hook)`. `EINVAL`: the caller has no such hook.
pub fn remove_line<M: Machine>(node: &mut Node, m: &mut M, bit: u64) -> Result<u64, Errno> {
    let hook = node.lines.find(node.caller(), bit)?;
    hook.owner = 0;
    let line = hook.line as usize;
    close_if_unused(node, m, line);
    Ok(0)
}

/// Frees all hooks of a thread.
pub fn release_lines<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    while let Some(line) = node.lines.free_one_of(slot) {
        close_if_unused(node, m, line);
    }
}

/// A hook of the line has been freed: it may be open to the other drivers, or used by none.
fn close_if_unused<M: Machine>(node: &mut Node, m: &mut M, line: usize) {
    if node.lines.has_driver(line) {
        return unmask_if_open(node, m, line);
    }
    m.line_mask(line, true);
    m.line_close(line);
}

fn unmask_if_open<M: Machine>(node: &mut Node, m: &mut M, line: usize) {
    if node.lines.is_open(line) {
        m.line_mask(line, false);
    }
}

/// Delivers an interrupt to the drivers of its line. While a real-time thread is ready it is recorded instead, and may come again
/// meanwhile only where its driver wants that. A line without a driver is masked now and not on delivery: a real-time process may have
/// served it, and unmasked it, by then.
pub fn deliver_or_record<M: Machine>(node: &mut Node, m: &mut M, line: usize) {
    let is_deferred = node.threads.is_real_time_ready();
    let may_come_again = if is_deferred { node.lines.is_reenabled(line) } else { node.lines.has_driver(line) };
    if !may_come_again {
        m.line_mask(line, true);
    }
    if !is_deferred {
        return deliver_interrupt(node, m, line);
    }
    node.deferred_work.record_line(line);
    node.threads.defer(SYSTEM_QUEUE);
}

/// Tells the drivers of a line that it has fired.
pub fn deliver_interrupt<M: Machine>(node: &mut Node, m: &mut M, line: usize) {
    node.interrupts += 1;
    let mut from = 0;
    while let Some((hook, next)) = node.lines.fire(line, from) {
        let driver = &mut node.threads[hook.owner as usize];
        tracing::trace!(node, INTERRUPT, trace_interrupt(m, driver.endpoint, line));
        driver.hooks |= 1 << hook.bit;
        notify::post(node, m, hook.owner as usize, slot::HARDWARE, Endpoint::HARDWARE);
        from = next;
    }
    if !node.lines.is_open(line) {
        m.line_mask(line, true);
    }
}
