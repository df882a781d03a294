//! Inotify instances as open files (inotify(7)): a read gives events.

use super::{FIONREAD, Inheritance, Kind, Object, OpenFile, Operation, Seek, done, no_position};
use crate::{
    base::Flow,
    callers::Caller,
    events::{
        Watchers,
        poll::{ANY, POLLIN, POLLRDNORM},
    },
    files::{stat::Summary, vnode::NodeRef, watches::Inotify},
    keep::records::ObjectRecord,
    memory as user,
    memory::buffer::UserBuffer,
};
use abi::{Errno, vfs::OWNER_INPUT};
use alloc::rc::Rc;
use core::{fmt, mem::take};
use sys::text::Text;

/// The most that a read gives at once.
const READ_BYTES: u64 = 64 * 1024;

/// See the head of the file.
#[derive(Debug)]
pub struct InotifyFile(pub Rc<Inotify>);

impl InotifyFile {
    fn give(&self, buffer: &mut UserBuffer) -> Result<u64, Errno> {
        let (bytes, count) = self.0.peek(buffer.left().min(READ_BYTES) as usize)?;
        user::store_all(buffer, &bytes)?;
        self.0.drop_first(count);
        Ok(bytes.len() as u64)
    }
}

async fn wait_and_give(caller: Rc<Caller>, file: Rc<OpenFile>, mut buffer: UserBuffer) -> Result<u64, Errno> {
    let inotify: &InotifyFile = file.object().ok_or(Errno::EINVAL)?;
    caller.wait_until(inotify.0.watchers(), || inotify.0.has_events()).await?;
    inotify.give(&mut buffer)
}

impl Object for InotifyFile {
    fn record(&self) -> ObjectRecord {
        let (minor, more) = (self.0.last_descriptor(), self.0.user().into());
        ObjectRecord { minor, more, ..ObjectRecord::of(Self::NUMBER) }
    }

    fn summary(&self) -> Result<Summary, Errno> {
        Ok(Summary { inode: 1, mode: 0o600, ..Summary::default() })
    }

    fn describe(&self, text: &mut Text) -> fmt::Result {
        self.0.describe(text)
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        if self.0.has_events() {
            return self.give(buffer).and_then(done);
        }
        if on.file.nonblocking() {
            return Err(Errno::EAGAIN);
        }
        Ok(Flow::task(wait_and_give(on.caller.clone(), on.file.clone(), take(buffer))))
    }

    /// Accepted and without effect, as on Linux.
    fn seek(&self, _: &Seek) -> Result<u64, Errno> {
        Ok(0)
    }

    /// It is open for reading alone.
    fn write(&self, _: &Operation, _: &mut UserBuffer, _: Option<u64>) -> Result<Flow, Errno> {
        Err(Errno::EBADF)
    }

    fn control(&self, on: &Operation, request: u32, argument: u64) -> Result<Flow, Errno> {
        if request != FIONREAD {
            return Err(Errno::ENOTTY);
        }
        user::store(on.caller.endpoint, argument, &(self.0.bytes() as u32).to_le_bytes())?;
        done(0)
    }

    fn poll(&self) -> u32 {
        if self.0.has_events() { POLLIN | POLLRDNORM } else { 0 }
    }

    fn is_asynchronous(&self) -> bool {
        true
    }

    fn happened(&self, _: u32) -> Option<u64> {
        self.0.has_events().then_some(OWNER_INPUT)
    }

    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [Some((self.0.watchers(), ANY)), None]
    }
}

impl Kind for InotifyFile {
    const NUMBER: u8 = 14;

    /// Without its watches and events, which have records of their own.
    fn restore(record: &ObjectRecord, _: Option<NodeRef>, from: &mut dyn Inheritance) -> Option<Self> {
        Some(InotifyFile(Inotify::restored(from.closing().watches(), record.more as u32, record.minor)))
    }
}
