//! The task that reads keys from input, by position: each key once and in order.

use crate::{Console, Outside};
use abi::input::{EVENT_BYTES, Event, MINOR_KEYS};
use abi::{Endpoint, Errno, chardev};
use alloc::rc::Rc;
use alloc::vec::Vec;
use server::Repeat;
use sys::grant::{Access, GrantedBuffer};

/// Events of one read.
const CHUNK: usize = 32;
/// How often to look for input at boot.
const POLL_NS: u64 = 1_000_000;
/// Back-off after an error.
const ERROR_PAUSE_NS: u64 = 100_000_000;

/// Reads keys for ever.
pub async fn receive(console: Rc<Console>) {
    while console.input.endpoint() == Endpoint::NONE {
        console.runtime.sleep_ns(POLL_NS).await;
    }
    loop {
        let caller = console.state.borrow().position;
        match read(&console, caller).await {
            Ok(records) => {
                let mut events = [Event::default(); CHUNK];
                let count = records.len() / EVENT_BYTES;
                for (event, record) in events.iter_mut().zip(records.as_chunks().0) {
                    *event = Event::from_bytes(record);
                }
                console.state.borrow_mut().keys(&mut Outside(&console), &events[..count]);
            }
            Err(error) => {
                sys::log!("keys not read: {error}");
                console.runtime.sleep_ns(ERROR_PAUSE_NS).await;
            }
        }
    }
}

#[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "one at a time: from the heap's reserve")]
async fn read(console: &Console, caller: u64) -> Result<Vec<u8>, Errno> {
    let bytes = CHUNK * EVENT_BYTES;
    let input = Endpoint::current(console.input.endpoint().slot());
    let buffer = GrantedBuffer::new(alloc::vec![0; bytes], input, Access::Write).expect("console may grant");
    let read = chardev::Read { minor: MINOR_KEYS, grant: buffer.id(), bytes: bytes as u64, flags: 0, caller };
    let count = console.input.request(read.message(), Repeat::Yes).await.and_then(|reply| reply.result())?;
    let mut records = buffer.take();
    records.truncate((count as usize).min(bytes));
    Ok(records)
}
