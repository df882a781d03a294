//! The disks of both channels, which work independently of each other, and their minor numbers.

use crate::channel::UNITS;
use crate::identity::Identity;
use crate::queue::{Ended, Queue, Work};
use crate::registers::{BusMaster, Registers};
use abi::Errno;

/// Channels of a controller. The interrupt of each has its number as hook.
pub const CHANNELS: usize = 2;
/// Distance of the disks' minor numbers.
const MINOR_STEP: usize = 64;

/// All disks.
pub struct Disks<R, B, W> {
    /// `None`: a channel without disks.
    channels: [Option<Queue<R, B, W>>; CHANNELS],
}

impl<R: Registers, B: BusMaster, W: Work<B>> Disks<R, B, W> {
    /// Makes the disks of these channels. `None`: there are none.
    pub fn new(channels: [Option<Queue<R, B, W>>; CHANNELS]) -> Option<Self> {
        channels.iter().any(Option::is_some).then_some(Disks { channels })
    }

    /// Returns the identity of a disk.
    ///
    /// # Errors
    /// `ENXIO`: no disk with this minor number.
    pub fn identity(&self, minor: u64) -> Result<Identity, Errno> {
        let (channel, unit) = place(minor)?;
        let queue = self.channels.get(channel).and_then(Option::as_ref);
        queue.and_then(|queue| queue.identity(unit)).ok_or(Errno::ENXIO)
    }

    /// Queues a transfer of whole sectors within the disk. Returns it with the error if that fails: `ENXIO`, `ENOMEM`.
    pub fn begin(&mut self, minor: u64, work: W) -> Result<(), (W, Errno)> {
        let Ok((channel, unit)) = place(minor) else { return Err((work, Errno::ENXIO)) };
        let Some(queue) = self.channels.get_mut(channel).and_then(Option::as_mut) else {
            return Err((work, Errno::ENXIO));
        };
        queue.begin(unit, work).map_err(|work| (work, Errno::ENOMEM))
    }

    /// Handles interrupts: one bit for each channel.
    pub fn interrupt(&mut self, hooks: u64) {
        let channels = self.channels.iter_mut().enumerate().filter(|(index, _)| hooks & 1 << index != 0);
        channels.filter_map(|(_, queue)| queue.as_mut()).for_each(Queue::interrupt);
    }

    /// Handles the alarm.
    pub fn alarm(&mut self) {
        self.channels.iter_mut().flatten().for_each(Queue::alarm);
    }

    /// Returns when [`Disks::alarm`] has to be called. `None`: all channels are idle.
    pub fn wake_ns(&self) -> Option<u64> {
        self.channels.iter().flatten().filter_map(Queue::wake_ns).min()
    }

    /// Returns the transfers that have completed since the last call.
    pub fn take_ended(&mut self) -> impl Iterator<Item = Ended<W>> + '_ {
        self.channels.iter_mut().flatten().flat_map(Queue::take_ended)
    }
}

