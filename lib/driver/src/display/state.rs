//! What outlives the driver: what the screen shows, and who draws text on it.
//!
//! ```text
//! word 0   id of the layout of this memory, written last at initialisation
//! word 1   number of changes; its lowest bit tells which of the two copies counts
//! word 2   endpoint of the service that draws text
//! word 3   when the picture was switched off: 1
//! word 4   first visible pixel and line, 16 bits each, and in the high half the number of changes that this belongs to
//! word 5   the cursor, if the device has one
//! 64       copy 0: seven words of the layout, then the colours; 2048 bytes behind: copy 1
//! ```
//! Panning is one word, since programs do it with every picture. Any other change is written to the other copy and committed by word 1, before the device is told: a successor completes it.

use super::cursor::Cursor;
use super::screen::{COLOURS, Colour, Layout};
use crate::display::{Format, Rotation};
use abi::Endpoint;
use sys::keep::Keep;

const LAYOUT: usize = 0;
const CHANGES: usize = 1;
const WATCHER: usize = 2;
const BLANK: usize = 3;
const PAN: usize = 4;
const CURSOR: usize = 5;
/// Offset of first visible pixel and line in a copy.
const PLACE: usize = 16;
const MAGIC: u64 = 0x6672_616d_6500_0001;
const COPY: usize = 64;
const COPY_BYTES: usize = 2048;
const COLOURS_OFFSET: usize = 64;
const COLOUR_BYTES: usize = 6;
/// Preserved memory of the driver.
pub const STATE_BYTES: usize = COPY + 2 * COPY_BYTES;

/// The preserved state.
pub struct State {
    keep: Keep,
}

impl State {
    /// The state of a predecessor, if there is one.
    pub fn open(keep: Keep) -> State {
        State { keep }
    }

    /// What the screen shows. `None`: nothing was set so far.
    pub fn layout(&self) -> Option<Layout> {
        if self.keep.read_word(LAYOUT) != MAGIC {
            return None;
        }
        let mut words = [0; 28];
        self.keep.read(self.copy(self.changes()), &mut words);
        let word = |index: usize| {
            words.get(4 * index..).and_then(|at| at.first_chunk()).map_or(0, |at| u32::from_le_bytes(*at))
        };
        let [width, height, virtual_width, virtual_height, x, y, form] = [0, 1, 2, 3, 4, 5, 6].map(word);
        let (format, rotation) = (Format::with_depth(form & 0xff)?, Rotation::with_number(form >> 8)?);
        let (x, y) = self.place().unwrap_or((x, y));
        Some(Layout { width, height, virtual_width, virtual_height, x, y, format, rotation })
    }

    /// Where the picture was panned to since the last other change.
    fn place(&self) -> Option<(u32, u32)> {
        let word = self.keep.read_word(PAN);
        let is_current = word >> 32 == self.changes() & u64::from(u32::MAX);
        is_current.then_some((word as u32 & 0xffff, word as u32 >> 16))
    }

    fn changes(&self) -> u64 {
        self.keep.read_word(CHANGES)
    }

    /// A number that is another after every change of what is to be seen.
    pub fn number(&self) -> u64 {
        let (x, y) = self.place().unwrap_or((0, 0));
        (self.changes() << 32 | u64::from(y) << 16 | u64::from(x)) & i64::MAX as u64
    }

    /// Commits which part of the picture is visible.
    pub fn set_place(&mut self, x: u32, y: u32) {
        self.keep.write_word(PAN, self.changes() << 32 | u64::from(y & 0xffff) << 16 | u64::from(x & 0xffff));
    }

    fn copy(&self, changes: u64) -> usize {
        COPY + (changes & 1) as usize * COPY_BYTES
    }

    /// Commits a layout, with the colours as they are.
    pub fn set_layout(&mut self, layout: &Layout) {
        self.change(|keep, copy| {
            let Layout { width, height, virtual_width, virtual_height, x, y, format, rotation } = *layout;
            let form = format.depth() | rotation.number() << 8;
            let words = [width, height, virtual_width, virtual_height, x, y, form];
            for (index, word) in words.into_iter().enumerate() {
                keep.write(copy + 4 * index, &word.to_le_bytes());
            }
        });
        self.keep.write_word(LAYOUT, MAGIC);
    }

    /// Commits colours of the map, those from `first` on that there are.
    pub fn set_colours(&mut self, first: usize, colours: &[Colour]) {
        self.change(|keep, copy| {
            for (index, colour) in (first..COLOURS).zip(colours) {
                keep.write(copy + COLOURS_OFFSET + index * COLOUR_BYTES, &pack(*colour));
            }
        });
    }

