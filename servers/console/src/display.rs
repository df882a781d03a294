//! The screen: the driver's pixels, which console draws into itself (`abi::display`), and how console attaches to it and draws.
//!
//! Whatever is on the screen can be drawn again from the terminals, so nothing of it is preserved, and a picture is drawn whenever there is
//! time: what changes while one is drawn, or within the time of one, comes with the next. A machine without a screen has no driver that
//! is ever up: nothing is drawn then, and that is all.

use crate::cell;
use crate::draw::{Canvas, Renderer, Rotation};
use crate::font::{self, Font};
use crate::grid::Size;
use crate::state::{Picture, State};
use abi::display::{Attach, FORMAT, Flush, NEEDS_FLUSH};
use abi::{Endpoint, Errno, Message};
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::ops::Range;
use driver::Region;
use driver::display::Format;
use server::WaitList;
use server::{Peer, Repeat};
use zerocopy::IntoBytes;

/// Shortest time from one picture to the next.
pub const PICTURE_NS: u64 = 16_666_667;
/// Pixels that are converted at a time.
const CHUNK: usize = 64;

/// See the head of the file.
pub struct Display {
    driver: Peer,
    style: Style,
    attached: RefCell<Option<Attached>>,
    region: RefCell<Option<Rc<Region>>>,
    /// The driver has something new to say.
    is_news: Cell<bool>,
    news: WaitList,
    /// The picture is not what it is to be.
    is_due: Cell<bool>,
    due: WaitList,
}

/// How text is drawn, by the arguments of the system file: `font=8x16`, `rotate=0`; a program may load another font, and the rotation can be changed by
/// /sys.
pub struct Style {
    usual_font: &'static [u8],
    loaded_font: RefCell<Option<Rc<Font>>>,
    rotation: Cell<Rotation>,
}

impl Style {
    /// As the arguments say.
    ///
    /// # Panics
    /// When they name a font or a rotation that does not exist.
    pub fn of(start: &sys::Start) -> Style {
        let font = font::of_size(start.argument("font").unwrap_or("8x16")).expect("font=8x16, 12x24 or 16x32");
        let rotation = Rotation::quarters(start.argument("rotate").unwrap_or("0")).expect("rotate=0 to 3");
        Style { usual_font: font, loaded_font: RefCell::new(None), rotation: Cell::new(rotation) }
    }
}

/// The picture as it is shown.
struct Attached {
    /// The number that the driver gave it.
    number: u64,
    pixels: Pixels,
    renderer: Renderer,
}

/// What the driver has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing new.
    None,
    /// Another part of the memory is visible, of the same size and form.
    Moved,
    /// Another picture: terminals may have another size.
    Picture,
}

impl Display {
    /// The screen of this driver, which need not be up.
    pub fn new(driver: Peer, style: Style) -> Display {
        Display {
            driver,
            style,
            attached: RefCell::default(),
            region: RefCell::default(),
            is_news: Cell::new(true),
            news: WaitList::new(),
            is_due: Cell::new(false),
            due: WaitList::new(),
        }
    }

    /// A service has notified console.
    pub fn notified(&self, from: Endpoint) {
        if from.slot() == self.driver.endpoint().slot() {
            self.look_again();
        }
    }

    /// The shown terminal has changed.
    pub fn change(&self) {
        self.is_due.set(true);
        self.due.wake_all();
    }

    /// Waits until the driver has, or may have, something new to say.
    pub async fn wait_for_news(&self) {
        while !self.is_news.take() {
            self.news.wait().await;
        }
    }

    /// Waits until there is something to draw.
    pub async fn wait_for_change(&self) {
        while !self.is_due.take() {
            self.due.wait().await;
        }
    }

    /// Asks the driver for the present picture.
    pub async fn attach(&self) -> Result<News, Errno> {
        let reply = self.driver.request(Attach {}.message(), Repeat::Yes).await?;
        reply.result()?;
        let number = reply.words[0];
        let mut attached = self.attached.borrow_mut();
        if attached.as_ref().is_some_and(|attached| attached.number == number) {
            return Ok(News::None);
        }
        // Nothing is drawn in the form of the picture before.
        let before = attached.take();
        let pixels = Pixels::new(self.region(reply.source)?, &reply)?;
        if let Some(before) = before.filter(|before| before.pixels.has_form_of(&pixels)) {
            *attached = Some(Attached { number, pixels, ..before });
            return Ok(News::Moved);
        }
        let font = self.style.loaded_font.borrow().clone();
        let font = font.map_or_else(|| Font::new(self.style.usual_font).map(Rc::new), Ok)?;
        let renderer = Renderer::new(font, &pixels, self.rotation())?;
        *attached = Some(Attached { number, pixels, renderer });
        Ok(News::Picture)
    }

    /// The driver's memory, which is mapped once.
    fn region(&self, driver: Endpoint) -> Result<Rc<Region>, Errno> {
        let mut region = self.region.borrow_mut();
        let mapped = match region.take() {
            Some(mapped) => mapped,
            None => Rc::new(Region::offered(driver)?),
        };
        Ok(region.insert(mapped).clone())
    }

    /// By how much text is turned.
    pub fn rotation(&self) -> Rotation {
        self.style.rotation.get()
    }

