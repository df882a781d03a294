//! The PCI device of a driver: what pci is asked, one question after the other, and what comes out.
//!
//! rs keeps the answer, so that a driver is restarted without pci. When pci itself has been restarted it has forgotten whose device is
//! whose, and the search is made again, while the drivers run. So it tells pci how long the ranges are: to measure them, pci would have to
//! stop the device from answering, and a driver's access in that moment would be lost.

use abi::pci::{Assign, Bar};
use abi::system::Service;
use abi::{Errno, Message};
use alloc::vec::Vec;

/// Ranges of a PCI device.
const BARS: u64 = 6;
/// In the place of an interrupt line that a device does not have.
const NO_LINE: u8 = 0xff;

/// What a device brings to the rights of its driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Port ranges, inclusive.
    pub ports: Vec<(u16, u16)>,
    /// Physical memory: start, bytes.
    pub memory: Vec<(u64, u64)>,
    /// Interrupt lines.
    pub irqs: Vec<u8>,
    /// What a successor of pci is told.
    pub measured: Measured,
}

/// What a search has found that the next one need not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Which of the devices that a service drives is there.
    wanted: usize,
    /// Lengths of its ranges, in pci's words; 0: never measured.
    sizes: u64,
}

/// What rs knows of the device of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// pci has to be asked.
    None,
    /// pci is being asked.
    Asked,
    /// This is it (nothing, for a service that drives none).
    Known(Device),
}

impl Knowledge {
    /// Before pci was asked.
    pub fn of(service: &Service) -> Knowledge {
        if service.pci.is_empty() { Knowledge::Known(Device::default()) } else { Knowledge::None }
    }
}

/// How a search goes on.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is another question.
    Ask(Search),
    /// It is over. `ENODEV`: none of the devices is there.
    Over(Result<Device, Errno>),
}

/// A search for the first device among those that a service drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    slot: u64,
    wanted: Vec<(u16, u16)>,
    measured: Measured,
    question: Question,
    found: Device,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Is the device with this index among those wanted there?
    Assign(usize),
    /// What is its range of this number?
    Bar(u64),
}

impl Search {
    /// A search for the device of a service, which drives at least one; `measured`: by the last search that found it.
    pub fn new(service: &Service, measured: Measured) -> Search {
        let (slot, wanted) = (service.slot.into(), service.pci.clone());
        Search { slot, wanted, measured, question: Question::Assign(0), found: Device::default() }
    }

    /// What to ask pci now.
    pub fn question(&self) -> Message {
        match self.question {
            Question::Assign(index) => {
                let (vendor, device) = self.wanted.get(index).copied().unwrap_or_default();
                let sizes = if index == self.measured.wanted { self.measured.sizes } else { 0 };
                Assign { slot: self.slot, vendor: vendor.into(), device: device.into(), index: 0, sizes }.message()
            }
            Question::Bar(bar) => Bar { slot: self.slot, bar }.message(),
        }
    }

