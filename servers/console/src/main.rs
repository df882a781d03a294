//! console: text on a screen, and keys into bytes: six virtual terminals.
//!
//! tty speaks to it as to a serial line (`abi::console`). Each terminal is an emulator whose state is preserved as a snapshot and the bytes shown
//! since; keys come from input by position. So every byte is shown once, and every key arrives once, whoever dies.
//!
//! * `parser`, `terminal`, `sequences`: bytes into changes of a `grid` of `cell`s, as Linux's console does it;
//! * `keymap`, `keyboard`: keys into bytes; `vt`: one terminal with what is preserved of it; `state`: all of them;
//! * `font`, `draw`: cells into pixels, in four rotations; `vcs`: pictures of text;
//! * `keys`: the task that reads from input; `world`: what the state needs from outside; this file: the start, and messages.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod cell;
mod draw;
mod font;
mod grid;
mod keyboard;
mod keymap;
mod keys;
mod parser;
mod pictures;
mod sequences;
mod state;
mod terminal;
#[cfg(test)]
mod terminal_tests;
mod vcs;
mod vt;
mod world;

use abi::input::{MINOR_KEYS, SET_LEDS};
use abi::{Endpoint, Errno, GrantId, Message, Name, chardev};
use alloc::rc::Rc;
use core::cell::RefCell;
use recover::records::Found;
use recover::snapshot::{Size, Snapshots};
use server::{Handlers, Peer, Runtime, Step};
use state::{PARTS, State};
use sys::keep::Keep;
use world::World;

sys::program!(main);

/// Limit of a part, in bytes: two grids of the largest size.
const PART_BYTES: usize = 2 * 8 * grid::MAX_ROWS * grid::MAX_COLUMNS + 4096;
/// Changes when the bytes of a part change their meaning.
const LAYOUT: u64 = 1;
/// `keep_bytes` of the system file is at least this.
const SIZE: Size = Size { parts: PARTS, part_bytes: PART_BYTES, notes: 0 };
/// Requests that input may hold: a read, and lights.
const WINDOW: usize = 4;

fn main(_: sys::Start) {
    let keep = Keep::take(SIZE.bytes()).expect("preserved memory is taken once");
    let (snapshots, found) = Snapshots::open_sized(keep, LAYOUT, SIZE);
    if found == Found::Damaged {
        sys::log!("the preserved state is damaged: all terminals are cleared");
    }
    let runtime = Runtime::new();
    let name = Name::new("input").expect("a short name");
    let input = Peer::connect(&runtime, name, WINDOW).expect("the system file has no input");
    let state = RefCell::new(State::restore(&snapshots));
    let console = Rc::new(Console { runtime: runtime.clone(), input, state, snapshots: RefCell::new(snapshots) });
    runtime.spawn(keys::receive(console.clone()));
    runtime.serve(Serving(console))
}

/// The service.
pub struct Console {
    runtime: Runtime,
    input: Peer,
    state: RefCell<State>,
    snapshots: RefCell<Snapshots>,
}

struct Serving(Rc<Console>);

impl Handlers for Serving {
    type Outcome = Message;

    fn request(&self, message: &Message) -> Step<Message> {
        match chardev::Request::decode(message) {
            Some(request) => self.0.state.borrow_mut().request(&mut Outside(&self.0), message, request),
            None => self.0.runtime.reply(message, &message.reply(Err(Errno::ENOSYS))),
        }
        Step::Later
    }

    fn reply(&self, reply: Message) -> Message {
        reply
    }

    fn before_sending(&self, _: impl Iterator<Item = (Endpoint, u64)>) {
        self.0.state.borrow_mut().preserve(&mut self.0.snapshots.borrow_mut());
    }
}

/// The real `World`.
pub struct Outside<'a>(&'a Console);

impl World for Outside<'_> {
    fn copy_out(&mut self, request: &Message, grant: GrantId, data: &[u8]) -> Result<(), Errno> {
        sys::copy::to_grant(request.source, grant, 0, data)
    }

    fn copy_in(&mut self, request: &Message, grant: GrantId, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        sys::copy::from_grant(request.source, grant, offset, buffer)
    }

    fn answer(&mut self, request: &Message, result: Result<u64, Errno>) {
        self.0.runtime.reply(request, &request.reply(result));
    }

    fn set_lights(&mut self, lights: u8) {
        let (minor, grant, argument) = (MINOR_KEYS, GrantId::NONE, lights.into());
        let control = chardev::Control { minor, request: SET_LEDS, argument, grant, caller: 0, session: 0 };
        self.0.input.tell(control.message());
    }
}
