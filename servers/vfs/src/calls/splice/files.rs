//! Files and devices as source and target: splice, sendfile, copy_file_range.
//!
//! What goes from a file into a pipe or socket is read first, and put in when there is room; what comes from a pipe is held there until it is
//! written. A copy between two files of one file system is made by that file system, or by a write of what the page cache has of the source.

use super::{Mover, PIECE_BYTES, open_file, pipe_of, stream, swallows};
use crate::{
    base::{Base, Flow},
    cache::STAGED_BYTES,
    callers::{Caller, permission::S_IFDIR},
    calls::{call::Call, task},
    files::{known::Change, vnode::NodeRef, watches::flag},
    keep::records::Note,
    memory as user,
    objects::{
        O_APPEND, OpenFile,
        character::{self, Character},
        regular::{Regular, written},
    },
    pipes::Pipe,
};
use abi::{Endpoint, Errno, fs};
use alloc::{rc::Rc, vec::Vec};
use core::cmp::min;
use server::quota::Share;

/// At most so many bytes a request to a file system, so that other requests get in between.
const CHUNK: u64 = 1 << 20;

/// Where in an open file a call reads or writes: at an offset that the program has in its memory, or at the file's own position.
#[derive(Clone)]
pub(super) struct Place {
    file: Rc<OpenFile>,
    who: Endpoint,
    /// The address of the offset, and its value.
    offset: Option<(u64, u64)>,
}

impl Place {
    /// The place that the offset at this address says, if there is one. `EFAULT`.
    pub fn fetch(call: &Call, file: &Rc<OpenFile>, address: u64) -> Result<Place, Errno> {
        let who = call.process.caller.endpoint;
        let offset = match address {
            0 => None,
            address => Some((address, user::fetch_words::<1>(who, address)?[0])),
        };
        Ok(Place { file: file.clone(), who, offset })
    }

    pub fn file(&self) -> &Rc<OpenFile> {
        &self.file
    }

    pub fn is_explicit(&self) -> bool {
        self.offset.is_some()
    }

    /// Whether it is not negative.
    pub fn is_valid(&self) -> bool {
        self.start() <= i64::MAX as u64
    }

    fn start(&self) -> u64 {
        self.offset.map_or_else(|| self.file.position(), |(_, offset)| offset)
    }

    /// A transfer of up to so many bytes begins. Returns its start, and what [`Place::end`] wants.
    fn begin(&self, bytes: u64) -> (u64, u64) {
        let start = self.start();
        let expected = start.saturating_add(bytes);
        if !self.is_explicit() {
            self.file.begin_transfer(expected);
        }
        (start, expected)
    }

    /// The transfer that was to end at `expected` has ended at `end`: the last thing a call does. `EFAULT`.
    fn end(&self, expected: u64, end: u64) -> Result<(), Errno> {
        match self.offset {
            None => self.file.end_transfer(expected, end),
            Some((_, start)) if end == start => {}
            Some((address, _)) => user::store(self.who, address, &end.to_le_bytes())?,
        }
        Ok(())
    }
}

/// Bytes between a position and the end of a file; of one whose size is not known, up to `limit`.
fn left_of(node: &NodeRef, position: u64, limit: u64) -> u64 {
    if node.mount().is_volatile() { limit } else { limit.min(node.size().saturating_sub(position)) }
}

/// splice.
impl Mover {
    /// Moves a piece of a file into a pipe.
    pub(super) async fn file_to_pipe(
        self,
        from: Place,
        node: NodeRef,
        to: Rc<Pipe>,
        bytes: usize,
    ) -> Result<u64, Errno> {
        self.wait_for_room(&to).await?;
        let _memory = self.base.charge(self.caller.user(), PIECE_BYTES)?;
        let bytes = left_of(&node, from.start(), bytes.min(to.room()).min(PIECE_BYTES) as u64);
        let (start, expected) = from.begin(bytes);
        let moved = self.put_piece(&node, start, bytes as usize, &to).await;
        from.end(expected, start + moved.unwrap_or(0))?;
        moved
    }

    async fn put_piece(&self, node: &NodeRef, start: u64, bytes: usize, to: &Pipe) -> Result<u64, Errno> {
        if bytes == 0 {
            return Ok(0);
        }
        let data = self.base.mappings().read_into(node, start, bytes).await?;
        if data.is_empty() {
            return Ok(0);
        }
        // Others may have filled the pipe meanwhile.
        self.wait_for_room(to).await?;
        self.base.store().has_moved();
        to.put(self.base, &data).map(|moved| moved as u64)
    }

