//! The commands of a channel, step by step, against played disks.

use super::*;
use crate::identity::LBA28_SECTORS;
use crate::played::{BLOCK, Fault, Shared, channel, large_medium, medium, pattern};
use std::rc::Rc;

const BLOCK_BYTES: usize = BLOCK * SECTOR_BYTES;

fn with_one_disk(by_dma: bool) -> (Channel<Shared, Shared>, Shared) {
    let shared = Shared::new([Some(medium(600)), None], &Rc::default());
    (channel(&shared, by_dma), shared)
}

#[test]
fn the_disks_of_a_channel_are_found() {
    let (first, _) = with_one_disk(true);
    assert_eq!(first.identity(0).map(|identity| identity.sectors), Some(600));
    assert_eq!(first.identity(1), None);
    let shared = Shared::new([None, Some(medium(10))], &Rc::default());
    let second = channel(&shared, true);
    assert!(second.identity(0).is_none() && second.identity(1).is_some());
    let nothing = Shared::new([None, None], &Rc::default());
    assert_eq!(Channel::find(nothing.clone(), Some(nothing)).err(), Some(Errno::ENXIO));
}

#[test]
fn each_interrupt_moves_one_block_of_a_read() {
    let (mut channel, shared) = with_one_disk(false);
    shared.player().slow = true;
    assert_eq!(channel.start(0, Operation::Read, 7, 2 * BLOCK_BYTES + SECTOR_BYTES), Ok(Progress::Pending));
    for (blocks, progress) in [(1, Progress::Pending), (2, Progress::Pending), (3, Progress::Ended)] {
        shared.player().finish_step();
        assert!(!channel.is_idle());
        assert_eq!(channel.interrupt(), Ok(progress));
        let bytes = (blocks * BLOCK_BYTES).min(2 * BLOCK_BYTES + SECTOR_BYTES);
        assert!(channel.buffer[..bytes] == pattern(600)[7 * SECTOR_BYTES..][..bytes]);
        assert!(channel.buffer[bytes..].iter().all(|&byte| byte == 0));
    }
    assert!(channel.is_idle());
}

#[test]
fn an_interrupt_changes_nothing_while_the_disk_is_busy() {
    for (operation, by_dma) in [
        (Operation::Read, false),
        (Operation::Read, true),
        (Operation::Write, false),
        (Operation::Write, true),
        (Operation::Flush, false),
    ] {
        let (mut channel, shared) = with_one_disk(by_dma);
        shared.player().slow = true;
        let bytes = if operation == Operation::Flush { 0 } else { SECTOR_BYTES };
        assert_eq!(channel.start(0, operation, 0, bytes), Ok(Progress::Pending));
        let (state, deadline_ns) = (channel.state, channel.deadline_ns);
        let unmasked = shared.player().unmasked;
        shared.pass_until(COMMAND_NS / 2);
        for _ in 0..3 {
            assert_eq!(channel.interrupt(), Ok(Progress::Pending), "{operation:?}");
        }
        assert_eq!((channel.state, channel.deadline_ns), (state, deadline_ns), "{operation:?}");
        assert_eq!(shared.player().unmasked, unmasked + 3, "the line is masked for good");
    }
}

#[test]
fn an_interrupt_of_an_idle_channel_changes_nothing() {
    let (mut channel, shared) = with_one_disk(true);
    assert_eq!(channel.interrupt(), Ok(Progress::Pending));
    shared.pass_until(2 * RESET_NS);
    assert_eq!(channel.interrupt(), Ok(Progress::Pending));
    assert_eq!(channel.alarm(), Ok(Progress::Pending));
    assert!(channel.is_idle() && channel.wake_ns().is_none());
}

#[test]
fn a_write_whose_first_request_comes_late_is_polled() {
    let (mut channel, shared) = with_one_disk(false);
    shared.player().slow = true;
    let Memory::Buffer(buffer) = channel.memory(0, SECTOR_BYTES) else { panic!("the disk is driven without DMA") };
    buffer.fill(9);
    assert_eq!(channel.start(0, Operation::Write, 5, SECTOR_BYTES), Ok(Progress::Pending));
    assert_eq!(channel.wake_ns(), Some(channel.registers.now_ns() + POLL_NS));
    assert_eq!(channel.alarm(), Ok(Progress::Pending));
    shared.player().finish_step();
    assert_eq!(channel.alarm(), Ok(Progress::Pending));
    shared.player().finish_step();
    assert_eq!(channel.interrupt(), Ok(Progress::Ended));
    assert_eq!(shared.sectors(0)[5 * SECTOR_BYTES..][..SECTOR_BYTES], [9; SECTOR_BYTES]);
}

