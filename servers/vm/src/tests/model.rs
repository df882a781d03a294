//! Random operations of several processes, compared with a model that knows nothing of frames, faults or copies: what programs see, and what vm
//! tells of their mappings.

use super::*;
use crate::simulation::Touch;
use abi::{Errno, GrantId, linux::nr, vm::MapRecord};
use std::collections::BTreeMap;
use zerocopy::FromBytes;

const ARENA_PAGE: u64 = 0x100;
const ARENA_PAGES: u64 = 160;
const PROCESSES: usize = 6;
/// The byte of each page that is looked at.
const OFFSET: u64 = 123;
const MAY_MOVE: u64 = 1;
const DONT_NEED: u64 = 4;
/// Of a record of a mapping.
const IS_SHARED: u32 = 8;
/// Records that are asked for at a time.
const RECORDS: usize = 16;

/// What a fork makes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnFork {
    Copy,
    Leave,
    Wipe,
}

/// A page as a program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ModelPage {
    rights: u64,
    /// Which shared memory, and which page of it.
    shared: Option<(usize, u64)>,
    value: u8,
    on_fork: OnFork,
}

#[derive(Default)]
struct Model {
    processes: BTreeMap<usize, BTreeMap<u64, ModelPage>>,
    shared: BTreeMap<(usize, u64), u8>,
    objects: usize,
}

struct Run {
    server: Server<Simulation>,
    model: Model,
    random: Random,
    /// `ENOMEM` may come at any time.
    is_short: bool,
}

impl Run {
    fn new(frames: u32, seed: u64, is_short: bool) -> Run {
        let (mut server, _) = with_program(frames);
        let rights = vm::SetRights { process: Endpoint::new(slot::PM, 1), dma_bytes: 0, inspects_memory: true };
        server.ask(slot::RS, rights.message()).result().expect("allowed");
        let mut model = Model::default();
        model.processes.insert(0, BTreeMap::new());
        Run { server, model, random: Random(seed), is_short }
    }

    fn pick_process(&mut self) -> usize {
        let index = self.random.below(self.model.processes.len() as u64) as usize;
        *self.model.processes.keys().nth(index).expect("never empty")
    }

    fn pick_range(&mut self) -> (u64, u64) {
        let pages = 1 + self.random.below(20);
        (ARENA_PAGE + self.random.below(ARENA_PAGES - 20), pages)
    }

    fn pages(&mut self, process: usize) -> &mut BTreeMap<u64, ModelPage> {
        self.model.processes.get_mut(&process).expect("exists")
    }

    fn step(&mut self) {
        let process = self.pick_process();
        match self.random.below(18) {
            0 => self.map(process, false),
            1 => self.map(process, true),
            2 => self.unmap(process),
            3 | 4 => self.protect(process),
            5 => self.fork(process),
            6 if self.model.processes.len() > 2 => self.exit(process),
            7 => self.discard(process),
            8 => self.remap(process),
            9 => self.advise_on_fork(process),
            10 => self.compare_mappings(process),
            _ => (0..10).for_each(|_| self.touch(process)),
        }
    }

    /// Compares results, but for the shortage of memory. True: it was done.
    fn agree(&self, result: Result<u64, Errno>, expected: Result<(), Errno>) -> bool {
        if self.is_short && result == Err(Errno::ENOMEM) {
            return false;
        }
        assert_eq!(result.map(drop), expected);
        expected.is_ok()
    }

    fn map(&mut self, process: usize, shared: bool) {
        let (page, pages) = self.pick_range();
        let rights = self.random.below(4);
        let flags = ANONYMOUS | FIXED | if shared { SHARED } else { PRIVATE };
        let result = self.server.call(program(process), nr::MMAP, [page * P, pages * P, rights, flags, 0, 0]);
        if self.agree(result, Ok(())) {
            self.model.objects += 1;
            let object = self.model.objects;
            for index in 0..pages {
                let shared = shared.then_some((object, index));
                let new = ModelPage { rights, shared, value: 0, on_fork: OnFork::Copy };
                self.pages(process).insert(page + index, new);
            }
        }
    }

    fn unmap(&mut self, process: usize) {
        let (page, pages) = self.pick_range();
        let result = self.server.call(program(process), nr::MUNMAP, [page * P, pages * P, 0, 0, 0, 0]);
        if self.agree(result, Ok(())) {
            self.pages(process).retain(|&other, _| other < page || other >= page + pages);
        }
    }

