//! A kernel that does what rs asks and takes notes, and the other services, whose messages the test sends.

use crate::launch::Launcher;
use crate::serve::Rs;
use crate::supervisor::Supervisor;
use crate::supervisor_tests::{name, service};
use abi::archive::{self, Archive};
use abi::call::{self, KernelCall};
use abi::endpoint::slot;
use abi::info::{self, ThreadInfo};
use abi::kernel::{Exception, Exited, Notify};
use abi::layout::SERVICE_STACK_END;
use abi::message::REPLY;
use abi::pm::WhoIs;
use abi::privilege::Privileges;
use abi::registers::Registers;
use abi::rs::Ready;
use abi::system::{Service, System};
use abi::{CapabilitySet, Endpoint, Errno, Message, Name, Word, linux, vm};
use std::boxed::Box;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::string::String;
use std::vec;
use std::vec::Vec;
use sys::{Result, host};
use zerocopy::{FromBytes, IntoBytes};

pub const UART: u32 = 20;
pub const RTC: u32 = 21;
/// Where programs of services begin, for vm.
const ENTRY: u64 = 0x40_0000;
/// Where the archive lies.
pub const ARCHIVE: u64 = 0x100_0000;
/// Memory of a service at the end of its stack.
pub const STACK_BYTES: u64 = 0x3000;
/// A program of the superuser, and where it has memory.
pub const PROGRAM: Endpoint = Endpoint::new(200, 1);
pub const BUFFER: u64 = 0x1_0000;
pub const BUFFER_BYTES: usize = 0x2000;
/// Grants of services are this, and their memory begins at 0.
pub const GRANTED_BYTES: usize = 64;

/// Ends rs's loop when there is no message left.
struct Idle;

/// What the kernel knows and has been asked for.
#[derive(Default)]
pub struct Kernel {
    pub now_ns: u64,
    pub alarm_ns: u64,
    /// How often the alarm was set.
    pub alarms: usize,
    generations: BTreeMap<usize, u32>,
    pub holders: BTreeMap<usize, Endpoint>,
    /// What is to be said of a thread beside its endpoint.
    pub threads: BTreeMap<usize, ThreadInfo>,
    pub registers: BTreeMap<Endpoint, Registers>,
    pub privileges: BTreeMap<Endpoint, Privileges>,
    memory: Vec<(Endpoint, u64, Vec<u8>)>,
    incoming: VecDeque<Message>,
    pub sent: Vec<(Endpoint, Message)>,
    /// They do not wait for messages.
    pub busy: BTreeSet<Endpoint>,
    pub notified: Vec<Endpoint>,
    /// Kernel calls that change something.
    pub calls: Vec<(KernelCall, [u64; 6])>,
    pub to_vm: Vec<Message>,
    /// vm's answers to requests to come that are refused.
    pub refusals: Vec<Errno>,
    pub log: String,
    /// The next call kills rs.
    pub is_fatal: bool,
}

impl Kernel {
    fn region(&mut self, of: Endpoint, address: u64, bytes: usize) -> Result<&mut [u8]> {
        let is_within =
            |start: u64, memory: &[u8]| address >= start && address + bytes as u64 <= start + memory.len() as u64;
        let found = self.memory.iter_mut().find(|(owner, start, memory)| *owner == of && is_within(*start, memory));
        let (_, start, memory) = found.ok_or(Errno::EFAULT)?;
        let at = (address - *start) as usize;
        Ok(&mut memory[at..at + bytes])
    }

    fn is_alive(&self, endpoint: Endpoint) -> bool {
        !endpoint.is_service() || self.holders.get(&endpoint.slot()) == Some(&endpoint)
    }

    fn create(&mut self, slot: usize) -> Endpoint {
        let generation = self.generations.entry(slot).or_default();
        *generation += 1;
        let endpoint = Endpoint::new(slot, *generation);
        self.holders.insert(slot, endpoint);
        self.memory.push((endpoint, 0, vec![0; GRANTED_BYTES]));
        endpoint
    }

