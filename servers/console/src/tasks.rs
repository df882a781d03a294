//! The tasks: one reads keys from input by position, each once and in order; one follows the screen's driver; one draws.

use crate::display::{News, PICTURE_NS};
use crate::service::Console;
use abi::input::{EVENT_BYTES, Event, MINOR_KEYS};
use abi::{Endpoint, Errno, chardev};
use alloc::rc::Rc;
use alloc::vec::Vec;
use server::Repeat;
use sys::grant::{Access, GrantedBuffer};

/// Events of one read.
const CHUNK: usize = 32;
/// Back-off after an error.
const ERROR_PAUSE_NS: u64 = 100_000_000;

/// Starts all.
pub fn start(console: &Rc<Console>) {
    console.runtime.spawn(receive(console.clone()));
    console.runtime.spawn(follow(console.clone()));
    console.runtime.spawn(draw(console.clone()));
}

/// Keeps to the driver's picture for ever.
async fn follow(console: Rc<Console>) {
    let display = console.display();
    loop {
        display.wait_for_news().await;
        match display.attach().await {
            Ok(News::None) => {}
            Ok(News::Moved) => console.with(|state, _| state.draw_all()),
            Ok(News::Picture) => {
                let size = display.size().expect("it is attached");
                let mut fits = false;
                console.with(|state, world| fits = state.attached(world, size));
                while !fits {
                    console.runtime.sleep_ns(ERROR_PAUSE_NS).await;
                    console.with(|state, world| fits = state.attached(world, size));
                }
            }
            // There is no screen.
            Err(Errno::EDEADSRCDST) => {}
            Err(error) => {
                sys::log!("the screen is not drawn on: {error}");
                console.runtime.sleep_ns(ERROR_PAUSE_NS).await;
                display.look_again();
            }
        }
    }
}

/// Draws for ever.
async fn draw(console: Rc<Console>) {
    loop {
        console.display().wait_for_change().await;
        console.draw();
        console.runtime.sleep_ns(PICTURE_NS).await;
    }
}

/// Reads keys for ever.
async fn receive(console: Rc<Console>) {
    // A grant needs its endpoint: whatever the answer, it came from there.
    let open = chardev::Open { minor: MINOR_KEYS, flags: 0, caller: 0, session: 0, ids: 0, node: 0 };
    let _ = console.input.request(open.message(), Repeat::Yes).await;
    loop {
        let caller = console.position();
        match read(&console, caller).await {
            Ok(records) => {
                let mut events = [Event::default(); CHUNK];
                let count = records.len() / EVENT_BYTES;
                for (event, record) in events.iter_mut().zip(records.as_chunks().0) {
                    *event = Event::from_bytes(record);
                }
                console.with(|state, world| state.keys(world, &events[..count]));
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
