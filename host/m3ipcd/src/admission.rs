//! Who may ask the broker, by the credentials of his connection, and how much he may have. Neighbours: `broker`, which holds the connections; `buffers`.

use crate::Options;
use crate::buffers::Used;
use m3core::process::{self, Ids, Process};
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
    /// When that began: a later one with its pid is not meant.
    pub started: u64,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl Caller {
    /// Its process, unless it has ended.
    pub fn process(&self) -> Option<Process> {
        Process::open(self.pid, self.started)
    }

    /// Its effective capabilities, as far as they are rights where the broker is, too.
    pub fn capabilities(&self) -> u64 {
        self.process().map_or(0, |process| process.capabilities(self.uid, self.gid))
    }
}

/// Instead of ids that the broker's user namespace does not have: these users and groups are many, and none that could be named.
const FOREIGN: u32 = u32::MAX;

/// The users and groups who may join, and how many connections each user has.
pub struct Admission {
    own_uid: u32,
    /// What stands for ids that the broker's user namespace does not have.
    foreign_uid: Option<u32>,
    foreign_gid: Option<u32>,
    uids: Vec<u32>,
    gids: Vec<u32>,
    /// Open files that the broker may have.
    files: usize,
    /// Memory that all buffers may take.
    buffer_bytes: u64,
    /// By user.
    connections: BTreeMap<u32, usize>,
    /// When a refusal was logged last.
    logged: Option<Instant>,
}

impl Admission {
    /// As the command line says, for a broker that may have so many open files.
    pub fn new(options: &Options, files: usize) -> Admission {
        let own_uid = rustix::process::getuid().as_raw();
        let (foreign_uid, foreign_gid) = (process::foreign_id(Ids::Users), process::foreign_id(Ids::Groups));
        let (uids, gids) = (options.uids.clone(), options.gids.clone());
        let buffer_bytes = options.buffer_bytes.unwrap_or_else(|| share_of(NOBODY, memory_bytes()));
        let (connections, logged) = (BTreeMap::new(), None);
        Admission { own_uid, foreign_uid, foreign_gid, uids, gids, files, buffer_bytes, connections, logged }
    }

    /// Returns the ids of a peer without those that stand for ids which the broker cannot tell from each other.
    pub fn known_ids(&self, uid: u32, gid: u32) -> (u32, u32) {
        let known = |id, foreign| if Some(id) == foreign { FOREIGN } else { id };
        (known(uid, self.foreign_uid), known(gid, self.foreign_gid))
    }

    /// Counts a new connection, of a user whose buffers and boxes take so many files. It is not counted if it is refused.
    ///
    /// # Errors
    /// `NotPermitted`: processes of this user may not be bound. `NoMemory`: the user has files enough.
    pub fn admit(&mut self, caller: &Caller, files: usize) -> Result<(), Error> {
        if !self.may_join(caller) {
            return Err(Error::NotPermitted);
        }
        let share = share_of(caller.uid, self.files as u64);
        let count = self.connections.entry(caller.uid).or_default();
        if (*count + files) as u64 >= share {
            return Err(Error::NoMemory);
        }
        *count += 1;
        Ok(())
    }

    /// Checks that a user whose buffers take so much may have one more, of so many bytes.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn check_buffer(&mut self, caller: &Caller, used: Used, bytes: u64) -> Result<(), Error> {
        if self.has_file(caller, used) && used.bytes + bytes <= share_of(caller.uid, self.buffer_bytes) {
            return Ok(());
        }
        let Caller { pid, uid, .. } = *caller;
        self.log(|| format!("process {pid}: user {uid} has buffers enough"));
        Err(Error::NoMemory)
    }

    /// Checks that a user may have one more box.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn check_box(&mut self, caller: &Caller, used: Used) -> Result<(), Error> {
        if self.has_file(caller, used) {
            return Ok(());
        }
        let Caller { pid, uid, .. } = *caller;
        self.log(|| format!("process {pid}: user {uid} has boxes enough"));
        Err(Error::NoMemory)
    }

    /// Whether there is one more file for a user with these buffers and boxes.
    fn has_file(&self, caller: &Caller, used: Used) -> bool {
        let connections = self.connections.get(&caller.uid).copied().unwrap_or(0);
        ((connections + used.files) as u64) < share_of(caller.uid, self.files as u64)
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
        let names = |ids: &[u32], id| id != FOREIGN && ids.contains(&id);
        self.is_admin(caller) || names(&self.uids, caller.uid) || names(&self.gids, caller.gid)
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
        let Caller { pid, uid, .. } = *caller;
        self.log(|| match why {
            Error::NoMemory => format!("process {pid}: user {uid} has connections enough"),
            _ => format!("process {pid} of user {uid} may not join"),
        });
    }

    fn log(&mut self, line: impl FnOnce() -> String) {
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_PAUSE) {
            self.logged = Some(Instant::now());
            eprintln!("m3ipcd: {}", line());
        }
    }
}

