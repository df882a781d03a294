//! input: gathers the events of keyboards, pointers and touch screens from their drivers, for programs (evdev: /dev/input/event*, and
//! /dev/input/mice) and for console (`abi::input`).
//!
//! Everything that is known of devices and open files is saved at the end of each turn, before its replies leave, all of it or nothing. A
//! driver keeps its events until input has saved them, and a read that is repeated gets what it was given before: so each event reaches
//! each reader once and in order, whoever dies.
//!
//! * `device`: what passes of a device's events; `queue`: what an open evdev file has not read; `mice`: the PS/2 mouse made of all;
//! * `keys`: what console reads; `handle`: open files; `ioctl`: those of evdev; `state`: all of it, and requests that wait;
//! * `source`: the tasks that read from drivers; `world`: what the state needs from outside; this file: the start, and messages.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod device;
mod handle;
mod ioctl;
mod keys;
mod mice;
mod queue;
mod source;
mod state;
#[cfg(test)]
mod state_tests;
mod world;

use abi::{Endpoint, Errno, Message, chardev};
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use recover::records::Found;
use recover::snapshot::{Size, Snapshots};
use server::{Handlers, OnRuntime, Runtime, Step};
use source::Sources;
use state::{KEYS_PART, PARTS, State};
use sys::keep::Keep;
use world::World;

sys::program!(main);

/// Limit of a part, in bytes: the keys for console, and full queues of an open file.
const PART_BYTES: usize = 4608;
/// Changes when the bytes of a part change their meaning.
const LAYOUT: u64 = 1;
/// `keep_bytes` of the system file is at least this.
const SIZE: Size = Size::equal(PARTS, PART_BYTES);

fn main(start: sys::Start) {
    let keep = Keep::take(SIZE.bytes()).expect("preserved memory is taken once");
    let (mut snapshots, found) = Snapshots::open_sized(keep, LAYOUT, SIZE);
    if found == Found::Damaged {
        sys::log!("the preserved state is damaged: all open files of input devices are closed");
    }
    let runtime = Runtime::new();
    let state = State::restore(&snapshots);
    let sources = Sources::connect(&runtime, &start);
    // What a key changes is saved once into each of its two places, so that no key waits for the memory of one.
    for _ in 0..2 {
        snapshots.save(sources.devices().chain([KEYS_PART]), |part, writer| state.save(part, writer));
    }
    let input = Rc::new(Input {
        runtime: runtime.clone(),
        state: RefCell::new(state),
        sources,
        snapshots: RefCell::new(snapshots),
        deadline_ns: Cell::new(None),
    });
    source::start(&input);
    runtime.serve(Serving(input))
}

/// The service.
pub struct Input {
    runtime: Runtime,
    state: RefCell<State>,
    sources: Sources,
    snapshots: RefCell<Snapshots>,
    /// For which repeat of a key a task sleeps.
    deadline_ns: Cell<Option<u64>>,
}

impl Input {
    /// Does something with the state, then sees to the key that is repeated next.
    pub fn with(self: &Rc<Self>, act: impl FnOnce(&mut State, &mut Outside)) {
        act(&mut self.state.borrow_mut(), &mut Outside(self));
        self.watch_repeats();
    }

    /// Sleeps until a key is to be repeated, if no task does so already.
    fn watch_repeats(self: &Rc<Self>) {
        let deadline = self.state.borrow().deadline_ns();
        if deadline == self.deadline_ns.replace(deadline) {
            return;
        }
        if let Some(deadline_ns) = deadline {
            let input = self.clone();
            self.runtime.spawn(async move {
                input.runtime.sleep_until(deadline_ns).await;
                input.state.borrow_mut().repeat(&mut Outside(&input));
                input.watch_repeats();
            });
        }
    }
}

struct Serving(Rc<Input>);

impl Handlers for Serving {
    type Outcome = Message;

    fn request(&self, message: &Message) -> Step<Message> {
        match chardev::Request::decode(message) {
            Some(request) => self.0.with(|state, world| state.request(world, message, request)),
            None => self.0.runtime.reply(message, &message.reply(Err(Errno::ENOSYS))),
        }
        Step::Later
    }

    fn reply(&self, reply: Message) -> Message {
        reply
    }

    fn before_sending(&self, _: impl Iterator<Item = (Endpoint, u64)>) {
        let input = &self.0;
        let mut parts = input.state.borrow_mut().take_dirty().peekable();
        if parts.peek().is_some() {
            let state = input.state.borrow();
            input.snapshots.borrow_mut().save(parts, |part, writer| state.save(part, writer));
        }
    }
}

/// The real `World`.
pub struct Outside<'a>(&'a Rc<Input>);

impl OnRuntime for Outside<'_> {
    fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }
}

impl World for Outside<'_> {
    fn set_lights(&mut self, device: usize, lights: u32) {
        self.0.sources.set_lights(device, lights);
    }

    fn now_ns(&self) -> u64 {
        sys::time::now_ns()
    }

    fn real_ns(&self) -> u64 {
        sys::time::real_ns()
    }
}
