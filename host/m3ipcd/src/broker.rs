//! The worker's loop: connections, processes that end, calls that wait.
//!
//! Below: `succession`, what a worker takes over and hands over. One thread, one `epoll`. Nothing here waits for a program: a connection whose peer does not read its replies is closed.

mod succession;

use crate::Options;
use crate::admission::{Admission, Caller};
use crate::container::{Container, Fate, numbers};
use crate::partner::Partner;
use m3core::signals::Signals;
use m3core::wait::Limit;
use m3core::wire::{self, Reply, Request};
use m3core::{memory, process};
use m3ipc::descriptor::{DrvsInfo, NodeInfo};
use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::error::Error;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags};
use rustix::process::{Pid, PidfdFlags};
use std::collections::BTreeMap;
use std::num::NonZeroI32;
use std::rc::Rc;
use zerocopy::FromBytes;

/// Events that are taken at a time.
const EVENTS: usize = 64;

/// How long a thread may take to end after it has closed its connection.
const THREAD_END_MS: i64 = 100;
/// Pause between two looks whether it has ended.
const LOOK_NS: u64 = 500_000;
/// Connections that were not admitted, until their users are told. Further ones are closed at once.
const REFUSED_AT_ONCE: usize = 64;

/// What is watched.
enum Watched {
    Listener(OwnedFd),
    Supervisor(Rc<OwnedFd>),
    Signals(Rc<Signals>),
    Connection(OwnedFd, Caller),
    /// Of a user who was not admitted: his first request is answered with the reason.
    Refused(OwnedFd, Caller, Error),
    Process(OwnedFd, i32),
}

/// What a call that waits is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// Another process binds this thread.
    OwnBinding {
        /// The thread.
        thread: i32,
    },
    /// This endpoint is bound.
    EndpointBound {
        /// Where.
        container: i32,
        /// Which.
        endpoint: Endpoint,
    },
    /// It is bound no more.
    EndpointUnbound {
        /// Where.
        container: i32,
        /// Which.
        endpoint: Endpoint,
    },
}

/// A call that waits.
struct Waiter {
    caller: Caller,
    number: u32,
    waits: Waits,
    limit: Limit,
}

/// What becomes of a call.
pub enum Turn {
    /// It has ended.
    Ended(Answer),
    /// It waits, so many milliseconds at most.
    Waits(Waits, i64),
}

/// What a call returns.
#[derive(Default)]
pub struct Answer {
    /// The result.
    pub value: i64,
    /// A descriptor.
    pub bytes: Vec<u8>,
    /// Open files.
    pub files: Vec<OwnedFd>,
}

/// The node, once it is initialised.
pub struct Node {
    /// Its number and limits.
    pub number: i32,
    /// Its limits.
    pub limits: DrvsInfo,
    /// What is known of nodes.
    pub nodes: Vec<NodeInfo>,
}

/// The broker.
pub struct Broker {
    supervisor: Partner,
    /// When to start a successor of the supervisor, which has ended.
    successor: Option<Limit>,
    signals: Rc<Signals>,
    poll: OwnedFd,
    /// Are closed when there are no more files, so that there are some for what must be.
    spare: Vec<OwnedFd>,
    watched: BTreeMap<u64, Watched>,
    next_token: u64,
    waiters: Vec<Waiter>,
    /// Processes of which a thread seems to end, and until when to look.
    ending: Vec<(i32, Limit)>,
    /// Who may ask, and have how much.
    pub admission: Admission,
    /// Number of the buffer that was allocated last.
    pub last_buffer: u64,
    /// The node.
    pub node: Option<Node>,
    /// Its containers.
    pub containers: BTreeMap<i32, Container>,
}

/// Works until a signal ends the broker.
///
/// # Errors
/// When it was not started by a supervisor, which has handed over what it has; or cannot watch anything.
pub fn work(options: &Options) -> Result<(), String> {
    let signals = Signals::block().map_err(|error| format!("cannot wait for signals: {error}"))?;
    let supervisor = Partner::starter().ok_or("worker without a supervisor")?;
    let mut broker = Broker::take_over(supervisor, signals, options, crate::file_limit())
        .map_err(|error| format!("cannot take over: {error}"))?;
    broker.run().map_err(|error| format!("cannot wait for events: {error}"))
}