    fn protect(&mut self, process: usize) {
        let (page, pages) = self.pick_range();
        let rights = self.random.below(8);
        let reached = (page..page + pages).find(|page| !self.pages(process).contains_key(page)).unwrap_or(page + pages);
        // When memory is short, the error does not tell whether there was a hole, before which the rights have changed.
        let pages = if self.is_short { reached - page } else { pages };
        let expected = if reached == page + pages { Ok(()) } else { Err(Errno::ENOMEM) };
        let result = self.server.call(program(process), nr::MPROTECT, [page * P, pages * P, rights, 0, 0, 0]);
        if self.agree(result, expected) || !self.is_short {
            self.pages(process).range_mut(page..reached).for_each(|(_, page)| page.rights = rights);
        }
    }

    fn fork(&mut self, process: usize) {
        let Some(child) = (0..PROCESSES).find(|number| !self.model.processes.contains_key(number)) else { return };
        let result = fork(&mut self.server, program(process), program(child));
        if self.agree(result.map(|()| 0), Ok(())) {
            let mut pages = self.pages(process).clone();
            pages.retain(|_, page| page.on_fork != OnFork::Leave);
            pages.values_mut().filter(|page| page.on_fork == OnFork::Wipe).for_each(|page| page.value = 0);
            self.model.processes.insert(child, pages);
        }
    }

    fn exit(&mut self, process: usize) {
        exit(&mut self.server, program(process)).expect("it was there");
        self.model.processes.remove(&process);
    }

    fn discard(&mut self, process: usize) {
        let (page, pages) = self.pick_range();
        let covered = (page..page + pages).all(|page| self.pages(process).contains_key(&page));
        let expected = if covered { Ok(()) } else { Err(Errno::ENOMEM) };
        let result = self.server.call(program(process), nr::MADVISE, [page * P, pages * P, DONT_NEED, 0, 0, 0]);
        if self.agree(result, expected) {
            self.pages(process).range_mut(page..page + pages).for_each(|(_, page)| page.value = 0);
        }
    }

    fn advise_on_fork(&mut self, process: usize) {
        let (page, pages) = self.pick_range();
        let index = self.random.below(4) as usize;
        let (advice, on_fork) =
            [(10, OnFork::Leave), (11, OnFork::Copy), (18, OnFork::Wipe), (19, OnFork::Copy)][index];
        let model = self.pages(process);
        let is_covered = (page..page + pages).all(|page| model.contains_key(&page));
        let has_shared = model.range(page..page + pages).any(|(_, page)| page.shared.is_some());
        let expected = match (is_covered, on_fork == OnFork::Wipe && has_shared) {
            (false, _) => Err(Errno::ENOMEM),
            (true, true) => Err(Errno::EINVAL),
            (true, false) => Ok(()),
        };
        let result = self.server.call(program(process), nr::MADVISE, [page * P, pages * P, advice, 0, 0, 0]);
        if self.agree(result, expected) {
            self.pages(process).range_mut(page..page + pages).for_each(|(_, page)| page.on_fork = on_fork);
        }
    }

    /// What vm tells of the mappings of a program.
    fn compare_mappings(&mut self, process: usize) {
        let (grant, bytes) = (GrantId(0), RECORDS * size_of::<MapRecord>());
        let mut told = BTreeMap::new();
        let mut first = 0;
        loop {
            self.server.memory.kernel.grants.insert(grant.0, vec![0; bytes]);
            let maps = vm::Maps { process: program(process), first, grant, bytes: bytes as u64 };
            let result = self.server.ask(slot::PM, maps.message()).result();
            if self.is_short && result == Err(Errno::ENOMEM) {
                return;
            }
            let records = &self.server.memory.kernel.grants[&grant.0][..result.expect("allowed") as usize];
            if records.is_empty() {
                break;
            }
            for record in records.chunks(size_of::<MapRecord>()) {
                let record = MapRecord::read_from_bytes(record).expect("a record");
                told.extend((record.start / P..record.end / P).map(|page| (page, record.protection)));
                first += 1;
            }
        }
        let protection = |page: &ModelPage| page.rights as u32 | if page.shared.is_some() { IS_SHARED } else { 0 };
        let expected = self.pages(process).iter().map(|(number, page)| (*number, protection(page)));
        assert!(told.into_iter().eq(expected), "the mappings of {process}");
    }

