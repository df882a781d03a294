//! The device: one screen that shows a picture in the device, which copies it from the driver's memory when it is told to (VIRTIO 1.2, 5.7).
//!
//! Each command is waited for, so that at most one is in flight. Generic over transport, memory and the wait.
//!
//! Invariant: `shown` is what the device shows from a picture that it has, with all of the layout's memory behind it.

use crate::commands::{self, Command, REPLY_BYTES, REQUEST_BYTES, Resource};
use abi::Errno;
use driver::display::{Area, Colour, Device, Edid, Format, Layout};
use driver::virtio::{Broken, Buffer, Chain, Dma, Memory, Queue, Setup, Transport};

/// The queue of commands that draw and ask; the other one is of the mouse's cursor, which no call of Linux's fbdev moves.
const CONTROL_QUEUE: u16 = 0;
const QUEUE_SIZE: u16 = 16;
/// Memory for the queue and its buffers.
pub const MEMORY_BYTES: usize = 0x2000;

mod feature {
    pub const EDID: u64 = 1 << 1;
}

/// How the end of a command is waited for.
pub trait Wait {
    /// Returns when the device has interrupted since the last call.
    fn wait(&self);
}

/// Where the pixels are.
#[derive(Clone, Copy, Debug)]
pub struct Backing {
    /// Physical address.
    pub physical: u64,
    /// Length.
    pub bytes: u64,
}

/// See the head of the file.
pub struct Gpu<T, M, W> {
    transport: T,
    queue: Queue<M, ()>,
    /// Request and reply of a command; `None` while it is in flight.
    buffers: Option<[Buffer<M>; 2]>,
    wait: W,
    backing: Backing,
    has_edid: bool,
    shown: Option<(Resource, Layout)>,
    is_blank: bool,
}

impl<T: Transport, M: Memory, W: Wait> Gpu<T, M, W> {
    /// Resets the device and starts it with `MEMORY_BYTES` of memory. It shows nothing.
    ///
    /// # Errors
    /// `EIO`: the device does not work; `ENOMEM`.
    pub fn set_up(transport: T, memory: M, backing: Backing, wait: W) -> Result<Self, Errno> {
        let mut dma = Dma::new(memory);
        let mut setup = Setup::begin(transport, feature::EDID)?;
        let has_edid = setup.features() & feature::EDID != 0;
        let queue = setup.queue(CONTROL_QUEUE, QUEUE_SIZE, &mut dma)?;
        let buffers = Some([dma.take(REQUEST_BYTES, 8)?, dma.take(REPLY_BYTES, 8)?]);
        let transport = setup.start();
        Ok(Gpu { transport, queue, buffers, wait, backing, has_edid, shown: None, is_blank: false })
    }

    /// Has the device do something. Returns what it replied.
    ///
    /// # Errors
    /// `EIO`: it refuses.
    ///
    /// # Panics
    /// If it violates the rules of virtio: the successor resets it.
    fn command(&mut self, command: Command) -> Result<[u8; REPLY_BYTES], Errno> {
        let (request, len) = command.bytes();
        let [mut to, from] = self.buffers.take().expect("no command is in flight");
        to.set_len(len);
        to.write(0, &request[..len]);
        let chain = Chain::new().readable(to).writable(from);
        let wants_notice = self.queue.offer(chain, ()).unwrap_or_else(|_| panic!("no room for the only command"));
        if wants_notice {
            self.transport.notify(CONTROL_QUEUE);
        }
        let (buffers, written) =
            self.completed().unwrap_or_else(|broken| panic!("the device violates virtio: {broken:?}"));
        let mut reply = [0; REPLY_BYTES];
        buffers[1].read(0, &mut reply[..written]);
        self.buffers = Some(buffers);
        if command.is_done(&reply[..written]) { Ok(reply) } else { Err(Errno::EIO) }
    }

    fn completed(&mut self) -> Result<([Buffer<M>; 2], usize), Broken> {
        loop {
            if let Some(completed) = self.queue.completed()? {
                let buffers = completed.chain.into_buffers().expect("a command has two buffers");
                return Ok((buffers, completed.written));
            }
            self.wait.wait();
        }
    }

