//! devfs: the directory /dev, and the random devices and the kernel's log behind some of its nodes.
//!
//! vfs speaks `fs` to it for the directory and `chardev` for these devices. All other devices have drivers of their own. The
//! system file declares them all.
//!
//! * `nodes`: the directory; `kept`: what of it outlives the process; `memory`: the devices; this file: messages.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod kept;
mod memory;
mod nodes;

use abi::{Errno, Message, chardev};
use fs::file_system::Timestamp;
use fs::preserve::VolumeMemory;
use fs::server::{MountRequest, Server};
use memory::MemoryDevices;
use nodes::Devices;
use server::{Service, SyncStep};
use sys::keep::Keep;

sys::program!(main);

fn main(start: sys::Start) {
    const SECOND_NS: u64 = 1_000_000_000;
    let now_ns = sys::time::real_ns();
    let now = Timestamp { seconds: (now_ns / SECOND_NS) as i64, nanos: (now_ns % SECOND_NS) as u32 };
    let keep = Keep::take(kept::BYTES).expect("the preserved memory is taken once");
    // Every mount shows the same directory, which is there already.
    let mount = |_: &MountRequest, _: Option<VolumeMemory>| Err(Errno::ENODEV);
    let directory = Server::mounted([Devices::new(start.arguments, keep, now)], mount);
    server::run(&mut DevFs { directory, devices: MemoryDevices::new(sys::random::seed()) });
}

struct DevFs<M> {
    directory: Server<Devices, M>,
    devices: MemoryDevices,
}

impl<M: FnMut(&MountRequest, Option<VolumeMemory>) -> Result<Devices, Errno>> Service for DevFs<M> {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        match chardev::Request::decode(message) {
            Some(request) => self.devices.answer(message.source, request).map(|result| message.reply(result)).into(),
            None => self.directory.request(message),
        }
    }

    fn alarm(&mut self, now_ns: u64) {
        self.directory.alarm(now_ns);
    }
}
