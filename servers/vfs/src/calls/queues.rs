//! The calls on message queues: mq_open, mq_unlink, mq_timedsend, mq_timedreceive, mq_notify, mq_getsetattr.
//!
//! Names have no slash: the C library takes the first one away. Queues are counted against their owner as Linux counts them, so that
//! `EMFILE` comes at the same queue.

use super::{Entry, call, done};
use crate::{
    base::{Base, Flow, closing::Closing},
    callers::permission::{self, READ, WRITE},
    keep::{
        Store,
        records::{NO_QUEUE, Notification, QueueRecord},
    },
    memory as user,
    objects::{O_ACCMODE, O_CREAT, O_EXCL, O_NONBLOCK, OpenFile, queue::MessageQueue},
    processes::Process,
    queues::{Letter, PRIORITIES, Queue, Sent, Transfer, Waiter, names::QueueNames},
};
use abi::{Capability, Endpoint, Errno, Part, call::REAL_TIME, limits, linux::nr, vfs};
use alloc::{rc::Rc, vec::Vec};
use core::cell::Cell;
use server::Runtime;
use sys::time;

/// What queues have unless told otherwise, and the most that users other than root may ask for (`msg_max`, `msgsize_max`).
const MESSAGES: u64 = limits::POSIX_MESSAGES;
const MESSAGE_BYTES: u64 = limits::POSIX_MESSAGE_BYTES;
/// The most that root may ask for.
const MAX_MESSAGES: u64 = 65536;
const MAX_MESSAGE_BYTES: u64 = 16 << 20;
/// What Linux adds for each message.
const OVERHEAD_BYTES: u64 = 96;
const NAME_MAX: usize = 255;
const SIGNALS: u32 = 64;
const NS_PER_S: u64 = 1_000_000_000;

pub(super) const CALLS: &[Entry] = &[
    call(nr::MQ_OPEN, |c| done(mq_open(c.queues(), c.closing(), c.process, c.first()))),
    call(nr::MQ_UNLINK, |c| done(mq_unlink(c.queues(), c.process, c.words[0]))),
    call(nr::MQ_TIMEDSEND, |c| mq_send(c.base(), c.process, c.first())),
    call(nr::MQ_TIMEDRECEIVE, |c| mq_receive(c.base(), c.process, c.first())),
    call(nr::MQ_NOTIFY, |c| done(mq_notify(c.process, c.int(0), c.words[1]))),
    call(nr::MQ_GETSETATTR, |c| done(mq_attributes(c.process, c.int(0), c.words[1], c.words[2]))),
];

/// mq_open.
fn mq_open(
    queues: &QueueNames,
    closing: &Rc<Closing>,
    process: &Process,
    [name, flags, mode, attributes]: [u64; 4],
) -> Result<u64, Errno> {
    let flags = flags as u32;
    let wanted = match attributes {
        0 => None,
        address => Some(user::fetch_words::<8>(process.caller.endpoint, address)?),
    };
    let name = queue_name(process, name)?;
    let known = queues.get(&name);
    let queue = match &known {
        Some(queue) => may_open(process, queue, flags).map(|()| queue.clone())?,
        None if flags & O_CREAT == 0 => return Err(Errno::ENOENT),
        None => new_queue(closing.store(), process, &name, mode as u32, wanted)?,
    };
    let path = [b"/", QueueNames::shown(&name)].concat();
    let object = MessageQueue(queue.clone());
    let file = OpenFile::new(closing, process.caller.user(), object, flags & (O_ACCMODE | O_NONBLOCK), path)?;
    // Linux marks the descriptors of queues whatever was asked for.
    let descriptor = process.insert(file, true)?;
    queues.add(name, queue);
    Ok(descriptor)
}

fn new_queue(
    store: &Rc<Store>,
    process: &Process,
    name: &[u8],
    mode: u32,
    wanted: Option<[u64; 8]>,
) -> Result<Rc<Queue>, Errno> {
    let who = process.caller.credentials();
    let (messages, bytes) = match wanted {
        Some([_, messages, bytes, ..]) => check_size(messages, bytes, who.has(Capability::SysResource))?,
        None => (MESSAGES, MESSAGE_BYTES),
    };
    let used: u64 = store.queues().filter(|(_, queue)| queue.uid == who.euid).map(|(_, queue)| cost(&queue)).sum();
    let record = QueueRecord {
        most_messages: messages as u32,
        message_bytes: bytes as u32,
        uid: who.euid,
        gid: who.egid,
        mode: (mode & 0o7777 & !process.directories()?.umask()) as u16,
        ..NO_QUEUE
    };
    if used + cost(&record) > process.caller.message_limit() {
        return Err(Errno::EMFILE);
    }
    Queue::new(store, record, name)
}

