//! A machine made of maps: memory by pages, ports and lines that remember what was done to them, a clock that tests
//! turn.

use std::collections::{BTreeMap, BTreeSet};

use abi::{
    Errno, Message,
    info::{self, KernelInfo},
    kernel::{ACCESS_PRESENT, ACCESS_WRITE},
    layout::{PAGE_BYTES, USER_END, map},
    registers::EXTENDED_BYTES,
    trace::Record,
};
use kernel_core::{
    Frame, Machine, Space,
    machine::{Copied, Fault, Mapped, Memory, Msi, Renewal, Side},
};

pub const PAGE: u64 = 4096;
/// Steps in which vm and rs are started again.
const RENEWAL_STEPS: u64 = 3;

/// Where a space's page lies, and its rights.
#[derive(Clone, Copy)]
pub struct Mapping {
    pub frame: u64,
    pub flags: u64,
}

#[derive(Default)]
pub struct Fake {
    /// One tick is one nanosecond.
    pub now: u64,
    pub armed: Option<u64>,
    /// Interrupts seem to wait after this many polls; `None`: never.
    pub polls_until_interrupt: Option<u64>,
    pub frames: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
    pub spaces: BTreeMap<u16, BTreeMap<u64, Mapping>>,
    /// Page tables that may still be made.
    pub pool: u64,
    pub extended: BTreeMap<usize, [u8; EXTENDED_BYTES]>,
    pub ports: BTreeMap<u16, u32>,
    pub port_log: Vec<(u16, u64, u32)>,
    pub changed_rights: Vec<usize>,
    pub unmasked: BTreeSet<usize>,
    pub opened: BTreeSet<usize>,
    pub console: Vec<u8>,
    pub records: Vec<Record>,
    /// vm or rs, and why it was started again.
    pub renewed: Vec<(usize, Message)>,
    pub can_renew: bool,
    /// Bytes of each copy, and pages of each change of a space: what is done between two preemption points.
    pub chunks: Vec<u64>,
    pub command_line: Vec<u8>,
}

impl Fake {
    pub fn map(&mut self, space: u16, address: u64, frame: u64, flags: u64) {
        self.frames.entry(frame).or_insert_with(|| Box::new([0; PAGE as usize]));
        self.spaces.entry(space).or_default().insert(address, Mapping { frame, flags });
    }

    pub fn peek(&mut self, space: u16, address: u64, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes];
        self.read(Space(space), address, &mut out).expect("mapped");
        out
    }

    pub fn poke(&mut self, space: u16, address: u64, bytes: &[u8]) {
        self.write(Space(space), address, bytes).expect("mapped and writable");
    }

    fn find(&self, space: Space, address: u64, write: bool) -> Result<u64, Fault> {
        let access = if write { ACCESS_WRITE } else { 0 };
        let page = address / PAGE * PAGE;
        match self.spaces.get(&space.0).and_then(|pages| pages.get(&page)) {
            None => Err(Fault { address, access }),
            Some(mapping) if mapping.flags & map::NONE != 0 || write && mapping.flags & map::WRITE == 0 => {
                Err(Fault { address, access: access | ACCESS_PRESENT })
            }
            Some(mapping) => Ok(mapping.frame + address % PAGE),
        }
    }

    /// Bytes of one frame.
    fn bytes(&mut self, physical: u64, count: usize) -> &mut [u8] {
        let frame = self.frames.get_mut(&(physical / PAGE * PAGE)).expect("a frame of RAM");
        &mut frame[(physical % PAGE) as usize..][..count]
    }
}

impl Machine for Fake {
    fn ticks(&mut self) -> u64 {
        self.now
    }
    fn ticks_to_ns(&self, ticks: u64) -> u64 {
        ticks
    }
    fn ns_to_ticks(&self, duration_ns: u64) -> u64 {
        duration_ns
    }
    fn arm_timer(&mut self, deadline: u64) {
        self.armed = (deadline != u64::MAX).then_some(deadline);
    }
    fn interrupt_pending(&mut self) -> bool {
        match &mut self.polls_until_interrupt {
            None => false,
            Some(0) => true,
            Some(polls) => {
                *polls -= 1;
                *polls == 0
            }
        }
    }

    fn copy(&mut self, from: Space, from_address: u64, to: Space, to_address: u64, bytes: u64) -> Copied {
        assert!(bytes <= kernel_core::CHUNK_BYTES);
        self.chunks.push(bytes);
        for done in 0..bytes {
            let source = match self.find(from, from_address + done, false) {
                Ok(physical) => physical,
                Err(fault) => return Copied { bytes: done, fault: Some((Side::From, fault)) },
            };
            let target = match self.find(to, to_address + done, true) {
                Ok(physical) => physical,
                Err(fault) => return Copied { bytes: done, fault: Some((Side::To, fault)) },
            };
            self.bytes(target, 1)[0] = self.bytes(source, 1)[0];
        }
        Copied { bytes, fault: None }
    }
    fn word(&mut self, space: Space, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        let fits = address % PAGE_BYTES <= PAGE_BYTES - 8 && address < USER_END;
        (fits && self.read(space, address, &mut word).is_ok()).then(|| u64::from_le_bytes(word))
    }

