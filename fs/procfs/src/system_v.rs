//! The files of /proc/sysvipc, in the columns of Linux.

use crate::source::Source;
use crate::text::Text;
use abi::pm::{IPC_MESSAGES, IPC_SEGMENTS, IPC_SEMAPHORES, IpcRecord};
use core::fmt::{self, Write};

/// Records fetched at a time.
const RECORDS: usize = 16;

/// /proc/sysvipc/shm.
pub fn segments(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    text.write_str(
        "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      \
         dtime      ctime                   rss                  swap\n",
    )?;
    each(source, IPC_SEGMENTS, text, |text, object| {
        let IpcRecord { key, id, mode, user, group, creator, creator_group, values, .. } = *object;
        let [bytes, creating, last, attaches, attached_s, detached_s, changed_s, resident] = values;
        writeln!(
            text,
            "{:10} {id:10}  {mode:4o} {bytes:21} {creating:5} {last:5}  {attaches:5} {user:5} {group:5} {creator:5} \
             {creator_group:5} {attached_s:10} {detached_s:10} {changed_s:10} {resident:21} {:21}",
            key as i32, 0
        )
    })
}

/// /proc/sysvipc/sem.
pub fn semaphores(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    text.write_str("       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n")?;
    each(source, IPC_SEMAPHORES, text, |text, object| {
        let IpcRecord { key, id, mode, user, group, creator, creator_group, values, .. } = *object;
        let [semaphores, used_s, changed_s, ..] = values;
        writeln!(
            text,
            "{:10} {id:10}  {mode:4o} {semaphores:10} {user:5} {group:5} {creator:5} {creator_group:5} {used_s:10} {changed_s:10}",
            key as i32
        )
    })
}

/// /proc/sysvipc/msg.
pub fn queues(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    text.write_str(
        "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime      ctime\n",
    )?;
    each(source, IPC_MESSAGES, text, |text, object| {
        let IpcRecord { key, id, mode, user, group, creator, creator_group, values, .. } = *object;
        let [bytes, messages, sender, receiver, sent_s, received_s, changed_s, ..] = values;
        writeln!(
            text,
            "{:10} {id:10}  {mode:4o}  {bytes:10} {messages:10} {sender:5} {receiver:5} {user:5} {group:5} {creator:5} \
             {creator_group:5} {sent_s:10} {received_s:10} {changed_s:10}",
            key as i32
        )
    })
}

fn each(
    source: &mut dyn Source,
    kind: u64,
    text: &mut Text,
    mut write: impl FnMut(&mut Text, &IpcRecord) -> fmt::Result,
) -> fmt::Result {
    let mut records = [IpcRecord::default(); RECORDS];
    let mut first = 0;
    loop {
        let count = source.ipc_objects(kind, first, &mut records).map_err(|error| text.failed(error))?;
        let Some(last) = records[..count].last() else { return Ok(()) };
        first = last.index + 1;
        records[..count].iter().try_for_each(|record| write(text, record))?;
    }
}
