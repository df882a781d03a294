//! Programs with a stretch of memory, and a kernel that does what a test says of their primitives.

use crate::server::M3ipc;
use crate::system::{Identity, Native, System};
use abi::endpoint::{APPLICATIONS_BIT, SERVICE_SLOTS};
use abi::message::REPEATED;
use abi::{Endpoint, Errno, GrantId, Message};
use m3ipc::call::Call;
use m3ipc::descriptor::{CONTAINER_OPEN, ContainerInfo};
use m3ipc::error::Error;
use m3ipc::message::Message as Packet;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a program's memory, which begins at [`MEMORY`].
const BYTES: usize = 4096;
/// Where programs have their memory.
pub const MEMORY: u64 = 0x1000;
/// Where tests put messages.
pub const PACKET: u64 = MEMORY + 64;

/// The name of every program.
pub const NAMED: [u8; 16] = *b"program\0\0\0\0\0\0\0\0\0";

/// A thread.
pub struct Program {
    pub memory: Vec<u8>,
    pub process: Identity,
    pub state: Native,
    pub row: usize,
    /// It waits in a call of m3ipc.
    pub calls: bool,
    pub notified: u32,
    /// How often its primitive was ended.
    pub ended: u32,
    /// What its primitive was ended with; `None`: its library asks.
    pub failed: Option<Error>,
    pub result: Option<i64>,
    pub is_enrolled: bool,
}

#[derive(Default)]
pub struct Fake {
    pub programs: BTreeMap<u32, Program>,
    pub now_ns: u64,
    pub alarm_ns: u64,
    pub signals: Vec<(i32, u64)>,
    pub log: Vec<std::string::String>,
    /// What was written into [`GRANT`].
    pub granted: Vec<u8>,
    /// m3ipc dies at this one of the beginnings and ends of what it asks for.
    pub dies_in: Option<u32>,
}

/// The only grant.
pub const GRANT: GrantId = GrantId(7);

impl Fake {
    pub fn program(&mut self, thread: Endpoint) -> &mut Program {
        self.programs.get_mut(&thread.0).expect("it lives")
    }

    /// m3ipc asks for something, which may be the last thing it does.
    fn step<T>(&mut self, act: impl FnOnce(&mut Fake) -> T) -> T {
        self.come_closer_to_death();
        let result = act(self);
        self.come_closer_to_death();
        result
    }

    fn come_closer_to_death(&mut self) {
        self.dies_in = self.dies_in.map(|left| left - 1);
        if self.dies_in == Some(0) {
            self.dies_in = None;
            std::panic::resume_unwind(Box::new("m3ipc dies"));
        }
    }

    fn end_primitive(&mut self, thread: Endpoint, row: usize) {
        if let Some(program) = self.programs.get_mut(&thread.0) {
            program.row = row;
            if program.state != Native::Elsewhere {
                program.state = Native::Elsewhere;
                program.ended += 1;
            }
        }
    }

    fn bytes(&mut self, thread: Endpoint, address: u64, length: usize) -> Result<&mut [u8], Error> {
        let start = address.checked_sub(MEMORY).ok_or(Error::Fault)? as usize;
        let program = self.programs.get_mut(&thread.0).ok_or(Error::Fault)?;
        program.memory.get_mut(start..start + length).ok_or(Error::Fault)
    }

