//! A bus whose two wires the processor moves itself: conditions, bytes, messages (UM10204), and SMBus' transfers made of messages.
//!
//! Invariant: between two messages of different transactions both wires are released.

use super::{Data, Kind, MAX_BLOCK, Transfer};
use abi::Errno;

/// How long a device may hold the clock, in pauses.
const MAX_STRETCH: u32 = 5_000;
/// Clocks after which a device that a predecessor has left in the middle of a byte has sent it to its end.
const CLOCKS_OF_A_BYTE: u32 = 9;

/// A wire of the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// The clock, SCL.
    Clock,
    /// The data, SDA.
    Data,
}

/// The wires. A wire that nobody pulls is high.
pub trait Wires {
    /// Pulls a wire low, or releases it.
    fn pull(&mut self, wire: Wire, is_pulled: bool);
    /// Whether a wire is high.
    fn is_high(&mut self, wire: Wire) -> bool;
    /// Waits for half a bit.
    fn pause(&mut self);
}

/// The host of a bus, the only one.
pub struct Host<W> {
    wires: W,
}

impl<W: Wires> Host<W> {
    /// The host of a bus that is idle from now on, whatever a predecessor has left.
    pub fn new(wires: W) -> Self {
        let mut host = Host { wires };
        host.release(Wire::Data);
        for _ in 0..CLOCKS_OF_A_BYTE {
            // What holds the clock for ever makes each message fail.
            let _ = host.read_bit();
        }
        host.stop();
        host
    }

    fn release(&mut self, wire: Wire) {
        self.wires.pull(wire, false);
        self.wires.pause();
    }

    fn pull(&mut self, wire: Wire) {
        self.wires.pull(wire, true);
        self.wires.pause();
    }

    /// Releases the clock and waits until no device holds it. `ETIMEDOUT`: one does.
    fn raise_clock(&mut self) -> Result<(), Errno> {
        self.release(Wire::Clock);
        for _ in 0..MAX_STRETCH {
            if self.wires.is_high(Wire::Clock) {
                return Ok(());
            }
            self.wires.pause();
        }
        Err(Errno::ETIMEDOUT)
    }

    /// A start condition: of a transaction, or between two of its messages.
    fn start(&mut self) -> Result<(), Errno> {
        self.release(Wire::Data);
        self.raise_clock()?;
        self.pull(Wire::Data);
        self.pull(Wire::Clock);
        Ok(())
    }

    /// Ends a transaction.
    pub fn stop(&mut self) {
        self.pull(Wire::Clock);
        self.pull(Wire::Data);
        // The next start tells if this fails.
        let _ = self.raise_clock();
        self.release(Wire::Data);
    }

    fn write_bit(&mut self, bit: bool) -> Result<(), Errno> {
        if bit {
            self.release(Wire::Data)
        } else {
            self.pull(Wire::Data)
        }
        self.raise_clock()?;
        self.pull(Wire::Clock);
        Ok(())
    }

    fn read_bit(&mut self) -> Result<bool, Errno> {
        self.release(Wire::Data);
        self.raise_clock()?;
        let bit = self.wires.is_high(Wire::Data);
        self.pull(Wire::Clock);
        Ok(bit)
    }

    /// Writes a byte. Returns whether the device has acknowledged it.
    fn write_byte(&mut self, byte: u8) -> Result<bool, Errno> {
        for bit in (0..8).rev() {
            self.write_bit(byte >> bit & 1 != 0)?;
        }
        self.read_bit().map(|bit| !bit)
    }

    fn read_byte(&mut self, is_last: bool) -> Result<u8, Errno> {
        let mut byte = 0;
        for _ in 0..8 {
            byte = byte << 1 | u8::from(self.read_bit()?);
        }
        self.write_bit(is_last).map(|()| byte)
    }

    /// `ENXIO`: no device has this address.
    fn address(&mut self, address: u8, reads: bool) -> Result<(), Errno> {
        self.start()?;
        if self.write_byte(address << 1 | u8::from(reads))? { Ok(()) } else { Err(Errno::ENXIO) }
    }