/// Returns channel and unit of a minor number.
fn place(minor: u64) -> Result<(usize, usize), Errno> {
    let minor = usize::try_from(minor).map_err(|_| Errno::ENXIO)?;
    let disk = minor / MINOR_STEP;
    if minor.is_multiple_of(MINOR_STEP) { Ok((disk / UNITS, disk % UNITS)) } else { Err(Errno::ENXIO) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::SECTOR_BYTES;
    use crate::played::{Fault, Shared, Task, channel, medium, pattern};
    use driver::block::Extent;
    use std::{rc::Rc, vec::Vec};

    const FIRST: u64 = 1;
    const SECOND: u64 = 2;

    /// One disk on each channel: hda and hdc.
    fn two_channels(by_dma: bool) -> (Disks<Shared, Shared, Task>, [Shared; CHANNELS]) {
        let clock_ns = Rc::default();
        let players = [10, 20].map(|sectors| Shared::new([Some(medium(sectors)), None], &clock_ns));
        let channels = [&players[0], &players[1]].map(|player| Some(Queue::new(channel(player, by_dma))));
        (Disks::new(channels).expect("has disks"), players)
    }

    /// Returns position and result of the transfers that have ended.
    fn ended(disks: &mut Disks<Shared, Shared, Task>) -> Vec<(u64, Result<(), Errno>)> {
        disks.take_ended().map(|(task, result)| (task.position() / SECTOR_BYTES as u64, result)).collect()
    }

    #[test]
    fn minor_numbers_are_those_of_linux() {
        let (mut disks, _) = two_channels(true);
        let sectors = |minor| disks.identity(minor).map(|identity| identity.sectors);
        assert_eq!([0, 128].map(sectors), [Ok(10), Ok(20)]);
        for minor in [1, 64, 192, 256, u64::MAX] {
            assert_eq!(sectors(minor), Err(Errno::ENXIO));
        }
        assert_eq!(disks.begin(256, Task::flush()).map_err(|(_, error)| error), Err(Errno::ENXIO));
        assert!(Disks::<Shared, Shared, Task>::new([None, None]).is_none());
    }

    #[test]
    fn commands_of_both_channels_are_in_progress_at_once_and_end_in_any_order() {
        for by_dma in [false, true] {
            let (mut disks, players) = two_channels(by_dma);
            players.iter().for_each(|player| player.player().slow = true);
            let tasks = [(0, Task::read(1, 1)), (128, Task::read(2, 1))];
            for (minor, task) in &tasks {
                assert!(disks.begin(*minor, task.clone()).is_ok());
            }
            assert!(players.iter().all(|player| player.player().commands.len() == 3));
            // The interrupt of the other channel finds this one busy.
            disks.interrupt(FIRST | SECOND);
            assert_eq!(ended(&mut disks), []);
            players[1].player().finish_step();
            disks.interrupt(FIRST);
            assert_eq!(ended(&mut disks), []);
            disks.interrupt(SECOND);
            assert_eq!(ended(&mut disks), [(2, Ok(()))]);
            players[0].player().finish_step();
            disks.interrupt(FIRST);
            assert_eq!(ended(&mut disks), [(1, Ok(()))]);
            for (_, task) in tasks {
                let sector = task.position() as usize;
                assert!(task.data() == pattern(10)[sector..][..SECTOR_BYTES]);
            }
            assert_eq!(disks.wake_ns(), None);
        }
    }

    #[test]
    fn the_alarm_is_for_the_command_that_times_out_first() {
        let (mut disks, players) = two_channels(true);
        for (minor, player) in [(128, &players[1]), (0, &players[0])] {
            player.player().faults = [Fault::Silence].into();
            assert!(disks.begin(minor, Task::flush()).is_ok());
            players[0].pass_until(1_000_000_000);
        }
        players[0].pass_until(disks.wake_ns().expect("two commands are in progress"));
        disks.alarm();
        assert_eq!(players.map(|player| player.player().resets), [1, 2]);
    }

    #[test]
    fn a_silent_disk_holds_up_its_own_channel_only() {
        let (mut disks, players) = two_channels(true);
        players[0].player().faults = [Fault::Silence; 3].into();
        assert!(disks.begin(0, Task::read(1, 1)).is_ok());
        let mut served = 0;
        while disks.wake_ns().is_some() {
            assert!(disks.begin(128, Task::read(2, 1)).is_ok());
            disks.interrupt(SECOND);
            let now = ended(&mut disks);
            assert_eq!(now, [(2, Ok(()))]);
            served += 1;
            let Some(wake_ns) = disks.wake_ns() else { break };
            players[0].pass_until(wake_ns);
            disks.alarm();
            if ended(&mut disks).contains(&(1, Err(Errno::EIO))) {
                break;
            }
        }
        assert_eq!(served, 5, "in three commands and the two resets between them");
        assert_eq!(players[1].player().resets, 1);
    }
}
