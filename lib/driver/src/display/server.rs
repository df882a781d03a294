//! The requests: of programs by `chardev`, of the console and of procfs by `abi::display`. The file is long because each kind of request is in it, and all
//! change the one committed state.
//!
//! Whatever is asked may be asked again, by a vfs or a console that died, or because this driver did: every request says what is to be,
//! not what is to change.

use super::cursor::{self, Cursor, Pointer};
use super::fbdev::{self, ColourMap, Var, ioctl};
use super::pixels::Pixels;
use super::screen::{Area, COLOURS, Colour, Device, Layout};
use super::state::State;
use crate::chardev::{Answers, CharDriver, Further, Held};
use crate::display::{Edid, Format, Rotation};
use crate::{Client, Region};
use abi::chardev::{Control, Map, OPENED_POSITIONS, Open, Read, ReadAt, Write, WriteAt};
use abi::{Endpoint, Errno, GrantId, Message, display, layout::PAGE_BYTES, vm};
use alloc::vec::Vec;
use sys::fallible::TryVec;
use sys::{ipc, time};

/// Minor of the screen.
const MINOR: u64 = 0;
/// What is shown when the display does not say what it likes best.
const USUAL_SIZE: (u32, u32) = (1280, 800);
/// Between two pictures. No device here tells when one begins, so this clock stands in for it.
const PICTURE_NS: u64 = 16_666_667;
/// Between two flushes of a device that needs them, while programs map its memory: nobody says when they store there.
const FLUSH_NS: u64 = 2 * PICTURE_NS;
/// How long flushes go on after nobody maps it: longer than vfs, which was told where the memory is, can take to have it mapped without being
/// replaced.
const LINGER_NS: u64 = 5_000_000_000;
/// How much longer than the last flush of all the pause after it is at least: turning a picture is work.
const REST: u64 = 4;

/// The screen.
pub struct Framebuffer<D> {
    device: D,
    pixels: Pixels,
    edid: Option<Edid>,
    /// Memory of the device's cursor, if it has one.
    cursor: Option<Region>,
    /// What is shown; as in `state`.
    layout: Layout,
    state: State,
    /// Whom this incarnation has offered the memory.
    offered: Endpoint,
    /// Those who wait for the next picture.
    waiting: Vec<Held>,
    /// Until then programs may map the memory of a device that needs flushes.
    mapped_until_ns: u64,
    /// No flush of all is worth while before.
    rested_at_ns: u64,
}

impl<D: Device> Framebuffer<D> {
    /// The screen as the predecessor left it; else what the display likes best, or `fixed`, black.
    ///
    /// # Errors
    /// `EINVAL`: the device has no memory for any picture.
    pub fn new(mut device: D, pixels: Pixels, fixed: Option<Layout>, state: State) -> Result<Self, Errno> {
        let edid = device.edid();
        let known = state.layout().filter(|layout| layout.memory_bytes() <= pixels.bytes());
        let layout = match known.or(fixed) {
            Some(layout) => layout,
            None => first_layout(edid.as_ref(), device.preferred_size(), pixels.bytes())?,
        };
        let (offered, waiting) = (Endpoint::NONE, Vec::new());
        let mut screen = Framebuffer {
            device,
            pixels,
            edid,
            cursor: None,
            layout,
            state,
            offered,
            waiting,
            mapped_until_ns: 0,
            rested_at_ns: 0,
        };
        if known.is_none() {
            screen.pixels.clear(layout.bytes());
            screen.state.set_colours(0, &usual_colours());
            screen.state.set_layout(&layout);
        }
        screen.show();
        // Programs may have it mapped since a predecessor.
        screen.expect_mappings();
        Ok(screen)
    }

    /// Has the device's cursor too, as the predecessor left it: `memory` has `CURSOR_BYTES`, and is the predecessor's.
    pub fn with_cursor(mut self, memory: Region) -> Self {
        self.cursor = Some(memory);
        if self.state.cursor().is_shown() {
            self.show_cursor();
        }
        self
    }

