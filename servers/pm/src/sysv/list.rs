//! What procfs is told of System V objects (`abi::pm::IpcRecord`).

use crate::pm::Pm;
use crate::state::ipc::{Object, Objects};
use crate::state::messages::Queue;
use crate::state::semaphores::Set;
use crate::system::System;
use crate::sysv::PAGE_BYTES;
use abi::pm::{IPC_MESSAGES, IPC_SEGMENTS, IPC_SEMAPHORES, IPC_VALUES, IpcObjects, IpcRecord};
use abi::{Endpoint, Errno};
use alloc::vec::Vec;
use sys::fallible;
use zerocopy::IntoBytes;

/// Records of one reply; procfs asks again for the rest.
const MAX_RECORDS: u64 = 32;

impl<S: System> Pm<S> {
    /// Records of one kind in order of their indices. `EINVAL`: no such kind; `ENOMEM`.
    pub fn list_ipc(&mut self, requester: Endpoint, ask: &IpcObjects) -> Result<u64, Errno> {
        let room = (ask.bytes / size_of::<IpcRecord>() as u64).min(MAX_RECORDS) as usize;
        let first = usize::try_from(ask.first).unwrap_or(usize::MAX);
        let mut records = match ask.kind {
            IPC_SEGMENTS => {
                self.drop_freed_segments()?;
                records(&self.segments.all, first, room, |_| [0; IPC_VALUES])?
            }
            IPC_SEMAPHORES => records(&self.semaphores.all, first, room, of_set)?,
            IPC_MESSAGES => records(&self.messages.all, first, room, of_queue)?,
            _ => return Err(Errno::EINVAL),
        };
        if ask.kind == IPC_SEGMENTS {
            records.iter_mut().try_for_each(|record| self.add_segment_values(record))?;
        }
        if records.is_empty() {
            Ok(0)
        } else {
            self.programs.system.write_grant(requester, ask.grant, records.as_bytes())
        }
    }

    fn add_segment_values(&mut self, record: &mut IpcRecord) -> Result<(), Errno> {
        let known = self.segment_use(record.id)?;
        let segment = self.segments.all.get(record.id)?;
        record.mode |= segment.marks();
        record.values = [
            segment.bytes,
            segment.creator.into(),
            known.pid,
            known.attaches,
            known.attached_s,
            known.detached_s,
            segment.head.changed_s,
            known.resident_pages * PAGE_BYTES,
        ];
        Ok(())
    }
}

fn records<T: Object>(
    objects: &Objects<T>,
    first: usize,
    room: usize,
    values: impl Fn(&T) -> [u64; IPC_VALUES],
) -> Result<Vec<IpcRecord>, Errno> {
    let all = (first..objects.places()).filter_map(|index| Some((index, objects.at(index).ok()?)));
    let record = |(index, object): (usize, &T)| IpcRecord {
        index: index as u32,
        values: values(object),
        ..object.head().record()
    };
    fallible::collect(all.take(room).map(record))
}

fn of_set(set: &Set) -> [u64; IPC_VALUES] {
    [set.semaphores.len() as u64, set.used_s, set.head.changed_s, 0, 0, 0, 0, 0]
}

fn of_queue(queue: &Queue) -> [u64; IPC_VALUES] {
    let (letters, bytes) = queue.used();
    let (sent, received) = (queue.sent, queue.received);
    [bytes as u64, letters as u64, sent.0.into(), received.0.into(), sent.1, received.1, queue.head.changed_s, 0]
}
