//! The SMBus host controller of Intel's ICH chips (ICH9 datasheet, 19.2): one transfer at a time.

use abi::Errno;
use driver::i2c::{Data, Kind, MAX_BLOCK, Transfer};

/// Registers, by offset.
mod register {
    pub const STATUS: u16 = 0;
    pub const CONTROL: u16 = 2;
    pub const COMMAND: u16 = 3;
    pub const ADDRESS: u16 = 4;
    pub const DATA_0: u16 = 5;
    pub const DATA_1: u16 = 6;
    pub const BLOCK: u16 = 7;
    pub const AUXILIARY_CONTROL: u16 = 0xd;
}

/// Ports of the controller.
pub const PORTS: u16 = 0x20;

mod status {
    pub const BUSY: u8 = 1;
    pub const DONE: u8 = 2;
    pub const NO_ACKNOWLEDGE: u8 = 4;
    pub const COLLISION: u8 = 8;
    pub const FAILED: u8 = 0x10;
    /// Set by the first read of the register since it was cleared: whoever reads 0 has the controller.
    pub const IN_USE: u8 = 0x40;
    pub const ENDS: u8 = DONE | NO_ACKNOWLEDGE | COLLISION | FAILED;
}

const START: u8 = 0x40;
const KILL: u8 = 2;
/// The block registers hold 32 bytes, behind the one of `register::BLOCK`.
const BLOCK_BUFFER: u8 = 2;

/// Longest transfer. A device may hold the bus for 25 ms at each of its bytes.
pub const LIMIT_NS: u64 = 200_000_000;

/// The controller's number of a kind of transfers.
fn protocol(kind: Kind) -> u8 {
    match kind {
        Kind::Quick => 0,
        Kind::Byte => 1,
        Kind::ByteData => 2,
        Kind::WordData => 3,
        // The second one is refused before.
        Kind::Block | Kind::PlainBlock => 5,
    }
}

/// The controller's ports.
pub trait Registers {
    /// Reads 8 bits.
    fn read(&mut self, offset: u16) -> Result<u8, Errno>;
    /// Writes 8 bits.
    fn write(&mut self, offset: u16, value: u8) -> Result<(), Errno>;
}

/// The controller.
pub struct Controller<R> {
    registers: R,
    current: Option<Transfer>,
}

impl<R: Registers> Controller<R> {
    /// A controller whose transfer in progress, begun by a predecessor, is ended.
    ///
    /// # Errors
    /// As of the ports.
    pub fn new(registers: R) -> Result<Self, Errno> {
        let mut controller = Controller { registers, current: None };
        if controller.registers.read(register::STATUS)? & status::BUSY != 0 {
            controller.registers.write(register::CONTROL, KILL)?;
        }
        controller.clear()?;
        Ok(controller)
    }

    /// Begins a transfer; none is in progress. `EBUSY`: the firmware uses the controller.
    pub fn begin(&mut self, transfer: &Transfer) -> Result<(), Errno> {
        if self.registers.read(register::STATUS)? & status::BUSY != 0 {
            return Err(Errno::EBUSY);
        }
        let is_block = transfer.kind == Kind::Block;
        let words = [
            (register::CONTROL, 0),
            (register::AUXILIARY_CONTROL, if is_block { BLOCK_BUFFER } else { 0 }),
            (register::ADDRESS, transfer.address << 1 | u8::from(transfer.reads)),
            (register::COMMAND, transfer.command),
        ];
        for (offset, value) in words {
            self.registers.write(offset, value)?;
        }
        if !transfer.reads {
            self.load(transfer)?;
        }
        self.registers.write(register::CONTROL, START | protocol(transfer.kind) << 2)?;
        self.current = Some(*transfer);
        Ok(())
    }

    fn load(&mut self, transfer: &Transfer) -> Result<(), Errno> {
        let data = &transfer.data;
        if transfer.kind != Kind::Block {
            self.registers.write(register::DATA_0, data.bytes[0])?;
            return self.registers.write(register::DATA_1, data.bytes[1]);
        }
        self.registers.write(register::DATA_0, data.count as u8)?;
        // This read has the next access of the buffer begin at its first byte.
        self.registers.read(register::CONTROL)?;
        data.as_slice().iter().try_for_each(|&byte| self.registers.write(register::BLOCK, byte))
    }

