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
    modem_control: u8,
    modem_status: u8,
    interrupt_enable: u8,
    overrun: bool,
    divisor_writes: usize,
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
        let divisor = chip.line_control & DIVISOR_ACCESS != 0;
        Ok(match offset {
            register::DIVISOR_LOW if divisor => chip.divisor[0],
            register::DIVISOR_HIGH if divisor => chip.divisor[1],
            register::DATA => chip.incoming.pop_front().unwrap_or(0),
            register::LINE_STATUS => {
                let data = u8::from(!chip.incoming.is_empty());
                let overrun = if core::mem::take(&mut chip.overrun) { OVERRUN } else { 0 };
                let room = if chip.room >= FIFO_BYTES { TRANSMIT_EMPTY | ALL_SENT } else { 0 };
                data | overrun | room
            }
            register::INTERRUPT_CAUSE => {
                let transmit = chip.interrupt_enable & ENABLE_TRANSMIT_EMPTY != 0 && chip.room >= FIFO_BYTES;
                let received = chip.interrupt_enable & ENABLE_RECEIVED != 0 && !chip.incoming.is_empty();
                if received || transmit { 4 } else { NO_INTERRUPT }
            }
            register::LINE_CONTROL => chip.line_control,
            register::MODEM_STATUS => chip.modem_status,
            register::SCRATCH => chip.scratch,
            _ => 0,
        })
    }

    fn write(&mut self, offset: u16, value: u8) -> Result<(), Errno> {
        let mut chip = self.0.borrow_mut();
        let divisor = chip.line_control & DIVISOR_ACCESS != 0;
        match offset {
            register::DIVISOR_LOW if divisor => {
                chip.divisor[0] = value;
                chip.divisor_writes += 1;
            }
            register::DIVISOR_HIGH if divisor => chip.divisor[1] = value,
            register::DATA => {
                assert!(chip.room > 0, "FIFO overrun");
                chip.room -= 1;
                chip.sent.push(value);
            }
            register::INTERRUPT_ENABLE => chip.interrupt_enable = value,
            register::LINE_CONTROL => chip.line_control = value,
            register::MODEM_CONTROL => chip.modem_control = value,
            register::SCRATCH => chip.scratch = value,
            _ => {}
        }
        Ok(())
    }
}

fn found() -> (Chip<Script>, Script) {
    let script = Script::default();
    script.0.borrow_mut().room = FIFO_BYTES;
    (Chip::find(script.clone(), Settings::INITIAL).expect("is there"), script)
}

fn settings(packed: u64) -> Settings {
    Settings::unpack(packed).expect("the chip can do it")
}

#[test]
fn an_absent_chip_is_reported() {
    let script = Script::default();
    script.0.borrow_mut().absent = true;
    assert_eq!(Chip::find(script, Settings::INITIAL).err(), Some(Errno::ENXIO));
}

#[test]
fn received_bytes_come_in_order_and_no_more_than_are_wanted() {
    let (mut chip, script) = found();
    script.0.borrow_mut().incoming.extend(*b"hello");
    let mut got = Vec::new();
    assert_eq!(chip.receive(3, |byte| got.push(byte)), Ok(3));
    assert_eq!(chip.receive(10, |byte| got.push(byte)), Ok(2));
    assert_eq!(got, b"hello");
}

#[test]
fn a_successor_finds_what_the_fifos_hold_and_leaves_the_line_as_it_is() {
    let (_, script) = found();
    script.0.borrow_mut().incoming.extend(*b"typed");
    script.0.borrow_mut().room = 3;
    let mut chip = Chip::find(script.clone(), Settings::INITIAL).expect("is there");
    assert_eq!(chip.receive(10, |_| ()), Ok(5));
    assert_eq!((script.0.borrow().divisor_writes, script.0.borrow().room), (1, 3));
}

#[test]
fn transmit_takes_no_more_than_the_fifo_and_tells_when_there_is_room_again() {
    let (mut chip, script) = found();
    let mut count = 0;
    assert_eq!(chip.transmit(&[b'x'; 40], || count += 1), Ok(FIFO_BYTES));
    assert_eq!(count, FIFO_BYTES);
    assert!(!chip.has_sent_all().expect("reads"));
    assert_ne!(script.0.borrow().interrupt_enable & ENABLE_TRANSMIT_EMPTY, 0);
    script.0.borrow_mut().room = FIFO_BYTES;
    assert_eq!(chip.has_interrupted(), Ok(true));
    assert_eq!(chip.transmit(&[b'y'; 4], || ()), Ok(4));
    assert_eq!(script.0.borrow().interrupt_enable & ENABLE_TRANSMIT_EMPTY, 0);
    assert_eq!(script.0.borrow().sent.len(), 20);
}

#[test]
fn lost_input_is_counted() {
    let (mut chip, script) = found();
    script.0.borrow_mut().overrun = true;
    chip.receive(1, |_| ()).expect("reads");
    assert_eq!((chip.take_overruns(), chip.take_overruns()), (1, 0));
}

#[test]
fn output_waits_for_clear_to_send_where_that_controls_the_flow() {
    let (mut chip, script) = found();
    chip.set(settings(38_400 | LINE_RTS_CTS)).expect("sets");
    assert_eq!(script.0.borrow().divisor, [3, 0]);
    assert_eq!(chip.transmit(b"x", || ()), Ok(0));
    assert_ne!(script.0.borrow().interrupt_enable & ENABLE_MODEM_STATUS, 0);
    script.0.borrow_mut().modem_status = STATUS_CTS;
    assert_eq!(chip.transmit(b"x", || ()), Ok(1));
}

#[test]
fn request_to_send_falls_while_there_is_no_room() {
    let (mut chip, script) = found();
    let rts = |script: &Script| script.0.borrow().modem_control & CONTROL_RTS != 0;
    chip.set_receiving(false).expect("sets");
    assert!(rts(&script), "without flow control it stays up");
    chip.set(settings(9600 | LINE_RTS_CTS)).expect("sets");
    assert!(!rts(&script));
    assert_eq!(script.0.borrow().interrupt_enable & ENABLE_RECEIVED, 0);
    chip.set_receiving(true).expect("sets");
    assert!(rts(&script));
}

#[test]
fn modem_lines_and_breaks_are_controlled() {
    let (mut chip, script) = found();
    script.0.borrow_mut().modem_status = 0xb0;
    assert_eq!(chip.modem(), Ok(MODEM_DTR | MODEM_RTS | MODEM_CTS | MODEM_DSR | MODEM_CD));
    chip.set_modem(MODEM_RTS).expect("sets");
    assert_eq!(script.0.borrow().modem_control, CONTROL_INTERRUPT | CONTROL_RTS);
    chip.set_modem(MODEM_RTS | MODEM_LOOP).expect("sets");
    assert_eq!(script.0.borrow().modem_control, CONTROL_INTERRUPT | CONTROL_RTS | CONTROL_LOOP);
    chip.set_break(true).expect("sets");
    assert_eq!(script.0.borrow().line_control, 0x43);
    chip.set_break(false).expect("sets");
    assert_eq!(script.0.borrow().line_control, 0x03);
}

#[test]
fn speed_zero_hangs_up() {
    let (mut chip, script) = found();
    chip.set(settings(0)).expect("sets");
    assert_eq!(script.0.borrow().modem_control & CONTROL_DTR, 0);
    assert_eq!(script.0.borrow().divisor, [1, 0]);
}