impl Broker {
    fn bound_pids(&self) -> Vec<i32> {
        let of = |container: &Container| -> Vec<i32> {
            numbers().filter_map(|number| container.board().occupant(number)).map(|bound| bound.pid).collect()
        };
        let mut pids: Vec<i32> = self.containers.values().flat_map(of).filter(|pid| *pid != 0).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    fn watch(&mut self, watched: Watched) -> Result<u64, Errno> {
        let token = self.next_token;
        self.next_token += 1;
        let fd = match &watched {
            Watched::Listener(fd) | Watched::Process(fd, _) => fd.as_fd(),
            Watched::Connection(fd, _) | Watched::Refused(fd, ..) => fd.as_fd(),
            Watched::Supervisor(fd) => fd.as_fd(),
            Watched::Signals(signals) => signals.as_fd(),
        };
        epoll::add(&self.poll, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?;
        self.watched.insert(token, watched);
        Ok(token)
    }

    /// Watches a process that is bound; one that has ended, or is another one by now, is unbound at once.
    pub fn watch_process(&mut self, pid: i32) {
        let is_watched = |watched: &Watched| matches!(watched, Watched::Process(_, other) if *other == pid);
        if self.watched.values().any(is_watched) {
            return;
        }
        let open = Pid::from_raw(pid).and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
        let started = process::started(pid);
        let is_same = self.bindings_of(pid).into_iter().all(|(container, number)| {
            self.containers[&container].board().occupant(number).is_some_and(|bound| Some(bound.started) == started)
        });
        let is_watched = open.filter(|_| is_same).is_some_and(|open| self.watch(Watched::Process(open, pid)).is_ok());
        if !is_watched {
            self.ended(pid);
        }
    }

    /// Returns where a process and its threads are bound.
    pub fn bindings_of(&self, pid: i32) -> Vec<(i32, Number)> {
        let mut bindings = Vec::new();
        for (container, tables) in &self.containers {
            let is_its = |number: &Number| tables.board().occupant(*number).is_some_and(|bound| bound.pid == pid);
            bindings.extend(numbers().filter(is_its).map(|number| (*container, number)));
        }
        bindings
    }

    /// A process has ended.
    fn ended(&mut self, pid: i32) {
        let supervisor = self.supervisor();
        for (container, number) in self.bindings_of(pid) {
            if let Some(container) = self.containers.get_mut(&container) {
                container.unbind(number, Fate::Ended, &supervisor);
            }
        }
        self.finish_waiters();
    }

    fn run(&mut self) -> Result<(), Errno> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            let timeout = self.next_deadline();
            match epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            let tokens: Vec<u64> = events.iter().map(|event| event.data.u64()).collect();
            for token in tokens {
                if self.serve(token) == Some(Ends::Broker) {
                    self.supervisor.ask_to_end();
                    return Ok(());
                }
            }
            self.replace_supervisor();
            self.unbind_ended_threads();
            self.finish_waiters();
        }
    }

    /// Serves what is watched under this token.
    fn serve(&mut self, token: u64) -> Option<Ends> {
        match self.watched.get(&token)? {
            Watched::Signals(_) => return Some(Ends::Broker),
            // One that a signal ends sends one before it is gone.
            Watched::Supervisor(_) if self.signals.have_come() => return Some(Ends::Broker),
            Watched::Supervisor(_) => self.supervisor_ended(token),
            Watched::Listener(listener) => match accept(listener) {
                Ok(socket) => self.welcome(socket),
                Err(Errno::MFILE | Errno::NFILE) => self.turn_away(token),
                Err(_) => {}
            },
            Watched::Refused(..) => {
                if let Some(Watched::Refused(socket, caller, why)) = self.watched.remove(&token) {
                    self.admission.refuse(socket, &caller, why);
                }
            }
            Watched::Process(_, pid) => {
                let pid = *pid;
                self.watched.remove(&token);
                self.ended(pid);
            }
            Watched::Connection(socket, caller) => {
                let caller = *caller;
                match wire::receive(socket.as_fd(), RecvFlags::DONTWAIT) {
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Ok((packet, _)) if !packet.is_empty() => match Request::decode(&packet) {
                        Some(request) => self.request(caller, &request),
                        None => self.close(token),
                    },
                    _ => self.close(token),
                }
            }
        }
        None
    }

