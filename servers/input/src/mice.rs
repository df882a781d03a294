//! /dev/input/mice: all pointers as one PS/2 mouse, for programs that know no other (Linux's mousedev).
//!
//! A reader gets packets of three bytes; one that writes the knock of an IntelliMouse or an Explorer, as to the mouse itself, gets four.

use abi::input::{Description, Event, kind};
use alloc::collections::VecDeque;
use recover::snapshot::{Reader, Writer};
use sys::Errno;
use sys::fallible::{self, TryQueue};

const REL_X: u16 = 0;
const REL_Y: u16 = 1;
const REL_WHEEL: u16 = 8;
const ABS_X: u16 = 0;
const ABS_Y: u16 = 1;
const BTN_TOUCH: u16 = 0x14a;
/// Buttons in the order of their bits: left, right, middle, side, extra.
const BUTTONS: [u16; 5] = [0x110, 0x111, 0x112, 0x113, 0x114];

/// Size of the screen that positions are scaled to.
const SCREEN: [i64; 2] = [1024, 768];
/// Packets that wait: one for each change of the buttons.
const PACKETS: usize = 16;
/// Bytes of an answer.
const ANSWER: usize = 6;

const KNOCK_WHEEL: [u8; 6] = [0xf3, 200, 0xf3, 100, 0xf3, 80];
const KNOCK_EXPLORER: [u8; 6] = [0xf3, 200, 0xf3, 200, 0xf3, 80];

/// Which mouse it is for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    Wheel,
    Explorer,
}

/// Movement that was not read, and the buttons at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Movement {
    /// Right, up, and of the wheel.
    distance: [i32; 3],
    buttons: u8,
}

/// An open file.
pub struct Mice {
    mode: Mode,
    /// The last bytes that were written.
    knock: [u8; 6],
    movements: VecDeque<Movement>,
    /// The buttons of the packet that was read last, and at present.
    shown: u8,
    buttons: u8,
    /// The position of an absolute pointer, once it is known.
    position: [Option<i64>; 2],
    /// Bytes to be read before the next packet.
    answer: [u8; ANSWER],
    pending: usize,
    /// What the last read was given, with its tag.
    given: [u8; ANSWER],
    given_bytes: usize,
    given_tag: u64,
}

