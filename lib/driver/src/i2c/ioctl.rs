//! Linux's ioctls of /dev/i2c-N (`linux/i2c-dev.h`), and the structure of `I2C_SMBUS`.

use super::{Data, Kind, MAX_BLOCK, Transfer};
use crate::Client;
use abi::Errno;
use abi::chardev::MAX_FURTHER_STEPS;

/// How often a transfer is tried, and how long it may take: the controller knows better.
pub const RETRIES: u64 = 0x701;
/// As [`RETRIES`].
pub const TIMEOUT: u64 = 0x702;
/// The address of this open file.
pub const SLAVE: u64 = 0x703;
/// The same, whoever else uses the device: nobody does here.
pub const SLAVE_FORCE: u64 = 0x706;
/// Addresses of ten bits, which no bus here has.
pub const TENBIT: u64 = 0x704;
/// What the controller can do.
pub const FUNCS: u64 = 0x705;
/// Plain transfers of I2C.
pub const RDWR: u64 = 0x707;
/// Check bytes.
pub const PEC: u64 = 0x708;
/// A transfer of SMBus.
pub const SMBUS: u64 = 0x720;

/// `I2C_FUNC_SMBUS_` `QUICK`, `BYTE`, `BYTE_DATA`, `WORD_DATA`, `BLOCK_DATA`, each both ways.
pub const FUNCTIONS: u64 = 0x1_0000 | 0x6_0000 | 0x18_0000 | 0x60_0000 | 0x300_0000;

/// `I2C_FUNC_I2C`, and `I2C_FUNC_SMBUS_I2C_BLOCK` both ways: what a controller of SMBus alone does not do.
pub const PLAIN_FUNCTIONS: u64 = 1 | 0xc00_0000;

/// Limit of the messages of an `I2C_RDWR` (`I2C_RDWR_IOCTL_MAX_MSGS`).
pub const MAX_MESSAGES: usize = 42;
/// The list is a step of the ioctl, and each message is one.
const _: () = assert!((MAX_MESSAGES as u64) < MAX_FURTHER_STEPS);
/// Limit of a message, as of read(2) and write(2).
pub const MAX_MESSAGE: usize = 8192;
/// Bytes of `struct i2c_rdwr_ioctl_data`.
const LIST_BYTES: usize = 16;
/// Bytes of `struct i2c_msg`.
pub const MESSAGE_BYTES: usize = 16;
/// `i2c_msg`: from the device.
pub const READS: u16 = 1;

/// Where the list of messages of an `I2C_RDWR` is, and how many there are (`struct i2c_rdwr_ioctl_data`).
///
/// # Errors
/// `EINVAL`: no message, or more than `MAX_MESSAGES`; `EFAULT`.
pub fn list(argument: &Client) -> Result<(u64, usize), Errno> {
    let mut bytes = [0; LIST_BYTES];
    argument.fetch(0, &mut bytes)?;
    parse_list(&bytes)
}

fn parse_list(bytes: &[u8; LIST_BYTES]) -> Result<(u64, usize), Errno> {
    let [address, count] = *bytes.as_chunks().0 else { return Err(Errno::EINVAL) };
    let (address, count) = (u64::from_le_bytes(address), u64::from_le_bytes(count) as u32 as usize);
    let is_list = address != 0 && (1..=MAX_MESSAGES).contains(&count);
    if is_list { Ok((address, count)) } else { Err(Errno::EINVAL) }
}

/// A message of a transaction, `struct i2c_msg`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The device.
    pub address: u8,
    /// From the device.
    pub reads: bool,
    /// How many bytes: at most `MAX_MESSAGE`.
    pub bytes: usize,
    /// Where the program has them.
    pub buffer: u64,
}

impl Segment {
    /// From the program's memory.
    ///
    /// # Errors
    /// `EINVAL`: too long, or an address that has more than 7 bits; `EOPNOTSUPP`: it asks for more than bytes.
    pub fn parse(bytes: &[u8; MESSAGE_BYTES]) -> Result<Segment, Errno> {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let (address, flags, count) = (word(0), word(2), usize::from(word(4)));
        if address > 0x7f || count > MAX_MESSAGE {
            return Err(Errno::EINVAL);
        }
        if flags & !READS != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let buffer = bytes.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Ok(Segment { address: address as u8, reads: flags == READS, bytes: count, buffer })
    }
}

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
    /// A plain block of 32 bytes is read, whatever the program's data says.
    pub is_whole: bool,
}

/// `I2C_SMBUS_I2C_BLOCK_BROKEN`: a plain block as it was once asked for, which is still the way to ask for 32 bytes.
const OLD_BLOCK: u32 = 6;

impl Smbus {
    /// The request at a program's argument.
    ///
    /// # Errors
    /// As [`Smbus::parse`]; `EFAULT`.
    pub fn fetch(argument: &Client) -> Result<Smbus, Errno> {
        let mut bytes = [0; REQUEST_BYTES];
        argument.fetch(0, &mut bytes)?;
        Smbus::parse(&bytes)
    }