    fn change(&mut self, write: impl FnOnce(&Keep, usize)) {
        let changes = self.changes();
        let (old, new) = (self.copy(changes), self.copy(changes + 1));
        self.keep.copy(old, new, COPY_BYTES);
        if let Some((x, y)) = self.place() {
            self.keep.write(new + PLACE, &(u64::from(x) | u64::from(y) << 32).to_le_bytes());
        }
        write(&self.keep, new);
        self.keep.write_word(CHANGES, changes + 1);
    }

    /// A colour of the map.
    pub fn colour(&self, index: usize) -> Colour {
        let mut bytes = [0; COLOUR_BYTES];
        self.keep.read(self.copy(self.changes()) + COLOURS_OFFSET + index.min(COLOURS - 1) * COLOUR_BYTES, &mut bytes);
        [0, 2, 4].map(|at| u16::from_le_bytes([bytes[at], bytes[at + 1]]))
    }

    /// Whether the picture is switched off.
    pub fn is_blank(&self) -> bool {
        self.keep.read_word(BLANK) != 0
    }

    /// Commits whether the picture is switched off.
    pub fn set_blank(&mut self, is_blank: bool) {
        self.keep.write_word(BLANK, is_blank.into());
    }

    /// The cursor.
    pub fn cursor(&self) -> Cursor {
        Cursor::from_word(self.keep.read_word(CURSOR))
    }

    /// Commits the cursor, whose image is complete.
    pub fn set_cursor(&mut self, cursor: Cursor) {
        self.keep.write_word(CURSOR, cursor.to_word());
    }

    /// Who draws text.
    pub fn watcher(&self) -> Option<Endpoint> {
        Some(Endpoint(self.keep.read_word(WATCHER) as u32)).filter(|endpoint| endpoint.0 != 0)
    }

    /// Commits who draws text.
    pub fn set_watcher(&mut self, endpoint: Endpoint) {
        self.keep.write_word(WATCHER, endpoint.0.into());
    }
}

fn pack(colour: Colour) -> [u8; COLOUR_BYTES] {
    let mut bytes = [0; COLOUR_BYTES];
    bytes.chunks_exact_mut(2).zip(colour).for_each(|(slot, intensity)| slot.copy_from_slice(&intensity.to_le_bytes()));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicU64;

    fn memory() -> &'static [AtomicU64] {
        sys::host::zeroed(STATE_BYTES)
    }

    #[test]
    fn a_successor_finds_the_old_state_or_the_new_one_wherever_the_driver_died() {
        let old = Layout::new(1280, 800, Format::Xrgb8888);
        let new = Layout { y: 100, rotation: Rotation::Half, ..Layout::new(640, 480, Format::Mapped8) };
        let (mut seen_old, mut seen_new) = (false, false);
        for writes in 0..2000 {
            let memory = memory();
            let mut state = State::open(Keep::simulated(memory, u64::MAX));
            state.set_layout(&old);
            state.set_colours(0, &[[1; 3]; COLOURS]);
            let died = catch_unwind(AssertUnwindSafe(|| {
                let mut state = State::open(Keep::simulated(memory, writes));
                state.set_layout(&new);
                state.set_colours(3, &[[2; 3]; 10]);
            }));
            let state = State::open(Keep::simulated(memory, u64::MAX));
            let colours = [2, 3, 12, 13, 255].map(|index| state.colour(index)[0]);
            match (state.layout(), colours) {
                (Some(layout), [1, 1, 1, 1, 1]) if layout == old => seen_old = true,
                (Some(layout), [1, 1, 1, 1, 1] | [1, 2, 2, 1, 1]) if layout == new => seen_new = true,
                other => panic!("after {writes} writes: {other:?}"),
            }
            if died.is_ok() {
                break;
            }
        }
        assert!(seen_old && seen_new);
    }

    #[test]
    fn a_panned_picture_stays_there_whatever_else_changes() {
        let mut state = State::open(Keep::simulated(memory(), u64::MAX));
        let double = Layout { virtual_height: 1600, ..Layout::new(1280, 800, Format::Xrgb8888) };
        state.set_layout(&double);
        let before = state.number();
        state.set_place(0, 800);
        assert_ne!(state.number(), before);
        assert_eq!(state.layout(), Some(Layout { y: 800, ..double }));
        state.set_colours(0, &[[1; 3]]);
        assert_eq!(state.layout(), Some(Layout { y: 800, ..double }));
        state.set_layout(&double);
        assert_eq!(state.layout(), Some(double), "a layout says where it is");
    }

    #[test]
    fn fresh_memory_has_no_layout() {
        let state = State::open(Keep::simulated(memory(), u64::MAX));
        assert_eq!((state.layout(), state.watcher(), state.is_blank()), (None, None, false));
    }
}