    /// vm decides whether and where to; the model checks that the content comes along.
    fn remap(&mut self, process: usize) {
        let (page, pages) = self.pick_range();
        let new_pages = 1 + self.random.below(20);
        let arguments = [page * P, pages * P, new_pages * P, MAY_MOVE, 0, 0];
        let Ok(to) = self.server.call(program(process), nr::MREMAP, arguments) else { return };
        let model = self.pages(process);
        let old: Vec<ModelPage> = (page..page + pages).map(|page| *model.get(&page).expect("mapped")).collect();
        model.retain(|&other, _| other < page || other >= page + pages);
        for index in 0..new_pages {
            let new = old.get(index as usize).copied().unwrap_or(ModelPage {
                shared: old[0].shared.map(|(object, first)| (object, first + index)),
                value: 0,
                ..old[0]
            });
            assert!(model.insert(to / P + index, new).is_none(), "mremap has hit something");
        }
    }

    fn touch(&mut self, process: usize) {
        let known = self.pages(process).len() as u64;
        let any = ARENA_PAGE + self.random.below(ARENA_PAGES);
        let page = match self.random.below(8) {
            0 => any,
            _ if known == 0 => any,
            _ => {
                let index = self.random.below(known) as usize;
                *self.pages(process).keys().nth(index).expect("counted")
            }
        };
        let address = page * P + OFFSET;
        if self.random.below(2) == 0 { self.load(process, page, address) } else { self.store(process, page, address) }
    }

    fn load(&mut self, process: usize, page: u64, address: u64) {
        let expected = match self.pages(process).get(&page).copied() {
            Some(page) if page.rights != 0 => Ok(self.value(&page)),
            Some(_) => Err(Errno::EACCES),
            None => Err(Errno::EFAULT),
        };
        let seen = self.server.touch(program(process), address, Touch::Read);
        assert!(seen == expected || self.is_short && seen == Err(Errno::ENOMEM), "{seen:?}, not {expected:?}");
    }

    fn store(&mut self, process: usize, page: u64, address: u64) {
        let value = self.random.below(256) as u8;
        let mapped = self.pages(process).get(&page).copied();
        let target = mapped.filter(|page| page.rights & WRITE != 0);
        let refusal = if mapped.is_some() { Errno::EACCES } else { Errno::EFAULT };
        let expected = if target.is_some() { Ok(()) } else { Err(refusal) };
        let result = self.server.store(program(process), address, value);
        if !self.agree(result.map(|()| 0), expected) {
            return;
        }
        match target.and_then(|page| page.shared) {
            Some(place) => drop(self.model.shared.insert(place, value)),
            None => self.pages(process).get_mut(&page).expect("a target").value = value,
        }
    }

    fn value(&self, page: &ModelPage) -> u8 {
        match page.shared {
            Some(place) => self.model.shared.get(&place).copied().unwrap_or(0),
            None => page.value,
        }
    }

    fn finish(mut self) {
        let left: Vec<usize> = self.model.processes.keys().copied().collect();
        left.into_iter().for_each(|process| self.exit(process));
        invariants::check(&self.server);
        let used = self.server.memory.frames.total() - self.server.memory.frames.free();
        assert_eq!(used as u64, self.server.memory.own_frames(), "frames are lost");
    }
}

#[test]
fn memory_behaves_as_the_model_says() {
    for seed in 1..40 {
        let mut run = Run::new(4096, seed, false);
        for step in 0..600 {
            run.step();
            if step % 10 == 0 {
                invariants::check(&run.server);
            }
        }
        run.finish();
    }
}

#[test]
fn shortage_of_memory_harms_nobody() {
    let mut refused = 0;
    for seed in 1..40 {
        let mut run = Run::new(330, seed, true);
        for step in 0..600 {
            run.step();
            refused += usize::from(run.server.memory.frames.free() <= 192);
            if step % 10 == 0 {
                invariants::check(&run.server);
            }
        }
        run.finish();
    }
    assert!(refused > 1000, "memory was short only {refused} times");
}
