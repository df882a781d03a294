//! System V shared memory: who may do what, what is counted for whom, and how long a segment is known.

use super::{ATTACHED, Answer, DONE, MEMORY, World, failed};
use abi::linux::nr;
use abi::pm::{IPC_MESSAGES, IPC_SEGMENTS, IPC_SEMAPHORES, IpcObjects, IpcRecord};
use abi::{Endpoint, Errno, GrantId, Message, Name, vm};
use std::vec::Vec;
use zerocopy::FromBytes;

const STATUS: u64 = MEMORY.start + 0x800;
const KEY: u64 = 7;
const CREATE: u64 = 0o1000;
const EXCLUSIVE: u64 = 0o2000;
const READ_ONLY: u64 = 0o10000;
const ROUND: u64 = 0o20000;
const REMAP: u64 = 0o40000;
const EXECUTE: u64 = 0o100000;
const RMID: u64 = 0;
const SET: u64 = 1;
const STAT: u64 = 2;
const INFO: u64 = 3;
const LOCK: u64 = 11;
const UNLOCK: u64 = 12;
const SHM_STAT: u64 = 13;
const SHM_INFO: u64 = 14;
const SHM_STAT_ANY: u64 = 15;
/// Memory of the fake machine in pages.
const PAGES: u64 = (1 << 28) / 4096;

struct Scene {
    world: World,
    init: Endpoint,
    id: u64,
}

fn scene() -> Scene {
    let mut world = World::new();
    let init = world.init;
    let id = world.call(init, nr::SHMGET, &[KEY, 10_000, CREATE | 0o640]).unwrap().unwrap();
    Scene { world, init, id }
}

impl Scene {
    fn get(&mut self, thread: Endpoint, key: u64, bytes: u64, flags: u64) -> Answer {
        self.world.call(thread, nr::SHMGET, &[key, bytes, flags])
    }

    fn attach(&mut self, thread: Endpoint, address: u64, flags: u64) -> Answer {
        self.world.call(thread, nr::SHMAT, &[self.id, address, flags])
    }

    fn control(&mut self, thread: Endpoint, command: u64) -> Answer {
        self.world.call(thread, nr::SHMCTL, &[self.id, command, STATUS])
    }

    /// The last request that vm got: address and flags.
    fn attached(&self) -> (u64, u64) {
        let request = self.world.pm.programs.system.attached.unwrap();
        (request.address, request.flags)
    }

    fn status(&mut self) -> [u64; 14] {
        assert_eq!(self.control(self.init, STAT), DONE);
        self.world.words(self.init, STATUS)
    }
}

#[test]
fn a_segment_is_found_by_its_key_if_it_is_long_enough() {
    let mut s = scene();
    assert_eq!(s.get(s.init, KEY, 0, 0), Some(Ok(s.id)));
    assert_eq!(s.get(s.init, KEY, 10_000, CREATE), Some(Ok(s.id)));
    assert_eq!(s.get(s.init, KEY, 10_001, 0), failed(Errno::EINVAL));
    assert_eq!(s.get(s.init, KEY, 20_000, CREATE | EXCLUSIVE), failed(Errno::EEXIST));
    assert_eq!(s.get(s.init, KEY + 1, 1, 0), failed(Errno::ENOENT));
    assert_eq!(s.get(s.init, KEY + 1, 0, CREATE), failed(Errno::EINVAL));
    assert_eq!(s.get(s.init, KEY + 1, u64::MAX, CREATE), failed(Errno::EINVAL));
    assert_eq!(s.get(s.init, 0, 4096, 0o4000), failed(Errno::ENOMEM), "SHM_HUGETLB");
    assert_ne!(s.get(s.init, 0, 1, 0), s.get(s.init, 0, 1, 0), "IPC_PRIVATE");
}

#[test]
fn what_shmat_wants_reaches_vm() {
    let mut s = scene();
    let made = vm::ATTACH_MAKE;
    for (address, flags, expected) in [
        (0, 0, (0, 3 | made)),
        (0x5000, READ_ONLY, (0x5000, 1 | made)),
        (0x5fff, ROUND | EXECUTE, (0x5000, 7 | made)),
        (0x5000, REMAP | READ_ONLY | EXECUTE, (0x5000, 5 | made | vm::ATTACH_REPLACE)),
    ] {
        assert_eq!(s.attach(s.init, address, flags), Some(Ok(ATTACHED)));
        assert_eq!(s.attached(), expected, "{address:#x} {flags:#o}");
        assert_eq!(s.world.pm.programs.system.attached.unwrap().pages, 3);
    }
    for (address, flags) in [(0x5fff, 0), (0, REMAP), (0xfff, REMAP | ROUND)] {
        assert_eq!(s.attach(s.init, address, flags), failed(Errno::EINVAL));
    }
    s.id += 1;
    assert_eq!(s.attach(s.init, 0, 0), failed(Errno::EINVAL));
}

