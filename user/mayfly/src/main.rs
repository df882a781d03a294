//! `mayfly`: a service for tests of rs. Its argument `role` determines its behaviour:
//!
//! * `counts`: counts its incarnations in ds, logs the number under the name in its argument `name`, and serves;
//! * `fails`: reports that its initialisation failed;
//! * `crashes`: reports ready, and crashes at its first message (a heartbeat suffices).
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

use abi::{Errno, Message, Name};
use sys::{Start, StartKind};

/// Key of the number of incarnations in ds.
const KEY: Name = match Name::new("starts") {
    Some(name) => name,
    None => panic!("the key is too long"),
};

sys::program!(main);

fn main(start: Start) {
    match start.argument("role") {
        Some("counts") => {
            count(start.argument("name").unwrap_or("mayfly"), start.kind);
            server::run(&mut Patient)
        }
        Some("fails") => {
            sys::log!("fails, start kind {:?}", start.kind);
            server::not_ready(Errno::EIO)
        }
        Some("crashes") => {
            sys::log!("crashes soon, start kind {:?}", start.kind);
            server::run(&mut Dying)
        }
        role => panic!("expected role=counts, fails or crashes among the arguments, not {role:?}"),
    }
}

/// Counts this incarnation. Returns the total.
fn count(name: &str, kind: StartKind) {
    let mut number = [0; 8];
    let known = recover::values::retrieve(KEY, &mut number).expect("ds tells what it keeps");
    let starts = known.map_or(0, |_| u64::from_le_bytes(number)) + 1;
    recover::values::store(KEY, &starts.to_le_bytes()).expect("ds keeps a number");
    sys::log!("{name}: start {starts}, {kind:?}");
}

/// Serves forever, without any request.
struct Patient;

impl server::Service for Patient {
    fn request(&mut self, message: &Message) -> server::SyncStep<Message> {
        server::SyncStep::Done(message.reply(Err(Errno::ENOSYS)))
    }
}

/// Crashes at its first message.
struct Dying;

impl server::Service for Dying {
    fn request(&mut self, _: &Message) -> server::SyncStep<Message> {
        panic!("a message has come")
    }

    fn notified(&mut self, _: abi::Endpoint) {
        panic!("a heartbeat has come")
    }
}
