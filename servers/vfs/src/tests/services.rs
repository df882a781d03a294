//! The services that vfs and ext2 ask and that are simple here: rs, ds, a disk in memory, a terminal, and as much of vm as vfs sees. The file is long because
//! it has all of them, each as short as it can be.

use abi::{Endpoint, Errno, GrantId, Message, Name, block, chardev, ds, fs, rs, vm};
use server::SyncStep;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::string::String;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};
use std::vec::Vec;
use sys::{copy, ipc};

/// ds: the services, and the one that has come up again, until its clients have fetched that.
pub struct Names(pub Vec<(&'static str, Endpoint)>, pub Arc<Mutex<Option<(&'static str, Endpoint)>>>);

impl server::Service for Names {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        SyncStep::Done(match ds::Request::decode(message) {
            Some(ds::Request::Lookup(request)) => {
                let wanted = Name::from_words(request.name_low, request.name_high);
                let found = self.0.iter().find(|(name, _)| Name::new(name) == Some(wanted));
                match found {
                    Some((_, endpoint)) => ds::Lookup::reply(message, 0, *endpoint),
                    None => message.reply(Err(Errno::ENOENT)),
                }
            }
            Some(ds::Request::Subscribe(_)) => message.reply(Ok(0)),
            Some(ds::Request::NextEvent(_)) => match self.1.lock().expect("the test has not panicked").take() {
                Some((name, endpoint)) => {
                    let (low, high) = Name::new(name).expect("is a name").to_words();
                    ds::NextEvent::reply(message, 0, low, high, endpoint, true)
                }
                None => message.reply(Err(Errno::ENOENT)),
            },
            _ => message.reply(Err(Errno::ENOENT)),
        })
    }
}

/// rs, which takes the reports of services that they are ready, and of vfs that one has stalled.
pub fn take_reports(stalled: &Mutex<Vec<Endpoint>>) {
    loop {
        let report = ipc::receive(Endpoint::ANY).expect("receiving from anybody does not fail");
        if report.label == rs::Stalled::LABEL {
            let process = rs::Stalled::from_message(&report).process;
            stalled.lock().expect("nobody has panicked").push(process);
        }
        ipc::send_nonblocking(report.source, &report.reply(Ok(0))).expect("who reports waits for the answer");
    }
}

/// What is on the disk.
#[derive(Default)]
pub struct Medium {
    pub bytes: Vec<u8>,
    pub reads: u64,
    pub flushes: u64,
    /// Requests that reach beyond this position fail.
    pub broken_from: Option<u64>,
    /// It answers nothing until it is notified.
    pub is_held: bool,
    waiting: Vec<Message>,
}

impl Medium {
    /// A sound disk with this content.
    pub fn new(bytes: Vec<u8>) -> Medium {
        Medium { bytes, ..Medium::default() }
    }
}

/// The driver of the disk.
pub struct Disk(pub Arc<Mutex<Medium>>);

impl Disk {
    fn answer(medium: &mut Medium, message: &Message) -> Message {
        let range = |position: u64, bytes: u64| position as usize..(position + bytes) as usize;
        let from = message.source;
        let is_broken = |position: u64, bytes: u64| medium.broken_from.is_some_and(|at| position + bytes > at);
        let result = match block::Request::decode(message) {
            Some(block::Request::Open(block::Open { minor: 1.. })) => Err(Errno::ENXIO),
            Some(block::Request::Read(block::Read { position, bytes, .. }))
            | Some(block::Request::Write(block::Write { position, bytes, .. }))
                if is_broken(position, bytes) =>
            {
                Err(Errno::EIO)
            }
            Some(block::Request::Open(_)) => {
                return block::Open::reply(message, 0, medium.bytes.len() as u64, 512, false);
            }
            Some(block::Request::Read(block::Read { grant, position, bytes, .. })) => {
                medium.reads += 1;
                copy::to_grant(from, grant, 0, &medium.bytes[range(position, bytes)]).map(|()| bytes)
            }
            Some(block::Request::Write(block::Write { grant, position, bytes, .. })) => {
                copy::from_grant(from, grant, 0, &mut medium.bytes[range(position, bytes)]).map(|()| bytes)
            }
            Some(block::Request::Flush(_)) => {
                medium.flushes += 1;
                Ok(0)
            }
            None => Err(Errno::ENOSYS),
        };
        message.reply(result)
    }
}