/// A user who is not root.
const NOBODY: u32 = 65534;

/// What a user may have of what there is for all: others need some too, and the broker itself. Root has a larger share.
fn share_of(uid: u32, all: u64) -> u64 {
    match uid {
        0 => all / 2,
        _ => all / 8,
    }
}

/// Memory of this machine.
fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(info.mem_unit.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEACHER: u32 = 1000;
    const STUDENT: u32 = 1001;

    fn caller(uid: u32) -> Caller {
        Caller { connection: 1, pid: 1, started: 0, uid, gid: uid }
    }

    fn options() -> Options {
        let uids = vec![TEACHER, STUDENT];
        Options { socket: "socket".into(), uids, gids: vec![], buffer_bytes: Some(8 << 20) }
    }

    #[test]
    fn users_whom_the_broker_cannot_tell_apart_may_not_join() {
        let options = Options { uids: vec![65534, FOREIGN], gids: vec![65534, FOREIGN], ..options() };
        let mut admission = Admission::new(&options, 80);
        let peer = |admission: &Admission| {
            let (uid, gid) = admission.known_ids(65534, 65534);
            Caller { uid, gid, ..caller(65534) }
        };
        (admission.foreign_uid, admission.foreign_gid) = (None, None);
        assert_eq!(admission.admit(&peer(&admission), 0), Ok(()));
        (admission.foreign_uid, admission.foreign_gid) = (Some(65534), Some(65534));
        assert_eq!(admission.admit(&peer(&admission), 0), Err(Error::NotPermitted));
        // A broker whose own user has no id in its namespace.
        admission.own_uid = 65534;
        assert!(!admission.is_admin(&peer(&admission)));
    }

    #[test]
    fn a_user_has_a_share_of_memory_and_files_for_buffers() {
        let mut admission = Admission::new(&options(), 80);
        let used = |files, bytes| Used { files, bytes };
        assert_eq!(admission.check_buffer(&caller(STUDENT), used(9, 1 << 19), 1 << 19), Ok(()));
        assert_eq!(admission.check_buffer(&caller(STUDENT), used(9, 1 << 19), (1 << 19) + 4096), Err(Error::NoMemory));
        assert_eq!(admission.check_buffer(&caller(0), used(9, 1 << 20), 3 << 20), Ok(()));
        assert_eq!(admission.check_buffer(&caller(STUDENT), used(10, 0), 4096), Err(Error::NoMemory));
        assert_eq!(admission.admit(&caller(STUDENT), 9), Ok(()));
        assert_eq!(admission.check_buffer(&caller(STUDENT), used(9, 0), 4096), Err(Error::NoMemory));
        assert_eq!(admission.admit(&caller(STUDENT), 9), Err(Error::NoMemory));
        assert_eq!(admission.admit(&caller(STUDENT), 8), Ok(()));
        assert_eq!(admission.check_box(&caller(STUDENT), used(7, 0)), Ok(()));
        assert_eq!(admission.check_box(&caller(STUDENT), used(8, 0)), Err(Error::NoMemory));
        assert_eq!(admission.check_box(&caller(TEACHER), used(0, 0)), Ok(()));
    }

    #[test]
    fn a_user_who_has_connections_enough_takes_none_from_others() {
        let mut admission = Admission::new(&options(), 80);
        for _ in 0..10 {
            assert_eq!(admission.admit(&caller(STUDENT), 0), Ok(()));
        }
        assert_eq!(admission.admit(&caller(STUDENT), 0), Err(Error::NoMemory));
        assert_eq!(admission.admit(&caller(TEACHER), 0), Ok(()));
        assert_eq!(admission.admit(&caller(1002), 0), Err(Error::NotPermitted));
        admission.closed(&caller(STUDENT));
        assert_eq!(admission.admit(&caller(STUDENT), 0), Ok(()));
        for _ in 0..40 {
            assert_eq!(admission.admit(&caller(0), 0), Ok(()), "root's share is larger");
        }
        assert_eq!(admission.admit(&caller(0), 0), Err(Error::NoMemory));
    }
}