    fn put(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.bytes(thread, address, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }
}

impl System for Fake {
    fn read(&mut self, thread: Endpoint, address: u64, into: &mut [u8]) -> Result<(), Error> {
        self.step(|fake| {
            into.copy_from_slice(fake.bytes(thread, address, into.len())?);
            Ok(())
        })
    }
    fn write(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.step(|fake| fake.put(thread, address, bytes))
    }
    fn copy(&mut self, from: (Endpoint, u64), to: (Endpoint, u64), bytes: u64) -> Result<(), Error> {
        self.step(|fake| {
            let block = fake.bytes(from.0, from.1, bytes as usize)?.to_vec();
            fake.put(to.0, to.1, &block)
        })
    }
    fn reply(&mut self, thread: Endpoint, result: i64) -> bool {
        self.step(|fake| {
            let Some(program) = fake.programs.get_mut(&thread.0).filter(|program| program.calls) else { return false };
            (program.calls, program.result) = (false, Some(result));
            true
        })
    }
    fn join(&mut self, thread: Endpoint, row: usize) {
        self.step(|fake| fake.end_primitive(thread, row));
    }
    fn fail(&mut self, thread: Endpoint, row: usize, peer: Endpoint, error: Error) {
        self.step(|fake| {
            let waits_for = fake.programs.get(&thread.0).and_then(|program| match program.state {
                Native::Elsewhere => None,
                Native::Sending(peer) | Native::Receiving(peer) | Native::Answering(peer) => Some(peer),
            });
            if peer == Endpoint::NONE || waits_for == Some(peer) {
                fake.end_primitive(thread, row);
                fake.program(thread).failed = Some(error);
            }
        });
    }
    fn notify(&mut self, thread: Endpoint) {
        self.step(|fake| {
            if let Some(program) = fake.programs.get_mut(&thread.0) {
                program.notified += 1;
            }
        });
    }
    fn state(&mut self, thread: Endpoint) -> Option<Native> {
        self.step(|fake| fake.programs.get(&thread.0).map(|program| program.state))
    }
    fn is_calling(&mut self, thread: Endpoint) -> bool {
        self.step(|fake| fake.is_calling_now(thread))
    }
    fn enroll(&mut self, thread: Endpoint, pid: i32) -> Result<Identity, Error> {
        self.step(|fake| {
            let mut programs = fake.programs.iter_mut();
            let found = programs.find(|(raw, program)| match pid {
                0 => **raw == thread.0,
                pid => program.process.pid == pid && program.process.thread.0 == **raw,
            });
            let (_, program) = found.ok_or(Error::BadPid)?;
            program.is_enrolled = true;
            Ok(program.process)
        })
    }
    fn signal(&mut self, pid: i32, signal: u64) {
        self.step(|fake| fake.signals.push((pid, signal)));
    }
    fn write_grant(&mut self, _: Endpoint, grant: GrantId, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.step(|fake| {
            assert_eq!((grant, offset), (GRANT, fake.granted.len() as u64));
            fake.granted.extend_from_slice(bytes);
            Ok(())
        })
    }
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }
    fn set_alarm(&mut self, deadline_ns: u64) {
        self.step(|fake| fake.alarm_ns = deadline_ns);
    }
    fn log(&mut self, line: core::fmt::Arguments) {
        self.step(|fake| fake.log.push(std::format!("{line}")));
    }
}

pub struct World {
    pub server: M3ipc<Fake>,
    threads: u32,
    serial: u64,
    /// The last call of each thread.
    last: BTreeMap<u32, Message>,
}

impl World {
    /// Root's first program has started the node and container 0.
    pub fn new() -> (World, Endpoint) {
        let server = M3ipc::new(Fake::default());
        let mut world = World { server, threads: 0, serial: 0, last: BTreeMap::new() };
        let root = world.program(0);
        assert_eq!(world.call(root, Call::DrvsInit, &[2, 0]), Some(2));
        world.start_container(root, 0);
        (world, root)
    }

    pub fn start_container(&mut self, root: Endpoint, number: i32) {
        let name = *b"test\0\0\0\0\0\0\0\0\0\0\0\0";
        let info = ContainerInfo { number, flags: CONTAINER_OPEN, name, ..ContainerInfo::default() };
        self.put(root, MEMORY, &info);
        assert_eq!(self.call(root, Call::VmInit, &[MEMORY as i64]), Some(0));
    }

    /// A process of this user, whose name is [`NAMED`].
    pub fn program(&mut self, user: u32) -> Endpoint {
        self.threads += 1;
        let thread = Endpoint::new(SERVICE_SLOTS + self.threads as usize, 1);
        self.add(
            thread,
            Identity { thread, pid: 100 + self.threads as i32, user, group: user, capabilities: 0, name: NAMED },
        );
        thread
    }

    /// A further thread of this one's process.
    pub fn thread_of(&mut self, first: Endpoint) -> Endpoint {
        self.threads += 1;
        let thread = Endpoint::new(SERVICE_SLOTS + self.threads as usize, 1);
        let process = self.server.system.program(first).process;
        self.add(thread, process);
        thread
    }

    fn add(&mut self, thread: Endpoint, process: Identity) {
        let program = Program {
            memory: std::vec![0; BYTES],
            process,
            state: Native::Elsewhere,
            row: APPLICATIONS_BIT,
            calls: false,
            notified: 0,
            ended: 0,
            failed: None,
            result: None,
            is_enrolled: false,
        };
        self.server.system.programs.insert(thread.0, program);
    }

    /// Makes a call. `None`: it waits.
    pub fn call(&mut self, thread: Endpoint, call: Call, arguments: &[i64]) -> Option<i64> {
        self.own_call(thread, call as u64, arguments)
    }

