//! The display of Bochs and QEMU (`-vga std`, `-device bochs-display`; PCI 1234:1111): memory behind BAR 0, registers behind BAR 2.
//!
//! ```text
//! BAR 2   0x000  EDID, two blocks
//!         0x400  the VGA's ports 0x3c0 to 0x3df, if it is one
//!         0x500  DISPI: eleven registers of 16 bits
//! ```
//! Any mode is possible for which there is memory; the device scans out from any pixel of a wider and higher picture.

use driver::Region;
use driver::display::{Colour, Device, Edid, Format, Layout, edid::BLOCK_BYTES};

/// Offset of the VGA's first port.
const VGA: usize = 0x400;
const VGA_FIRST_PORT: usize = 0x3c0;
const ATTRIBUTE: usize = 0x3c0;
const MISCELLANEOUS: usize = 0x3c2;
const DAC_MASK: usize = 0x3c6;
const DAC_WRITE_INDEX: usize = 0x3c8;
const DAC_DATA: usize = 0x3c9;
const INPUT_STATUS: usize = 0x3da;
/// Attribute controller: the picture is shown.
const SHOWN: u8 = 0x20;
/// Miscellaneous output: the input status is at 0x3da.
const COLOUR: u8 = 1;

/// Offset of the DISPI registers.
const DISPI: usize = 0x500;
/// Length of BAR 2 that is used.
pub const REGISTER_BYTES: usize = 0x1000;

/// DISPI registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Dispi {
    /// Version.
    Id = 0,
    /// Pixels of a line.
    Width = 1,
    /// Lines.
    Height = 2,
    /// Bits of a pixel.
    Depth = 3,
    /// `ENABLED` and others.
    Enable = 4,
    /// Window at 0xa0000.
    Bank = 5,
    /// Pixels of a line in memory.
    VirtualWidth = 6,
    /// First visible pixel of each line.
    X = 8,
    /// First visible line.
    Y = 9,
}

const FIRST_ID: u16 = 0xb0c0;
const LAST_ID: u16 = 0xb0cf;
const ENABLED: u16 = 1;
const DAC_8BIT: u16 = 0x20;
const LINEAR: u16 = 0x40;
/// The memory stays as it is when the mode is set.
const KEEP_MEMORY: u16 = 0x80;

/// The device's registers.
pub trait Registers {
    /// Reads a byte.
    fn read8(&self, offset: usize) -> u8;
    /// Writes a byte.
    fn write8(&self, offset: usize, value: u8);
    /// Reads 16 bits.
    fn read16(&self, offset: usize) -> u16;
    /// Writes 16 bits.
    fn write16(&self, offset: usize, value: u16);
}

impl Registers for Region {
    fn read8(&self, offset: usize) -> u8 {
        self.read(offset)
    }
    fn write8(&self, offset: usize, value: u8) {
        self.write(offset, value);
    }
    fn read16(&self, offset: usize) -> u16 {
        self.read(offset)
    }
    fn write16(&self, offset: usize, value: u16) {
        self.write(offset, value);
    }
}

/// The device.
pub struct Bochs<R> {
    registers: R,
    is_vga: bool,
}

impl<R: Registers> Bochs<R> {
    /// The device behind these registers. `is_vga`: it has a VGA's too. `None`: it is another.
    pub fn find(registers: R, is_vga: bool) -> Option<Bochs<R>> {
        let device = Bochs { registers, is_vga };
        (FIRST_ID..=LAST_ID).contains(&device.get(Dispi::Id)).then_some(device)
    }

    fn get(&self, register: Dispi) -> u16 {
        self.registers.read16(DISPI + 2 * register as usize)
    }

    fn set(&self, register: Dispi, value: u32) {
        self.registers.write16(DISPI + 2 * register as usize, value as u16);
    }

    fn set_vga(&self, port: usize, value: u8) {
        self.registers.write8(VGA + port - VGA_FIRST_PORT, value);
    }

    /// The values of all registers for a layout.
    fn values(layout: &Layout) -> [(Dispi, u32); 7] {
        [
            (Dispi::Depth, layout.format.depth()),
            (Dispi::Width, layout.width),
            (Dispi::Height, layout.height),
            (Dispi::Bank, 0),
            (Dispi::VirtualWidth, layout.virtual_width),
            (Dispi::X, layout.x),
            (Dispi::Y, layout.y),
        ]
    }
}

