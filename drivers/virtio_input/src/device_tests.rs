//! The driver against a device that a test plays.

use super::*;
use driver::virtio::PciTransport;
use driver::virtio::played::{Device as Played, PlayedMemory, PlayedWindow, Taken};

type Tested = Device<PciTransport<PlayedWindow>, PlayedMemory>;

/// A tablet, as QEMU's.
fn tablet(select: u8, of: u8) -> Vec<u8> {
    let mut keys = [0; 40];
    keys[0x110 / 8] = 7;
    match (select, of) {
        (config::NAME, 0) => b"QEMU Virtio Tablet".to_vec(),
        (config::IDS, 0) => [6, 0, 0x27, 6, 3, 0, 2, 0].to_vec(),
        (config::BITS, 1) => keys.to_vec(),
        (config::BITS, 2) => [0, 1].to_vec(),
        (config::BITS, 3) => [3].to_vec(),
        (config::AXIS, 0 | 1) => [0, 0, 0, 0, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].to_vec(),
        _ => Vec::new(),
    }
}

fn keyboard(select: u8, of: u8) -> Vec<u8> {
    match (select, of) {
        (config::BITS, 0x11) => [7].to_vec(),
        (config::BITS, 0x14) => [3].to_vec(),
        _ => Vec::new(),
    }
}

fn start(answers: fn(u8, u8) -> Vec<u8>, pointer: Pointer) -> (Tested, Played) {
    let version_1 = driver::virtio::feature::VERSION_1;
    let played = Played::new(MEMORY_BYTES, version_1, &[EVENTS, STATUSES], &[0; 8 + config::DATA_BYTES]);
    played.answer(answers);
    let transport = played.transport().expect("there are registers");
    (Device::set_up(transport, played.memory(), pointer).expect("the device works"), played)
}

fn send(played: &Played, events: &[(u16, u16, i32)]) {
    for (kind, code, value) in events {
        let mut bytes = [kind.to_le_bytes(), code.to_le_bytes()].concat();
        bytes.extend(value.to_le_bytes());
        let chain = played.take(0).expect("the driver has buffers with the device");
        played.write(&chain, 0, &bytes);
        played.finish(0, &chain, bytes.len());
    }
}

fn received(device: &mut Tested) -> Vec<(u16, u16, i32)> {
    let mut all = Vec::new();
    while let Some(event) = device.next(7).expect("the device keeps the rules") {
        all.push((event.kind, event.code, event.value));
    }
    all
}

#[test]
fn a_tablet_says_what_it_is() {
    let (device, _) = start(tablet, Pointer::Button);
    let description = device.description();
    assert_eq!(&description.name[..19], b"QEMU Virtio Tablet\0");
    assert_eq!((description.id, description.absolute), ([6, 0x627, 3, 2], 3));
    assert_eq!(description.axes[1].max, 0x7fff);
    assert!(description.has_key(BTN_LEFT) && !description.has_key(BTN_TOUCH));
    assert_eq!(description.kinds, 0b1111);
}

#[test]
fn the_left_button_of_a_touch_screen_is_a_finger() {
    let (mut device, played) = start(tablet, Pointer::Touch);
    let description = device.description();
    assert!(description.has_key(BTN_TOUCH) && !description.has_key(BTN_LEFT));
    assert_eq!((description.properties, description.relative), (DIRECT, 0));
    send(&played, &[(kind::ABS, 0, 100), (kind::KEY, BTN_LEFT, 1), (kind::SYN, 0, 0)]);
    assert_eq!(received(&mut device), [(kind::ABS, 0, 100), (kind::KEY, BTN_TOUCH, 1), (kind::SYN, 0, 0)]);
}

#[test]
fn buffers_go_back_to_the_device() {
    let (mut device, played) = start(tablet, Pointer::Button);
    for round in 0..100 {
        send(&played, &[(kind::ABS, 1, round), (kind::SYN, 0, 0)]);
        assert_eq!(received(&mut device), [(kind::ABS, 1, round), (kind::SYN, 0, 0)]);
    }
    let all: Vec<Taken> = core::iter::from_fn(|| played.take(0)).collect();
    assert_eq!(all.len(), usize::from(EVENTS));
}

#[test]
fn lights_are_told_and_a_device_that_does_not_listen_is_given_up() {
    let (mut device, played) = start(keyboard, Pointer::Button);
    device.set_lights(2).expect("the device has buffers");
    let told: Vec<Vec<u8>> = core::iter::from_fn(|| played.take(1)).map(|chain| chain.readable[0].clone()).collect();
    let light = |code: u8, value: u8| [0x11, 0, code, 0, value, 0, 0, 0].to_vec();
    assert_eq!(told, [light(0, 0), light(1, 1), light(2, 0), [0; 8].to_vec()]);
    assert_eq!(device.set_lights(0), Ok(()));
    assert_eq!(device.set_lights(0), Err(Errno::EAGAIN));
}
