//! A simulated machine for tests: real services, each on a host thread of its own, and programs that the test simulates.
//!
//! The machine replaces the kernel: messages, notifications, grants, copies, the clock, preserved memory. One service
//! runs at a time; when it waits, the one that became ready first runs next. So tests are deterministic, and
//! [`Machine::run`] returns exactly when every service waits. Programs have no code: a test makes their calls
//! ([`Machine::ask`]) and reads and writes their memory.
//!
//! Not simulated: priorities, deadlock detection, call masks. Neighbours: `host` (where the calls of a thread arrive), `state` (what the
//! machine knows), `memory` (how it copies).

mod memory;
mod state;

use super::Kernel;
use crate::Result;
use abi::call::{self, KernelCall};
use abi::info;
use abi::kernel::Notify;
use abi::{Endpoint, Errno, GrantId, Message, Word};
use memory::{Side, Use};
use state::{Sent, State, Then};
use std::any::Any;
use std::boxed::Box;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::string::String;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::vec::Vec;

/// Real time when the machine starts, in nanoseconds since 1970.
pub const START_REAL_NS: u64 = 1_000_000_000_000_000_000;

/// Memory of a simulated service, in bytes.
const PLAYED_BYTES: u64 = 64 * 1024;

/// Unwinds the thread of a service that has been killed.
struct Killed;

/// See the head of the file.
#[derive(Default)]
pub struct Machine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Signalled when the processor has passed to no service, or one has failed: for the test.
    idle: Condvar,
}

impl Machine {
    /// Starts a service in `slot`; it takes its first step in the next [`Machine::run`]. A second service in the same slot is the
    /// successor of the first: it has the next generation and finds the preserved memory.
    pub fn start(&mut self, slot: usize, main: impl FnOnce(Endpoint) + Send + 'static) -> Endpoint {
        let turn = Arc::new(Condvar::new());
        let endpoint = self.shared.lock().add_service(slot, turn.clone());
        let trap = Trap { shared: self.shared.clone(), endpoint, turn };
        self.threads.push(std::thread::spawn(move || serve(trap, main)));
        endpoint
    }

    /// Kills a service wherever it waits. Clients that wait for its reply get `EDEADSRCDST`; calls of programs stay without a reply.
    pub fn kill(&mut self, service: Endpoint) {
        self.shared.lock().remove_service(service);
    }

    /// Copies from or to this memory of a service fail; of no other any more.
    pub fn unmap(&self, memory: Range<u64>) {
        self.shared.lock().unmapped = memory;
    }

    /// Makes a program with zeroed memory at these addresses.
    pub fn add_program(&self, program: Endpoint, memory: Range<u64>) {
        self.shared.lock().add_played(program, memory);
    }

    /// Makes a service that the test simulates: it receives every message ([`Machine::received`] returns them). Its grant 0 is its
    /// memory, which begins at address 0.
    pub fn play(&self, service: Endpoint) {
        self.shared.lock().add_played(service, 0..PLAYED_BYTES);
    }

    /// Sends a request of a program or simulated service and runs until every service waits. Returns the reply if it has
    /// arrived; [`Machine::received`] returns a later one.
    pub fn ask(&self, from: Endpoint, to: Endpoint, request: &Message) -> Option<Message> {
        self.queue(from, to, request);
        self.run();
        self.received(from)
    }

    /// Queues a request of a program or simulated service; nobody runs before the next call of another kind.
    pub fn queue(&self, from: Endpoint, to: Endpoint, request: &Message) {
        self.shared.lock().ask(from, to, request);
    }

    /// Cancels a program's wait for a reply, so that its call can be sent to the successor of a dead service, as the kernel does.
    pub fn forget_request(&self, program: Endpoint) {
        self.shared.lock().forget_request(program);
    }

    /// Sends a message of a simulated service without waiting.
    pub fn send(&self, from: Endpoint, to: Endpoint, message: &Message) {
        self.shared.lock().post(from, to, message);
        self.run();
    }

    /// Sends a notification of a simulated service.
    pub fn notify(&self, from: Endpoint, to: Endpoint) {
        self.shared.lock().notify(from, to.slot(), 0);
        self.run();
    }

    /// Returns the next message that a program or simulated service has received.
    pub fn received(&self, by: Endpoint) -> Option<Message> {
        self.shared.lock().take_mail(by)
    }

    /// Returns how many messages a service has received, replies to its own requests too, but no notifications.
    pub fn messages(&self, service: Endpoint) -> u64 {
        self.shared.lock().messages(service)
    }

    /// Lets a service die when it has received that many messages more, as [`Machine::messages`] counts them, before it acts on the last;
    /// `None` lets it live on.
    pub fn kill_at(&self, service: Endpoint, more: Option<u64>) {
        self.shared.lock().set_last_message(service, more);
    }