    /// Makes the picture of a layout, with all that its memory has, and shows it; then deletes the one before.
    fn make(&mut self, layout: &Layout) -> Result<(), Errno> {
        let old = self.shown;
        let resource = Resource(if old.is_some_and(|(resource, _)| resource == Resource(1)) { 2 } else { 1 });
        let (width, height) = (layout.virtual_width, layout.virtual_height);
        self.command(Command::Create { resource, width, height })?;
        let bytes = layout.bytes().min(self.backing.bytes) as u32;
        let filled = self
            .command(Command::AttachBacking { resource, physical: self.backing.physical, bytes })
            .and_then(|_| self.transfer(resource, layout, Area { x: 0, y: 0, width, height }))
            .and_then(|_| self.scan_out(resource, layout));
        if let Err(error) = filled {
            self.command(Command::Delete { resource })?;
            return Err(error);
        }
        self.shown = Some((resource, *layout));
        old.map_or(Ok(()), |(resource, _)| self.command(Command::Delete { resource }).map(drop))
    }

    /// Shows the visible part of a picture, or nothing.
    fn scan_out(&mut self, resource: Resource, layout: &Layout) -> Result<(), Errno> {
        let area = layout.visible();
        if self.is_blank {
            return self.command(Command::SetScanout { resource: Resource::NONE, area }).map(drop);
        }
        self.command(Command::SetScanout { resource, area })?;
        self.command(Command::Flush { resource, area }).map(drop)
    }

    /// Has the device copy an area of a picture from memory.
    fn transfer(&mut self, resource: Resource, layout: &Layout, area: Area) -> Result<(), Errno> {
        let offset = Layout { x: area.x, y: area.y, ..*layout }.start();
        self.command(Command::Transfer { resource, area, offset }).map(drop)
    }
}

/// A device that refuses shows what it has shown before; programs are not told, as on Linux.
fn report(what: &str, result: Result<(), Errno>) {
    if let Err(error) = result {
        sys::log!("{what} refused by the device: {error}");
    }
}

impl<T: Transport, M: Memory, W: Wait> Device for Gpu<T, M, W> {
    fn name(&self) -> &'static str {
        "virtio_gpu"
    }

    fn edid(&mut self) -> Option<Edid> {
        let reply = self.has_edid.then(|| self.command(Command::GetEdid))?.ok()?;
        Edid::parse(commands::edid(&reply)).ok()
    }

    fn preferred_size(&mut self) -> Option<(u32, u32)> {
        self.command(Command::GetDisplayInfo).ok().and_then(|reply| commands::preferred_size(&reply))
    }

    /// The device has seven orders of the same four bytes, and no other format.
    fn supports(&self, format: Format) -> bool {
        format == Format::Xrgb8888
    }

    fn sets_modes(&self) -> bool {
        true
    }

    fn show(&mut self, layout: &Layout) {
        if self.shown.is_none_or(|(_, shown)| shown != *layout) {
            report("mode", self.make(layout));
        }
    }

    fn pan(&mut self, x: u32, y: u32) {
        let Some((resource, layout)) = self.shown else { return };
        let layout = Layout { x, y, ..layout };
        self.shown = Some((resource, layout));
        let copied = self.transfer(resource, &layout, layout.visible());
        report("panning", copied.and_then(|()| self.scan_out(resource, &layout)));
    }

    fn blank(&mut self, is_blank: bool) {
        if core::mem::replace(&mut self.is_blank, is_blank) == is_blank {
            return;
        }
        if let Some((resource, layout)) = self.shown {
            report("blanking", self.scan_out(resource, &layout));
        }
    }

    fn set_colours(&mut self, _: u8, _: &[Colour]) {}

    fn needs_flush(&self) -> bool {
        true
    }

    fn flush(&mut self, area: Area) {
        let Some((resource, layout)) = self.shown.filter(|_| area.width > 0 && area.height > 0) else { return };
        let copied = self.transfer(resource, &layout, area);
        report("flush", copied.and_then(|()| self.command(Command::Flush { resource, area }).map(drop)));
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