    pub fn own_call(&mut self, thread: Endpoint, number: u64, arguments: &[i64]) -> Option<i64> {
        self.serial += 1;
        let mut message = Message { source: thread, ..Message::new(abi::m3ipc::SYSTEM_CALL) };
        message.words[0] = number;
        for (word, argument) in message.words[1..].iter_mut().zip(arguments) {
            *word = *argument as u64;
        }
        message.words[6] = self.serial;
        self.last.insert(thread.0, message);
        self.send(&message)
    }

    fn send(&mut self, message: &Message) -> Option<i64> {
        let program = self.server.system.program(message.source);
        (program.calls, program.result) = (true, None);
        self.live(&|server| {
            if let Some(reply) = server.handle(message).done() {
                assert!(server.system.reply(message.source, reply.words[0] as i64));
            }
        });
        self.result(message.source)
    }

    /// Lets m3ipc do something, and a successor what is to be done if it dies of that.
    fn live(&mut self, act: &dyn Fn(&mut M3ipc<Fake>)) {
        if catch_unwind(AssertUnwindSafe(|| act(&mut self.server))).is_err() {
            self.die();
        }
    }

    /// m3ipc dies, and whoever waits for it makes the call again.
    pub fn die(&mut self) {
        self.live(&|server| server.recover());
        let waiting = self.last.values().filter(|message| self.server.system.is_calling_now(message.source));
        for mut message in waiting.copied().collect::<Vec<_>>() {
            message.words[6] |= REPEATED;
            self.send(&message);
        }
    }

    /// How the last call of a thread has ended.
    pub fn result(&mut self, thread: Endpoint) -> Option<i64> {
        self.server.system.program(thread).result
    }

    /// Binds a process. Returns its endpoint.
    pub fn bind(&mut self, thread: Endpoint, number: i64) -> i64 {
        self.call(thread, Call::Bind, &[0, number]).expect("it does not wait")
    }

    /// The first time, a member is direct; this one was bound before.
    pub fn bind_mediated(&mut self, thread: Endpoint, number: i64) -> i64 {
        let name = self.bind(thread, number);
        assert_eq!(self.call(thread, Call::Unbind, &[0, name]), Some(0));
        self.bind(thread, number)
    }

    pub fn put<T: IntoBytes + zerocopy::Immutable>(&mut self, thread: Endpoint, address: u64, value: &T) {
        self.server.system.put(thread, address, value.as_bytes()).expect("memory");
    }

    pub fn get<T: FromBytes + IntoBytes>(&mut self, thread: Endpoint, address: u64) -> T {
        let mut value = T::new_zeroed();
        let bytes = value.as_mut_bytes();
        bytes.copy_from_slice(self.server.system.bytes(thread, address, bytes.len()).expect("memory"));
        value
    }

    /// Puts a message of this kind into a program's memory.
    pub fn packet(&mut self, thread: Endpoint, kind: i32) {
        self.put(thread, PACKET, &Packet { kind, ..Packet::default() });
    }

    /// Source and kind of the message in a program's memory.
    pub fn received(&mut self, thread: Endpoint) -> (i64, i32) {
        let packet: Packet = self.get(thread, PACKET);
        (packet.source.into(), packet.kind)
    }

    /// pm tells that a thread is about to end.
    pub fn ends(&mut self, thread: Endpoint) {
        let told = Message { source: Endpoint::PM, ..abi::m3ipc::Ends { thread }.message() };
        self.live(&|server| assert!(server.handle(&told).done().is_none(), "pm waits for no reply"));
    }

    /// A thread ends, and pm tells.
    pub fn end(&mut self, thread: Endpoint) {
        self.server.system.programs.remove(&thread.0);
        // The kernel ends the primitives that wait for it.
        for program in self.server.system.programs.values_mut() {
            let (Native::Sending(of) | Native::Receiving(of) | Native::Answering(of)) = program.state else { continue };
            if of == thread {
                program.state = Native::Elsewhere;
            }
        }
        self.last.remove(&thread.0);
        self.live(&|server| server.look_for_ends());
    }

    /// Time passes.
    pub fn advance_ms(&mut self, ms: u64) {
        self.server.system.now_ns += ms * 1_000_000;
        let now = self.server.system.now_ns;
        for _ in 0..2 {
            if (1..=now).contains(&self.server.system.alarm_ns) {
                self.server.system.alarm_ns = 0;
                self.live(&|server| server.end_late_waits(now));
            }
        }
    }

    pub fn fails(error: Error) -> Option<i64> {
        Some(error.to_result().into())
    }
}

impl Fake {
    pub fn is_calling_now(&self, thread: Endpoint) -> bool {
        self.programs.get(&thread.0).is_some_and(|program| program.calls)
    }
}
