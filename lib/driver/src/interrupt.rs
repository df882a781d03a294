//! A driver's interrupt.

use abi::kernel::{Notify, irq};
use abi::{Endpoint, Errno};
use sys::{Result, ipc};

/// An interrupt, which arrives as notification from HARDWARE with the bit of its hook.
#[derive(Debug)]
pub struct Interrupt {
    hook: u32,
    masked: bool,
}

impl Interrupt {
    /// Registers and unmasks a level-triggered line (PCI): it is masked after each interrupt until [`Interrupt::done`].
    ///
    /// # Errors
    /// `ECALLDENIED`: not a line of the driver; `EINVAL`.
    pub fn level(line: u8, hook: u32) -> Result<Interrupt> {
        Self::line(line, hook, irq::MASK_UNTIL_ENABLED)
    }

    /// Registers an edge-triggered line (ISA), which is never masked.
    ///
    /// # Errors
    /// As [`Interrupt::level`].
    pub fn edge(line: u8, hook: u32) -> Result<Interrupt> {
        Self::line(line, hook, irq::REENABLE)
    }

    /// Allocates a message-signalled interrupt. Returns it, and the address and data that the device has to write.
    ///
    /// # Errors
    /// `ECALLDENIED`: the driver lacks the privilege flag `MSI`; `ENOSPC`.
    pub fn message(hook: u32) -> Result<(Interrupt, u64, u32)> {
        let (address, data) = sys::irq::set_msi(hook)?;
        Ok((Interrupt { hook, masked: false }, address, data as u32))
    }

    fn line(line: u8, hook: u32, policy: u64) -> Result<Interrupt> {
        sys::irq::set(line, hook, policy)?;
        sys::irq::enable(hook)?;
        Ok(Interrupt { hook, masked: policy == irq::MASK_UNTIL_ENABLED })
    }

    /// Returns the interrupt's bit in a notification.
    pub fn bit(&self) -> u64 {
        1 << self.hook
    }

    /// Unmasks the line after the device has been served.
    ///
    /// # Errors
    /// `EINVAL`: the interrupt was released.
    pub fn done(&self) -> Result<()> {
        if self.masked { sys::irq::enable(self.hook) } else { Ok(()) }
    }

    /// Releases the interrupt, so that a line that other drivers share is not masked for its sake.
    ///
    /// # Errors
    /// `EINVAL`: it was released before.
    pub fn release(&self) -> Result<()> {
        sys::irq::remove(self.hook)
    }

    /// Waits for the next interrupt, ignoring heartbeats, so that rs restarts the driver if the device never interrupts. The caller then
    /// calls [`Interrupt::done`].
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
