//! The code of the vDSO (vdso(7)): the clocks, computed from the time-stamp counter and the page before the image, which vm writes. What that
//! page cannot tell is left to the system call. Functions return as the system calls do: 0 or more, or an error as a negative number.
//!
//! `build.rs` compiles this file and `vdso.lds` lays it out. It touches no FPU register, allocates nothing and cannot panic: a symbol that is
//! not here would not link.
#![no_std]

#[path = "../../../abi/src/clock.rs"]
#[allow(dead_code)]
mod clock;

use clock::{ClockPage, Moment, SECOND_NS};
use core::arch::asm;
use core::arch::x86_64::{_mm_lfence, _rdtsc};

/// Numbers of the system calls (`abi::linux::nr`).
mod nr {
    pub const GETTIMEOFDAY: usize = 96;
    pub const TIME: usize = 201;
    pub const CLOCK_GETTIME: usize = 228;
    pub const CLOCK_GETRES: usize = 229;
}

/// Clocks of the kernel and of pm that are one of the two (clock_gettime(2)), as bits: `REALTIME`, `REALTIME_COARSE`, `TAI`.
const REAL: u32 = 1 << 0 | 1 << 5 | 1 << 11;
/// `MONOTONIC`, `MONOTONIC_RAW`, `MONOTONIC_COARSE`, `BOOTTIME`.
const MONOTONIC: u32 = 1 << 1 | 1 << 4 | 1 << 6 | 1 << 7;

/// Two words: `struct timespec`, `struct timeval`.
#[repr(C)]
pub struct Pair(i64, i64);

/// `struct timezone`.
#[repr(C)]
pub struct Zone(i32, i32);

/// `clock_gettime(2)`.
///
/// # Safety
/// `time` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_clock_gettime(clock: i32, time: *mut Pair) -> i32 {
    let bit = bit(clock);
    if bit & (REAL | MONOTONIC) != 0
        && let Some(moment) = now()
    {
        let ns = if bit & REAL != 0 { moment.real_ns } else { moment.monotonic_ns };
        // SAFETY: as the caller promises.
        unsafe { put(time, (ns / SECOND_NS) as i64, (ns % SECOND_NS) as i64) };
        return 0;
    }
    call(nr::CLOCK_GETTIME, clock as usize, time as usize) as i32
}

/// `gettimeofday(2)`: the time zone is UTC.
///
/// # Safety
/// `time` and `zone` are null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_gettimeofday(time: *mut Pair, zone: *mut Zone) -> i32 {
    let Some(Moment { real_ns, .. }) = now() else {
        return call(nr::GETTIMEOFDAY, time as usize, zone as usize) as i32;
    };
    if !time.is_null() {
        // SAFETY: as the caller promises.
        unsafe { put(time, (real_ns / SECOND_NS) as i64, (real_ns % SECOND_NS / 1000) as i64) };
    }
    if !zone.is_null() {
        // SAFETY: as the caller promises.
        unsafe { zone.write_volatile(Zone(0, 0)) };
    }
    0
}

/// `time(2)`.
///
/// # Safety
/// `seconds` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_time(seconds: *mut i64) -> i64 {
    let Some(Moment { real_ns, .. }) = now() else { return call(nr::TIME, seconds as usize, 0) as i64 };
    let now_s = (real_ns / SECOND_NS) as i64;
    if !seconds.is_null() {
        // SAFETY: as the caller promises.
        unsafe { seconds.write_volatile(now_s) };
    }
    now_s
}

/// `clock_getres(2)`: a nanosecond.
///
/// # Safety
/// `resolution` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_clock_getres(clock: i32, resolution: *mut Pair) -> i32 {
    if bit(clock) & (REAL | MONOTONIC) == 0 {
        return call(nr::CLOCK_GETRES, clock as usize, resolution as usize) as i32;
    }
    if !resolution.is_null() {
        // SAFETY: as the caller promises.
        unsafe { put(resolution, 0, 1) };
    }
    0
}

/// `getcpu(2)`: there is one processor.
///
/// # Safety
/// `processor` and `node` are null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_getcpu(processor: *mut u32, node: *mut u32, _: usize) -> i32 {
    for word in [processor, node] {
        if !word.is_null() {
            // SAFETY: as the caller promises.
            unsafe { word.write_volatile(0) };
        }
    }
    0
}

/// 0: a clock that only a system call knows.
#[inline(always)]
fn bit(clock: i32) -> u32 {
    if (0..32).contains(&clock) { 1 << clock } else { 0 }
}

/// Writes two words, one by one: together they would go through a register of the FPU.
///
/// # Safety
/// `pair` can be written to.
#[inline(always)]
unsafe fn put(pair: *mut Pair, first: i64, second: i64) {
    // SAFETY: as the caller promises.
    unsafe {
        (&raw mut (*pair).0).write_volatile(first);
        (&raw mut (*pair).1).write_volatile(second);
    }
}

#[inline(always)]
fn now() -> Option<Moment> {
    let page: *const ClockPage;
    // SAFETY: computes an address: the linker's script has the image begin at `image`, a page behind the clocks.
    unsafe { asm!("lea {}, [rip + image - 4096]", out(reg) page, options(pure, nomem, nostack, preserves_flags)) };
    // SAFETY: vm maps the page there, and words may have any value.
    let page = unsafe { &*page };
    page.read(|| {
        // SAFETY: every x86-64 CPU has both; the counter is not read before the words that were read first.
        unsafe {
            _mm_lfence();
            _rdtsc()
        }
    })
}

fn call(number: usize, first: usize, second: usize) -> isize {
    let result;
    // SAFETY: what the kernel writes is what the caller of the function has named.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") first, in("rsi") second, lateout("rcx") _, lateout("r11") _,
            options(nostack));
    }
    result
}