impl server::Service for Disk {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        let Ok(mut medium) = self.0.lock() else { return SyncStep::Later };
        if medium.is_held {
            medium.waiting.push(*message);
            return SyncStep::Later;
        }
        SyncStep::Done(Disk::answer(&mut medium, message))
    }

    fn notified(&mut self, _: Endpoint) {
        let Ok(mut medium) = self.0.lock() else { return };
        for message in std::mem::take(&mut medium.waiting) {
            let reply = Disk::answer(&mut medium, &message);
            // Refused when the client has died.
            let _ = ipc::send_nonblocking(message.source, &reply);
        }
    }
}

/// What a terminal has been asked, and what it has to give.
#[derive(Default)]
pub struct Line {
    /// Every request about a device, in order.
    pub asked: Vec<chardev::Request>,
    pub written: Vec<u8>,
    /// Each read gets one.
    pub input: VecDeque<Vec<u8>>,
    /// The error of every request but `Close`.
    pub error: Option<Errno>,
    /// Most bytes that one write takes, if it is limited.
    pub most: Option<u64>,
    /// The reply to every open.
    pub opened: u64,
    /// What can be mapped: physical address and how it is reached.
    pub memory: Option<(u64, u64)>,
    /// Memory that an ioctl wants beside its argument, one piece after the other.
    pub further: Vec<(u64, u64)>,
    /// What a restarted vfs has open, by minor.
    pub uses: Vec<(u64, u64)>,
    waiting: Vec<Message>,
}

impl Line {
    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// The driver of the terminal: it looks at what waits again when it is notified.
pub struct Terminal(pub Arc<Mutex<Line>>);

impl Terminal {
    fn read(line: &mut Line, from: Endpoint, request: chardev::Read) -> Option<Result<u64, Errno>> {
        match line.input.pop_front() {
            Some(text) => {
                let bytes = text.len().min(request.bytes as usize);
                Some(copy::to_grant(from, request.grant, 0, &text[..bytes]).map(|()| bytes as u64))
            }
            None if request.flags & chardev::NONBLOCK != 0 => Some(Err(Errno::EAGAIN)),
            None => None,
        }
    }

    fn write(line: &mut Line, from: Endpoint, request: chardev::Write) -> Result<u64, Errno> {
        let mut bytes = std::vec![0; request.bytes.min(line.most.unwrap_or(u64::MAX)) as usize];
        copy::from_grant(from, request.grant, 0, &mut bytes)?;
        line.written.extend(&bytes);
        Ok(bytes.len() as u64)
    }

    /// Tells the last byte of its argument, counts the first one up, and returns what it was asked.
    fn control(from: Endpoint, request: chardev::Control) -> Result<u64, Errno> {
        let mut argument = [0; 256];
        copy::from_grant(from, request.grant, 0, &mut argument)?;
        copy::to_grant(from, request.grant, 0, &[argument[0] + 1, argument[255]])?;
        Ok(request.request)
    }

    fn read_at(line: &Line, from: Endpoint, request: chardev::ReadAt) -> Result<u64, Errno> {
        let start = line.written.len().min(request.position as usize);
        let bytes = (line.written.len() - start).min(request.bytes as usize);
        copy::to_grant(from, request.grant, 0, &line.written[start..start + bytes]).map(|()| bytes as u64)
    }

    fn write_at(line: &mut Line, from: Endpoint, request: chardev::WriteAt) -> Result<u64, Errno> {
        let start = line.written.len().min(request.position as usize);
        let bytes = (line.written.len() - start).min(request.bytes as usize);
        if bytes == 0 {
            return Err(Errno::ENOSPC);
        }
        copy::from_grant(from, request.grant, 0, &mut line.written[start..start + bytes]).map(|()| bytes as u64)
    }

    /// Counts up the first byte of each further piece of memory, and tells in the argument's first byte how often it has asked.
    fn go_on(from: Endpoint, request: chardev::Continue) -> Result<(), Errno> {
        let [argument, piece] = [0, 32].map(|shift| GrantId((request.grants >> shift) as u32));
        let mut byte = [0];
        copy::from_grant(from, piece, 0, &mut byte)?;
        copy::to_grant(from, piece, 0, &[byte[0] + 1])?;
        copy::to_grant(from, argument, 0, &[(request.request >> 32) as u8])
    }