    /// Closes a connection for which there is no file: one that stays in the queue would wake the loop for ever.
    fn turn_away(&mut self, listener: u64) {
        self.spare.clear();
        if let Some(Watched::Listener(listener)) = self.watched.get(&listener) {
            drop(accept(listener));
        }
        self.fill_spare();
    }

    /// How many wait to be told that they were not admitted.
    fn refused(&self) -> usize {
        self.watched.values().filter(|watched| matches!(watched, Watched::Refused(..))).count()
    }

    fn welcome(&mut self, socket: OwnedFd) {
        let Ok((peer, uid, gid)) = memory::peer(&socket) else { return };
        let (uid, gid) = self.admission.known_ids(uid, gid);
        let pid = peer.map_or(0, NonZeroI32::get);
        let started = process::started(pid);
        let caller = Caller { connection: self.next_token, pid, started: started.unwrap_or(0), uid, gid };
        // Who has no pid here, being in another pid namespace, cannot be bound; who has ended, and left its connection to a child, neither.
        let admitted = match started {
            Some(_) => self.admission.admit(&caller, self.used_by(uid).files),
            None => Err(Error::NotPermitted),
        };
        let watched = match admitted {
            Ok(()) => Watched::Connection(socket, caller),
            Err(why) if self.refused() < REFUSED_AT_ONCE => Watched::Refused(socket, caller, why),
            Err(_) => return,
        };
        // What cannot be watched is closed, and its peer notices.
        if self.watch(watched).is_err() && admitted.is_ok() {
            self.admission.closed(&caller);
        }
    }

    /// Whether this user may do what is for root.
    pub fn is_admin(&self, caller: &Caller) -> bool {
        self.admission.is_admin(caller)
    }

    fn close(&mut self, token: u64) {
        if let Some(Watched::Connection(_, caller)) = self.watched.remove(&token) {
            self.admission.closed(&caller);
            self.ending.push((caller.pid, Limit::from_ms(THREAD_END_MS)));
        }
        self.waiters.retain(|waiter| waiter.caller.connection != token);
    }

    /// Unbinds threads that have ended. A thread closes its connection a moment before.
    fn unbind_ended_threads(&mut self) {
        let supervisor = self.supervisor();
        for pid in self.ending.iter().map(|(pid, _)| *pid).collect::<Vec<_>>() {
            for (container, number) in self.bindings_of(pid) {
                let Some(container) = self.containers.get_mut(&container) else { continue };
                let Some(bound) = container.board().occupant(number) else { continue };
                if bound.leader != number && !process::has_thread(bound.pid, bound.thread) {
                    container.unbind(number, Fate::Lives, &supervisor);
                }
            }
        }
        self.ending.retain(|(_, limit)| limit.left_ns() != Some(0));
    }

    fn request(&mut self, caller: Caller, request: &Request) {
        match self.call(&caller, request) {
            Ok(Turn::Ended(answer)) => self.reply(&caller, request.number, Ok(answer)),
            Err(error) => self.reply(&caller, request.number, Err(error)),
            Ok(Turn::Waits(_, 0)) => self.reply(&caller, request.number, Err(Error::Again)),
            Ok(Turn::Waits(waits, ms)) => {
                // A thread has one call at a time: whoever sends another has given up the one before.
                self.waiters.retain(|waiter| waiter.caller.connection != caller.connection);
                let waiter = Waiter { caller, number: request.number, waits, limit: Limit::from_ms(ms) };
                self.waiters.push(waiter);
            }
        }
    }

