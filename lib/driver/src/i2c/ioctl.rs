//! Linux's ioctls of /dev/i2c-N (`linux/i2c-dev.h`), and the structure of `I2C_SMBUS`.

use crate::controller::{Data, Kind, MAX_BLOCK, Transfer};
use abi::Errno;

/// How often a transfer is tried, and how long it may take: the controller knows better.
pub const RETRIES: u64 = 0x701;
pub const TIMEOUT: u64 = 0x702;
/// The address of this open file.
pub const SLAVE: u64 = 0x703;
/// The same, whoever else uses the device: nobody does here.
pub const SLAVE_FORCE: u64 = 0x706;
/// Addresses of ten bits, which this controller does not have.
pub const TENBIT: u64 = 0x704;
/// What the controller can do.
pub const FUNCS: u64 = 0x705;
/// Plain transfers of I2C, which this controller does not make.
pub const RDWR: u64 = 0x707;
/// Check bytes.
pub const PEC: u64 = 0x708;
/// A transfer of SMBus.
pub const SMBUS: u64 = 0x720;

/// `I2C_FUNC_SMBUS_` `QUICK`, `BYTE`, `BYTE_DATA`, `WORD_DATA`, `BLOCK_DATA`, each both ways.
pub const FUNCTIONS: u64 = 0x1_0000 | 0x6_0000 | 0x18_0000 | 0x60_0000 | 0x300_0000;

/// Bytes of `struct i2c_smbus_ioctl_data`.
pub const REQUEST_BYTES: usize = 16;
/// Bytes of `union i2c_smbus_data`: a length, a block, and a byte for its check.
pub const DATA_BYTES: usize = MAX_BLOCK + 2;

/// `struct i2c_smbus_ioctl_data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smbus {
    /// From the device.
    pub reads: bool,
    /// The device's register.
    pub command: u8,
    /// What the transfer consists of.
    pub kind: Kind,
    /// Where the program has its data.
    pub data: u64,
}

impl Smbus {
    /// `EINVAL`: no direction, or no kind that there is; `EOPNOTSUPP`: a kind that the controller does not have.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Result<Smbus, Errno> {
        let [direction, command, _, _, size @ .., _, _, _, _, _, _, _, _] = *bytes;
        let data = bytes.last_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let kind = match u32::from_le_bytes(size) {
            0 => Kind::Quick,
            1 => Kind::Byte,
            2 => Kind::ByteData,
            3 => Kind::WordData,
            5 => Kind::Block,
            4 | 6..=8 => return Err(Errno::EOPNOTSUPP),
            _ => return Err(Errno::EINVAL),
        };
        if direction > 1 {
            return Err(Errno::EINVAL);
        }
        let smbus = Smbus { reads: direction == 1, command, kind, data };
        if smbus.data_bytes() > 0 && data == 0 { Err(Errno::EINVAL) } else { Ok(smbus) }
    }

    /// Bytes of the program's data that the transfer reads or writes.
    pub fn data_bytes(&self) -> usize {
        match self.kind {
            Kind::Quick => 0,
            Kind::Byte if !self.reads => 0,
            Kind::Byte | Kind::ByteData => 1,
            Kind::WordData => 2,
            Kind::Block => DATA_BYTES,
        }
    }

    /// The transfer with this data of the program. `EINVAL`: a block of no length, or of more than 32 bytes.
    pub fn transfer(&self, address: u8, data: &[u8; DATA_BYTES]) -> Result<Transfer, Errno> {
        let data = match self.kind {
            _ if self.reads => Data::NONE,
            Kind::Block if !(1..=MAX_BLOCK).contains(&data[0].into()) => return Err(Errno::EINVAL),
            Kind::Block => Data::of(&data[1..=data[0].into()])?,
            _ => Data::of(&data[..self.data_bytes()])?,
        };
        Ok(Transfer { address, reads: self.reads, command: self.command, kind: self.kind, data })
    }

    /// What the program gets of what was read, and how many bytes that are.
    pub fn told(&self, data: &Data) -> ([u8; DATA_BYTES], usize) {
        let mut bytes = [0; DATA_BYTES];
        let start = usize::from(self.kind == Kind::Block);
        if start == 1 {
            bytes[0] = data.count as u8;
        }
        bytes[start..start + data.count].copy_from_slice(data.as_slice());
        (bytes, start + data.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(direction: u8, command: u8, size: u32, data: u64) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        (bytes[0], bytes[1]) = (direction, command);
        bytes[4..8].copy_from_slice(&size.to_le_bytes());
        bytes[8..].copy_from_slice(&data.to_le_bytes());
        bytes
    }

    #[test]
    fn a_request_is_read_as_linux_lays_it_out() {
        let smbus = Smbus::parse(&request(1, 7, 3, 0x1000)).expect("is one");
        assert_eq!(smbus, Smbus { reads: true, command: 7, kind: Kind::WordData, data: 0x1000 });
        assert_eq!(smbus.data_bytes(), 2);
        assert_eq!(Smbus::parse(&request(2, 0, 0, 0)), Err(Errno::EINVAL));
        assert_eq!(Smbus::parse(&request(0, 0, 9, 1)), Err(Errno::EINVAL));
        assert_eq!(Smbus::parse(&request(1, 0, 2, 0)), Err(Errno::EINVAL), "there is no place for the byte");
        for size in [4, 6, 7, 8] {
            assert_eq!(Smbus::parse(&request(1, 0, size, 1)), Err(Errno::EOPNOTSUPP));
        }
        assert_eq!(Smbus::parse(&request(0, 9, 1, 0)).map(|smbus| smbus.data_bytes()), Ok(0));
    }

    #[test]
    fn a_block_says_its_length_first() {
        let write = Smbus::parse(&request(0, 1, 5, 0x1000)).expect("is one");
        let mut data = [0; DATA_BYTES];
        for length in [0, 33, 255] {
            data[0] = length;
            assert_eq!(write.transfer(0x50, &data), Err(Errno::EINVAL));
        }
        data[..4].copy_from_slice(&[3, 10, 20, 30]);
        assert_eq!(write.transfer(0x50, &data).map(|transfer| transfer.data), Data::of(&[10, 20, 30]));
        let read = Smbus { reads: true, ..write };
        let (bytes, count) = read.told(&Data::of(&[5, 6]).expect("fits"));
        assert_eq!((&bytes[..4], count), (&[2, 5, 6, 0][..], 3));
    }
}