    /// The replies with more than a result.
    fn further_reply(line: &Line, message: &Message, request: &chardev::Request) -> Option<Message> {
        let ask = |step: usize| line.further.get(step).map_or((0, 0), |piece| *piece);
        match (request, line.memory) {
            (chardev::Request::Map(map), Some((physical, caching))) => {
                Some(chardev::Map::reply(message, 0, physical + map.offset, caching))
            }
            (chardev::Request::Control(_), _) if !line.further.is_empty() => {
                let (address, bytes) = ask(0);
                Some(chardev::Control::reply(message, 0, address, bytes))
            }
            (chardev::Request::Continue(request), _) => {
                let (address, bytes) = ask((request.request >> 32) as usize);
                Some(match Terminal::go_on(message.source, *request) {
                    Ok(()) => chardev::Continue::reply(message, request.request & 0xffff, address, bytes),
                    Err(error) => message.reply(Err(error)),
                })
            }
            _ => None,
        }
    }

    fn set_uses(line: &mut Line, from: Endpoint, request: chardev::SetUses) -> Result<u64, Errno> {
        let mut bytes = std::vec![0; request.bytes as usize];
        copy::from_grant(from, request.grant, 0, &mut bytes)?;
        let mut words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        line.uses = std::iter::from_fn(|| words.next().zip(words.next())).collect();
        Ok(0)
    }

    fn poll(line: &Line, request: chardev::Poll) -> Option<u64> {
        const POLLIN: u64 = 1;
        const POLLOUT: u64 = 4;
        let ready = request.events & if line.input.is_empty() { POLLOUT } else { POLLIN | POLLOUT };
        (ready != 0 || request.now).then_some(ready)
    }

    /// `None`: it waits.
    fn result(line: &mut Line, from: Endpoint, request: chardev::Request) -> Option<Result<u64, Errno>> {
        use chardev::Request::*;
        match (request, line.error) {
            (Close(_), _) => Some(Ok(0)),
            (SetUses(request), _) => Some(Terminal::set_uses(line, from, request)),
            (_, Some(error)) => Some(Err(error)),
            (Read(request), _) => Terminal::read(line, from, request),
            (Write(request), _) => Some(Terminal::write(line, from, request)),
            (Control(request), _) => Some(Terminal::control(from, request)),
            (Map(_), _) => Some(Err(Errno::ENODEV)),
            (ReadAt(request), _) => Some(Terminal::read_at(line, from, request)),
            (WriteAt(request), _) => Some(Terminal::write_at(line, from, request)),
            (Poll(request), _) => Terminal::poll(line, request).map(Ok),
            _ => Some(Ok(line.opened)),
        }
    }
}

fn reply(request: &Message, result: Result<u64, Errno>) {
    let sent = ipc::send_nonblocking(request.source, &request.reply(result));
    assert!(matches!(sent, Ok(()) | Err(Errno::EDEADSRCDST)), "vfs waits for messages, or has died: {sent:?}");
}

impl server::Service for Terminal {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        let Ok(mut line) = self.0.lock() else { return SyncStep::Later };
        let Some(request) = chardev::Request::decode(message) else {
            return SyncStep::Done(message.reply(Err(Errno::ENOSYS)));
        };
        // Each vfs says at its start what is open.
        line.asked.extend(Some(request).filter(|request| !matches!(request, chardev::Request::SetUses(_))));
        if let chardev::Request::Cancel(chardev::Cancel { tag, .. }) = request {
            let cancelled = line.waiting.extract_if(.., |waiting| waiting.tag() == tag).next();
            cancelled.into_iter().for_each(|waiting| reply(&waiting, Err(Errno::EINTR)));
            return SyncStep::Later;
        }
        if let Some(reply) = Terminal::further_reply(&line, message, &request) {
            return SyncStep::Done(reply);
        }
        match Terminal::result(&mut line, message.source, request) {
            Some(result) => SyncStep::Done(message.reply(result)),
            None => {
                line.waiting.push(*message);
                SyncStep::Later
            }
        }
    }

