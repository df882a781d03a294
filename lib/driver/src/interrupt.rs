//! A driver's interrupt.

use abi::kernel::{Notify, irq};
use abi::{Endpoint, Errno};
use server::Inbox;
use sys::{Result, ipc};

/// An interrupt that arrives as notification from HARDWARE with the bit of its hook.
#[derive(Debug)]
pub struct Interrupt {
    hook: u32,
    masked: bool,
}

impl Interrupt {
    /// A line that stays masked after each interrupt until [`Interrupt::done`]: for level-triggered lines (PCI). It is open from now on.
    ///
    /// # Errors
    /// `ECALLDENIED`: not the driver's line; `EINVAL`.
    pub fn level(line: u8, hook: u32) -> Result<Interrupt> {
        Self::line(line, hook, irq::MASK_UNTIL_ENABLED)
    }

    /// A line that stays open: for edge-triggered lines (ISA).
    ///
    /// # Errors
    /// As [`Interrupt::level`].
    pub fn edge(line: u8, hook: u32) -> Result<Interrupt> {
        Self::line(line, hook, irq::REENABLE)
    }

    /// A message-signalled interrupt. → it, and address and data that the device has to write.
    ///
    /// # Errors
    /// `ECALLDENIED`: the driver may not (flag `MSI`); `ENOSPC`.
    pub fn message(hook: u32) -> Result<(Interrupt, u64, u32)> {
        let (address, data) = sys::irq::set_msi(hook)?;
        Ok((Interrupt { hook, masked: false }, address, data as u32))
    }

    fn line(line: u8, hook: u32, policy: u64) -> Result<Interrupt> {
        sys::irq::set(line, hook, policy)?;
        sys::irq::enable(hook)?;
        Ok(Interrupt { hook, masked: policy == irq::MASK_UNTIL_ENABLED })
    }

    /// Its bit in a notification.
    pub fn bit(&self) -> u64 {
        1 << self.hook
    }

    /// The device has been served: the next interrupt may come.
    ///
    /// # Errors
    /// `EINVAL`: the interrupt is gone.
    pub fn done(&self) -> Result<()> {
        if self.masked { sys::irq::enable(self.hook) } else { Ok(()) }
    }

    /// Waits for the next interrupt, at most until `deadline_ns`. → whether it came. Other messages are held in the inbox, and heartbeats
    /// are answered. Afterwards [`Interrupt::done`] is due.
    pub fn wait_until(&self, inbox: &Inbox, deadline_ns: u64) -> bool {
        inbox.wait_for_interrupt(self.bit(), deadline_ns)
    }

    /// Waits for the next interrupt, whatever else may come; afterwards [`Interrupt::done`] is due. A device that never interrupts keeps the driver
    /// from answering its heartbeat, and rs starts a new one.
    ///
    /// # Errors
    /// None in practice.
    pub fn wait(&self) -> Result<()> {
        loop {
            let message = ipc::receive(Endpoint::HARDWARE)?;
            if message.label != Notify::LABEL {
                return Err(Errno::EPROTO);
            }
            if Notify::from_message(&message).bits & self.bit() != 0 {
                return Ok(());
            }
        }
    }
}