    /// Flushes from now on as long as the memory is mapped.
    fn expect_mappings(&mut self) {
        if self.needs_flush() {
            self.mapped_until_ns = time::now_ns() + LINGER_NS;
            self.set_alarm();
        }
    }

    /// The next picture or flush, if anybody waits for one.
    fn set_alarm(&self) {
        let now_ns = time::now_ns();
        let period_ns = match () {
            () if !self.waiting.is_empty() => PICTURE_NS,
            () if now_ns < self.mapped_until_ns => FLUSH_NS,
            () => return,
        };
        let next_ns = (now_ns - now_ns % period_ns + period_ns).max(self.rested_at_ns);
        time::set_alarm(next_ns).expect("a driver of a screen needs the kernel call SetAlarm");
    }

    /// Shows what programs have stored.
    fn flush_mapped(&mut self, now_ns: u64) {
        if !self.needs_flush() {
            return;
        }
        let is_shown =
            ipc::call(Endpoint::VM, &vm::IsShown {}.message()).and_then(|reply| vm::IsShown::results(&reply));
        if is_shown != Ok(false) {
            self.mapped_until_ns = now_ns + LINGER_NS;
        }
        // Also after the last one has gone: what it stored at its end is to be seen.
        self.flush(self.layout.visible());
        let end_ns = time::now_ns();
        self.rested_at_ns = end_ns + REST * (end_ns - now_ns);
    }

    /// Whether clients have to say what they draw.
    fn needs_flush(&self) -> bool {
        self.device.needs_flush() || self.layout.rotation != Rotation::None
    }

    /// Shows what was drawn in an area of the virtual picture.
    fn flush(&mut self, area: Area) {
        if self.layout.rotation != Rotation::None {
            self.layout.copy_turned(&self.pixels.region, area);
        }
        self.device.flush(self.layout.turned(area));
    }

    /// Has the device show what is committed, and tells the console.
    fn show(&mut self) {
        if self.layout.rotation != Rotation::None {
            self.layout.copy_turned(&self.pixels.region, self.layout.visible());
        }
        self.device.show(&self.layout.scanned());
        if self.layout.format == Format::Mapped8 {
            self.show_colours(0, COLOURS);
        }
        self.device.blank(self.state.is_blank());
        self.show_cursor();
        self.tell_watcher();
    }

    fn show_colours(&mut self, first: usize, count: usize) {
        for index in first..(first + count).min(COLOURS) {
            self.device.set_colours(index as u8, &[self.state.colour(index)]);
        }
    }

    fn tell_watcher(&self) {
        if let Some(watcher) = self.state.watcher() {
            // One that has died asks again when it is back.
            let _ = ipc::notify(watcher);
        }
    }

    fn change(&mut self, layout: Layout) {
        if layout == self.layout {
            return;
        }
        let is_pan = Layout { x: layout.x, y: layout.y, ..self.layout } == layout;
        self.layout = layout;
        if is_pan {
            self.state.set_place(layout.x, layout.y);
            self.device.pan(layout.x, layout.y);
            self.move_cursor();
            self.tell_watcher();
        } else {
            self.state.set_layout(&layout);
            self.show();
            // Where nothing had to be told until now, programs may map it.
            self.expect_mappings();
        }
    }

    /// What a program is told of a layout.
    fn var(&mut self, layout: &Layout) -> Var {
        if self.edid.is_none() {
            self.edid = self.device.late_edid();
        }
        Var::of(layout, self.edid.as_ref().and_then(Edid::size_mm))
    }

    fn put_var(&mut self, client: &Client) -> Result<(), Errno> {
        let wanted = Var::from_bytes(&fetch(client)?).wanted()?;
        let layout = self.checked(wanted.layout)?;
        let told = self.var(&layout);
        if !wanted.is_test {
            self.change(layout);
        }
        client.put(0, &told.to_bytes())
    }

    /// `EINVAL`: the device cannot show that.
    fn checked(&self, wanted: Layout) -> Result<Layout, Errno> {
        if !self.device.sets_modes() {
            let same = Layout { x: 0, y: 0, ..wanted } == Layout { x: 0, y: 0, ..self.layout };
            return if same { self.layout.panned(wanted.x, wanted.y) } else { Err(Errno::EINVAL) };
        }
        if self.device.supports(wanted.format) { wanted.fitted(self.pixels.bytes()) } else { Err(Errno::EINVAL) }
    }

