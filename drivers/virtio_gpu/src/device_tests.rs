//! The driver against a device that a test plays: it does what it is told when it is waited for, and notes it.

use super::*;
use driver::virtio::PciTransport;
use driver::virtio::played::{Device as Played, PlayedMemory, PlayedWindow};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const CREATE: u32 = 0x101;
const DELETE: u32 = 0x102;
const SCANOUT: u32 = 0x103;
const FLUSH: u32 = 0x104;
const TRANSFER: u32 = 0x105;
const ATTACH: u32 = 0x106;
const EDID: u32 = 0x10a;

/// Kind and words of a command.
type Done = (u32, Vec<u32>);

#[derive(Clone)]
struct Other {
    played: Played,
    done: Rc<RefCell<Vec<Done>>>,
    /// The kind of command that the device refuses.
    refused: Rc<Cell<u32>>,
}

impl Wait for Other {
    fn wait(&self) {
        let of_cursor = self.played.take(1).map(|chain| (1, chain));
        let (queue, chain) = of_cursor.or_else(|| Some((0, self.played.take(0)?))).expect("a command is in flight");
        let words: Vec<u32> = chain.readable[0].as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let mut reply = vec![0; 24];
        let result: u32 = match words[0] {
            kind if kind == self.refused.get() => 0x1200,
            EDID => {
                reply.extend([&128_u32.to_le_bytes()[..], &[0; 4], &[7; 1024]].concat());
                0x1104
            }
            _ => 0x1100,
        };
        reply[..4].copy_from_slice(&result.to_le_bytes());
        self.played.write(&chain, 0, &reply);
        // QEMU replies nothing on the cursor's queue.
        self.played.finish(queue, &chain, if queue == 1 { 0 } else { reply.len() });
        self.done.borrow_mut().push((words[0], words[6..].to_vec()));
    }
}

impl Other {
    fn done(&self) -> Vec<Done> {
        self.done.take()
    }

    fn kinds(&self) -> Vec<u32> {
        self.done().into_iter().map(|(kind, _)| kind).collect()
    }
}

type Tested = Gpu<PciTransport<PlayedWindow>, PlayedMemory, Other>;

fn start() -> (Tested, Other) {
    let features = driver::virtio::feature::VERSION_1 | feature::EDID;
    let played = Played::new(MEMORY_BYTES, features, &[64, 16], &[0; 16]);
    let other = Other { played: played.clone(), done: Rc::default(), refused: Rc::default() };
    let backing = Backing { physical: 0x1_0000_0000, bytes: 16 << 20 };
    let transport = played.transport().expect("there are registers");
    let cursor = Backing { physical: 0x8000, bytes: 0x8000 };
    (Gpu::set_up(transport, played.memory(), [backing, cursor], other.clone()).expect("it works"), other)
}

fn layout() -> Layout {
    Layout { virtual_height: 960, y: 100, ..Layout::new(640, 480, Format::Xrgb8888) }
}

#[test]
fn a_mode_is_a_picture_with_all_of_its_memory_and_the_one_before_goes_after_it() {
    let (mut gpu, other) = start();
    gpu.show(&layout());
    let expected = [
        (CREATE, vec![1, 2, 640, 960]),
        (ATTACH, vec![1, 1, 0, 1, 640 * 960 * 4, 0]),
        (TRANSFER, vec![0, 0, 640, 960, 0, 0, 1, 0]),
        (SCANOUT, vec![0, 100, 640, 480, 0, 1]),
        (FLUSH, vec![0, 100, 640, 480, 1, 0]),
    ];
    assert_eq!(other.done(), expected);
    gpu.show(&layout());
    assert_eq!(other.done(), [], "it is shown already");
    gpu.show(&Layout::new(800, 600, Format::Xrgb8888));
    let done = other.done();
    assert_eq!((done[0].clone(), done[5].clone()), ((CREATE, vec![2, 2, 800, 600]), (DELETE, vec![1, 0])));
}

#[test]
fn what_was_drawn_is_copied_from_where_it_is_and_shown() {
    let (mut gpu, other) = start();
    gpu.flush(Area { x: 0, y: 0, width: 1, height: 1 });
    assert_eq!(other.done(), [], "nothing is shown yet");
    gpu.show(&layout());
    other.done();
    gpu.flush(Area { x: 8, y: 110, width: 16, height: 2 });
    let offset = 110 * 640 * 4 + 8 * 4;
    assert_eq!(other.done(), [(TRANSFER, vec![8, 110, 16, 2, offset, 0, 1, 0]), (FLUSH, vec![8, 110, 16, 2, 1, 0])]);
    gpu.flush(Area { x: 8, y: 110, width: 0, height: 2 });
    assert_eq!(other.done(), []);
}

