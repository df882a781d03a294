//! Each request happens once, and as a whole, however often the process dies.
//!
//! A request is one transaction, in which its reply is kept too (long ones commit parts that make sense alone, and are such that
//! doing them again comes to the same). So a request that comes again was either committed, and gets its reply, or never happened. Requests that
//! change nothing, or nothing that matters, are simply done again. A request that has missed a block never happened either, until it runs
//! again: it may have been repeated in between, and find its own reply.

use abi::fs::{
    Allocate, ChMod, ChOwn, CopyRange, Create, GetDents, GetXattr, Link, ListXattr, Mount, Read, ReadLink, RemoveXattr,
    Rename, SeekData, SetTimes, SetUses, SetXattr, Stat, StatFs, Symlink, Sync, Truncate, Unlink, UnlinkUnused,
    Unmount, Use, Write,
};
use abi::{Errno, GrantId, Message};
use alloc::vec::Vec;
use sys::copy;
use sys::fallible::{self, TryVec};

use super::waiting::{Missed, counts_user};
use super::{MountRequest, Server};
use crate::file_system::FileSystem;
use crate::preserve::{Preserved, VolumeMemory};
use crate::volumes::{MAX_VOLUMES, number_of, volume_of};

/// What is at work while a new incarnation finishes what its predecessors have left to do.
const WORK_LEFT: u64 = u64::MAX;
/// Bytes of a `Use`.
const USE_BYTES: usize = size_of::<Use>();
/// Uses fetched at a time.
const USES: usize = 256;

impl<F, M> Server<F, M>
where
    F: FileSystem,
    M: FnMut(&MountRequest, Option<VolumeMemory>) -> Result<F, Errno>,
{
    pub(super) fn answer_once(&mut self, message: &Message, done: &mut u64) -> Result<Message, Missed> {
        let tag = message.tag();
        let is_tracked = tag != 0 && self.preserved.is_some();
        if is_tracked {
            if !may_be_done_again(message.label)
                && let Some(reply) = self.repeated(message)
            {
                return Ok(reply);
            }
            if changes_files(message.label) {
                self.catch_up();
            }
            let slot = message.source.slot();
            let take = |preserved: &mut Preserved| preserved.request.begin(tag, slot, preserved.undo.number() - 1);
            if !self.preserved.as_mut().is_none_or(take) {
                sys::log!("request {:#x} refused: two incarnations crashed executing it (EIO)", message.label);
                return Ok(message.reply(Err(Errno::EIO)));
            }
        }
        let reply = self.perform(message, done);
        let result = self.conclude(message, reply);
        if let Some(preserved) = &mut self.preserved
            && is_tracked
        {
            if result.is_ok() { preserved.request.end() } else { preserved.request.suspend() }
        }
        result
    }

    /// Brings what the predecessor has changed to the devices. It does not happen in a request: it commits, and would acquit one that
    /// kills the server.
    #[inline]
    fn catch_up(&mut self) {
        if core::mem::replace(&mut self.has_caught_up, true) {
            return;
        }
        for file_system in self.volumes.iter_mut() {
            if let Err(error) = file_system.catch_up() {
                sys::log!("changes from before a restart not written: {error}");
            }
        }
    }

    /// The reply that `message` has got before. Uses set after that have not counted it: it counts again.
    fn repeated(&mut self, message: &Message) -> Option<Message> {
        let preserved = self.preserved.as_ref()?;
        let (number, reply) = preserved.replies.find(message)?;
        if !counts_user(message.label) || reply.result().is_err() || number > preserved.undo.epoch() {
            return Some(reply);
        }
        self.while_blocking(|server| {
            let counted = server.volumes.find(reply.words[1]).and_then(|(file_system, node)| file_system.get(node));
            let reply = counted.map_or_else(|error| message.reply(Err(error)), |()| reply);
            server.conclude(message, reply).ok()
        })
    }

    /// The reply that was given to the change with the tag of `message`, whichever change it was.
    pub(super) fn recall(&mut self, message: &Message) -> Option<Message> {
        let changes = [
            Create::LABEL,
            Symlink::LABEL,
            Link::LABEL,
            Unlink::LABEL,
            UnlinkUnused::LABEL,
            Rename::LABEL,
            Truncate::LABEL,
            SetXattr::LABEL,
            RemoveXattr::LABEL,
            Mount::LABEL,
            Unmount::LABEL,
        ];
        changes.into_iter().find_map(|label| self.repeated(&Message { label, ..*message }))
    }

    /// Commits what a request has changed, with its reply. When that fails, or the request has missed a block, nothing has happened.
    fn conclude(&mut self, message: &Message, reply: Message) -> Result<Message, Missed> {
        let settled = self.settle();
        if let Some(arrival) = self.missed() {
            return Err(Missed(arrival));
        }
        if let Some(arrival) = self.waiting.room_to_come(message, &reply) {
            self.undo_changes();
            return Err(Missed(arrival));
        }
        if let Err(error) = settled {
            return Ok(message.reply(Err(error)));
        }
        let Some(preserved) = &mut self.preserved else { return Ok(reply) };
        if !preserved.undo.is_open() {
            return Ok(reply);
        }
        if message.tag() != 0 && !may_be_done_again(message.label) {
            preserved.replies.keep(preserved.undo.number(), message, &reply);
        }
        preserved.undo.commit();
        self.volumes.iter_mut().for_each(F::committed);
        self.clean_up();
        Ok(reply)
    }

    /// Commits what has been changed up to now, without reply.
    pub(super) fn commit_part(&mut self) -> Result<(), Errno> {
        self.settle()?;
        if let Some(preserved) = &mut self.preserved
            && preserved.undo.is_open()
        {
            preserved.undo.commit();
            self.volumes.iter_mut().for_each(F::committed);
        }
        Ok(())
    }

    /// Puts all changes into preserved memory; when that fails everything since the last commit is undone. `EAGAIN` when a block is
    /// missed.
    fn settle(&mut self) -> Result<(), Errno> {
        let settled = self.volumes.iter_mut().try_for_each(F::settle);
        if let Err(error) = settled
            && error != Errno::EAGAIN
        {
            sys::log!("request rolled back: its changes could not be stored ({error})");
            self.undo_request();
        }
        settled
    }

    /// Undoes what the present request has changed, if it has changed anything.
    pub(super) fn undo_changes(&mut self) {
        if self.volumes.iter_mut().any(|file_system| file_system.is_changed()) {
            self.undo_request();
        }
    }

    /// Undoes everything since the last commit, in preserved memory and on the heap.
    pub(super) fn undo_request(&mut self) {
        if let Some(preserved) = &self.preserved {
            let volumes = &mut self.volumes;
            let undone = preserved.undo.roll_back(preserved.limits(), |place, bytes| {
                for volume in volumes.all() {
                    volume.file_system.put_back(place, bytes);
                    if let Some(mount_place) = &mut volume.place {
                        mount_place.restore(place, bytes);
                    }
                }
            });
            // The successor finds the same log, and goes on from there.
            undone.expect("the undo log is damaged");
            let reloaded = self.while_blocking(|server| server.volumes.iter_mut().try_for_each(F::reload));
            reloaded.expect("what is mounted cannot be read again");
        }
    }

    /// Does what requests have left to do, as far as the blocks for it are here.
    pub(super) fn clean_up(&mut self) {
        let before = self.commits();
        let act = |server: &mut Self| server.volumes.iter_mut().try_for_each(F::clean_up);
        let cleaned = if self.waiting.is_clean_up_stuck() { self.while_blocking(act) } else { act(self) };
        if let Some(arrival) = self.missed() {
            self.waiting.postpone_clean_up(arrival, self.commits() != before);
            return;
        }
        self.waiting.end_clean_up();
        if let Err(error) = cleaned {
            sys::log!("orphaned inodes not freed: {error}");
        }
    }

    /// Finishes what a predecessor has left to do, unless two of them have died of it.
    pub(super) fn finish_work_left(&mut self) {
        let take = |preserved: &mut Preserved| preserved.work.begin(WORK_LEFT, 0, preserved.undo.number() - 1);
        if !self.preserved.as_mut().is_none_or(take) {
            sys::log!("orphaned inodes not freed: two incarnations crashed freeing them; run e2fsck");
            return;
        }
        self.while_blocking(Self::clean_up);
        if let Some(preserved) = &mut self.preserved {
            preserved.work.end();
        }
    }

    /// vfs tells after its own restart what it uses.
    pub(super) fn set_uses(&mut self, message: &Message, request: SetUses) -> Result<Message, Errno> {
        let uses = fetch_uses(message, request.grant, request.bytes)?;
        for number in 0..MAX_VOLUMES {
            let Some(volume) = self.volumes.get(number) else { continue };
            let of_volume = uses.iter().filter(|one| volume_of(one.node) == number);
            let count_of = |one: &Use| (number_of(one.node), u32::try_from(one.count).unwrap_or(u32::MAX));
            let mut counts = fallible::collect(of_volume.map(count_of))?;
            counts.sort_unstable();
            volume.file_system.set_uses(&counts)?;
            self.commit_part()?;
        }
        for volume in self.volumes.all() {
            volume.owner = message.source;
            volume.record();
        }
        if let Some(preserved) = &self.preserved {
            preserved.undo.begin_epoch();
        }
        Ok(message.reply(Ok(0)))
    }
}

