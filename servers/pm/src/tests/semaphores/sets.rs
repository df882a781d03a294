//! Sets: keys and identifiers, how many there are, owners, status and rights.

use super::*;
use crate::tests::failed;
use abi::Errno;

#[test]
fn a_set_is_found_by_its_key() {
    let mut s = scene();
    let init = s.init;
    for (count, flags, answer) in [
        (0, 0, Some(Ok(s.id))),
        (2, 0, Some(Ok(s.id))),
        (2, CREATE, Some(Ok(s.id))),
        (2, EXCLUSIVE, Some(Ok(s.id))),
        (2, CREATE | EXCLUSIVE, failed(Errno::EEXIST)),
        (3, 0, failed(Errno::EINVAL)),
    ] {
        assert_eq!(s.get(init, KEY, count, flags), answer, "{count} {flags:#o}");
    }
    assert_eq!(s.get(init, KEY + 1, 2, 0), failed(Errno::ENOENT));
    assert_eq!(s.get(init, KEY + 1, 2, EXCLUSIVE), failed(Errno::ENOENT));
    let other = s.get(init, KEY + 1, 2, CREATE | EXCLUSIVE).unwrap().unwrap();
    assert_ne!(other, s.id);
    assert_eq!(s.get(init, KEY + 1, 0, 0), Some(Ok(other)));
}

#[test]
fn private_sets_are_new_each_time() {
    let mut s = scene();
    let init = s.init;
    let first = s.get(init, 0, 1, 0).unwrap().unwrap();
    let second = s.get(init, 0, 1, CREATE | EXCLUSIVE).unwrap().unwrap();
    assert!(first != second && first != s.id && second != s.id);
}

#[test]
fn a_set_has_one_to_256_semaphores() {
    let mut s = scene();
    let init = s.init;
    for (count, fits) in [(0, false), (1, true), (256, true), (257, false), (u32::MAX as u64, false)] {
        let made = s.get(init, 0, count, 0);
        assert_eq!(made.unwrap().is_ok(), fits, "{count}: {made:?}");
        if !fits {
            assert_eq!(made, failed(Errno::EINVAL));
        }
    }
}

#[test]
fn there_are_128_sets_and_an_old_identifier_means_none_of_the_later_ones() {
    let mut s = scene();
    let init = s.init;
    let made: Vec<u64> = (1..128).map(|_| s.get(init, 0, 1, 0).unwrap().unwrap()).collect();
    assert_eq!(s.get(init, 0, 1, 0), failed(Errno::ENOSPC));
    assert!(made.iter().all(|id| *id < 1 << 31));
    assert_eq!(s.control(init, 0, RMID, 0), DONE);
    assert_eq!(s.control(init, 0, GETVAL, 0), failed(Errno::EINVAL));
    assert_eq!(s.control(init, 0, RMID, 0), failed(Errno::EINVAL));
    assert_eq!(s.control(init, 0, SETALL, BUFFER), failed(Errno::EINVAL));
    assert_eq!(s.get(init, KEY, 0, 0), failed(Errno::ENOENT));
    let last = s.get(init, KEY, 2, CREATE).unwrap().unwrap();
    assert!(last != s.id && !made.contains(&last));
    assert_eq!(s.add(init, 0, 1), failed(Errno::EINVAL), "the old identifier");
    s.id = last;
    assert_eq!(s.values(), [0, 0]);
}

#[test]
fn the_status_of_a_set_tells_owner_creator_mode_and_times() {
    let mut s = scene();
    let (_, owner) = s.world.user(1000, 100);
    s.id = s.get(owner, KEY + 1, 3, CREATE | 0o640).unwrap().unwrap();
    s.world.write(owner, BUFFER, &[9; 14]);
    assert_eq!(s.control(owner, 0, STAT, BUFFER), DONE);
    let made = [8 | 1000 << 32, 100 | 1000 << 32, 100 | 0o640 << 32, 0, 0, 0, 0, 0, 1005, 0, 3, 0, 0, 9];
    assert_eq!(s.world.words::<14>(owner, BUFFER), made);
    s.world.set_time(6 * SECOND);
    assert_eq!(s.add(owner, 0, -1), None);
    let init = s.init;
    assert_eq!(s.control(init, 0, STAT, BUFFER), DONE);
    assert_eq!(s.world.read(init, BUFFER + 48), 0, "nothing has been done yet");
    assert_eq!(s.add(init, 0, 2), DONE);
    s.world.set_time(7 * SECOND);
    s.set_value(0, 1);
    assert_eq!(s.control(init, 0, STAT, BUFFER), DONE);
    assert_eq!([s.world.read(init, BUFFER + 48), s.world.read(init, BUFFER + 64)], [1006, 1007]);
    assert_eq!(s.control(init, 0, STAT, 8), failed(Errno::EFAULT));
}

#[test]
fn a_mode_has_nine_bits() {
    let mut s = scene();
    let init = s.init;
    s.id = s.get(init, 0, 1, 0o7777).unwrap().unwrap();
    for _ in 0..2 {
        assert_eq!(s.control(init, 0, STAT, BUFFER), DONE);
        assert_eq!(s.world.read(init, BUFFER + 16) >> 32, 0o777);
        s.world.write(init, BUFFER, &[0, 0, 0o7777 << 32]);
        assert_eq!(s.control(init, 0, SET, BUFFER), DONE);
    }
}