    /// Moves a piece out of a pipe into a file.
    pub(super) async fn pipe_to_file(
        self,
        from: Rc<Pipe>,
        to: Place,
        node: NodeRef,
        bytes: usize,
    ) -> Result<u64, Errno> {
        self.base.check_file_limit(&self.caller, to.start().saturating_add(1)).await?;
        let Some((data, _memory)) = self.take_piece(&from, bytes).await? else { return from.take_end(self.base) };
        let (start, expected) = to.begin(data.len() as u64);
        let stored = store_at(self.base, &self.caller, &self.files[1], &node, start, data).await;
        let moved = stored.unwrap_or(0);
        from.release(self.base, moved as usize);
        to.end(expected, start + moved)?;
        stored
    }

    /// Moves a piece out of a pipe to a character device.
    pub(super) async fn pipe_to_device(self, from: Rc<Pipe>, bytes: usize) -> Result<u64, Errno> {
        let Some((data, _memory)) = self.take_piece(&from, bytes).await? else { return from.take_end(self.base) };
        let stored = character::write_from(self.base, &self.caller, &self.files[1], data, 0).await;
        from.release(self.base, stored.unwrap_or(0) as usize);
        stored
    }

    /// Removes a piece from a pipe.
    pub(super) async fn discard(self, from: Rc<Pipe>, bytes: usize) -> Result<u64, Errno> {
        let Some((data, _memory)) = self.take_piece(&from, bytes).await? else { return from.take_end(self.base) };
        from.release(self.base, data.len());
        self.base.store().has_moved();
        Ok(data.len() as u64)
    }

    /// Copies a piece of a pipe, which is held from then on, into memory that is charged to the caller. `None`: none will come.
    async fn take_piece(&self, from: &Pipe, bytes: usize) -> Result<Option<(Vec<u8>, Share)>, Errno> {
        loop {
            self.wait_for_data(from).await?;
            if from.is_at_end() {
                return Ok(None);
            }
            if from.can_give() {
                let memory = self.base.charge(self.caller.user(), PIECE_BYTES)?;
                let data = from.look(self.base, bytes.min(PIECE_BYTES))?;
                from.hold();
                return Ok(Some((data, memory)));
            }
        }
    }
}

/// Writes to a file from memory of vfs, as a write of the caller: what is below its limit.
async fn store_at(
    base: &Base,
    caller: &Caller,
    file: &OpenFile,
    node: &NodeRef,
    start: u64,
    mut data: Vec<u8>,
) -> Result<u64, Errno> {
    let room = min(caller.file_limit(), i64::MAX as u64).saturating_sub(start);
    data.truncate(min(room, usize::MAX as u64) as usize);
    if data.is_empty() {
        return Err(Errno::EFBIG);
    }
    data.truncate(node.writable_bytes(start, data.len() as u64)? as usize);
    let moved = base.mappings().write_from(node, start, data, caller.credentials().ids()).await?;
    base.files().watches().happened(node, &file.path(), flag::MODIFY);
    written(base, caller, file.flags(), node).await?;
    Ok(moved)
}

/// sendfile: from a regular file to whatever takes bytes.
pub(super) fn sendfile(call: &Call) -> Result<Flow, Errno> {
    let [_, _, address, bytes] = call.first();
    let from = open_file(call.process, call.int(1))?;
    from.readable()?;
    let from_place = Place::fetch(call, &from, address)?;
    if !from_place.is_valid() {
        return Err(Errno::EINVAL);
    }
    let to = open_file(call.process, call.int(0))?;
    to.writable()?;
    let node = from.object::<Regular>().ok_or(Errno::EINVAL)?.node.clone();
    let bytes = bytes.min(user::MAX_TRANSFER);
    let mover = Mover::new(call, [&from, &to], [from.nonblocking(), from.nonblocking() || to.nonblocking()]);
    if let Some(pipe) = pipe_of(&to) {
        return task(mover.file_to_pipe(from_place, node, pipe, bytes as usize));
    }
    if to.flags() & O_APPEND != 0 {
        return Err(Errno::EINVAL);
    }
    if let Some(regular) = to.object::<Regular>() {
        let target = regular.node.clone();
        let to_place = Place { file: to.clone(), who: call.process.caller.endpoint, offset: None };
        return task(mover.file_to_file((from_place, node), (to_place, target), bytes));
    }
    let target = if swallows(&to) {
        Target::Nothing
    } else if to.object::<Character>().is_some() {
        Target::Device
    } else {
        let connection = stream(&to).ok_or(Errno::EINVAL)?.0.connection().ok_or(Errno::ENOTCONN)?;
        if !connection.writes() {
            return task(async move { mover.broken().await });
        }
        Target::Stream(connection.outgoing().clone())
    };
    task(mover.send_file(from_place, node, target, bytes))
}

/// What sendfile sends all bytes to.
enum Target {
    /// A device that takes everything.
    Nothing,
    /// A character device.
    Device,
    /// A connected socket.
    Stream(Rc<Pipe>),
}

