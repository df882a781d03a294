//! The devices of this system, as its file declares them: which service drives a device node.

use abi::console::MINOR_SHOWN;
use abi::{
    Errno,
    device::{Device, Kind},
    tty::{MINOR_SLAVE, PTMX, PTS_MAJOR},
};
use alloc::vec::Vec;
use core::cell::Cell;

/// This service among those that drive devices.
pub const OWN_NAME: &str = "vfs";

/// See the head of the file.
pub struct Devices {
    table: Vec<Device<'static>>,
    /// Sizes of disks of drivers, by their places in the table, as far as they are known.
    bytes: Vec<Cell<u64>>,
}

/// Major number of terminals, and the minor of the first serial line among them (Linux's).
const TERMINAL_MAJOR: u8 = 4;
const FIRST_SERIAL: u8 = 64;

impl Devices {
    /// The table among the arguments of this service.
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn new(arguments: &'static str) -> Devices {
        let table: Vec<Device<'static>> = Device::table(arguments).collect();
        Devices { bytes: table.iter().map(|_| Cell::new(0)).collect(), table }
    }

    /// The device behind a node. `ENXIO`: no service drives it.
    pub fn numbered(&self, kind: Kind, number: u64) -> Result<Device<'static>, Errno> {
        self.find(|device| device.kind == kind && device.number() == number).ok_or(Errno::ENXIO)
    }

    /// The service that drives the character device of a node, and which of its devices. Slaves of pseudo-terminals are those of the
    /// service that makes them. `ENXIO`: no service drives it.
    pub fn character(&self, number: u64) -> Result<(&'static str, u64), Errno> {
        const MAJORS: u64 = 0xfff00;
        if number & MAJORS == u64::from(PTS_MAJOR) << 8 {
            let slave = number & 0xff | number >> 12 & !0xff;
            return self.terminals().map(|service| (service, MINOR_SLAVE + slave));
        }
        let device = self.numbered(Kind::Char, number)?;
        // tty drives two majors: the low minors of one are terminals on the screen.
        let is_screen = device.major == TERMINAL_MAJOR && device.minor < FIRST_SERIAL;
        let minor = if is_screen { MINOR_SHOWN + u64::from(device.minor) } else { device.minor.into() };
        Ok((device.service, minor))
    }

    /// The service that makes pseudo-terminals. `ENXIO`: none does.
    pub fn terminals(&self) -> Result<&'static str, Errno> {
        let (major, minor) = PTMX;
        self.numbered(Kind::Char, u64::from(major) << 8 | u64::from(minor)).map(|device| device.service)
    }

    /// The block device with this name in /dev. `ENODEV`: there is none.
    pub fn disk(&self, name: &str) -> Result<Device<'static>, Errno> {
        self.find(|device| device.kind == Kind::Block && device.name == name).ok_or(Errno::ENODEV)
    }

    /// All disks, with the sizes of those of drivers; 0: not known.
    pub fn disks(&self) -> impl Iterator<Item = (Device<'static>, u64)> + '_ {
        let all = self.table.iter().enumerate().filter(|(_, device)| device.kind == Kind::Block);
        all.map(|(place, device)| (*device, self.bytes[place].get()))
    }

    /// Notes the size of a disk.
    pub fn set_bytes(&self, disk: &Device<'_>, bytes: u64) {
        let place = self.table.iter().position(|device| (device.kind, device.number()) == (disk.kind, disk.number()));
        if let Some(known) = place.and_then(|place| self.bytes.get(place)) {
            known.set(bytes);
        }
    }

    fn find(&self, is_it: impl Fn(&Device) -> bool) -> Option<Device<'static>> {
        self.table.iter().find(|device| is_it(device)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "root=ext2,ram0 dev:ram0=block,1,0,660,ramdisk dev:mem=char,1,0,600,devfs dev:vda=block,254,0,660,virtio_blk";

    #[test]
    fn drivers_are_found_by_kind_and_number() {
        let devices = Devices::new(TABLE);
        let service = |kind, number| devices.numbered(kind, number).map(|device| device.service);
        assert_eq!(service(Kind::Block, 0x100), Ok("ramdisk"));
        assert_eq!(service(Kind::Char, 0x100), Ok("devfs"));
        assert_eq!(service(Kind::Block, 0xfe01), Err(Errno::ENXIO));
    }

    #[test]
    fn slaves_of_pseudo_terminals_are_devices_of_the_service_that_makes_them() {
        let devices = Devices::new("dev:ptmx=char,5,2,666,tty dev:tty=char,5,0,666,tty");
        assert_eq!(devices.character(0x8803), Ok(("tty", 0x2_0003)));
        assert_eq!(devices.character(0x10_8801), Ok(("tty", 0x2_0101)), "makedev(136, 257)");
        assert_eq!(devices.character(0x500), Ok(("tty", 0)));
        assert_eq!(devices.character(0x8903), Err(Errno::ENXIO));
        assert_eq!(Devices::new(TABLE).character(0x8803), Err(Errno::ENXIO));
    }

    #[test]
    fn disks_are_found_by_name() {
        let devices = Devices::new(TABLE);
        assert_eq!(devices.disk("vda").map(|device| device.number()), Ok(0xfe00));
        assert_eq!(devices.disk("mem"), Err(Errno::ENODEV));
    }
}
