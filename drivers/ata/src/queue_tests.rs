//! The transfers of a channel, against played disks.

use super::*;
use crate::channel::COMMAND_NS;
use crate::played::{BLOCK, Fault, Shared, Task, channel, medium, one_disk, pattern};
use std::{rc::Rc, vec, vec::Vec};

type TestQueue = Queue<Shared, Shared, Task>;

const READ_MULTIPLE: u8 = 0xc4;
const WRITE_MULTIPLE: u8 = 0xc5;
const READ_DMA: u8 = 0xc8;
const WRITE_DMA: u8 = 0xca;
const SET_MULTIPLE: u8 = 0xc6;
const FLUSH: u8 = 0xe7;

/// Serves the channel until it is idle. Returns the results in the order in which the transfers ended.
fn serve(queue: &mut TestQueue, shared: &Shared) -> Vec<Result<(), Errno>> {
    while let Some(wake_ns) = queue.wake_ns() {
        if shared.take_interrupt() {
            queue.interrupt();
        } else {
            shared.pass_until(wake_ns);
            queue.alarm();
        }
    }
    queue.take_ended().map(|(_, result)| result).collect()
}

fn run(queue: &mut TestQueue, shared: &Shared, task: &Task) -> Result<(), Errno> {
    queue.begin(0, task.clone()).expect("there is memory");
    serve(queue, shared)[..].try_into().map(|[result]: [_; 1]| result).expect("one transfer ends once")
}

fn inverted(sectors: usize) -> Vec<u8> {
    pattern(sectors).iter().map(|byte| !byte).collect()
}

#[test]
fn sectors_are_read_in_commands_of_limited_length() {
    for by_dma in [false, true] {
        let (mut queue, shared) = one_disk(by_dma);
        for (sector, count) in [(0, 1), (7, 16), (100, 40), (300, 256), (1, 599)] {
            let task = Task::read(sector, count);
            assert_eq!(run(&mut queue, &shared, &task), Ok(()));
            assert!(task.data() == pattern(600)[sector as usize * SECTOR_BYTES..][..count * SECTOR_BYTES]);
        }
        assert_eq!(shared.player().commands.len(), 2 + 4 + 3);
        assert_eq!(shared.player().resets, 1);
        assert!(shared.now_ns() < COMMAND_NS, "the driver waits for the alarm");
    }
}

#[test]
fn what_is_written_is_read_back() {
    for by_dma in [false, true] {
        let (mut queue, shared) = one_disk(by_dma);
        let data = inverted(300);
        assert_eq!(run(&mut queue, &shared, &Task::write(11, &data)), Ok(()));
        let task = Task::read(11, 300);
        assert_eq!(run(&mut queue, &shared, &task), Ok(()));
        assert!(task.data() == data);
        assert!(shared.sectors(0)[..11 * SECTOR_BYTES] == pattern(11));
    }
}

#[test]
fn transfers_of_both_disks_are_served_in_their_order_and_a_flush_after_the_writes_before_it() {
    for (by_dma, read, write) in [(false, READ_MULTIPLE, WRITE_MULTIPLE), (true, READ_DMA, WRITE_DMA)] {
        let shared = Shared::new([Some(medium(10)), Some(medium(10))], &Rc::default());
        let mut queue = Queue::new(channel(&shared, by_dma));
        let settings = shared.player().commands.len();
        shared.player().slow = true;
        let (first, second) = (Task::read(0, 1), Task::read(0, 1));
        let data = [[3; SECTOR_BYTES], [4; SECTOR_BYTES]].map(|data| Task::write(0, &data));
        let tasks = [(0, &data[0]), (0, &first), (1, &data[1]), (0, &Task::flush()), (1, &second)];
        for (unit, task) in tasks {
            queue.begin(unit, task.clone()).expect("there is memory");
            assert_eq!(shared.player().commands[settings..], [write], "one command is in progress");
        }
        shared.player().slow = false;
        shared.player().finish_step();
        assert_eq!(serve(&mut queue, &shared), [Ok(()); 5]);
        assert_eq!(shared.player().commands[settings..], [write, read, write, FLUSH, read]);
        assert_eq!((first.data(), second.data()), (vec![3; SECTOR_BYTES], vec![4; SECTOR_BYTES]));
    }
}

#[test]
fn a_transfer_of_nothing_ends_at_once() {
    let (mut queue, shared) = one_disk(true);
    queue.begin(0, Task::read(0, 0)).expect("there is memory");
    assert_eq!(queue.take_ended().map(|(_, result)| result).collect::<Vec<_>>(), [Ok(())]);
    assert_eq!(shared.player().commands.len(), 2);
}

#[test]
fn a_revoked_grant_fails_its_transfer_only() {
    for by_dma in [false, true] {
        let (mut queue, shared) = one_disk(by_dma);
        for task in [Task::read(0, 1).revoked(), Task::write(0, &[1; SECTOR_BYTES]).revoked(), Task::read(0, 1)] {
            queue.begin(0, task).expect("there is memory");
        }
        assert_eq!(serve(&mut queue, &shared), [Err(Errno::EPERM), Err(Errno::EPERM), Ok(())]);
        assert_eq!(shared.player().resets, 1);
        assert!(shared.sectors(0)[..SECTOR_BYTES] == pattern(1));
    }
}

