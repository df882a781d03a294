//! The image as a program meets it: two pages of memory, the symbols looked up by hand, each function called.

use abi::clock::{ClockPage, SECOND_NS, factor, scale};
use std::arch::x86_64::_rdtsc;
use std::collections::BTreeMap;
use std::ffi::CStr;

const PAGE: usize = 4096;
const HZ: u64 = 2_500_000_000;
const ENTRY: u64 = 1_000_000;
const OFFSET: u64 = 1_700_000_000 * SECOND_NS + 123_456_789;
const DYNAMIC: u32 = 2;
const LOAD: u32 = 1;

/// Both pages, in memory of their own that cannot be written.
struct Mapped(*mut u8);

impl Mapped {
    fn new(sequence: u64) -> Mapped {
        // SAFETY: new memory.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), 2 * PAGE, 3, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        let mapped = Mapped(at.cast());
        mapped.set(ClockPage::content(sequence, ENTRY, factor(SECOND_NS, HZ), OFFSET));
        // SAFETY: the image is shorter than the second page, which nobody executes yet.
        unsafe {
            mapped.image().cast_mut().copy_from_nonoverlapping(vdso::IMAGE.as_ptr(), vdso::IMAGE.len());
            assert_eq!(libc::mprotect(mapped.image().cast_mut().cast(), PAGE, libc::PROT_READ | libc::PROT_EXEC), 0);
        }
        mapped
    }

    fn set(&self, content: [u8; ClockPage::BYTES]) {
        // SAFETY: the page is this one's, and no function runs.
        unsafe {
            libc::mprotect(self.0.cast(), PAGE, libc::PROT_READ | libc::PROT_WRITE);
            self.0.copy_from_nonoverlapping(content.as_ptr(), content.len());
            libc::mprotect(self.0.cast(), PAGE, libc::PROT_READ);
        }
    }

    fn image(&self) -> *const u8 {
        self.0.wrapping_add(PAGE)
    }

    fn read<T: Copy>(&self, offset: u64) -> T {
        assert!(offset as usize + size_of::<T>() <= PAGE);
        // SAFETY: within the page; T is a number.
        unsafe { self.image().add(offset as usize).cast::<T>().read_unaligned() }
    }

    fn headers(&self) -> Vec<(u32, u32, [u64; 6])> {
        let (start, count) = (self.read::<u64>(32), u64::from(self.read::<u16>(56)));
        let header =
            |at| (self.read(at), self.read(at + 4), std::array::from_fn(|word| self.read(at + 8 + 8 * word as u64)));
        (0..count).map(|number| header(start + 56 * number)).collect()
    }

    fn dynamic(&self) -> BTreeMap<u64, u64> {
        let (.., words) = *self.headers().iter().find(|header| header.0 == DYNAMIC).expect("a dynamic section");
        let entries = (words[1]..).step_by(16).map(|at| (self.read(at), self.read(at + 8)));
        entries.take_while(|entry| entry.0 != 0).collect()
    }

    fn text(&self, offset: u64) -> &str {
        assert!((offset as usize) < PAGE);
        // SAFETY: the page ends with zeros.
        unsafe { CStr::from_ptr(self.image().add(offset as usize).cast()) }.to_str().expect("text")
    }

    /// Looks a symbol up as C libraries do without hashing: all that DT_HASH counts.
    fn symbol(&self, name: &str) -> *const u8 {
        let dynamic = self.dynamic();
        let (symbols, strings, versions) = (dynamic[&6], dynamic[&5], dynamic[&0x6fff_fff0]);
        let count: u32 = self.read(dynamic[&4] + 4);
        let found = (1..u64::from(count))
            .find(|number| self.text(strings + u64::from(self.read::<u32>(symbols + 24 * number))) == name);
        let found = found.unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(self.read::<u16>(versions + 2 * found), 2, "the version LINUX_2.6");
        self.image().wrapping_add(self.read::<u64>(symbols + 24 * found + 8) as usize)
    }

    fn clock_gettime(&self, clock: i32) -> (i32, [i64; 2]) {
        // SAFETY: the function has this type.
        let function: extern "C" fn(i32, *mut i64) -> i32 =
            unsafe { std::mem::transmute(self.symbol("__vdso_clock_gettime")) };
        let mut time = [-1; 2];
        (function(clock, time.as_mut_ptr()), time)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        unsafe { libc::munmap(self.0.cast(), 2 * PAGE) };
    }
}

fn ns(time: [i64; 2]) -> u64 {
    assert!((0..SECOND_NS as i64).contains(&time[1]));
    time[0] as u64 * SECOND_NS + time[1] as u64
}

/// What the kernel would say now.
fn monotonic() -> u64 {
    // SAFETY: every x86-64 CPU has it.
    scale(unsafe { _rdtsc() }.saturating_sub(ENTRY), factor(SECOND_NS, HZ))
}