impl<R: Registers> Device for Bochs<R> {
    fn name(&self) -> &'static str {
        "bochs"
    }

    fn edid(&mut self) -> Option<Edid> {
        let mut bytes = [0; BLOCK_BYTES];
        bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = self.registers.read8(at));
        Edid::parse(&bytes).ok()
    }

    /// bochs-display has no colour map, and a VGA of it counts in eights.
    fn supports(&self, format: Format) -> bool {
        format != Format::Mapped8 || self.is_vga
    }

    fn sets_modes(&self) -> bool {
        true
    }

    /// Sets what differs: a device that shows this already is left alone, so that the picture stays.
    fn show(&mut self, layout: &Layout) {
        let values = Self::values(layout);
        let flags = ENABLED | LINEAR | KEEP_MEMORY | if layout.format == Format::Mapped8 { DAC_8BIT } else { 0 };
        let is_shown = self.get(Dispi::Enable) & (ENABLED | DAC_8BIT) == flags & (ENABLED | DAC_8BIT)
            && values.iter().all(|&(register, value)| u32::from(self.get(register)) == value);
        if !is_shown {
            self.set(Dispi::Enable, 0);
            values.iter().for_each(|&(register, value)| self.set(register, value));
            self.set(Dispi::Enable, flags.into());
            // The device keeps the place only of a picture that it shows.
            self.pan(layout.x, layout.y);
        }
    }

    fn pan(&mut self, x: u32, y: u32) {
        self.set(Dispi::X, x);
        self.set(Dispi::Y, y);
    }

    fn blank(&mut self, is_blank: bool) {
        if self.is_vga {
            self.set_vga(MISCELLANEOUS, COLOUR);
            // Reading makes the next write one of the index.
            self.registers.read8(VGA + INPUT_STATUS - VGA_FIRST_PORT);
            self.set_vga(ATTRIBUTE, if is_blank { 0 } else { SHOWN });
        } else {
            let flags = self.get(Dispi::Enable) & !ENABLED | KEEP_MEMORY;
            self.set(Dispi::Enable, u32::from(flags | if is_blank { 0 } else { ENABLED }));
        }
    }

    fn set_colours(&mut self, first: u8, colours: &[Colour]) {
        if !self.is_vga {
            return;
        }
        self.set_vga(DAC_MASK, 0xff);
        self.set_vga(DAC_WRITE_INDEX, first);
        for byte in colours.iter().flatten().map(|intensity| (intensity >> 8) as u8) {
            self.set_vga(DAC_DATA, byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::vec::Vec;

    /// A device that notes what is written, and forgets it when it is not a DISPI register.
    struct Played {
        dispi: RefCell<[u16; 11]>,
        written: RefCell<Vec<(usize, u16)>>,
    }

    impl Registers for &Played {
        fn read8(&self, _: usize) -> u8 {
            0
        }
        fn write8(&self, offset: usize, value: u8) {
            self.written.borrow_mut().push((offset, value.into()));
        }
        fn read16(&self, offset: usize) -> u16 {
            self.dispi.borrow()[(offset - DISPI) / 2]
        }
        fn write16(&self, offset: usize, value: u16) {
            self.written.borrow_mut().push((offset, value));
            self.dispi.borrow_mut()[(offset - DISPI) / 2] = value;
        }
    }

    fn played() -> Played {
        let mut dispi = [0; 11];
        dispi[0] = 0xb0c5;
        Played { dispi: RefCell::new(dispi), written: RefCell::default() }
    }

    fn layout() -> Layout {
        Layout::new(1280, 800, Format::Xrgb8888)
    }

    #[test]
    fn a_mode_is_set_while_the_picture_is_off_and_the_memory_stays() {
        let played = played();
        let mut device = Bochs::find(&played, true).expect("is one");
        device.show(&Layout { y: 800, virtual_height: 1600, ..layout() });
        let written = played.written.borrow();
        assert_eq!(written[0], (DISPI + 8, 0), "off");
        assert_eq!(written[8], (DISPI + 8, ENABLED | LINEAR | KEEP_MEMORY));
        assert_eq!(*played.dispi.borrow(), [0xb0c5, 1280, 800, 32, 0xc1, 0, 1280, 0, 0, 800, 0]);
    }

    #[test]
    fn what_is_shown_already_is_left_alone() {
        let played = played();
        let mut device = Bochs::find(&played, true).expect("is one");
        device.show(&layout());
        played.written.borrow_mut().clear();
        device.show(&layout());
        assert!(played.written.borrow().is_empty(), "the successor of a driver changes nothing");
        device.show(&Layout { width: 640, virtual_width: 640, ..layout() });
        assert!(!played.written.borrow().is_empty());
    }

    #[test]
    fn colours_go_to_the_dac_with_eight_bits() {
        let played = played();
        let mut device = Bochs::find(&played, true).expect("is one");
        device.set_colours(7, &[[0xff00, 0x8011, 0x00ff], [0x1234, 0, 0xffff]]);
        let values: Vec<u16> = played.written.borrow().iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [0xff, 7, 0xff, 0x80, 0, 0x12, 0, 0xff]);
        let played = self::played();
        Bochs::find(&played, false).expect("is one").set_colours(0, &[[1; 3]]);
        assert!(played.written.borrow().is_empty(), "bochs-display has no map");
    }

    #[test]
    fn another_device_is_not_taken_for_one() {
        let played = played();
        played.dispi.borrow_mut()[0] = 0xffff;
        assert!(Bochs::find(&played, true).is_none());
    }
}
