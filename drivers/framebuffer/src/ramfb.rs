//! QEMU's `ramfb`: a picture in the machine's memory, of which the device is told by a file of fw_cfg, and which it shows as it is. There are no
//! registers, no interrupts and no colour map, so that firmware without a driver has a screen.
//!
//! ```text
//! port 0x510  which file, by its number     0x511  its bytes, one after the other
//!      0x514  where a DMA request is, high half first, numbers with the highest byte first
//! ```
//! A driver may write files by DMA alone, and DMA of this device reaches all memory: the ports belong to the rights of the system `ramfb` only
//! (ADR 106).

use abi::Errno;
use driver::display::{Colour, Device, Edid, Format, Layout};
use driver::{Ports, Region};

/// First port of fw_cfg, and how many it has.
const FIRST_PORT: u16 = 0x510;
const PORTS: u16 = 12;
const SELECTOR: u16 = 0;
const DATA: u16 = 1;
const DMA_HIGH: u16 = 4;
const DMA_LOW: u16 = 8;

/// Files with fixed numbers.
const SIGNATURE: u16 = 0;
const FEATURES: u16 = 1;
const DIRECTORY: u16 = 0x19;
const HAS_DMA: u8 = 2;
/// An entry of the directory: size, number, name.
const ENTRY_BYTES: usize = 64;
const NUMBER: usize = 4;
const NAME: usize = 8;
/// More files than QEMU has ever had.
const MAX_FILES: u32 = 1024;
const FILE: &[u8] = b"etc/ramfb";

/// Of a DMA request: it failed, it names a file, it writes.
const ERROR: u32 = 1;
const SELECT: u32 = 8;
const WRITE: u32 = 16;
/// The request and what it writes, in the driver's memory for DMA.
pub const MEMORY_BYTES: usize = 4096;
const REQUEST_BYTES: usize = 16;

/// `DRM_FORMAT_XRGB8888`.
const FORMAT: u32 = u32::from_le_bytes(*b"XR24");
/// The file: address, format, flags, width, height, bytes of a line.
const CONFIGURATION_BYTES: usize = 28;
type Configuration = [u8; CONFIGURATION_BYTES];

/// The interface of the firmware's configuration.
pub trait FirmwareConfiguration {
    /// Reads a file from its beginning.
    fn read(&mut self, file: u16, into: &mut [u8]) -> Result<(), Errno>;
    /// Writes a file as a whole. `EIO`: the device refuses.
    fn write(&mut self, file: u16, bytes: &Configuration) -> Result<(), Errno>;
}

/// The ports, and memory for requests.
pub struct FwCfg {
    ports: Ports,
    memory: Region,
}

impl FwCfg {
    /// The interface, with this memory for its requests.
    pub fn new(memory: Region) -> Self {
        FwCfg { ports: Ports::new(FIRST_PORT, PORTS), memory }
    }
}

impl FirmwareConfiguration for FwCfg {
    fn read(&mut self, file: u16, into: &mut [u8]) -> Result<(), Errno> {
        self.ports.write16(SELECTOR, file)?;
        self.ports.read_string8(DATA, into)
    }

    fn write(&mut self, file: u16, bytes: &Configuration) -> Result<(), Errno> {
        let control = u32::from(file) << 16 | SELECT | WRITE;
        self.memory.copy_in(REQUEST_BYTES, bytes);
        self.memory.write(0, control.to_be());
        self.memory.write(4, (CONFIGURATION_BYTES as u32).to_be());
        self.memory.write(8, self.memory.physical(REQUEST_BYTES).to_be());
        let request = self.memory.physical(0);
        self.ports.write32(DMA_HIGH, ((request >> 32) as u32).to_be())?;
        // The device carries it out before this access ends.
        self.ports.write32(DMA_LOW, (request as u32).to_be())?;
        let left = u32::from_be(self.memory.read(0));
        if left & ERROR == 0 { Ok(()) } else { Err(Errno::EIO) }
    }
}

/// The device, which shows memory from an address on.
pub struct Ramfb<F> {
    interface: F,
    file: u16,
    pixels: u64,
    layout: Layout,
}

impl<F: FirmwareConfiguration> Ramfb<F> {
    /// The device behind this interface, which is to show the memory at `pixels`. `ENODEV`: there is none.
    pub fn find(mut interface: F, pixels: u64) -> Result<Self, Errno> {
        let (mut signature, mut features) = ([0; 4], [0; 4]);
        interface.read(SIGNATURE, &mut signature)?;
        interface.read(FEATURES, &mut features)?;
        if signature != *b"QEMU" || features[0] & HAS_DMA == 0 {
            return Err(Errno::ENODEV);
        }
        let file = number_of(&mut interface)?.ok_or(Errno::ENODEV)?;
        Ok(Ramfb { interface, file, pixels, layout: Layout::new(0, 0, Format::Xrgb8888) })
    }

    /// Tells the device what differs from what it shows.
    fn configure(&mut self) {
        let wanted = configuration(self.pixels, &self.layout);
        let mut shown = [0; CONFIGURATION_BYTES];
        let is_shown = self.interface.read(self.file, &mut shown).is_ok() && shown == wanted;
        if !is_shown && let Err(error) = self.interface.write(self.file, &wanted) {
            sys::log!("ramfb shows the old picture: {error}");
        }
    }
}

