//! The device: one screen that shows a picture in the device, which copies it from the driver's memory when it is told to (VIRTIO 1.2, 5.7).
//!
//! Each command is waited for, so that at most one is in flight. Generic over transport, memory and the wait.
//!
//! The cursor has a queue of its own, a picture of its own, and moves without any copying.
//!
//! Invariant: `shown` is what the device shows from a picture that it has, with all of the layout's memory behind it.

use crate::commands::{self, Command, Pixels, REPLY_BYTES, REQUEST_BYTES, Resource};
use abi::Errno;
use driver::display::{Area, CURSOR_SHOWN, CURSOR_SIZE, Colour, Device, Edid, Format, Layout, Pointer};
use driver::virtio::{Broken, Buffer, Chain, Dma, Memory, Queue, Setup, Transport};

/// The queue of commands that draw and ask, and the one of the cursor.
const CONTROL_QUEUE: u16 = 0;
const CURSOR_QUEUE: u16 = 1;
const QUEUE_SIZE: u16 = 16;
/// Memory for the queues and their buffers.
pub const MEMORY_BYTES: usize = 0x2000;

/// The picture of the cursor; those of the screen are 1 and 2.
const CURSOR: Resource = Resource(3);

mod feature {
    pub const EDID: u64 = 1 << 1;
}

/// How the end of a command is waited for.
pub trait Wait {
    /// Returns when the device has interrupted since the last call.
    fn wait(&self);
}

/// Where pixels are.
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
    cursor_queue: Queue<M, ()>,
    /// Request and reply of a command; `None` while it is in flight.
    buffers: Option<[Buffer<M>; 2]>,
    wait: W,
    backing: Backing,
    /// The memory of the cursor.
    cursor: Backing,
    /// The device has a picture for it.
    has_cursor: bool,
    has_edid: bool,
    shown: Option<(Resource, Layout)>,
    is_blank: bool,
}

impl<T: Transport, M: Memory, W: Wait> Gpu<T, M, W> {
    /// Resets the device and starts it with `MEMORY_BYTES` of memory; the picture is in the first `Backing`, the cursor in the other one. It shows nothing.
    ///
    /// # Errors
    /// `EIO`: the device does not work; `ENOMEM`.
    pub fn set_up(transport: T, memory: M, [backing, cursor]: [Backing; 2], wait: W) -> Result<Self, Errno> {
        let mut dma = Dma::new(memory);
        let mut setup = Setup::begin(transport, feature::EDID)?;
        let has_edid = setup.features() & feature::EDID != 0;
        let queue = setup.queue(CONTROL_QUEUE, QUEUE_SIZE, &mut dma)?;
        let cursor_queue = setup.queue(CURSOR_QUEUE, QUEUE_SIZE, &mut dma)?;
        let buffers = Some([dma.take(REQUEST_BYTES, 8)?, dma.take(REPLY_BYTES, 8)?]);
        let transport = setup.start();
        let (has_cursor, shown, is_blank) = (false, None, false);
        Ok(Gpu {
            transport,
            queue,
            cursor_queue,
            buffers,
            wait,
            backing,
            cursor,
            has_cursor,
            has_edid,
            shown,
            is_blank,
        })
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
        let queue = if command.is_of_cursor() { &mut self.cursor_queue } else { &mut self.queue };
        let wants_notice = queue.offer(chain, ()).unwrap_or_else(|_| panic!("no room for the only command"));
        if wants_notice {
            self.transport.notify(queue.number());
        }
        let (buffers, written) =
            completed(queue, &self.wait).unwrap_or_else(|broken| panic!("the device violates virtio: {broken:?}"));
        let mut reply = [0; REPLY_BYTES];
        buffers[1].read(0, &mut reply[..written]);
        self.buffers = Some(buffers);
        if command.is_of_cursor() || command.is_done(&reply[..written]) { Ok(reply) } else { Err(Errno::EIO) }
    }

    /// Makes the picture of a layout, with all that its memory has, and shows it; then deletes the one before.
    fn make(&mut self, layout: &Layout) -> Result<(), Errno> {
        let old = self.shown;
        let resource = Resource(if old.is_some_and(|(resource, _)| resource == Resource(1)) { 2 } else { 1 });
        let (width, height) = (layout.virtual_width, layout.virtual_height);
        self.command(Command::Create { resource, pixels: Pixels::Opaque, width, height })?;
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

    /// Makes the picture of the cursor, once, and has the device copy it from memory.
    fn copy_cursor(&mut self) -> Result<(), Errno> {
        let (width, height) = (CURSOR_SIZE, CURSOR_SIZE);
        if !self.has_cursor {
            self.command(Command::Create { resource: CURSOR, pixels: Pixels::Transparent, width, height })?;
            let Backing { physical, bytes } = self.cursor;
            let attach = Command::AttachBacking { resource: CURSOR, physical, bytes: bytes as u32 };
            if let Err(error) = self.command(attach) {
                self.command(Command::Delete { resource: CURSOR })?;
                return Err(error);
            }
            self.has_cursor = true;
        }
        let area = Area { x: 0, y: 0, width, height };
        self.command(Command::Transfer { resource: CURSOR, area, offset: CURSOR_SHOWN as u64 }).map(drop)
    }

    /// Has the device copy an area of a picture from memory.
    fn transfer(&mut self, resource: Resource, layout: &Layout, area: Area) -> Result<(), Errno> {
        let offset = Layout { x: area.x, y: area.y, ..*layout }.start();
        self.command(Command::Transfer { resource, area, offset }).map(drop)
    }
}

/// Waits for the only command that is in flight.
fn completed<M: Memory>(queue: &mut Queue<M, ()>, wait: &impl Wait) -> Result<([Buffer<M>; 2], usize), Broken> {
    loop {
        if let Some(completed) = queue.completed()? {
            let buffers = completed.chain.into_buffers().expect("a command has two buffers");
            return Ok((buffers, completed.written));
        }
        wait.wait();
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

    fn show_cursor(&mut self, pointer: Option<Pointer>) {
        let (resource, pointer, copied) = match pointer {
            Some(pointer) => (CURSOR, pointer, self.copy_cursor()),
            None if !self.has_cursor => return,
            None => (Resource::NONE, Pointer { x: 0, y: 0, hot: (0, 0) }, Ok(())),
        };
        let shown = copied.and_then(|()| self.command(Command::UpdateCursor { resource, pointer }).map(drop));
        report("cursor", shown);
    }

    fn move_cursor(&mut self, pointer: Pointer) {
        if self.has_cursor {
            report("cursor", self.command(Command::MoveCursor { resource: CURSOR, pointer }).map(drop));
        }
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
