//! The i8042 keyboard controller: two registers, and commands with time-outs, for a controller may be absent, defective or slow.
//!
//! Everything here polls, and is for initialisation only; while the driver runs, bytes come by interrupt (`device`).

use abi::Errno;

/// Time for the controller to accept a byte.
const ACCEPT_NS: u64 = 50_000_000;
/// Time for a device to answer a byte.
const ANSWER_NS: u64 = 200_000_000;
/// Bytes that are drained: more than any controller holds.
const DRAIN_LIMIT: usize = 64;
/// Attempts to send one byte that the device asks for again.
const TRIES: usize = 3;

const OUTPUT_FULL: u8 = 1;
const INPUT_FULL: u8 = 2;
const FROM_MOUSE: u8 = 0x20;

const READ_CONFIG: u8 = 0x20;
const WRITE_CONFIG: u8 = 0x60;
const DISABLE_MOUSE: u8 = 0xa7;
const ENABLE_MOUSE: u8 = 0xa8;
const DISABLE_KEYBOARD: u8 = 0xad;
const ENABLE_KEYBOARD: u8 = 0xae;
const TO_MOUSE: u8 = 0xd4;

/// Bits of the configuration: both interrupts, both devices disabled, scan codes translated to set 1.
const CONFIG_INTERRUPTS: u8 = 0x03;
const CONFIG_SYSTEM: u8 = 0x04;
const CONFIG_DISABLED: u8 = 0x30;
const CONFIG_TRANSLATE: u8 = 0x40;

/// A device's acknowledgement of a byte, and its request to send it again.
pub const ACKNOWLEDGE: u8 = 0xfa;
/// See [`ACKNOWLEDGE`].
pub const RESEND: u8 = 0xfe;

/// The two registers of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Port 0x60.
    Data,
    /// Port 0x64: status when read, commands when written.
    Control,
}

/// Access to the registers, and the time.
pub trait Registers {
    /// Reads a register.
    fn read(&mut self, register: Register) -> Result<u8, Errno>;
    /// Writes a register.
    fn write(&mut self, register: Register, value: u8) -> Result<(), Errno>;
    /// Monotonic time.
    fn now_ns(&self) -> u64;
}

/// The two devices, as minor numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    Keyboard,
    Mouse,
}

/// The controller.
pub struct Controller<R> {
    registers: R,
}

impl<R: Registers> Controller<R> {
    /// The controller behind these registers.
    pub fn new(registers: R) -> Self {
        Controller { registers }
    }

    /// Monotonic time.
    pub fn now_ns(&self) -> u64 {
        self.registers.now_ns()
    }

    /// Stops both devices, hands the bytes that have arrived to `drained`, and sets translation and no interrupts.
    ///
    /// # Errors
    /// `ENXIO`: there is no controller; `ETIMEDOUT`.
    pub fn stop(&mut self, mut drained: impl FnMut(Device, u8)) -> Result<(), Errno> {
        if self.registers.read(Register::Control)? == 0xff {
            return Err(Errno::ENXIO);
        }
        self.command(DISABLE_KEYBOARD)?;
        self.command(DISABLE_MOUSE)?;
        for _ in 0..DRAIN_LIMIT {
            let Some((device, byte)) = self.take()? else { break };
            drained(device, byte);
        }
        self.command(READ_CONFIG)?;
        let config = self.wait_for_byte()?.1;
        self.configure(config & !CONFIG_INTERRUPTS | CONFIG_TRANSLATE | CONFIG_SYSTEM)
    }

    /// Starts both devices, which interrupt from now on.
    ///
    /// # Errors
    /// `ETIMEDOUT`.
    pub fn start(&mut self) -> Result<(), Errno> {
        self.command(ENABLE_KEYBOARD)?;
        self.command(ENABLE_MOUSE)?;
        self.configure(CONFIG_INTERRUPTS | CONFIG_TRANSLATE | CONFIG_SYSTEM)
    }

