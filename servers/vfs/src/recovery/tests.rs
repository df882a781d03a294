//! vfs killed at every write to its preserved memory: its successor finds the state before or after the turn, never one between.
//! This file is long because it has turns of every kind of object.

use crate::{
    base::Flow,
    calls::{linux_call, services::service_request},
    devices::Devices,
    events::poll::POLLIN,
    exec::start_at_root,
    files::{
        leases::Access,
        mount::{Mount, NewMount},
        vnode::NodeRef,
    },
    keep::{
        KEEP_BYTES, Sizes, Store,
        records::{
            MountRecord, NO_QUEUE, NodeRecord, Note, Notification, OwnerRecord, QueueRecord, SignalRecord, Ucred,
        },
    },
    memory::buffer::UserBuffer,
    objects::{
        O_APPEND, O_RDWR, OpenFile,
        epoll::{Epoll, EpollFile, Event, Owner, epoll_of, flag},
        eventfd::{EventCounter, Taking},
        pipe::PipeEnd,
        queue::MessageQueue,
        regular::Regular,
        rights::{Carried, carried},
        socket::SocketFile,
        timer::TimerFile,
    },
    peers::Service,
    pipes::{Outcome, ancillary::Cargo, packets::Envelope},
    processes::{Place, Process},
    queues::{Letter, Queue, Sent},
    sockets::{Connect, Kind, Socket, Who, names::Key},
    state::Vfs,
};
use abi::{Endpoint, Errno, Message, call::KernelCall, endpoint::slot, linux::nr, vfs};
use alloc::{boxed::Box, format, rc::Rc, string::String, vec, vec::Vec};
use core::sync::atomic::{AtomicU64, Ordering};
use recover::records::Found;
use std::panic::{AssertUnwindSafe, catch_unwind};
use sys::{host::Kernel, keep::Keep};

const INIT: Endpoint = Endpoint::new(200, 1);
const CHILD: Endpoint = Endpoint::new(201, 7);
const EXT2: Service = Service::at(18);
const ENOUGH: u64 = u64::MAX;

/// A kernel whose programs have memory everywhere.
struct Patient;

impl Kernel for Patient {
    fn primitive(&mut self, _: u64, _: Endpoint, _: &Message, _: Endpoint) -> sys::Result<Message> {
        Ok(Message::default())
    }
    fn call(&mut self, _: KernelCall, _: [u64; 6]) -> sys::Result<(u64, [u64; 2])> {
        Ok((0, [0; 2]))
    }
    fn filling(&mut self, _: KernelCall, _: [u64; 6], into: &mut [u8]) -> sys::Result<u64> {
        into.fill(b'x');
        Ok(into.len() as u64)
    }
    fn reading(&mut self, _: KernelCall, _: [u64; 6], from: &[u8]) -> sys::Result<u64> {
        Ok(from.len() as u64)
    }
}

/// One after the other opens this memory; each may write so often before it is killed.
fn open(memory: &'static [AtomicU64], writes: u64, generation: u32) -> (&'static Vfs, Found) {
    let (store, found) = Store::open(Keep::simulated(memory, writes), Sizes::WHOLE);
    (Box::leak(Box::new(Vfs::new(store, generation, Devices::new("")))), found)
}

fn root(vfs: &Vfs) -> NodeRef {
    vfs.base().files().mounts.root(0).expect("is mounted")
}

fn from_pm(vfs: &'static Vfs, message: Message) {
    let request = Message { source: Endpoint::new(slot::PM, 1), ..message };
    assert_eq!(service_request(vfs, &request).result(), Ok(0));
}

/// A call of a thread, which succeeds at once or waits.
fn call(vfs: &'static Vfs, thread: Endpoint, number: u32, arguments: &[u64]) {
    let mut message = Message { source: thread, ..Message::new(number) };
    message.words[..arguments.len()].copy_from_slice(arguments);
    let process = vfs.processes().get(message.source).expect("a thread of a program");
    assert!(!matches!(linux_call(vfs, &process, &message), Flow::Done(Err(_))), "call {number}");
}

fn process(vfs: &Vfs, endpoint: Endpoint) -> Rc<Process> {
    vfs.processes().get(endpoint).expect("it lives")
}