#[test]
fn each_block_has_the_whole_time_of_a_command() {
    let (mut channel, shared) = with_one_disk(false);
    shared.player().slow = true;
    assert_eq!(channel.start(0, Operation::Read, 0, 2 * BLOCK_BYTES), Ok(Progress::Pending));
    for progress in [Progress::Pending, Progress::Ended] {
        shared.pass_until(channel.registers.now_ns() + COMMAND_NS - 1);
        assert_eq!(channel.alarm(), Ok(Progress::Pending));
        shared.player().finish_step();
        assert_eq!(channel.interrupt(), Ok(progress));
    }
}

#[test]
fn a_disk_that_violates_the_protocol_is_noticed() {
    let (mut channel, _) = with_one_disk(false);
    channel.wait_in(State::Reading(Blocks { done: 0, end: SECTOR_BYTES, block_bytes: SECTOR_BYTES }), COMMAND_NS);
    assert!(matches!(channel.interrupt(), Err(Failure::OutOfStep(_))), "no data is offered");
    assert_eq!(channel.reset(), Ok(()));
    assert_eq!(channel.alarm(), Ok(Progress::Ready));
    assert_eq!(channel.start(0, Operation::Read, 0, SECTOR_BYTES), Ok(Progress::Pending));
    channel.wait_in(State::NoData, COMMAND_NS);
    assert!(matches!(channel.interrupt(), Err(Failure::OutOfStep(_))), "data is offered");
}

#[test]
fn after_a_failure_only_a_reset_helps_which_restores_the_settings() {
    let (mut channel, shared) = with_one_disk(false);
    shared.player().faults = [Fault::ErrorAfter(0)].into();
    assert_eq!(channel.start(0, Operation::Flush, 0, 0), Ok(Progress::Pending));
    assert_eq!(channel.interrupt(), Err(Failure::Disk(0x51, 0x40)));
    assert_eq!(channel.start(0, Operation::Flush, 0, 0), Err(Failure::NotReset));
    shared.player().refuses_settings = true;
    assert_eq!(channel.reset(), Ok(()));
    assert_eq!(channel.alarm(), Err(Failure::Disk(0x51, 0x40)));
    assert_eq!(channel.start(0, Operation::Flush, 0, 0), Err(Failure::NotReset));
    shared.player().refuses_settings = false;
    assert_eq!(channel.reset(), Ok(()));
    assert_eq!(channel.alarm(), Ok(Progress::Ready));
    // Reads by READ MULTIPLE, which the disk refuses without the setting.
    assert_eq!(channel.start(0, Operation::Read, 0, SECTOR_BYTES), Ok(Progress::Pending));
    assert_eq!(channel.interrupt(), Ok(Progress::Ended));
}

#[test]
fn a_reset_waits_for_the_alarm_and_not_inside() {
    let (mut channel, shared) = with_one_disk(false);
    shared.player().slow = true;
    assert_eq!(channel.reset(), Ok(()));
    let start_ns = channel.registers.now_ns();
    assert_eq!(channel.alarm(), Ok(Progress::Pending));
    assert_eq!(channel.interrupt(), Ok(Progress::Pending));
    assert!(!channel.is_idle() && channel.registers.now_ns() == start_ns);
    shared.pass_until(start_ns + RESET_NS);
    assert_eq!(channel.alarm(), Err(Failure::Silent));
}

#[test]
fn sectors_beyond_28_bits_are_reached() {
    let first = LBA28_SECTORS - 4;
    for (by_dma, code) in [(false, 0x29), (true, 0x25)] {
        let shared = Shared::new([Some(large_medium(first, 100)), None], &Rc::default());
        let mut channel = channel(&shared, by_dma);
        assert_eq!(channel.start(0, Operation::Read, first, 8 * SECTOR_BYTES), Ok(Progress::Pending));
        assert_eq!(channel.interrupt(), Ok(Progress::Ended));
        assert_eq!(shared.player().commands.last(), Some(&code));
    }
}
