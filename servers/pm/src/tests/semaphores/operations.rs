//! Values, operations on them, waiting, and what the end of a process undoes.

use super::*;
use crate::tests::failed;
use abi::Errno;

#[test]
fn a_call_has_one_to_500_operations() {
    let mut s = scene();
    let init = s.init;
    let many = [(0, 0, 0); 501];
    assert_eq!(s.operate(init, &many[..500]), DONE);
    assert_eq!(s.operate(init, &many), failed(Errno::E2BIG));
    assert_eq!(s.operate(init, &[]), failed(Errno::EINVAL));
    assert_eq!(s.world.call(init, nr::SEMOP, &[s.id, 8, 1]), failed(Errno::EFAULT));
    assert_eq!(s.operate(init, &[(2, 1, 0)]), failed(Errno::EFBIG));
    assert_eq!(s.world.call(init, nr::SEMOP, &[s.id + 1, OPERATIONS, 1]), failed(Errno::EINVAL));
}

#[test]
fn values_go_from_0_to_32767() {
    let mut s = scene();
    let init = s.init;
    assert_eq!(s.add(init, 1, i16::MAX), DONE);
    assert_eq!(s.add(init, 1, 1), failed(Errno::ERANGE));
    assert_eq!(s.operate(init, &[(1, -1, 0), (1, 1, 0)]), DONE);
    for (value, answer) in
        [(0, DONE), (32767, DONE), (32768, failed(Errno::ERANGE)), (u32::MAX as u64, failed(Errno::ERANGE))]
    {
        assert_eq!(s.control(init, 0, SETVAL, value), answer, "{value}");
    }
    assert_eq!(s.values(), [32767, 32767]);
    s.set_value(0, 1 << 32 | 5);
    assert_eq!(s.values(), [5, 32767], "a value is an int");
    assert_eq!(s.control(init, 2, SETVAL, 1), failed(Errno::EINVAL));
    assert_eq!(s.control(init, 2, GETVAL, 1), failed(Errno::EINVAL));
    s.world.write_bytes(init, BUFFER, &[1, 0, 0, 0x80]);
    assert_eq!(s.control(init, 0, SETALL, BUFFER), failed(Errno::ERANGE));
    assert_eq!(s.values(), [5, 32767]);
}

#[test]
fn all_values_are_written_and_read_as_halves_of_words() {
    let mut s = scene();
    let init = s.init;
    s.world.write_bytes(init, BUFFER, &[1, 2, 3, 4, 9, 9]);
    assert_eq!(s.control(init, 0, SETALL, BUFFER), DONE);
    assert_eq!(s.values(), [0x201, 0x403]);
    assert_eq!(s.control(init, 0, GETALL, BUFFER + 64), DONE);
    assert_eq!(s.world.read_bytes(init, BUFFER + 64, 6), [1, 2, 3, 4, 0, 0]);
    assert_eq!(s.control(init, 0, SETALL, 8), failed(Errno::EFAULT));
    assert_eq!(s.control(init, 0, GETALL, 8), failed(Errno::EFAULT));
}

#[test]
fn commands_are_ints_with_the_mark_of_old_libraries() {
    let mut s = scene();
    let init = s.init;
    s.set_value(1, 3);
    for command in [GETVAL, GETVAL | 0x100, GETVAL | 1 << 32] {
        assert_eq!(s.control(init, 1 << 32 | 1, command, 0), Some(Ok(3)), "{command:#x}");
    }
    for command in [4, 10, 21] {
        assert_eq!(s.control(init, 0, command, 0), failed(Errno::EINVAL), "{command}");
    }
}

#[test]
fn an_operation_waits_until_the_value_is_great_enough() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    assert_eq!(s.add(child, 1, -2), None);
    assert_eq!(s.waiting(), [[0, 1], [0, 0]]);
    assert_eq!(s.add(init, 1, 1), DONE);
    assert_eq!(s.world.answer(child), None);
    assert_eq!(s.ask(1, GETPID), 1);
    assert_eq!(s.add(init, 1, 2), DONE);
    assert_eq!(s.world.answer(child), DONE);
    assert_eq!(s.values(), [0, 1]);
    assert_eq!([s.ask(0, GETPID), s.ask(1, GETPID)], [0, s.pid]);
    assert_eq!(s.waiting(), [[0, 0], [0, 0]]);
}

#[test]
fn an_operation_waits_until_the_value_is_zero() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    assert_eq!(s.add(child, 0, 0), DONE);
    s.set_value(0, 1);
    assert_eq!(s.add(child, 0, 0), None);
    assert_eq!(s.waiting(), [[0, 0], [1, 0]]);
    assert_eq!(s.add(init, 0, -1), DONE);
    assert_eq!(s.world.answer(child), DONE);
}