    fn pan(&mut self, client: &Client) -> Result<(), Errno> {
        let (x, y) = Var::from_bytes(&fetch(client)?).offsets()?;
        let layout = self.layout.panned(x, y)?;
        self.change(layout);
        client.put(0, &self.var(&layout).to_bytes())
    }

    fn blank(&mut self, level: u64) -> Result<(), Errno> {
        self.state.set_blank(level != 0);
        self.device.blank(level != 0);
        self.show_cursor();
        Ok(())
    }

    /// Where the cursor is on the screen. `None`: it is not to be seen.
    fn pointer(&self) -> Option<Pointer> {
        self.state.cursor().pointer(&self.layout).filter(|_| !self.state.is_blank())
    }

    /// Has the device show the cursor with its image, or no cursor.
    fn show_cursor(&mut self) {
        let Some(memory) = &self.cursor else { return };
        cursor::turn(memory, self.layout.rotation);
        self.device.show_cursor(self.pointer());
    }

    /// Has the device show the cursor where it is now.
    fn move_cursor(&mut self) {
        if self.cursor.is_none() {
            return;
        }
        if let Some(pointer) = self.pointer() {
            self.device.move_cursor(pointer);
        }
    }

    /// Commits the cursor and has it shown. What only moves costs the device no image.
    fn set_cursor(&mut self, cursor: Cursor, image: Option<cursor::Image>) {
        let old = self.state.cursor();
        self.state.set_cursor(cursor);
        if image.is_none() && cursor.is_like(old) { self.move_cursor() } else { self.show_cursor() }
    }

    /// `FBIO_CURSOR`: asks for the image, if there is to be a new one. `EINVAL`: the device has no cursor.
    fn control_cursor(&mut self, held: Held, client: &Client, answers: &mut Answers) {
        if self.cursor.is_none() {
            return answers.give(held, Err(Errno::EINVAL));
        }
        let request = match fetch(client).and_then(|bytes| cursor::Request::parse(&bytes)) {
            Ok(request) => request,
            Err(error) => return answers.give(held, Err(error)),
        };
        if let Some(image) = request.image() {
            return answers.ask_further(held, image.address, image.bytes());
        }
        self.set_cursor(request.applied_to(self.state.cursor()), None);
        answers.give(held, Ok(0));
    }

    /// `FBIO_CURSOR`, with the image that was asked for.
    fn take_cursor(&mut self, further: &Further) -> Result<u64, Errno> {
        let request = cursor::Request::parse(&fetch(&further.argument)?)?;
        let memory = self.cursor.as_ref().ok_or(Errno::EINVAL)?;
        let image = request.image().ok_or(Errno::EINVAL)?;
        image.fetch(memory, &further.memory)?;
        self.set_cursor(request.applied_to(self.state.cursor()), Some(image));
        Ok(0)
    }

    /// Text was drawn: the cursor of a program goes with its picture.
    fn drop_cursor(&mut self) {
        if self.cursor.is_none() {
            return;
        }
        let cursor = self.state.cursor();
        if cursor.is_shown() {
            self.set_cursor(cursor.hidden(), None);
        }
    }

    fn wait_for_picture(&mut self, held: Held, client: &Client, answers: &mut Answers) {
        match fetch::<4>(client).map(u32::from_le_bytes) {
            Ok(0) => {}
            Ok(_) => return answers.give(held, Err(Errno::ENODEV)),
            Err(error) => return answers.give(held, Err(error)),
        }
        match self.waiting.try_push(held) {
            Ok(()) => self.set_alarm(),
            Err(error) => answers.give(held, Err(error)),
        }
    }

