//! How a worker takes over from its predecessor, and what it does when its supervisor dies. Neighbours: `partner`, `store`, `supervisor`.

use super::{Broker, Node, Watched};
use crate::Options;
use crate::admission::Admission;
use crate::container::Container;
use crate::partner::{BACK_OFF, Partner, Role};
use crate::store::{self, Key, Packet};
use m3core::signals::Signals;
use m3core::wait::Limit;
use m3ipc::error::Error;
use rustix::event::epoll;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

/// Open files that are given up for a connection that is closed at once, and for a new supervisor.
const SPARE_FILES: usize = 3;

impl Broker {
    /// Gets the predecessor's deposits, and watches the processes that are bound.
    ///
    /// # Errors
    /// `EPIPE`: the supervisor has ended before these were all. Those of `epoll_ctl(2)`.
    pub(super) fn take_over(
        supervisor: Partner,
        signals: Signals,
        options: &Options,
        files: usize,
    ) -> Result<Broker, Errno> {
        let socket = supervisor.socket().clone();
        let signals = Rc::new(signals);
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut broker = Broker {
            poll,
            watched: BTreeMap::new(),
            next_token: 1,
            waiters: Vec::new(),
            ending: Vec::new(),
            admission: Admission::new(options, files),
            last_buffer: 0,
            node: None,
            containers: BTreeMap::new(),
            supervisor,
            successor: None,
            signals: signals.clone(),
            spare: Vec::new(),
        };
        broker.fill_spare();
        broker.watch(Watched::Signals(signals))?;
        broker.watch(Watched::Supervisor(socket.clone()))?;
        loop {
            match store::receive(&socket) {
                Some(Packet::Keep(key, bytes, files)) => broker.take_over_deposit(key, &bytes, files)?,
                Some(Packet::End) => break,
                _ => return Err(Errno::PIPE),
            }
        }
        let pids: Vec<i32> = broker.bound_pids();
        for pid in pids {
            broker.watch_process(pid);
        }
        Ok(broker)
    }

    fn take_over_deposit(&mut self, key: Key, bytes: &[u8], mut files: Vec<OwnedFd>) -> Result<(), Errno> {
        match key {
            Key::Listener => {
                let listener = files.pop().ok_or(Errno::BADF)?;
                self.watch(Watched::Listener(listener))?;
            }
            Key::Node => self.node = Node::decode(bytes),
            Key::Container(number) => {
                if let Some(container) = Container::taken_over(bytes, files) {
                    self.containers.insert(number, container);
                }
            }
            Key::Box(container, low, high) => {
                if let (Some(container), Some(file)) = (self.containers.get_mut(&container), files.pop()) {
                    container.take_over_box(low, high, bytes, file);
                }
            }
            Key::Buffer(container, leader, place) => {
                let supervisor = self.supervisor();
                if let (Some(container), Some(file)) = (self.containers.get_mut(&container), files.pop()) {
                    container.take_over_buffer(leader, place, file, &supervisor);
                }
            }
        }
        Ok(())
    }

    /// Deposits the node.
    pub fn keep_node(&self) -> Result<(), Error> {
        let kept = match &self.node {
            Some(node) => store::keep(self.supervisor.socket(), Key::Node, &node.encode(), &[]),
            None => store::drop(self.supervisor.socket(), Key::Node),
        };
        kept.map_err(|_| Error::NoMemory)
    }

    /// Returns the socket to the supervisor.
    pub fn supervisor(&self) -> Rc<OwnedFd> {
        self.supervisor.socket().clone()
    }

    /// The supervisor has ended: its successor is started soon. Until then there are no deposits.
    pub(super) fn supervisor_ended(&mut self, token: u64) {
        // It would be told for ever.
        let _ = epoll::delete(&self.poll, self.supervisor.socket());
        self.watched.remove(&token);
        eprintln!("m3ipcd: supervisor ended ({})", self.supervisor.end());
        self.successor = Some(Limit::from_ms(self.supervisor.pause().as_millis() as i64));
    }

    /// Starts a successor of the supervisor, if it is time for one.
    pub(super) fn replace_supervisor(&mut self) {
        if self.successor.is_none_or(|limit| limit.left_ns() != Some(0)) {
            return;
        }
        self.spare.clear();
        self.successor = self.start_supervisor().err().map(|error| {
            eprintln!("m3ipcd: start of a supervisor failed: {error}; trying again");
            Limit::from_ms(BACK_OFF.as_millis() as i64)
        });
        self.fill_spare();
    }

    fn start_supervisor(&mut self) -> io::Result<()> {
        let mut supervisor = Partner::start(Role::Supervisor)?;
        if let Err(error) = self.hand_over(supervisor.socket()) {
            supervisor.end();
            return Err(error.into());
        }
        self.watch(Watched::Supervisor(supervisor.socket().clone()))?;
        eprintln!("m3ipcd: pid {} is the new supervisor", supervisor.pid());
        self.supervisor = supervisor;
        Ok(())
    }

    /// Gives a new supervisor all that is to be kept.
    fn hand_over(&self, to: &OwnedFd) -> Result<(), Errno> {
        for watched in self.watched.values() {
            if let Watched::Listener(listener) = watched {
                store::hand_over(to, Key::Listener, &[], &[listener.as_fd()])?;
            }
        }
        if let Some(node) = &self.node {
            store::hand_over(to, Key::Node, &node.encode(), &[])?;
        }
        self.containers.values().try_for_each(|container| container.hand_over(to))?;
        store::end(to)
    }

    pub(super) fn fill_spare(&mut self) {
        let spare = || self.poll.try_clone().ok();
        self.spare = std::iter::from_fn(spare).take(SPARE_FILES).collect();
    }
}