    fn copy_within_pages(&mut self, from: (Space, u64), to: (Space, u64), bytes: u64) -> bool {
        let places = [(from, false), (to, true)].map(|((space, address), write)| {
            let fits = bytes <= PAGE - address % PAGE;
            fits.then(|| self.find(space, address, write).ok()).flatten()
        });
        let [Some(source), Some(target)] = places else { return false };
        self.chunks.extend(Some(bytes).filter(|&bytes| bytes > 0));
        let content = self.bytes(source, bytes as usize).to_vec();
        self.bytes(target, bytes as usize).copy_from_slice(&content);
        true
    }
    fn read(&mut self, space: Space, address: u64, out: &mut [u8]) -> Result<(), Fault> {
        let mut done = 0;
        while done < out.len() {
            let at = address + done as u64;
            let piece = (out.len() - done).min((PAGE - at % PAGE) as usize);
            let physical = self.find(space, at, false)?;
            out[done..done + piece].copy_from_slice(self.bytes(physical, piece));
            done += piece;
        }
        Ok(())
    }
    fn write(&mut self, space: Space, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        if let Some(last) = bytes.len().checked_sub(1) {
            self.find(space, address, true)?;
            self.find(space, address + last as u64, true)?;
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = address + done as u64;
            let piece = (bytes.len() - done).min((PAGE - at % PAGE) as usize);
            let physical = self.find(space, at, true)?;
            self.bytes(physical, piece).copy_from_slice(&bytes[done..done + piece]);
            done += piece;
        }
        Ok(())
    }
    fn translate(&mut self, space: Space, address: u64) -> Result<u64, Fault> {
        self.find(space, address, false)
    }
    fn copy_memory(&mut self, from: Memory, to: Memory, bytes: u64) -> Result<Copied, Errno> {
        self.chunks.push(bytes);
        for done in 0..bytes {
            let places = [(from, Side::From, false), (to, Side::To, true)].map(|(memory, side, write)| {
                match memory.after(done) {
                    Memory::Space(space, address) => self.find(space, address, write).map_err(|fault| (side, fault)),
                    Memory::Physical(address) => Ok(address),
                }
            });
            let [source, target] = match places {
                [Ok(source), Ok(target)] => [source, target],
                [Err(fault), _] | [_, Err(fault)] => return Ok(Copied { bytes: done, fault: Some(fault) }),
            };
            if [source, target].iter().any(|physical| !self.frames.contains_key(&(physical / PAGE * PAGE))) {
                return Err(Errno::EINVAL);
            }
            self.bytes(target, 1)[0] = self.bytes(source, 1)[0];
        }
        Ok(Copied { bytes, fault: None })
    }
    fn copy_frame(&mut self, to: u64, from: u64) -> Result<(), Errno> {
        let content = self.frames.get(&from).ok_or(Errno::EINVAL)?.clone();
        *self.frames.get_mut(&to).ok_or(Errno::EINVAL)? = content;
        Ok(())
    }

    fn space_create(&mut self, space: Space) -> Result<(), Errno> {
        self.pool = self.pool.checked_sub(1).ok_or(Errno::ENOMEM)?;
        self.spaces.insert(space.0, BTreeMap::new());
        Ok(())
    }
    fn space_destroy(&mut self, space: Space, from: u64) -> Option<u64> {
        // As if it had tables in three places.
        if from < 2 {
            return Some(from + 1);
        }
        self.pool += 1;
        self.spaces.remove(&space.0);
        None
    }
    fn space_map(&mut self, space: Space, address: u64, frame: u64, pages: u64, flags: u64) -> Mapped {
        assert!(pages <= kernel_core::PAGES_AT_ONCE);
        self.chunks.push(pages);
        for page in 0..pages {
            if self.pool == 0 {
                return Mapped { pages: page, result: Err(Errno::ENOMEM) };
            }
            self.map(space.0, address + page * PAGE, frame + page * PAGE, flags);
        }
        Mapped { pages, result: Ok(()) }
    }
    fn space_change(&mut self, space: Space, address: u64, pages: u64, flags: Option<u64>) {
        self.chunks.push(pages);
        let mappings = self.spaces.entry(space.0).or_default();
        for at in (0..pages).map(|page| address + page * PAGE) {
            match (flags, mappings.get_mut(&at)) {
                (Some(flags), Some(mapping)) => mapping.flags = flags,
                (None, Some(_)) => drop(mappings.remove(&at)),
                (_, None) => {}
            }
        }
    }
    fn space_copy(&mut self, from: Space, to: Space, address: u64, pages: u64) -> Mapped {
        self.chunks.push(pages);
        for page in 0..pages {
            let at = address + page * PAGE;
            if let Some(mapping) = self.spaces.entry(from.0).or_default().get_mut(&at) {
                mapping.flags &= !map::WRITE;
                let copy = *mapping;
                self.spaces.entry(to.0).or_default().insert(at, copy);
            }
        }
        Mapped { pages, result: Ok(()) }
    }
    fn donate(&mut self, _frame: u64, pages: u64) -> Result<(), Errno> {
        self.pool += pages;
        Ok(())
    }