    /// The part of a colour map that was asked for in the step before: the program's to the device's, or the other way round.
    fn move_colours(&mut self, map: &ColourMap, further: &Further) -> Result<(), Errno> {
        let part = (further.step - 1) as usize;
        let mut bytes = [0; 2 * COLOURS];
        let bytes = &mut bytes[..2 * map.count];
        if further.request == ioctl::GETCMAP {
            for (slot, index) in bytes.chunks_exact_mut(2).zip(map.first..) {
                // All colours are opaque.
                let intensity = self.state.colour(index).get(part).copied().unwrap_or(0);
                slot.copy_from_slice(&intensity.to_le_bytes());
            }
            return further.memory.put(0, bytes);
        }
        further.memory.fetch(0, bytes)?;
        let mut colours = [[0; 3]; COLOURS];
        for (index, value) in bytes.as_chunks().0.iter().enumerate() {
            let mut colour = self.state.colour(map.first + index);
            if let Some(intensity) = colour.get_mut(part) {
                *intensity = u16::from_le_bytes(*value);
            }
            colours[index] = colour;
        }
        self.state.set_colours(map.first, &colours[..map.count]);
        if self.layout.format == Format::Mapped8 {
            self.show_colours(map.first, map.count);
        }
        Ok(())
    }

    /// Asks for the next part of a colour map, or ends.
    fn next_part(held: Held, map: Result<ColourMap, Errno>, step: u64, answers: &mut Answers) {
        match map.map(|map| map.part(step)) {
            Ok(Some((address, bytes))) => answers.ask_further(held, address, bytes),
            Ok(None) => answers.give(held, Ok(0)),
            Err(error) => answers.give(held, Err(error)),
        }
    }

    /// Within the picture's memory: how many bytes from there on.
    fn left(&self, position: u64, bytes: u64) -> u64 {
        self.layout.bytes().saturating_sub(position).min(bytes)
    }

    fn attach(&mut self, message: &Message) -> Result<Message, Errno> {
        // vm looks at each page of an offer, which takes longer than all else here.
        if self.offered != message.source {
            let (physical, bytes) = (self.pixels.region.physical(0), self.pixels.bytes());
            let slot = message.source.slot() as u64;
            let offer = vm::OfferMemory { slot, physical, bytes, caching: self.pixels.caching };
            ipc::call(Endpoint::VM, &offer.message())?.result()?;
            self.offered = message.source;
        }
        self.state.set_watcher(message.source);
        let Layout { width, height, format, .. } = self.layout;
        let size = pair(width, height);
        let (stride, start) = (self.layout.stride(), self.layout.start());
        let flush = if self.needs_flush() { display::NEEDS_FLUSH } else { 0 };
        let format = u64::from(format.depth()) | flush;
        Ok(display::Attach::reply(message, self.state.number(), size, stride, start, format))
    }

    fn describe(&self, message: &Message) -> Message {
        let Layout { width, height, virtual_width, virtual_height, x, y, format, rotation } = self.layout;
        let mut name = [0; 16];
        name.iter_mut().zip(self.device.name().bytes()).for_each(|(slot, byte)| *slot = byte);
        let name = u128::from_le_bytes(name);
        let (size, whole) = (pair(width, height), pair(virtual_width, virtual_height));
        let form = u64::from(format.depth() | rotation.number() << 8);
        display::Describe::reply(message, form, size, whole, pair(x, y), name as u64, (name >> 64) as u64)
    }

    /// What a program may change by `FBIOPUT_VSCREENINFO`, one thing alone.
    fn change_one(&mut self, what: u64, value: u64) -> Result<(), Errno> {
        let (first, second) = (value as u32, (value >> 32) as u32);
        let visible = Layout { x: 0, y: 0, virtual_width: 0, virtual_height: 0, ..self.layout };
        let wanted = match what {
            display::CHANGE_BLANK => return self.blank(value),
            display::CHANGE_ROTATION => {
                let number = u32::try_from(value).map_err(|_| Errno::EINVAL)?;
                let rotation = Rotation::with_number(number).ok_or(Errno::EINVAL)?;
                // A turned picture is all visible.
                if rotation == self.layout.rotation { self.layout } else { Layout { rotation, ..visible } }
            }
            display::CHANGE_PLACE => self.layout.panned(first, second)?,
            display::CHANGE_WHOLE => Layout { virtual_width: first, virtual_height: second, ..self.layout },
            display::CHANGE_DEPTH => Layout { format: Format::with_depth(first).ok_or(Errno::EINVAL)?, ..self.layout },
            _ => return Err(Errno::EINVAL),
        };
        let layout = self.checked(wanted)?;
        self.change(layout);
        Ok(())
    }
}