    /// `EINVAL`: no direction, or no kind that there is; `EOPNOTSUPP`: a kind that the controller does not have.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Result<Smbus, Errno> {
        let [direction, command, _, _, size @ .., _, _, _, _, _, _, _, _] = *bytes;
        let data = bytes.last_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let size = u32::from_le_bytes(size);
        let kind = match size {
            0 => Kind::Quick,
            1 => Kind::Byte,
            2 => Kind::ByteData,
            3 => Kind::WordData,
            5 => Kind::Block,
            OLD_BLOCK | 8 => Kind::PlainBlock,
            4 | 7 => return Err(Errno::EOPNOTSUPP),
            _ => return Err(Errno::EINVAL),
        };
        if direction > 1 {
            return Err(Errno::EINVAL);
        }
        let reads = direction == 1;
        let smbus = Smbus { reads, command, kind, data, is_whole: reads && size == OLD_BLOCK };
        if smbus.data_bytes() > 0 && data == 0 { Err(Errno::EINVAL) } else { Ok(smbus) }
    }

    /// Bytes of the program's data that the transfer reads or writes.
    pub fn data_bytes(&self) -> usize {
        match self.kind {
            Kind::Quick => 0,
            Kind::Byte if !self.reads => 0,
            Kind::Byte | Kind::ByteData => 1,
            Kind::WordData => 2,
            Kind::Block | Kind::PlainBlock => DATA_BYTES,
        }
    }

    /// Whether the program's data is looked at: what is written, or how much is to be read.
    pub fn is_told(&self) -> bool {
        self.data_bytes() > 0 && (!self.reads || self.kind == Kind::PlainBlock)
    }

    /// The transfer with this data of the program. `EINVAL`: a block of no length, or of more than 32 bytes.
    pub fn transfer(&self, address: u8, data: &[u8; DATA_BYTES]) -> Result<Transfer, Errno> {
        let is_plain = self.kind == Kind::PlainBlock;
        let data = match self.kind {
            _ if self.is_whole => Data { count: MAX_BLOCK, ..Data::NONE },
            _ if self.reads && !is_plain => Data::NONE,
            Kind::Block | Kind::PlainBlock if !(1..=MAX_BLOCK).contains(&data[0].into()) => return Err(Errno::EINVAL),
            Kind::Block | Kind::PlainBlock => Data::of(&data[1..=data[0].into()])?,
            _ => Data::of(&data[..self.data_bytes()])?,
        };
        Ok(Transfer { address, reads: self.reads, command: self.command, kind: self.kind, data })
    }

    /// What the program gets of what was read, and how many bytes that are.
    pub fn told(&self, data: &Data) -> ([u8; DATA_BYTES], usize) {
        let mut bytes = [0; DATA_BYTES];
        let start = usize::from(matches!(self.kind, Kind::Block | Kind::PlainBlock));
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
        assert_eq!(smbus, Smbus { reads: true, command: 7, kind: Kind::WordData, data: 0x1000, is_whole: false });
        assert_eq!(smbus.data_bytes(), 2);
        assert_eq!(Smbus::parse(&request(2, 0, 0, 0)), Err(Errno::EINVAL));
        assert_eq!(Smbus::parse(&request(0, 0, 9, 1)), Err(Errno::EINVAL));
        assert_eq!(Smbus::parse(&request(1, 0, 2, 0)), Err(Errno::EINVAL), "there is no place for the byte");
        for size in [4, 7] {
            assert_eq!(Smbus::parse(&request(1, 0, size, 1)), Err(Errno::EOPNOTSUPP));
        }
        assert_eq!(Smbus::parse(&request(0, 9, 1, 0)).map(|smbus| smbus.data_bytes()), Ok(0));
    }

    #[test]
    fn a_list_has_as_many_messages_as_on_linux() {
        let list = |address: u64, count: u64| {
            let mut bytes = [0; LIST_BYTES];
            bytes[..8].copy_from_slice(&address.to_le_bytes());
            bytes[8..].copy_from_slice(&count.to_le_bytes());
            parse_list(&bytes)
        };
        assert_eq!(list(0x1000, 1), Ok((0x1000, 1)));
        assert_eq!(list(0x1000, 0xffff_ffff_0000_002a), Ok((0x1000, 42)), "half of the word is padding");
        for (address, count) in [(0x1000, 0), (0x1000, 43), (0x1000, 0xffff_ffff), (0, 1)] {
            assert_eq!(list(address, count), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn a_message_is_read_as_linux_lays_it_out() {
        let message = |address: u16, flags: u16, count: u16| {
            let mut bytes = [0; MESSAGE_BYTES];
            for (slot, word) in bytes.chunks_exact_mut(2).zip([address, flags, count, 0xffff, 0x1000]) {
                slot.copy_from_slice(&word.to_le_bytes());
            }
            Segment::parse(&bytes)
        };
        let read = Segment { address: 0x50, reads: true, bytes: 128, buffer: 0x1000 };
        assert_eq!(message(0x50, 1, 128), Ok(read));
        assert_eq!(message(0x50, 0, 0), Ok(Segment { reads: false, bytes: 0, ..read }));
        assert_eq!(message(0x80, 0, 1), Err(Errno::EINVAL));
        assert_eq!(message(0x50, 0, 8193), Err(Errno::EINVAL));
        for flags in [0x10, 0x401, 0x1000, 0x4000] {
            assert_eq!(message(0x50, flags, 1), Err(Errno::EOPNOTSUPP));
        }
    }

    #[test]
    fn a_plain_block_has_a_length_both_ways() {
        let read = Smbus::parse(&request(1, 0, 8, 0x1000)).expect("is one");
        let mut data = [0; DATA_BYTES];
        assert_eq!((read.is_told(), read.transfer(0x50, &data)), (true, Err(Errno::EINVAL)));
        data[0] = 5;
        assert_eq!(read.transfer(0x50, &data).map(|transfer| transfer.data.count), Ok(5));
        let old = Smbus::parse(&request(1, 0, 6, 0x1000)).expect("is one");
        assert_eq!(old.transfer(0x50, &data).map(|transfer| transfer.data.count), Ok(32));
        let written = Smbus::parse(&request(0, 0, 6, 0x1000)).expect("is one");
        assert_eq!(written.transfer(0x50, &data).map(|transfer| transfer.data.count), Ok(5));
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