/// mq_unlink.
fn mq_unlink(queues: &QueueNames, process: &Process, name: u64) -> Result<u64, Errno> {
    let name = queue_name(process, name)?;
    let queue = queues.get(&name).ok_or(Errno::ENOENT)?;
    // As in a directory with the sticky bit, of root's.
    permission::check_owner(&process.caller.credentials(), queue.attributes())?;
    queues.remove(&name);
    queue.set_unnamed();
    Ok(0)
}

/// mq_timedsend.
fn mq_send(
    base: &'static Base,
    process: &Rc<Process>,
    [descriptor, address, bytes, priority, timeout]: [u64; 5],
) -> Result<Flow, Errno> {
    let deadline = deadline(process, timeout)?;
    let priority = priority as u32 as u64;
    if priority >= PRIORITIES {
        return Err(Errno::EINVAL);
    }
    let (file, queue) = queue_of(process, descriptor as i32)?;
    file.writable()?;
    if bytes > queue.record().message_bytes as u64 {
        return Err(Errno::EMSGSIZE);
    }
    let bytes = user::fetch_vec(process.caller.endpoint, address, bytes as usize)?;
    let letter = Letter { priority: priority as u16, bytes };
    match queue.send(&letter) {
        Sent::Full => wait_in_queue(base.runtime(), process, file, queue, Transfer::Send(letter), deadline),
        sent => {
            if sent == Sent::First {
                notify_of_message(base, process, &queue);
            }
            Ok(Flow::Done(Ok(0)))
        }
    }
}

/// mq_timedreceive.
fn mq_receive(
    base: &'static Base,
    process: &Rc<Process>,
    [descriptor, address, bytes, priority_address, timeout]: [u64; 5],
) -> Result<Flow, Errno> {
    let deadline = deadline(process, timeout)?;
    let (file, queue) = queue_of(process, descriptor as i32)?;
    file.readable()?;
    if bytes < queue.record().message_bytes as u64 {
        return Err(Errno::EMSGSIZE);
    }
    match queue.receive(process.caller.endpoint, address, priority_address)? {
        Some(bytes) => Ok(Flow::Done(Ok(bytes))),
        None => wait_in_queue(
            base.runtime(),
            process,
            file,
            queue,
            Transfer::Receive { address, priority_address },
            deadline,
        ),
    }
}

/// The rest of a call that has to wait; the open file stays until it ends.
fn wait_in_queue(
    runtime: &'static Runtime,
    process: &Rc<Process>,
    file: Rc<OpenFile>,
    queue: Rc<Queue>,
    transfer: Transfer,
    deadline_ns: Option<u64>,
) -> Result<Flow, Errno> {
    if file.nonblocking() {
        return Err(Errno::EAGAIN);
    }
    let (who, event) = (process.caller.endpoint, process.caller.event().clone());
    let waiter = Rc::new(Waiter { who, rank: rank(who), transfer, result: Cell::default(), event });
    queue.wait(&waiter);
    let caller = process.caller.clone();
    Ok(Flow::task(async move {
        let mut sleep = deadline_ns.map(|deadline_ns| runtime.sleep_until(deadline_ns));
        let error = loop {
            let waited = caller.wait_or_sleep(sleep.as_mut()).await;
            if let Some(result) = waiter.result.take() {
                return result;
            }
            match waited {
                Ok(false) => {}
                Ok(true) => break Errno::ETIMEDOUT,
                Err(error) => break error,
            }
        };
        queue.leave(&waiter);
        drop(file);
        Err(error)
    }))
}

/// A message has come to a queue that was empty.
fn notify_of_message(base: &Base, sender: &Process, queue: &Queue) {
    let Some(Notification { pid, signal: signal @ 1.., value, .. }) = queue.take_notification() else { return };
    let target = pid as u64 | (signal as u64) << 32;
    let sender = sender.caller.pid as u64 | (sender.caller.credentials().uid as u64) << 32;
    base.send_signal(vfs::EVENT_MESSAGE, [target, value, sender]);
}

/// mq_notify.
fn mq_notify(process: &Process, descriptor: i32, address: u64) -> Result<u64, Errno> {
    const SIGEV_SIGNAL: u32 = 0;
    const SIGEV_NONE: u32 = 1;
    const SIGEV_THREAD: u32 = 2;
    let table = process.files().owner();
    if address == 0 {
        queue_of(process, descriptor)?.1.forget_notification(table);
        return Ok(0);
    }
    let [value, how] = user::fetch_words::<2>(process.caller.endpoint, address)?;
    let signal = match ((how >> 32) as u32, how as u32) {
        (SIGEV_NONE, _) => 0,
        (SIGEV_SIGNAL, signal @ 0..=SIGNALS) => signal as u8,
        // Needs a netlink socket, and there are none.
        (SIGEV_THREAD, _) => return Err(Errno::EBADF),
        _ => return Err(Errno::EINVAL),
    };
    let queue = queue_of(process, descriptor)?.1;
    queue.ask_notification(Notification { table, pid: process.caller.pid, signal, value })?;
    Ok(0)
}