    /// Returns whether a service has not died.
    pub fn is_alive(&self, service: Endpoint) -> bool {
        self.shared.lock().is_alive(service)
    }

    /// Runs the services until all of them wait.
    ///
    /// # Panics
    /// When a service has panicked.
    pub fn run(&self) {
        let mut state = self.shared.lock();
        state.dispatch();
        self.shared.signal_turn(&state);
        state = self
            .shared
            .idle
            .wait_while(state, |state| state.is_busy() && state.failure.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = state.failure.take() {
            drop(state);
            panic!("{failure}");
        }
    }

    /// Advances the time; alarms fire in order, each at its time.
    pub fn advance_ns(&self, duration_ns: u64) {
        let end_ns = self.now_ns() + duration_ns;
        loop {
            let rang = self.shared.lock().ring_next_alarm(end_ns);
            self.run();
            if !rang {
                return;
            }
        }
    }

    /// Returns the monotonic time.
    pub fn now_ns(&self) -> u64 {
        self.shared.lock().now_ns
    }

    /// Copies out of a program's memory.
    ///
    /// # Panics
    /// If the program has no such memory.
    pub fn read(&self, program: Endpoint, address: u64, bytes: usize) -> Vec<u8> {
        let mut into = std::vec![0; bytes];
        let from = self.shared.lock().read_program(program, address, &mut into);
        from.expect("the test reads where its program has no memory");
        into
    }

    /// The word at this address of a program, as the kernel fetches it with a call; `None`: the program has no such memory.
    pub fn word(&self, program: Endpoint, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        let from = self.shared.lock().read_program(program, address, &mut word);
        from.is_ok().then(|| u64::from_le_bytes(word))
    }

    /// Copies into a program's memory.
    ///
    /// # Panics
    /// If the program has no such memory.
    pub fn write(&self, program: Endpoint, address: u64, bytes: &[u8]) {
        let to = self.shared.lock().write_program(program, address, bytes);
        to.expect("the test writes where its program has no memory");
    }

    /// Returns the log lines of the services.
    pub fn log(&self) -> String {
        self.shared.lock().log.clone()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.shared.lock().end();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        for memory in self.shared.lock().take_preserved().into_values() {
            // SAFETY: only services have got it, and none of their threads runs any more; what they leaked nobody reaches.
            unsafe { super::free(memory) };
        }
    }
}

/// The thread of a service.
fn serve(trap: Trap, main: impl FnOnce(Endpoint)) {
    let (shared, endpoint) = (trap.shared.clone(), trap.endpoint);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // Nothing has been waited for yet.
        let _ = trap.wait_for_turn();
        super::install(trap);
        main(endpoint);
    }));
    let mut state = shared.lock();
    match outcome {
        Err(payload) if payload.is::<Killed>() => return,
        Err(payload) => state.failure = Some(failure(endpoint, &*payload)),
        Ok(()) => state.failure = Some(std::format!("the service {endpoint:?} has returned")),
    }
    state.leave();
    shared.signal_turn(&state);
    shared.idle.notify_all();
}

fn failure(endpoint: Endpoint, payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("?");
    std::format!("the service {endpoint:?} has panicked: {text}")
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes who has the processor now: a service, or the test. Nobody else wakes.
    fn signal_turn(&self, state: &State) {
        state.turn().unwrap_or(&self.idle).notify_all();
    }
}

/// Where the calls of one service's thread arrive.
struct Trap {
    shared: Arc<Shared>,
    endpoint: Endpoint,
    /// Signalled when the processor has passed to it, and when it has been killed.
    turn: Arc<Condvar>,
}

impl Trap {
    /// Yields the processor and waits until the service has it again. Returns the result of the wait.
    fn wait_for_turn(&self) -> Result<Message> {
        let state = self.shared.lock();
        self.shared.signal_turn(&state);
        let mut state = self
            .turn
            .wait_while(state, |state| state.is_alive(self.endpoint) && !state.has_turn(self.endpoint))
            .unwrap_or_else(PoisonError::into_inner);
        if !state.is_alive(self.endpoint) {
            drop(state);
            resume_unwind(Box::new(Killed));
        }
        state.take_outcome(self.endpoint)
    }

    fn send(&self, to: Endpoint, message: &Message) -> Sent {
        self.shared.lock().send(self.endpoint, to, message)
    }

    /// Waits as `enter` says.
    fn block(&self, enter: impl FnOnce(&mut State)) -> Result<Message> {
        {
            let mut state = self.shared.lock();
            enter(&mut state);
            state.leave();
        }
        self.wait_for_turn()
    }

    fn send_blocking(&self, to: Endpoint, message: &Message, then: Then) -> Result<Message> {
        match self.send(to, message) {
            Sent::Nobody => Err(Errno::EDEADSRCDST),
            Sent::Done => self.block(|state| state.go_on(self.endpoint, to, then)),
            Sent::Busy => self.block(|state| state.wait_in_send(self.endpoint, to, message, then)),
        }
    }

