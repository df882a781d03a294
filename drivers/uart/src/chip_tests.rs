//! The driver against a scripted chip.

use super::*;
use std::{cell::RefCell, collections::VecDeque, rc::Rc, vec::Vec};

#[derive(Default)]
struct Silicon {
    incoming: VecDeque<u8>,
    sent: Vec<u8>,
    /// Free places in the transmit FIFO, until the test empties it.
    room: usize,
    scratch: u8,
    divisor: [u8; 2],
    line_control: u8,
    interrupt_enable: u8,
    absent: bool,
}

#[derive(Clone, Default)]
struct Script(Rc<RefCell<Silicon>>);

impl Registers for Script {
    fn read(&mut self, offset: u16) -> Result<u8, Errno> {
        let mut chip = self.0.borrow_mut();
        if chip.absent {
            return Ok(0xff);
        }
        Ok(match offset {
            register::DATA => chip.incoming.pop_front().unwrap_or(0),
            register::LINE_STATUS => {
                u8::from(!chip.incoming.is_empty()) | if chip.room >= FIFO_BYTES { TRANSMIT_EMPTY } else { 0 }
            }
            register::INTERRUPT_CAUSE => {
                let transmit = chip.interrupt_enable & ENABLE_TRANSMIT_EMPTY != 0 && chip.room >= FIFO_BYTES;
                if chip.incoming.is_empty() && !transmit { NO_INTERRUPT } else { 4 }
            }
            register::SCRATCH => chip.scratch,
            _ => 0,
        })
    }

    fn write(&mut self, offset: u16, value: u8) -> Result<(), Errno> {
        let mut chip = self.0.borrow_mut();
        let divisor = chip.line_control & DIVISOR_ACCESS != 0;
        match offset {
            register::DIVISOR_LOW if divisor => chip.divisor[0] = value,
            register::DIVISOR_HIGH if divisor => chip.divisor[1] = value,
            register::DATA => {
                assert!(chip.room > 0, "FIFO overrun");
                chip.room -= 1;
                chip.sent.push(value);
            }
            register::INTERRUPT_ENABLE => chip.interrupt_enable = value,
            register::LINE_CONTROL => chip.line_control = value,
            register::SCRATCH => chip.scratch = value,
            _ => {}
        }
        Ok(())
    }
}

fn found() -> (Chip<Script>, Script) {
    let script = Script::default();
    script.0.borrow_mut().room = FIFO_BYTES;
    (Chip::find(script.clone()).ok().unwrap(), script)
}

#[test]
fn an_absent_chip_is_reported() {
    let script = Script::default();
    script.0.borrow_mut().absent = true;
    assert_eq!(Chip::find(script).err(), Some(Errno::ENXIO));
}

#[test]
fn received_bytes_are_read_in_order_once() {
    let (mut chip, script) = found();
    script.0.borrow_mut().incoming.extend(*b"hello");
    chip.interrupt().unwrap();
    let mut buffer = [0; 3];
    assert_eq!((chip.read(&mut buffer), &buffer), (3, b"hel"));
    assert_eq!((chip.read(&mut buffer), &buffer[..2]), (2, &b"lo"[..]));
    assert!(!chip.has_received());
}

#[test]
fn what_came_before_the_driver_was_restarted_is_not_lost() {
    let script = Script::default();
    script.0.borrow_mut().incoming.extend(*b"typed");
    let mut chip = Chip::find(script).ok().unwrap();
    let mut buffer = [0; 8];
    assert_eq!(chip.read(&mut buffer), 5);
}

#[test]
fn transmit_takes_no_more_than_the_fifo_and_tells_when_there_is_room_again() {
    let (mut chip, script) = found();
    assert_eq!(chip.transmit(&[b'x'; 40]).unwrap(), FIFO_BYTES);
    assert_ne!(script.0.borrow().interrupt_enable & ENABLE_TRANSMIT_EMPTY, 0);
    script.0.borrow_mut().room = FIFO_BYTES;
    chip.interrupt().unwrap();
    assert_eq!(script.0.borrow().interrupt_enable & ENABLE_TRANSMIT_EMPTY, 0);
    assert_eq!(chip.transmit(&[b'y'; 4]).unwrap(), 4);
    assert_eq!(script.0.borrow().sent.len(), 20);
}

#[test]
fn a_flood_that_nobody_reads_is_counted_not_kept() {
    let (mut chip, script) = found();
    script.0.borrow_mut().incoming.extend(std::iter::repeat_n(b'z', RECEIVED_LIMIT + 10));
    chip.interrupt().unwrap();
    assert_eq!((chip.take_lost(), chip.take_lost()), (10, 0));
}

#[test]
fn speeds_become_divisors() {
    let (mut chip, script) = found();
    chip.set_rate(19_200).unwrap();
    assert_eq!(script.0.borrow().divisor, [6, 0]);
    assert_eq!(chip.set_rate(0), Err(Errno::EINVAL));
    assert_eq!(chip.set_rate(100_000), Err(Errno::EINVAL));
}
