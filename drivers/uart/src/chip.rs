//! The 16550 UART (National PC16550D data sheet): eight registers, 16-byte FIFOs, one interrupt line.
//!
//! Generic over register access, so that tests script the chip. Nothing blocks here: `receive` returns the bytes of the FIFO,
//! `transmit` accepts only as many as fit into it.

use crate::settings::Settings;
use abi::Errno;
use abi::chardev::serial::*;

/// Depth of the transmit FIFO.
const FIFO_BYTES: usize = 16;

/// Register offsets.
#[allow(missing_docs)]
pub mod register {
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
const ENABLE_MODEM_STATUS: u8 = 8;
const NO_INTERRUPT: u8 = 1;
/// FIFOs on, without clearing them; interrupt at 8 bytes received (or after four character times).
const FIFO_ON: u8 = 0x81;
/// Line control: the first two registers access the divisor.
pub const DIVISOR_ACCESS: u8 = 0x80;
const BREAK: u8 = 0x40;
const CONTROL_DTR: u8 = 1;
const CONTROL_RTS: u8 = 2;
/// OUT2, which connects the interrupt to the bus.
const CONTROL_INTERRUPT: u8 = 8;
const CONTROL_LOOP: u8 = 0x10;
const DATA_READY: u8 = 1;
const OVERRUN: u8 = 2;
const TRANSMIT_EMPTY: u8 = 0x20;
const ALL_SENT: u8 = 0x40;
/// Bits of the modem status, and Linux's bits for them.
const MODEM_STATUS: [(u8, u64); 4] = [(0x10, MODEM_CTS), (0x20, MODEM_DSR), (0x40, MODEM_RI), (0x80, MODEM_CD)];
const STATUS_CTS: u8 = 0x10;

/// Access to the chip's registers.
pub trait Registers {
    /// Reads the register at this offset.
    fn read(&mut self, register: u16) -> Result<u8, Errno>;
    /// Writes the register at this offset.
    fn write(&mut self, register: u16, value: u8) -> Result<(), Errno>;
}

/// A 16550.
pub struct Chip<R: Registers> {
    registers: R,
    settings: Settings,
    /// Whether received bytes interrupt.
    receives: bool,
    /// Whether space in the transmit FIFO interrupts.
    waits_for_room: bool,
    /// DTR, RTS and loopback as requested.
    modem: u64,
    overruns: u64,
}

impl<R: Registers> Chip<R> {
    /// Detects and initialises the chip, interrupts on. The FIFOs keep their content, which a predecessor may have left, and a line
    /// that has these settings already is not reset. `ENXIO`: no chip.
    pub fn find(registers: R, settings: Settings) -> Result<Self, Errno> {
        let modem = MODEM_DTR | MODEM_RTS;
        let mut chip = Chip { registers, settings, receives: true, waits_for_room: false, modem, overruns: 0 };
        chip.probe()?;
        if !chip.has_settings()? {
            chip.write_settings()?;
        }
        chip.registers.write(register::FIFO_CONTROL, FIFO_ON)?;
        chip.write_modem()?;
        chip.enable_interrupts()?;
        Ok(chip)
    }

    /// Changes the settings.
    pub fn set(&mut self, settings: Settings) -> Result<(), Errno> {
        self.settings = settings;
        if !settings.hangs_up() {
            self.write_settings()?;
        }
        self.write_modem()?;
        self.enable_interrupts()
    }

    /// Acknowledges a cause of the interrupt. Returns whether there was one; the caller then serves the chip.
    pub fn has_interrupted(&mut self) -> Result<bool, Errno> {
        if self.registers.read(register::INTERRUPT_CAUSE)? & NO_INTERRUPT != 0 {
            return Ok(false);
        }
        self.registers.read(register::MODEM_STATUS)?;
        Ok(true)
    }

    /// Passes at most `limit` bytes of the receive FIFO to `sink`. Returns their number.
    pub fn receive(&mut self, limit: usize, mut sink: impl FnMut(u8)) -> Result<usize, Errno> {
        for count in 0..limit {
            let status = self.registers.read(register::LINE_STATUS)?;
            self.overruns += u64::from(status & OVERRUN != 0);
            if status & DATA_READY == 0 {
                return Ok(count);
            }
            sink(self.registers.read(register::DATA)?);
        }
        Ok(limit)
    }

    /// Returns the number of overruns since the last call.
    pub fn take_overruns(&mut self) -> u64 {
        core::mem::take(&mut self.overruns)
    }

    /// Switches the interrupt for received bytes, and with it RTS if that controls the flow.
    pub fn set_receiving(&mut self, receives: bool) -> Result<(), Errno> {
        if receives == self.receives {
            return Ok(());
        }
        self.receives = receives;
        self.write_modem()?;
        self.enable_interrupts()
    }