    fn send_now(&self, to: Endpoint, message: &Message) -> Result<()> {
        match self.send(to, message) {
            Sent::Done => Ok(()),
            Sent::Nobody => Err(Errno::EDEADSRCDST),
            Sent::Busy => {
                self.shared.lock().promise_notification(self.endpoint, to);
                Err(Errno::ENOTREADY)
            }
        }
    }

    fn virtual_copy(&self, arguments: [u64; 6], side: Option<&mut Side>) -> Result<u64> {
        let [from, from_address, to, to_address, bytes, _] = arguments;
        let (from, to) = ((Endpoint::from_word(from), from_address), (Endpoint::from_word(to), to_address));
        self.shared.lock().virtual_copy(from, to, bytes, side)
    }

    fn safe_copy(&self, arguments: [u64; 6], side: &mut Side) -> Result<u64> {
        let [granter, grant, offset, ..] = arguments;
        let (granter, grant) = (Endpoint::from_word(granter), GrantId::from_word(grant));
        self.shared.lock().safe_copy(&Use { by: self.endpoint, granter, grant, offset }, side)
    }
}

impl Kernel for Trap {
    fn primitive(&mut self, number: u64, to: Endpoint, message: &Message, from: Endpoint) -> Result<Message> {
        match number {
            call::SEND => self.send_blocking(to, message, Then::Return),
            call::SENDREC => self.send_blocking(to, message, Then::Answer),
            call::SENDWAIT => self.send_blocking(to, message, Then::Receive(from)),
            call::RECEIVE => self.block(|state| state.receive(self.endpoint, to)),
            call::REPLYREC => {
                if message.is_reply() {
                    self.send(to, message);
                } else {
                    self.send_now(to, message)?;
                }
                self.block(|state| state.receive(self.endpoint, from))
            }
            call::SENDNB => self.send_now(to, message).map(|()| Message::default()),
            call::NOTIFY => {
                self.shared.lock().notify(self.endpoint, to.slot(), 0);
                Ok(Message::default())
            }
            _ => Err(Errno::EBADCALL),
        }
    }

    fn call(&mut self, call: KernelCall, arguments: [u64; 6]) -> Result<(u64, [u64; 2])> {
        let mut state = self.shared.lock();
        match call {
            KernelCall::Time => return Ok((state.now_ns, [state.now_ns + START_REAL_NS, 0])),
            KernelCall::SetAlarm => state.set_alarm(self.endpoint, arguments[0]),
            KernelCall::SetGrants => state.set_grants(self.endpoint, arguments[0], arguments[1]),
            KernelCall::GetInfo if arguments[0] == info::WAIT => {
                let thread = Endpoint(arguments[1] as u32);
                return state
                    .asked_service(thread)
                    .map(|service| (info::state::ANSWERING as u64 | (service.0 as u64) << 32, [0; 2]));
            }
            KernelCall::WhoIs => return state.holder(arguments[0] as usize).map(|who| (who.to_word(), [0; 2])),
            KernelCall::VirCopy => {
                drop(state);
                return self.virtual_copy(arguments, None).map(|bytes| (bytes, [0; 2]));
            }
            _ => return Err(Errno::ECALLDENIED),
        }
        Ok((0, [0; 2]))
    }

    fn filling(&mut self, call: KernelCall, arguments: [u64; 6], buffer: &mut [u8]) -> Result<u64> {
        match call {
            KernelCall::VirCopy => self.virtual_copy(arguments, Some(&mut Side::Into(buffer))),
            KernelCall::SafeCopyFrom => self.safe_copy(arguments, &mut Side::Into(buffer)),
            _ => Err(Errno::ECALLDENIED),
        }
    }

    fn reading(&mut self, call: KernelCall, arguments: [u64; 6], buffer: &[u8]) -> Result<u64> {
        match call {
            KernelCall::VirCopy => self.virtual_copy(arguments, Some(&mut Side::From(buffer))),
            KernelCall::SafeCopyTo => self.safe_copy(arguments, &mut Side::From(buffer)),
            KernelCall::Diag => {
                self.shared.lock().log.push_str(&String::from_utf8_lossy(buffer));
                Ok(buffer.len() as u64)
            }
            _ => Err(Errno::ECALLDENIED),
        }
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    fn preserved(&mut self, bytes: usize) -> Option<&'static [AtomicU64]> {
        Some(self.shared.lock().preserved(self.endpoint.slot(), bytes))
    }
}

/// The message of a notification.
fn notification(source: Endpoint, time_ns: u64, bits: u64) -> Message {
    Message { source, ..Notify { time_ns, bits }.message() }
}