    fn notified(&mut self, _: Endpoint) {
        let Ok(mut line) = self.0.lock() else { return };
        for message in std::mem::take(&mut line.waiting) {
            let Some(request) = chardev::Request::decode(&message) else { continue };
            match Terminal::result(&mut line, message.source, request) {
                Some(result) => reply(&message, result),
                None => line.waiting.push(message),
            }
        }
    }
}

/// A file system like that of /proc: links that come and go, by name and target, and a text that does not say how long it is.
pub struct Proc(pub Arc<Mutex<Vec<(String, String)>>>, pub u64);

impl Proc {
    pub const TEXT: &[u8] = b"how the system is";
    const ROOT: u64 = 1;
    const TEXT_NODE: u64 = 2;
    /// The directory of a process of the superuser, which has the links too.
    const PROCESS: u64 = fs::process_folder(1);
    const FIRST_LINK: u64 = 3;

    /// Kind and permissions, with the link count above.
    fn mode(node: u64) -> u64 {
        let mode = match node {
            Proc::ROOT | Proc::PROCESS => 0o040555,
            Proc::TEXT_NODE => 0o100444,
            _ => 0o120777,
        };
        mode | 1 << 32
    }

    fn find(links: &[(String, String)], name: &[u8]) -> Option<u64> {
        if name == b"text" {
            return Some(Proc::TEXT_NODE);
        }
        if name == b"1" {
            return Some(Proc::PROCESS);
        }
        let link = links.iter().position(|(known, _)| known.as_bytes() == name)?;
        Some(Proc::FIRST_LINK + link as u64)
    }

    fn stat(node: u64) -> Vec<u8> {
        let words = [0, node, 1, Proc::mode(node) & 0xffff_ffff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect()
    }

    fn give(to: Endpoint, grant: abi::GrantId, bytes: &[u8], room: u64) -> Result<u64, Errno> {
        let bytes = &bytes[..bytes.len().min(room as usize)];
        copy::to_grant(to, grant, 0, bytes).map(|()| bytes.len() as u64)
    }

    /// What is in the file `text`: what a link of this name says, if there is one.
    fn text(links: &[(String, String)]) -> &[u8] {
        let link = links.iter().find(|(name, _)| name == "text");
        link.map_or(Proc::TEXT, |(_, text)| text.as_bytes())
    }

    fn answer(&self, message: &Message, request: fs::Request) -> Result<Message, Errno> {
        let from = message.source;
        let links = self.0.lock().map_err(|_| Errno::EIO)?;
        let moved = match request {
            fs::Request::Mount(_) => {
                let root = Proc::ROOT;
                return Ok(fs::Mount::reply(message, self.1, root, Proc::mode(root), 0, 0, 0));
            }
            fs::Request::Lookup(fs::Lookup { grant, bytes, room, .. }) => {
                let mut name = std::vec![0; bytes as usize];
                copy::from_grant(from, grant, 0, &mut name)?;
                let node = Proc::find(&links, &name).ok_or(Errno::ENOENT)?;
                Proc::give(from, grant, &Proc::stat(node), room)?;
                return Ok(fs::Lookup::reply(message, 0, node, Proc::mode(node), 0, 0, 0));
            }
            fs::Request::Read(fs::Read { grant, position, bytes, .. }) => {
                let rest = Proc::text(&links).get(position as usize..).unwrap_or_default();
                Proc::give(from, grant, rest, bytes)?
            }
            fs::Request::ReadLink(fs::ReadLink { node, grant, bytes, reader }) => {
                let (name, target) = links.get((node - Proc::FIRST_LINK) as usize).ok_or(Errno::ENOENT)?;
                let length = Proc::give(from, grant, target.as_bytes(), bytes)?;
                // A link whose name is a number stands for a descriptor of the reader.
                let meant = name.parse().map(|descriptor| (reader & 0xffff_ffff, descriptor));
                let (pid, descriptor) = meant.unwrap_or((0, fs::LINK_OTHER));
                return Ok(fs::ReadLink::reply(message, length, pid, descriptor));
            }
            fs::Request::Stat(fs::Stat { node, grant }) => Proc::give(from, grant, &Proc::stat(node), u64::MAX)?,
            fs::Request::Put(_) | fs::Request::Sync(_) | fs::Request::Unmount(_) => 0,
            _ => return Err(Errno::ENOSYS),
        };
        Ok(message.reply(Ok(moved)))
    }
}

impl server::Service for Proc {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        let result =
            fs::Request::decode(message).ok_or(Errno::ENOSYS).and_then(|request| self.answer(message, request));
        SyncStep::Done(result.unwrap_or_else(|error| message.reply(Err(error))))
    }
}

