//! The hardware of one node, as core sees it: [`kernel_core::Machine`], put together from the parts in the other files.

use crate::{
    apic::Apic, clock::Clock, console::Console, context::Context, copying, cpu, descriptors::Descriptors, fatal,
    fatal::FAILURE_LINES, frames::Frames, interrupts, interrupts::ALL_LINES, interrupts::LINES, loader, page_tables,
    physical, power, spaces::Spaces,
};
use abi::{
    Errno, Message, endpoint::SERVICE_SLOTS, endpoint::SLOTS, info, info::KernelInfo, layout::PAGE_BYTES,
    registers::EXTENDED_BYTES, trace::Record,
};
use core::fmt::Write as _;
use kernel_boot::{BootInfo, MemoryMap, Platform};
use kernel_core::{
    Frame, Kernel, Machine, Space, Thread, direct_ports::Ports, machine::Copied, machine::Fault, machine::Mapped,
    machine::Memory, machine::Msi, machine::Renewal,
};
use zerocopy::IntoBytes;

/// Message-signalled interrupts there are.
const MESSAGES: usize = ALL_LINES - LINES;

/// All parts. First what each message needs, as in `kernel_core::Node`.
#[repr(C)]
pub struct Hardware {
    /// FPU registers or open ports of some thread are in the CPU.
    is_something_loaded: bool,
    pub clock: Clock,
    pub apic: Apic,
    /// By slot: entering the thread may take more than loading its space. True of programs, of services with open ports, and of
    /// those that have not run yet.
    special: [bool; SLOTS],
    pub context: Context,
    pub spaces: Spaces,
    pub ports: Ports,
    pub descriptors: Descriptors,
    pub frames: Frames,
    /// One bit each: in use.
    messages: u64,
    /// The binaries of vm and rs: to find one in the archive takes thousands of ticks.
    pub boot_files: [&'static [u8]; 2],
    /// What vm gets.
    pub free: MemoryMap,
    pub console: Console,
    pub boot: BootInfo,
    pub platform: Platform,
}

impl Hardware {
    /// Nothing started.
    pub const NEW: Self = Hardware {
        console: Console::NEW,
        boot: BootInfo::EMPTY,
        platform: Platform::standard(),
        frames: Frames::new(),
        spaces: Spaces::NEW,
        context: Context::new(),
        apic: Apic::NEW,
        clock: Clock::NEW,
        descriptors: Descriptors::EMPTY,
        ports: Ports::NEW,
        boot_files: [&[]; 2],
        free: MemoryMap::EMPTY,
        special: [true; SLOTS],
        is_something_loaded: false,
        messages: 0,
    };

    /// The thread in `slot` is about to run in user mode: makes the CPU its own.
    #[inline(always)]
    pub fn enter(&mut self, slot: usize, thread: &Thread, kernel: &Kernel) {
        if let Some(space) = thread.space() {
            self.spaces.load(space);
        }
        if self.special[slot] | self.is_something_loaded {
            self.is_something_loaded = self.context.enter(slot, &thread.frame);
            if self.ports.is_user(slot) || self.ports.are_open() {
                self.ports.enter(&mut self.descriptors, slot, kernel.privileges(slot));
                self.is_something_loaded |= self.ports.are_open();
            }
            if slot < SERVICE_SLOTS {
                self.special[slot] = self.ports.is_user(slot);
            }
        }
    }

    /// The current thread has caused a protection fault: true when that was its first use of ports that it reaches directly, and it can
    /// go on. A fault with the bitmap in place is about a port that is none of its own.
    pub fn opens_ports(&mut self, kernel: &Kernel) -> bool {
        let slot = kernel.current();
        let opened = self.ports.open(&mut self.descriptors, slot, kernel.privileges(slot));
        self.special[slot] |= opened;
        self.is_something_loaded |= opened;
        opened
    }

    /// The thread that runs, in `slot`, has used the FPU while it was off.
    pub fn use_fpu(&mut self, slot: usize) {
        self.context.use_fpu(slot);
        self.is_something_loaded = true;
    }
}

impl Machine for Hardware {
    #[inline(always)]
    fn ticks(&mut self) -> u64 {
        cpu::tsc()
    }

    #[inline]
    fn ticks_to_ns(&self, ticks: u64) -> u64 {
        self.clock.to_ns(ticks)
    }

    fn ns_to_ticks(&self, duration_ns: u64) -> u64 {
        self.clock.to_ticks(duration_ns)
    }

