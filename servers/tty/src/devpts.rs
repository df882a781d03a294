//! The directory /dev/pts: a node for each slave of a pseudo-terminal whose master is open, and `ptmx`, as in Linux's devpts.
//!
//! vfs mounts it as a file system of this service. The number of a node is Linux's (pseudo-terminal N has N + 3) with the serial of the
//! pseudo-terminal above it: a node that vfs still knows is never a later pseudo-terminal of the same number.

use crate::pty::{Node, Pty};
use crate::state::Tty;
use abi::tty::{PTMX, PTS_MAJOR};
use alloc::rc::Rc;
use fs::Errno;
use fs::file_system::{
    Attributes, DataSink, EntrySink, FileSystem, NewTimes, NodeId, S_IFCHR, S_IFDIR, Statistics, Timestamp,
};

/// The directory.
const ROOT: NodeId = 1;
/// The node `ptmx`, which nobody but root may open: programs use /dev/ptmx.
const PTMX_NODE: NodeId = 2;
/// The node of pseudo-terminal 0.
const FIRST: NodeId = 3;
/// The serial's place in a node's number.
const SERIAL_SHIFT: u32 = 16;
/// Magic number that statfs(2) reports.
const DEVPTS_MAGIC: u64 = 0x1cd1;
const SECOND_NS: u64 = 1_000_000_000;
const BLOCK_BYTES: u32 = 1024;
/// Digits of a pseudo-terminal's number.
const DIGITS: usize = 4;

/// The number of a slave's node.
pub fn node_of(pty: &Pty) -> NodeId {
    pty.serial() << SERIAL_SHIFT | (FIRST + pty.number() as u64)
}

/// The file system.
pub struct DevPts {
    tty: Rc<Tty>,
    /// When this incarnation began: the times of what is always there.
    began: Timestamp,
}

impl DevPts {
    /// The nodes of `tty`'s pseudo-terminals.
    pub fn new(tty: Rc<Tty>, now_ns: u64) -> DevPts {
        DevPts { tty, began: timestamp(now_ns) }
    }

    /// The slave of a node, and the number of its pseudo-terminal. `ESTALE`: there is none, or not any more.
    fn find(&self, node: NodeId) -> Result<(Node, usize), Errno> {
        let number = number_of(node).ok_or(Errno::ESTALE)?;
        let ptys = self.tty.ptys();
        let pty = ptys.get(number).filter(|pty| node_of(pty) == node).ok_or(Errno::ESTALE)?;
        pty.node().map(|slave| (*slave, number)).ok_or(Errno::ESTALE)
    }

    fn change(&self, node: NodeId, act: impl FnOnce(&mut Node)) -> Result<(), Errno> {
        if [ROOT, PTMX_NODE].contains(&node) {
            return Err(Errno::EPERM);
        }
        let (_, number) = self.find(node)?;
        self.tty.with_pty(number, |pty, _| pty.node_mut().map(act)).flatten().ok_or(Errno::ESTALE)
    }
}

fn number_of(node: NodeId) -> Option<usize> {
    (node & ((1 << SERIAL_SHIFT) - 1)).checked_sub(FIRST).map(|number| number as usize)
}

fn timestamp(ns: u64) -> Timestamp {
    Timestamp { seconds: (ns / SECOND_NS) as i64, nanos: (ns % SECOND_NS) as u32 }
}

fn nanoseconds(time: Timestamp) -> u64 {
    time.seconds.max(0) as u64 * SECOND_NS + u64::from(time.nanos)
}

/// Writes a number into the end of a buffer that is long enough.
fn decimal(mut number: usize, buffer: &mut [u8; DIGITS]) -> &[u8] {
    let mut at = DIGITS;
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 || at == 0 {
            return &buffer[at..];
        }
    }
}

/// makedev(3).
fn device(major: u8, minor: u64) -> u64 {
    u64::from(major) << 8 | minor & 0xff | (minor & !0xff) << 12
}

impl FileSystem for DevPts {
    fn is_volatile(&self) -> bool {
        true
    }

    fn root(&self) -> NodeId {
        ROOT
    }

