//! Whose device is whose, and what an owner may do with its configuration space.

use crate::bars::{self, BARS, DECODE, Range, Sizes};
use crate::config::{self, Address, ConfigSpace, register};
use crate::ide;
use crate::scan::{self, Function};
use abi::Errno;
use abi::endpoint::SERVICE_SLOTS;
use alloc::vec::Vec;
use sys::Result;

/// Bits of the command register that an owner may set: bus master, special cycles and the like, no interrupt line.
const OWNERS_COMMAND: u32 = 0x0574;
/// Where the part of configuration space begins that is the device's own.
const DEVICE_SPACE: u8 = 0x40;
/// Cache line size and latency timer, which are the owner's.
const TIMING: core::ops::Range<u8> = 12..14;
/// Interrupt line of a device that has none.
pub const NO_LINE: u8 = 0xff;

/// Interrupt lines of a device; all but IDE controllers have at most one.
pub type Lines = [u8; 2];

struct Device {
    function: Function,
    ranges: Option<Ranges>,
    owner: Option<usize>,
}

/// What is known of the ranges of a device.
struct Ranges {
    /// Those of its BARs, and those that an IDE controller has without any.
    all: [Range; BARS],
    /// Lengths of its BARs.
    sizes: Sizes,
}

/// A device that has been assigned.
#[derive(Debug, PartialEq, Eq)]
pub struct Assigned {
    /// Where it is.
    pub address: Address,
    /// Its interrupt lines.
    pub lines: Lines,
    /// Lengths of its BARs, for a successor.
    pub sizes: Sizes,
}

/// All devices.
pub struct Owners<C> {
    config: C,
    devices: Vec<Device>,
}

impl<C: ConfigSpace> Owners<C> {
    /// Finds the devices; none is owned.
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn new(mut config: C) -> Self {
        let functions = scan::scan(&mut config).into_iter().filter(|function| !function.bridge);
        let devices = functions.map(|function| Device { function, ranges: None, owner: None }).collect();
        Owners { config, devices }
    }

    /// Gives the device number `index` of this vendor and kind to the driver in slot `owner`, which had none or this one. It may be in use if
    /// its `sizes` are known.
    ///
    /// # Errors
    /// `ENODEV`: there is none; `EBUSY`: another driver has it; `EINVAL`: no service's slot.
    pub fn assign(&mut self, owner: usize, kind: (u16, u16), index: u64, sizes: Option<Sizes>) -> Result<Assigned> {
        if owner >= SERVICE_SLOTS {
            return Err(Errno::EINVAL);
        }
        let is_kind = |other: &Device| (other.function.vendor, other.function.device) == kind;
        let index = usize::try_from(index).map_err(|_| Errno::ENODEV)?;
        let kind = self.devices.iter().enumerate().filter(|(_, other)| is_kind(other));
        let at = kind.map(|(at, _)| at).nth(index).ok_or(Errno::ENODEV)?;
        if self.devices[at].owner.is_some_and(|other| other != owner) {
            return Err(Errno::EBUSY);
        }
        self.release_others(owner, at);
        self.devices[at].owner = Some(owner);
        let sizes = self.enable(at, sizes);
        let address = self.devices[at].function.address;
        Ok(Assigned { address, lines: self.lines(address), sizes })
    }

    /// A range of the owner's device.
    ///
    /// # Errors
    /// `ENODEV`: it has none; `EINVAL`: no such number.
    pub fn range(&self, owner: usize, bar: u64) -> Result<Range> {
        let device = &self.devices[self.device_of(owner)?];
        let ranges = device.ranges.as_ref().ok_or(Errno::ENODEV)?;
        ranges.all.get(usize::try_from(bar).unwrap_or(BARS)).copied().ok_or(Errno::EINVAL)
    }