    fn arm_timer(&mut self, deadline: u64) {
        self.clock.arm(&self.apic, deadline);
    }

    fn interrupt_pending(&mut self) -> bool {
        interrupts::open_window();
        interrupts::recorded()
    }

    fn copy(&mut self, from: Space, from_address: u64, to: Space, to_address: u64, bytes: u64) -> Copied {
        copying::between(&self.spaces, (from, from_address), (to, to_address), bytes)
    }

    #[inline(always)]
    fn copy_within_pages(&mut self, from: (Space, u64), to: (Space, u64), bytes: u64) -> bool {
        copying::within_pages(&mut self.spaces, from, to, bytes)
    }

    fn word(&mut self, space: Space, address: u64) -> Option<u64> {
        let physical = self.spaces.within_page::<false>(space, address, 8)?;
        // SAFETY: the bytes are within a page of a process, to which the kernel holds no references.
        Some(unsafe { physical::pointer::<u64>(physical).read_unaligned() })
    }

    #[inline(always)]
    fn read(&mut self, space: Space, address: u64, out: &mut [u8]) -> Result<(), Fault> {
        copying::read(&mut self.spaces, space, address, out)
    }

    #[inline(always)]
    fn write(&mut self, space: Space, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        copying::write(&mut self.spaces, space, address, bytes)
    }

    fn translate(&mut self, space: Space, address: u64) -> Result<u64, Fault> {
        self.spaces.walk::<false>(space).translate(address)
    }

    fn copy_memory(&mut self, from: Memory, to: Memory, bytes: u64) -> Result<Copied, Errno> {
        for memory in [from, to] {
            if let Memory::Physical(start) = memory {
                let end = start.checked_add(bytes).ok_or(Errno::EINVAL)?;
                let mut frames = (start & !(PAGE_BYTES - 1)..end).step_by(PAGE_BYTES as usize);
                if !frames.all(|frame| self.frames.is_user_ram(frame)) {
                    return Err(Errno::EINVAL);
                }
            }
        }
        Ok(copying::between_memories(&self.spaces, from, to, bytes))
    }

    fn copy_frame(&mut self, to: u64, from: u64) -> Result<(), Errno> {
        let may = self.frames.is_user_ram(to) && self.frames.is_user_ram(from) && to != from;
        // SAFETY: both are RAM of processes, to which the kernel holds no references, and different.
        may.then(|| unsafe { physical::copy_frame(from, to) }).ok_or(Errno::EINVAL)
    }

    fn space_create(&mut self, space: Space) -> Result<(), Errno> {
        self.spaces.create(&mut self.frames, space)
    }

    fn space_destroy(&mut self, space: Space, from: u64) -> Option<u64> {
        self.spaces.destroy(&mut self.frames, space, from)
    }

    fn space_map(&mut self, space: Space, address: u64, frame: u64, pages: u64, flags: u64) -> Mapped {
        self.spaces.map(&mut self.frames, space, address, frame, pages, flags)
    }

    fn space_change(&mut self, space: Space, address: u64, pages: u64, flags: Option<u64>) {
        self.spaces.change(space, address, pages, flags);
    }

    fn space_copy(&mut self, from: Space, to: Space, address: u64, pages: u64) -> Mapped {
        self.spaces.copy_range(&mut self.frames, from, to, address, pages)
    }

    fn donate(&mut self, frame: u64, pages: u64) -> Result<(), Errno> {
        if self.frames.donate(frame, pages) { Ok(()) } else { Err(Errno::EINVAL) }
    }

    fn reclaim(&mut self) -> Result<u64, Errno> {
        self.frames.reclaim().ok_or(Errno::EAGAIN)
    }

    fn extended(&mut self, slot: usize, out: &mut [u8; EXTENDED_BYTES]) -> bool {
        self.context.read(slot, out)
    }

    fn set_extended(&mut self, slot: usize, state: Option<&[u8; EXTENDED_BYTES]>) {
        self.context.write(slot, state);
    }

    fn copy_extended(&mut self, from: usize, to: usize) {
        self.context.copy(from, to);
    }

    fn port_in(&mut self, port: u16, width: u64) -> u32 {
        match width {
            1 => cpu::in8(port) as u32,
            2 => cpu::in16(port) as u32,
            _ => cpu::in32(port),
        }
    }