#[test]
fn setting_a_value_lets_those_go_on_who_waited_for_it() {
    for command in [SETVAL, SETALL] {
        let mut s = scene();
        let (init, child) = (s.init, s.child);
        assert_eq!(s.add(child, 0, -1), None);
        s.world.write_bytes(init, BUFFER, &[1, 0, 0, 0]);
        let argument = if command == SETVAL { 1 } else { BUFFER };
        assert_eq!(s.control(init, 0, command, argument), DONE);
        assert_eq!(s.world.answer(child), DONE);
        assert_eq!(s.ask(0, GETPID), s.pid);
        assert_eq!(s.values(), [0, 0]);
    }
}

#[test]
fn who_has_waited_longest_is_served_first_and_holds_up_nobody() {
    let mut s = scene();
    let init = s.init;
    let [greedy, first, second] = [(); 3].map(|()| s.fork());
    assert_eq!(s.add(greedy, 0, -3), None);
    assert_eq!(s.add(first, 0, -1), None);
    assert_eq!(s.add(second, 0, -1), None);
    assert_eq!(s.waiting(), [[3, 0], [0, 0]]);
    assert_eq!(s.add(init, 0, 1), DONE);
    assert_eq!([greedy, first, second].map(|waiter| s.world.answer(waiter)), [None, DONE, None]);
    assert_eq!(s.add(init, 0, 4), DONE);
    assert_eq!([greedy, second].map(|waiter| s.world.answer(waiter)), [DONE, DONE]);
    assert_eq!(s.values(), [0, 0]);
}

#[test]
fn what_one_waiter_does_may_let_an_older_one_go_on() {
    let mut s = scene();
    let (init, older) = (s.init, s.child);
    let younger = s.fork();
    assert_eq!(s.add(older, 1, -1), None);
    assert_eq!(s.operate(younger, &[(0, -1, 0), (1, 1, 0)]), None);
    assert_eq!(s.add(init, 0, 1), DONE);
    assert_eq!([older, younger].map(|waiter| s.world.answer(waiter)), [DONE, DONE]);
    assert_eq!(s.values(), [0, 0]);
}

#[test]
fn a_waiter_counts_for_the_semaphore_that_holds_it_up() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    assert_eq!(s.operate(child, &[(0, -1, 0), (1, -1, 0)]), None);
    assert_eq!(s.waiting(), [[1, 0], [0, 0]]);
    assert_eq!(s.add(init, 0, 1), DONE);
    assert_eq!(s.waiting(), [[0, 1], [0, 0]]);
    assert_eq!(s.values(), [1, 0], "all or nothing");
    assert_eq!(s.add(init, 1, 1), DONE);
    assert_eq!(s.world.answer(child), DONE);
    assert_eq!(s.values(), [0, 0]);
}

#[test]
fn a_waiter_learns_that_its_operations_have_become_impossible() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    assert_eq!(s.operate(child, &[(0, -1, 0), (1, i16::MAX, 0)]), None);
    s.set_value(1, 1);
    assert_eq!(s.add(init, 0, 1), DONE);
    assert_eq!(s.world.answer(child), failed(Errno::ERANGE));
    assert_eq!(s.values(), [1, 1]);
}

#[test]
fn nobody_waits_who_does_not_want_to() {
    let mut s = scene();
    let child = s.child;
    assert_eq!(s.operate(child, &[(0, -1, NO_WAIT)]), failed(Errno::EAGAIN));
    assert_eq!(s.operate(child, &[(0, 1, 0), (0, 0, NO_WAIT)]), failed(Errno::EAGAIN));
    assert_eq!(s.values(), [0, 0]);
    assert_eq!(s.waiting(), [[0, 0], [0, 0]]);
}

#[test]
fn a_timed_wait_gives_up_at_its_time() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    assert_eq!(s.add_timed(child, 0, -1, [2, 7]), None);
    assert_eq!(s.world.pm.programs.system.alarm, Some(7 * SECOND + 7));
    s.world.set_time(7 * SECOND + 7);
    assert_eq!(s.world.answer(child), failed(Errno::EAGAIN));
    assert_eq!(s.waiting(), [[0, 0], [0, 0]]);
    assert_eq!(s.add(init, 0, 1), DONE);
    assert_eq!(s.values(), [1, 0]);
}

#[test]
fn a_timed_wait_that_is_served_leaves_no_timer() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    assert_eq!(s.add_timed(child, 0, 1, [2, 0]), DONE);
    assert_eq!(s.world.pm.programs.system.alarm, None);
    assert_eq!(s.add_timed(child, 0, -2, [2, 0]), None);
    assert_eq!(s.add(init, 0, 1), DONE);
    assert_eq!(s.world.answer(child), DONE);
    assert_eq!(s.world.pm.programs.system.alarm, None);
    assert_eq!(s.add_timed(child, 0, -1, [2, SECOND]), failed(Errno::EINVAL));
    assert_eq!(s.world.call(child, nr::SEMTIMEDOP, &[s.id, OPERATIONS, 1, 8]), failed(Errno::EFAULT));
    assert_eq!(s.add_timed(child, 0, -1, [u64::MAX, 0]), failed(Errno::EINVAL));
    s.write_operations(child, &[(0, -1, 0)]);
    assert_eq!(s.world.call(child, nr::SEMTIMEDOP, &[s.id, OPERATIONS, 1, 0]), None, "no limit");
    assert_eq!(s.world.pm.programs.system.alarm, None);
}