    /// Returns how the transfer in progress has ended; `None`: it has not. `ENXIO`: no device answers; `EAGAIN`: another host had the bus;
    /// `EIO`; `EPROTO`: a block without a length.
    pub fn end(&mut self) -> Result<Option<Data>, Errno> {
        let Some(transfer) = self.current else { return Err(Errno::EIO) };
        let status = self.registers.read(register::STATUS)?;
        if status & status::BUSY != 0 || status & status::ENDS == 0 {
            return Ok(None);
        }
        let data = match status {
            _ if status & status::FAILED != 0 => Err(Errno::EIO),
            _ if status & status::NO_ACKNOWLEDGE != 0 => Err(Errno::ENXIO),
            _ if status & status::COLLISION != 0 => Err(Errno::EAGAIN),
            _ if transfer.reads => self.unload(transfer.kind),
            _ => Ok(Data::NONE),
        };
        self.current = None;
        self.clear()?;
        data.map(Some)
    }

    fn unload(&mut self, kind: Kind) -> Result<Data, Errno> {
        let low = self.registers.read(register::DATA_0)?;
        let mut data = Data::NONE;
        match kind {
            Kind::Quick => {}
            Kind::Byte | Kind::ByteData => (data.count, data.bytes[0]) = (1, low),
            Kind::WordData => {
                (data.count, data.bytes[0]) = (2, low);
                data.bytes[1] = self.registers.read(register::DATA_1)?;
            }
            Kind::Block | Kind::PlainBlock => {
                data.count = low.into();
                if data.count == 0 || data.count > MAX_BLOCK {
                    return Err(Errno::EPROTO);
                }
                self.registers.read(register::CONTROL)?;
                for byte in &mut data.bytes[..data.count] {
                    *byte = self.registers.read(register::BLOCK)?;
                }
            }
        }
        Ok(data)
    }

    /// Ends a transfer that takes too long.
    pub fn give_up(&mut self) -> Result<(), Errno> {
        self.current = None;
        self.registers.write(register::CONTROL, KILL)?;
        self.clear()
    }