    fn destroy(&mut self, endpoint: Endpoint) -> Result<()> {
        if self.holders.get(&endpoint.slot()) != Some(&endpoint) {
            return Err(Errno::EDEADSRCDST);
        }
        self.holders.remove(&endpoint.slot());
        self.memory.retain(|(owner, ..)| *owner != endpoint);
        Ok(())
    }

    fn vm(&mut self, request: &Message) -> Message {
        self.to_vm.push(*request);
        if let Some(error) = self.refusals.pop() {
            return request.reply(Err(error));
        }
        let start = SERVICE_STACK_END - STACK_BYTES;
        let process = match vm::Request::decode(request) {
            Some(vm::Request::Spawn(spawn)) => spawn.process,
            Some(vm::Request::Renew(renew)) => renew.process,
            _ => return request.reply(Ok(0)),
        };
        self.memory.push((process, start, vec![0; STACK_BYTES as usize]));
        vm::Spawn::reply(request, 0, ENTRY, SERVICE_STACK_END, SERVICE_STACK_END)
    }

    fn thread(&self, slot: usize) -> Result<ThreadInfo> {
        let endpoint = *self.holders.get(&slot).ok_or(Errno::ESRCH)?;
        let known = self.threads.get(&slot).copied();
        Ok(ThreadInfo { endpoint, ..known.unwrap_or(thread(info::state::READY, Endpoint::NONE, 0)) })
    }

    fn act(&mut self, call: KernelCall, arguments: [u64; 6]) -> Result<u64> {
        let endpoint = Endpoint::from_word(arguments[0]);
        match call {
            KernelCall::Create => return Ok(self.create(arguments[0] as usize).to_word()),
            KernelCall::Destroy => self.destroy(endpoint)?,
            KernelCall::SetAlarm => {
                self.alarm_ns = arguments[0];
                self.alarms += 1;
            }
            _ if !self.is_alive(endpoint) => return Err(Errno::EDEADSRCDST),
            _ => {}
        }
        Ok(0)
    }
}

/// A thread as the kernel describes it.
pub fn thread(state: u32, blocked_on: Endpoint, messages: u64) -> ThreadInfo {
    let mut info = ThreadInfo::read_from_bytes(&[0; size_of::<ThreadInfo>()]).expect("has this size");
    (info.state, info.blocked_on, info.messages) = (state, blocked_on, messages);
    info
}

/// The kernel as rs reaches it.
struct Calls(Rc<RefCell<Kernel>>);

impl host::Kernel for Calls {
    fn primitive(&mut self, number: u64, to: Endpoint, message: &Message, _: Endpoint) -> Result<Message> {
        let mut kernel = self.0.borrow_mut();
        match number {
            call::SENDREC => {
                assert_eq!(to, Endpoint::VM, "rs waits for vm alone");
                return Ok(kernel.vm(message));
            }
            call::RECEIVE => {
                let next = kernel.incoming.pop_front();
                drop(kernel);
                return Ok(next.unwrap_or_else(|| resume_unwind(Box::new(Idle))));
            }
            call::SENDNB if !kernel.is_alive(to) => return Err(Errno::EDEADSRCDST),
            call::SENDNB if kernel.busy.contains(&to) => return Err(Errno::ENOTREADY),
            call::SENDNB => kernel.sent.push((to, *message)),
            call::NOTIFY => kernel.notified.push(to),
            _ => return Err(Errno::EBADCALL),
        }
        Ok(Message::default())
    }

    fn call(&mut self, call: KernelCall, arguments: [u64; 6]) -> Result<(u64, [u64; 2])> {
        let mut kernel = self.0.borrow_mut();
        assert!(!kernel.is_fatal, "rs dies here");
        match call {
            KernelCall::Time => return Ok((kernel.now_ns, [0; 2])),
            KernelCall::SetGrants => return Ok((0, [0; 2])),
            KernelCall::WhoIs => {
                let holder = kernel.holders.get(&(arguments[0] as usize));
                return holder.map(|holder| (holder.to_word(), [0; 2])).ok_or(Errno::EDEADSRCDST);
            }
            _ => {}
        }
        kernel.calls.push((call, arguments));
        kernel.act(call, arguments).map(|value| (value, [0; 2]))
    }

