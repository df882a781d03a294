//! A device that fails at the moment when the changes of a request are to be kept: then nothing has happened.

use std::cell::Cell;
use std::rc::Rc;

use crate::common::grants::{Buffer, Fake, GRANT, VFS};
use crate::common::{FileDevice, Scratch, check, options, words};
use abi::fs::{ChMod, Create, Mount, Read, Stat, Sync, Unmount, Write};
use abi::{Errno, Message, Word};
use ext2::Ext2;
use fs::device::BlockDevice;
use fs::preserve::{Layout, Preserved, VolumeMemory};
use fs::server::{MountRequest, Server};
use sys::StartKind;
use sys::keep::Keep;

const LAYOUT: Layout = Layout { volumes: 1, cache_bytes: 64 * 1024 };

/// A device that refuses everything while the flag is set.
struct Failing {
    device: FileDevice,
    fails: Rc<Cell<bool>>,
}

impl Failing {
    fn now(&self) -> Result<(), Errno> {
        if self.fails.get() { Err(Errno::EIO) } else { Ok(()) }
    }
}

impl BlockDevice for Failing {
    fn sector_count(&self) -> u64 {
        self.device.sector_count()
    }
    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        self.now()?;
        self.device.read(first_sector, buffer)
    }
    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno> {
        self.now()?;
        self.device.write(first_sector, data)
    }
    fn flush(&mut self) -> Result<(), Errno> {
        self.now()
    }
}

#[test]
fn a_change_that_cannot_be_kept_has_not_happened() {
    let scratch = Scratch::new();
    let image = scratch.image(4096, &["-b", "1024"]);
    let buffer = Buffer::default();
    sys::host::install(Fake(buffer.clone()));
    let fails = Rc::new(Cell::new(false));
    let (path, flag) = (image.clone(), fails.clone());
    let mount = move |_: &MountRequest, memory: Option<VolumeMemory>| {
        Ext2::mount(Failing { device: FileDevice::open(&path), fails: flag.clone() }, options(), memory.unwrap())
    };
    let preserved = Preserved::open(Keep::simulated(words(LAYOUT), u64::MAX), LAYOUT, StartKind::Fresh);
    let mut server = Server::resuming(mount, preserved);
    let mut tag = 0;
    let mut ask = |content: &[u8], mut request: Message| {
        *buffer.borrow_mut() = content.to_vec();
        tag += 1;
        (request.source, request.words[6]) = (VFS, tag);
        server.answer(&request).expect("the device does not let requests wait")
    };
    let reply = ask(b"disk", Mount { grant: GRANT, bytes: 4, minor: 0, flags: 0 }.message());
    let root = Mount::results(&reply).unwrap().0;
    let create = |mode| Create { directory: root, name: GRANT.to_word(), bytes: 1, mode, ids: 0, device: 0 }.message();
    let file = Create::results(&ask(b"f", create(0o100_644))).unwrap().0;
    let large = Create::results(&ask(b"g", create(0o100_644))).unwrap().0;
    // More than the cache holds: the block with the inode goes, the inode stays.
    let bytes = 200_000;
    let write = Write { node: large, grant: GRANT, position: 0, bytes, ids: 0, written_ns: 0 }.message();
    assert_eq!(ask(&[7; 200_000], write).result(), Ok(bytes));
    assert_eq!(ask(b"", Sync {}.message()).result(), Ok(0));
    let read = Read { node: large, grant: GRANT, position: 0, bytes, kept: false }.message();
    assert_eq!(ask(&[0; 200_000], read).result(), Ok(bytes));
    fails.set(true);
    let change = ChMod { node: file, mode: 0o600 }.message();
    assert_eq!(ask(b"", change).result(), Err(Errno::EIO));
    fails.set(false);
    let stat = Stat { node: file, grant: GRANT }.message();
    assert_eq!(ask(&[0; 144], stat).result(), Ok(0));
    assert_eq!(buffer.borrow()[24..28], 0o100_644u32.to_le_bytes());
    assert_eq!(ask(b"", change).result(), Ok(0));
    assert_eq!(ask(&[0; 144], stat).result(), Ok(0));
    assert_eq!(buffer.borrow()[24..28], 0o100_600u32.to_le_bytes());
    assert_eq!(ask(b"", Unmount { node: root, force: true }.message()).result(), Ok(0));
    check(&image);
}