/// sendfile.
impl Mover {
    /// Sends a part of a file, piece by piece, as far as that goes.
    async fn send_file(self, from: Place, node: NodeRef, to: Target, bytes: u64) -> Result<u64, Errno> {
        let _memory = self.base.charge(self.caller.user(), PIECE_BYTES)?;
        let (start, expected) = from.begin(left_of(&node, from.start(), bytes));
        let mut moved = match self.caller.noted() {
            Some(Note::Moved(moved)) => moved.min(bytes),
            _ => 0,
        };
        let mut result = Ok(());
        while moved < bytes && result.is_ok() && !(moved > 0 && self.is_ended()) {
            // Not a buffer for a whole piece, which would be cleared, and no request that finds the end.
            let wanted = left_of(&node, start + moved, (bytes - moved).min(PIECE_BYTES as u64));
            if wanted == 0 {
                break;
            }
            match self.send_piece(&node, start + moved, wanted as usize, &to, moved).await {
                Ok(0) => break,
                Ok(more) => {
                    moved += more;
                    self.caller.note(Note::Moved(moved));
                }
                Err(error) => result = Err(error),
            }
        }
        from.end(expected, start + moved)?;
        if moved > 0 { Ok(moved) } else { result.map(|()| 0) }
    }

    /// Sends one piece. Returns how much of it; 0: the file ends here.
    async fn send_piece(
        &self,
        node: &NodeRef,
        position: u64,
        bytes: usize,
        to: &Target,
        moved: u64,
    ) -> Result<u64, Errno> {
        if let Target::Stream(pipe) = to {
            if moved > 0 && pipe.readers() == 0 {
                return Err(Errno::EPIPE);
            }
            self.wait_for_room(pipe).await?;
            return self.put_piece(node, position, bytes.min(pipe.room()), pipe).await;
        }
        if let Target::Nothing = to {
            return self.pass_over(node, position, bytes).await;
        }
        let data = self.base.mappings().read_into(node, position, bytes).await?;
        if data.is_empty() {
            return Ok(0);
        }
        character::write_from(self.base, &self.caller, &self.files[1], data, moved).await
    }

    /// Reads a piece for a device that takes everything: into the page cache, if it is not known, and not at all if the file is in memory. Returns its bytes; 0: the file ends
    /// here.
    async fn pass_over(&self, node: &NodeRef, position: u64, bytes: usize) -> Result<u64, Errno> {
        self.base.files().settle([Some(node)]).await?;
        if node.mount().is_in_memory() {
            self.base.cache().pass_over(node, position).await?;
            return Ok(left_of(node, position, bytes as u64));
        }
        match self.base.cache().make_known(node, position, bytes as u64).await {
            0 => self.base.mappings().read_into(node, position, bytes).await.map(|data| data.len() as u64),
            moved => Ok(moved),
        }
    }

    /// Copies a part of a file to another, as a write of the caller.
    async fn file_to_file(
        self,
        (from, source): (Place, NodeRef),
        (to, target): (Place, NodeRef),
        bytes: u64,
    ) -> Result<u64, Errno> {
        let _memory = self.base.charge(self.caller.user(), PIECE_BYTES)?;
        let bytes = left_of(&source, from.start(), bytes);
        if bytes == 0 {
            return Ok(0);
        }
        self.base.check_file_limit(&self.caller, to.start().saturating_add(1)).await?;
        let room = min(self.caller.file_limit(), i64::MAX as u64).saturating_sub(to.start());
        let bytes = target.writable_bytes(to.start(), bytes.min(room))?;
        let ((from_start, from_expected), (to_start, to_expected)) = (from.begin(bytes), to.begin(bytes));
        let mut moved = 0;
        let mut result = Ok(());
        while moved < bytes && result.is_ok() && !(moved > 0 && self.is_ended()) {
            let positions = [from_start + moved, to_start + moved];
            match self.copy_piece(&source, &target, positions, bytes - moved).await {
                Ok(0) => break,
                Ok(more) => moved += more,
                Err(error) => result = Err(error),
            }
        }
        if moved > 0 {
            self.base.files().watches().happened(&target, &self.files[1].path(), flag::MODIFY);
            result = written(self.base, &self.caller, self.files[1].flags(), &target).await;
        }
        from.end(from_expected, from_start + moved)?;
        to.end(to_expected, to_start + moved)?;
        result.map(|()| moved)
    }