#[test]
fn a_command_that_fails_is_repeated_after_a_reset() {
    for (by_dma, fault) in [
        (false, Fault::ErrorAfter(0)),
        (true, Fault::ErrorAfter(0)),
        (false, Fault::Silence),
        (true, Fault::Silence),
        (true, Fault::BusMaster),
    ] {
        let (mut queue, shared) = one_disk(by_dma);
        shared.player().faults = vec![fault];
        let task = Task::read(3, 1);
        assert_eq!(run(&mut queue, &shared, &task), Ok(()), "{fault:?}");
        assert!(task.data() == pattern(4)[3 * SECTOR_BYTES..]);
        assert_eq!(shared.player().resets, 2, "{fault:?}");
    }
}

#[test]
fn an_error_in_the_middle_of_a_command_repeats_all_of_it() {
    let middle = Fault::ErrorAfter(2 * BLOCK * SECTOR_BYTES);
    let (mut queue, shared) = one_disk(false);
    shared.player().faults = vec![middle, Fault::None, Fault::None, middle];
    let data = inverted(70);
    assert_eq!(run(&mut queue, &shared, &Task::write(20, &data)), Ok(()));
    assert!(shared.sectors(0)[20 * SECTOR_BYTES..][..data.len()] == data);
    assert_eq!(run(&mut queue, &shared, &Task::flush()), Ok(()));
    let task = Task::read(20, 70);
    assert_eq!(run(&mut queue, &shared, &task), Ok(()));
    assert!(task.data() == data);
    let expected = [WRITE_MULTIPLE, SET_MULTIPLE, WRITE_MULTIPLE, FLUSH, READ_MULTIPLE, SET_MULTIPLE, READ_MULTIPLE];
    assert_eq!(shared.player().commands[2..], expected);
}

#[test]
fn after_three_failures_a_transfer_gives_an_error_and_the_next_one_works() {
    for fault in [Fault::ErrorAfter(0), Fault::Silence] {
        for by_dma in [false, true] {
            let (mut queue, shared) = one_disk(by_dma);
            shared.player().faults = vec![fault; TRIES];
            queue.begin(0, Task::read(3, 1)).expect("there is memory");
            queue.begin(0, Task::read(3, 1)).expect("there is memory");
            assert_eq!(serve(&mut queue, &shared), [Err(Errno::EIO), Ok(())]);
            assert_eq!(shared.player().resets, 1 + TRIES);
        }
    }
}

#[test]
fn each_command_of_a_transfer_has_all_attempts() {
    let (mut queue, shared) = one_disk(true);
    let fault = Fault::ErrorAfter(0);
    shared.player().faults = vec![fault, fault, Fault::None, fault, fault, Fault::None];
    assert_eq!(run(&mut queue, &shared, &Task::read(0, 400)), Ok(()));
}

#[test]
fn a_disk_that_never_interrupts_costs_time_only() {
    for by_dma in [false, true] {
        let (mut queue, shared) = one_disk(by_dma);
        shared.player().faults = vec![Fault::NoInterrupts; 3];
        let data = inverted(40);
        assert_eq!(run(&mut queue, &shared, &Task::write(3, &data)), Ok(()));
        assert_eq!(run(&mut queue, &shared, &Task::flush()), Ok(()));
        let task = Task::read(3, 40);
        assert_eq!(run(&mut queue, &shared, &task), Ok(()));
        assert!(task.data() == data);
        assert_eq!(shared.player().resets, 1);
    }
}

#[test]
fn a_late_interrupt_neither_ends_nor_spoils_the_repeated_command() {
    for by_dma in [false, true] {
        let (mut queue, shared) = one_disk(by_dma);
        shared.player().faults = vec![Fault::Silence];
        let task = Task::read(3, 1);
        queue.begin(0, task.clone()).expect("there is memory");
        shared.pass_until(queue.wake_ns().expect("has a command"));
        shared.player().slow = true;
        queue.alarm();
        // During the reset, and during the command after it.
        for commands in [3, 5] {
            queue.interrupt();
            assert_eq!(queue.take_ended().count(), 0);
            assert_eq!(shared.player().commands.len(), commands);
            shared.player().finish_step();
            queue.alarm();
        }
        assert_eq!(serve(&mut queue, &shared), [Ok(())]);
        assert!(task.data() == pattern(4)[3 * SECTOR_BYTES..]);
        assert_eq!(shared.player().resets, 2);
    }
}

#[test]
fn a_disk_that_refuses_its_settings_after_a_reset_fails_all_transfers_until_it_recovers() {
    let (mut queue, shared) = one_disk(false);
    shared.player().refuses_settings = true;
    shared.player().faults = vec![Fault::ErrorAfter(0)];
    for _ in 0..2 {
        assert_eq!(run(&mut queue, &shared, &Task::read(0, 1)), Err(Errno::EIO));
    }
    shared.player().refuses_settings = false;
    assert_eq!(run(&mut queue, &shared, &Task::read(0, 1)), Ok(()));
}
