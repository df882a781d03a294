//! The I2C kit: what drivers of buses share. A program sees a bus as Linux's /dev/i2c-N.
//!
//! * `handles`: open files, each with an address of its own; `ioctl`: Linux's structures;
//! * `ddc`: a display's EDID, for another driver;
//! * `wires`: a bus whose two wires the processor moves itself, and SMBus' transfers on it; `bus`: the requests to such a bus.
//!
//! A bus has one driver, and a driver one bus.

mod bus;
pub mod ddc;
pub mod handles;
pub mod ioctl;
mod wires;

pub use bus::Bus;
pub use wires::{Wire, Wires};

use abi::Errno;

/// Most bytes of a block.
pub const MAX_BLOCK: usize = 32;

/// What a transfer consists of, as SMBus has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The address alone.
    Quick,
    /// One byte: a command, or data without one.
    Byte,
    /// A command and a byte.
    ByteData,
    /// A command and two bytes.
    WordData,
    /// A command, a length, and so many bytes.
    Block,
    /// A command, and as many bytes as the host says.
    PlainBlock,
}

/// Bytes of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// How many: at most 32.
    pub count: usize,
    /// The bytes, a word's lower one first.
    pub bytes: [u8; MAX_BLOCK],
}

impl Data {
    /// None.
    pub const NONE: Data = Data { count: 0, bytes: [0; MAX_BLOCK] };

    /// These bytes. `EINVAL`: they are more than a block has.
    pub fn of(bytes: &[u8]) -> Result<Data, Errno> {
        let mut data = Data { count: bytes.len(), ..Data::NONE };
        data.bytes.get_mut(..bytes.len()).ok_or(Errno::EINVAL)?.copy_from_slice(bytes);
        Ok(data)
    }

    /// The bytes that there are.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.count]
    }
}

/// A transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The device: 7 bits.
    pub address: u8,
    /// From the device to the host.
    pub reads: bool,
    /// The device's register, or the byte of a `Byte` that is written.
    pub command: u8,
    /// What it consists of.
    pub kind: Kind,
    /// What is written; of a `PlainBlock` that is read, how many bytes are.
    pub data: Data,
}