    /// Writes a message of a transaction that a [`stop`](Host::stop) ends.
    ///
    /// # Errors
    /// `ENXIO`: no device answers; `EIO`: it does not take a byte; `ETIMEDOUT`: it holds the clock.
    pub fn write(&mut self, address: u8, bytes: &[u8]) -> Result<(), Errno> {
        self.address(address, false)?;
        for &byte in bytes {
            if !self.write_byte(byte)? {
                return Err(Errno::EIO);
            }
        }
        Ok(())
    }

    /// Reads a message of a transaction that a [`stop`](Host::stop) ends.
    ///
    /// # Errors
    /// As of [`write`](Host::write).
    pub fn read(&mut self, address: u8, bytes: &mut [u8]) -> Result<(), Errno> {
        self.address(address, true)?;
        let last = bytes.len().saturating_sub(1);
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = self.read_byte(at == last)?;
        }
        Ok(())
    }

    /// Makes a transfer of SMBus.
    ///
    /// # Errors
    /// As of [`write`](Host::write); `EPROTO`: a block without a length.
    pub fn transfer(&mut self, transfer: &Transfer) -> Result<Data, Errno> {
        let result = if transfer.reads { self.transfer_in(transfer) } else { self.transfer_out(transfer) };
        self.stop();
        result
    }

    fn transfer_out(&mut self, transfer: &Transfer) -> Result<Data, Errno> {
        let mut bytes = [0; MAX_BLOCK + 2];
        bytes[0] = transfer.command;
        let data = transfer.data.as_slice();
        let start = match transfer.kind {
            Kind::Quick => 0,
            Kind::Byte | Kind::ByteData | Kind::WordData | Kind::PlainBlock => 1,
            Kind::Block => {
                bytes[1] = transfer.data.count as u8;
                2
            }
        };
        let end = start + if matches!(transfer.kind, Kind::Quick | Kind::Byte) { 0 } else { data.len() };
        bytes[start..end].copy_from_slice(&data[..end - start]);
        self.write(transfer.address, &bytes[..end]).map(|()| Data::NONE)
    }

    fn transfer_in(&mut self, transfer: &Transfer) -> Result<Data, Errno> {
        let mut data = Data::NONE;
        data.count = match transfer.kind {
            Kind::Quick => 0,
            Kind::Byte | Kind::ByteData => 1,
            Kind::WordData => 2,
            Kind::PlainBlock => transfer.data.count,
            Kind::Block => {
                self.write(transfer.address, &[transfer.command])?;
                return self.read_block(transfer.address);
            }
        };
        if !matches!(transfer.kind, Kind::Quick | Kind::Byte) {
            self.write(transfer.address, &[transfer.command])?;
        }
        self.read(transfer.address, &mut data.bytes[..data.count])?;
        Ok(data)
    }

    /// The device says how many bytes follow.
    fn read_block(&mut self, address: u8) -> Result<Data, Errno> {
        self.address(address, true)?;
        let count = usize::from(self.read_byte(false)?);
        let is_block = (1..=MAX_BLOCK).contains(&count);
        let mut data = Data { count, ..Data::NONE };
        // A device that would send on pulls the data wire, and there is no stop before it has been told.
        let wanted = if is_block { count } else { 1 };
        for (at, byte) in data.bytes[..wanted].iter_mut().enumerate() {
            *byte = self.read_byte(at + 1 == wanted)?;
        }
        if is_block { Ok(data) } else { Err(Errno::EPROTO) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// What a device does with the next clock.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Phase {
        Idle,
        /// Takes bits: of its address, or of data.
        Listens,
        Acknowledges,
        Sends,
        IsAcknowledged,
    }

    /// An EEPROM at 0x50 on the wires: 256 bytes, the first byte written is the place.
    struct Eeprom {
        pulls: [bool; 2],
        own_pull: bool,
        memory: [u8; 256],
        phase: Phase,
        bits: u32,
        byte: u8,
        is_addressed: bool,
        reads: bool,
        place: Option<u8>,
        at: u8,
        stretches: u32,
        events: Vec<char>,
    }

    impl Eeprom {
        fn new() -> Eeprom {
            Eeprom {
                pulls: [false; 2],
                own_pull: false,
                memory: core::array::from_fn(|at| at as u8 ^ 0xa5),
                phase: Phase::Idle,
                bits: 0,
                byte: 0,
                is_addressed: false,
                reads: false,
                place: None,
                at: 0,
                stretches: 0,
                events: Vec::new(),
            }
        }

        fn data(&self) -> bool {
            !self.pulls[1] && !self.own_pull
        }

        fn begin(&mut self) {
            self.events.push('S');
            (self.phase, self.bits, self.is_addressed, self.own_pull) = (Phase::Listens, 0, false, false);
        }

        fn clock_rises(&mut self) {
            match self.phase {
                Phase::Listens => {
                    self.byte = self.byte << 1 | u8::from(self.data());
                    self.bits += 1;
                }
                Phase::IsAcknowledged => {
                    if self.data() {
                        self.phase = Phase::Idle;
                    } else {
                        self.at = self.at.wrapping_add(1);
                    }
                }
                _ => {}
            }
        }

        fn clock_falls(&mut self) {
            match self.phase {
                Phase::Listens if self.bits == 8 => self.take(),
                Phase::Acknowledges => {
                    self.own_pull = false;
                    self.bits = 0;
                    if self.reads { self.send() } else { self.phase = Phase::Listens }
                }
                Phase::Sends if self.bits == 8 => {
                    self.own_pull = false;
                    self.phase = Phase::IsAcknowledged;
                }
                Phase::Sends => self.send(),
                Phase::IsAcknowledged => {
                    self.bits = 0;
                    self.send();
                }
                Phase::Idle | Phase::Listens => {}
            }
        }

        fn send(&mut self) {
            self.phase = Phase::Sends;
            self.own_pull = self.memory[usize::from(self.at)] << self.bits & 0x80 == 0;
            self.bits += 1;
        }

        fn take(&mut self) {
            if !self.is_addressed {
                if self.byte >> 1 != 0x50 {
                    self.phase = Phase::Idle;
                    return;
                }
                (self.is_addressed, self.reads) = (true, self.byte & 1 != 0);
                if !self.reads {
                    self.place = None;
                }
            } else if self.place.is_none() {
                (self.place, self.at) = (Some(self.byte), self.byte);
            } else {
                self.memory[usize::from(self.at)] = self.byte;
                self.at = self.at.wrapping_add(1);
            }
            self.own_pull = true;
            self.phase = Phase::Acknowledges;
        }
    }

    impl Wires for &mut Eeprom {
        fn pull(&mut self, wire: Wire, is_pulled: bool) {
            let (clock, data) = (!self.pulls[0], self.data());
            self.pulls[wire as usize] = is_pulled;
            let (new_clock, new_data) = (!self.pulls[0], self.data());
            match () {
                () if clock && new_clock && data && !new_data => self.begin(),
                () if clock && new_clock && !data && new_data => {
                    self.events.push('P');
                    self.phase = Phase::Idle;
                }
                () if !clock && new_clock => self.clock_rises(),
                () if clock && !new_clock => self.clock_falls(),
                () => {}
            }
        }

        fn is_high(&mut self, wire: Wire) -> bool {
            match wire {
                Wire::Clock if self.stretches > 0 => {
                    self.stretches -= 1;
                    false
                }
                Wire::Clock => !self.pulls[0],
                Wire::Data => self.data(),
            }
        }

        fn pause(&mut self) {}
    }

    fn transfer(kind: Kind, reads: bool, command: u8, data: &[u8]) -> Transfer {
        Transfer { address: 0x50, reads, command, kind, data: Data::of(data).expect("fits") }
    }

    #[test]
    fn smbus_transfers_are_made_of_messages() {
        let mut eeprom = Eeprom::new();
        let mut host = Host::new(&mut eeprom);
        let mut ask = |kind, reads, command, data: &[u8]| {
            host.transfer(&transfer(kind, reads, command, data)).map(|data| data.as_slice().to_vec())
        };
        assert_eq!(ask(Kind::Quick, false, 0, &[]), Ok(vec![]));
        assert_eq!(ask(Kind::Byte, false, 9, &[]), Ok(vec![]));
        assert_eq!(ask(Kind::Byte, true, 0, &[]), Ok(vec![9 ^ 0xa5]));
        assert_eq!(ask(Kind::ByteData, true, 3, &[]), Ok(vec![0xa6]));
        assert_eq!(ask(Kind::ByteData, false, 3, &[7]), Ok(vec![]));
        assert_eq!(ask(Kind::WordData, true, 2, &[]), Ok(vec![0xa7, 7]));
        assert_eq!(ask(Kind::WordData, false, 2, &[1, 2]), Ok(vec![]));
        assert_eq!(ask(Kind::Block, false, 16, &[9, 8, 7]), Ok(vec![]));
        assert_eq!(ask(Kind::Block, true, 16, &[]), Ok(vec![9, 8, 7]));
        assert_eq!(ask(Kind::PlainBlock, false, 32, &[5, 6]), Ok(vec![]));
        assert_eq!(ask(Kind::PlainBlock, true, 31, &[0; 4]), Ok(vec![31 ^ 0xa5, 5, 6, 34 ^ 0xa5]));
    }

    #[test]
    fn messages_of_a_transaction_have_a_start_each_and_one_stop() {
        let mut eeprom = Eeprom::new();
        let mut host = Host::new(&mut eeprom);
        host.wires.events.clear();
        let mut bytes = [0; 3];
        assert_eq!(host.write(0x50, &[2]).and_then(|()| host.read(0x50, &mut bytes)), Ok(()));
        host.stop();
        assert_eq!(bytes, [0xa7, 0xa6, 0xa1]);
        assert_eq!(eeprom.events, ['S', 'S', 'P']);
        assert_eq!(eeprom.pulls, [false; 2], "both wires are released");
    }

    #[test]
    fn a_missing_device_is_told_and_the_next_transfer_is_not_disturbed() {
        let mut eeprom = Eeprom::new();
        let mut host = Host::new(&mut eeprom);
        let absent = Transfer { address: 0x51, ..transfer(Kind::ByteData, true, 0, &[]) };
        assert_eq!(host.transfer(&absent), Err(Errno::ENXIO));
        let present = host.transfer(&transfer(Kind::ByteData, true, 0, &[]));
        assert_eq!(present.map(|data| data.bytes[0]), Ok(0xa5));
    }

    #[test]
    fn blocks_without_or_with_an_absurd_length_are_refused() {
        let mut eeprom = Eeprom::new();
        (eeprom.memory[0], eeprom.memory[100]) = (0, 33);
        let mut host = Host::new(&mut eeprom);
        for command in [0, 100] {
            assert_eq!(host.transfer(&transfer(Kind::Block, true, command, &[])), Err(Errno::EPROTO));
            let next = host.transfer(&transfer(Kind::ByteData, true, 1, &[]));
            assert_eq!(next.map(|data| data.bytes[0]), Ok(0xa4), "it is over");
        }
    }

    #[test]
    fn a_device_may_hold_the_clock_for_a_while_and_not_for_ever() {
        let mut eeprom = Eeprom::new();
        let mut host = Host::new(&mut eeprom);
        host.wires.stretches = 100;
        assert!(host.transfer(&transfer(Kind::ByteData, true, 0, &[])).is_ok());
        host.wires.stretches = u32::MAX;
        assert_eq!(host.transfer(&transfer(Kind::ByteData, true, 0, &[])), Err(Errno::ETIMEDOUT));
        host.wires.stretches = 0;
        assert!(host.transfer(&transfer(Kind::ByteData, true, 0, &[])).is_ok());
    }

    #[test]
    fn a_predecessor_may_have_died_at_any_bit() {
        for clocks in 0..40 {
            let mut eeprom = Eeprom::new();
            eeprom.memory = [0; 256];
            let mut host = Host::new(&mut eeprom);
            let died = host.write(0x50, &[0]).and_then(|()| host.address(0x50, true));
            assert_eq!(died, Ok(()));
            (0..clocks % 9).for_each(|_| assert_eq!(host.read_bit(), Ok(false)));
            if clocks > 20 {
                // In the middle of a bit.
                host.wires.pull(Wire::Clock, false);
            }
            let mut successor = Host::new(&mut eeprom);
            let read = successor.transfer(&transfer(Kind::ByteData, true, 0, &[]));
            assert_eq!(read.map(|data| data.bytes[0]), Ok(0), "after {clocks}");
        }
    }
}