impl Mice {
    /// One that has just been opened.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new() -> Result<Mice, Errno> {
        Ok(Mice {
            mode: Mode::Plain,
            knock: [0; 6],
            movements: fallible::queue(PACKETS)?,
            shown: 0,
            buttons: 0,
            position: [None; 2],
            answer: [0; ANSWER],
            pending: 0,
            given: [0; ANSWER],
            given_bytes: 0,
            given_tag: 0,
        })
    }

    /// Adds the packet of a device.
    pub fn add(&mut self, description: &Description, packet: &[Event]) {
        let (mut distance, mut buttons) = ([0; 3], self.buttons);
        for event in packet {
            match (event.kind, event.code) {
                (kind::REL, REL_X) => distance[0] += event.value,
                (kind::REL, REL_Y) => distance[1] -= event.value,
                (kind::REL, REL_WHEEL) => distance[2] -= event.value,
                (kind::ABS, axis @ (ABS_X | ABS_Y)) => {
                    distance[usize::from(axis)] += self.moved_to(description, axis, event.value);
                }
                (kind::KEY, code) => {
                    if let Some(bit) = button(code) {
                        buttons = if event.value == 0 { buttons & !bit } else { buttons | bit };
                    }
                }
                _ => {}
            }
        }
        if distance == [0; 3] && buttons == self.buttons {
            return;
        }
        self.buttons = buttons;
        let joins = self.movements.back().is_some_and(|last| last.buttons == buttons);
        if !joins && self.movements.len() < PACKETS {
            self.movements.push_back_reserved(Movement { distance: [0; 3], buttons });
        }
        if let Some(last) = self.movements.back_mut() {
            last.distance.iter_mut().zip(distance).for_each(|(sum, step)| *sum = sum.saturating_add(step));
            last.buttons = buttons;
        }
    }

    /// Whether a read would get bytes.
    pub fn is_readable(&self) -> bool {
        self.pending > 0 || !self.movements.is_empty()
    }

    /// Whether the read with this tag has been given bytes before.
    pub fn has_given(&self, tag: u64) -> bool {
        tag != 0 && tag == self.given_tag
    }

    /// Takes at most `limit` bytes for the read with this tag, or what a read with it was given before.
    pub fn take(&mut self, tag: u64, limit: usize) -> &[u8] {
        if !self.has_given(tag) {
            if self.pending == 0 && !self.movements.is_empty() {
                self.answer_with_packet();
            }
            let count = self.pending.min(limit);
            self.given[..count].copy_from_slice(&self.answer[..count]);
            self.answer.copy_within(count.., 0);
            self.pending -= count;
            (self.given_bytes, self.given_tag) = (count, tag);
        }
        &self.given[..self.given_bytes]
    }

    /// Takes bytes in as the mouse would.
    pub fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.command(*byte));
    }

    /// Saves it into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        writer.number(self.mode as u64);
        let [first, second] = self.position.map(|position| position.map_or(u64::MAX, |position| position as u64));
        let counts = [self.pending, self.given_bytes].map(|count| count as u64);
        let numbers = [first, second, counts[0], counts[1], self.given_tag, self.shown.into(), self.buttons.into()];
        numbers.into_iter().for_each(|number| writer.number(number));
        [&self.knock, &self.answer, &self.given].into_iter().for_each(|bytes| writer.run((bytes, &[])));
        writer.number(self.movements.len() as u64);
        for Movement { distance, buttons } in &self.movements {
            distance.iter().for_each(|distance| writer.number(*distance as u64));
            writer.number((*buttons).into());
        }
    }

    /// Loads it from a snapshot.
    pub fn load(reader: &mut Reader) -> Option<Mice> {
        let mut mice = Mice::new().ok()?;
        mice.mode = [Mode::Plain, Mode::Wheel, Mode::Explorer].into_iter().nth(reader.number()? as usize)?;
        for position in &mut mice.position {
            *position = Some(reader.number()?).filter(|position| *position != u64::MAX).map(|position| position as i64);
        }
        mice.pending = (reader.number()? as usize).min(ANSWER);
        mice.given_bytes = (reader.number()? as usize).min(ANSWER);
        mice.given_tag = reader.number()?;
        (mice.shown, mice.buttons) = (reader.number()? as u8, reader.number()? as u8);
        mice.knock = reader.run()?.try_into().ok()?;
        mice.answer = reader.run()?.try_into().ok()?;
        mice.given = reader.run()?.try_into().ok()?;
        for _ in 0..reader.number()?.min(PACKETS as u64) {
            let distance = [reader.number()? as i32, reader.number()? as i32, reader.number()? as i32];
            mice.movements.push_back_reserved(Movement { distance, buttons: reader.number()? as u8 });
        }
        Some(mice)
    }

    /// How far an absolute pointer has moved on the screen. The first position is where it begins.
    fn moved_to(&mut self, description: &Description, axis: u16, value: i32) -> i32 {
        let Some(index) = description.axis(axis) else { return 0 };
        let (limits, axis) = (&description.axes[index], usize::from(axis));
        let size = (i64::from(limits.max) - i64::from(limits.min)).max(1);
        let position = (i64::from(value) - i64::from(limits.min)) * SCREEN[axis] / size;
        let last = self.position[axis].replace(position).unwrap_or(position);
        let step = (position - last) as i32;
        if axis == usize::from(ABS_Y) { -step } else { step }
    }

    fn answer_with_packet(&mut self) {
        let Some(movement) = self.movements.front_mut() else { return };
        let mut part = |axis: usize, limit: i32| {
            let step = movement.distance[axis].clamp(-limit, limit);
            movement.distance[axis] -= step;
            step as u8
        };
        let (x, y) = (part(0, 127), part(1, 127));
        let buttons = movement.buttons;
        let mut first = 0x08 | (x & 0x80) >> 3 | (y & 0x80) >> 2 | buttons & 7;
        let mut fourth = 0;
        match self.mode {
            Mode::Explorer => fourth = part(2, 7) & 0x0f | (buttons & 0x18) << 1,
            Mode::Wheel => fourth = part(2, 127),
            Mode::Plain => movement.distance[2] = 0,
        }
        if self.mode != Mode::Explorer {
            // Side and extra button press the middle and the right one.
            first |= (buttons & 0x10) >> 3 | (buttons & 0x08) >> 1;
        }
        self.shown = buttons;
        if movement.distance == [0; 3] {
            self.movements.pop_front();
        }
        let bytes = if self.mode == Mode::Plain { 3 } else { 4 };
        self.answer[..4].copy_from_slice(&[first, x, y, fourth]);
        self.pending = bytes;
    }

    fn command(&mut self, byte: u8) {
        const ACKNOWLEDGE: u8 = 0xfa;
        self.knock.copy_within(1.., 0);
        self.knock[5] = byte;
        self.pending = 1;
        match (self.knock, byte) {
            (KNOCK_WHEEL, _) => self.mode = Mode::Wheel,
            (KNOCK_EXPLORER, _) => self.mode = Mode::Explorer,
            (_, 0xeb) => {
                if self.movements.is_empty() {
                    self.movements.push_back_reserved(Movement { distance: [0; 3], buttons: self.buttons });
                }
                self.answer_with_packet();
                self.answer.copy_within(..4, 1);
                self.pending += 1;
            }
            (_, 0xf2) => self.answer_more(&[[0, 3, 4][self.mode as usize]]),
            (_, 0xe9) => self.answer_more(&[0x60, 3, 200]),
            (_, 0xff) => {
                self.mode = Mode::Plain;
                self.answer_more(&[0xaa, 0]);
            }
            _ => {}
        }
        self.answer[0] = ACKNOWLEDGE;
    }

    fn answer_more(&mut self, bytes: &[u8]) {
        self.answer[1..1 + bytes.len()].copy_from_slice(bytes);
        self.pending += bytes.len();
    }
}

