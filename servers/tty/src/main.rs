//! tty: terminals. Line discipline, job control and window size, over the serial lines that uart drives and in pseudo-terminals.
//!
//! vfs speaks `chardev` to it, and `fs` for /dev/pts; pm fetches signals with `tty::NextEvent`. Each serial terminal has tasks that move
//! bytes from and to uart; everything else happens within the handling of one message. tty waits for nobody but vfs, to take a reply.
//!
//! Terminals survive this process: snapshots of them are in preserved memory, `ledger` knows repeated requests, and vfs repeats those
//! that waited.
//!
//! * `terminal`, `control`: a terminal and its ioctls; `discipline`, `output`, `termios`: what they are made of;
//! * `pty`, `ptys`: pseudo-terminals; `packets`: their packet mode; `devpts`: their nodes;
//! * `line`: the tasks that speak with uart; `serial`: their commands besides bytes;
//! * `ledger`: results of requests, for a successor; `saved`: what is preserved;
//! * `signals`: what pm has not fetched yet; `world`: what a terminal needs from outside;
//! * `state`: all of it; `device`: requests of vfs; `pm`: those of pm; this file: the start, and what messages are for.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod arrivals;
mod control;
mod device;
mod devpts;
mod discipline;
mod ledger;
mod line;
mod output;
mod packets;
mod pm;
mod pty;
mod ptys;
mod saved;
mod screen;
mod serial;
mod signals;
mod state;
mod terminal;
mod termios;
mod waiting;
mod world;

use abi::endpoint::slot;
use abi::kernel::Notify;
use abi::{Endpoint, Errno, Message, Name, chardev, tty};
use alloc::rc::Rc;
use core::cell::RefCell;
use devpts::DevPts;
use fs::{preserve::VolumeMemory, server::MountRequest, server::Server};
use serial::TERMINALS;
use server::{Handlers, Peer, Runtime, Service, Step};
use state::Tty;

sys::program!(main);

/// Requests that uart and console may hold: a read and a write of each terminal, and its size; and the signals of switches.
const WINDOW: usize = 3 * TERMINALS + 1;

fn main(_: sys::Start) {
    let runtime = Runtime::new();
    let [uart, console] = ["uart", "console"].map(|name| {
        let name = Name::new(name).expect("a short name");
        Peer::connect(&runtime, name, WINDOW).expect("the system file has no uart or no console")
    });
    let tty = Rc::new(Tty::new(runtime.clone(), uart, console, saved::open()));
    for index in 0..TERMINALS {
        line::start(&tty, index);
    }
    screen::start(&tty);
    tty.tell_pm();
    // Every mount shows the same directory, which is there already.
    let mount: Mount = |_, _| Err(Errno::ENODEV);
    let directory = RefCell::new(Server::mounted([DevPts::new(tty.clone(), sys::time::real_ns())], mount));
    tty.clone().runtime.serve(Serving { tty, directory })
}

type Mount = fn(&MountRequest, Option<VolumeMemory>) -> Result<DevPts, Errno>;

/// What messages are for: the terminals, or the directory of pseudo-terminals.
struct Serving {
    tty: Rc<Tty>,
    directory: RefCell<Server<DevPts, Mount>>,
}

impl Handlers for Serving {
    type Outcome = Message;

    fn request(&self, message: &Message) -> Step<Message> {
        if abi::fs::Request::decode(message).is_some() {
            return self.directory.borrow_mut().request(message).done().into();
        }
        if let Some(request) = tty::Request::decode(message) {
            self.tty.pm_request(message, request);
        } else if let Some(request) = chardev::Request::decode(message) {
            self.tty.device_request(message, request);
        } else {
            self.tty.answer(message, Err(Errno::ENOSYS));
        }
        Step::Later
    }

    fn reply(&self, reply: Message) -> Message {
        reply
    }

    fn notified(&self, from: Endpoint, _: Notify) {
        if from.slot() == slot::RS {
            self.tty.trim();
        }
    }

    fn before_sending(&self, _: impl Iterator<Item = (Endpoint, u64)>) {
        self.tty.preserve();
    }
}
