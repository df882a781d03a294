//! An i8042 with a keyboard and a mouse, played for tests.

use crate::controller::{ACKNOWLEDGE, Device, RESEND, Register, Registers};
use abi::Errno;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::vec::Vec;

/// Time that an access takes.
const ACCESS_NS: u64 = 1_000_000;

/// What a test sees and changes.
#[derive(Default)]
pub struct State {
    /// What the controller has for the driver.
    pub output: VecDeque<(Option<Device>, u8)>,
    /// What each device has been sent.
    pub sent: [Vec<u8>; 2],
    /// Devices that are connected.
    pub connected: [bool; 2],
    /// The controller takes no byte.
    pub stuck: bool,
    /// Bytes that the keyboard asks for again.
    pub resends: usize,
    pub config: u8,
    pub now_ns: u64,
    command: u8,
    rates: VecDeque<u8>,
}

/// The machine, which outlives drivers.
#[derive(Clone, Default)]
pub struct Played(pub Rc<RefCell<State>>);

impl Played {
    /// One with both devices.
    pub fn new() -> Played {
        let played = Played::default();
        played.0.borrow_mut().connected = [true; 2];
        played
    }

    /// A device sends bytes.
    pub fn sends(&self, device: Device, bytes: &[u8]) {
        self.0.borrow_mut().output.extend(bytes.iter().map(|byte| (Some(device), *byte)));
    }
}

impl State {
    fn device(&mut self, device: Device, byte: u8) {
        self.sent[device as usize].push(byte);
        if !self.connected[device as usize] {
            return;
        }
        let mut say = |byte| self.output.push_back((Some(device), byte));
        if device == Device::Keyboard && self.resends > 0 {
            self.resends -= 1;
            return say(RESEND);
        }
        say(ACKNOWLEDGE);
        match (device, byte) {
            (Device::Keyboard, 0xf2) => [0xab, 0x41].into_iter().for_each(say),
            (Device::Mouse, 0xf2) => {
                let id = if self.rates.iter().copied().eq([200, 200, 80]) { 4 } else { 0 };
                say(id);
            }
            (Device::Mouse, rate) => {
                let is_rate = self.sent[1].iter().rev().nth(1) == Some(&0xf3);
                if is_rate {
                    self.rates.push_back(rate);
                }
                while self.rates.len() > 3 {
                    self.rates.pop_front();
                }
            }
            _ => {}
        }
    }
}

impl Registers for Played {
    fn read(&mut self, register: Register) -> Result<u8, Errno> {
        let mut state = self.0.borrow_mut();
        state.now_ns += ACCESS_NS;
        Ok(match register {
            Register::Data => state.output.pop_front().map_or(0, |(_, byte)| byte),
            Register::Control => {
                let stuck = if state.stuck { 2 } else { 0 };
                let output = match state.output.front() {
                    None => 0,
                    Some((Some(Device::Mouse), _)) => 0x21,
                    Some(_) => 1,
                };
                stuck | output
            }
        })
    }

    fn write(&mut self, register: Register, value: u8) -> Result<(), Errno> {
        let mut state = self.0.borrow_mut();
        if register == Register::Control {
            state.command = value;
            if value == 0x20 {
                let config = state.config;
                state.output.push_back((None, config));
            }
            return Ok(());
        }
        match core::mem::take(&mut state.command) {
            0x60 => state.config = value,
            0xd4 => state.device(Device::Mouse, value),
            _ => state.device(Device::Keyboard, value),
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.0.borrow().now_ns
    }
}