/// The bit of a button.
fn button(code: u16) -> Option<u8> {
    let code = if code == BTN_TOUCH { BUTTONS[0] } else { code };
    BUTTONS.iter().position(|button| *button == code).map(|bit| 1 << bit)
}

/// Whether /dev/input/mice shows a device.
pub fn shows(description: &Description) -> bool {
    let moves = description.relative & (1 << REL_X | 1 << REL_Y) != 0 || description.axis(ABS_X).is_some();
    moves && BUTTONS.iter().chain([&BTN_TOUCH]).any(|button| description.has_key(*button))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::input::Axis;

    fn events(list: &[(u16, u16, i32)]) -> Vec<Event> {
        list.iter().map(|(kind, code, value)| Event { time_ns: 0, kind: *kind, code: *code, value: *value }).collect()
    }

    #[test]
    fn a_long_way_takes_several_packets_and_y_grows_upwards() {
        let mut mice = Mice::new().expect("there is memory");
        mice.add(&Description::NONE, &events(&[(kind::REL, REL_X, 200), (kind::REL, REL_Y, 3)]));
        assert_eq!(mice.take(1, 9), [0x28, 127, 0xfd]);
        assert_eq!(mice.take(1, 9), [0x28, 127, 0xfd], "a repeated read gets the same");
        assert_eq!(mice.take(2, 9), [0x08, 73, 0]);
        assert!(!mice.is_readable());
    }

    #[test]
    fn each_change_of_the_buttons_has_a_packet() {
        let mut mice = Mice::new().expect("there is memory");
        let click = [(kind::KEY, BUTTONS[0], 1), (kind::KEY, BUTTONS[0], 0)];
        click.iter().for_each(|event| mice.add(&Description::NONE, &events(&[*event])));
        let mut writer = Writer::default();
        mice.save(&mut writer);
        let mut mice = Mice::load(&mut Reader::new(writer.bytes())).expect("was saved");
        assert_eq!(mice.take(1, 3), [0x09, 0, 0]);
        assert_eq!(mice.take(2, 3), [0x08, 0, 0]);
    }

    #[test]
    fn the_knock_of_a_wheel_mouse_makes_packets_of_four_bytes() {
        let mut mice = Mice::new().expect("there is memory");
        mice.write(&KNOCK_WHEEL);
        assert_eq!(mice.take(1, 9), [0xfa]);
        mice.write(&[0xf2]);
        assert_eq!(mice.take(2, 9), [0xfa, 3]);
        mice.add(&Description::NONE, &events(&[(kind::REL, REL_WHEEL, 1), (kind::KEY, BUTTONS[3], 1)]));
        assert_eq!(mice.take(3, 9), [0x0c, 0, 0, 0xff]);
    }

    #[test]
    fn a_tablet_moves_the_mouse_from_where_it_was_first() {
        let mut mice = Mice::new().expect("there is memory");
        let mut tablet = Description::NONE;
        tablet.absolute = 3;
        tablet.axes[0] = Axis { max: 1024, ..Axis::default() };
        mice.add(&tablet, &events(&[(kind::ABS, ABS_X, 500)]));
        assert!(!mice.is_readable());
        mice.add(&tablet, &events(&[(kind::ABS, ABS_X, 490)]));
        assert_eq!(mice.take(1, 3), [0x18, 0xf6, 0]);
    }
}
