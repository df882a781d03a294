//! NAME: a character device, /dev/NAME. Each opening is counted, and reads its number once.
//!
//! * `device`: what the device does, testable on the host; this file: messages.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

mod device;

use abi::Errno;
use abi::chardev::{Open, Read, Write};
use device::Device;
use driver::Client;
use driver::chardev::{Answers, CharDriver, Held};

sys::program!(main);

fn main(_: sys::Start) {
    driver::chardev::serve(Driver { device: Device::default() });
}

struct Driver {
    device: Device,
}

impl CharDriver for Driver {
    fn open(&mut self, request: &Open) -> Result<u64, Errno> {
        // One device has the minor number 0; a driver of several tells them apart here.
        if request.minor != 0 {
            return Err(Errno::ENXIO);
        }
        self.device.open();
        Ok(0)
    }

    fn read(&mut self, held: Held, _: &Read, client: Client, answers: &mut Answers) {
        let (line, length) = self.device.read(client.bytes());
        // An answer need not be given now: a driver that waits for its device keeps `held`.
        answers.give(held, client.put(0, &line[..length]).map(|()| length as u64));
    }

    fn write(&mut self, held: Held, _: &Write, _: Client, answers: &mut Answers) {
        answers.give(held, Err(Errno::EINVAL));
    }
}