    fn reply(&mut self, caller: &Caller, number: u32, ended: Result<Answer, Error>) {
        let result = ended.as_ref().map(|answer| answer.value).map_err(|error| *error);
        let answer = ended.unwrap_or_default();
        let reply = Reply { number, result, bytes: answer.bytes };
        let Some(Watched::Connection(socket, _)) = self.watched.get(&caller.connection) else { return };
        let files: Vec<_> = answer.files.iter().map(AsFd::as_fd).collect();
        if wire::send(socket.as_fd(), &reply.encode(), &files, SendFlags::DONTWAIT).is_err() {
            // The loop finds its end. (Waits are being ended here: none may be removed.)
            let _ = rustix::net::shutdown(socket, Shutdown::Both);
        }
    }

    /// Ends the waits whose condition holds, or whose limit has passed.
    pub fn finish_waiters(&mut self) {
        let mut at = 0;
        while at < self.waiters.len() {
            let waiter = &self.waiters[at];
            let ended = match self.condition(&waiter.caller, waiter.waits) {
                Some(ended) => ended,
                None if waiter.limit.left_ns() == Some(0) => Err(Error::TimedOut),
                None => {
                    at += 1;
                    continue;
                }
            };
            let waiter = self.waiters.swap_remove(at);
            self.reply(&waiter.caller, waiter.number, ended.map(|value| Answer { value, ..Answer::default() }));
        }
    }

    /// Returns what a wait ends with, if it ends now.
    pub fn condition(&self, caller: &Caller, waits: Waits) -> Option<Result<i64, Error>> {
        let board = |container: i32| self.containers.get(&container).map(Container::board);
        match waits {
            Waits::OwnBinding { thread } => {
                let (container, number) = self.place_of(caller.pid, thread)?;
                Some(Ok(board(container)?.occupant(number)?.endpoint.raw().into()))
            }
            Waits::EndpointBound { container, endpoint } => match board(container) {
                None => Some(Err(Error::NotBound)),
                Some(board) => board.locate(endpoint).ok().map(|_| Ok(endpoint.raw().into())),
            },
            Waits::EndpointUnbound { container, endpoint } => {
                match board(container).map(|board| board.locate(endpoint)) {
                    Some(Ok(_)) => None,
                    _ => Some(Ok(endpoint.raw().into())),
                }
            }
        }
    }

    /// Returns where a thread is bound: itself, or with its process.
    pub fn place_of(&self, pid: i32, thread: i32) -> Option<(i32, Number)> {
        let bindings = self.bindings_of(pid);
        let occupant = |(container, number): &(i32, Number)| self.containers[container].board().occupant(*number);
        let own = bindings.iter().find(|place| occupant(place).is_some_and(|bound| bound.thread == thread));
        let leader = || bindings.iter().find(|place| occupant(place).is_some_and(|bound| bound.leader == place.1));
        own.or_else(leader).copied()
    }

    fn next_deadline(&self) -> Option<Timespec> {
        let limits = self.waiters.iter().filter_map(|waiter| waiter.limit.left_ns());
        let soon = (!self.ending.is_empty()).then_some(LOOK_NS);
        // A little later, so that the limit has passed.
        let successor = self.successor.and_then(Limit::left_ns);
        let ns = limits.chain(soon).chain(successor).min()? + 100_000;
        Some(Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 })
    }
}

/// Accepts a connection.
fn accept(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
}

/// What has ended.
#[derive(PartialEq, Eq)]
enum Ends {
    Broker,
}

impl Node {
    fn encode(&self) -> Vec<u8> {
        use zerocopy::IntoBytes;
        let mut bytes = self.number.to_le_bytes().to_vec();
        bytes.extend_from_slice(self.limits.as_bytes());
        self.nodes.iter().for_each(|node| bytes.extend_from_slice(node.as_bytes()));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Node> {
        let (number, rest) = bytes.split_first_chunk()?;
        let (limits, rest) = DrvsInfo::read_from_prefix(rest).ok()?;
        let nodes = rest.chunks_exact(size_of::<NodeInfo>()).filter_map(|node| NodeInfo::read_from_bytes(node).ok());
        Some(Node { number: i32::from_le_bytes(*number), limits, nodes: nodes.collect() })
    }
}
