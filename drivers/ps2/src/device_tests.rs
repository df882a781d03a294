//! Both devices on a played controller: start, death of the driver, time-outs, lights.

use super::*;
use crate::played::Played;
use abi::input::kind;
use core::sync::atomic::AtomicU64;
use driver::input::SOURCE_BYTES;
use std::rc::Rc;
use std::vec::Vec;
use sys::keep::Keep;

type Memory = &'static [AtomicU64];

fn memory() -> Memory {
    sys::host::zeroed(DEVICES * SOURCE_BYTES)
}

fn start(played: &Played, memory: Memory) -> Result<Devices<Played>, Errno> {
    let keep = Rc::new(Keep::simulated(memory, u64::MAX));
    Devices::set_up(Controller::new(played.clone()), [Source::open(&keep, 0), Source::open(&keep, 1)])
}

fn keys(devices: &Devices<Played>, minor: usize) -> Vec<(u16, i32)> {
    let events = devices.sources[minor].events();
    events.iter().filter(|event| event.kind == kind::KEY).map(|event| (event.code, event.value)).collect()
}

#[test]
fn a_first_start_asks_both_devices_and_enables_their_interrupts() {
    let played = Played::new();
    let devices = start(&played, memory()).expect("there is a controller");
    assert_eq!(devices.describe(0).map(|keyboard| keyboard.id), Ok([0x11, 1, 1, 0xab41]));
    assert_eq!(devices.describe(1).map(|mouse| mouse.id), Ok([0x11, 2, 6, 0]));
    assert_eq!(played.0.borrow().config & 0x43, 0x43);
}

#[test]
fn a_machine_without_mouse_has_a_keyboard() {
    let played = Played::new();
    played.0.borrow_mut().connected[1] = false;
    let devices = start(&played, memory()).expect("there is a keyboard");
    assert!(devices.describe(0).is_ok());
    assert_eq!(devices.describe(1).map(|mouse| mouse.id), Err(Errno::ENXIO));
}

#[test]
fn a_controller_that_is_stuck_or_empty_is_given_up() {
    let played = Played::new();
    played.0.borrow_mut().stuck = true;
    assert_eq!(start(&played, memory()).map(drop), Err(Errno::ETIMEDOUT));
    let played = Played::default();
    assert_eq!(start(&played, memory()).map(drop), Err(Errno::ENXIO));
}

#[test]
fn a_successor_asks_nobody_and_goes_on_in_the_middle_of_a_key() {
    let (played, memory) = (Played::new(), memory());
    let mut devices = start(&played, memory).expect("there is a controller");
    played.sends(Device::Keyboard, &[0x1e, 0xe0]);
    devices.receive(&mut Answers::default());
    drop(devices);
    let asked = played.0.borrow().sent[1].len();
    played.sends(Device::Keyboard, &[0x48]);
    played.sends(Device::Mouse, &[0x09, 1, 1, 0]);
    let mut devices = start(&played, memory).expect("there is a controller");
    devices.receive(&mut Answers::default());
    assert_eq!(played.0.borrow().sent[1].len(), asked, "the mouse is not asked again");
    assert_eq!(keys(&devices, 0), [(30, 1), (103, 1)]);
    assert!(keys(&devices, 1).contains(&(0x110, 1)));
}

#[test]
fn keys_stay_in_the_controller_while_the_ring_is_full() {
    let (played, memory) = (Played::new(), memory());
    let mut devices = start(&played, memory).expect("there is a controller");
    (0..2).for_each(|_| devices.receive(&mut Answers::default()));
    (0..100).for_each(|_| played.sends(Device::Keyboard, &[0x1e, 0x9e]));
    devices.receive(&mut Answers::default());
    let waiting = played.0.borrow().output.len();
    assert_eq!(keys(&devices, 0).len() + waiting, 200);
    assert!(waiting > 0);
}

#[test]
fn lights_are_told_in_the_keyboards_order_and_again_when_it_asks() {
    let played = Played::new();
    let mut devices = start(&played, memory()).expect("there is a controller");
    devices.receive(&mut Answers::default());
    played.0.borrow_mut().sent[0].clear();
    played.0.borrow_mut().resends = 1;
    devices.set_lights(0, 0b010).expect("the keyboard has lights");
    (0..4).for_each(|_| devices.receive(&mut Answers::default()));
    assert_eq!(played.0.borrow().sent[0], [SET_LIGHTS, SET_LIGHTS, 0b100]);
    assert_eq!(devices.deadline_ns(), None);
}

#[test]
fn a_keyboard_that_does_not_answer_is_asked_three_times() {
    let played = Played::new();
    let mut devices = start(&played, memory()).expect("there is a controller");
    devices.receive(&mut Answers::default());
    played.0.borrow_mut().connected[0] = false;
    played.0.borrow_mut().sent[0].clear();
    devices.set_lights(0, 1).expect("the keyboard has lights");
    while let Some(deadline_ns) = devices.deadline_ns() {
        played.0.borrow_mut().now_ns = deadline_ns;
        devices.time_out();
    }
    assert_eq!(played.0.borrow().sent[0], [SET_LIGHTS; 3]);
}

#[test]
fn a_million_random_bytes_harm_nobody() {
    let played = Played::new();
    let mut devices = start(&played, memory()).expect("there is a controller");
    let mut random = 1_u64;
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..50)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 33) as u8
            })
            .collect();
        played.sends(if random >> 62 == 0 { Device::Mouse } else { Device::Keyboard }, &bytes);
        devices.receive(&mut Answers::default());
        devices.sources.iter_mut().for_each(Source::drop_all);
    }
    devices.receive(&mut Answers::default());
    played.0.borrow_mut().output.clear();
    devices.sources.iter_mut().for_each(Source::drop_all);
    played.sends(Device::Keyboard, &[0xfa, 0x39, 0x1e]);
    devices.receive(&mut Answers::default());
    assert_eq!(keys(&devices, 0).last(), Some(&(30, 1)));
}