#[test]
fn the_owner_may_give_a_set_away_and_the_creator_keeps_its_rights() {
    let mut s = scene();
    let [(_, creator), (_, owner), (_, stranger)] =
        [(1000, 100), (1001, 101), (1002, 102)].map(|(u, g)| s.world.user(u, g));
    s.id = s.get(creator, KEY + 1, 1, CREATE | 0o600).unwrap().unwrap();
    let gift = [1 << 32 | 55, 101 | 77 << 32, 88 | 0o77640 << 32];
    for (thread, answer) in [(stranger, failed(Errno::EPERM)), (creator, DONE)] {
        s.world.write(thread, BUFFER, &gift.map(|word| if word == gift[0] { 1001 << 32 | 55 } else { word }));
        s.world.set_time(8 * SECOND);
        assert_eq!(s.control(thread, 0, SET, BUFFER), answer);
    }
    let init = s.init;
    assert_eq!(s.control(init, 0, STAT, BUFFER), DONE);
    let [key_owner, group_creator, group_mode] = s.world.words(init, BUFFER);
    assert_eq!([key_owner, group_creator, group_mode], [8 | 1001 << 32, 101 | 1000 << 32, 100 | 0o640 << 32]);
    assert_eq!(s.world.read(init, BUFFER + 64), 1008);
    for thread in [owner, creator] {
        assert_eq!(s.control(thread, 0, SETVAL, 1), DONE);
    }
    assert_eq!(s.control(stranger, 0, SETVAL, 1), failed(Errno::EACCES));
    assert_eq!(s.control(init, 0, SET, 8), failed(Errno::EFAULT));
    assert_eq!(s.control(stranger, 0, RMID, 0), failed(Errno::EPERM));
    assert_eq!(s.control(owner, 0, RMID, 0), DONE);
}

/// What a user may do with a set of user 1000 and group 100: alter, read, wait for zero.
fn may(s: &mut Scene, thread: Endpoint) -> [bool; 3] {
    let answers = [s.add(thread, 0, 1), s.control(thread, 0, GETVAL, 0), s.operate(thread, &[(0, 0, NO_WAIT)])];
    answers.map(|answer| match answer {
        Some(Err(Errno::EACCES)) => false,
        Some(Ok(_) | Err(Errno::EAGAIN)) => true,
        other => panic!("{other:?}"),
    })
}

#[test]
fn mode_bits_decide_by_user_group_or_others() {
    for (mode, owner, member, stranger) in [
        (0o600, [true, true, true], [false; 3], [false; 3]),
        (0o400, [false, true, true], [false; 3], [false; 3]),
        (0o200, [true, false, false], [false; 3], [false; 3]),
        (0o060, [false; 3], [true, true, true], [false; 3]),
        (0o006, [false; 3], [false; 3], [true, true, true]),
        (0o644, [true, true, true], [false, true, true], [false, true, true]),
        (0o111, [false; 3], [false; 3], [false; 3]),
    ] {
        let mut s = scene();
        let users = [(1000, 100), (1001, 100), (1002, 102)].map(|(user, group)| s.world.user(user, group).1);
        s.id = s.get(users[0], 0, 1, mode).unwrap().unwrap();
        assert_eq!(users.map(|user| may(&mut s, user)), [owner, member, stranger], "{mode:#o}");
        let init = s.init;
        assert_eq!(may(&mut s, init), [true; 3], "root");
    }
}

#[test]
fn who_looks_up_a_set_names_the_rights_that_it_needs() {
    let mut s = scene();
    let [(_, owner), (_, stranger)] = [(1000, 100), (1002, 102)].map(|(user, group)| s.world.user(user, group));
    let id = s.get(owner, KEY + 1, 1, CREATE | 0o604).unwrap();
    for (flags, reader_may) in
        [(0, true), (0o4, true), (0o40, true), (0o400, true), (0o2, false), (0o20, false), (0o200, false)]
    {
        let answer = if reader_may { id } else { Err(Errno::EACCES) };
        assert_eq!(s.get(stranger, KEY + 1, 1, flags), Some(answer), "{flags:#o}");
        assert_eq!(s.get(owner, KEY + 1, 1, flags), Some(id), "{flags:#o}");
    }
    assert_eq!(s.get(stranger, KEY + 1, 1, 0o111), Some(id), "execution means nothing");
}

#[test]
fn sets_and_limits_are_told() {
    let mut s = scene();
    let init = s.init;
    const INFO: u64 = 3;
    const SEM_STAT: u64 = 18;
    const SEM_INFO: u64 = 19;
    let other = s.get(init, KEY + 1, 5, CREATE).unwrap().unwrap();
    for (command, used) in [(INFO, [20, 32767]), (SEM_INFO, [2, 7])] {
        assert_eq!(s.control(init, 0, command, BUFFER), Some(Ok(1)), "the highest index");
        let words: [u64; 5] = s.world.words(init, BUFFER);
        let info: Vec<u32> = words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
        assert_eq!(info, [32768, 128, 32768, 32768, 256, 500, 500, used[0], 32767, used[1]]);
    }
    let stat = |s: &mut Scene, index: u64| s.world.call(init, nr::SEMCTL, &[index, 0, SEM_STAT, BUFFER]);
    assert_eq!(stat(&mut s, 1), Some(Ok(other)));
    assert_eq!(s.world.read(init, BUFFER + 80), 5);
    assert_eq!(stat(&mut s, 2), failed(Errno::EINVAL));
}