    /// Clears what the last transfer has left, and lets others have the controller.
    fn clear(&mut self) -> Result<(), Errno> {
        self.registers.write(register::CONTROL, 0)?;
        self.registers.write(register::STATUS, status::ENDS | status::IN_USE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A controller with one device at 0x50, whose registers are memory; a transfer takes one look.
    struct Chip {
        registers: [u8; PORTS as usize],
        block: [u8; MAX_BLOCK],
        at: usize,
        memory: [u8; 256],
        looks: u32,
    }

    impl Chip {
        fn new() -> Chip {
            Chip {
                registers: [0; PORTS as usize],
                block: [0; MAX_BLOCK],
                at: 0,
                memory: core::array::from_fn(|at| at as u8 ^ 0xa5),
                looks: 0,
            }
        }

        fn run(&mut self, protocol: u8) {
            let reads = self.registers[4] & 1 != 0;
            let command = self.registers[3] as usize;
            self.looks = 2;
            if self.registers[4] >> 1 != 0x50 {
                self.registers[0] |= status::NO_ACKNOWLEDGE;
                return;
            }
            match (protocol, reads) {
                (1, true) => self.registers[5] = self.memory[0],
                (2, true) => self.registers[5] = self.memory[command],
                (2, false) => self.memory[command] = self.registers[5],
                (3, true) => self.registers[5..7].copy_from_slice(&self.memory[command..command + 2]),
                (3, false) => self.memory[command..command + 2].copy_from_slice(&self.registers[5..7]),
                (5, true) => {
                    self.registers[5] = self.memory[command];
                    self.block.copy_from_slice(&self.memory[command + 1..command + 33]);
                }
                (5, false) => {
                    let count = self.registers[5] as usize;
                    self.memory[command] = count as u8;
                    self.memory[command + 1..command + 1 + count].copy_from_slice(&self.block[..count]);
                }
                _ => {}
            }
            self.registers[0] |= status::DONE;
        }
    }

    impl Registers for &mut Chip {
        fn read(&mut self, offset: u16) -> Result<u8, Errno> {
            match offset {
                register::STATUS if self.looks > 0 => {
                    self.looks -= 1;
                    return Ok(status::BUSY);
                }
                register::CONTROL => self.at = 0,
                register::BLOCK => {
                    self.at += 1;
                    return Ok(self.block[self.at - 1]);
                }
                _ => {}
            }
            Ok(self.registers[offset as usize])
        }

        fn write(&mut self, offset: u16, value: u8) -> Result<(), Errno> {
            match offset {
                register::STATUS => self.registers[0] &= !value,
                register::BLOCK => {
                    self.block[self.at] = value;
                    self.at += 1;
                }
                register::CONTROL if value & START != 0 => self.run(value >> 2 & 7),
                register::CONTROL if value & KILL != 0 => {
                    self.looks = 0;
                    self.registers[0] |= status::FAILED;
                }
                _ => self.registers[offset as usize] = value,
            }
            Ok(())
        }
    }

    fn transfer(kind: Kind, reads: bool, command: u8, data: &[u8]) -> Transfer {
        Transfer { address: 0x50, reads, command, kind, data: Data::of(data).expect("fits") }
    }

    fn done(controller: &mut Controller<&mut Chip>, transfer: &Transfer) -> Result<Vec<u8>, Errno> {
        controller.begin(transfer)?;
        let mut looks = 0;
        loop {
            looks += 1;
            if let Some(data) = controller.end()? {
                assert!(looks > 1, "it takes a while");
                return Ok(data.as_slice().to_vec());
            }
        }
    }

    #[test]
    fn bytes_words_and_blocks_go_both_ways() {
        let mut chip = Chip::new();
        let mut controller = Controller::new(&mut chip).expect("ports");
        let mut ask = |kind, reads, command, data: &[u8]| done(&mut controller, &transfer(kind, reads, command, data));
        assert_eq!(ask(Kind::Quick, false, 0, &[]), Ok(vec![]));
        assert_eq!(ask(Kind::Byte, true, 0, &[]), Ok(vec![0xa5]));
        assert_eq!(ask(Kind::ByteData, true, 3, &[]), Ok(vec![0xa6]));
        assert_eq!(ask(Kind::ByteData, false, 3, &[7]), Ok(vec![]));
        assert_eq!(ask(Kind::WordData, true, 2, &[]), Ok(vec![0xa7, 7]));
        assert_eq!(ask(Kind::WordData, false, 2, &[1, 2]), Ok(vec![]));
        assert_eq!(ask(Kind::ByteData, true, 3, &[]), Ok(vec![2]));
        assert_eq!(ask(Kind::Block, false, 16, &[9, 8, 7]), Ok(vec![]));
        assert_eq!(ask(Kind::Block, true, 16, &[]), Ok(vec![9, 8, 7]));
    }

    #[test]
    fn a_missing_device_is_told_and_the_next_transfer_is_not_disturbed() {
        let mut chip = Chip::new();
        let mut controller = Controller::new(&mut chip).expect("ports");
        let absent = Transfer { address: 0x51, ..transfer(Kind::ByteData, true, 0, &[]) };
        assert_eq!(done(&mut controller, &absent), Err(Errno::ENXIO));
        assert_eq!(done(&mut controller, &transfer(Kind::ByteData, true, 0, &[])), Ok(vec![0xa5]));
    }

    #[test]
    fn a_block_without_or_with_an_absurd_length_is_refused() {
        let mut chip = Chip::new();
        (chip.memory[0], chip.memory[100]) = (0, 33);
        let mut controller = Controller::new(&mut chip).expect("ports");
        for command in [0, 100] {
            assert_eq!(done(&mut controller, &transfer(Kind::Block, true, command, &[])), Err(Errno::EPROTO));
        }
    }

    #[test]
    fn a_transfer_that_hangs_is_given_up_and_a_predecessors_is_ended() {
        let mut chip = Chip::new();
        let mut controller = Controller::new(&mut chip).expect("ports");
        controller.begin(&transfer(Kind::ByteData, true, 0, &[])).expect("begins");
        controller.registers.looks = u32::MAX;
        assert_eq!(controller.end(), Ok(None));
        assert_eq!(controller.begin(&transfer(Kind::ByteData, true, 0, &[])), Err(Errno::EBUSY));
        controller.give_up().expect("ports");
        assert_eq!(done(&mut controller, &transfer(Kind::ByteData, true, 0, &[])), Ok(vec![0xa5]));
        controller.begin(&transfer(Kind::ByteData, true, 0, &[])).expect("begins");
        chip.looks = u32::MAX;
        let mut successor = Controller::new(&mut chip).expect("ports");
        assert_eq!(done(&mut successor, &transfer(Kind::ByteData, true, 1, &[])), Ok(vec![0xa4]));
    }
}