    fn reclaim(&mut self) -> Result<u64, Errno> {
        self.pool = self.pool.checked_sub(1).ok_or(Errno::EAGAIN)?;
        Ok(self.pool * PAGE)
    }

    fn extended(&mut self, slot: usize, out: &mut [u8; EXTENDED_BYTES]) -> bool {
        match self.extended.get(&slot) {
            Some(state) => {
                *out = *state;
                true
            }
            None => false,
        }
    }
    fn set_extended(&mut self, slot: usize, state: Option<&[u8; EXTENDED_BYTES]>) {
        match state {
            Some(state) => self.extended.insert(slot, *state),
            None => self.extended.remove(&slot),
        };
    }
    fn copy_extended(&mut self, from: usize, to: usize) {
        let state = self.extended.get(&from).copied();
        self.set_extended(to, state.as_ref());
    }

    fn port_in(&mut self, port: u16, _width: u64) -> u32 {
        self.ports.get(&port).copied().unwrap_or(0)
    }
    fn port_out(&mut self, port: u16, width: u64, value: u32) {
        self.port_log.push((port, width, value));
    }

    fn port_in_string(&mut self, port: u16, width: u64, out: &mut [u8]) {
        for item in out.chunks_exact_mut(width as usize) {
            item.copy_from_slice(&self.port_in(port, width).to_le_bytes()[..width as usize]);
        }
    }
    fn port_out_string(&mut self, port: u16, width: u64, bytes: &[u8]) {
        for item in bytes.chunks_exact(width as usize) {
            let mut value = [0; 4];
            value[..item.len()].copy_from_slice(item);
            self.port_out(port, width, u32::from_le_bytes(value));
        }
    }

    fn rights_changed(&mut self, slot: usize) {
        self.changed_rights.push(slot);
    }

    fn line_open(&mut self, line: usize) -> Result<(), Errno> {
        if line >= 24 {
            return Err(Errno::EINVAL);
        }
        self.opened.insert(line);
        Ok(())
    }
    fn line_mask(&mut self, line: usize, masked: bool) {
        if masked {
            self.unmasked.remove(&line);
        } else {
            self.unmasked.insert(line);
        }
    }
    fn msi_open(&mut self) -> Result<Msi, Errno> {
        Ok(Msi { line: 100, address: 0xfee0_0000, data: 0x40 })
    }
    fn line_close(&mut self, line: usize) {
        self.opened.remove(&line);
    }

    fn console(&mut self, text: &[u8]) {
        self.console.extend_from_slice(text);
    }
    fn info(&self, what: u64, offset: usize) -> Result<&[u8], Errno> {
        if what != info::COMMAND_LINE {
            return Err(Errno::ENOENT);
        }
        Ok(self.command_line.get(offset..).unwrap_or_default())
    }
    fn kernel_info(&mut self, info: &mut KernelInfo) {
        info.tsc_hz = 1_000_000_000;
        info.pool_frames = self.pool;
    }
    fn trace(&mut self, record: &Record) {
        self.records.push(*record);
    }

    fn shutdown(&mut self, mode: u64, status: u64) -> ! {
        panic!("shutdown {mode} {status}");
    }
    fn poke(&mut self, space: Space, address: u64, byte: u8) {
        let physical = self.find(space, address, false).expect("mapped");
        self.bytes(physical, 1)[0] = byte;
    }
    fn renew(&mut self, slot: usize, step: u64, _frame: &Frame, message: &Message) -> Renewal {
        if step == 0 {
            self.renewed.push((slot, *message));
        }
        let kind = abi::layout::start_kind::RESTARTED;
        match step {
            _ if !self.can_renew => Renewal::Impossible,
            0..RENEWAL_STEPS => Renewal::Step,
            _ => Renewal::Done(Frame { rdi: kind, ..Frame::start(0x40_0000, 0) }),
        }
    }
    fn fatal(&mut self, slot: usize, _frame: &Frame, message: &Message) -> ! {
        panic!("fatal in slot {slot}: {message:?}");
    }
}