/// The number of the device's file. Its directory is read as a whole: there is no place in a file to begin at.
fn number_of(interface: &mut impl FirmwareConfiguration) -> Result<Option<u16>, Errno> {
    let mut head = [0; 4];
    interface.read(DIRECTORY, &mut head)?;
    let count = u32::from_be_bytes(head);
    if count > MAX_FILES {
        return Err(Errno::ENODEV);
    }
    let mut directory = sys::fallible::filled(0, head.len() + count as usize * ENTRY_BYTES)?;
    interface.read(DIRECTORY, &mut directory)?;
    let is_it = |entry: &&[u8]| entry[NAME..].split(|byte| *byte == 0).next() == Some(FILE);
    let entry = directory[head.len()..].chunks_exact(ENTRY_BYTES).find(is_it);
    Ok(entry.map(|entry| u16::from_be_bytes([entry[NUMBER], entry[NUMBER + 1]])))
}

fn configuration(pixels: u64, layout: &Layout) -> Configuration {
    let mut bytes = [0; CONFIGURATION_BYTES];
    bytes[..8].copy_from_slice(&(pixels + layout.start()).to_be_bytes());
    let words = [FORMAT, 0, layout.width, layout.height, layout.stride() as u32];
    bytes[8..].chunks_exact_mut(4).zip(words).for_each(|(slot, word)| slot.copy_from_slice(&word.to_be_bytes()));
    bytes
}

impl<F: FirmwareConfiguration> Device for Ramfb<F> {
    fn name(&self) -> &'static str {
        "ramfb"
    }

    fn edid(&mut self) -> Option<Edid> {
        None
    }

    fn supports(&self, format: Format) -> bool {
        format == Format::Xrgb8888
    }

    fn sets_modes(&self) -> bool {
        true
    }

    fn show(&mut self, layout: &Layout) {
        self.layout = *layout;
        self.configure();
    }

    fn pan(&mut self, x: u32, y: u32) {
        (self.layout.x, self.layout.y) = (x, y);
        self.configure();
    }

    /// It has no switch.
    fn blank(&mut self, _: bool) {}

    fn set_colours(&mut self, _: u8, _: &[Colour]) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// An interface with some files, of which 0x27 is the device's.
    struct Played {
        signature: [u8; 4],
        names: Vec<&'static [u8]>,
        configuration: Configuration,
        writes: u32,
    }

    impl Played {
        fn new() -> Played {
            let names = vec![&b"etc/acpi/tables"[..], b"etc/ramfbx", FILE, b"etc/e820"];
            Played { signature: *b"QEMU", names, configuration: [0; CONFIGURATION_BYTES], writes: 0 }
        }

        fn directory(&self) -> Vec<u8> {
            let mut bytes = (self.names.len() as u32).to_be_bytes().to_vec();
            for (number, name) in (0x25_u16..).zip(&self.names) {
                bytes.extend([0, 0, 0, 28]);
                bytes.extend(number.to_be_bytes());
                bytes.extend([0, 0]);
                bytes.extend(*name);
                bytes.resize(bytes.len() + 56 - name.len(), 0);
            }
            bytes
        }
    }

    impl FirmwareConfiguration for &mut Played {
        fn read(&mut self, file: u16, into: &mut [u8]) -> Result<(), Errno> {
            let bytes = match file {
                SIGNATURE => self.signature.to_vec(),
                FEATURES => vec![3, 0, 0, 0],
                DIRECTORY => self.directory(),
                0x27 => self.configuration.to_vec(),
                _ => panic!("file {file:#x}"),
            };
            into.copy_from_slice(&bytes[..into.len()]);
            Ok(())
        }

        fn write(&mut self, file: u16, bytes: &Configuration) -> Result<(), Errno> {
            assert_eq!(file, 0x27);
            (self.configuration, self.writes) = (*bytes, self.writes + 1);
            Ok(())
        }
    }

    #[test]
    fn a_picture_is_told_with_its_highest_bytes_first() {
        let mut played = Played::new();
        let mut device = Ramfb::find(&mut played, 0x1_2340_0000).expect("there is one");
        let double = Layout { virtual_height: 1600, ..Layout::new(1280, 800, Format::Xrgb8888) };
        device.show(&double);
        device.pan(0, 800);
        let start = 0x1_2340_0000 + 800 * 5120_u64;
        assert_eq!(played.configuration[..8], start.to_be_bytes());
        assert_eq!(played.configuration[8..12], *b"42RX");
        assert_eq!(played.configuration[12..], [0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 3, 32, 0, 0, 20, 0]);
        assert_eq!(played.writes, 2);
    }

    #[test]
    fn what_is_shown_already_is_not_told_again() {
        let mut played = Played::new();
        Ramfb::find(&mut played, 0x1000).expect("there is one").show(&Layout::new(640, 480, Format::Xrgb8888));
        let mut successor = Ramfb::find(&mut played, 0x1000).expect("there is one");
        successor.show(&Layout::new(640, 480, Format::Xrgb8888));
        assert_eq!(played.writes, 1);
    }

    #[test]
    fn another_machine_has_none() {
        let found = |change: fn(&mut Played)| {
            let mut played = Played::new();
            change(&mut played);
            Ramfb::find(&mut played, 0).map(|device| device.file)
        };
        assert_eq!(found(|_| ()), Ok(0x27));
        assert_eq!(found(|played| played.signature = [0xff; 4]), Err(Errno::ENODEV));
        assert_eq!(found(|played| played.names = vec![b"etc/e820"]), Err(Errno::ENODEV));
        assert_eq!(found(|played| played.names = vec![b"x"; 2000]), Err(Errno::ENODEV));
    }
}
