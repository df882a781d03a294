//! Who may ask the broker, by the credentials of his connection. Neighbours: `broker`, which holds the connections.

use crate::Options;
use m3core::wire::{self, Reply, Request};
use m3ipc::error::Error;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{RecvFlags, SendFlags};
use std::collections::BTreeMap;
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

/// The users and groups who may join, and how many connections each user has.
pub struct Admission {
    own_uid: u32,
    uids: Vec<u32>,
    gids: Vec<u32>,
    /// Open files that the broker may have.
    files: usize,
    /// By user.
    connections: BTreeMap<u32, usize>,
    /// When a refusal was logged last.
    logged: Option<Instant>,
}

impl Admission {
    /// As the command line says, for a broker that may have so many open files.
    pub fn new(options: &Options, files: usize) -> Admission {
        let own_uid = rustix::process::getuid().as_raw();
        let (uids, gids) = (options.uids.clone(), options.gids.clone());
        Admission { own_uid, uids, gids, files, connections: BTreeMap::new(), logged: None }
    }

    /// Counts a new connection. It is not counted if it is refused.
    ///
    /// # Errors
    /// `NotPermitted`: processes of this user may not be bound. `NoMemory`: the user has connections enough.
    pub fn admit(&mut self, caller: &Caller) -> Result<(), Error> {
        if !self.may_join(caller) {
            return Err(Error::NotPermitted);
        }
        let share = share_of(caller.uid, self.files);
        let count = self.connections.entry(caller.uid).or_default();
        if *count >= share {
            return Err(Error::NoMemory);
        }
        *count += 1;
        Ok(())
    }

    /// A connection that was admitted is closed.
    pub fn closed(&mut self, caller: &Caller) {
        if let Some(count) = self.connections.get_mut(&caller.uid) {
            *count -= 1;
            self.connections.retain(|_, count| *count > 0);
        }
    }

    /// Whether processes of this user may be bound.
    fn may_join(&self, caller: &Caller) -> bool {
        self.is_admin(caller) || self.uids.contains(&caller.uid) || self.gids.contains(&caller.gid)
    }

    /// Whether this user may do what is for root.
    pub fn is_admin(&self, caller: &Caller) -> bool {
        caller.uid == 0 || caller.uid == self.own_uid
    }

    /// Answers the first request of somebody who was not admitted, with `why`, and closes the connection.
    pub fn refuse(&mut self, socket: OwnedFd, caller: &Caller, why: Error) {
        if let Ok((packet, _)) = wire::receive(socket.as_fd(), RecvFlags::DONTWAIT)
            && let Some(Request { number, .. }) = Request::decode(&packet)
        {
            let reply = Reply { number, result: Err(why), bytes: Vec::new() };
            // Who has gone away needs no answer.
            let _ = wire::send(socket.as_fd(), &reply.encode(), &[], SendFlags::DONTWAIT);
        }
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_PAUSE) {
            self.logged = Some(Instant::now());
            let Caller { pid, uid, .. } = caller;
            match why {
                Error::NoMemory => eprintln!("m3ipcd: process {pid}: user {uid} has connections enough"),
                _ => eprintln!("m3ipcd: process {pid} of user {uid} may not join"),
            }
        }
    }
}

/// Most connections of a user, of so many files that there are: others, and the boxes, need some too. Root has a larger share.
fn share_of(uid: u32, files: usize) -> usize {
    match uid {
        0 => files / 2,
        _ => files / 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEACHER: u32 = 1000;
    const STUDENT: u32 = 1001;

    fn caller(uid: u32) -> Caller {
        Caller { connection: 1, pid: 1, uid, gid: uid }
    }

    #[test]
    fn a_user_who_has_connections_enough_takes_none_from_others() {
        let options = Options { socket: "socket".into(), uids: vec![TEACHER, STUDENT], gids: vec![] };
        let mut admission = Admission::new(&options, 80);
        for _ in 0..10 {
            assert_eq!(admission.admit(&caller(STUDENT)), Ok(()));
        }
        assert_eq!(admission.admit(&caller(STUDENT)), Err(Error::NoMemory));
        assert_eq!(admission.admit(&caller(TEACHER)), Ok(()));
        assert_eq!(admission.admit(&caller(1002)), Err(Error::NotPermitted));
        admission.closed(&caller(STUDENT));
        assert_eq!(admission.admit(&caller(STUDENT)), Ok(()));
        for _ in 0..40 {
            assert_eq!(admission.admit(&caller(0)), Ok(()), "root's share is larger");
        }
        assert_eq!(admission.admit(&caller(0)), Err(Error::NoMemory));
    }
}
