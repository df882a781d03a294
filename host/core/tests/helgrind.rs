//! The two ends of a box in two threads, for valgrind's helgrind (`tests/host/helgrind.sh`), which reports what one writes and the other reads or writes
//! without anything that orders the two.
//!
//! [`pair`] is compiled with atomics here that tell helgrind what they order, and what they do not: helgrind knows no acquire and release, and on
//! x86 these are plain instructions. It sees what loom does not (`loom.rs`): thousands of messages in a row, with all numbers, places and wraps.
//! Nothing is taken back here: who takes a message back lets its receiver read what it no longer needs, which is a race without harm.
//!
//! Without valgrind it checks the messages only. With the argument `race` it has a race on purpose, which must be reported.

use m3ipc::message::Message;
use pair::{Asks, Box, Link};
use std::thread;

#[path = "../src/pair.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod pair;

/// Stands for `host/core/src/sync.rs`.
mod sync {
    use std::arch::asm;
    use std::sync::atomic::Ordering::{self, Relaxed, SeqCst};
    pub use std::thread::yield_now as pause;

    pub const LEAVING_LOOKS: u32 = 200;

    /// Requests of valgrind/helgrind.h: what the thread has done is visible to who says that it has seen this address after it.
    const SEND: u64 = 0x4847_0121;
    const RECEIVE: u64 = 0x4847_0122;

    fn tell<T>(request: u64, place: &T) {
        let words = [request, std::ptr::from_ref(place) as u64, 0, 0, 0, 0];
        // SAFETY: the processor turns a register once around, and exchanges one with itself; valgrind knows the pattern, and reads the words.
        unsafe {
            asm!(
                "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
                in("rax") words.as_ptr(), inout("rdx") 0u64 => _,
                options(nostack),
            );
        }
    }

    /// An atomic: relaxed loads and stores are ones of plain memory for helgrind, which must be ordered by others; those others are locked
    /// instructions, of which helgrind reports no two, and order what is around them.
    macro_rules! atomic {
        ($name:ident, $value:ty) => {
            #[derive(Default)]
            pub struct $name(std::sync::atomic::$name);

            #[allow(dead_code, reason = "not every width is used in every way")]
            impl $name {
                pub fn load(&self, order: Ordering) -> $value {
                    if order == Relaxed {
                        return self.0.load(Relaxed);
                    }
                    let value = self.0.fetch_add(0, SeqCst);
                    tell(RECEIVE, self);
                    value
                }

                pub fn store(&self, value: $value, order: Ordering) {
                    if order == Relaxed {
                        return self.0.store(value, Relaxed);
                    }
                    tell(SEND, self);
                    self.0.swap(value, SeqCst);
                }

                pub fn compare_exchange(
                    &self,
                    old: $value,
                    new: $value,
                    _: Ordering,
                    _: Ordering,
                ) -> Result<$value, $value> {
                    tell(SEND, self);
                    let result = self.0.compare_exchange(old, new, SeqCst, SeqCst);
                    tell(RECEIVE, self);
                    result
                }
            }
        };
    }
    atomic!(AtomicU32, u32);
    atomic!(AtomicU64, u64);

    pub fn store_and_fence(place: &AtomicU32, value: u32) {
        place.store(value, SeqCst);
    }
}

type Ends = Link<&'static Box>;

const ROUNDS: i32 = 3_000;

fn message(kind: i32) -> Message {
    Message { source: 0, kind, words: [kind as u64; 7] }
}

fn ends() -> [Ends; 2] {
    let shared: &'static Box = std::boxed::Box::leak(std::boxed::Box::default());
    [Link::new(shared, true), Link::new(shared, false)]
}

/// Lets two threads be the ends of a box.
fn both(one: impl FnOnce(Ends) + Send + 'static, other: impl FnOnce(Ends) + Send + 'static) {
    let [first, second] = ends();
    let other = thread::spawn(move || other(second));
    one(first);
    other.join().expect("the other end does not panic");
}

/// Waits for the next message.
fn receive(link: &mut Ends) -> Message {
    let mut message = Message::default();
    if let Some(found) = link.first() {
        assert!(link.take(found, &mut message), "nobody takes it back");
        return message;
    }
    link.announce();
    if let Some(found) = link.first() {
        assert!(link.take(found, &mut message), "nobody takes it back");
        return message;
    }
    loop {
        if let Some(found) = link.promise().kept() {
            link.take_promised(found, &mut message);
            return message;
        }
        thread::yield_now();
    }
}

/// Sends, and waits until the message is taken or sure to be.
fn send(link: &mut Ends, kind: i32) {
    let offered = link.offer(&message(kind), Asks::No);
    while !link.is_awaited(offered) && !link.is_taken(offered) {
        thread::yield_now();
    }
    link.settle(offered);
}

fn request(link: &mut Ends, kind: i32) -> Message {
    let request = link.offer(&message(kind), Asks::Answer);
    let mut answer = Message::default();
    loop {
        if !link.is_doubtful()
            && let Some(found) = link.promised_answer().kept()
        {
            link.settle(request);
            link.take_promised(found, &mut answer);
            return answer;
        }
        if let Some(found) = link.answer(request)
            && link.take_answer(request, found, true, &mut answer)
        {
            return answer;
        }
        thread::yield_now();
    }
}

fn take_note(link: &mut Ends) -> u64 {
    loop {
        if let Some(found) = link.first_note() {
            return link.take_note(found).0;
        }
        thread::yield_now();
    }
}

fn messages_in_both_directions() {
    both(
        |mut one| {
            for kind in 1..ROUNDS {
                send(&mut one, kind);
                assert_eq!(receive(&mut one), message(-kind));
            }
        },
        |mut other| {
            for kind in 1..ROUNDS {
                assert_eq!(receive(&mut other), message(kind));
                send(&mut other, -kind);
            }
        },
    );
}

fn messages_in_one_direction() {
    both(
        |mut one| (1..ROUNDS).for_each(|kind| send(&mut one, kind)),
        |mut other| (1..ROUNDS).for_each(|kind| assert_eq!(receive(&mut other), message(kind))),
    );
}

fn requests_and_answers() {
    both(
        |mut client| (1..ROUNDS).for_each(|kind| assert_eq!(request(&mut client, kind), message(kind + 1))),
        |mut server| {
            for kind in 1..ROUNDS {
                assert_eq!(receive(&mut server), message(kind));
                send(&mut server, kind + 1);
            }
        },
    );
}

fn notifications() {
    both(
        |mut one| {
            for value in 1..ROUNDS as u64 {
                assert!(one.note(value, value, false), "the one before was taken");
                assert_eq!(take_note(&mut one), value + 1);
            }
        },
        |mut other| {
            for value in 1..ROUNDS as u64 {
                assert_eq!(take_note(&mut other), value);
                assert!(other.note(value, value + 1, false), "the one before was taken");
            }
        },
    );
}

/// Both write when their calls began, and nothing orders that for the other one.
fn race() {
    both(
        |mut one| {
            let offered = one.offer(&message(1), Asks::No);
            one.set_began(offered, 1);
        },
        |other| {
            let found = loop {
                match other.first() {
                    Some(found) => break found,
                    None => thread::yield_now(),
                }
            };
            other.began(found);
        },
    );
}

fn main() {
    if std::env::args().any(|argument| argument == "race") {
        return race();
    }
    messages_in_both_directions();
    messages_in_one_direction();
    requests_and_answers();
    notifications();
    println!("no message was wrong");
}
