//! virtio_gpu: the screen of a virtual machine that does not show memory by itself (`-device virtio-gpu-pci`), as /dev/fb0 and for the console.
//!
//! The pixels are DMA memory of this driver, which programs map as any screen's (ADR 84). The device copies from there what it is told to: what
//! the console and `write` have drawn at once, what programs store thirty times a second while they have it mapped (ADR 93).
//!
//! * `commands`: requests and replies as bytes; `device`: modes, panning and flushes by them; this file: the device on its bus. Everything else
//!   is the kit's (`driver::display`).
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

mod commands;
mod device;

use abi::{Errno, layout::PAGE_BYTES};
use device::{Backing, Gpu, MEMORY_BYTES, Wait};
use driver::display::{CURSOR_BYTES, Framebuffer, Pixels, STATE_BYTES, State};
use driver::virtio::{PciTransport, Window};
use driver::{Interrupt, Region, pci, virtio};
use sys::keep::Keep;

sys::program!(main);

/// Memory for pixels, as a VGA of QEMU has it: 1920 by 1080 twice. The system file's `dma_bytes` is this, `CURSOR_BYTES` and `MEMORY_BYTES`.
const PIXEL_BYTES: usize = 16 << 20;
const _: () = assert!(PIXEL_BYTES.is_multiple_of(PAGE_BYTES as usize));

/// The kit's screen on this device.
type Screen = Framebuffer<Gpu<PciTransport<Window>, Region, Interrupt>>;

fn main(_: sys::Start) {
    let keep = Keep::take(STATE_BYTES).expect("preserved memory is taken once");
    match set_up(State::open(keep)) {
        Ok(screen) => driver::chardev::serve(screen),
        Err(error) => server::not_ready(error),
    }
}

fn set_up(state: State) -> Result<Screen, Errno> {
    // The interrupt is message-signalled: it needs no `done`.
    let (transport, interrupts) = virtio::find(1)?;
    let interrupt = interrupts.into_iter().next().ok_or(Errno::EIO)?;
    // The larger piece first, the smallest last: each finds that of the predecessor, with the picture.
    let pixels = Region::inherited(PIXEL_BYTES)?;
    let cursor = Region::inherited(CURSOR_BYTES)?;
    let backing = Backing { physical: pixels.physical(0), bytes: PIXEL_BYTES as u64 };
    let cursor_backing = Backing { physical: cursor.physical(0), bytes: CURSOR_BYTES as u64 };
    let device = Gpu::set_up(transport, pci::dma(MEMORY_BYTES)?, [backing, cursor_backing], interrupt)?;
    Ok(Framebuffer::new(device, Pixels::new(pixels, 0), None, state)?.with_cursor(cursor))
}

impl Wait for Interrupt {
    fn wait(&self) {
        Interrupt::wait(self).expect("interrupts are received");
    }
}
