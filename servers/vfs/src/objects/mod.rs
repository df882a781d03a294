//! What descriptors name: open files, each of an object of some kind, a kind a file of this folder.
//!
//! [`OpenFile`] is what all kinds have in common: flags, position, path, record. [`Object`] is what they differ in; a call on a descriptor
//! looks up the open file and asks its object. A new kind is a file here with its `impl Object` and `impl Kind`, a line in `kinds!`, and
//! the call that makes it. Object and open file lie in one allocation, and an open file of any kind has the same size: a `dyn Object` at its
//! end would have its place, and that of all in front of it in an `Rc`, computed at each look.

pub mod asynchronous;
pub mod block;
pub mod character;
pub mod directory;
pub mod epoll;
pub mod eventfd;
mod file;
pub mod garbage;
pub mod inotify;
pub mod loop_control;
pub mod messages;
pub mod null;
pub mod path;
pub mod pidfd;
pub mod pipe;
pub mod queue;
pub mod regular;
pub mod rights;
pub mod signalfd;
pub mod socket;
pub mod timer;
pub mod zero;

use crate::{
    base::{Base, Flow, closing::Closing},
    callers::{
        Caller,
        lives::{Identity, Life},
    },
    events::{Watchers, poll::POLLNVAL},
    files::{loops::LoopDevice, stat::Summary, vnode::NodeRef},
    keep::{
        Kept,
        records::{ObjectRecord, TimerRecord},
    },
    memory::buffer::UserBuffer,
    peers::Peers,
    pipes::Pipe,
    queues::Queue,
    sockets::Socket,
};
use abi::{Errno, Message};
use alloc::{boxed::Box, rc::Rc};
use core::{
    fmt::{self, Debug},
    ops::Deref,
};
pub use file::*;
use sys::text::Text;

/// ioctl: bytes that can be read now.
const FIONREAD: u32 = 0x541b;

/// A call on an open file.
pub struct Operation<'a> {
    /// What open files stand on.
    pub base: &'static Base,
    /// Who calls.
    pub caller: &'a Rc<Caller>,
    /// The open file.
    pub file: &'a Rc<OpenFile>,
}

/// Who asks what devices are ready for.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// The services.
    pub peers: &'a Rc<Peers>,
    /// For whom: signals are pending for a thread.
    pub caller: &'a Rc<Caller>,
}

/// What a device is asked for.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// Linux POLL*.
    pub events: u32,
    /// It is ready only if something has arrived since this number (`chardev::Poll`); 0: whenever it is.
    pub since: u32,
}

impl Wanted {
    /// These events, whenever they came.
    pub fn of(events: u32) -> Wanted {
        Wanted { events, since: 0 }
    }
}

/// Ends a question to a device early.
pub type End = Box<dyn FnOnce()>;

/// The object of an open file. The defaults refuse: a kind implements what it has.
pub trait Object: Debug {
    /// Returns its description in records.
    fn record(&self) -> ObjectRecord;

    /// What is preserved in place of its open file's position, which it does not have: a number below 2^48 that most calls change, which
    /// costs a word and not the whole record. Its [`Object::seek`] never changes the position.
    fn value(&self) -> u64 {
        0
    }

    /// Charges its user for a file in use, if the file system has many. `ENFILE`.
    fn hold(&self, _user: u32) -> Result<(), Errno> {
        Ok(())
    }

    /// Its file, if it has a name in a file system.
    fn node(&self) -> Option<&NodeRef> {
        None
    }

    /// Returns what fstat reports of an object without file. `EBADF`: nothing.
    fn summary(&self) -> Result<Summary, Errno> {
        Err(Errno::EBADF)
    }

    /// Writes what /proc/PID/fdinfo tells of it besides what all files have. Fails for lack of memory alone.
    fn describe(&self, _: &mut Text) -> fmt::Result {
        Ok(())
    }

    /// Whether a call may name a position instead of its own: no other call with one gets further than `ESPIPE`.
    fn has_positions(&self) -> bool {
        false
    }

    /// read and its relatives; `at`: a position instead of the file's own. A task takes the buffer out. What cannot be read has no
    /// positions either, which is found first, as on Linux.
    fn read(&self, _: &Operation, _: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        Err(Errno::EINVAL)
    }

    /// write and its relatives.
    fn write(&self, _: &Operation, _: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        Err(Errno::EINVAL)
    }

    /// [`Object::read`] that does not wait (`RWF_NOWAIT`).
    fn read_now(&self, _: &Operation, _: &mut UserBuffer, _at: Option<u64>) -> Result<Flow, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// [`Object::write`] that does not wait (`RWF_NOWAIT`).
    fn write_now(&self, _: &Operation, _: &mut UserBuffer, _at: Option<u64>) -> Result<Flow, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// lseek: the new position. `ESPIPE`: it has none.
    fn seek(&self, _: &Seek) -> Result<u64, Errno> {
        Err(Errno::ESPIPE)
    }

