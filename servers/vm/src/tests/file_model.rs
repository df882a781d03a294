//! Random operations on a file that programs map shared, compared with a model: what programs see, and that vfs gets all that they have changed.

use super::shared_files::{ask, open, resize, take};
use super::*;
use crate::simulation::grant;
use abi::{Errno, Message, linux::nr};
use std::collections::BTreeMap;

const PAGES: u64 = 40;
const PROCESSES: usize = 3;

/// Where a program maps a part of the file.
#[derive(Clone, Copy)]
struct View {
    at: u64,
    /// The page of the file that it begins with.
    first: u64,
    pages: u64,
    may_write: bool,
}

struct Run {
    server: Server<Simulation>,
    random: Random,
    object: u64,
    /// What the file is.
    content: Vec<u8>,
    /// What its file system has.
    disk: Vec<u8>,
    views: BTreeMap<usize, Vec<View>>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let (mut server, _) = with_program(2000);
        let content = files::content(5 * P + 100);
        let object = open(&mut server, content.len() as u64);
        let views = BTreeMap::from([(0, Vec::new())]);
        Run { server, random: Random(seed), object, disk: content.clone(), content, views }
    }

    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn process(&mut self) -> usize {
        let index = self.random.below(self.views.len() as u64) as usize;
        *self.views.keys().nth(index).expect("one always lives")
    }

    fn view(&mut self, process: usize) -> Option<View> {
        let index = self.random.below(8) as usize;
        self.views[&process].get(index).copied()
    }

    fn step(&mut self) {
        let process = self.process();
        match self.random.below(24) {
            0 | 1 => self.map(process),
            2 => self.unmap(process),
            3 => self.fork(process),
            4 if self.views.len() > 1 => {
                exit(&mut self.server, program(process)).expect("it lives");
                self.views.remove(&process);
            }
            5 | 6 => self.write_back(true),
            7 => self.write_back(false),
            8 | 9 => self.write(),
            10 => self.resize(),
            11 => self.server.recover(|_| true),
            _ => (0..10).for_each(|_| self.touch(process)),
        }
    }

    /// As vfs does: what is missing is brought, and then it is mapped.
    fn map(&mut self, process: usize) {
        let (first, pages, may_write) = (self.random.below(PAGES), 1 + self.random.below(20), self.random.below(3) > 0);
        if self.views[&process].len() == 8 {
            return;
        }
        let rights = if may_write { READ | WRITE } else { READ };
        let mut message = Message { source: program(process), ..Message::new(nr::MMAP) };
        message.words[..6].copy_from_slice(&[0, pages * P, rights, SHARED, 3, first * P]);
        assert_eq!(self.server.handle(&message).done(), None);
        ask(&mut self.server, vm::NextFileMap {}.message()).expect("somebody waits");
        self.bring(first * P, (first + pages) * P);
        let done = vm::FileMapDone { process: program(process), image: self.object, error: 0, may_write: true };
        ask(&mut self.server, done.message()).expect("somebody waits");
        let (_, reply) = self.server.memory.kernel.answers.pop().expect("an answer");
        let at = reply.result().expect("mapped");
        self.views.get_mut(&process).expect("it lives").push(View { at, first, pages, may_write });
    }

    fn bring(&mut self, mut at: u64, end: u64) {
        while at < end.min(self.size()) {
            let missing = vm::ImageMissing { image: self.object, offset: at, bytes: end - at };
            let reply = ask(&mut self.server, missing.message()).expect("an object");
            let bytes = reply.words[0];
            if bytes == 0 {
                return;
            }
            let start = vm::ImageMissing::results(&reply).expect("an offset");
            let data = self.disk[start as usize..(start + bytes) as usize].to_vec();
            let grant = grant(&mut self.server, data);
            let fill = vm::ImageFill { image: self.object, offset: start, grant, bytes };
            ask(&mut self.server, fill.message()).expect("within the file");
            at = start + bytes;
        }
    }

    fn unmap(&mut self, process: usize) {
        let Some(view) = self.view(process) else { return };
        let arguments = [view.at, view.pages * P, 0, 0, 0, 0];
        assert_eq!(self.server.call(program(process), nr::MUNMAP, arguments), Ok(0));
        self.views.get_mut(&process).expect("it lives").retain(|other| other.at != view.at);
    }

    fn fork(&mut self, process: usize) {
        let Some(child) = (0..PROCESSES).find(|number| !self.views.contains_key(number)) else { return };
        fork(&mut self.server, program(process), program(child)).expect("enough memory");
        let views = self.views[&process].clone();
        self.views.insert(child, views);
    }

    /// Takes what has changed in a part of the file, and says that it `is_written`, or dies before that. A program may store meanwhile.
    fn write_back(&mut self, is_written: bool) {
        let start = self.random.below(PAGES * P);
        let end = start + 1 + self.random.below(PAGES * P);
        let Some((offset, data)) = take(&mut self.server, self.object, start, end) else { return };
        let range = offset as usize..offset as usize + data.len();
        assert!(data == self.content[range.clone()], "what vfs gets of {range:?}");
        self.disk[range].copy_from_slice(&data);
        if self.random.below(2) == 0 {
            let process = self.process();
            (0..5).for_each(|_| self.touch(process));
        }
        if is_written {
            let written = vm::SharedWritten { object: self.object, offset, bytes: data.len() as u64 };
            ask(&mut self.server, written.message()).expect("an object");
        }
    }

    /// A program calls `write`: the file system has it, and then vm.
    fn write(&mut self) {
        let offset = self.random.below(self.size() + 2 * P).min(PAGES * P - 1);
        let bytes = (1 + self.random.below(3 * P)).min(PAGES * P - offset);
        let data = vec![self.random.below(256) as u8; bytes as usize];
        let (start, end) = (offset as usize, (offset + bytes) as usize);
        for copy in [&mut self.content, &mut self.disk] {
            copy.resize(copy.len().max(end), 0);
            copy[start..end].copy_from_slice(&data);
        }
        let (object, size, grant) = (self.object, self.size(), grant(&mut self.server, data));
        let update = vm::SharedUpdate { object, offset, grant, bytes, size };
        ask(&mut self.server, update.message()).expect("within the file");
    }

    fn resize(&mut self) {
        let bytes = self.random.below(PAGES * P);
        resize(&mut self.server, self.object, bytes);
        self.content.resize(bytes as usize, 0);
        self.disk.resize(bytes as usize, 0);
    }

    fn touch(&mut self, process: usize) {
        let Some(view) = self.view(process) else { return };
        let within = self.random.below(view.pages * P);
        let (address, at) = (view.at + within, view.first * P + within);
        let (is_write, value) = (self.random.below(2) == 0, self.random.below(256) as u8);
        let is_there = at < self.size().next_multiple_of(P);
        if is_write {
            let expected = match (view.may_write, is_there) {
                (false, _) => Err(Errno::EACCES),
                (true, false) => Err(Errno::EIO),
                (true, true) => Ok(()),
            };
            // vm has of the file what was brought for a mapping.
            self.bring(at / P * P, at + 1);
            assert_eq!(self.server.store(program(process), address, value), expected, "at {at:#x}");
            if let (Ok(()), Some(byte)) = (expected, self.content.get_mut(at as usize)) {
                *byte = value;
            }
            return;
        }
        self.bring(at / P * P, at + 1);
        let seen = self.server.load(program(process), address);
        match self.content.get(at as usize) {
            Some(byte) => assert_eq!(seen, Ok(*byte), "at {at:#x}"),
            None => assert_eq!(seen.map(drop), if is_there { Ok(()) } else { Err(Errno::EIO) }, "at {at:#x}"),
        }
    }

    fn finish(mut self) {
        while let Some((offset, data)) = take(&mut self.server, self.object, 0, u64::MAX) {
            self.disk[offset as usize..offset as usize + data.len()].copy_from_slice(&data);
            let written = vm::SharedWritten { object: self.object, offset, bytes: data.len() as u64 };
            ask(&mut self.server, written.message()).expect("an object");
        }
        assert!(self.disk == self.content, "something was not written back");
        for process in core::mem::take(&mut self.views).into_keys() {
            exit(&mut self.server, program(process)).expect("it lives");
        }
        ask(&mut self.server, vm::SharedClose { object: self.object, lose: false }.message()).expect("nobody maps it");
        invariants::check(&self.server);
        let used = self.server.memory.frames.total() - self.server.memory.frames.free();
        assert_eq!(used as u64, self.server.memory.own_frames(), "frames are lost");
    }
}

#[test]
fn a_mapped_file_is_what_the_model_says() {
    for seed in 1..30 {
        let mut run = Run::new(seed);
        for step in 0..400 {
            run.step();
            if step % 10 == 0 {
                invariants::check(&run.server);
            }
        }
        run.finish();
    }
}