/// Whether a request changes files.
fn changes_files(label: u32) -> bool {
    let such = [
        Allocate::LABEL,
        ChMod::LABEL,
        ChOwn::LABEL,
        CopyRange::LABEL,
        Create::LABEL,
        Link::LABEL,
        RemoveXattr::LABEL,
        Rename::LABEL,
        SetTimes::LABEL,
        SetXattr::LABEL,
        Symlink::LABEL,
        Truncate::LABEL,
        Unlink::LABEL,
        UnlinkUnused::LABEL,
        Write::LABEL,
    ];
    such.contains(&label)
}

/// Whether a request that comes again is done again: it changes nothing that matters, and its result is not in the reply alone.
fn may_be_done_again(label: u32) -> bool {
    let such = [
        Read::LABEL,
        GetDents::LABEL,
        GetXattr::LABEL,
        ListXattr::LABEL,
        ReadLink::LABEL,
        SeekData::LABEL,
        Stat::LABEL,
        StatFs::LABEL,
        Sync::LABEL,
        SetUses::LABEL,
    ];
    such.contains(&label)
}

/// The records in a grant of the sender. `EINVAL`: one is not whole.
pub(super) fn fetch_uses(message: &Message, grant: GrantId, bytes: u64) -> Result<Vec<Use>, Errno> {
    if !bytes.is_multiple_of(USE_BYTES as u64) {
        return Err(Errno::EINVAL);
    }
    let count = usize::try_from(bytes).map_err(|_| Errno::ENOMEM)? / USE_BYTES;
    let mut uses = fallible::with_capacity(count)?;
    let mut buffer = [0; USES * USE_BYTES];
    let mut offset = 0;
    while offset < bytes {
        let piece = (bytes - offset).min(buffer.len() as u64) as usize;
        copy::from_grant(message.source, grant, offset, &mut buffer[..piece])?;
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        for one in buffer[..piece].chunks_exact(USE_BYTES) {
            uses.push_reserved(Use { node: word(one), count: word(&one[8..]) });
        }
        offset += piece as u64;
    }
    Ok(uses)
}