    /// Copies up to so many bytes: within the file system if it has both files, unless the page cache has the source and may keep it as the target's; else through memory of vfs.
    async fn copy_piece(
        &self,
        source: &NodeRef,
        target: &NodeRef,
        [from_position, to_position]: [u64; 2],
        bytes: u64,
    ) -> Result<u64, Errno> {
        let mappings = self.base.mappings();
        let ids = self.caller.credentials().ids();
        let positions = [from_position, to_position];
        if !source.is_on_file_system_of(target) || target.shared_object().is_some() {
            return self.copy_through_memory(source, target, positions, bytes).await;
        }
        let bytes = bytes.min(CHUNK);
        mappings.write_back(source, from_position, bytes).await?;
        if let Some(moved) = self.copy_known(source, target, positions, bytes).await? {
            return Ok(moved);
        }
        self.base.files().settle_for([Some(source), Some(target)], bytes).await?;
        if target.shared_object().is_some() {
            // It was mapped meanwhile.
            return self.copy_through_memory(source, target, positions, bytes).await;
        }
        let (from, to) = (source.number(), target.number());
        let version = source.known_stat().unchanging();
        let _change = Change::filling([Some(target)], bytes);
        target.set_content(None);
        let request = fs::CopyRange { from, from_position, to, to_position, bytes, ids };
        let reply = self.base.peers().ask(target.service(), request.message()).await?;
        let (size, accessed_ns) = fs::CopyRange::results(&reply)?;
        target.lengthen(size);
        self.base.cache().was_read(source, version, reply.source, accessed_ns);
        Ok(reply.words[0].min(bytes))
    }
}

/// Copies of what the page cache knows, and through memory of vfs.
impl Mover {
    /// As `copy_piece`, by a read and a write.
    async fn copy_through_memory(
        &self,
        source: &NodeRef,
        target: &NodeRef,
        [from, to]: [u64; 2],
        bytes: u64,
    ) -> Result<u64, Errno> {
        let mappings = self.base.mappings();
        let data = mappings.read_into(source, from, bytes.min(PIECE_BYTES as u64) as usize).await?;
        let ids = self.caller.credentials().ids();
        if data.is_empty() { Ok(0) } else { mappings.write_from(target, to, data, ids).await }
    }

    /// Copies a piece to another file of the file system, if the page cache has it and may keep it as the target's. `None`: nothing has been done.
    async fn copy_known(
        &self,
        source: &NodeRef,
        target: &NodeRef,
        [from, to]: [u64; 2],
        bytes: u64,
    ) -> Result<Option<u64>, Errno> {
        let (cache, bytes) = (self.base.cache(), bytes.min(STAGED_BYTES));
        let may_stay = !source.is_same_file(target) && cache.may_stage(target, to, bytes);
        if !may_stay || !cache.complete(source, from, bytes).await {
            return Ok(None);
        }
        self.base.files().settle_for([Some(source), Some(target)], bytes).await?;
        let ids = self.caller.credentials().ids();
        let copied = self.base.mappings().copy_by_cache((source, from), (target, to), bytes, ids).await;
        Ok(copied.map(|copied| {
            target.lengthen(copied.size);
            copied.bytes
        }))
    }
}

/// copy_file_range: between regular files of one file system.
pub(super) fn copy_file_range(call: &Call) -> Result<Flow, Errno> {
    let [_, from_at, _, to_at, bytes, flags] = call.first();
    let (from, to) = (open_file(call.process, call.int(0))?, open_file(call.process, call.int(2))?);
    let (from_place, to_place) = (Place::fetch(call, &from, from_at)?, Place::fetch(call, &to, to_at)?);
    if flags as u32 != 0 {
        return Err(Errno::EINVAL);
    }
    if [&from, &to].iter().any(|file| file.node().is_some_and(|node| node.kind() == S_IFDIR)) {
        return Err(Errno::EISDIR);
    }
    let (Some(source), Some(target)) = (from.object::<Regular>(), to.object::<Regular>()) else {
        return Err(Errno::EINVAL);
    };
    if !from.reads() || !to.writes() || to.flags() & O_APPEND != 0 {
        return Err(Errno::EBADF);
    }
    if !source.node.is_on_file_system_of(&target.node) {
        return Err(Errno::EXDEV);
    }
    let (from_start, to_start) = (from_place.start(), to_place.start());
    from_start.checked_add(bytes).and(to_start.checked_add(bytes)).ok_or(Errno::EOVERFLOW)?;
    let bytes = left_of(&source.node, from_start, bytes);
    let is_apart = from_start + bytes <= to_start || to_start + bytes <= from_start;
    if source.node.is_same_file(&target.node) && !is_apart || !from_place.is_valid() || !to_place.is_valid() {
        return Err(Errno::EINVAL);
    }
    let mover = Mover::new(call, [&from, &to], [false; 2]);
    let (source, target) = (source.node.clone(), target.node.clone());
    task(mover.file_to_file((from_place, source), (to_place, target), bytes.min(user::MAX_TRANSFER)))
}
