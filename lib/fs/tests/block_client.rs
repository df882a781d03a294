//! The client of block drivers against a scripted driver that dies, lies and refuses.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use abi::block::{Flush, Open, Read, Write};
use abi::call::{KernelCall, SENDREC};
use abi::endpoint::slot;
use abi::{Endpoint, Errno, Message, Name, ds};
use fs::block_client::BlockClient;
use fs::device::BlockDevice;
use sys::host::Kernel;

const DRIVER: Endpoint = Endpoint::new(20, 5);
const BYTES: u64 = 1 << 30;

/// What the driver does with the next requests, and those it got.
#[derive(Default)]
struct Script {
    results: VecDeque<Result<u64, Errno>>,
    seen: Vec<Message>,
}

struct Fake(Rc<RefCell<Script>>);

impl Kernel for Fake {
    fn primitive(&mut self, number: u64, to: Endpoint, message: &Message, _: Endpoint) -> sys::Result<Message> {
        assert_eq!(number, SENDREC);
        if to.slot() == slot::DS {
            return Ok(ds::Lookup::reply(message, 0, DRIVER));
        }
        assert_eq!(to, Endpoint::current(DRIVER.slot()));
        if message.label == Open::LABEL {
            return Ok(Open::reply(message, 0, BYTES, 512, false));
        }
        let mut script = self.0.borrow_mut();
        script.seen.push(*message);
        match script.results.pop_front() {
            Some(Err(Errno::EDEADSRCDST)) => Err(Errno::EDEADSRCDST),
            Some(result) => Ok(message.reply(result)),
            None => Ok(message.reply(Ok(message.words[3]))),
        }
    }

    fn call(&mut self, call: KernelCall, _: [u64; 6]) -> sys::Result<(u64, [u64; 2])> {
        assert_eq!(call, KernelCall::SetGrants);
        Ok((0, [0; 2]))
    }

    fn filling(&mut self, call: KernelCall, _: [u64; 6], _: &mut [u8]) -> sys::Result<u64> {
        panic!("{call:?}")
    }

    fn reading(&mut self, call: KernelCall, _: [u64; 6], _: &[u8]) -> sys::Result<u64> {
        panic!("{call:?}")
    }
}

fn open(results: &[Result<u64, Errno>]) -> (BlockClient, Rc<RefCell<Script>>) {
    let script = Rc::new(RefCell::new(Script { results: results.iter().copied().collect(), seen: Vec::new() }));
    sys::host::install(Fake(script.clone()));
    let client = BlockClient::open(Name::new("disk").unwrap(), 3).unwrap();
    (client, script)
}

#[test]
fn a_request_names_sectors_in_bytes() {
    let (mut client, script) = open(&[]);
    assert_eq!(client.sector_count(), BYTES / 512);
    client.read(9, &mut [0; 1024]).unwrap();
    client.write(10, &[0; 512]).unwrap();
    let seen = script.borrow().seen.clone();
    let (read, write) = (Read::from_message(&seen[0]), Write::from_message(&seen[1]));
    assert_eq!((read.minor, read.position, read.bytes), (3, 9 * 512, 1024));
    assert_eq!((write.minor, write.position, write.bytes), (3, 10 * 512, 512));
}

#[test]
fn a_large_transfer_goes_in_requests_of_one_mebibyte() {
    let (mut client, script) = open(&[]);
    client.read(0, &mut vec![0; (2 << 20) + 512]).unwrap();
    let sizes: Vec<_> = script.borrow().seen.iter().map(|message| message.words[3]).collect();
    assert_eq!(sizes, [1 << 20, 1 << 20, 512]);
    assert_eq!(script.borrow().seen[2].words[2], 2 << 20);
}

#[test]
fn a_request_in_the_hands_of_a_dying_driver_is_repeated() {
    let dead = Err(Errno::EDEADSRCDST);
    let (mut client, script) = open(&[dead, dead, Ok(512), dead, Ok(512), dead]);
    client.read(0, &mut [0; 512]).unwrap();
    client.write(0, &[0; 512]).unwrap();
    client.flush().unwrap();
    let labels: Vec<_> = script.borrow().seen.iter().map(|message| message.label).collect();
    let expected = [Read::LABEL, Read::LABEL, Read::LABEL, Write::LABEL, Write::LABEL, Flush::LABEL, Flush::LABEL];
    assert_eq!(labels, expected);
}

#[test]
fn errors_and_short_transfers_are_errors_of_the_device() {
    let (mut client, _) = open(&[Err(Errno::EIO), Err(Errno::EINVAL), Ok(511), Err(Errno::EROFS), Err(Errno::EIO)]);
    assert_eq!(client.read(0, &mut [0; 512]), Err(Errno::EIO));
    assert_eq!(client.read(0, &mut [0; 512]), Err(Errno::EIO));
    assert_eq!(client.read(0, &mut [0; 512]), Err(Errno::EIO));
    assert_eq!(client.write(0, &[0; 512]), Err(Errno::EROFS));
    assert_eq!(client.flush(), Err(Errno::EIO));
}

#[test]
fn a_driver_that_never_comes_back_is_an_error_at_last() {
    let (mut client, _) = open(&[Err(Errno::EDEADSRCDST); 50]);
    assert_eq!(client.read(0, &mut [0; 512]), Err(Errno::EIO));
}