/// mq_getsetattr: only whether calls wait can be changed.
fn mq_attributes(process: &Process, descriptor: i32, new: u64, old: u64) -> Result<u64, Errno> {
    let wanted = match new {
        0 => None,
        _ => Some(user::fetch_words::<1>(process.caller.endpoint, new)?[0]),
    };
    if wanted.is_some_and(|flags| flags & !(O_NONBLOCK as u64) != 0) {
        return Err(Errno::EINVAL);
    }
    let (file, queue) = queue_of(process, descriptor)?;
    let flags = file.flags();
    if let Some(wanted) = wanted {
        file.set_flags(flags & !O_NONBLOCK | wanted as u32);
    }
    if old != 0 {
        let record = queue.record();
        let (messages, bytes) = (record.most_messages as u64, record.message_bytes as u64);
        let words = [(flags & O_NONBLOCK) as u64, messages, bytes, queue.len() as u64, 0, 0, 0, 0];
        user::store(process.caller.endpoint, old, words.map(u64::to_le_bytes).as_flattened())?;
    }
    Ok(0)
}

fn queue_of(process: &Process, descriptor: i32) -> Result<(Rc<OpenFile>, Rc<Queue>), Errno> {
    let file = process.file(descriptor)?;
    let queue = file.object::<MessageQueue>().map(|queue| queue.0.clone()).ok_or(Errno::EBADF)?;
    Ok((file, queue))
}

fn queue_name(process: &Process, address: u64) -> Result<Vec<u8>, Errno> {
    let name = user::fetch_path(process.caller.endpoint, address)?;
    match &name[..] {
        b"" => Err(Errno::ENOENT),
        b"." | b".." => Err(Errno::EACCES),
        _ if name.contains(&b'/') => Err(Errno::EACCES),
        _ if name.len() > NAME_MAX => Err(Errno::ENAMETOOLONG),
        _ => QueueNames::of_container(process.caller.parts().of(Part::Ipc), &name),
    }
}

fn may_open(process: &Process, queue: &Queue, flags: u32) -> Result<(), Errno> {
    if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL {
        return Err(Errno::EEXIST);
    }
    let wanted = match flags & O_ACCMODE {
        0 => READ,
        1 => WRITE,
        2 => READ | WRITE,
        _ => return Err(Errno::EINVAL),
    };
    permission::check(&process.caller.credentials(), queue.attributes(), wanted)
}

/// The place of a thread among those who wait: real-time ones by their queue in the kernel, before all others.
fn rank(who: Endpoint) -> u32 {
    const LAST: u32 = u32::MAX;
    sys::info::thread(who.slot()).map_or(LAST, |known| if known.queue >= REAL_TIME as u32 { known.queue } else { LAST })
}

/// Messages and their bytes, if a queue may have so many.
fn check_size(messages: u64, bytes: u64, root: bool) -> Result<(u64, u64), Errno> {
    let (most, most_bytes) = if root { (MAX_MESSAGES, MAX_MESSAGE_BYTES) } else { (MESSAGES, MESSAGE_BYTES) };
    let good = (1..=most).contains(&messages) && (1..=most_bytes).contains(&bytes);
    if good { Ok((messages, bytes)) } else { Err(Errno::EINVAL) }
}

/// What a queue counts against its owner.
fn cost(queue: &QueueRecord) -> u64 {
    queue.most_messages as u64 * (queue.message_bytes as u64 + OVERHEAD_BYTES)
}

/// The monotonic time that corresponds to a `struct timespec` of the wall clock now; `None`: for ever. `EINVAL`, `EFAULT`.
fn deadline(process: &Process, address: u64) -> Result<Option<u64>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let [seconds, nanoseconds] = user::fetch_words::<2>(process.caller.endpoint, address)?;
    if seconds as i64 <= -1 || nanoseconds >= NS_PER_S {
        return Err(Errno::EINVAL);
    }
    let (now_ns, real_ns) = time::both_ns();
    let wanted_ns = seconds.saturating_mul(NS_PER_S).saturating_add(nanoseconds);
    Ok(Some(now_ns.saturating_add(wanted_ns.saturating_sub(real_ns))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_may_ask_for_more_than_the_usual() {
        assert_eq!(check_size(10, 8192, false), Ok((10, 8192)));
        for (messages, bytes) in [(0, 1), (1, 0), (u64::MAX, 1), (11, 1), (1, 8193)] {
            assert_eq!(check_size(messages, bytes, false), Err(Errno::EINVAL));
        }
        assert_eq!(check_size(11, 8193, true), Ok((11, 8193)));
        assert_eq!(check_size(65537, 1, true), Err(Errno::EINVAL));
    }
}