/// A file as vm knows it: pages for programs, or shared memory.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    pub device: u64,
    pub inode: u64,
    pub version: u64,
    pub size: u64,
    /// From here on, what is not there is zeros.
    pub zeros: u64,
    /// By offset, what vfs has filled in or programs have written.
    pub filled: BTreeMap<u64, Vec<u8>>,
    /// Offsets that programs have changed.
    pub changed: Vec<u64>,
    /// Offsets that vfs is writing back.
    taken: Vec<u64>,
    /// vfs holds it.
    pub open: u32,
    pub mapped: bool,
    pub forgotten: bool,
}

/// What vm has, and what it wants of vfs.
#[derive(Default)]
pub struct Memory {
    pub images: Vec<Pages>,
    pub shared: Vec<Pages>,
    /// Mappings that wait: process, descriptor, offset, bytes, flags.
    pub wanted: Vec<(Endpoint, i32, u64, u64, u64)>,
    /// Image or shared file, error, may write.
    pub answered: Vec<(u64, i32, bool)>,
    /// Memory of devices that was mapped.
    pub devices: Vec<vm::DeviceMapDone>,
    pub unmapped: Vec<u64>,
    pub syncs: Vec<(Endpoint, u64)>,
    pub synced: Vec<i32>,
    /// How often it was told to forget an image.
    pub forgets: usize,
    /// It was told of a file that is freed.
    pub gone: bool,
    /// It has no memory for the page cache.
    pub is_short: bool,
    /// Where the page cache lies, and how many pages vfs has asked for.
    pub cache: Range<u64>,
    pub cache_pages: u64,
    cache_content: &'static [AtomicU64],
    /// Pages of the cache that are frames of shared files: the file's number, and the offset there.
    joined: BTreeMap<u64, (u64, u64)>,
    /// How many pages of the cache images have been shown.
    pub shown_pages: u64,
    /// Old and new sizes that it was told of.
    pub resizes: Vec<(u64, u64)>,
    /// Pages that it has mapped into programs, for which calls, and where.
    pub mapped_pages: Vec<(Endpoint, u64, u64)>,
    /// Those that it has unmapped, by call: a call that comes again unmaps nothing.
    pub unmapped_pages: BTreeMap<(Endpoint, u64), u64>,
    /// Images and shared files whose paths it was told, and how.
    pub names: Vec<(u64, Vec<u8>)>,
}

/// vm as vfs sees it. Numbers of images are odd, of shared files even, both one more than twice the index or two more.
pub struct Vm(pub Arc<Mutex<Memory>>);

pub const PAGE: u64 = 4096;
/// The address of the first page that vm maps into a program.
pub const MAPPED_PAGES: u64 = 0x700_0000;

impl Memory {
    /// Forgets the images of a file. Returns whether programs map any.
    fn forget(&mut self, device: u64, inode: u64) -> bool {
        let of_file = |pages: &&mut Pages| (pages.device, pages.inode) == (device, inode);
        let mut in_use = false;
        self.images.iter_mut().filter(of_file).for_each(|pages| {
            pages.forgotten = true;
            in_use |= pages.mapped;
        });
        in_use
    }

    fn pages(&mut self, number: u64) -> &mut Pages {
        let index = (number as usize - 1) / 2;
        if number % 2 == 1 { &mut self.images[index] } else { &mut self.shared[index] }
    }

    fn open(list: &mut Vec<Pages>, new: Pages) -> u64 {
        let same = |old: &Pages| (old.device, old.inode, old.version) == (new.device, new.inode, new.version);
        let known = list.iter().position(|old| same(old) && !old.forgotten);
        let index = known.unwrap_or_else(|| {
            list.push(new);
            list.len() - 1
        });
        list[index].open += 1;
        index as u64
    }