    fn port_out(&mut self, port: u16, width: u64, value: u32) {
        match width {
            1 => cpu::out8(port, value as u8),
            2 => cpu::out16(port, value as u16),
            _ => cpu::out32(port, value),
        }
    }

    fn port_in_string(&mut self, port: u16, width: u64, out: &mut [u8]) {
        cpu::in_string(port, width, out);
    }

    fn port_out_string(&mut self, port: u16, width: u64, bytes: &[u8]) {
        cpu::out_string(port, width, bytes);
    }

    fn rights_changed(&mut self, slot: usize) {
        self.ports.forget(&mut self.descriptors, slot);
    }

    fn line_open(&mut self, line: usize) -> Result<(), Errno> {
        if self.apic.open_line(line) { Ok(()) } else { Err(Errno::EINVAL) }
    }

    fn line_mask(&mut self, line: usize, masked: bool) {
        self.apic.mask_line(line, masked);
    }

    fn msi_open(&mut self) -> Result<Msi, Errno> {
        let free = self.messages.trailing_ones() as usize;
        if free >= MESSAGES {
            return Err(Errno::EAGAIN);
        }
        self.messages |= 1 << free;
        let line = LINES + free;
        let (address, data) = self.apic.message(line);
        Ok(Msi { line, address, data })
    }

    fn line_close(&mut self, line: usize) {
        match line.checked_sub(LINES) {
            Some(message) if message < MESSAGES => self.messages &= !(1 << message),
            _ => self.apic.mask_line(line, true),
        }
    }

    fn console(&mut self, text: &[u8]) {
        self.console.write(text);
    }

    fn info(&self, what: u64, offset: usize) -> Result<&[u8], Errno> {
        let all = match what {
            info::COMMAND_LINE => self.boot.command_line(),
            info::FREE_MEMORY => self.free.ranges().as_bytes(),
            info::LOG => return Ok(self.console.log(offset)),
            info::ARCHIVE => self.boot.archive.as_bytes(),
            info::FRAMEBUFFER => self.boot.framebuffer.as_ref().ok_or(Errno::ENOENT)?.as_bytes(),
            info::ACPI => self.boot.rsdp.as_bytes(),
            info::TRACE.. if cfg!(feature = "tracing") => {
                return Ok(crate::trace::bytes(self, (what - info::TRACE) as usize + offset));
            }
            _ => return Err(Errno::ENOENT),
        };
        Ok(all.get(offset..).unwrap_or_default())
    }

    fn kernel_info(&mut self, info: &mut KernelInfo) {
        let (image_start, image_end) = page_tables::image_range();
        info.tsc_hz = self.clock.tsc_hz;
        info.entry_tsc = self.clock.entry_tsc;
        info.kernel_bytes = image_end - image_start + self.frames.kernel_bytes();
        info.total_bytes = self.frames.usable_bytes();
        info.pool_frames = self.frames.free();
    }

    fn trace(&mut self, record: &Record) {
        crate::trace::add(self, record);
    }

    fn shutdown(&mut self, mode: u64, status: u64) -> ! {
        match mode {
            0 => power::off(self.platform.power_port, self.platform.power_off, status as u32),
            1 => power::reboot(),
            _ => cpu::halt_forever(),
        }
    }

    fn poke(&mut self, space: Space, address: u64, byte: u8) {
        if let Ok(physical) = self.translate(space, address) {
            copying::fill(physical, &[byte]);
        }
    }

    fn renew(&mut self, slot: usize, step: u64, frame: &Frame, message: &Message) -> Renewal {
        let name = loader::name(slot);
        let why = match message.words[0] {
            abi::call::inject::VECTOR => "is killed as injected",
            abi::kernel::HUNG_VECTOR => "hangs",
            _ => "fails",
        };
        match step {
            0 => {
                // What cannot be printed on the console cannot be told elsewhere.
                let _ = writeln!(self.console, "kernel: {name} {why} and starts again");
            }
            1..=FAILURE_LINES if why == "fails" => {
                fatal::print_failure(&mut self.console, name, frame, message, step - 1);
            }
            1..=FAILURE_LINES => {}
            _ => return loader::renew(self, slot, step - FAILURE_LINES - 1).unwrap_or(Renewal::Impossible),
        }
        Renewal::Step
    }

    fn fatal(&mut self, slot: usize, frame: &Frame, message: &Message) -> ! {
        fatal::service(loader::name(slot), frame, message)
    }
}