    /// Reads configuration space of the owner's device.
    ///
    /// # Errors
    /// `ENODEV`; `EINVAL`: no such place.
    pub fn read(&mut self, owner: usize, offset: u64, width: u64) -> Result<u32> {
        let address = self.devices[self.device_of(owner)?].function.address;
        let (offset, width) = config::check(offset, width)?;
        Ok(self.config.read(address, offset, width))
    }

    /// Writes configuration space of the owner's device.
    ///
    /// # Errors
    /// `ENODEV`; `EINVAL`: no such place; `EPERM`: what is not the owner's to change.
    pub fn write(&mut self, owner: usize, offset: u64, width: u64, value: u32) -> Result<()> {
        let address = self.devices[self.device_of(owner)?].function.address;
        let (offset, width) = config::check(offset, width)?;
        if offset == register::COMMAND && width == 2 {
            let kept = self.config.read(address, register::COMMAND, 2) & !OWNERS_COMMAND;
            self.config.write(address, offset, width, kept | value & OWNERS_COMMAND);
        } else if offset >= DEVICE_SPACE || (width == 1 && TIMING.contains(&offset)) {
            self.config.write(address, offset, width, value);
        } else {
            return Err(Errno::EPERM);
        }
        Ok(())
    }

    /// Number of the owner's device.
    ///
    /// # Errors
    /// `ENODEV`: it has none.
    pub fn device_of(&self, owner: usize) -> Result<usize> {
        self.devices.iter().position(|device| device.owner == Some(owner)).ok_or(Errno::ENODEV)
    }

    /// A driver has one device: others it had decode no more.
    fn release_others(&mut self, owner: usize, keep: usize) {
        for at in (0..self.devices.len()).filter(|at| *at != keep) {
            if self.devices[at].owner == Some(owner) {
                self.devices[at].owner = None;
                self.set_decode(at, 0);
            }
        }
    }

    /// Finds the ranges of a device, the first time, and lets it decode. Returns their lengths.
    fn enable(&mut self, at: usize, sizes: Option<Sizes>) -> Sizes {
        let sizes = match &self.devices[at].ranges {
            Some(ranges) => ranges.sizes,
            None => self.find_ranges(at, sizes),
        };
        self.set_decode(at, DECODE);
        sizes
    }

    fn find_ranges(&mut self, at: usize, sizes: Option<Sizes>) -> Sizes {
        let address = self.devices[at].function.address;
        let mut all = match sizes {
            Some(sizes) => bars::read(&mut self.config, address, sizes),
            None => self.measure_and_place(address),
        };
        let sizes = Sizes::of(&all);
        if let Some(controller) = ide::Controller::at(&mut self.config, address) {
            controller.add_ranges(&mut all);
        }
        self.devices[at].ranges = Some(Ranges { all, sizes });
        sizes
    }

    fn measure_and_place(&mut self, address: Address) -> [Range; BARS] {
        let mut ranges = bars::measure(&mut self.config, address);
        if ranges.iter().any(Range::is_unplaced) {
            let taken = self.taken();
            bars::place(&mut self.config, address, &mut ranges, &taken);
        }
        ranges
    }

    /// What all devices decode or would.
    #[expect(clippy::disallowed_methods, reason = "six ranges of each device: from the heap's reserve")]
    fn taken(&mut self) -> Vec<Range> {
        let mut taken = Vec::new();
        for device in &self.devices {
            let ranges = match &device.ranges {
                Some(ranges) => ranges.all,
                None => bars::measure(&mut self.config, device.function.address),
            };
            taken.extend(ranges);
        }
        taken
    }

    fn set_decode(&mut self, at: usize, decode: u32) {
        let address = self.devices[at].function.address;
        let command = self.config.read(address, register::COMMAND, 2) & !DECODE;
        self.config.write(address, register::COMMAND, 2, command | decode);
    }

