//! console: text on a screen, and keys into bytes: six virtual terminals.
//!
//! tty speaks to it as to a serial line (`abi::console`). Each terminal is an emulator whose state is preserved as a snapshot and the bytes shown
//! since; keys come from input by position. So every byte is shown once, and every key arrives once, whoever dies.
//!
//! * `parser`, `terminal`, `sequences`: bytes into changes of a `grid` of `cell`s, as Linux's console does it;
//! * `keymap`, `compose`, `keyboard`: keys into bytes; `vt`: one terminal with what is preserved of it; `state`: all of them;
//! * `history`: lines that have left a screen; `font`, `loaded`, `draw`: cells into pixels, in four rotations; `display`: the screen itself; `vcs`, `pictures`: pictures of text;
//! * `switch`: whose decision it is that another terminal is shown; `ioctl`, `key_tables`: what programs ask of a terminal (ioctl_console(2)); `world`: what the state needs from outside; `service`: all together;
//! * `tasks`: what reads keys, follows the screen and draws; this file: the start, and messages.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod cell;
mod compose;
mod display;
mod draw;
mod font;
mod grid;
mod history;
mod ioctl;
mod key_tables;
mod keyboard;
mod keymap;
mod loaded;
mod parser;
mod pictures;
mod sequences;
mod service;
mod state;
mod switch;
mod tasks;
mod terminal;
#[cfg(test)]
mod terminal_tests;
mod vcs;
mod vt;
mod world;

use abi::console::TERMINALS;
use abi::kernel::Notify;
use abi::{Endpoint, Message, Name, chardev};
use alloc::rc::Rc;
use display::{Display, Style};
use recover::records::Found;
use recover::snapshot::{Size, Snapshots};
use server::{Handlers, Peer, Runtime, Step};
use service::Console;
use state::{LARGE_PARTS, PARTS};
use sys::keep::Keep;

sys::program!(main);

/// Limit of a part, in bytes: two grids of the largest size.
const PART_BYTES: usize = 2 * 8 * grid::MAX_ROWS * grid::MAX_COLUMNS + 4096;
/// Limit of the other parts: full input and the longest log of a terminal, or the keyboard's tables.
const SMALL_PART_BYTES: usize = 24 << 10;
/// Changes when the bytes of a part change their meaning.
const LAYOUT: u64 = 5;
/// `keep_bytes` of the system file is at least this and the lines of the past.
const SIZE: Size = Size {
    parts: LARGE_PARTS,
    part_bytes: PART_BYTES,
    small_parts: PARTS - LARGE_PARTS,
    small_part_bytes: SMALL_PART_BYTES,
    notes: 0,
};
/// Requests that input may hold: a read, and lights; those of the screen's driver are fewer.
const WINDOW: usize = 4;

fn main(start: sys::Start) {
    let mut keep = Keep::take(SIZE.bytes() + TERMINALS * history::BYTES).expect("preserved memory is taken once");
    let mut past = keep.split_off(SIZE.bytes());
    let histories = core::array::from_fn(|_| {
        let rest = past.split_off(history::BYTES);
        core::mem::replace(&mut past, rest)
    });
    let (snapshots, found) = Snapshots::open_sized(keep, LAYOUT, SIZE);
    if found == Found::Damaged {
        sys::log!("the preserved state is damaged: all terminals are cleared");
    }
    let runtime = Runtime::new();
    let screen = start.argument("screen").unwrap_or("framebuffer");
    let [input, screen] = ["input", screen].map(|name| {
        let name = Name::new(name).expect("a short name");
        Peer::connect(&runtime, name, WINDOW).expect("the system file has no input or no driver of a screen")
    });
    let display = Display::new(screen, Style::of(&start));
    let console = Rc::new(Console::new(runtime.clone(), input, display, snapshots, histories));
    console.draw_as_before();
    tasks::start(&console);
    runtime.serve(Serving(console))
}

struct Serving(Rc<Console>);

impl Handlers for Serving {
    type Outcome = Message;

    fn request(&self, message: &Message) -> Step<Message> {
        match chardev::Request::decode(message) {
            Some(request) => self.0.with(|state, world| state.request(world, message, request)),
            None => self.0.screen_request(message),
        }
        Step::Later
    }

    fn reply(&self, reply: Message) -> Message {
        reply
    }

    fn notified(&self, from: Endpoint, _: Notify) {
        self.0.display().notified(from);
    }

    fn before_sending(&self, _: impl Iterator<Item = (Endpoint, u64)>) {
        self.0.preserve();
    }
}
