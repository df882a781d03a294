//! IDE controllers in compatibility mode (PCI IDE Controller Specification, 1.0): a channel answers at the ports and interrupts that PCs
//! had before PCI, which no range in configuration space tells of.

use crate::bars::{BARS, Range};
use crate::config::{Address, ConfigSpace, register};
use crate::owners::{Lines, NO_LINE};

/// Class and subclass.
const IDE: u32 = 0x0101;
/// Command block, control register and interrupt of each channel.
const PLACES: [(u64, u64, u8); 2] = [(0x1f0, 0x3f6, 14), (0x170, 0x376, 15)];
const COMMAND_PORTS: u64 = 8;

/// A controller, and which of its channels are in compatibility mode.
pub struct Controller {
    compatible: [bool; 2],
}

impl Controller {
    /// The controller at an address, if it is one.
    pub fn at(config: &mut impl ConfigSpace, address: Address) -> Option<Controller> {
        let class = config.read32(address, register::CLASS);
        // Bits 0 and 2 of the programming interface: the channel is in native mode.
        let native = |channel: u32| class & 1 << (8 + 2 * channel) != 0;
        (class >> 16 == IDE).then(|| Controller { compatible: [!native(0), !native(1)] })
    }

    /// Ranges 0 and 1 are those of the first channel, 2 and 3 those of the second, as in native mode; of the control range only the
    /// port that belongs to the disks.
    pub fn add_ranges(&self, ranges: &mut [Range; BARS]) {
        for (channel, (command, control, _)) in PLACES.into_iter().enumerate().filter(|(at, _)| self.compatible[*at]) {
            ranges[2 * channel] = Range { start: command, bytes: COMMAND_PORTS, ports: true, wide: false };
            ranges[2 * channel + 1] = Range { start: control, bytes: 1, ports: true, wide: false };
        }
    }

    /// The lines of a controller whose configuration space has `line`: that is for channels in native mode.
    pub fn lines(&self, line: u8) -> Lines {
        match self.compatible {
            [true, true] => [PLACES[0].2, PLACES[1].2],
            [true, false] => [PLACES[0].2, line],
            [false, true] => [line, PLACES[1].2],
            [false, false] => [line, NO_LINE],
        }
    }
}