    /// Takes the answer to the question.
    pub fn answered(mut self, reply: &Message) -> Progress {
        let taken = match self.question {
            Question::Assign(index) => self.assigned(index, reply),
            Question::Bar(bar) => self.described(bar, reply),
        };
        match taken {
            Err(error) => Progress::Over(Err(error)),
            Ok(()) if self.question == Question::Bar(BARS) => Progress::Over(Ok(self.found)),
            Ok(()) => Progress::Ask(self),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "at most two lines: from the heap's reserve")]
    fn assigned(&mut self, index: usize, reply: &Message) -> Result<(), Errno> {
        self.question = match Assign::results(reply) {
            Ok((_, interrupts, sizes)) => {
                self.found.measured = Measured { wanted: index, sizes };
                let [first, second, ..] = interrupts.to_le_bytes();
                self.found.irqs.extend([first, second].into_iter().filter(|line| *line != NO_LINE));
                Question::Bar(0)
            }
            Err(Errno::ENODEV) if index + 1 < self.wanted.len() => Question::Assign(index + 1),
            Err(error) => return Err(error),
        };
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "at most six ranges: from the heap's reserve")]
    fn described(&mut self, bar: u64, reply: &Message) -> Result<(), Errno> {
        match Bar::results(reply)? {
            (_, 0, _) => {}
            (start, bytes, true) => self.found.ports.push((start as u16, (start + bytes - 1) as u16)),
            (start, bytes, false) => self.found.memory.push((start, bytes)),
        }
        self.question = Question::Bar(bar + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor_tests::service;

    const SIZES: u64 = 1 << 63 | 7;
    const FIRST: Measured = Measured { wanted: 0, sizes: SIZES };
    const SECOND: Measured = Measured { wanted: 1, sizes: SIZES };

    /// Plays pci until the search is over.
    fn search(wanted: Vec<(u16, u16)>, there: (u16, u16)) -> Result<Device, Errno> {
        let mut search = Search::new(&Service { pci: wanted, ..service("disk", 20) }, Measured::default());
        loop {
            let question = search.question();
            let reply = match question.label {
                Assign::LABEL => match Assign::from_message(&question) {
                    ask if (ask.vendor, ask.device) == (there.0.into(), there.1.into()) => {
                        Assign::reply(&question, 0, 8, 0xff0b, SIZES)
                    }
                    _ => question.reply(Err(Errno::ENODEV)),
                },
                _ => match Bar::from_message(&question).bar {
                    0 => Bar::reply(&question, 0, 0xc000, 0x40, true),
                    4 => Bar::reply(&question, 0, 0xfe00_0000, 0x4000, false),
                    _ => Bar::reply(&question, 0, 0, 0, false),
                },
            };
            match search.answered(&reply) {
                Progress::Ask(next) => search = next,
                Progress::Over(result) => return result,
            }
        }
    }

    #[test]
    fn the_first_device_that_is_there_is_described() {
        let device = Device {
            ports: [(0xc000, 0xc03f)].into(),
            memory: [(0xfe00_0000, 0x4000)].into(),
            irqs: [11].into(),
            measured: SECOND,
        };
        assert_eq!(search([(0x1af4, 0x1001), (0x1af4, 0x1042)].into(), (0x1af4, 0x1042)), Ok(device));
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error() {
        assert_eq!(search([(0x1af4, 0x1001)].into(), (0x8086, 0x7010)), Err(Errno::ENODEV));
    }

    fn reply_to(search: Search, reply: impl Fn(&Message) -> Message) -> Progress {
        let question = search.question();
        search.answered(&reply(&question))
    }

    fn wanting(wanted: &[(u16, u16)]) -> Search {
        Search::new(&Service { pci: wanted.into(), ..service("disk", 20) }, Measured::default())
    }

    #[test]
    fn pci_is_asked_for_every_device_in_turn() {
        let wanted = [(1, 2), (3, 4), (5, 6)];
        let mut search = wanting(&wanted);
        for (at, (vendor, device)) in wanted.into_iter().enumerate() {
            let asked = Assign { slot: 20, vendor: vendor.into(), device: device.into(), index: 0, sizes: 0 };
            assert_eq!(Assign::from_message(&search.question()), asked);
            match reply_to(search, |question| question.reply(Err(Errno::ENODEV))) {
                Progress::Ask(next) => search = next,
                Progress::Over(result) => return assert_eq!((at, result), (2, Err(Errno::ENODEV))),
            }
        }
        panic!("there is no fourth device");
    }

    #[test]
    fn a_successor_of_pci_is_told_how_long_the_ranges_are() {
        let wanted = vec![(1, 2), (3, 4)];
        let first = Search::new(&Service { pci: wanted, ..service("disk", 20) }, SECOND);
        assert_eq!(Assign::from_message(&first.question()).sizes, 0, "of another device");
        let Progress::Ask(second) = reply_to(first, |question| question.reply(Err(Errno::ENODEV))) else {
            panic!("there is a second device");
        };
        assert_eq!(Assign::from_message(&second.question()).sizes, SIZES);
    }

    #[test]
    fn an_error_of_pci_ends_the_search() {
        let refused = reply_to(wanting(&[(1, 2), (3, 4)]), |question| question.reply(Err(Errno::EBUSY)));
        assert_eq!(refused, Progress::Over(Err(Errno::EBUSY)));
        let Progress::Ask(found) =
            reply_to(wanting(&[(1, 2)]), |question| Assign::reply(question, 0, 8, 0xffff, SIZES))
        else {
            panic!("its ranges are asked for");
        };
        assert_eq!(Bar::from_message(&found.question()), Bar { slot: 20, bar: 0 });
        let lost = reply_to(found, |question| question.reply(Err(Errno::EIO)));
        assert_eq!(lost, Progress::Over(Err(Errno::EIO)));
    }

    /// Describes a device with these lines, none of whose ranges is used but one.
    fn describe(lines: u64, used: u64, range: (u64, u64, bool)) -> Device {
        let Progress::Ask(mut search) =
            reply_to(wanting(&[(1, 2)]), |question| Assign::reply(question, 0, 8, lines, SIZES))
        else {
            panic!("its ranges are asked for");
        };
        for bar in 0.. {
            let (start, bytes, is_ports) = if bar == used { range } else { (0, 0, false) };
            match reply_to(search, |question| {
                assert_eq!(Bar::from_message(question), Bar { slot: 20, bar });
                Bar::reply(question, 0, start, bytes, is_ports)
            }) {
                Progress::Ask(next) => search = next,
                Progress::Over(result) => {
                    assert_eq!(bar, 5, "there are six ranges");
                    return result.expect("is there");
                }
            }
        }
        unreachable!("the search ends")
    }

    #[test]
    fn every_range_and_both_lines_of_a_device_count() {
        for used in 0..6 {
            let device = describe(0x0b0a, used, (0xff00, 0x100, true));
            assert_eq!(
                device,
                Device { ports: vec![(0xff00, 0xffff)], memory: vec![], irqs: vec![10, 11], measured: FIRST }
            );
        }
        let one_byte = describe(0xff0a, 5, (0xfee0_0000, 1, false));
        assert_eq!(one_byte, Device { ports: vec![], memory: vec![(0xfee0_0000, 1)], irqs: vec![10], measured: FIRST });
        assert_eq!(
            describe(0x0bff, 0, (7, 1, true)),
            Device { ports: vec![(7, 7)], memory: vec![], irqs: vec![11], measured: FIRST }
        );
    }

    #[test]
    fn a_service_without_device_needs_no_search() {
        assert_eq!(Knowledge::of(&service("rtc", 21)), Knowledge::Known(Device::default()));
        assert_eq!(Knowledge::of(&Service { pci: vec![(1, 2)], ..service("disk", 20) }), Knowledge::None);
    }
}
