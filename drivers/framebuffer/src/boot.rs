//! The frame buffer that the boot loader has set up (GOP of UEFI, VBE of a BIOS): one picture of one size, and nothing else. Where the system has a driver
//! for the bus in the display's cable (DDC), the display says of itself what it is.
//!
//! rs gives the driver the right to this memory when the system file says `framebuffer = true`.

use abi::{Errno, Name, info, layout::PAGE_BYTES, layout::map};
use driver::Region;
use driver::display::{Colour, Device, Edid, Format, Layout, Pixels};
use driver::i2c::ddc;
use sys::time;

/// Between two questions to a bus that has not replied with an EDID.
const PAUSE_NS: u64 = 1_000_000_000;

/// The device: nothing can be changed.
pub struct Boot {
    /// The driver of the bus in the display's cable.
    bus: Option<Name>,
    next_question_ns: u64,
}

impl Boot {
    /// The device, with the service that drives the bus in the display's cable.
    pub fn new(bus: Option<Name>) -> Boot {
        Boot { bus, next_question_ns: 0 }
    }

    /// Asks the bus. Its driver may be down; nobody waits for its successor.
    fn ask(bus: Name) -> Option<Edid> {
        let endpoint = server::names::lookup(bus).ok()?;
        let edid = Edid::parse(&ddc::read_edid(endpoint).ok()?).ok()?;
        let ([a, b, c], (width, height)) = (edid.manufacturer().map(char::from), edid.size_mm().unwrap_or((0, 0)));
        let (product, name) = (edid.product(), edid.name().unwrap_or_default());
        sys::log!("the display is {a}{b}{c} {product:04x} '{name}', {width} by {height} mm, by {bus}");
        Some(edid)
    }
}

/// The picture and its memory. `ENODEV`: the boot loader has given none that can be used.
pub fn find() -> Result<(Layout, Pixels), Errno> {
    let found: info::Framebuffer = sys::info::get(info::FRAMEBUFFER, 0).map_err(|_| Errno::ENODEV)?;
    let layout = layout_of(&found).ok_or(Errno::ENODEV)?;
    // vm maps whole pages; the picture begins at the start of one.
    let bytes = layout.bytes().next_multiple_of(PAGE_BYTES) as usize;
    Ok((layout, Pixels::new(Region::combined(found.address, bytes)?, map::COMBINED)))
}

/// `None`: a format that nobody knows, lines that do not end with a pixel, or a picture that does not begin with a page.
fn layout_of(found: &info::Framebuffer) -> Option<Layout> {
    let format = Format::with_depth(found.depth).filter(|format| *format != Format::Mapped8)?;
    let is_usable = found.pitch.is_multiple_of(format.bytes()) && found.address.is_multiple_of(PAGE_BYTES);
    let virtual_width = found.pitch / format.bytes();
    let is_picture = found.width > 0 && found.height > 0 && virtual_width >= found.width;
    let layout = Layout::new(found.width, found.height, format);
    (is_usable && is_picture).then_some(Layout { virtual_width, ..layout })
}

impl Device for Boot {
    fn name(&self) -> &'static str {
        "boot"
    }
    fn edid(&mut self) -> Option<Edid> {
        self.late_edid()
    }
    fn late_edid(&mut self) -> Option<Edid> {
        let (bus, now_ns) = (self.bus?, time::now_ns());
        if now_ns < self.next_question_ns {
            return None;
        }
        self.next_question_ns = now_ns + PAUSE_NS;
        Boot::ask(bus)
    }
    fn supports(&self, _: Format) -> bool {
        false
    }
    fn sets_modes(&self) -> bool {
        false
    }
    fn show(&mut self, _: &Layout) {}
    fn pan(&mut self, _: u32, _: u32) {}
    fn blank(&mut self, _: bool) {}
    fn set_colours(&mut self, _: u8, _: &[Colour]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_be_longer_than_what_is_visible_of_them() {
        let found = info::Framebuffer { address: 0x8000_0000, pitch: 3328, width: 800, height: 600, depth: 32 };
        let layout = layout_of(&found).expect("usable");
        assert_eq!((layout.width, layout.virtual_width, layout.stride()), (800, 832, 3328));
    }

    #[test]
    fn what_nobody_can_draw_on_is_left_alone() {
        let good = info::Framebuffer { address: 0x8000_0000, pitch: 3200, width: 800, height: 600, depth: 32 };
        let bad = [
            info::Framebuffer { depth: 0, ..good },
            info::Framebuffer { depth: 4, ..good },
            info::Framebuffer { pitch: 3199, ..good },
            info::Framebuffer { pitch: 1600, ..good },
            info::Framebuffer { width: 0, ..good },
            info::Framebuffer { address: 0x8000_0800, ..good },
        ];
        assert!(layout_of(&good).is_some() && bad.iter().all(|found| layout_of(found).is_none()));
    }
}