fn mount(vfs: &'static Vfs) {
    let record = MountRecord {
        service: EXT2.slot() as u16,
        volatile: false,
        fixed: false,
        in_memory: false,
        journal: false,
        read_only: false,
        locked: false,
        detached: false,
        users: 0,
        namespace: 0,
        flags: 0,
        device: 5,
        root: 2,
        file_system_root: 2,
        covers: NodeRecord::NONE,
        subtree: crate::keep::Text::EMPTY,
        user: 0,
        source: vfs.base().store().put_text(b"/dev/vda", 0).expect("room"),
        target: vfs.base().store().put_text(b"/", 0).expect("room"),
    };
    let (kind, source, target) = ("ext2".into(), "/dev/vda".into(), b"/".to_vec());
    let (volatile, fixed, in_memory, namespace) = (false, false, false, 0);
    let new = NewMount {
        service: EXT2,
        kind,
        source,
        target,
        flags: 0,
        volatile,
        fixed,
        in_memory,
        device: 5,
        namespace,
        users: 0,
    };
    let mount = Mount::new(new, vfs.base().shared().clone());
    mount.preserve_at(vfs.base().store().new_mount(&record).expect("room"));
    mount.set_root(mount.restore(2));
    mount.become_root();
    vfs.base().files().mounts.add(mount);
}

fn open_file(vfs: &'static Vfs, node: u64, path: &[u8]) -> i32 {
    let object = Regular::new(root(vfs).mount().restore(node), O_RDWR);
    let file = OpenFile::new(vfs.base().closing(), 0, object, O_RDWR, path.to_vec()).expect("room");
    process(vfs, INIT).insert(file, node.is_multiple_of(2)).expect("room") as i32
}

