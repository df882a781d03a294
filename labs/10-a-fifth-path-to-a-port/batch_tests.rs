//! Of the lab: batched port accesses, over a device that is played.

use crate::batch::{Batch, Gate};
use abi::Errno;
use abi::call::MAX_VECTOR;
use abi::privilege::{PortRequest, io};
use std::cell::RefCell;
use std::rc::Rc;
use std::vec::Vec;
use sys::Result;

/// Writes that arrived, in order, and calls that were made.
#[derive(Default)]
struct Device {
    written: Vec<(u16, u32)>,
    calls: usize,
    fails: bool,
}

#[derive(Clone, Default)]
struct Played(Rc<RefCell<Device>>);

impl Gate for Played {
    fn exchange(&mut self, requests: &mut [PortRequest]) -> Result<()> {
        let mut device = self.0.borrow_mut();
        device.calls += 1;
        assert!(!requests.is_empty() && requests.len() as u64 <= MAX_VECTOR);
        if device.fails {
            return Err(Errno::ECALLDENIED);
        }
        for request in requests {
            if u64::from(request.operation) == io::IN | 1 {
                request.value = device.written.len() as u32;
            } else {
                assert_eq!(u64::from(request.operation), io::OUT | 1);
                device.written.push((request.port, request.value));
            }
        }
        Ok(())
    }
}

#[test]
fn writes_and_the_read_behind_them_are_one_call_in_order() {
    let played = Played::default();
    let mut batch = Batch::new(played.clone());
    for port in 0..6 {
        batch.write8(0x1f0 + port, port as u8).unwrap();
    }
    assert_eq!(played.0.borrow().calls, 0);
    assert_eq!(batch.read8(0x1f7), Ok(6));
    assert_eq!(played.0.borrow().calls, 1);
    assert_eq!(played.0.borrow().written[5], (0x1f5, 5));
    assert_eq!(batch.read8(0x1f7), Ok(6), "nothing is sent twice");
}

#[test]
fn a_flush_sends_what_is_queued_and_nothing_otherwise() {
    let played = Played::default();
    let mut batch = Batch::new(played.clone());
    batch.flush().unwrap();
    batch.write8(1, 2).unwrap();
    batch.flush().unwrap();
    batch.flush().unwrap();
    assert_eq!((played.0.borrow().calls, played.0.borrow().written.as_slice()), (1, [(1, 2)].as_slice()));
}

#[test]
fn a_full_queue_is_sent_before_the_kernel_would_refuse_it() {
    let played = Played::default();
    let mut batch = Batch::new(played.clone());
    for value in 0..=MAX_VECTOR {
        batch.write8(1, value as u8).unwrap();
    }
    assert_eq!(played.0.borrow().calls, 1);
    assert_eq!(batch.read8(2), Ok(MAX_VECTOR as u8 + 1));
}

#[test]
fn a_refusal_is_an_error_and_empties_the_queue() {
    let played = Played::default();
    let mut batch = Batch::new(played.clone());
    batch.write8(1, 1).unwrap();
    played.0.borrow_mut().fails = true;
    assert_eq!(batch.read8(2), Err(Errno::ECALLDENIED));
    played.0.borrow_mut().fails = false;
    assert_eq!(batch.read8(2), Ok(0));
}
