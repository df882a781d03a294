//! All terminals and the keyboard: whose keys they are, which requests wait, and what has changed in a turn.

use crate::keyboard::{Effect, Keyboard, Modes};
use crate::grid::Size;
use crate::pictures::Pictures;
use crate::terminal::{Terminal, mode};
use crate::vcs::Kind;
use crate::vt::Vt;
use crate::world::World;
use abi::console::{self, TERMINALS};
use abi::input::Event;
use abi::{Endpoint, Errno, GrantId, Message, chardev};
use alloc::vec::Vec;
use recover::snapshot::{Reader, Snapshots, Writer};
use sys::fallible::{self, TryVec};

/// Parts of the snapshot: of each terminal the emulator and the rest; the keyboard.
const FIRST_LOG: usize = TERMINALS;
const KEYBOARD: usize = 2 * TERMINALS;
/// See [`FIRST_LOG`].
pub const PARTS: usize = KEYBOARD + 1;
/// Bytes that are read and written at a time.
const CHUNK: usize = 512;
/// Requests of tty that wait: a read and a question for the size of each terminal.
const WAITING: usize = 4 * TERMINALS;
const POLLIN: u64 = 1;

/// What a request waits for.
#[derive(Clone, Copy)]
enum Need {
    Input { grant: GrantId, bytes: usize },
    /// Another size than this.
    Size(u64),
}

#[derive(Clone, Copy)]
struct Waiting {
    request: Message,
    index: usize,
    need: Need,
}

/// See the head of the file.
pub struct State {
    vts: Vec<Vt>,
    /// The terminal that is shown.
    shown: usize,
    keyboard: Keyboard,
    pictures: Pictures,
    /// Events received from input since boot.
    pub position: u64,
    waiting: Vec<Waiting>,
    keyboard_changed: bool,
}

impl State {
    /// What a predecessor has left, or empty terminals.
    ///
    /// # Panics
    /// When there is no memory, at the start.
    pub fn restore(snapshots: &Snapshots) -> State {
        let no_memory = "console starts with memory for its terminals";
        let vt = |index| {
            let terminal = snapshots.load(index, Terminal::load);
            let vt = terminal.and_then(|terminal| snapshots.load(FIRST_LOG + index, |reader| Vt::load(terminal, reader)));
            vt.unwrap_or_else(|| Vt::new(Size::USUAL).expect(no_memory))
        };
        let rest = |reader: &mut Reader| {
            let (position, shown) = (reader.number()?, reader.number()? as usize);
            Some((position, shown, Keyboard::load(reader)?, Pictures::load(reader)?))
        };
        let new = || (0, 0, Keyboard::new().expect(no_memory), Pictures::new());
        let (position, shown, keyboard, pictures) = snapshots.load(KEYBOARD, rest).unwrap_or_else(new);
        State {
            vts: fallible::collect((0..TERMINALS).map(vt)).expect(no_memory),
            shown: shown.min(TERMINALS - 1),
            keyboard,
            pictures,
            position,
            waiting: fallible::with_capacity(WAITING).expect(no_memory),
            keyboard_changed: false,
        }
    }

    /// Saves what has changed.
    pub fn preserve(&mut self, snapshots: &mut Snapshots) {
        let mut dirty = [false; PARTS];
        for (index, vt) in self.vts.iter_mut().enumerate() {
            (dirty[index], dirty[FIRST_LOG + index]) = vt.take_changes();
        }
        dirty[KEYBOARD] = core::mem::take(&mut self.keyboard_changed);
        if !dirty.contains(&true) {
            return;
        }
        let parts = (0..PARTS).filter(|part| dirty[*part]);
        snapshots.save(parts, |part, writer| self.save(part, writer));
    }

    /// The terminal that is shown.
    pub fn shown_mut(&mut self) -> &mut Terminal {
        self.vts[self.shown].terminal_mut()
    }