    /// ioctl, but for the requests that all open files have.
    fn control(&self, _: &Operation, _request: u32, _argument: u64) -> Result<Flow, Errno> {
        Err(Errno::ENOTTY)
    }

    /// Events it is ready for now (Linux POLL*).
    fn poll(&self) -> u32 {
        POLLNVAL
    }

    /// Whether only a device knows what it is ready for: [`Object::ask_ready`].
    fn has_device(&self) -> bool {
        false
    }

    /// Asks the device what it is ready for: now, or with `stay` when it is. `done` gets the events and the number of arrivals, as `chardev::Poll`.
    fn ask_ready(&self, _: &Asking, _wanted: Wanted, _stay: bool, _done: Done) -> Result<End, Errno> {
        Err(Errno::EINVAL)
    }

    /// Asks the devices below it once more that have to be, for one who waits until they are ready.
    fn ask_again(&self, _: &Asking) {}

    /// Whether a device below it has not answered yet what it is ready for now.
    fn is_asking(&self) -> bool {
        false
    }

    /// Fire when [`Object::poll`] may have changed, each for these events; none for what is always ready.
    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [None, None]
    }

    /// Whether its owner may be told of what happens to it (`O_ASYNC`).
    fn is_asynchronous(&self) -> bool {
        false
    }

    /// What the owner is told (`abi::vfs::OWNER_*`) when the watchers are told of these events; `None`: nothing. Devices are asked instead.
    fn happened(&self, _events: u32) -> Option<u64> {
        None
    }

    /// The monotonic time at which it becomes ready by itself.
    fn wakes_at(&self) -> Option<u64> {
        None
    }

    /// A descriptor of the table with this number that meant it has ended.
    fn forget(&self, _table: u64) {}

    /// The last descriptor has ended: leaves a note of what is to be done.
    fn close(&self, _: &Closing) {}
}

/// Receives the reply of a device that was asked for its ready events.
pub type Done = Box<dyn FnOnce(Result<Message, Errno>)>;

/// What a restoration has at hand for objects: the parts of vfs's state that they refer to.
pub trait Inheritance {
    /// The pipe at this place.
    fn pipe(&mut self, place: u16) -> Option<Rc<Pipe>>;
    /// A pipe that may have packets: what it has is restored.
    fn has_packets(&mut self, pipe: &Rc<Pipe>);
    /// The message queue at this place.
    fn queue(&mut self, place: u16) -> Option<Rc<Queue>>;
    /// The timer at this place.
    fn timer(&mut self, place: u16) -> Option<Kept<TimerRecord>>;
    /// The socket at this place.
    fn socket(&mut self, place: u16) -> Option<Rc<Socket>>;
    /// The life of a process that a descriptor means.
    fn life(&mut self, identity: Identity) -> Rc<Life>;
    /// The loop device with this number.
    fn loop_device(&mut self, number: u64) -> Option<Rc<LoopDevice>>;
    /// Reserves an inode number that a predecessor has given out.
    fn has_inode(&mut self, inode: u64);
    /// What new open files need.
    fn closing(&self) -> &Rc<Closing>;
}

/// A kind of object, as records tell them apart.
pub trait Kind: Object + Into<AnyObject> {
    /// Its number in records.
    const NUMBER: u8;
    /// The object that a predecessor has described so. `None`: the record makes no sense.
    fn restore(record: &ObjectRecord, node: Option<NodeRef>, from: &mut dyn Inheritance) -> Option<Self>;

    /// Takes over the value that its predecessor's open file had. Returns the position of the open file.
    fn position_in(&self, value: u64) -> u64 {
        value
    }
}

type Restore = fn(u32, FoundFile, Option<NodeRef>, &mut dyn Inheritance) -> Option<Rc<OpenFile>>;

fn restore_as<K: Kind>(
    place: u32,
    found: FoundFile,
    node: Option<NodeRef>,
    from: &mut dyn Inheritance,
) -> Option<Rc<OpenFile>> {
    let object = K::restore(&found.0.object, node, from)?;
    Some(OpenFile::restore(from.closing(), object, place, found))
}

/// Any one of the kinds as the object of an open file.
pub trait AnyKind: Sized {
    /// The object, if it is of this kind.
    fn of(object: &AnyObject) -> Option<&Self>;
}