#[test]
fn who_waits_for_a_set_that_is_removed_gets_eidrm() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    let elsewhere = s.fork();
    let other = s.get(init, 0, 1, 0o600).unwrap().unwrap();
    assert_eq!(s.add_timed(child, 0, -1, [2, 0]), None);
    s.write_operations(elsewhere, &[(0, -1, 0)]);
    assert_eq!(s.world.call(elsewhere, nr::SEMOP, &[other, OPERATIONS, 1]), None);
    assert_eq!(s.control(init, 0, RMID, 0), DONE);
    assert_eq!(s.world.answer(child), failed(Errno::EIDRM));
    assert_eq!(s.world.answer(elsewhere), None);
    assert_eq!(s.world.pm.programs.system.alarm, None);
}

#[test]
fn a_handler_ends_a_wait_which_is_not_repeated() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    s.world.handle_signal(child, USR1, 0x1000_0000);
    assert_eq!(s.add_timed(child, 0, -1, [9, 0]), None);
    s.world.call(init, nr::KILL, &[s.pid, USR1]);
    assert_eq!(s.waiting(), [[0, 0], [0, 0]]);
    assert_eq!(s.world.pm.programs.system.alarm, None);
    s.world.thread(child).registers.rsp += 8;
    s.world.call(child, nr::RT_SIGRETURN, &[]);
    assert_eq!(s.world.thread(child).registers.rax, -4i64 as u64);
    assert_eq!(s.add(init, 0, 1), DONE);
    assert_eq!(s.values(), [1, 0]);
}

#[test]
fn a_handler_that_is_to_run_already_ends_a_wait_before_it_begins() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    s.world.handle_signal(child, USR1, 0);
    s.world.call(init, nr::KILL, &[s.pid, USR1]);
    assert_eq!(s.add_timed(child, 0, -1, [9, 0]), None);
    assert_eq!(s.world.thread(child).registers.rip, 0xaaaa);
    assert_eq!(s.waiting(), [[0, 0], [0, 0]]);
    assert_eq!(s.world.pm.programs.system.alarm, None);
}

#[test]
fn a_waiter_that_was_killed_takes_nothing() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    let other = s.fork();
    assert_eq!(s.add(child, 0, -1), None);
    assert_eq!(s.add(other, 0, -1), None);
    s.world.call(init, nr::KILL, &[s.pid, 9]);
    assert_eq!(s.waiting(), [[1, 0], [0, 0]]);
    assert_eq!(s.add(init, 0, 2), DONE);
    assert_eq!(s.world.answer(other), DONE);
    assert_eq!(s.values(), [1, 0]);
    assert_eq!(s.waiting(), [[0, 0], [0, 0]]);
}

#[test]
fn the_end_of_a_process_takes_back_what_it_wanted_undone() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    s.set_value(0, 1);
    assert_eq!(s.operate(child, &[(0, -1, UNDO), (1, 5, UNDO)]), DONE);
    assert_eq!(s.operate(child, &[(1, 2, 0), (1, -1, UNDO)]), DONE);
    let waiter = s.fork();
    assert_eq!(s.add(waiter, 0, -1), None);
    let (_, grandchild) = s.world.fork(child);
    s.world.call(grandchild, nr::EXIT_GROUP, &[0]);
    assert_eq!(s.values(), [0, 6], "a child inherits nothing of it");
    s.world.call(child, nr::EXIT_GROUP, &[0]);
    assert_eq!(s.world.answer(waiter), DONE);
    assert_eq!(s.values(), [0, 2]);
    assert_eq!(s.ask(1, GETPID), s.pid);
    assert_eq!(s.add(init, 1, -2), DONE);
}

#[test]
fn what_is_undone_stays_between_0_and_32767() {
    let mut s = scene();
    let (init, child) = (s.init, s.child);
    s.set_value(1, 10);
    assert_eq!(s.operate(child, &[(0, 5, UNDO), (1, -5, UNDO)]), DONE);
    assert_eq!(s.operate(init, &[(0, -3, 0), (1, 32762, 0)]), DONE);
    s.world.call(child, nr::EXIT_GROUP, &[0]);
    assert_eq!(s.values(), [0, 32767]);
}

#[test]
fn a_value_that_is_set_is_not_undone() {
    let mut s = scene();
    let child = s.child;
    assert_eq!(s.operate(child, &[(0, 5, UNDO), (1, 5, UNDO)]), DONE);
    s.set_value(0, 5);
    s.world.call(child, nr::EXIT_GROUP, &[0]);
    assert_eq!(s.values(), [5, 0]);
}