#[test]
fn rights_are_those_of_the_class_also_by_a_supplementary_group() {
    let mut s = scene();
    let (_, member) = s.world.fork(s.init);
    s.world.write(member, MEMORY.start, &[0]);
    assert_eq!(s.world.call(member, nr::SETGROUPS, &[1, MEMORY.start]), DONE);
    for (call, id) in [(nr::SETGID, 100), (nr::SETUID, 1000)] {
        assert_eq!(s.world.call(member, call, &[id]), DONE);
    }
    let (_, stranger) = s.world.user(1001, 100);
    assert_eq!(s.attach(member, 0, READ_ONLY), Some(Ok(ATTACHED)));
    assert_eq!(s.attach(member, 0, 0), failed(Errno::EACCES));
    assert_eq!(s.attach(member, 0, READ_ONLY | EXECUTE), failed(Errno::EACCES));
    assert_eq!(s.attach(stranger, 0, READ_ONLY), failed(Errno::EACCES));
    assert_eq!(s.get(stranger, KEY, 0, 0o400), failed(Errno::EACCES));
    assert_eq!((s.control(member, STAT), s.control(stranger, STAT)), (DONE, failed(Errno::EACCES)));
    for command in [RMID, SET, LOCK, UNLOCK] {
        assert_eq!(s.control(member, command), failed(Errno::EPERM));
    }
    assert_eq!(s.world.call(stranger, nr::SHMCTL, &[0, SHM_STAT, STATUS]), failed(Errno::EACCES));
    assert_eq!(s.world.call(stranger, nr::SHMCTL, &[0, SHM_STAT_ANY, STATUS]), Some(Ok(s.id)));
}

#[test]
fn status_has_what_pm_and_what_vm_knows() {
    let mut s = scene();
    s.world.set_time(5_000_000_000);
    assert_eq!(s.status()[6..], [10_000, 0, 0, 0, 1, 0, 0, 0], "nobody has attached it yet");
    assert_eq!(s.attach(s.init, 0, 0), Some(Ok(ATTACHED)));
    assert_eq!(s.status()[6..12], [10_000, 100, 200, 0, 1 | 77 << 32, 1]);
    s.world.write(s.init, STATUS, &[1000 << 32, 100, 0o600 << 32]);
    assert_eq!((s.control(s.init, SET), s.control(s.init, LOCK)), (DONE, DONE));
    let words = s.status();
    assert_eq!((words[0], words[1] as u32, words[2] >> 32, words[9]), (KEY | 1000 << 32, 100, 0o2600, 5));
    assert_eq!((s.control(s.init, UNLOCK), s.status()[2] >> 32), (DONE, 0o600));
    assert_eq!(s.world.call(s.init, nr::SHMCTL, &[s.id, STAT, 8]), failed(Errno::EFAULT));
    assert_eq!(s.control(s.init, 99), failed(Errno::EINVAL));
}

#[test]
fn a_removed_segment_is_known_by_its_identifier_while_it_is_attached() {
    let mut s = scene();
    let (_, child) = s.world.fork(s.init);
    assert_eq!(s.attach(child, 0, 0), Some(Ok(ATTACHED)));
    assert_eq!(s.control(s.init, RMID), DONE);
    assert_eq!(s.get(s.init, KEY, 0, 0), failed(Errno::ENOENT));
    assert_eq!((s.status()[2] >> 32, s.status()[0] as u32), (0o1640, 0));
    assert_eq!(s.attach(s.init, 0, 0), Some(Ok(ATTACHED)));
    assert_eq!(s.attached().1 & vm::ATTACH_MAKE, 0);
    s.world.pm.programs.system.detach(s.init);
    assert_eq!(s.world.call(child, nr::EXIT_GROUP, &[0]), None);
    for command in [STAT, SET, LOCK, RMID] {
        assert_eq!(s.control(s.init, command), failed(Errno::EINVAL));
    }
    assert_eq!(s.attach(s.init, 0, 0), failed(Errno::EINVAL));
}

#[test]
fn one_that_nobody_has_attached_is_removed_at_once() {
    let mut s = scene();
    assert_eq!((s.control(s.init, RMID), s.control(s.init, RMID)), (DONE, failed(Errno::EINVAL)));
    assert_eq!(s.world.call(s.init, nr::SHMCTL, &[0, SHM_INFO, STATUS]), DONE);
    assert_eq!(s.world.words::<3>(s.init, STATUS), [0, 0, 0]);
}

