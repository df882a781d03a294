//! All terminals and the keyboard: whose keys they are, which requests wait, and what has changed in a turn. The
//! file is long because whatever happens to one of them may change what is shown, and what waits.

use crate::compose::Compose;
use crate::draw::Rotation;
use crate::grid::Size;
use crate::keyboard::{Effect, Keyboard, Modes};
use crate::keymap::Keymap;
use crate::loaded::Loaded;
use crate::pictures::Pictures;
use crate::switch::{self, Signals, Switch};
use crate::terminal::{Screen, Terminal, mode};
use crate::vcs::Kind;
use crate::vt::{Keys, Shows, Vt};
use crate::world::World;
use abi::console::{self, TERMINALS};
use abi::fs::Use;
use abi::input::Event;
use abi::{Endpoint, Errno, GrantId, Message, chardev};
use alloc::vec::Vec;
use recover::snapshot::{Reader, Snapshots, Writer};
use server::Pending;
use sys::fallible;
use sys::keep::Keep;

/// Parts of the snapshot: of each terminal the emulator, the font, of each terminal the rest; the keyboard.
const FONT: usize = TERMINALS;
const FIRST_LOG: usize = FONT + 1;
const KEYBOARD: usize = FIRST_LOG + TERMINALS;
/// What keys mean.
const KEYMAP: usize = KEYBOARD + 1;
/// What function keys send, and accents.
const STRINGS: usize = KEYMAP + 1;
/// See [`FIRST_LOG`].
pub const PARTS: usize = STRINGS + 1;
/// Those that hold emulators, and the font.
pub const LARGE_PARTS: usize = FIRST_LOG;
/// Bytes that are read and written at a time.
const CHUNK: usize = 512;
/// Requests of tty that wait: a read and a question for changes of each terminal, one for signals, and those of a dead tty.
const WAITING: usize = 4 * TERMINALS + 2;
const POLLIN: u64 = 1;
/// Bits of a number of the snapshot.
const HAS_LOG: u64 = 1;
const IS_LOCKED: u64 = 2;
/// By how much text was turned by /sys, and one: two bytes on.
const ROTATION_SHIFT: u32 = 16;
/// Bytes of the kernel's log.
const LOG_BYTES: usize = 16 << 10;

/// What a request waits for.
#[derive(Clone, Copy)]
enum Need {
    Input {
        grant: GrantId,
        bytes: usize,
    },
    /// Another size, or another terminal that is shown, than this.
    Change(u64),
    /// A signal of a switch, after so many.
    Signal(u64),
}

/// What is to be drawn.
pub struct Picture<'a> {
    pub screen: &'a mut Screen,
    /// Lines of the past at its top.
    pub back: usize,
    /// All that was drawn is on the screen still.
    pub is_known: bool,
}

/// A key as `K_MEDIUMRAW` sends it: one byte, or three for codes above 127; the high bit of the first: it is released.
struct Code([u8; 3], usize);