    /// The pages as they are now: a test for images that change with the cache has to be vm's.
    fn show(&mut self, request: vm::ImageShow) -> Result<(), Errno> {
        let vm::ImageShow { image, offset, first, bytes } = request;
        let words = &self.cache_content[(first * PAGE / 8) as usize..][..bytes.div_ceil(8) as usize];
        let mut content: Vec<u8> = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        content.truncate(bytes as usize);
        self.shown_pages += bytes.div_ceil(PAGE);
        for (page, content) in content.chunks(PAGE as usize).enumerate() {
            let at = offset + page as u64 * PAGE;
            self.pages(image).filled.insert(at, content.to_vec());
            if image.is_multiple_of(2) {
                self.joined.insert(first + page as u64, (image, at));
            }
        }
        Ok(())
    }

    fn show_shared(&mut self, request: vm::SharedShow) -> (u64, u64) {
        let vm::SharedShow { object, offset, first, pages } = request;
        let (mut shown, mut zeros) = (0, 0);
        for bit in 0..pages {
            let at = offset + bit * PAGE;
            let file = self.pages(object);
            if file.filled.contains_key(&at) {
                shown |= 1 << bit;
                self.joined.insert(first + bit, (object, at));
                self.join(object, at);
            } else if at >= file.zeros && at < file.size {
                zeros |= 1 << bit;
            }
        }
        (shown, zeros)
    }

    /// A page of a shared file is what its places in the cache are.
    fn join(&mut self, object: u64, offset: u64) {
        let content = self.pages(object).filled[&offset].clone();
        let places = self.joined.iter().filter(|(_, joined)| **joined == (object, offset)).map(|(place, _)| *place);
        for place in places {
            let words = &self.cache_content[(place * PAGE / 8) as usize..][..(PAGE / 8) as usize];
            for (index, word) in words.iter().enumerate() {
                let byte = |at: usize| content.get(at).copied().unwrap_or(0);
                let bytes = core::array::from_fn(|at| byte(index * 8 + at));
                word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
            }
        }
    }

    /// A program stores a byte to a page of a shared file that is there, or zeros.
    pub fn store(&mut self, object: u64, offset: u64, byte: u8) {
        let (start, within) = (offset / PAGE * PAGE, (offset % PAGE) as usize);
        let pages = self.pages(object);
        if start >= pages.zeros {
            pages.filled.entry(start).or_default();
        }
        let page = pages.filled.get_mut(&start).expect("is mapped");
        page.resize(page.len().max(within + 1), 0);
        page[within] = byte;
        pages.changed.push(start);
        self.join(object, start);
    }

    fn resize(&mut self, object: u64, bytes: u64) {
        let pages = self.pages(object);
        let end = pages.size.min(bytes);
        pages.zeros = pages.zeros.min(end.div_ceil(PAGE) * PAGE);
        pages.size = bytes;
        pages.filled.retain(|at, _| *at < bytes);
        pages.changed.retain(|at| *at < bytes);
        pages.taken.retain(|at| *at < bytes);
        if let Some(last) = pages.filled.get_mut(&(end / PAGE * PAGE)) {
            last.truncate((end % PAGE) as usize);
            self.join(object, end / PAGE * PAGE);
        }
    }

    fn missing(&mut self, request: vm::ImageMissing) -> (u64, u64) {
        let pages = self.pages(request.image);
        let end = (request.offset + request.bytes).min(pages.size);
        let starts = (request.offset / PAGE * PAGE..end).step_by(PAGE as usize);
        match starts.clone().find(|at| !pages.filled.contains_key(at)) {
            None => (0, 0),
            Some(start) => (PAGE.min(pages.size - start), start),
        }
    }
}

impl Vm {
    fn fill(&self, from: Endpoint, request: vm::ImageFill) -> Result<u64, Errno> {
        let mut bytes = std::vec![0; request.bytes as usize];
        copy::from_grant(from, request.grant, 0, &mut bytes)?;
        let mut memory = self.0.lock().map_err(|_| Errno::EIO)?;
        for (index, page) in bytes.chunks(PAGE as usize).enumerate() {
            memory.pages(request.image).filled.insert(request.offset + index as u64 * PAGE, page.to_vec());
        }
        Ok(0)
    }

    fn set_name(&self, from: Endpoint, request: vm::FileName) -> Result<(), Errno> {
        let mut name = std::vec![0; request.bytes as usize];
        copy::from_grant(from, request.grant, 0, &mut name)?;
        self.0.lock().map_err(|_| Errno::EIO)?.names.push((request.object, name));
        Ok(())
    }