    /// Writes `bytes` into the FIFO until it is full, calling `sent` after each byte. If bytes remain, an interrupt signals space.
    pub fn transmit(&mut self, bytes: &[u8], mut sent: impl FnMut()) -> Result<usize, Errno> {
        let mut count = 0;
        while count < bytes.len() && self.can_transmit()? {
            let end = bytes.len().min(count + FIFO_BYTES);
            for &byte in &bytes[count..end] {
                self.registers.write(register::DATA, byte)?;
                sent();
            }
            count = end;
        }
        self.wait_for_room(count < bytes.len())?;
        Ok(count)
    }

    /// Switches the interrupt for space in the FIFO.
    pub fn wait_for_room(&mut self, waits: bool) -> Result<(), Errno> {
        if waits == self.waits_for_room {
            return Ok(());
        }
        self.waits_for_room = waits;
        self.enable_interrupts()
    }

    /// Returns whether all bytes have left the chip.
    pub fn has_sent_all(&mut self) -> Result<bool, Errno> {
        Ok(self.registers.read(register::LINE_STATUS)? & ALL_SENT != 0)
    }

    /// Returns the modem lines.
    pub fn modem(&mut self) -> Result<u64, Errno> {
        let status = self.registers.read(register::MODEM_STATUS)?;
        let inputs = MODEM_STATUS.into_iter().filter(|(bit, _)| status & bit != 0);
        Ok(inputs.fold(self.modem, |lines, (_, line)| lines | line))
    }

    /// Sets the outgoing modem lines.
    pub fn set_modem(&mut self, lines: u64) -> Result<(), Errno> {
        self.modem = lines & (MODEM_DTR | MODEM_RTS | MODEM_LOOP);
        self.write_modem()
    }

    /// Starts or ends a break.
    pub fn set_break(&mut self, on: bool) -> Result<(), Errno> {
        let control = self.settings.line_control() | if on { BREAK } else { 0 };
        self.registers.write(register::LINE_CONTROL, control)
    }

    fn can_transmit(&mut self) -> Result<bool, Errno> {
        if self.settings.has_rts_cts() && self.registers.read(register::MODEM_STATUS)? & STATUS_CTS == 0 {
            return Ok(false);
        }
        Ok(self.registers.read(register::LINE_STATUS)? & TRANSMIT_EMPTY != 0)
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

    fn has_settings(&mut self) -> Result<bool, Errno> {
        let control = self.registers.read(register::LINE_CONTROL)?;
        self.registers.write(register::LINE_CONTROL, control | DIVISOR_ACCESS)?;
        let low = self.registers.read(register::DIVISOR_LOW)?;
        let high = self.registers.read(register::DIVISOR_HIGH)?;
        self.registers.write(register::LINE_CONTROL, control & !DIVISOR_ACCESS)?;
        Ok([low, high] == self.settings.divisor() && control == self.settings.line_control())
    }

    fn write_settings(&mut self) -> Result<(), Errno> {
        let [low, high] = self.settings.divisor();
        let control = self.settings.line_control();
        self.registers.write(register::LINE_CONTROL, control | DIVISOR_ACCESS)?;
        self.registers.write(register::DIVISOR_LOW, low)?;
        self.registers.write(register::DIVISOR_HIGH, high)?;
        self.registers.write(register::LINE_CONTROL, control)
    }

    /// Sets RTS if it was requested and, where it controls the flow, if the driver can receive more.
    fn write_modem(&mut self) -> Result<(), Errno> {
        let holds_back = self.settings.has_rts_cts() && !self.receives;
        let dtr = if self.modem & MODEM_DTR != 0 && !self.settings.hangs_up() { CONTROL_DTR } else { 0 };
        let rts = if self.modem & MODEM_RTS != 0 && !holds_back { CONTROL_RTS } else { 0 };
        let back = if self.modem & MODEM_LOOP != 0 { CONTROL_LOOP } else { 0 };
        self.registers.write(register::MODEM_CONTROL, CONTROL_INTERRUPT | dtr | rts | back)
    }

    fn enable_interrupts(&mut self) -> Result<(), Errno> {
        let receive = if self.receives { ENABLE_RECEIVED | ENABLE_LINE_STATUS } else { 0 };
        let transmit = if self.waits_for_room { ENABLE_TRANSMIT_EMPTY } else { 0 };
        let modem = if self.settings.has_rts_cts() { ENABLE_MODEM_STATUS } else { 0 };
        self.registers.write(register::INTERRUPT_ENABLE, receive | transmit | modem)
    }
}

#[cfg(test)]
#[path = "chip_tests.rs"]
mod tests;
