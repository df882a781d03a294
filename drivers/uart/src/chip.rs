//! The 16550 UART (National PC16550D data sheet): eight registers, 16-byte FIFOs, one interrupt line.
//!
//! Generic over how registers are reached, so that tests script the chip. Bytes received wait here, bounded, until they are
//! asked for; bytes to send never wait here: `transmit` takes only what the FIFO takes. So whatever a caller has not been told
//! is sent was not sent, and survives this driver.

use abi::Errno;
use alloc::collections::VecDeque;

/// Depth of the transmit FIFO.
const FIFO_BYTES: usize = 16;
/// Received bytes kept while nobody asks.
const RECEIVED_LIMIT: usize = 4096;
/// Causes served in one interrupt; a chip that claims more is broken, and waits for the next one.
const CAUSES_LIMIT: usize = 256;
/// Frequency of the baud generator divided by 16: the highest rate.
const BASE_RATE: u32 = 115_200;

/// Register offsets.
mod register {
    pub const DATA: u16 = 0;
    pub const DIVISOR_LOW: u16 = 0;
    pub const INTERRUPT_ENABLE: u16 = 1;
    pub const DIVISOR_HIGH: u16 = 1;
    pub const INTERRUPT_CAUSE: u16 = 2;
    pub const FIFO_CONTROL: u16 = 2;
    pub const LINE_CONTROL: u16 = 3;
    pub const MODEM_CONTROL: u16 = 4;
    pub const LINE_STATUS: u16 = 5;
    pub const MODEM_STATUS: u16 = 6;
    pub const SCRATCH: u16 = 7;
}

const ENABLE_RECEIVED: u8 = 1;
const ENABLE_TRANSMIT_EMPTY: u8 = 2;
const ENABLE_LINE_STATUS: u8 = 4;
const NO_INTERRUPT: u8 = 1;
/// FIFOs on and cleared, interrupt at 8 bytes received (or after four character times).
const FIFO_ON: u8 = 0x87;
const EIGHT_BITS_NO_PARITY: u8 = 3;
const DIVISOR_ACCESS: u8 = 0x80;
/// DTR, RTS, and OUT2, which lets the interrupt through to the bus.
const MODEM_READY: u8 = 0x0b;
const DATA_READY: u8 = 1;
const TRANSMIT_EMPTY: u8 = 0x20;

/// How the driver reaches the chip's registers.
pub trait Registers {
    /// Reads the register at this offset.
    fn read(&mut self, register: u16) -> Result<u8, Errno>;
    /// Writes it.
    fn write(&mut self, register: u16, value: u8) -> Result<(), Errno>;
}

/// One chip.
pub struct Chip<R: Registers> {
    registers: R,
    received: VecDeque<u8>,
    waits_for_room: bool,
    lost: u64,
}

impl<R: Registers> Chip<R> {
    /// Finds the chip and sets it up: 8 bits, no parity, 115,200 bit/s, interrupts on. What it has received before
    /// (from a predecessor's time) stays to be read. `ENXIO`: nothing there.
    pub fn find(registers: R) -> Result<Self, Errno> {
        let mut chip = Chip { registers, received: VecDeque::new(), waits_for_room: false, lost: 0 };
        chip.probe()?;
        chip.receive()?;
        chip.set_rate(BASE_RATE)?;
        chip.registers.write(register::FIFO_CONTROL, FIFO_ON)?;
        chip.registers.write(register::MODEM_CONTROL, MODEM_READY)?;
        chip.enable_interrupts()?;
        Ok(chip)
    }

    /// Sets the speed in bit/s. `EINVAL`: the chip cannot do it.
    pub fn set_rate(&mut self, rate: u32) -> Result<(), Errno> {
        if rate == 0 || BASE_RATE % rate != 0 {
            return Err(Errno::EINVAL);
        }
        let [low, high, ..] = (BASE_RATE / rate).to_le_bytes();
        self.registers.write(register::LINE_CONTROL, DIVISOR_ACCESS | EIGHT_BITS_NO_PARITY)?;
        self.registers.write(register::DIVISOR_LOW, low)?;
        self.registers.write(register::DIVISOR_HIGH, high)?;
        self.registers.write(register::LINE_CONTROL, EIGHT_BITS_NO_PARITY)
    }

    /// Serves every cause of the interrupt.
    pub fn interrupt(&mut self) -> Result<(), Errno> {
        for _ in 0..CAUSES_LIMIT {
            if self.registers.read(register::INTERRUPT_CAUSE)? & NO_INTERRUPT != 0 {
                return Ok(());
            }
            self.receive()?;
            self.registers.read(register::MODEM_STATUS)?;
            if self.can_transmit()? && self.waits_for_room {
                self.waits_for_room = false;
                self.enable_interrupts()?;
            }
        }
        Ok(())
    }

    /// Gives the FIFO as much of `bytes` as it takes now. When that is not all, an interrupt tells of room.
    pub fn transmit(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let mut sent = 0;
        while sent < bytes.len() && self.can_transmit()? {
            let end = bytes.len().min(sent + FIFO_BYTES);
            for &byte in &bytes[sent..end] {
                self.registers.write(register::DATA, byte)?;
            }
            sent = end;
        }
        if sent < bytes.len() {
            self.waits_for_room = true;
            self.enable_interrupts()?;
        }
        Ok(sent)
    }

    /// True when `transmit` would take something.
    pub fn can_transmit(&mut self) -> Result<bool, Errno> {
        Ok(self.registers.read(register::LINE_STATUS)? & TRANSMIT_EMPTY != 0)
    }

    /// True when `read` would give something.
    pub fn has_received(&self) -> bool {
        !self.received.is_empty()
    }

    /// Bytes lost since the last call, because nobody asked for them in time.
    pub fn take_lost(&mut self) -> u64 {
        core::mem::take(&mut self.lost)
    }

    /// Takes received bytes.
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        let count = buffer.len().min(self.received.len());
        for (slot, byte) in buffer.iter_mut().zip(self.received.drain(..count)) {
            *slot = byte;
        }
        count
    }

    fn probe(&mut self) -> Result<(), Errno> {
        for pattern in [0x5a, 0xa5] {
            self.registers.write(register::SCRATCH, pattern)?;
            if self.registers.read(register::SCRATCH)? != pattern {
                return Err(Errno::ENXIO);
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), Errno> {
        for _ in 0..RECEIVED_LIMIT {
            if self.registers.read(register::LINE_STATUS)? & DATA_READY == 0 {
                break;
            }
            let byte = self.registers.read(register::DATA)?;
            if self.received.len() < RECEIVED_LIMIT {
                self.received.push_back(byte);
            } else {
                self.lost += 1;
            }
        }
        Ok(())
    }

    fn enable_interrupts(&mut self) -> Result<(), Errno> {
        let transmit = if self.waits_for_room { ENABLE_TRANSMIT_EMPTY } else { 0 };
        self.registers.write(register::INTERRUPT_ENABLE, ENABLE_RECEIVED | ENABLE_LINE_STATUS | transmit)
    }
}

#[cfg(test)]
#[path = "chip_tests.rs"]
mod tests;
