//! The drivers: which device each event number stands for, and the tasks that read their events.
//!
//! The argument `eventN=DRIVER,MINOR` of the system file says whose device N is. A driver that the machine has no device for is never up,
//! and its device stays absent.

use crate::Input;
use crate::state::DEVICES;
use abi::input::{DESCRIBE, DESCRIPTION_BYTES, Description, EVENT_BYTES, Event, SET_LEDS};
use abi::{Endpoint, Errno, GrantId, Name, chardev};
use alloc::rc::Rc;
use alloc::vec::Vec;
use server::{Peer, Repeat, Runtime};
use sys::fallible;
use sys::grant::{Access, GrantedBuffer};

/// Events of one read.
const CHUNK: usize = 16;
/// Requests that a driver may hold: a read of each of its devices, and lights.
const WINDOW: usize = 8;
/// Back-off after an error of a driver.
const ERROR_PAUSE_NS: u64 = 100_000_000;
const KEYS: [&str; DEVICES] = ["event0", "event1", "event2", "event3", "event4", "event5", "event6", "event7"];

/// A device of a driver.
struct Source {
    driver: Peer,
    minor: u64,
}

/// See the head of the file.
pub struct Sources(Vec<Option<Source>>);

impl Sources {
    /// Connects to the drivers that the arguments name.
    ///
    /// # Panics
    /// When an argument makes no sense, or names a service that the system does not have.
    pub fn connect(runtime: &Runtime, start: &sys::Start) -> Sources {
        let mut peers: Vec<Peer> = Vec::new();
        let mut source = |key: &str| {
            let (name, minor) = start.argument(key)?.split_once(',').expect("eventN=DRIVER,MINOR");
            let name = Name::new(name).expect("a short name");
            let driver = peers.iter().find(|peer| peer.name() == name).cloned();
            let driver = driver.unwrap_or_else(|| add(&mut peers, runtime, name));
            Some(Source { driver, minor: minor.parse().expect("the minor is a number") })
        };
        let sources = KEYS.into_iter().map(&mut source);
        Sources(fallible::collect(sources).expect("input starts with memory for its drivers"))
    }

    /// The devices that drivers have.
    pub fn devices(&self) -> impl Iterator<Item = usize> {
        (0..DEVICES).filter(|index| self.0[*index].is_some())
    }

    /// Tells a driver the lights of its device.
    pub fn set_lights(&self, device: usize, lights: u32) {
        if let Some(Source { driver, minor }) = &self.0[device] {
            driver.tell(control(*minor, SET_LEDS, lights.into(), GrantId::NONE).message());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "at the start")]
fn add(peers: &mut Vec<Peer>, runtime: &Runtime, name: Name) -> Peer {
    let peer = Peer::connect(runtime, name, WINDOW).expect("the system file has no such driver");
    peers.push(peer.clone());
    peer
}

/// Starts a task for each device.
pub fn start(input: &Rc<Input>) {
    for index in 0..DEVICES {
        if input.sources.0[index].is_some() {
            input.runtime.spawn(receive(input.clone(), index));
        }
    }
}

async fn receive(input: Rc<Input>, index: usize) {
    let Some(Source { driver, minor }) = &input.sources.0[index] else { return };
    // A grant needs the driver's endpoint, and this waits until there is one.
    let open = chardev::Open { minor: *minor, flags: 0, caller: 0, session: 0, ids: 0, node: 0 };
    let opened = driver.request(open.message(), Repeat::Yes).await.and_then(|reply| reply.result());
    if opened.is_err() {
        return;
    }
    match describe(driver, *minor).await {
        Ok(description) => input.with(|state, _| state.describe(index, description)),
        Err(error) => return sys::log!("{},{minor}: description refused: {error}", driver.name()),
    }
    loop {
        let caller = input.state.borrow().devices[index].position;
        match read(driver, *minor, caller).await {
            Ok(records) => {
                let mut events = [Event::default(); CHUNK];
                let count = records.len() / EVENT_BYTES;
                events
                    .iter_mut()
                    .zip(records.as_chunks().0)
                    .for_each(|(event, record)| *event = Event::from_bytes(record));
                input.with(|state, world| state.take_in(world, index, &events[..count.min(CHUNK)]));
            }
            Err(Errno::ENXIO) => return,
            Err(error) => {
                sys::log!("{},{minor}: read failed: {error}", driver.name());
                input.runtime.sleep_ns(ERROR_PAUSE_NS).await;
            }
        }
    }
}

async fn describe(driver: &Peer, minor: u64) -> Result<Description, Errno> {
    let buffer = grant(driver, DESCRIPTION_BYTES);
    let request = control(minor, DESCRIBE, 0, buffer.id());
    driver.request(request.message(), Repeat::Yes).await.and_then(|reply| reply.result())?;
    let bytes = buffer.take();
    bytes.first_chunk().map(Description::from_bytes).ok_or(Errno::EPROTO)
}

/// Reads events behind the first `caller` ones.
async fn read(driver: &Peer, minor: u64, caller: u64) -> Result<Vec<u8>, Errno> {
    let bytes = CHUNK * EVENT_BYTES;
    let buffer = grant(driver, bytes);
    let read = chardev::Read { minor, grant: buffer.id(), bytes: bytes as u64, flags: 0, caller };
    let count = driver.request(read.message(), Repeat::Yes).await.and_then(|reply| reply.result())?;
    let mut records = buffer.take();
    records.truncate((count as usize).min(bytes));
    Ok(records)
}

/// Grants a new buffer to a driver, whichever incarnation.
#[expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "one for each device: from the heap's reserve"
)]
fn grant(driver: &Peer, bytes: usize) -> GrantedBuffer {
    let driver = Endpoint::current(driver.endpoint().slot());
    GrantedBuffer::new(alloc::vec![0; bytes], driver, Access::Write).expect("input may grant")
}

fn control(minor: u64, request: u64, argument: u64, grant: GrantId) -> chardev::Control {
    chardev::Control { minor, request, argument, grant, caller: 0, session: 0 }
}