    fn take(&self, message: &Message, request: vm::SharedTake) -> Result<Message, Errno> {
        let mut memory = self.0.lock().map_err(|_| Errno::EIO)?;
        let pages = memory.pages(request.object);
        if pages.forgotten {
            return Err(Errno::EINVAL);
        }
        let is_within = |at: &u64| *at < request.end && at + PAGE > request.offset;
        let first = pages.changed.iter().chain(&pages.taken).copied().filter(is_within).min();
        let Some(offset) = first else { return Ok(vm::SharedTake::reply(message, 0, 0)) };
        pages.changed.retain(|at| *at != offset);
        pages.taken.push(offset);
        let mut page = pages.filled[&offset].clone();
        page.resize(PAGE.min(pages.size - offset) as usize, 0);
        copy::to_grant(message.source, request.grant, 0, &page)?;
        Ok(vm::SharedTake::reply(message, page.len() as u64, offset))
    }

    fn update(&self, from: Endpoint, request: vm::SharedUpdate) -> Result<u64, Errno> {
        let mut bytes = std::vec![0; request.bytes as usize];
        copy::from_grant(from, request.grant, 0, &mut bytes)?;
        let mut memory = self.0.lock().map_err(|_| Errno::EIO)?;
        if request.size > memory.pages(request.object).size {
            memory.resize(request.object, request.size);
        }
        let end = request.offset + bytes.len() as u64;
        for (at, byte) in (request.offset..).zip(bytes) {
            let pages = memory.pages(request.object);
            let (start, within) = (at / PAGE * PAGE, (at % PAGE) as usize);
            if let Some(page) = pages.filled.get_mut(&start) {
                page.resize(page.len().max(within + 1), 0);
                page[within] = byte;
            } else if at >= pages.zeros {
                pages.filled.insert(start, std::vec![0; within + 1]);
                pages.filled.entry(start).and_modify(|page| page[within] = byte);
            }
        }
        for start in (request.offset / PAGE * PAGE..end).step_by(PAGE as usize) {
            let pages = memory.pages(request.object);
            if pages.taken.contains(&start) {
                // What was taken may come to the file after what was written.
                pages.changed.push(start);
            }
            if pages.filled.contains_key(&start) {
                memory.join(request.object, start);
            }
        }
        Ok(0)
    }