    fn attributes(&mut self, node: NodeId) -> Result<Attributes, Errno> {
        let began = self.began;
        let fixed = |mode, links, device| Attributes {
            node,
            mode,
            links,
            device,
            block_size: BLOCK_BYTES,
            accessed: began,
            modified: began,
            changed: began,
            ..Attributes::default()
        };
        match node {
            ROOT => return Ok(fixed(S_IFDIR | 0o755, 2, 0)),
            PTMX_NODE => return Ok(fixed(S_IFCHR, 1, device(PTMX.0, PTMX.1.into()))),
            _ => {}
        }
        let (slave, number) = self.find(node)?;
        let [accessed, modified, changed] = slave.times_ns.map(timestamp);
        let (uid, gid) = (slave.uid, slave.gid);
        let common = fixed(S_IFCHR | slave.mode, 1, device(PTS_MAJOR, number as u64));
        Ok(Attributes { uid, gid, accessed, modified, changed, ..common })
    }

    fn lookup(&mut self, dir: NodeId, name: &[u8]) -> Result<NodeId, Errno> {
        if dir != ROOT {
            return Err(Errno::ENOTDIR);
        }
        match name {
            b"." | b".." => return Ok(ROOT),
            b"ptmx" => return Ok(PTMX_NODE),
            _ => {}
        }
        let text = core::str::from_utf8(name).map_err(|_| Errno::ENOENT)?;
        let number: usize = text.parse().map_err(|_| Errno::ENOENT)?;
        let is_plain = text == "0" || !text.starts_with(['0', '+']);
        let ptys = self.tty.ptys();
        let pty = ptys.get(number).filter(|pty| is_plain && pty.node().is_some());
        pty.map(node_of).ok_or(Errno::ENOENT)
    }

    fn read(&mut self, node: NodeId, _: u64, _: usize, _: &mut dyn DataSink) -> Result<usize, Errno> {
        Err(if node == ROOT { Errno::EISDIR } else { Errno::EINVAL })
    }

    fn read_dir(&mut self, dir: NodeId, position: u64, sink: &mut dyn EntrySink) -> Result<u64, Errno> {
        if dir != ROOT {
            return Err(Errno::ENOTDIR);
        }
        let fixed = [(ROOT, S_IFDIR, "."), (ROOT, S_IFDIR, ".."), (PTMX_NODE, S_IFCHR, "ptmx")];
        let ptys = self.tty.ptys();
        let mut next = position;
        for (place, (node, mode, name)) in fixed.into_iter().enumerate().skip(position as usize) {
            if !sink.entry(node, place as u64 + 1, mode, name.as_bytes()) {
                return Ok(next);
            }
            next = place as u64 + 1;
        }
        let first = next.saturating_sub(FIRST) as usize;
        for pty in ptys.iter().filter(|pty| pty.number() >= first && pty.node().is_some()) {
            let after = FIRST + pty.number() as u64 + 1;
            if !sink.entry(node_of(pty), after, S_IFCHR, decimal(pty.number(), &mut [0; DIGITS])) {
                break;
            }
            next = after;
        }
        Ok(next)
    }

    fn set_mode(&mut self, node: NodeId, mode: u32) -> Result<(), Errno> {
        self.change(node, |slave| slave.mode = mode & 0o7777)
    }

    fn set_owner(&mut self, node: NodeId, uid: Option<u32>, gid: Option<u32>) -> Result<(), Errno> {
        self.change(node, |slave| {
            slave.uid = uid.unwrap_or(slave.uid);
            slave.gid = gid.unwrap_or(slave.gid);
        })
    }

    fn set_times(&mut self, node: NodeId, times: NewTimes) -> Result<(), Errno> {
        self.change(node, |slave| {
            let new = [times.accessed, times.modified];
            for (time, new) in slave.times_ns.iter_mut().zip(new) {
                *time = new.map_or(*time, nanoseconds);
            }
        })
    }

    fn statistics(&self) -> Statistics {
        Statistics { kind: DEVPTS_MAGIC, block_size: 4096, ..Statistics::default() }
    }
}