    fn filling(&mut self, call: KernelCall, arguments: [u64; 6], buffer: &mut [u8]) -> Result<u64> {
        let mut kernel = self.0.borrow_mut();
        match call {
            KernelCall::GetInfo if arguments[0] == info::THREAD => {
                buffer.copy_from_slice(kernel.thread(arguments[1] as usize)?.as_bytes());
            }
            KernelCall::GetRegisters => {
                let registers = kernel.registers.get(&Endpoint::from_word(arguments[0])).ok_or(Errno::EDEADSRCDST)?;
                buffer.copy_from_slice(registers.as_bytes());
            }
            KernelCall::VirCopy => {
                let from = Endpoint::from_word(arguments[0]);
                buffer.copy_from_slice(kernel.region(from, arguments[1], buffer.len())?);
            }
            _ => return Err(Errno::ECALLDENIED),
        }
        Ok(buffer.len() as u64)
    }

    fn reading(&mut self, call: KernelCall, arguments: [u64; 6], buffer: &[u8]) -> Result<u64> {
        let mut kernel = self.0.borrow_mut();
        assert!(!kernel.is_fatal, "rs dies here");
        match call {
            KernelCall::Diag => kernel.log.push_str(&String::from_utf8_lossy(buffer)),
            KernelCall::PrivCtl => {
                let privileges = Privileges::read_from_bytes(buffer).map_err(|_| Errno::EINVAL)?;
                kernel.privileges.insert(Endpoint::from_word(arguments[0]), privileges);
            }
            KernelCall::VirCopy => {
                let to = Endpoint::from_word(arguments[2]);
                kernel.region(to, arguments[3], buffer.len())?.copy_from_slice(buffer);
            }
            KernelCall::SafeCopyTo => {
                let to = Endpoint::from_word(arguments[0]);
                kernel.region(to, arguments[2], buffer.len())?.copy_from_slice(buffer);
            }
            _ => return Err(Errno::ECALLDENIED),
        }
        Ok(buffer.len() as u64)
    }
}

/// The boot archive with these files.
pub fn archive_of(files: &[(&str, &[u8])]) -> Archive<'static> {
    let mut bytes = archive::MAGIC.to_vec();
    bytes.extend((files.len() as u64).to_le_bytes());
    let mut offset = 0x1000_u64;
    for (name, data) in files {
        let mut padded = [0; archive::NAME_BYTES];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        bytes.extend(padded);
        bytes.extend(offset.to_le_bytes());
        bytes.extend((data.len() as u64).to_le_bytes());
        offset += 0x1000;
    }
    for (at, (_, data)) in files.iter().enumerate() {
        bytes.resize(0x1000 * (at + 1), 0);
        bytes.extend(*data);
    }
    Archive::new(bytes.leak()).expect("is an archive")
}

/// vm, ds and pm, with these behind them. rs itself has no endpoint on the host, and is not in the list.
pub fn services(others: Vec<Service>) -> Vec<Service> {
    let of_system = [("vm", slot::VM), ("ds", slot::DS), ("pm", slot::PM)];
    // They are not the subject: nobody asks them for signs of life.
    let quiet = |(name, slot)| Service { heartbeat_ms: 0, ..service(name, slot as u32) };
    of_system.map(quiet).into_iter().chain(others).collect()
}

/// A service of the tests, with three restarts.
pub fn uart() -> Service {
    Service { restarts: 3, restart_window_ms: 1_000_000, ..service("uart", UART) }
}

/// rs in a system.
pub struct World {
    rs: Rs,
    kernel: Rc<RefCell<Kernel>>,
}

impl World {
    /// rs has been started in this system, and nobody has reported yet.
    pub fn new(services: Vec<Service>, files: &[(&str, &[u8])]) -> World {
        let kernel = Rc::new(RefCell::new(Kernel::default()));
        kernel.borrow_mut().create(slot::VM);
        kernel.borrow_mut().memory.push((PROGRAM, BUFFER, vec![0; BUFFER_BYTES]));
        host::install(Calls(kernel.clone()));
        let programs = services.iter().map(|service| (service.binary.as_str(), service.binary.as_bytes()));
        let all: Vec<(&str, &[u8])> = files.iter().copied().chain(programs).collect();
        let archive = archive_of(&all);
        let system = System { description: String::new(), service: services, routes: vec![] };
        let launcher = Launcher::new(archive, ARCHIVE, &system);
        let mut world = World { rs: Rs::new(Supervisor::new(launcher, system.service)), kernel };
        world.rs.start_all();
        world.run();
        world
    }