    fn answer(&self, message: &Message, request: vm::Request) -> Result<Message, Errno> {
        use vm::Request::*;
        match request {
            ImageFill(request) => return self.fill(message.source, request).map(|value| message.reply(Ok(value))),
            SharedTake(request) => return self.take(message, request),
            SharedUpdate(request) => return self.update(message.source, request).map(|value| message.reply(Ok(value))),
            FileName(request) => return self.set_name(message.source, request).map(|()| message.reply(Ok(0))),
            _ => {}
        }
        let mut memory = self.0.lock().map_err(|_| Errno::EIO)?;
        match request {
            ImageOpen(vm::ImageOpen { device, inode, version, bytes }) => {
                let new = Pages { device, inode, version, size: bytes, ..Pages::default() };
                let index = Memory::open(&mut memory.images, new);
                return Ok(vm::ImageOpen::reply(message, 0, 2 * index + 1, false));
            }
            SharedOpen(vm::SharedOpen { device, inode, bytes }) => {
                let zeros = bytes.div_ceil(PAGE) * PAGE;
                let new = Pages { device, inode, size: bytes, zeros, ..Pages::default() };
                let index = Memory::open(&mut memory.shared, new);
                return Ok(vm::SharedOpen::reply(message, 0, 2 * index + 2, false));
            }
            ImageMissing(request) => {
                let (bytes, offset) = memory.missing(request);
                return Ok(vm::ImageMissing::reply(message, bytes, offset));
            }
            ImageClose(request) => memory.pages(request.image).open -= 1,
            ClaimImages(request) => {
                let mut list = std::vec![0; request.images as usize * 8];
                if !list.is_empty() {
                    copy::from_grant(message.source, request.grant, 0, &mut list)?;
                }
                memory.images.iter_mut().for_each(|pages| pages.open = 0);
                let numbers = list.chunks(8).map(|number| u64::from_le_bytes(number.try_into().unwrap()));
                numbers.for_each(|number| memory.pages(number).open += 1);
            }
            ImageForget(vm::ImageForget { device, inode, gone }) => {
                let in_use = memory.forget(device, inode);
                memory.forgets += 1;
                memory.gone |= gone;
                return Ok(vm::ImageForget::reply(message, 0, in_use));
            }
            ImageResize(request) => {
                let in_use = memory.forget(request.device, request.inode);
                memory.resizes.push((request.old_bytes, request.bytes));
                return Ok(vm::ImageResize::reply(message, 0, in_use));
            }
            FileMapDone(request) => {
                memory.answered.push((request.image, request.error, request.may_write));
                if request.error == 0 && request.image > 0 {
                    memory.pages(request.image).mapped = true;
                }
            }
            DeviceMapDone(request) => memory.devices.push(request),
            SharedWritten(request) => memory.pages(request.object).taken.retain(|at| *at != request.offset),
            SharedResize(request) => memory.resize(request.object, request.bytes),
            SharedShow(request) => {
                let (shown, zeros) = memory.show_shared(request);
                return Ok(vm::SharedShow::reply(message, 0, shown, zeros));
            }
            SharedClose(request) => {
                let pages = memory.pages(request.object);
                let differs = !pages.changed.is_empty() || !pages.taken.is_empty();
                if pages.mapped || !request.lose && differs {
                    return Err(Errno::EBUSY);
                }
                (pages.open, pages.forgotten) = (0, true);
            }
            SyncDone(request) => memory.synced.push(request.error),
            NextFileMap(_) if !memory.wanted.is_empty() => {
                let (process, descriptor, offset, bytes, flags) = memory.wanted.remove(0);
                return Ok(vm::NextFileMap::reply(message, 0, process, descriptor, offset, bytes, flags));
            }
            NextUnmapped(_) if !memory.unmapped.is_empty() => {
                let object = memory.unmapped.remove(0);
                return Ok(vm::NextUnmapped::reply(message, 0, object));
            }
            NextSync(_) if !memory.syncs.is_empty() => {
                let (process, object) = memory.syncs.remove(0);
                return Ok(vm::NextSync::reply(message, 0, process, object));
            }
            NextShared(request) => {
                let numbers = (2..).step_by(2).zip(&memory.shared);
                let mut next = numbers.filter(|(number, file)| *number > request.after && !file.forgotten);
                let (number, file) = next.next().ok_or(Errno::ENOENT)?;
                return Ok(vm::NextShared::reply(message, 0, number, file.device, file.inode));
            }
            NextFileMap(_) | NextUnmapped(_) | NextSync(_) => return Err(Errno::ENOENT),
            CacheOpen(request) => {
                let cache = Vec::leak((0..request.pages * PAGE / 8).map(|_| AtomicU64::new(0)).collect());
                memory.cache_content = cache;
                let address = cache.as_ptr() as u64;
                memory.cache = address..address + request.pages * PAGE;
                return Ok(vm::CacheOpen::reply(message, 0, address));
            }
            ImageShow(request) => return memory.show(request).map(|()| message.reply(Ok(0))),
            CacheTake(_) if memory.is_short => return Err(Errno::ENOMEM),
            CacheTake(request) => {
                memory.cache_pages += request.pages;
                memory.joined.retain(|page, _| *page < request.first || *page >= request.first + request.pages);
            }
            PageMap(request) => {
                let known = memory.mapped_pages.iter().find(|page| (page.0, page.1) == (request.process, request.call));
                let next = MAPPED_PAGES + memory.mapped_pages.len() as u64 * PAGE;
                let address = known.map_or(next, |page| page.2);
                if known.is_none() {
                    memory.mapped_pages.push((request.process, request.call, address));
                }
                return Ok(vm::PageMap::reply(message, 0, address));
            }
            PageUnmap(request) => {
                memory.unmapped_pages.entry((request.process, request.call)).or_insert(request.address);
            }
            MemoryInfo(_) => return Ok(vm::MemoryInfo::reply(message, 0, 1 << 28, 1 << 27, 0, 0)),
            _ => return Err(Errno::ENOSYS),
        }
        Ok(message.reply(Ok(0)))
    }
}

impl server::Service for Vm {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        let result =
            vm::Request::decode(message).ok_or(Errno::ENOSYS).and_then(|request| self.answer(message, request));
        SyncStep::Done(result.unwrap_or_else(|error| message.reply(Err(error))))
    }
}