    /// input has sent keys.
    pub fn keys(&mut self, world: &mut impl World, events: &[Event]) {
        for event in events {
            let screen = self.vts[self.shown].terminal().screen();
            let modes = Modes {
                cursor_keys: screen.has(mode::CURSOR_KEYS),
                keypad: screen.has(mode::KEYPAD),
                new_line: screen.has(mode::NEW_LINE),
            };
            match self.keyboard.key(event.code, event.value, modes) {
                Effect::Nothing => {}
                Effect::Bytes(bytes, count) => {
                    self.vts[self.shown].type_in(&bytes[..count]);
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

    /// Gives all terminals the size of the screen.
    pub fn resize(&mut self, world: &mut impl World, size: Size) {
        for vt in &mut self.vts {
            if let Err(error) = vt.resize(size) {
                sys::log!("a terminal keeps its size: {error}");
            }
        }
        self.settle(world);
    }

    /// Carries out a request of tty or vfs.
    pub fn request(&mut self, world: &mut impl World, message: &Message, request: chardev::Request) {
        use chardev::Request;
        self.forget_stale(message);
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
            Request::Control(control) => self.control(message, &control),
            Request::Cancel(cancel) => return self.cancel(world, message.source, cancel.tag),
            _ => Err(Errno::ENOSYS),
        };
        match result {
            Ok(Some(value)) => world.answer(message, Ok(value)),
            Ok(None) => {}
            Err(error) => world.answer(message, Err(error)),
        }
        self.settle(world);
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

    /// Reads the picture of a terminal.
    fn read_picture(
        &mut self,
        world: &mut impl World,
        message: &Message,
        read: &chardev::Read,
    ) -> Result<u64, Errno> {
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
                writer.number(self.shown as u64);
                self.keyboard.save(writer);
                self.pictures.save(writer);
            }
            FIRST_LOG.. => self.vts[part - FIRST_LOG].save(writer),
            _ => self.vts[part].save_terminal(writer),
        }
    }

    fn show(&mut self, index: usize) {
        if index < TERMINALS && index != self.shown {
            self.shown = index;
            self.keyboard_changed = true;
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
        let vt = &mut self.vts[State::index(write.minor)?];
        let before = vt.already_shown(write.caller, write.bytes);
        let mut bytes = [0; CHUNK];
        let count = CHUNK.min((write.bytes - before) as usize);
        world.copy_in(message, write.grant, before, &mut bytes[..count])?;
        vt.write(&bytes[..count]);
        Ok(before + count as u64)
    }

    fn control(&mut self, message: &Message, control: &chardev::Control) -> Result<Option<u64>, Errno> {
        let index = State::index(control.minor)?;
        match control.request {
            console::WAIT_FOR_SIZE => self.wait(message, index, Need::Size(control.argument)),
            // A screen has no line to be set, and shows at once what it gets.
            chardev::serial::SET_LINE..=chardev::serial::SEND_NOW => Ok(Some(0)),
            _ => Err(Errno::ENOTTY),
        }
    }

    fn wait(&mut self, request: &Message, index: usize, need: Need) -> Result<Option<u64>, Errno> {
        if self.waiting.len() == WAITING {
            return Err(Errno::EAGAIN);
        }
        self.waiting.push_reserved(Waiting { request: *request, index, need });
        Ok(None)
    }

    fn forget_stale(&mut self, request: &Message) {
        self.waiting.retain(|Waiting { request: old, .. }| {
            let same_slot = old.source.slot() == request.source.slot();
            !(same_slot && (old.tag() == request.tag() || old.source != request.source))
        });
    }

    fn cancel(&mut self, world: &mut impl World, source: Endpoint, tag: u64) {
        let is_it = |waiting: &Waiting| waiting.request.source == source && waiting.request.tag() == tag;
        if let Some(at) = self.waiting.iter().position(is_it) {
            let waiting = self.waiting.remove(at);
            world.answer(&waiting.request, Err(Errno::EINTR));
        }
    }

    fn settle(&mut self, world: &mut impl World) {
        let mut index = 0;
        while index < self.waiting.len() {
            let waiting = self.waiting[index];
            match self.attempt(world, &waiting) {
                Some(result) => {
                    self.waiting.remove(index);
                    world.answer(&waiting.request, result);
                }
                None => index += 1,
            }
        }
    }

    fn attempt(&self, world: &mut impl World, waiting: &Waiting) -> Option<Result<u64, Errno>> {
        let vt = &self.vts[waiting.index];
        match waiting.need {
            Need::Input { grant, bytes } => {
                let mut buffer = [0; CHUNK];
                let count = vt.peek(&mut buffer[..bytes.min(CHUNK)]);
                let copied = || world.copy_out(&waiting.request, grant, &buffer[..count]).map(|()| count as u64);
                (count > 0).then(copied)
            }
            Need::Size(known) => {
                let Size { rows, columns } = vt.terminal().screen().size();
                let size = rows as u64 | (columns as u64) << 16;
                (size != known).then_some(Ok(size))
            }
        }
    }
}
