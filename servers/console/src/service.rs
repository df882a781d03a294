//! The service: the terminals, what is preserved of them, and what they need from outside.

use crate::display::Display;
use crate::draw::Rotation;
use crate::loaded::Loaded;
use crate::state::State;
use crate::world::World;
use abi::console::TERMINALS;
use abi::display::{self, CHANGE_ROTATION, Change};
use abi::input::{MINOR_KEYS, SET_LEDS};
use abi::{Errno, GrantId, Message, chardev, info};
use core::cell::RefCell;
use recover::snapshot::Snapshots;
use server::{Callers, OnRuntime, Peer, Runtime};
use sys::keep::Keep;

/// The service.
pub struct Console {
    pub runtime: Runtime,
    pub input: Peer,
    display: Display,
    state: RefCell<State>,
    snapshots: RefCell<Snapshots>,
}

impl Console {
    /// The terminals as a predecessor has left them in `snapshots`, and the lines that have left them in `histories`.
    pub fn new(
        runtime: Runtime,
        input: Peer,
        display: Display,
        snapshots: Snapshots,
        histories: [Keep; TERMINALS],
    ) -> Console {
        let state = RefCell::new(State::restore(&snapshots, histories));
        Console { runtime, input, display, state, snapshots: RefCell::new(snapshots) }
    }

    /// The screen.
    pub fn display(&self) -> &Display {
        &self.display
    }

    /// Events received from input since boot.
    pub fn position(&self) -> u64 {
        self.state.borrow().position
    }

    /// Saves what the turn has changed.
    pub fn preserve(&self) {
        self.state.borrow_mut().preserve(&mut self.snapshots.borrow_mut());
    }

    /// Draws what differs from what is on the screen.
    pub fn draw(&self) {
        self.display.draw(&mut self.state.borrow_mut());
    }

    /// Turns text as a predecessor has had it, and has it in that font.
    pub fn draw_as_before(&self) {
        if let Some(rotation) = self.state.borrow().rotation() {
            self.display.turn(rotation);
        }
        self.set_font();
    }

    /// Has text drawn in the font that was loaded, if one was.
    fn set_font(&self) {
        let font = self.state.borrow().font().map(Loaded::font).transpose();
        match font {
            Ok(font) => self.display.set_font(font),
            Err(error) => sys::log!("the font stays as it is: {error}"),
        }
    }

    /// What procfs asks for /sys/class/graphics/fbcon.
    pub fn screen_request(&self, message: &Message) {
        let result = match display::Request::decode(message) {
            Some(display::Request::Describe(_)) => Ok(self.display.rotation().number() << 8),
            Some(display::Request::Change(Change { what: CHANGE_ROTATION, value })) => {
                Rotation::with_number(value).ok_or(Errno::EINVAL).map(|rotation| {
                    self.state.borrow_mut().turn(rotation);
                    self.display.turn(rotation);
                    0
                })
            }
            Some(display::Request::Change(_)) => Err(Errno::EINVAL),
            _ => Err(Errno::ENOSYS),
        };
        self.with(|_, world| world.answer(message, result));
    }

    /// Does something with the state, and has drawn what it changes on the screen.
    pub fn with(&self, act: impl FnOnce(&mut State, &mut Outside)) {
        let mut state = self.state.borrow_mut();
        act(&mut state, &mut Outside(self));
        let (has_redraw, has_font) = (state.take_redraw(), core::mem::take(&mut state.has_other_font));
        drop(state);
        if has_font {
            self.set_font();
        }
        if has_redraw {
            self.display.change();
        }
    }
}

/// The real `World`.
pub struct Outside<'a>(&'a Console);

impl OnRuntime for Outside<'_> {
    fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }
}

impl World for Outside<'_> {
    fn kernel_log(&mut self, buffer: &mut [u8]) -> usize {
        sys::info::get_bytes(info::LOG, 0, buffer).unwrap_or(0)
    }

    fn usual_font(&self) -> &'static [u8] {
        self.0.display.usual_font()
    }

    fn set_lights(&mut self, lights: u8) {
        let (minor, grant, argument) = (MINOR_KEYS, GrantId::NONE, lights.into());
        let control = chardev::Control { minor, request: SET_LEDS, argument, grant, caller: 0, session: 0 };
        self.0.input.tell(control.message());
    }
}