#[test]
fn one_segment_is_loaded_and_nothing_is_relocated_or_written() {
    let mapped = Mapped::new(2);
    assert!(vdso::IMAGE.len() < PAGE);
    let loads: Vec<_> = mapped.headers().into_iter().filter(|header| header.0 == LOAD).collect();
    assert_eq!(
        (loads.len(), loads[0].1, loads[0].2[0], loads[0].2[1]),
        (1, 5, 0, 0),
        "from the start of the file, r-x"
    );
    let dynamic = mapped.dynamic();
    // DT_RELA, DT_REL, DT_JMPREL, DT_TEXTREL, DT_NEEDED.
    assert!([7, 17, 23, 22, 1].iter().all(|tag| !dynamic.contains_key(tag)), "{dynamic:x?}");
    assert_eq!(mapped.text(dynamic[&5] + dynamic[&14]), "linux-vdso.so.1");
    assert!(dynamic.contains_key(&0x6fff_fef5) && dynamic.contains_key(&4), "both kinds of hash tables");
    assert_eq!(mapped.text(dynamic[&5] + u64::from(mapped.read::<u32>(dynamic[&0x6fff_fffc] + 28 + 20))), "LINUX_2.6");
}

#[test]
fn the_clocks_are_those_of_the_kernel() {
    let mapped = Mapped::new(2);
    for clock in 0..12 {
        let (before, (status, time), after) = (monotonic(), mapped.clock_gettime(clock), monotonic());
        assert!(status == 0 || [8, 9, 10].contains(&clock), "{clock}");
        match clock {
            0 | 5 | 11 => assert!((before..=after).contains(&(ns(time) - OFFSET)), "{clock}"),
            1 | 4 | 6 | 7 => assert!((before..=after).contains(&ns(time)), "{clock}"),
            // The system call, here of Linux, whose clocks differ.
            _ => {}
        }
    }
    for clock in [-1, 10, 12, 31, 32, 33, i32::MIN, i32::MAX] {
        assert_eq!(mapped.clock_gettime(clock), (-libc::EINVAL, [-1; 2]), "{clock}");
    }
}

#[test]
fn a_clock_that_is_being_set_is_asked_of_the_kernel() {
    let mapped = Mapped::new(3);
    let mut own = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure can be written to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut own) };
    let (status, time) = mapped.clock_gettime(1);
    assert!(status == 0 && time[0] - own.tv_sec < 5, "Linux's clock: {time:?}");
    mapped.set(ClockPage::content(4, ENTRY, factor(SECOND_NS, HZ), 0));
    let (before, (_, time), after) = (monotonic(), mapped.clock_gettime(0), monotonic());
    assert!((before..=after).contains(&ns(time)));
}

#[test]
fn the_other_functions() {
    let mapped = Mapped::new(2);
    // SAFETY: the functions have these types.
    let (gettimeofday, time, getres, getcpu) = unsafe {
        (
            std::mem::transmute::<*const u8, extern "C" fn(*mut i64, *mut i32) -> i32>(
                mapped.symbol("__vdso_gettimeofday"),
            ),
            std::mem::transmute::<*const u8, extern "C" fn(*mut i64) -> i64>(mapped.symbol("__vdso_time")),
            std::mem::transmute::<*const u8, extern "C" fn(i32, *mut i64) -> i32>(mapped.symbol("__vdso_clock_getres")),
            std::mem::transmute::<*const u8, extern "C" fn(*mut u32, *mut u32, usize) -> i32>(
                mapped.symbol("__vdso_getcpu"),
            ),
        )
    };
    let (mut now, mut zone, null) = ([-1i64; 2], [-1i32; 2], std::ptr::null_mut());
    let before = monotonic() + OFFSET;
    assert_eq!((gettimeofday(now.as_mut_ptr(), zone.as_mut_ptr()), zone), (0, [0; 2]));
    let after = monotonic() + OFFSET;
    assert!((before / 1000..=after / 1000).contains(&(now[0] as u64 * 1_000_000 + now[1] as u64)));
    assert_eq!(
        (gettimeofday(std::ptr::null_mut(), std::ptr::null_mut()), gettimeofday(now.as_mut_ptr(), null_zone())),
        (0, 0)
    );
    let mut seconds = 0;
    let second = time(&mut seconds);
    assert!(second == seconds && (after / SECOND_NS..=after / SECOND_NS + 1).contains(&(second as u64)));
    assert!(time(null) >= second);
    for clock in 0..12 {
        let mut resolution = [-1; 2];
        let is_real = [0, 1, 4, 5, 6, 7, 11].contains(&clock);
        let status = getres(clock, resolution.as_mut_ptr());
        assert!(!is_real || (status, resolution) == (0, [0, 1]), "{clock}");
        assert!(!is_real || getres(clock, null) == 0);
    }
    assert_eq!((getres(99, null), getres(-1, null)), (-libc::EINVAL, -libc::EINVAL));
    let (mut processor, mut node) = (7, 7);
    assert_eq!((getcpu(&mut processor, &mut node, 0), processor, node), (0, 0, 0));
    assert_eq!(getcpu(std::ptr::null_mut(), std::ptr::null_mut(), 0), 0);
}

fn null_zone() -> *mut i32 {
    std::ptr::null_mut()
}