    /// Enables one device, so that it can be asked; the other one stays stopped.
    ///
    /// # Errors
    /// `ETIMEDOUT`.
    pub fn select(&mut self, device: Device) -> Result<(), Errno> {
        let (on, off) = match device {
            Device::Keyboard => (ENABLE_KEYBOARD, DISABLE_MOUSE),
            Device::Mouse => (ENABLE_MOUSE, DISABLE_KEYBOARD),
        };
        self.command(off)?;
        self.command(on)
    }

    /// Sends bytes to a device, each acknowledged, and receives as many as `reply` has room for.
    ///
    /// # Errors
    /// `ETIMEDOUT`: the device is absent, or does not answer; `EIO`: it refuses.
    pub fn ask(&mut self, device: Device, bytes: &[u8], reply: &mut [u8]) -> Result<(), Errno> {
        for byte in bytes {
            self.tell(device, *byte)?;
        }
        for slot in reply {
            *slot = self.wait_for_byte_of(device)?;
        }
        Ok(())
    }

    /// Sends one byte to a device without waiting for its answer.
    ///
    /// # Errors
    /// `ETIMEDOUT`.
    pub fn send(&mut self, device: Device, byte: u8) -> Result<(), Errno> {
        if device == Device::Mouse {
            self.command(TO_MOUSE)?;
        }
        self.write(Register::Data, byte)
    }

    /// Takes the next byte, if one has arrived.
    ///
    /// # Errors
    /// Of the access.
    pub fn take(&mut self) -> Result<Option<(Device, u8)>, Errno> {
        let status = self.registers.read(Register::Control)?;
        if status & OUTPUT_FULL == 0 || status == 0xff {
            return Ok(None);
        }
        let device = if status & FROM_MOUSE != 0 { Device::Mouse } else { Device::Keyboard };
        Ok(Some((device, self.registers.read(Register::Data)?)))
    }

    /// The device of the next byte, if one has arrived; it is not taken.
    ///
    /// # Errors
    /// Of the access.
    pub fn next_is_from(&mut self) -> Result<Option<Device>, Errno> {
        let status = self.registers.read(Register::Control)?;
        Ok(match status {
            0xff => None,
            _ if status & OUTPUT_FULL == 0 => None,
            _ if status & FROM_MOUSE != 0 => Some(Device::Mouse),
            _ => Some(Device::Keyboard),
        })
    }

    fn tell(&mut self, device: Device, byte: u8) -> Result<(), Errno> {
        for _ in 0..TRIES {
            self.send(device, byte)?;
            loop {
                match self.wait_for_byte_of(device)? {
                    ACKNOWLEDGE => return Ok(()),
                    RESEND => break,
                    // What the device sent before it saw the byte.
                    _ => {}
                }
            }
        }
        Err(Errno::EIO)
    }

    fn configure(&mut self, config: u8) -> Result<(), Errno> {
        self.command(WRITE_CONFIG)?;
        self.write(Register::Data, config & !CONFIG_DISABLED)
    }

    fn command(&mut self, command: u8) -> Result<(), Errno> {
        self.write(Register::Control, command)
    }

    fn write(&mut self, register: Register, value: u8) -> Result<(), Errno> {
        let deadline_ns = self.now_ns() + ACCEPT_NS;
        while self.registers.read(Register::Control)? & INPUT_FULL != 0 {
            if self.now_ns() > deadline_ns {
                return Err(Errno::ETIMEDOUT);
            }
        }
        self.registers.write(register, value)
    }

    fn wait_for_byte_of(&mut self, wanted: Device) -> Result<u8, Errno> {
        for _ in 0..DRAIN_LIMIT {
            let (device, byte) = self.wait_for_byte()?;
            if device == wanted {
                return Ok(byte);
            }
        }
        Err(Errno::ETIMEDOUT)
    }

    fn wait_for_byte(&mut self) -> Result<(Device, u8), Errno> {
        let deadline_ns = self.now_ns() + ANSWER_NS;
        loop {
            if let Some(byte) = self.take()? {
                return Ok(byte);
            }
            if self.now_ns() > deadline_ns {
                return Err(Errno::ETIMEDOUT);
            }
        }
    }
}