/// A pair of numbers: the first in the low half.
fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

/// What a display likes best; `EINVAL`: there is no memory for it, nor for anything smaller.
fn first_layout(edid: Option<&Edid>, other: Option<(u32, u32)>, memory_bytes: u64) -> Result<Layout, Errno> {
    let liked = edid.and_then(Edid::preferred).map(|mode| (mode.width.into(), mode.height.into()));
    let sizes = [liked.or(other).unwrap_or(USUAL_SIZE), USUAL_SIZE, (1024, 768), (640, 480)];
    let layouts = sizes.map(|(width, height)| Layout::new(width, height, Format::Xrgb8888).fitted(memory_bytes));
    layouts.into_iter().find(Result::is_ok).unwrap_or(Err(Errno::EINVAL))
}

/// The colours of a fresh map: the first sixteen are those of a text console, as on Linux; the others are black.
fn usual_colours() -> [Colour; COLOURS] {
    let mut colours = [[0; 3]; COLOURS];
    for (index, colour) in colours.iter_mut().enumerate().take(16) {
        let low = if index & 8 != 0 { 0x5555 } else { 0 };
        let high = if index & 8 != 0 { 0xffff } else { 0xaaaa };
        *colour = [4, 2, 1].map(|bit| if index & bit != 0 { high } else { low });
    }
    // Brown is no dark yellow.
    colours[6][1] = 0x5555;
    colours
}

fn fetch<const BYTES: usize>(client: &Client) -> Result<[u8; BYTES], Errno> {
    let mut bytes = [0; BYTES];
    client.fetch(0, &mut bytes)?;
    Ok(bytes)
}

impl<D: Device> CharDriver for Framebuffer<D> {
    fn open(&mut self, request: &Open) -> Result<u64, Errno> {
        if request.minor == MINOR { Ok(OPENED_POSITIONS) } else { Err(Errno::ENODEV) }
    }

    fn read(&mut self, held: Held, _: &Read, _: Client, answers: &mut Answers) {
        answers.give(held, Err(Errno::EINVAL));
    }

    fn write(&mut self, held: Held, _: &Write, _: Client, answers: &mut Answers) {
        answers.give(held, Err(Errno::EINVAL));
    }

    fn read_at(&mut self, request: &ReadAt, client: Client) -> Result<u64, Errno> {
        let bytes = self.left(request.position, request.bytes);
        if bytes > 0 {
            self.pixels.put(&client, request.position, bytes)?;
        }
        Ok(bytes)
    }

    fn write_at(&mut self, request: &WriteAt, client: Client) -> Result<u64, Errno> {
        if request.position > self.layout.bytes() {
            return Err(Errno::EFBIG);
        }
        let bytes = self.left(request.position, request.bytes);
        if bytes == 0 {
            return Err(Errno::ENOSPC);
        }
        let fetched = self.pixels.fetch(&client, request.position, bytes);
        self.flush(self.layout.lines(request.position, bytes));
        fetched.map(|()| bytes)
    }

    fn control(&mut self, held: Held, request: &Control, answers: &mut Answers) {
        let client = Client::new(held.requester(), request.grant, Further::ARGUMENT_BYTES);
        let is_map = matches!(request.request, ioctl::GETCMAP | ioctl::PUTCMAP);
        let result = match request.request {
            _ if request.grant == GrantId::NONE => Err(Errno::EFAULT),
            _ if is_map => {
                let map = fetch(&client).and_then(|bytes| ColourMap::parse(&bytes));
                return Self::next_part(held, map, 0, answers);
            }
            ioctl::WAITFORVSYNC => return self.wait_for_picture(held, &client, answers),
            ioctl::GET_VSCREENINFO => {
                let layout = self.layout;
                client.put(0, &self.var(&layout).to_bytes())
            }
            ioctl::PUT_VSCREENINFO => self.put_var(&client),
            ioctl::GET_FSCREENINFO => {
                let name = self.device.name();
                client.put(0, &fbdev::fix(&self.layout, name, self.device.sets_modes()))
            }
            ioctl::PAN_DISPLAY => self.pan(&client),
            ioctl::GET_CON2FBMAP => fetch(&client).and_then(fbdev::console_map).and_then(|map| client.put(0, &map)),
            ioctl::BLANK => self.blank(request.argument),
            ioctl::GET_VBLANK => client.put(0, &fbdev::vblank(time::now_ns() / PICTURE_NS)),
            ioctl::CURSOR => return self.control_cursor(held, &client, answers),
            _ => Err(Errno::ENOTTY),
        };
        answers.give(held, result.map(|()| 0));
    }

