//! Who may ask the broker, by the credentials of his connection. Neighbours: `broker`, which holds the connections.

use crate::Options;
use m3core::wire::{self, Reply, Request};
use m3ipc::error::Error;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{RecvFlags, SendFlags};
use std::time::{Duration, Instant};

/// Between two lines about users who may not join.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// Who is at the other end of a connection.
#[derive(Clone, Copy)]
pub struct Caller {
    /// Its connection.
    pub connection: u64,
    /// Its process.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// The users and groups who may join.
pub struct Admission {
    own_uid: u32,
    uids: Vec<u32>,
    gids: Vec<u32>,
    /// When a refusal was logged last.
    logged: Option<Instant>,
}

impl Admission {
    /// As the command line says.
    pub fn new(options: &Options) -> Admission {
        let own_uid = rustix::process::getuid().as_raw();
        Admission { own_uid, uids: options.uids.clone(), gids: options.gids.clone(), logged: None }
    }

    /// Whether processes of this user may be bound.
    pub fn may_join(&self, caller: &Caller) -> bool {
        self.is_admin(caller) || self.uids.contains(&caller.uid) || self.gids.contains(&caller.gid)
    }

    /// Whether this user may do what is for root.
    pub fn is_admin(&self, caller: &Caller) -> bool {
        caller.uid == 0 || caller.uid == self.own_uid
    }

    /// Answers the first request of somebody who may not join, with `NotPermitted`, and closes the connection.
    pub fn refuse(&mut self, socket: OwnedFd, caller: &Caller) {
        if let Ok((packet, _)) = wire::receive(socket.as_fd(), RecvFlags::DONTWAIT)
            && let Some(Request { number, .. }) = Request::decode(&packet)
        {
            let reply = Reply { number, result: Err(Error::NotPermitted), bytes: Vec::new() };
            // Who has gone away needs no answer.
            let _ = wire::send(socket.as_fd(), &reply.encode(), &[], SendFlags::DONTWAIT);
        }
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_PAUSE) {
            self.logged = Some(Instant::now());
            eprintln!("m3ipcd: process {} of user {} may not join", caller.pid, caller.uid);
        }
    }
}
