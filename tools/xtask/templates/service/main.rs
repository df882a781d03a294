//! NAME: a service that counts how often it was asked, and says so to whoever asks.
//!
//! Its one message has no name for others yet: a protocol that others speak goes into abi/src/NAME.rs.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

use abi::{Errno, Message};
use server::Service;

sys::program!(main);

/// Label of the request for the count.
const COUNT: u32 = 0x70_0001;

fn main(_: sys::Start) {
    server::run(&mut Counter::default());
}

/// The state of the service. It is gone when the service dies: docs/book/recovery.md tells how to keep it.
#[derive(Default)]
struct Counter {
    asked: u64,
}

impl Service for Counter {
    fn request(&mut self, message: &Message) -> Option<Message> {
        let result = match message.label {
            COUNT => {
                self.asked += 1;
                Ok(self.asked)
            }
            _ => Err(Errno::ENOSYS),
        };
        Some(message.reply(result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(counter: &mut Counter, label: u32) -> Result<u64, Errno> {
        counter.request(&Message::new(label)).expect("is answered at once").result()
    }

    #[test]
    fn requests_are_counted() {
        let mut counter = Counter::default();
        assert_eq!(ask(&mut counter, COUNT), Ok(1));
        assert_eq!(ask(&mut counter, COUNT), Ok(2));
    }

    #[test]
    fn an_unknown_request_is_refused() {
        assert_eq!(ask(&mut Counter::default(), 0x70_0002), Err(Errno::ENOSYS));
    }
}