    fn control_further(&mut self, held: Held, further: &Further, answers: &mut Answers) {
        if further.request == ioctl::CURSOR {
            let result = self.take_cursor(further);
            return answers.give(held, result);
        }
        let map = fetch(&further.argument).and_then(|bytes| ColourMap::parse(&bytes));
        let moved = map.and_then(|map| self.move_colours(&map, further).map(|()| map));
        Self::next_part(held, moved, further.step, answers);
    }

    fn map(&mut self, request: &Map) -> Result<(u64, u64), Errno> {
        let end = request.offset.checked_add(request.bytes).filter(|end| *end <= self.pixels.bytes());
        let is_whole = request.offset.is_multiple_of(PAGE_BYTES);
        end.filter(|_| is_whole).ok_or(Errno::EINVAL)?;
        self.expect_mappings();
        Ok((self.pixels.region.physical(request.offset as usize), self.pixels.caching))
    }

    fn other(&mut self, held: Held, message: &Message, answers: &mut Answers) {
        match display::Request::decode(message) {
            Some(display::Request::Attach(_)) => match self.attach(message) {
                Ok(reply) => answers.give_message(&held, reply),
                Err(error) => answers.give(held, Err(error)),
            },
            Some(display::Request::Flush(flush)) => {
                let [x, y, width, height] =
                    [flush.at, flush.at >> 32, flush.size, flush.size >> 32].map(|word| word as u32);
                self.drop_cursor();
                self.flush(self.layout.clipped(x, y, width, height));
                answers.give(held, Ok(0));
            }
            Some(display::Request::Describe(_)) => answers.give_message(&held, self.describe(message)),
            Some(display::Request::Change(change)) => {
                let result = self.change_one(change.what, change.value);
                answers.give(held, result.map(|()| 0));
            }
            None => answers.give(held, Err(Errno::ENOSYS)),
        }
    }

    fn cancel(&mut self, requester: Endpoint, tag: u64, answers: &mut Answers) {
        if let Some(at) = self.waiting.iter().position(|held| held.requester() == requester && held.tag() == tag) {
            answers.give(self.waiting.swap_remove(at), Err(Errno::EINTR));
        }
    }

    fn alarm(&mut self, now_ns: u64, answers: &mut Answers) {
        self.flush_mapped(now_ns);
        self.waiting.drain(..).for_each(|held| answers.give(held, Ok(0)));
        self.set_alarm();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_display_that_says_so_the_usual_size_is_shown_if_there_is_memory() {
        let size = |bytes| first_layout(None, None, bytes).map(|layout| (layout.width, layout.height));
        assert_eq!(size(16 << 20), Ok((1280, 800)));
        assert_eq!(size(4 << 20), Ok((1280, 800)));
        assert_eq!(size(3 << 20), Ok((1024, 768)));
        assert_eq!(size(1 << 20), Err(Errno::EINVAL));
    }

    #[test]
    fn the_first_colours_are_those_of_a_text_console() {
        let colours = usual_colours();
        assert_eq!(colours[1], [0, 0, 0xaaaa], "blue");
        assert_eq!(colours[6], [0xaaaa, 0x5555, 0], "brown");
        assert_eq!((colours[7], colours[15]), ([0xaaaa; 3], [0xffff; 3]));
        assert_eq!((colours[8], colours[16]), ([0x5555; 3], [0; 3]));
    }
}