    fn lines(&mut self, address: Address) -> Lines {
        let line = match self.config.read(address, register::INTERRUPT_LINE, 1) as u8 {
            0 => NO_LINE,
            line => line,
        };
        match ide::Controller::at(&mut self.config, address) {
            Some(controller) => controller.lines(line),
            None => [line, NO_LINE],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Machine;

    const DISK: Address = Address::new(0, 3, 0);
    const OTHER: Address = Address::new(0, 4, 0);

    const VIRTIO: (u16, u16) = (0x1af4, 0x1042);

    fn machine() -> Machine {
        let mut machine = Machine::default();
        for (address, bar) in [(DISK, 0xfe00_0000), (OTHER, 0xfe10_0000)] {
            machine.add(address, 0x1af4, 0x1042);
            machine.set_bar(address, 0, bar, 0xffff_f000);
            machine.set(address, register::INTERRUPT_LINE, 11);
        }
        machine
    }

    fn owners() -> Owners<Machine> {
        Owners::new(machine())
    }

    /// Assigns a device that is not in use.
    fn assign(owners: &mut Owners<Machine>, owner: usize, kind: (u16, u16), index: u64) -> Result<(Address, Lines)> {
        owners.assign(owner, kind, index, None).map(|assigned| (assigned.address, assigned.lines))
    }

    #[test]
    fn an_assigned_device_decodes_and_others_do_not() {
        let mut owners = owners();
        assert_eq!(assign(&mut owners, 20, VIRTIO, 0), Ok((DISK, [11, NO_LINE])));
        assert_eq!(owners.config.read(DISK, register::COMMAND, 2), DECODE);
        assert_eq!(owners.config.read(OTHER, register::COMMAND, 2), 0);
        assert_eq!(owners.range(20, 0).map(|range| (range.start, range.bytes)), Ok((0xfe00_0000, 4096)));
        assert_eq!(owners.range(20, 6), Err(Errno::EINVAL));
        assert_eq!(owners.range(21, 0), Err(Errno::ENODEV));
    }

    #[test]
    fn a_device_has_one_driver_and_a_driver_one_device() {
        let mut owners = owners();
        assign(&mut owners, 20, VIRTIO, 0).expect("is free");
        assert_eq!(assign(&mut owners, 21, VIRTIO, 0), Err(Errno::EBUSY));
        assert_eq!(assign(&mut owners, 20, VIRTIO, 0), Ok((DISK, [11, NO_LINE])));
        assert_eq!(assign(&mut owners, 20, VIRTIO, 1), Ok((OTHER, [11, NO_LINE])));
        assert_eq!(owners.config.read(DISK, register::COMMAND, 2), 0);
        assert_eq!(assign(&mut owners, 21, VIRTIO, 0), Ok((DISK, [11, NO_LINE])));
    }

    #[test]
    fn what_is_not_there_is_no_device() {
        let mut owners = owners();
        assert_eq!(assign(&mut owners, 20, (0x1af4, 0x1041), 0), Err(Errno::ENODEV));
        assert_eq!(assign(&mut owners, 20, VIRTIO, 2), Err(Errno::ENODEV));
        assert_eq!(assign(&mut owners, SERVICE_SLOTS, VIRTIO, 0), Err(Errno::EINVAL));
    }

    #[test]
    fn an_ide_controller_brings_the_places_that_pcs_had_before_pci() {
        let mut machine = Machine::default();
        machine.add(DISK, 0x8086, 0x7010);
        machine.set(DISK, register::CLASS + 1, 0x80);
        machine.set(DISK, register::CLASS + 2, 1);
        machine.set(DISK, register::CLASS + 3, 1);
        machine.set_bar(DISK, 4, 0xc001, 0xfff0);
        let mut owners = Owners::new(machine);
        assert_eq!(assign(&mut owners, 20, (0x8086, 0x7010), 0), Ok((DISK, [14, 15])));
        let ranges = [0, 1, 2, 3, 4, 5].map(|bar| owners.range(20, bar).map(|range| (range.start, range.bytes)));
        let expected = [(0x1f0, 8), (0x3f6, 1), (0x170, 8), (0x376, 1), (0xc000, 16), (0, 0)];
        assert_eq!(ranges, expected.map(Ok));
    }

    #[test]
    fn a_successor_does_not_disturb_a_device_in_use() {
        let mut machine = machine();
        // The firmware has not placed the ranges of the other one.
        machine.set_bar(OTHER, 0, 0, 0xffff_f000);
        let mut first = Owners::new(machine);
        let disk = first.assign(20, VIRTIO, 0, None).expect("is free");
        first.config.has_stopped_one = false;
        let mut second = Owners::new(first.config);
        assert_eq!(second.assign(20, VIRTIO, 0, Some(disk.sizes)), Ok(disk));
        second.assign(21, VIRTIO, 1, None).expect("is free");
        assert!(!second.config.has_stopped_one);
        assert_eq!(second.range(20, 0).map(|range| (range.start, range.bytes)), Ok((0xfe00_0000, 4096)));
        assert_eq!(second.range(21, 0).map(|range| (range.start, range.bytes)), Ok((0xf000_0000, 4096)));
    }

    #[test]
    fn a_successor_goes_on_after_every_write() {
        let mut ends = [0; 3];
        for writes in 0..12 {
            let mut dying = Owners::new(machine());
            dying.config.set_bar(DISK, 2, 0x1000_000c, 0xffff_8000);
            dying.config.set_bar(DISK, 3, 2, !0);
            dying.config.set(DISK, register::COMMAND, 7);
            dying.config.writes_left = Some(writes);
            assign(&mut dying, 20, VIRTIO, 0).expect("is free");
            dying.config.writes_left = None;
            let mut successor = Owners::new(dying.config);
            assign(&mut successor, 20, VIRTIO, 0).expect("is free");
            let ranges = [0, 2].map(|bar| successor.range(20, bar).map(|range| (range.start, range.bytes)));
            let [Ok((first, 4096)), Ok((second, 0x8000))] = ranges else { panic!("{writes}: {ranges:?}") };
            // Each is where it was, or where none was.
            let end = match (first, second) {
                (0xfe00_0000, 0x2_1000_0000) => 0,
                (0xf000_0000, 0x2_1000_0000) => 1,
                (0xfe00_0000, 0xf000_0000) => 2,
                _ => panic!("{writes}: {ranges:x?}"),
            };
            ends[end] += 1;
            assert_eq!(successor.config.read32(DISK, register::FIRST_BAR), first as u32);
            assert_eq!(successor.config.read(DISK, register::COMMAND, 2) & DECODE, DECODE);
        }
        assert_eq!(ends, [9, 1, 2]);
    }

    #[test]
    fn an_owner_switches_bus_mastering_but_not_decoding() {
        let mut owners = owners();
        assign(&mut owners, 20, VIRTIO, 0).expect("is free");
        owners.write(20, 4, 2, 4).expect("is the owner's");
        assert_eq!(owners.read(20, 4, 2), Ok(DECODE | 4));
        owners.write(20, 4, 2, 0).expect("is the owner's");
        assert_eq!(owners.read(20, 4, 2), Ok(DECODE));
    }

    #[test]
    fn ranges_and_ids_are_not_the_owners_to_change() {
        let mut owners = owners();
        assign(&mut owners, 20, VIRTIO, 0).expect("is free");
        for (offset, width) in [(0, 4), (4, 4), (16, 4), (36, 4), (48, 4), (60, 1)] {
            assert_eq!(owners.write(20, offset, width, 0), Err(Errno::EPERM), "offset {offset}");
        }
        assert_eq!(owners.write(20, 64, 4, 1), Ok(()));
        assert_eq!(owners.write(21, 64, 4, 1), Err(Errno::ENODEV));
        assert_eq!(owners.read(20, 256, 1), Err(Errno::EINVAL));
    }
}