#[test]
fn panning_shows_what_was_drawn_there() {
    let (mut gpu, other) = start();
    gpu.show(&layout());
    other.done();
    gpu.pan(0, 480);
    let done = other.done();
    assert_eq!(done[0], (TRANSFER, vec![0, 480, 640, 480, 480 * 640 * 4, 0, 1, 0]));
    assert_eq!(done[1], (SCANOUT, vec![0, 480, 640, 480, 0, 1]));
    gpu.show(&Layout { y: 480, ..layout() });
    assert_eq!(other.kinds(), [], "a new mode that is the same one");
}

#[test]
fn a_screen_that_is_off_shows_nothing_until_it_is_on() {
    let (mut gpu, other) = start();
    gpu.show(&layout());
    other.done();
    gpu.blank(false);
    gpu.blank(true);
    gpu.blank(true);
    assert_eq!(other.done(), [(SCANOUT, vec![0, 100, 640, 480, 0, 0])]);
    gpu.pan(0, 0);
    assert_eq!(other.done()[1], (SCANOUT, vec![0, 0, 640, 480, 0, 0]), "it stays off");
    gpu.blank(false);
    assert_eq!(other.kinds(), [SCANOUT, FLUSH]);
}

#[test]
fn a_mode_that_the_device_refuses_leaves_the_one_before() {
    for refused in [CREATE, ATTACH, TRANSFER, SCANOUT] {
        let (mut gpu, other) = start();
        gpu.show(&layout());
        other.done();
        other.refused.set(refused);
        gpu.show(&Layout::new(800, 600, Format::Xrgb8888));
        let deleted = (refused != CREATE).then_some((DELETE, vec![2, 0]));
        assert_eq!(other.done().into_iter().find(|(kind, _)| *kind == DELETE), deleted, "{refused:#x}");
        other.refused.set(0);
        gpu.flush(layout().visible());
        assert_eq!(other.done()[0].1[6], 1, "the old picture is the one that is shown");
    }
}

const UPDATE_CURSOR: u32 = 0x300;
const MOVE_CURSOR: u32 = 0x301;

#[test]
fn a_cursor_is_copied_once_and_moves_without() {
    let (mut gpu, other) = start();
    gpu.show_cursor(None);
    gpu.move_cursor(Pointer { x: 1, y: 1, hot: (0, 0) });
    assert_eq!(other.done(), [], "there was none so far");
    gpu.show_cursor(Some(Pointer { x: 9, y: -2, hot: (3, 4) }));
    let expected = [
        (CREATE, vec![3, 1, 64, 64]),
        (ATTACH, vec![3, 1, 0x8000, 0, 0x8000, 0]),
        (TRANSFER, vec![0, 0, 64, 64, 0x4000, 0, 3, 0]),
        (UPDATE_CURSOR, vec![0, 9, -2_i32 as u32, 0, 3, 3, 4, 0]),
    ];
    assert_eq!(other.done(), expected);
    gpu.move_cursor(Pointer { x: 10, y: 0, hot: (3, 4) });
    assert_eq!(other.done(), [(MOVE_CURSOR, vec![0, 10, 0, 0, 3, 3, 4, 0])]);
    gpu.show_cursor(Some(Pointer { x: 10, y: 0, hot: (0, 0) }));
    assert_eq!(other.kinds(), [TRANSFER, UPDATE_CURSOR], "another image in the same picture");
    gpu.show_cursor(None);
    assert_eq!(other.done(), [(UPDATE_CURSOR, vec![0, 0, 0, 0, 0, 0, 0, 0])]);
}

#[test]
fn a_cursor_that_the_device_refuses_is_tried_again() {
    for refused in [CREATE, ATTACH] {
        let (mut gpu, other) = start();
        other.refused.set(refused);
        gpu.show_cursor(Some(Pointer { x: 0, y: 0, hot: (0, 0) }));
        assert!(!other.kinds().contains(&UPDATE_CURSOR));
        other.refused.set(0);
        gpu.show_cursor(Some(Pointer { x: 0, y: 0, hot: (0, 0) }));
        assert_eq!(other.kinds(), [CREATE, ATTACH, TRANSFER, UPDATE_CURSOR]);
    }
}

#[test]
fn an_edid_that_is_none_is_not_taken_for_one() {
    let (mut gpu, other) = start();
    assert!(gpu.edid().is_none());
    assert_eq!(other.done(), [(EDID, vec![0, 0])]);
    other.refused.set(EDID);
    assert!(gpu.edid().is_none());
    assert_eq!(gpu.preferred_size(), None);
}

#[test]
#[should_panic(expected = "violates virtio")]
fn a_device_that_completes_what_is_not_in_flight_ends_the_driver() {
    let (mut gpu, other) = start();
    other.played.set_used_index(0, 9);
    gpu.show(&layout());
}
