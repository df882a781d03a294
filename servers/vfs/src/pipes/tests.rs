//! Pipes among programs with a little memory each.

use crate::{
    keep::{
        Kept, PIPE_PAGE,
        records::{AncillaryRecord, Extent, PipeRecord},
    },
    memory::{address::Address, buffer::UserBuffer},
    pipes::{
        Outcome, Pipe, World,
        ancillary::Ancillary,
        packets::Results,
        pool::Charge,
        ring::{Pages, Ring},
    },
};

use abi::{Endpoint, Errno};
use alloc::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    vec,
    vec::Vec,
};
use core::cell::{Cell, RefCell};

/// Programs with a little memory each; address 0 and up to 64 KiB is mapped, everything above is not.
pub struct Programs {
    memory: RefCell<Vec<Vec<u8>>>,
    pages: RefCell<Vec<Vec<u8>>>,
    free: RefCell<Vec<u16>>,
    next: RefCell<BTreeMap<u16, u16>>,
    finished: RefCell<Vec<(usize, Result<u64, Errno>)>>,
    broken: RefCell<Vec<(usize, u64)>>,
    /// What the preserved state says.
    saved: Cell<Option<PipeRecord>>,
    moved: RefCell<Vec<(usize, u64)>>,
}

impl Programs {
    pub fn new() -> Self {
        Programs {
            memory: RefCell::new(vec![vec![0; 65536 * 2]; 4]),
            pages: RefCell::new(vec![vec![0; PIPE_PAGE]; 300]),
            free: RefCell::new((0..300).collect()),
            next: RefCell::default(),
            finished: RefCell::default(),
            broken: RefCell::default(),
            saved: Cell::default(),
            moved: RefCell::default(),
        }
    }

    pub fn set(&self, who: usize, bytes: &[u8]) {
        self.memory.borrow_mut()[who][..bytes.len()].copy_from_slice(bytes);
    }

    pub fn get(&self, who: usize, bytes: usize) -> Vec<u8> {
        self.memory.borrow()[who][..bytes].to_vec()
    }

    pub fn next(&self, page: u16) -> Option<u16> {
        self.next.borrow().get(&page).copied()
    }

    fn finished(&self) -> Vec<(usize, Result<u64, Errno>)> {
        self.finished.take()
    }

    fn fetch(&self, from: Endpoint, address: u64, bytes: usize) -> Result<Vec<u8>, Errno> {
        let memory = self.memory.borrow();
        let end = (address as usize).checked_add(bytes).ok_or(Errno::EFAULT)?;
        memory[from.slot()].get(address as usize..end).map(<[u8]>::to_vec).ok_or(Errno::EFAULT)
    }

    fn put(&self, to: Endpoint, address: u64, from: &[u8]) -> Result<(), Errno> {
        let mut memory = self.memory.borrow_mut();
        let end = (address as usize).checked_add(from.len()).ok_or(Errno::EFAULT)?;
        memory[to.slot()].get_mut(address as usize..end).ok_or(Errno::EFAULT)?.copy_from_slice(from);
        Ok(())
    }
}

