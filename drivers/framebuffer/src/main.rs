//! framebuffer: a screen as memory. Programs see Linux's fbdev (/dev/fb0); the console draws into the same memory (`abi::display`).
//!
//! A mapping is the device's memory itself (ADR 84), so programs draw without this driver, and go on when it dies. What the screen
//! shows is preserved before the device is told; a successor shows that again and changes nothing that is so already: no picture
//! is lost, and none flickers.
//!
//! * `bochs`: the device of QEMU; `boot`: what the boot loader has set up; `ramfb`: memory that QEMU is told of; this file: which of them is there.
//!   Everything else is the kit's (`driver::display`).
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod bochs;
mod boot;
mod ramfb;

use crate::bochs::{Bochs, REGISTER_BYTES};
use crate::boot::Boot;
use crate::ramfb::{FwCfg, Ramfb};
use abi::{Errno, Name, layout::map};
use driver::display::{Device, Framebuffer, Pixels, STATE_BYTES, State};
use driver::{Region, pci};
use sys::keep::Keep;

sys::program!(main);

/// Offset of the class in configuration space, and its value for a VGA.
const CLASS: u16 = 0xa;
const VGA_CLASS: u32 = 0x300;
const PIXELS: u8 = 0;
const REGISTERS: u8 = 2;

/// Argument `ddc=NAME`: the driver of the bus in the display's cable, for a picture that the boot loader has set up.
const DDC: &str = "ddc";
/// Argument of a system whose screen is `ramfb`, and the memory for its pixels: 1920 by 1080 twice. The system file's `dma_bytes` is this
/// and `ramfb::MEMORY_BYTES`.
const RAMFB: &str = "ramfb";
const RAMFB_PIXEL_BYTES: usize = 16 << 20;

fn main(start: sys::Start) {
    let keep = Keep::take(STATE_BYTES).expect("preserved memory is taken once");
    let state = State::open(keep);
    if start.arguments == RAMFB {
        return match ramfb() {
            Ok((device, pixels)) => serve(Framebuffer::new(device, pixels, None, state)),
            Err(error) => server::not_ready(error),
        };
    }
    match bochs() {
        Ok((device, pixels)) => serve(Framebuffer::new(device, pixels, None, state)),
        Err(Errno::ENODEV) => match boot::find() {
            Ok((layout, pixels)) => {
                let device = Boot::new(start.argument(DDC).and_then(Name::new));
                serve(Framebuffer::new(device, pixels, Some(layout), state))
            }
            Err(error) => server::not_ready(error),
        },
        Err(error) => server::not_ready(error),
    }
}

fn serve<D: Device>(screen: Result<Framebuffer<D>, Errno>) {
    match screen {
        Ok(screen) => driver::chardev::serve(screen),
        Err(error) => server::not_ready(error),
    }
}

/// The device of Bochs and QEMU. `ENODEV`: there is none.
fn bochs() -> Result<(Bochs<Region>, Pixels), Errno> {
    let is_vga = pci::read(CLASS, 2)? == VGA_CLASS;
    let (pixels, registers) = (pci::bar(PIXELS)?, pci::bar(REGISTERS)?);
    let registers = Region::registers(registers.start, REGISTER_BYTES)?;
    let device = Bochs::find(registers, is_vga).ok_or(Errno::ENODEV)?;
    Ok((device, Pixels::new(Region::combined(pixels.start, pixels.bytes as usize)?, map::COMBINED)))
}

/// QEMU's picture in memory. `ENODEV`: there is none.
fn ramfb() -> Result<(Ramfb<FwCfg>, Pixels), Errno> {
    // The larger piece first: each finds that of the predecessor, with the picture.
    let pixels = Region::inherited(RAMFB_PIXEL_BYTES)?;
    let memory = Region::dma(ramfb::MEMORY_BYTES)?;
    let device = Ramfb::find(FwCfg::new(memory), pixels.physical(0))?;
    Ok((device, Pixels::new(pixels, 0)))
}