/// What programs did, a turn each.
fn turns() -> Vec<fn(&'static Vfs)> {
    let mut turns: Vec<fn(&'static Vfs)> = Vec::new();
    turns.push(mount);
    turns.push(|vfs| {
        from_pm(
            vfs,
            vfs::Fork { parent: Endpoint::NONE, child: INIT, identity: 1, flags: 0, parts: abi::Parts::SYSTEM }
                .message(),
        )
    });
    turns.push(|vfs| start_at_root(vfs.base(), &process(vfs, INIT)).expect("room"));
    turns.push(|vfs| {
        let _ = open_file(vfs, 11, b"/etc/passwd");
    });
    turns.push(|vfs| {
        let _ = open_file(vfs, 12, &[b"/".as_slice(), &[b'p'; 300]].concat());
    });
    turns.push(|vfs| {
        process(vfs, INIT).file(0).expect("is open").set_position(77);
    });
    turns.push(|vfs| call(vfs, INIT, nr::DUP2, &[0, 40]));
    turns.push(|vfs| call(vfs, INIT, nr::PIPE, &[0]));
    turns.push(|vfs| {
        from_pm(
            vfs,
            vfs::Fork { parent: INIT, child: CHILD, identity: 2, flags: 0, parts: abi::Parts::SYSTEM }.message(),
        )
    });
    turns.push(|vfs| call(vfs, CHILD, nr::WRITE, &[3, 0, 9000]));
    turns.push(|vfs| call(vfs, INIT, nr::READ, &[2, 0, 5000]));
    turns.push(|vfs| {
        process(vfs, INIT).file(1).expect("is open").set_flags(O_RDWR | O_APPEND);
    });
    turns.push(|vfs| {
        let directories = process(vfs, INIT).directories().expect("has some");
        directories.set_umask(0o77);
        let node = root(vfs).mount().restore(30);
        directories.set_working(Place { node, path: Rc::from(&b"/home"[..]) }).expect("room");
    });
    turns.push(|vfs| call(vfs, CHILD, nr::CLOSE, &[0]));
    turns.push(|vfs| from_pm(vfs, vfs::SetSession { process: CHILD, session: 2, group: 2, leader: true }.message()));
    turns.push(|vfs| from_pm(vfs, vfs::ExecCommit { process: CHILD }.message()));
    turns.push(|vfs| {
        vfs.base().store().has_moved();
        vfs.base().store().begin_call(CHILD, 9);
        vfs.base().answer(CHILD, Ok(4));
        let mut answer = Message::new(0);
        answer.words[0] = 4;
        vfs.base().store().end_turn([(CHILD, answer.words[0])].into_iter());
    });
    turns.extend(turns_of_queues());
    turns.extend(turns_of_leases());
    turns.extend(turns_of_events());
    turns.extend(turns_of_sockets());
    turns.extend(turns_of_rights());
    turns.push(|vfs| call(vfs, INIT, nr::CLOSE_RANGE, &[0, u32::MAX as u64, 0]));
    turns.push(|vfs| from_pm(vfs, vfs::Exit { process: CHILD }.message()));
    turns
}

fn queue(vfs: &Vfs) -> Rc<Queue> {
    vfs.queues().get(b"q").expect("has its name")
}

fn give_queue(vfs: &'static Vfs, name: &[u8]) {
    let record = QueueRecord { most_messages: 2, message_bytes: 100, uid: 1, gid: 2, mode: 0o600, ..NO_QUEUE };
    let queue = Queue::new(vfs.base().store(), record, name).expect("room");
    let file =
        OpenFile::new(vfs.base().closing(), 0, MessageQueue(queue.clone()), O_RDWR, name.to_vec()).expect("room");
    process(vfs, INIT).insert(file, true).expect("room");
    vfs.queues().add(name.to_vec(), queue);
}

fn letter(priority: u16, byte: u8) -> Letter {
    Letter { priority, bytes: vec![byte; 100] }
}

fn turns_of_queues() -> Vec<fn(&'static Vfs)> {
    let mut turns: Vec<fn(&'static Vfs)> = Vec::new();
    turns.push(|vfs| give_queue(vfs, b"q"));
    turns.push(|vfs| assert_eq!(queue(vfs).send(&letter(1, b'a')), Sent::First));
    turns.push(|vfs| assert_eq!(queue(vfs).send(&letter(9, b'b')), Sent::Done));
    turns.push(|vfs| assert_eq!(queue(vfs).receive(INIT, 0, 0), Ok(Some(100))));
    turns.push(|vfs| assert_eq!(queue(vfs).send(&letter(9, b'c')), Sent::Done));
    turns.push(|vfs| {
        let notification = Notification { table: 7, pid: 1, signal: 10, value: 42 };
        queue(vfs).ask_notification(notification).expect("is free");
    });
    turns.push(|vfs| {
        queue(vfs).set_unnamed();
        vfs.queues().remove(b"q");
    });
    turns.push(|vfs| give_queue(vfs, b"other"));
    turns.push(|vfs| {
        let signal = SignalRecord { number: 5, event: vfs::EVENT_MESSAGE, values: [1 | 10 << 32, 42, 2 | 3 << 32] };
        let place = vfs.base().store().new_signal(&signal).expect("room");
        vfs.base().notices().preserved(place, &signal);
    });
    turns.push(|vfs| {
        let next = |done| {
            let request = Message { source: Endpoint::new(slot::PM, 1), ..vfs::NextEvent { done }.message() };
            vfs::NextEvent::results(&service_request(vfs, &request)).map(|event| event.0)
        };
        assert_eq!(next(0), Ok(vfs::EVENT_MESSAGE));
        assert_eq!(next(5), Err(Errno::ENOENT));
    });
    turns.push(|vfs| call(vfs, INIT, nr::TIMERFD_CREATE, &[1, 0]));
    turns.push(|vfs| call(vfs, INIT, nr::SOCKETPAIR, &[1, 1, 0, 0]));
    turns
}

fn turns_of_leases() -> Vec<fn(&'static Vfs)> {
    const F_SETOWN: u64 = 8;
    const F_SETSIG: u64 = 10;
    const F_SETLEASE: u64 = 1024;
    const F_WRLCK: u64 = 1;
    const F_UNLCK: u64 = 2;
    let mut turns: Vec<fn(&'static Vfs)> = Vec::new();
    turns.push(|vfs| call(vfs, INIT, nr::FCNTL, &[1, F_SETOWN, 2]));
    turns.push(|vfs| call(vfs, INIT, nr::FCNTL, &[0, F_SETSIG, 10]));
    turns.push(|vfs| call(vfs, INIT, nr::FCNTL, &[0, F_SETLEASE, F_WRLCK]));
    turns.push(|vfs| {
        let file = process(vfs, INIT).file(0).expect("is open");
        let announce = |owner: &OwnerRecord| {
            let signal = SignalRecord { number: 6, event: vfs::EVENT_OWNER, values: [owner.id.into(), 0, 0] };
            vfs.base().store().new_signal(&signal).expect("room");
        };
        file.node().expect("has one").leases().begin_break(Access::Read, u64::MAX, announce);
    });
    turns.push(|vfs| call(vfs, INIT, nr::FCNTL, &[0, F_SETLEASE, F_UNLCK]));
    turns.push(|vfs| call(vfs, INIT, nr::FCNTL, &[0, F_SETLEASE, F_WRLCK]));
    turns.push(|vfs| call(vfs, INIT, nr::FCNTL, &[1, F_SETOWN, 0]));
    turns
}

const COUNTER: i32 = 80;
const EPOLL: i32 = 81;

fn give(vfs: &Vfs, number: i32, object: impl crate::objects::Kind) {
    let file = OpenFile::new(vfs.base().closing(), 0, object, O_RDWR, b"it".to_vec()).expect("room");
    process(vfs, INIT).files().replace(number, file, 100, false).expect("room");
}

fn epoll(vfs: &Vfs) -> Rc<Epoll> {
    epoll_of(&process(vfs, INIT).file(EPOLL).expect("is open")).expect("is one").clone()
}

/// Registers a descriptor for one report.
fn register(vfs: &Vfs, number: i32) {
    let process = process(vfs, INIT);
    let own = process.file(EPOLL).expect("is open").number();
    let by = Owner { store: vfs.base().store(), user: 0 };
    let event = Event { events: POLLIN | flag::ONESHOT, data: 7 };
    epoll(vfs).add(own, &process.file(number).expect("is open"), number, event, by).expect("room");
}

fn turns_of_events() -> Vec<fn(&'static Vfs)> {
    let mut turns: Vec<fn(&'static Vfs)> = Vec::new();
    turns.push(|vfs| give(vfs, COUNTER, EventCounter::new(7, Taking::All)));
    turns.push(|vfs| give(vfs, EPOLL, EpollFile::default()));
    turns.push(|vfs| register(vfs, COUNTER));
    turns.push(|vfs| call(vfs, INIT, nr::EPOLL_WAIT, &[EPOLL as u64, 0, 1, 0]));
    turns.push(|vfs| call(vfs, INIT, nr::WRITE, &[COUNTER as u64, 0, 8]));
    turns.push(|vfs| call(vfs, INIT, nr::READ, &[COUNTER as u64, 0, 8]));
    turns.push(|vfs| register(vfs, 2));
    turns.push(|vfs| {
        let file = process(vfs, INIT).file(2).expect("is open");
        epoll(vfs).modify(&file, 2, Event { events: POLLIN, data: 8 }).expect("is registered");
    });
    turns.push(|vfs| call(vfs, INIT, nr::EPOLL_CTL, &[EPOLL as u64, 2, COUNTER as u64, 0]));
    turns.push(|vfs| register(vfs, COUNTER));
    turns.push(|vfs| call(vfs, INIT, nr::CLOSE, &[COUNTER as u64]));
    turns
}

fn socket(vfs: &Vfs, descriptor: i32) -> Rc<Socket> {
    let file = process(vfs, INIT).file(descriptor).expect("is open");
    file.object::<SocketFile>().expect("a socket").0.clone()
}

const SENDER: Ucred = Ucred { pid: 1, uid: 2, gid: 3 };
const WHO: Who = Who { ids: SENDER, groups: &[4, 5] };

fn connect(vfs: &Vfs, descriptor: i32) {
    let (client, server) = (socket(vfs, descriptor), socket(vfs, 50));
    assert_eq!(client.connect(&server, vfs.base().pipes(), WHO), Ok(Connect::Done));
}

/// A listening socket with descriptor 50, two that connect to it, 51 and 52, of which one is accepted.
fn turns_of_sockets() -> Vec<fn(&'static Vfs)> {
    let mut turns: Vec<fn(&'static Vfs)> = Vec::new();
    for _ in 0..3 {
        turns.push(|vfs| call(vfs, INIT, nr::SOCKET, &[1, 1, 0]));
        turns.push(|vfs| {
            let table = process(vfs, INIT).files();
            let last = table.descriptors().iter().map(|(number, _)| number).filter(|number| *number < 40).max();
            let last = last.expect("the socket") as u64;
            let free = (50..60).find(|number| process(vfs, INIT).file(*number).is_err()).expect("one of ten") as u64;
            call(vfs, INIT, nr::DUP2, &[last, free]);
            call(vfs, INIT, nr::CLOSE, &[last]);
        });
    }
    turns.push(|vfs| socket(vfs, 50).bind(vfs.sockets(), b"\0name", None).expect("is free"));
    turns.push(|vfs| socket(vfs, 51).bind(vfs.sockets(), b"\0client", None).expect("is free"));
    turns.push(|vfs| socket(vfs, 50).listen(5, WHO).expect("it has a name"));
    turns.push(|vfs| connect(vfs, 51));
    turns.push(|vfs| connect(vfs, 52));
    turns.push(|vfs| call(vfs, INIT, nr::WRITE, &[51, 0, 5000]));
    turns.push(|vfs| call(vfs, INIT, nr::ACCEPT, &[50, 0, 0]));
    turns.push(|vfs| call(vfs, INIT, nr::SHUTDOWN, &[51, 1]));
    turns.push(|vfs| socket(vfs, 52).update(|own| (own.options, own.receive_ns, own.send_bytes) = (5, 6, 7)));
    turns.push(|vfs| call(vfs, INIT, nr::CLOSE, &[51]));
    turns.push(|vfs| call(vfs, INIT, nr::CLOSE, &[50]));
    turns.push(|vfs| call(vfs, INIT, nr::READ, &[52, 0, 0]));
    turns.push(|vfs| {
        let base = vfs.base();
        let pair = Socket::pair(base.closing(), base.pipes(), Kind::Datagrams, 0, WHO).expect("room");
        for (number, socket) in (60..).zip(pair) {
            let file = OpenFile::new(base.closing(), 0, SocketFile(socket), O_RDWR, b"socket".to_vec()).expect("room");
            process(vfs, INIT).files().replace(number, file, 100, false).expect("room");
        }
    });
    turns.push(|vfs| call(vfs, INIT, nr::WRITE, &[60, 0, 3000]));
    turns.push(|vfs| call(vfs, INIT, nr::WRITE, &[60, 0, 10]));
    turns.push(|vfs| call(vfs, INIT, nr::READ, &[61, 0, 100]));
    turns.push(|vfs| socket(vfs, 60).disconnect());
    turns.push(|vfs| call(vfs, INIT, nr::CLOSE, &[60]));
    turns
}

/// Sends open files with `length` bytes by the socket with this number.
fn send_files(vfs: &'static Vfs, number: i32, length: u64, files: &[i32]) {
    let process = process(vfs, INIT);
    let files = files.iter().map(|number| process.file(*number).expect("is open")).collect();
    let sender = socket(vfs, number);
    let to = sender.connection().expect("is connected").outgoing().clone();
    let carried = Carried::new(vfs.in_flight(), files, &to, 0, None).expect("room");
    let mut cargo = Cargo { sender: Some(SENDER), rights: Some(carried) };
    let mut buffer = UserBuffer::new(INIT, 0, length);
    match sender.kind() {
        Kind::Stream => assert_eq!(to.write_with(vfs.base(), &mut buffer, 0, &mut cargo), Ok(length)),
        _ => {
            let mut envelope = Envelope { name: None, cargo, user: 0, most_bytes: 1000 };
            assert_eq!(to.send(vfs.base(), &mut buffer, &mut envelope, true), Outcome::Done(Ok(length)));
        }
    }
}

/// Two connected sockets of a kind, at the number `first` and the next one.
fn pair(vfs: &'static Vfs, kind: Kind, first: i32) {
    let base = vfs.base();
    let pair = Socket::pair(base.closing(), base.pipes(), kind, 0, WHO).expect("room");
    for (number, socket) in (first..).zip(pair) {
        let file = OpenFile::new(base.closing(), 0, SocketFile(socket), O_RDWR, b"socket".to_vec()).expect("room");
        process(vfs, INIT).files().replace(number, file, 100, false).expect("room");
    }
}

fn turns_of_rights() -> Vec<fn(&'static Vfs)> {
    vec![
        |vfs| pair(vfs, Kind::Stream, 70),
        |vfs| pair(vfs, Kind::Packets, 72),
        |vfs| send_files(vfs, 70, 3, &[0]),
        |vfs| send_files(vfs, 70, 4, &[0, 1, 0, 1, 0, 1, 0, 1, 0, 1]),
        |vfs| send_files(vfs, 72, 3, &[0]),
        |vfs| send_files(vfs, 72, 4, &[0, 1, 0, 1, 0, 1, 0, 1, 0, 1]),
        |vfs| call(vfs, INIT, nr::WRITE, &[70, 0, 5]),
        |vfs| call(vfs, INIT, nr::READ, &[71, 0, 2]),
        |vfs| call(vfs, INIT, nr::READ, &[71, 0, 9]),
        |vfs| call(vfs, INIT, nr::READ, &[73, 0, 2]),
        |vfs| call(vfs, INIT, nr::READ, &[71, 0, 9]),
        |vfs| send_files(vfs, 70, 1, &[73, 71]),
        |vfs| call(vfs, INIT, nr::CLOSE_RANGE, &[70, 73, 0]),
        |vfs| vfs.in_flight().collect_all(vfs.base()),
    ]
}

/// Everything programs can see.
fn seen(vfs: &Vfs) -> String {
    let mut text = String::new();
    for process in vfs.processes().all() {
        text += &format!("{:?} {} {}:", process.caller.endpoint, process.caller.pid, process.caller.session());
        if let Ok(directories) = process.directories() {
            let (root, working) = (directories.root(), directories.working());
            text += &format!(" {} {:?} {} {:?}", root.node.number(), root.path, working.node.number(), working.path);
            text += &format!(" {:o}", directories.umask());
        }
        let files = process.files();
        for (number, file, close_on_exec) in files.descriptors().marks(0, usize::MAX) {
            let path = file.path();
            text += &format!("\n {number} {close_on_exec} {} {} {:o}", file.number(), file.position(), file.flags());
            text += &format!(" {:?} {:?}", file.node().map(|node| node.number()), path);
            text += &format!(" {:?}", file.owner().map(|owner| (owner.record(), owner.lease())));
            if let Some(MessageQueue(queue)) = file.object() {
                text += &format!(" {:?} {:?}", queue.record(), queue.poll());
            }
            if let Some(TimerFile(timer)) = file.object() {
                text += &format!(" {:?}", timer.record());
            }
            if let Some(epoll) = epoll_of(file) {
                text += &format!(" {:?}", epoll.records());
            }
            if file.object::<EventCounter>().is_some() {
                text += &format!(" {:?}", file.any().record());
            }
            if let Some(SocketFile(socket)) = file.object() {
                text += &seen_of_socket(vfs, socket);
            }
            if let Some(PipeEnd { pipe, reads, writes, .. }) = file.object() {
                text += &format!(" pipe {} of {}, {reads} {writes}", pipe.bytes(), pipe.capacity());
                text += &format!(" {} {}", pipe.readers(), pipe.writers());
            }
        }
        text += &format!("\n {:?}\n", vfs.base().store().noted(process.caller.endpoint, 9));
    }
    text + &format!("{:?} {:?}", vfs.queues().all(), vfs.base().store().signals().collect::<Vec<_>>())
}

fn seen_of_socket(vfs: &Vfs, socket: &Rc<Socket>) -> String {
    let mut text =
        format!(" {:?} {:?} {:?} {}", socket.record(), socket.name().name(), socket.peer_name().name(), socket.ready());
    if let Some(connection) = socket.connection() {
        connection.incoming().for_each_rights(|rights| {
            let numbers =
                carried(rights).map(|carried| carried.files().iter().map(|file| file.number()).collect::<Vec<_>>());
            text += &format!(" {numbers:?}");
        });
        let pipes = [connection.incoming(), connection.outgoing()];
        text += &format!(" {:?}", pipes.map(|pipe| (pipe.bytes(), pipe.readers(), pipe.writers(), pipe.is_reset())));
    }
    text += &format!(" {}", socket.is_connected());
    text += &format!(" {:?}", socket.incoming().map(|pipe| (pipe.bytes(), pipe.message_bytes(vfs.base(), true))));
    let found = vfs.sockets().get(&Key::named(0, socket.name().name()));
    text + &format!(" {}", found.is_some_and(|found| Rc::ptr_eq(&found, socket)))
}

fn finish_turn(vfs: &Vfs) {
    vfs.base().sweep();
    vfs.base().store().end_turn([].into_iter());
}

fn memory() -> &'static [AtomicU64] {
    sys::host::install(Patient);
    sys::host::zeroed(KEEP_BYTES)
}

fn successor(memory: &'static [AtomicU64], generation: u32) -> &'static Vfs {
    let (vfs, found) = open(memory, ENOUGH, generation);
    assert!(matches!(found, Found::State | Found::Undone), "{found:?}");
    super::restore(vfs);
    vfs
}

#[test]
fn a_successor_sees_what_programs_saw_after_every_turn() {
    let memory = memory();
    let (vfs, found) = open(memory, ENOUGH, 1);
    assert_eq!(found, Found::Nothing);
    for (number, turn) in turns().into_iter().enumerate() {
        turn(vfs);
        finish_turn(vfs);
        assert_eq!(seen(successor(memory, 2)), seen(vfs), "after turn {number}");
    }
}

#[test]
fn a_death_at_any_write_leaves_the_state_before_or_after_the_turn() {
    let states: Vec<String> = {
        let (vfs, _) = open(memory(), ENOUGH, 1);
        let after = turns().into_iter().map(|turn| {
            turn(vfs);
            finish_turn(vfs);
            seen(vfs)
        });
        after.collect()
    };
    for writes in 1.. {
        let memory = memory();
        let done = core::cell::Cell::new(0usize);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let (vfs, _) = open(memory, writes, 1);
            for turn in turns() {
                turn(vfs);
                finish_turn(vfs);
                done.set(done.get() + 1);
            }
        }));
        let found = seen(successor(memory, 2));
        let before = done.get().checked_sub(1).map_or("", |last| &states[last]);
        let after = states.get(done.get()).map_or("", |state| state);
        assert!(found == before || found == after, "write {writes}, turn {}:\n{found}\n{before}\n{after}", done.get());
        if outcome.is_ok() {
            return assert!(writes > 300, "the turns write more often than {writes} times");
        }
    }
}

#[test]
fn a_successor_goes_on_where_its_predecessor_was() {
    let memory = memory();
    let mut generation = 1;
    let (vfs, _) = open(memory, ENOUGH, generation);
    let mut vfs = vfs;
    let (steady, _) = open(self::memory(), ENOUGH, 1);
    for turn in turns() {
        turn(vfs);
        finish_turn(vfs);
        turn(steady);
        finish_turn(steady);
        generation += 1;
        vfs = successor(memory, generation);
    }
    let numbers = |text: String| text.lines().filter(|line| !line.starts_with(' ')).count();
    assert_eq!(numbers(seen(vfs)), numbers(seen(steady)));
    assert_eq!(vfs.base().store().in_use(), steady.base().store().in_use());
}

#[test]
fn damaged_records_are_left_out_and_harm_nobody() {
    let memory = memory();
    let (vfs, _) = open(memory, ENOUGH, 1);
    for turn in turns().into_iter().take(13) {
        turn(vfs);
        finish_turn(vfs);
    }
    let used: Vec<usize> = (0..memory.len()).filter(|word| memory[*word].load(Ordering::Relaxed) != 0).collect();
    let mut seed = 12345u64;
    // The first two words are the layout's number and the log's length.
    for &word in used.iter().filter(|word| **word > 2) {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let good = memory[word].load(Ordering::Relaxed);
        let copy: Vec<u64> = memory.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        memory[word].store(good ^ (1 << (seed >> 58)), Ordering::Relaxed);
        let vfs = successor(memory, 2);
        assert!(vfs.processes().all().len() <= 2);
        memory.iter().zip(copy).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }
}

#[test]
fn a_full_store_refuses_and_recovers_its_places() {
    let memory = memory();
    let (vfs, _) = open(memory, ENOUGH, 1);
    for turn in turns().into_iter().take(3) {
        turn(vfs);
        finish_turn(vfs);
    }
    let node = root(vfs);
    let mut files = Vec::new();
    let error = loop {
        match OpenFile::new(vfs.base().closing(), 0, Regular::new(node.clone(), 0), 0, b"/x".to_vec()) {
            Ok(file) => files.push(file),
            Err(error) => break error,
        }
    };
    assert_eq!(error, Errno::ENFILE);
    drop(files);
    vfs.base().store().has_moved();
    finish_turn(vfs);
    assert!(OpenFile::new(vfs.base().closing(), 0, Regular::new(node, 0), 0, b"/x".to_vec()).is_ok());
    assert_eq!(vfs.base().store().noted(INIT, 1), None::<Note>);
}