#[test]
fn limits_and_use_are_told() {
    let mut s = scene();
    assert_eq!(s.attach(s.init, 0, 0), Some(Ok(ATTACHED)));
    let second = s.get(s.init, 0, 4096, 0).unwrap().unwrap();
    assert_eq!(s.control(s.init, INFO), Some(Ok(1)), "the highest index");
    assert_eq!(s.world.words::<5>(s.init, STATUS), [u64::MAX - (1 << 24), 1, 256, 256, PAGES / 2]);
    assert_eq!(s.control(s.init, SHM_INFO), Some(Ok(1)));
    assert_eq!(s.world.words::<4>(s.init, STATUS), [2, 4, 1, 0]);
    assert_eq!(s.world.call(s.init, nr::SHMCTL, &[1, SHM_STAT, STATUS]), Some(Ok(second)));
    assert_eq!(s.world.call(s.init, nr::SHMCTL, &[2, SHM_STAT, STATUS]), failed(Errno::EINVAL));
}

#[test]
fn a_user_gets_128_segments_and_a_quarter_of_memory_until_they_are_freed() {
    let mut s = scene();
    let (_, user) = s.world.user(1000, 100);
    let (_, other) = s.world.user(1001, 100);
    let most = PAGES / 4 * 4096;
    let large = s.get(user, 0, most, 0o600).unwrap().unwrap();
    assert_eq!(s.get(user, 0, 1, 0o600), failed(Errno::ENOSPC));
    s.id = large;
    assert_eq!((s.attach(other, 0, 0), s.attach(user, 0, 0)), (failed(Errno::EACCES), Some(Ok(ATTACHED))));
    assert_eq!((s.control(user, RMID), s.get(user, 0, 1, 0o600)), (DONE, failed(Errno::ENOSPC)), "it is attached");
    s.world.pm.programs.system.detach(user);
    let made = core::iter::from_fn(|| s.get(user, 0, 4096, 0o600).unwrap().ok()).count();
    assert_eq!(made, 128, "what vm has freed is not counted");
    let made = core::iter::from_fn(|| s.get(other, 0, 4096, 0o600).unwrap().ok()).count();
    assert_eq!(made, 256 - 16 - 1 - 128, "the rest is root's");
    assert!(s.get(s.init, 0, 4096, 0o600).unwrap().is_ok());
}

/// What procfs is told of one kind from this index on.
fn list(world: &mut World, kind: u64, first: u64) -> Result<Vec<IpcRecord>, Errno> {
    world.pm.programs.system.granted.clear();
    let ask = IpcObjects { kind, first, grant: GrantId(1), bytes: 1000 };
    let reply = world.pm.handle(&Message { source: Endpoint::new(40, 1), ..ask.message() }).done().unwrap();
    reply.result()?;
    let bytes = &world.pm.programs.system.granted;
    Ok(bytes.chunks(size_of::<IpcRecord>()).map(|record| IpcRecord::read_from_bytes(record).unwrap()).collect())
}

#[test]
fn procfs_is_told_of_all_objects() {
    let mut s = scene();
    let (name_low, name_high) = Name::new("procfs").unwrap().to_words();
    let up = abi::pm::ServiceUp { process: Endpoint::new(40, 1), name_low, name_high };
    s.world.pm.handle(&Message { source: Endpoint::RS, ..up.message() });
    let second = s.get(s.init, 0, 4096, 0o600).unwrap().unwrap();
    assert_eq!(s.attach(s.init, 0, 0), Some(Ok(ATTACHED)));
    let known = list(&mut s.world, IPC_SEGMENTS, 0).unwrap();
    assert_eq!(known.iter().map(|record| u64::from(record.id)).collect::<Vec<_>>(), [s.id, second]);
    let first = &known[0];
    assert_eq!((first.index, first.key, first.mode), (0, KEY as u32, 0o640));
    assert_eq!(first.values, [10_000, 1, 77, 1, 100, 200, 0, 4096]);
    assert_eq!(list(&mut s.world, IPC_SEGMENTS, 1).unwrap(), [known[1]]);
    assert_eq!(list(&mut s.world, IPC_SEGMENTS, 2), Ok(Vec::new()));
    assert_eq!(s.control(s.init, RMID), DONE);
    assert_eq!(list(&mut s.world, IPC_SEGMENTS, 0).unwrap()[0].mode, 0o1640);
    s.world.call(s.init, nr::SEMGET, &[3, 5, CREATE | 0o600]).unwrap().unwrap();
    let set = list(&mut s.world, IPC_SEMAPHORES, 0).unwrap()[0];
    assert_eq!((set.key, set.mode, set.values[0]), (3, 0o600, 5));
    s.world.call(s.init, nr::MSGGET, &[4, CREATE | 0o600]).unwrap().unwrap();
    assert_eq!(list(&mut s.world, IPC_MESSAGES, 0).unwrap()[0].key, 4);
    assert_eq!(list(&mut s.world, 3, 0), Err(Errno::EINVAL));
}