impl Code {
    fn of(event: &Event) -> Code {
        let released = if event.value == 0 { 0x80 } else { 0 };
        match event.code {
            code @ 1..128 => Code([code as u8 | released, 0, 0], 1),
            code => Code([released, (code >> 7) as u8 | 0x80, code as u8 | 0x80], 3),
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// See the head of the file.
pub struct State {
    vts: Vec<Vt>,
    /// The terminal that is shown.
    shown: usize,
    /// How many lines of the past are to be seen at its top.
    back: usize,
    pub keyboard: Keyboard,
    pictures: Pictures,
    /// Events received from input since boot.
    pub position: u64,
    /// Requests, each with the terminal that it is about.
    waiting: Pending<(usize, Need)>,
    /// The first terminal has begun with the kernel's log.
    has_log: bool,
    pub keyboard_changed: bool,
    /// What keys mean has changed.
    pub keymap_changed: bool,
    /// What a program has loaded.
    pub font: Option<Loaded>,
    /// It is not yet preserved.
    pub font_changed: bool,
    /// It is not yet drawn with.
    pub has_other_font: bool,
    /// Signals of switches that tty has not taken.
    signals: Signals,
    /// No other terminal is shown (`VT_LOCKSWITCH`).
    pub is_locked: bool,
    /// By how much text is turned, if not as the system file says.
    rotation: Option<Rotation>,
    /// What is to be seen has changed.
    redraw: bool,
    /// The screen has what was drawn last: nobody else has drawn there.
    is_known: bool,
}

impl State {
    /// What a predecessor has left, or empty terminals.
    ///
    /// # Panics
    /// When there is no memory, at the start.
    pub fn restore(snapshots: &Snapshots, histories: [Keep; TERMINALS]) -> State {
        let no_memory = "console starts with memory for its terminals";
        let vt = |index| {
            let terminal = snapshots.load(index, Terminal::load);
            let vt =
                terminal.and_then(|terminal| snapshots.load(FIRST_LOG + index, |reader| Vt::load(terminal, reader)));
            vt.unwrap_or_else(|| Vt::new(Size::USUAL).expect(no_memory))
        };
        let with_history = |(index, history)| {
            let mut vt = vt(index);
            vt.terminal_mut().screen_mut().history.set_memory(history);
            vt
        };
        let rest = |reader: &mut Reader| {
            let (position, shown, flags) = (reader.number()?, reader.number()?, reader.number()?);
            let signals = Signals::load(reader)?;
            let keymap = snapshots.load(KEYMAP, Keymap::load_tables);
            let mut keymap = keymap.unwrap_or_else(|| Keymap::us().expect(no_memory));
            let strings = |reader: &mut Reader| {
                keymap.load_strings(reader)?;
                Compose::load(reader)
            };
            let compose = snapshots.load(STRINGS, strings).unwrap_or_else(|| Compose::usual().expect(no_memory));
            let keyboard = Keyboard::load(reader, keymap, compose)?;
            Some((position, shown, flags, signals, keyboard, Pictures::load(reader)?))
        };
        let new = || {
            let signals = Signals::new().expect(no_memory);
            (0, 0, 0, signals, Keyboard::new().expect(no_memory), Pictures::new())
        };
        let (position, shown, flags, signals, keyboard, pictures) = snapshots.load(KEYBOARD, rest).unwrap_or_else(new);
        State {
            vts: fallible::collect((0..).zip(histories).map(with_history)).expect(no_memory),
            back: (shown >> 32) as usize,
            shown: (shown as u32 as usize).min(TERMINALS - 1),
            keyboard,
            pictures,
            position,
            waiting: Pending::with_limit(WAITING).expect(no_memory),
            has_log: flags & HAS_LOG != 0,
            keyboard_changed: false,
            keymap_changed: false,
            font: snapshots.load(FONT, Loaded::load).flatten(),
            font_changed: false,
            has_other_font: false,
            signals,
            is_locked: flags & IS_LOCKED != 0,
            rotation: (flags >> ROTATION_SHIFT).checked_sub(1).and_then(Rotation::with_number),
            redraw: false,
            is_known: false,
        }
    }

    /// The font that a program has loaded.
    pub fn font(&self) -> Option<&Loaded> {
        self.font.as_ref()
    }

    /// By how much text is turned, if not as the system file says.
    pub fn rotation(&self) -> Option<Rotation> {
        self.rotation
    }

    /// Has text turned from now on.
    pub fn turn(&mut self, rotation: Rotation) {
        (self.rotation, self.keyboard_changed) = (Some(rotation), true);
    }

    /// Saves what has changed.
    pub fn preserve(&mut self, snapshots: &mut Snapshots) {
        let mut dirty = [false; PARTS];
        for (index, vt) in self.vts.iter_mut().enumerate() {
            (dirty[index], dirty[FIRST_LOG + index]) = vt.take_changes();
        }
        dirty[FONT] = core::mem::take(&mut self.font_changed);
        dirty[KEYBOARD] = core::mem::take(&mut self.keyboard_changed);
        (dirty[KEYMAP], dirty[STRINGS]) = (self.keymap_changed, self.keymap_changed);
        self.keymap_changed = false;
        if !dirty.contains(&true) {
            return;
        }
        let parts = (0..PARTS).filter(|part| dirty[*part]);
        snapshots.save(parts, |part, writer| self.save(part, writer));
    }

    /// Whether what is to be seen has changed since it was asked last.
    pub fn take_redraw(&mut self) -> bool {
        core::mem::take(&mut self.redraw)
    }

    /// What is to be drawn. `None`: a program draws.
    pub fn picture(&mut self) -> Option<Picture<'_>> {
        let vt = &mut self.vts[self.shown];
        let is_known = core::mem::replace(&mut self.is_known, vt.shows() == Shows::Text);
        (vt.shows() == Shows::Text).then_some(Picture {
            screen: vt.terminal_mut().screen_mut(),
            back: self.back,
            is_known,
        })
    }

    /// The screen has been found, or has changed: all terminals get its size. The first one begins with what the kernel has said so far. Returns
    /// whether there was memory for all.
    pub fn attached(&mut self, world: &mut impl World, size: Size) -> bool {
        let mut fits = true;
        for vt in &mut self.vts {
            if let Err(error) = vt.resize(size) {
                sys::log!("a terminal keeps its size for now: {error}");
                fits = false;
            }
        }
        if !self.has_log {
            (self.has_log, self.keyboard_changed) = (true, true);
            self.show_log(world);
        }
        (self.redraw, self.is_known) = (true, false);
        self.settle(world);
        fits
    }

    fn show_log(&mut self, world: &mut impl World) {
        let Ok(mut log) = fallible::filled(0, LOG_BYTES) else { return };
        let count = world.kernel_log(&mut log);
        for line in log[..count].split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n");
            self.vts[0].insert(text.unwrap_or(line));
            text.into_iter().for_each(|_| self.vts[0].insert(b"\r\n"));
        }
    }

    /// A terminal.
    pub fn vt(&self, index: usize) -> &Vt {
        &self.vts[index]
    }

    /// A terminal, for a change.
    pub fn vt_mut(&mut self, index: usize) -> &mut Vt {
        &mut self.vts[index]
    }

    /// The terminal that is shown.
    pub fn shown(&self) -> usize {
        self.shown
    }

    /// Shows half a screen more, or less, of the past.
    fn look_back(&mut self, more: bool) {
        let screen = self.vts[self.shown].terminal_mut().screen_mut();
        let half = screen.size().rows / 2;
        // A program that has the alternate screen has no past.
        let limit = if screen.has(mode::ALTERNATE) { 0 } else { screen.history.len() };
        let back = if more { self.back + half } else { self.back.saturating_sub(half) }.min(limit);
        self.set_back(back);
    }

    fn look_at_present(&mut self) {
        self.set_back(0);
    }

    fn set_back(&mut self, back: usize) {
        if core::mem::replace(&mut self.back, back) != back {
            self.vts[self.shown].terminal_mut().screen_mut().grid.change_all();
            (self.keyboard_changed, self.redraw) = (true, true);
        }
    }

    /// Has the shown terminal drawn anew: a program has ended to draw.
    pub fn draw_all(&mut self) {
        (self.redraw, self.is_known) = (true, false);
    }

    /// input has sent keys.
    pub fn keys(&mut self, world: &mut impl World, events: &[Event]) {
        for event in events {
            let vt = &mut self.vts[self.shown];
            match vt.keys() {
                Keys::Text => {}
                keys => {
                    self.keyboard.follow(event.code, event.value);
                    if keys == Keys::Codes {
                        vt.type_in(Code::of(event).bytes());
                    }
                    continue;
                }
            }
            let screen = self.vts[self.shown].terminal().screen();
            let modes = Modes {
                cursor_keys: screen.has(mode::CURSOR_KEYS),
                keypad: screen.has(mode::KEYPAD),
                new_line: screen.has(mode::NEW_LINE),
            };
            match self.keyboard.key(event.code, event.value, modes) {
                Effect::Nothing => {}
                Effect::LookBack => self.look_back(true),
                Effect::LookForward => self.look_back(false),
                Effect::Bytes(bytes, count) => {
                    self.look_at_present();
                    self.vts[self.shown].type_in(&bytes[..count]);
                }
                Effect::Function(number) => {
                    self.look_at_present();
                    self.vts[self.shown].type_in(self.keyboard.keymap.string(number));
                }
                Effect::Show(number) => self.show(number.wrapping_sub(1)),
                Effect::ShowNext => self.show((self.shown + 1) % TERMINALS),
                Effect::ShowPrevious => self.show((self.shown + TERMINALS - 1) % TERMINALS),
                Effect::Lights(lights) => world.set_lights(lights),
            }
        }
        self.position = self.position.wrapping_add(events.len() as u64);
        self.keyboard_changed = true;
        self.settle(world);
    }

    /// Carries out a request of tty or vfs.
    pub fn request(&mut self, world: &mut impl World, message: &Message, request: chardev::Request) {
        use chardev::Request;
        self.waiting.forget_stale(message);
        let result = match request {
            Request::Open(open) => self.open(message, &open).map(Some),
            Request::Close(close) => {
                self.pictures.close(close.minor);
                self.keyboard_changed = true;
                Ok(Some(0))
            }
            Request::Read(read) if read.minor < console::MINOR_TERMINAL => {
                self.read_picture(world, message, &read).map(Some)
            }
            Request::Read(read) => self.read(message, &read),
            Request::Poll(poll) => Ok(Some(poll.events & POLLIN)),
            Request::Write(write) => self.write(world, message, &write).map(Some),
            Request::Control(control) => self.control(world, message, &control),
            Request::SetUses(uses) => self.set_uses(world, message, uses).map(Some),
            Request::Cancel(cancel) => return self.cancel(world, message.source, cancel.tag),
            _ => Err(Errno::ENOSYS),
        };
        // Those who wait are answered first, so that whoever has shown another terminal finds that tty knows of it.
        self.settle(world);
        match result {
            Ok(Some(value)) => world.answer(message, Ok(value)),
            Ok(None) => {}
            Err(error) => world.answer(message, Err(error)),
        }
    }

    /// Opens the picture of a terminal, or for tty a terminal itself.
    fn open(&mut self, message: &Message, open: &chardev::Open) -> Result<u64, Errno> {
        if open.minor >= console::MINOR_TERMINAL {
            return State::index(open.minor).map(|_| 0);
        }
        self.keyboard_changed = true;
        let file = self.pictures.open(open.minor, (open.ids >> 32) as u32, message.tag())?;
        Ok(file << chardev::OPENED_MINOR_SHIFT)
    }

    /// vfs has restarted: pictures that it has not open are closed.
    fn set_uses(&mut self, world: &mut impl World, message: &Message, uses: chardev::SetUses) -> Result<u64, Errno> {
        const USE_BYTES: usize = size_of::<Use>();
        const MAX_USES: u64 = 1 << 12;
        if uses.bytes > MAX_USES * USE_BYTES as u64 {
            return Err(Errno::EINVAL);
        }
        let mut buffer = fallible::filled(0, uses.bytes as usize)?;
        world.copy_in(message, uses.grant, 0, &mut buffer)?;
        let minor =
            |record: &[u8; USE_BYTES]| record[..8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let records = buffer.as_chunks::<USE_BYTES>().0;
        self.pictures.close_others(|open| records.iter().any(|record| minor(record) == open));
        self.keyboard_changed = true;
        Ok(0)
    }

    /// Reads the picture of a terminal.
    fn read_picture(&mut self, world: &mut impl World, message: &Message, read: &chardev::Read) -> Result<u64, Errno> {
        let (vts, shown) = (&self.vts, self.shown);
        self.keyboard_changed = true;
        self.pictures.read(read.minor, message.tag(), |minor, position| {
            let (kind, number) = Kind::of(minor);
            let vt = vts.get((number as usize).checked_sub(1).unwrap_or(shown)).ok_or(Errno::ENXIO)?;
            let mut buffer = [0; CHUNK];
            let limit = CHUNK.min(read.bytes as usize);
            let count = kind.read(vt.terminal().screen(), position, &mut buffer[..limit]);
            world.copy_out(message, read.grant, &buffer[..count])?;
            Ok(count as u64)
        })
    }

    fn save(&self, part: usize, writer: &mut Writer) {
        match part {
            KEYBOARD => {
                writer.number(self.position);
                writer.number(self.shown as u64 | (self.back as u64) << 32);
                let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
                let rotation = self.rotation.map_or(0, |rotation| rotation.number() + 1);
                let flags = flag(self.has_log, HAS_LOG) | flag(self.is_locked, IS_LOCKED);
                writer.number(flags | rotation << ROTATION_SHIFT);
                self.signals.save(writer);
                self.keyboard.save(writer);
                self.pictures.save(writer);
            }
            FONT => Loaded::save(self.font.as_ref(), writer),
            KEYMAP => self.keyboard.keymap.save_tables(writer),
            STRINGS => {
                self.keyboard.keymap.save_strings(writer);
                self.keyboard.compose.save(writer);
            }
            FIRST_LOG.. => self.vts[part - FIRST_LOG].save(writer),
            _ => self.vts[part].save_terminal(writer),
        }
    }

    /// Shows a terminal, if there is one of this number and the present one may be left; or asks the process that decides.
    pub fn show(&mut self, index: usize) {
        if index >= TERMINALS || index == self.shown || self.is_locked {
            return;
        }
        let vt = &mut self.vts[self.shown];
        match vt.switch() {
            Switch::By(decider) => {
                vt.set_switch(decider.asking(Some(index)));
                self.signals.add(decider.pid, decider.release());
                self.keyboard_changed = true;
            }
            // As on Linux: a program draws that does not expect to be interrupted.
            Switch::Free if vt.shows() == Shows::Graphics => {}
            Switch::Free => self.switch_to(index),
        }
    }

    /// The process that decides over a terminal answers (`VT_RELDISP`): it may be left, it may not, or it has been drawn.
    ///
    /// # Errors
    /// `EINVAL`: the terminal has no such process, or nobody has asked.
    pub fn released(&mut self, index: usize, answer: u64) -> Result<(), Errno> {
        let Switch::By(decider) = self.vts[index].switch() else { return Err(Errno::EINVAL) };
        match decider.asked() {
            None if answer == switch::ACQUIRED => {}
            None => return Err(Errno::EINVAL),
            Some(next) => {
                self.vts[index].set_switch(decider.asking(None));
                if answer != switch::REFUSED && index == self.shown {
                    self.switch_to(next);
                }
            }
        }
        Ok(())
    }

    /// The program that had the terminal for itself has ended.
    pub fn take_back(&mut self, index: usize) {
        let vt = &mut self.vts[index];
        let switch = vt.switch();
        vt.set_keys(Keys::Text);
        vt.set_switch(Switch::Free);
        if vt.shows() == Shows::Graphics {
            vt.set_shows(Shows::Text);
            if index == self.shown {
                self.draw_all();
            }
        }
        if let Switch::By(decider) = switch
            && let Some(next) = decider.asked()
            && index == self.shown
        {
            self.switch_to(next);
        }
    }

    /// Shows another terminal, and tells the process that decides over it.
    fn switch_to(&mut self, index: usize) {
        if index < TERMINALS && index != self.shown {
            self.look_at_present();
            if let Switch::By(decider) = self.vts[index].switch() {
                self.signals.add(decider.pid, decider.acquire());
            }
            self.is_known &= self.vts[self.shown].shows() == Shows::Text;
            self.shown = index;
            self.vts[index].terminal_mut().screen_mut().grid.change_all();
            (self.keyboard_changed, self.redraw) = (true, true);
        }
    }

    fn index(minor: u64) -> Result<usize, Errno> {
        let index = minor.checked_sub(console::MINOR_TERMINAL).ok_or(Errno::ENXIO)? as usize;
        if index < TERMINALS { Ok(index) } else { Err(Errno::ENXIO) }
    }

    fn read(&mut self, message: &Message, read: &chardev::Read) -> Result<Option<u64>, Errno> {
        let index = State::index(read.minor)?;
        self.vts[index].acknowledge(read.caller);
        self.wait(message, index, Need::Input { grant: read.grant, bytes: read.bytes as usize })
    }

    fn write(&mut self, world: &mut impl World, message: &Message, write: &chardev::Write) -> Result<u64, Errno> {
        let index = State::index(write.minor)?;
        let vt = &mut self.vts[index];
        let before = vt.already_shown(write.caller, write.bytes);
        let mut bytes = [0; CHUNK];
        let count = CHUNK.min((write.bytes - before) as usize);
        world.copy_in(message, write.grant, before, &mut bytes[..count])?;
        vt.write(&bytes[..count]);
        if index == self.shown {
            self.redraw = true;
            self.look_at_present();
        }
        Ok(before + count as u64)
    }

    fn control(
        &mut self,
        world: &mut impl World,
        message: &Message,
        control: &chardev::Control,
    ) -> Result<Option<u64>, Errno> {
        let index = State::index(control.minor)?;
        match control.request {
            console::WAIT_FOR_SIGNAL => self.wait(message, index, Need::Signal(control.argument)),
            console::TAKE_BACK => {
                self.take_back(index);
                Ok(Some(0))
            }
            console::WAIT_FOR_CHANGE => self.wait(message, index, Need::Change(control.argument)),
            // A screen has no line to be set, and shows at once what it gets.
            chardev::serial::SET_LINE..=chardev::serial::SEND_NOW => Ok(Some(0)),
            _ => self.ioctl(world, message, control, index).map(Some),
        }
    }

    /// Has a request wait; `settle` answers it. `EAGAIN`: too many wait.
    fn wait(&mut self, request: &Message, index: usize, need: Need) -> Result<Option<u64>, Errno> {
        if self.waiting.add(request, (index, need)) { Ok(None) } else { Err(Errno::EAGAIN) }
    }

    fn cancel(&mut self, world: &mut impl World, source: Endpoint, tag: u64) {
        if let Some(request) = self.waiting.cancel(source, tag) {
            world.answer(&request, Err(Errno::EINTR));
        }
    }

    fn settle(&mut self, world: &mut impl World) {
        let mut waiting = core::mem::take(&mut self.waiting);
        waiting.settle(|request, (index, need)| {
            let result = self.attempt(world, request, *index, *need);
            result.inspect(|result| world.answer(request, *result)).is_some()
        });
        self.waiting = waiting;
    }

    fn attempt(
        &mut self,
        world: &mut impl World,
        request: &Message,
        index: usize,
        need: Need,
    ) -> Option<Result<u64, Errno>> {
        let vt = &self.vts[index];
        match need {
            Need::Signal(taken) => {
                self.keyboard_changed = true;
                self.signals.after(taken).map(Ok)
            }
            Need::Input { grant, bytes } => {
                let mut buffer = [0; CHUNK];
                let count = vt.peek(&mut buffer[..bytes.min(CHUNK)]);
                let copied = || world.copy_out(request, grant, &buffer[..count]).map(|()| count as u64);
                (count > 0).then(copied)
            }
            Need::Change(known) => {
                let Size { rows, columns } = vt.terminal().screen().size();
                let state = rows as u64 | (columns as u64) << 16 | (self.shown as u64 + 1) << 32;
                (state != known).then_some(Ok(state))
            }
        }
    }
}