    /// Has text turned from now on. The driver is asked again, because terminals may have another size.
    pub fn turn(&self, rotation: Rotation) {
        self.style.rotation.set(rotation);
        *self.attached.borrow_mut() = None;
        self.look_again();
    }

    /// The font of the system file.
    pub fn usual_font(&self) -> &'static [u8] {
        self.style.usual_font
    }

    /// Has text drawn in this font from now on, or in the usual one, as [`Display::turn`] does.
    pub fn set_font(&self, font: Option<Font>) {
        *self.style.loaded_font.borrow_mut() = font.map(Rc::new);
        *self.attached.borrow_mut() = None;
        self.look_again();
    }

    /// Has the driver asked again.
    pub fn look_again(&self) {
        self.is_news.set(true);
        self.news.wake_all();
    }

    /// The size of a terminal on it.
    pub fn size(&self) -> Option<Size> {
        self.attached.borrow().as_ref().map(|attached| attached.renderer.size())
    }

    /// Draws what differs from what is on the screen.
    pub fn draw(&self, state: &mut State) {
        let mut attached = self.attached.borrow_mut();
        let Some(Attached { pixels, renderer, .. }) = attached.as_mut() else { return };
        let Some(Picture { screen, back, is_known }) = state.picture() else { return };
        if !is_known {
            renderer.forget(screen);
        }
        renderer.draw(screen, back, pixels);
        if let Some(flush) = pixels.take_damage().filter(|_| pixels.needs_flush) {
            self.driver.tell(flush.message());
        }
    }
}

/// The visible part of the driver's memory.
struct Pixels {
    region: Rc<Region>,
    width: usize,
    height: usize,
    stride: usize,
    start: usize,
    format: Format,
    needs_flush: bool,
    /// What was drawn since the last flush: the columns and lines of a rectangle.
    damage: (Range<usize>, Range<usize>),
    /// The colour that was encoded last, and its pixel: neighbours are equal mostly.
    last: (u32, u32),
}

impl Pixels {
    /// As the driver's answer describes them. `EPROTO`: they are not all in its memory.
    fn new(region: Rc<Region>, answer: &Message) -> Result<Pixels, Errno> {
        let (size, stride, start, format) = Attach::results(answer)?;
        let (width, height) = (size as u32 as usize, (size >> 32) as usize);
        let needs_flush = format & NEEDS_FLUSH != 0;
        let format = Format::with_depth((format & FORMAT) as u32).ok_or(Errno::EPROTO)?;
        let (stride, start) = (stride as usize, start as usize);
        let line = width.checked_mul(format.bytes() as usize).filter(|line| *line <= stride);
        let bytes = stride.checked_mul(height).and_then(|bytes| bytes.checked_add(start));
        match (line, bytes) {
            // The memory ends where the last line does.
            (Some(line), Some(bytes)) if width > 0 && height > 0 && bytes - (stride - line) <= region.len() => {}
            _ => return Err(Errno::EPROTO),
        }
        let last = (0, format.encode(0, &cell::VGA_MEMORY));
        Ok(Pixels { region, width, height, stride, start, format, needs_flush, damage: (0..0, 0..0), last })
    }

    /// Whether both are the same but for the place in memory.
    fn has_form_of(&self, other: &Pixels) -> bool {
        let form = |pixels: &Pixels| (pixels.width, pixels.height, pixels.stride, pixels.format, pixels.needs_flush);
        form(self) == form(other)
    }

    /// The flush that shows what was drawn since the last one.
    fn take_damage(&mut self) -> Option<Flush> {
        let (columns, lines) = core::mem::take(&mut self.damage);
        let word = |low: usize, high: usize| low as u64 | (high as u64) << 32;
        let flush = Flush { at: word(columns.start, lines.start), size: word(columns.len(), lines.len()) };
        (!columns.is_empty()).then_some(flush)
    }

    fn encode(&mut self, colour: u32) -> u32 {
        if self.last.0 != colour {
            self.last = (colour, self.format.encode(colour, &cell::VGA_MEMORY));
        }
        self.last.1
    }
}

/// The shortest range with both.
fn joined(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    if one.is_empty() { other.clone() } else { one.start.min(other.start)..one.end.max(other.end) }
}

impl Canvas for Pixels {
    fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    fn put(&mut self, x: usize, y: usize, pixels: &[u32]) {
        let bytes = self.format.bytes() as usize;
        let at = self.start + y * self.stride + x * bytes;
        let (columns, lines) = &mut self.damage;
        *columns = joined(columns, &(x..x + pixels.len()));
        *lines = joined(lines, &(y..y + 1));
        if self.format == Format::Xrgb8888 {
            return self.region.copy_in(at, pixels.as_bytes());
        }
        for (index, chunk) in pixels.chunks(CHUNK).enumerate() {
            let mut encoded = [0; 4 * CHUNK];
            for (slot, colour) in encoded.chunks_exact_mut(bytes).zip(chunk) {
                slot.copy_from_slice(&self.encode(*colour).to_le_bytes()[..bytes]);
            }
            self.region.copy_in(at + index * CHUNK * bytes, &encoded[..chunk.len() * bytes]);
        }
    }
}