macro_rules! kinds {
    ($($module:ident::$kind:ident,)*) => {
        /// The object of an open file.
        #[derive(Debug)]
        pub enum AnyObject {
            $(#[doc = concat!("See [`", stringify!($module), "`].")] $kind($module::$kind),)*
        }

        impl Deref for AnyObject {
            type Target = dyn Object + 'static;

            #[inline]
            fn deref(&self) -> &(dyn Object + 'static) {
                match self {
                    $(AnyObject::$kind(object) => object,)*
                }
            }
        }

        $(
            impl From<$module::$kind> for AnyObject {
                #[inline]
                fn from(object: $module::$kind) -> AnyObject {
                    AnyObject::$kind(object)
                }
            }

            impl AnyKind for $module::$kind {
                #[inline]
                fn of(object: &AnyObject) -> Option<&Self> {
                    if let AnyObject::$kind(object) = object { Some(object) } else { None }
                }
            }
        )*

        /// All kinds, by the number that records have.
        const KINDS: &[(u8, Restore)] = &[$(($module::$kind::NUMBER, restore_as::<$module::$kind>),)*];
    };
}

kinds! {
    regular::Regular,
    directory::Directory,
    null::Null,
    path::PathOnly,
    character::Character,
    block::Block,
    pipe::PipeEnd,
    queue::MessageQueue,
    timer::TimerFile,
    socket::SocketFile,
    eventfd::EventCounter,
    epoll::EpollFile,
    pidfd::PidFd,
    signalfd::SignalFile,
    inotify::InotifyFile,
    loop_control::LoopControl,
    zero::Zero,
}

/// An open file as a predecessor has left it. `None`: the record makes no sense.
pub fn restore(
    place: u32,
    found: FoundFile,
    node: Option<NodeRef>,
    from: &mut dyn Inheritance,
) -> Option<Rc<OpenFile>> {
    let (_, restore) = KINDS.iter().find(|(number, _)| *number == found.0.object.kind)?;
    restore(place, found, node, from)
}

/// `ESPIPE` for a position that the object cannot have.
fn no_position(at: Option<u64>) -> Result<(), Errno> {
    if at.is_some() { Err(Errno::ESPIPE) } else { Ok(()) }
}

fn done(result: u64) -> Result<Flow, Errno> {
    Ok(Flow::Done(Ok(result)))
}

/// lseek: from the beginning.
const SEEK_SET: u32 = 0;
/// lseek: from the position on.
pub const SEEK_CUR: u32 = 1;
/// lseek: from the end.
pub const SEEK_END: u32 = 2;
/// lseek: to data.
pub const SEEK_DATA: u32 = 3;
/// lseek: to a hole.
pub const SEEK_HOLE: u32 = 4;

/// The arguments of lseek.
#[derive(Clone, Copy, Debug)]
pub struct Seek {
    /// The position now.
    pub position: u64,
    /// How far.
    pub offset: i64,
    /// From where (SEEK_*).
    pub whence: u32,
}

impl Seek {
    /// The new position in an object of this size. `EINVAL`, `ENXIO`.
    #[inline]
    pub fn within(&self, size: impl FnOnce() -> u64) -> Result<u64, Errno> {
        let base = match self.whence {
            SEEK_SET => 0,
            SEEK_CUR => self.position,
            SEEK_END => size(),
            _ => return self.data_within(size()),
        };
        let sum = (base as i64).checked_add(self.offset).ok_or(Errno::EINVAL)?;
        u64::try_from(sum).map_err(|_| Errno::EINVAL)
    }

    /// [`Seek::within`] to data or a hole: one stretch of data with a hole at the end, unless a file system knows better.
    #[cold]
    fn data_within(&self, size: u64) -> Result<u64, Errno> {
        let inside = u64::try_from(self.offset).is_ok_and(|offset| offset < size);
        match (inside, self.whence) {
            (true, SEEK_DATA) => Ok(self.offset as u64),
            (true, SEEK_HOLE) => Ok(size),
            (false, SEEK_DATA | SEEK_HOLE) => Err(Errno::ENXIO),
            _ => Err(Errno::EINVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn seek(position: u64, size: u64, offset: i64, whence: u32) -> Result<u64, Errno> {
        Seek { position, offset, whence }.within(|| size)
    }

    #[test]
    fn kinds_have_numbers_of_their_own() {
        let mut numbers: Vec<u8> = KINDS.iter().map(|(number, _)| *number).collect();
        numbers.sort();
        assert!(numbers.windows(2).all(|two| two[0] != two[1]));
    }

    #[test]
    fn seeks_count_from_start_position_and_end() {
        assert_eq!(seek(5, 100, 7, 0), Ok(7));
        assert_eq!(seek(5, 100, -5, 1), Ok(0));
        assert_eq!(seek(5, 100, 10, 2), Ok(110));
        assert_eq!(seek(5, 100, -6, 1), Err(Errno::EINVAL));
        assert_eq!(seek(5, 100, i64::MAX, 1), Err(Errno::EINVAL));
        assert_eq!(seek(5, 100, 0, 9), Err(Errno::EINVAL));
    }

    #[test]
    fn a_file_is_data_up_to_its_end() {
        assert_eq!(seek(0, 100, 40, 3), Ok(40));
        assert_eq!(seek(0, 100, 40, 4), Ok(100));
        assert_eq!(seek(0, 100, 100, 3), Err(Errno::ENXIO));
        assert_eq!(seek(0, 100, -1, 4), Err(Errno::ENXIO));
    }
}
