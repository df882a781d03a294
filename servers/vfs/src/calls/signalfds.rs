//! The calls that make descriptors that signals are read from: signalfd, signalfd4.

use super::{Entry, allow, call, call::Call, done};
use crate::{
    memory as user,
    objects::{O_CLOEXEC, O_NONBLOCK, O_RDWR, OpenFile, signalfd::SignalFile},
};
use abi::{Errno, linux::nr};
use sys::fallible::copied;

pub(super) const CALLS: &[Entry] =
    &[call(nr::SIGNALFD, |c| done(signalfd(c, 0))), call(nr::SIGNALFD4, |c| done(signalfd(c, c.flags(3))))];

/// Size of a signal set.
const MASK_BYTES: u64 = 8;
/// SIGKILL and SIGSTOP, which nobody reads.
const UNSTOPPABLE: u64 = 1 << 8 | 1 << 18;

/// signalfd4: a new descriptor for a set of signals, or the set of an existing one. `EINVAL`: flags, sizes, another kind of descriptor.
fn signalfd(call: &Call, flags: u32) -> Result<u64, Errno> {
    if call.words[2] != MASK_BYTES {
        return Err(Errno::EINVAL);
    }
    let process = call.process;
    let [mask] = user::fetch_words(process.caller.endpoint, call.words[1])?;
    allow(flags, O_CLOEXEC | O_NONBLOCK)?;
    let mask = mask & !UNSTOPPABLE;
    if call.int(0) != -1 {
        let file = process.file(call.int(0))?;
        file.usable()?;
        file.object::<SignalFile>().ok_or(Errno::EINVAL)?.set_mask(&file, mask);
        return Ok(call.words[0] & 0xffff_ffff);
    }
    call.peers().connect_process_manager()?;
    let path = copied(b"anon_inode:[signalfd]")?;
    let signals = SignalFile::new(mask);
    let file = OpenFile::new(call.closing(), process.caller.user(), signals, flags & O_NONBLOCK | O_RDWR, path)?;
    process.insert(file, flags & O_CLOEXEC != 0)
}