impl Pages for Programs {
    fn take(&self) -> Option<u16> {
        self.free.borrow_mut().pop()
    }
    fn give(&self, page: u16) {
        self.free.borrow_mut().push(page);
    }
    fn link(&self, before: u16, page: u16) {
        self.next.borrow_mut().insert(before, page);
    }
    fn fill(&self, page: u16, at: usize, bytes: usize, from: Endpoint, address: u64) -> Result<(), Errno> {
        let data = self.fetch(from, address, bytes)?;
        self.pages.borrow_mut()[page as usize][at..at + bytes].copy_from_slice(&data);
        Ok(())
    }
    fn drain(&self, page: u16, at: usize, bytes: usize, to: Endpoint, address: u64) -> Result<(), Errno> {
        self.put(to, address, &self.pages.borrow()[page as usize][at..at + bytes])
    }
    fn write(&self, page: u16, at: usize, bytes: &[u8]) {
        self.pages.borrow_mut()[page as usize][at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn read(&self, page: u16, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.pages.borrow()[page as usize][at..at + into.len()]);
    }
    fn save(&self, _: u16, record: &PipeRecord) {
        self.saved.set(Some(*record));
    }
    fn save_extent(&self, _: u16, extent: Extent) {
        self.saved.set(self.saved.get().map(|record| PipeRecord { extent, ..record }));
    }
    fn end(&self, _: u16) {
        self.saved.set(None);
    }
}

impl World for Programs {
    fn copy(&self, from: Endpoint, a: u64, to: Endpoint, b: u64, bytes: u64) -> Result<(), Errno> {
        self.put(to, b, &self.fetch(from, a, bytes as usize)?)
    }
    fn is_mapped(&self, who: Endpoint, address: u64) -> bool {
        self.fetch(who, address, 1).is_ok()
    }
    fn note_moved(&self, who: Endpoint, moved: u64) {
        self.moved.borrow_mut().push((who.slot(), moved));
    }
    fn finish(&self, who: Endpoint, result: Result<u64, Errno>) {
        self.finished.borrow_mut().push((who.slot(), result));
    }
    fn report(&self, _: Endpoint, _: &Results, _: &Address, _: u32) -> Result<(), Errno> {
        Ok(())
    }
    fn new_ancillary(&self, _: AncillaryRecord) -> Result<Kept<AncillaryRecord>, Errno> {
        Err(Errno::ETOOMANYREFS)
    }
    fn discard(&self, _: VecDeque<Ancillary>) {}
    fn broken(&self, who: Endpoint, moved: u64) {
        self.broken.borrow_mut().push((who.slot(), moved));
    }
}

const BAD: u64 = 1 << 40;

fn at(who: usize, bytes: u64) -> UserBuffer {
    UserBuffer::new(Endpoint::new(who, 1), 0, bytes)
}

fn new_pipe() -> Rc<Pipe> {
    Rc::new(Pipe::new(0, Ring::new(crate::pipes::DEFAULT_BYTES), Charge::of_pages(511)))
}

fn pipe() -> (Programs, Rc<Pipe>) {
    let pipe = new_pipe();
    pipe.open(true, false);
    pipe.open(false, true);
    (Programs::new(), pipe)
}

fn done(bytes: u64) -> Outcome {
    Outcome::Done(Ok(bytes))
}

fn failed(error: Errno) -> Outcome {
    Outcome::Done(Err(error))
}

#[test]
fn what_is_written_is_read() {
    let (programs, pipe) = pipe();
    programs.set(0, b"hello");
    assert_eq!(pipe.write(&programs, &mut at(0, 5), false), done(5));
    assert_eq!(pipe.read(&programs, &mut at(1, 3), false), done(3));
    assert_eq!(programs.get(1, 3), b"hel");
    assert_eq!(pipe.read(&programs, &mut at(1, 100), false), done(2));
    assert_eq!(programs.get(1, 2), b"lo");
}

#[test]
fn a_waiting_reader_is_answered_by_the_writer() {
    let (programs, pipe) = pipe();
    programs.set(0, b"abc");
    assert_eq!(pipe.read(&programs, &mut at(1, 10), false), Outcome::Waiting);
    assert_eq!(pipe.write(&programs, &mut at(0, 3), false), done(3));
    assert_eq!(programs.finished(), [(1, Ok(3))]);
    assert_eq!(programs.get(1, 3), b"abc");
    assert_eq!(pipe.bytes(), 0);
}

#[test]
fn two_waiting_readers_share_one_write() {
    let (programs, pipe) = pipe();
    programs.set(0, b"abcdef");
    pipe.read(&programs, &mut at(1, 4), false);
    pipe.read(&programs, &mut at(2, 4), false);
    assert_eq!(pipe.write(&programs, &mut at(0, 6), false), done(6));
    assert_eq!(programs.finished(), [(1, Ok(4)), (2, Ok(2))]);
    assert_eq!(programs.get(2, 2), b"ef");
}

#[test]
fn a_full_pipe_makes_writers_wait_and_a_reader_lets_them_go_on() {
    let (programs, pipe) = pipe();
    assert_eq!(pipe.write(&programs, &mut at(0, 65536), false), done(65536));
    programs.set(2, &[7; 10_000]);
    assert_eq!(pipe.write(&programs, &mut at(2, 10_000), false), Outcome::Waiting);
    assert_eq!(pipe.read(&programs, &mut at(1, 6_000), false), done(6_000));
    assert_eq!(programs.finished(), []);
    assert_eq!(pipe.read(&programs, &mut at(1, 6_000), false), done(6_000));
    assert_eq!(programs.finished(), [(2, Ok(10_000))]);
    assert_eq!(pipe.bytes(), 65536 + 10_000 - 12_000);
}

#[test]
fn small_writes_are_never_split() {
    let (programs, pipe) = pipe();
    assert_eq!(pipe.write(&programs, &mut at(0, 65536 - 100), false), done(65536 - 100));
    assert_eq!(pipe.write(&programs, &mut at(0, 101), true), failed(Errno::EAGAIN));
    assert_eq!(pipe.write(&programs, &mut at(2, 4096), false), Outcome::Waiting);
    assert_eq!(pipe.read(&programs, &mut at(1, 3995), false), done(3995));
    assert_eq!(programs.finished(), []);
    assert_eq!(pipe.read(&programs, &mut at(1, 1), false), done(1));
    assert_eq!(programs.finished(), [(2, Ok(4096))]);
}

#[test]
fn large_nonblocking_writes_take_what_fits() {
    let (programs, pipe) = pipe();
    assert_eq!(pipe.write(&programs, &mut at(0, 70_000), true), done(65536));
    assert_eq!(pipe.write(&programs, &mut at(0, 70_000), true), failed(Errno::EAGAIN));
}

#[test]
fn readers_see_the_end_and_writers_a_broken_pipe() {
    let (programs, pipe) = pipe();
    assert_eq!(pipe.read(&programs, &mut at(1, 1), true), failed(Errno::EAGAIN));
    assert_eq!(pipe.read(&programs, &mut at(1, 1), false), Outcome::Waiting);
    pipe.close(&programs, false, true);
    assert_eq!(programs.finished(), [(1, Ok(0))]);
    assert_eq!(pipe.read(&programs, &mut at(1, 1), false), done(0));
    pipe.open(false, true);
    pipe.write(&programs, &mut at(0, 65536), false);
    assert_eq!(pipe.write(&programs, &mut at(2, 5), false), Outcome::Waiting);
    pipe.close(&programs, true, false);
    assert_eq!(programs.broken.take(), [(2, 0)]);
    assert_eq!(pipe.write(&programs, &mut at(0, 1), false), failed(Errno::EPIPE));
}

#[test]
fn a_cancelled_call_reports_what_it_has_moved() {
    let (programs, pipe) = pipe();
    pipe.read(&programs, &mut at(1, 10), false);
    assert_eq!(pipe.cancel(Endpoint::new(1, 1)), Some(0));
    assert_eq!(pipe.cancel(Endpoint::new(1, 1)), None);
    pipe.write(&programs, &mut at(0, 100_000), false);
    assert_eq!(pipe.cancel(Endpoint::new(0, 1)), Some(65536));
}

#[test]
fn bad_memory_harms_only_its_owner() {
    let (programs, pipe) = pipe();
    let bad = |who: usize| UserBuffer::new(Endpoint::new(who, 1), BAD, 10);
    assert_eq!(pipe.write(&programs, &mut bad(0), false), failed(Errno::EFAULT));
    assert_eq!(pipe.read(&programs, &mut bad(1), false), Outcome::Waiting);
    assert_eq!(pipe.write(&programs, &mut at(0, 4), false), done(4));
    assert_eq!(programs.finished(), [(1, Err(Errno::EFAULT))]);
    assert_eq!(pipe.bytes(), 4);
    assert_eq!(pipe.read(&programs, &mut bad(1), false), failed(Errno::EFAULT));
    assert_eq!(pipe.read(&programs, &mut at(1, 10), false), done(4));
    assert_eq!(pipe.read(&programs, &mut at(1, 10), false), Outcome::Waiting);
    assert_eq!(pipe.write(&programs, &mut bad(0), false), failed(Errno::EFAULT));
    assert_eq!(programs.finished(), []);
}

#[test]
fn scattered_buffers_are_filled_in_order() {
    use crate::memory::buffer::Piece;
    let (programs, pipe) = pipe();
    programs.set(0, b"0123456789");
    let pieces = [Piece { address: 100, bytes: 3 }, Piece { address: 0, bytes: 4 }, Piece { address: 50, bytes: 9 }];
    pipe.read(&programs, &mut UserBuffer::from_pieces(Endpoint::new(1, 1), &pieces), false);
    assert_eq!(pipe.write(&programs, &mut at(0, 10), false), done(10));
    assert_eq!(programs.finished(), [(1, Ok(10))]);
    let memory = programs.get(1, 200);
    assert_eq!((&memory[100..103], &memory[..4], &memory[50..53]), (&b"012"[..], &b"3456"[..], &b"789"[..]));
}

#[test]
fn poll_tells_what_an_end_may_do() {
    use crate::events::poll::*;
    let (programs, pipe) = pipe();
    assert_eq!(pipe.poll(true, false), 0);
    assert_eq!(pipe.poll(false, true), POLLOUT | POLLWRNORM);
    pipe.write(&programs, &mut at(0, 65536 - 4095), false);
    assert_eq!(pipe.poll(true, false), POLLIN | POLLRDNORM);
    assert_eq!(pipe.poll(false, true), 0);
    pipe.close(&programs, false, true);
    assert_eq!(pipe.poll(true, false), POLLIN | POLLRDNORM | POLLHUP);
    pipe.open(false, true);
    pipe.close(&programs, true, false);
    assert_eq!(pipe.poll(false, true), POLLERR);
}

#[test]
fn a_pipe_that_nobody_holds_is_given_up_with_its_content() {
    let (programs, pipe) = pipe();
    pipe.write(&programs, &mut at(0, 5000), false);
    assert_eq!((pipe.has_ended(), programs.free.borrow().len()), (false, 298));
    assert_eq!(programs.saved.get().map(|saved| saved.extent.bytes), Some(5000));
    pipe.close(&programs, true, false);
    pipe.close(&programs, false, true);
    assert_eq!((pipe.has_ended(), programs.free.borrow().len(), programs.saved.get()), (true, 300, None));
}

#[test]
fn how_far_a_waiting_write_has_come_is_noted_and_it_goes_on_there() {
    let (programs, pipe) = pipe();
    assert_eq!(pipe.write(&programs, &mut at(0, 100_000), false), Outcome::Waiting);
    assert_eq!(programs.moved.take(), [(0, 65536)]);
    // What a successor does when the write comes again.
    assert_eq!(pipe.cancel(Endpoint::new(0, 1)), Some(65536));
    pipe.read(&programs, &mut at(1, 65536), false);
    let mut again = at(0, 100_000);
    again.advance_all(65536);
    assert_eq!(pipe.write(&programs, &mut again, false), done(100_000));
}

#[test]
fn a_reader_takes_from_a_writer_that_waits_without_pages() {
    let (programs, pipe) = pipe();
    programs.free.take();
    programs.set(0, b"0123456789");
    assert_eq!(pipe.write(&programs, &mut at(0, 10), false), Outcome::Waiting);
    assert_eq!(pipe.poll(true, false) & crate::events::poll::POLLIN, crate::events::poll::POLLIN);
    pipe.close(&programs, false, true);
    assert_eq!(pipe.read(&programs, &mut at(1, 4), false), done(4));
    assert_eq!((programs.finished(), programs.moved.take()), (vec![], vec![(0, 4)]));
    assert_eq!(pipe.read(&programs, &mut at(1, 100), false), done(6));
    assert_eq!((programs.finished(), programs.get(1, 6)), (vec![(0, Ok(10))], b"456789".to_vec()));
    assert_eq!(pipe.read(&programs, &mut at(1, 1), false), done(0));
}

#[test]
fn a_waiting_writer_with_bad_memory_is_no_end_of_file() {
    let (programs, pipe) = pipe();
    programs.free.take();
    let mut bad = UserBuffer::new(Endpoint::new(0, 1), BAD, 10);
    pipe.write(&programs, &mut at(2, 3), false);
    assert_eq!(pipe.write(&programs, &mut bad, false), Outcome::Waiting);
    assert_eq!(pipe.read(&programs, &mut at(1, 3), false), done(3));
    assert_eq!(pipe.read(&programs, &mut at(1, 3), false), Outcome::Waiting);
    assert_eq!(programs.finished(), [(2, Ok(3)), (0, Err(Errno::EFAULT))]);
}

#[test]
fn more_capacity_admits_writers_that_wait() {
    let (programs, pipe) = pipe();
    pipe.write(&programs, &mut at(0, 65536), false);
    assert_eq!(pipe.write(&programs, &mut at(2, 5000), false), Outcome::Waiting);
    assert_eq!(pipe.set_capacity(&programs, 131_072), Ok(131_072));
    assert_eq!(programs.finished(), [(2, Ok(5000))]);
}

#[test]
fn capacity_is_set_within_bounds() {
    let (programs, pipe) = pipe();
    assert_eq!(pipe.set_capacity(&programs, 1), Ok(4096));
    assert_eq!(pipe.set_capacity(&programs, 5000), Ok(8192));
    pipe.write(&programs, &mut at(0, 8192), false);
    assert_eq!(pipe.set_capacity(&programs, 4096), Err(Errno::EBUSY));
    assert_eq!(pipe.set_capacity(&programs, crate::pipes::MAX_BYTES + 1), Err(Errno::EPERM));
}

#[test]
fn watchers_learn_of_data() {
    let (programs, pipe) = pipe();
    let event = Rc::new(crate::events::Event::default());
    pipe.watchers.add(&event);
    pipe.write(&programs, &mut at(0, 1), false);
    let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    assert!(core::future::Future::poll(core::pin::pin!(event.wait()), &mut context).is_ready());
}