    /// All services have reported that they are ready, and rs has told everybody.
    pub fn booted(services: Vec<Service>, files: &[(&str, &[u8])]) -> World {
        let slots: Vec<u32> = services.iter().map(|service| service.slot).collect();
        let mut world = World::new(services, files);
        for slot in slots.into_iter().filter(|slot| *slot > slot::VM as u32) {
            world.ready(slot);
        }
        world.answer_all();
        world.with(|kernel| {
            kernel.sent.clear();
            kernel.calls.clear();
            kernel.notified.clear();
            kernel.to_vm.clear();
        });
        world
    }

    /// Looks at the kernel, or changes it.
    pub fn with<R>(&self, act: impl FnOnce(&mut Kernel) -> R) -> R {
        act(&mut self.kernel.borrow_mut())
    }

    /// Has rs handle what has come.
    pub fn run(&mut self) {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.rs.serve()));
        if let Err(payload) = outcome
            && !payload.is::<Idle>()
        {
            resume_unwind(payload);
        }
    }

    /// rs dies, and its successor begins with what is retained.
    pub fn restart_rs(&mut self) {
        self.rs.recover();
        self.run();
    }

    /// Brings a message. Returns the answer if there is one.
    pub fn call(&mut self, from: Endpoint, message: Message) -> Option<Message> {
        self.with(|kernel| kernel.incoming.push_back(Message { source: from, ..message }));
        self.run();
        self.take_reply(from, message.label)
    }

    /// The answer of rs to a request with this label.
    pub fn take_reply(&mut self, to: Endpoint, label: u32) -> Option<Message> {
        self.with(|kernel| {
            let is_it = |(who, message): &(Endpoint, Message)| *who == to && message.label == label | REPLY;
            let at = kernel.sent.iter().position(is_it)?;
            Some(kernel.sent.remove(at).1)
        })
    }

    /// The requests of rs to the service in a slot that were not taken yet.
    pub fn requests_to(&mut self, slot: usize) -> Vec<Message> {
        self.with(|kernel| {
            let (to, others) =
                kernel.sent.drain(..).partition(|(to, message)| to.slot() == slot && !message.is_reply());
            kernel.sent = others;
            let to: Vec<(Endpoint, Message)> = to;
            to.into_iter().map(|(_, message)| message).collect()
        })
    }

    /// The holder of a slot.
    pub fn holder(&self, slot: u32) -> Endpoint {
        self.with(|kernel| *kernel.holders.get(&(slot as usize)).expect("is held"))
    }

    /// Whether anybody holds a slot.
    pub fn is_held(&self, slot: u32) -> bool {
        self.with(|kernel| kernel.holders.contains_key(&(slot as usize)))
    }

    /// The service in a slot reports that it is ready.
    pub fn ready(&mut self, slot: u32) {
        let reply = self.call(self.holder(slot), Ready { status: 0 }.message());
        assert_eq!(reply.map(|reply| reply.result()), Some(Ok(0)));
    }

    /// pm answers all that it is asked.
    pub fn answer_all(&mut self) -> Vec<Message> {
        let mut all = Vec::new();
        loop {
            let asked = self.requests_to(slot::PM);
            if asked.is_empty() {
                return all;
            }
            for request in asked {
                self.call(self.holder(slot::PM as u32), request.reply(Ok(0)));
                all.push(request);
            }
        }
    }

    /// A program makes the system call of rs, and pm says who it is.
    pub fn service_call(&mut self, words: [u64; 7], uid: u64) -> Option<Result<u64>> {
        self.begin_call(PROGRAM, words, uid)
    }

    /// The same for any program.
    pub fn begin_call(&mut self, from: Endpoint, words: [u64; 7], uid: u64) -> Option<Result<u64>> {
        self.call(from, Message { words, ..Message::new(linux::SERVICE) });
        let asked = self.requests_to(slot::PM);
        assert_eq!(asked.len(), 1, "pm is asked who it is");
        assert_eq!(WhoIs::from_message(&asked[0]), WhoIs { process: from });
        let capabilities = if uid as u32 == 0 { CapabilitySet::ALL } else { CapabilitySet::EMPTY };
        self.call(self.holder(slot::PM as u32), WhoIs::reply(&asked[0], 0, 5, uid, 0, 0, capabilities));
        self.result_of_call(from)
    }

    /// The result of a system call that has come.
    pub fn result_of_call(&mut self, from: Endpoint) -> Option<Result<u64>> {
        self.take_reply(from, linux::SERVICE).map(|reply| reply.result())
    }

    /// The superuser asks something of a service.
    pub fn command(&mut self, operation: u64, service: &str, bytes: u64) -> Option<Result<u64>> {
        self.service_call(words(operation, service, bytes), 0)
    }

    /// What is in the program's buffer.
    pub fn buffer(&self, bytes: u64) -> Vec<u8> {
        self.with(|kernel| kernel.region(PROGRAM, BUFFER, bytes as usize).expect("is within").to_vec())
    }

    /// Writes the memory of a process.
    pub fn write(&self, to: Endpoint, address: u64, bytes: &[u8]) {
        self.with(|kernel| kernel.region(to, address, bytes.len()).expect("is there").copy_from_slice(bytes));
    }

    /// Reads the memory of a process.
    pub fn read(&self, from: Endpoint, address: u64, bytes: u64) -> Vec<u8> {
        self.with(|kernel| kernel.region(from, address, bytes as usize).expect("is there").to_vec())
    }

    /// Gives a process memory.
    pub fn add_memory(&self, of: Endpoint, address: u64, bytes: Vec<u8>) {
        self.with(|kernel| kernel.memory.push((of, address, bytes)));
    }

    /// A service causes an exception.
    pub fn crash(&mut self, slot: u32) {
        let what = Exception { vector: 6, error: 0, ip: 0x40_1234, address: 0 };
        self.call(self.holder(slot), what.message());
    }

    /// A service calls `Exit`.
    pub fn exit(&mut self, slot: u32, status: i64) {
        self.call(self.holder(slot), Exited { status: status as u64 }.message());
    }

    /// A notification comes.
    pub fn notify(&mut self, from: Endpoint) {
        let time_ns = self.with(|kernel| kernel.now_ns);
        self.call(from, Notify { time_ns, bits: 0 }.message());
    }

    /// Time passes, and rs's alarm rings when it is due.
    pub fn advance_ms(&mut self, ms: u64) {
        let end_ns = self.with(|kernel| kernel.now_ns) + ms * 1_000_000;
        loop {
            let alarm_ns = self.with(|kernel| kernel.alarm_ns);
            if alarm_ns == 0 || alarm_ns > end_ns {
                return self.with(|kernel| kernel.now_ns = end_ns);
            }
            self.with(|kernel| (kernel.now_ns, kernel.alarm_ns) = (alarm_ns.max(kernel.now_ns), 0));
            self.notify(Endpoint::CLOCK);
        }
    }

    /// vm has no memory left for services.
    pub fn exhaust_memory(&self) {
        self.with(|kernel| kernel.refusals = vec![Errno::ENOMEM; 50]);
    }

    /// The kernel calls of one kind since the boot.
    pub fn calls_of(&self, kind: KernelCall) -> Vec<[u64; 6]> {
        self.with(|kernel| kernel.calls.iter().filter(|(call, _)| *call == kind).map(|(_, words)| *words).collect())
    }
}

/// The arguments of the system call with the program's buffer.
pub fn words(operation: u64, service: &str, bytes: u64) -> [u64; 7] {
    let (low, high) = if service.is_empty() { (0, 0) } else { name(service).to_words() };
    [operation, low, high, BUFFER, bytes, 0, 0]
}

/// A name's text in the head of a message.
pub fn named(low: u64, high: u64) -> Name {
    Name::from_words(low, high)
}
