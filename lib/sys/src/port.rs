//! I/O ports, on the access path that the system file assigns to this service (docs/book/driver-io.md), within its port ranges.
//!
//! The access path is fetched from the kernel once. `SYSTASK` sends requests to the SYSTEM task, `HAL` traps; with `EMULATE` and
//! `DIRECT` the program executes the instruction itself. A denied access ends the program on the last two and fails on the others.

use crate::{Result, info, start, system::ask};
use abi::call::{HAL_VECTOR, KernelCall};
use abi::privilege::{PortRequest, Privileges, io, way};
use abi::{Errno, Word};
use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use zerocopy::IntoBytes;

/// The access path, plus 1; 0: not fetched yet.
static WAY: AtomicU32 = AtomicU32::new(0);
const HAL: u32 = way::HAL + 1;
/// Values from this on: the program executes the instructions itself.
const OWN_INSTRUCTIONS: u32 = way::EMULATE + 1;
const _: () = assert!(way::DIRECT > way::EMULATE && way::EMULATE > way::HAL && way::HAL > way::SYSTASK);

/// Returns the access path of this service: one of `privilege::way`.
pub fn way() -> u32 {
    match WAY.load(Relaxed) {
        0 => {
            let own = info::get::<Privileges>(abi::info::PRIVILEGES, start::endpoint().slot() as u64);
            let way = own.map_or(way::HAL, |own| own.io_way);
            WAY.store(way + 1, Relaxed);
            way
        }
        known => known - 1,
    }
}

/// Reads a port; `width` is 1, 2 or 4 bytes.
///
/// # Errors
/// `ECALLDENIED`: outside the ranges; `EINVAL`: no such width.
#[inline(always)]
pub fn read(port: u16, width: u64) -> Result<u32> {
    check(width)?;
    match WAY.load(Relaxed) {
        OWN_INSTRUCTIONS.. => Ok(input(port, width)),
        HAL => trap(io::IN | width, port, 0).map(|value| value as u32),
        _ => read_somehow(port, width),
    }
}

/// Writes a port; `width` is 1, 2 or 4 bytes.
///
/// # Errors
/// As [`read`].
#[inline(always)]
pub fn write(port: u16, width: u64, value: u32) -> Result<()> {
    check(width)?;
    match WAY.load(Relaxed) {
        OWN_INSTRUCTIONS.. => {
            output(port, width, value);
            Ok(())
        }
        HAL => trap(io::OUT | width, port, value).map(drop),
        _ => write_somehow(port, width, value),
    }
}

/// Makes an access on a slow path, or the first one of all.
#[inline(never)]
fn read_somehow(port: u16, width: u64) -> Result<u32> {
    match way() {
        way::SYSTASK => {
            ask(KernelCall::DevIo, [port as u64, io::IN | width, 0, 0, 0, 0]).map(|reply| reply.words[0] as u32)
        }
        _ => read(port, width),
    }
}

#[inline(never)]
fn write_somehow(port: u16, width: u64, value: u32) -> Result<()> {
    match way() {
        way::SYSTASK => ask(KernelCall::DevIo, [port as u64, io::OUT | width, value as u64, 0, 0, 0]).map(drop),
        _ => write(port, width, value),
    }
}

/// Reads a port repeatedly until the buffer is full. The buffer's length is a multiple of `width`.
///
/// # Errors
/// As [`read`].
pub fn read_string(port: u16, width: u64, into: &mut [u8]) -> Result<()> {
    let count = items(into.len(), width)?;
    let address = into.as_mut_ptr();
    match way() {
        way::SYSTASK => ask(KernelCall::SDevIo, [port as u64, io::IN | width, address as u64, count, 0, 0]).map(drop),
        way::HAL => trap_string(io::IN | width, port, address as u64, count),
        _ => {
            // SAFETY: `count` accesses of `width` bytes fill exactly the buffer; the direction flag is clear.
            unsafe {
                match width {
                    1 => {
                        asm!("rep insb", in("dx") port, inout("rdi") address => _, inout("rcx") count => _, options(nostack, preserves_flags))
                    }
                    2 => {
                        asm!("rep insw", in("dx") port, inout("rdi") address => _, inout("rcx") count => _, options(nostack, preserves_flags))
                    }
                    _ => {
                        asm!("rep insd", in("dx") port, inout("rdi") address => _, inout("rcx") count => _, options(nostack, preserves_flags))
                    }
                }
            }
            Ok(())
        }
    }
}

/// Writes the whole buffer to a port.
///
/// # Errors
/// As [`read`].
pub fn write_string(port: u16, width: u64, from: &[u8]) -> Result<()> {
    let count = items(from.len(), width)?;
    let address = from.as_ptr();
    match way() {
        way::SYSTASK => ask(KernelCall::SDevIo, [port as u64, io::OUT | width, address as u64, count, 0, 0]).map(drop),
        way::HAL => trap_string(io::OUT | width, port, address as u64, count),
        _ => {
            // SAFETY: `count` accesses of `width` bytes read exactly the buffer; the direction flag is clear.
            unsafe {
                match width {
                    1 => {
                        asm!("rep outsb", in("dx") port, inout("rsi") address => _, inout("rcx") count => _, options(nostack, preserves_flags))
                    }
                    2 => {
                        asm!("rep outsw", in("dx") port, inout("rsi") address => _, inout("rcx") count => _, options(nostack, preserves_flags))
                    }
                    _ => {
                        asm!("rep outsd", in("dx") port, inout("rsi") address => _, inout("rcx") count => _, options(nostack, preserves_flags))
                    }
                }
            }
            Ok(())
        }
    }
}

/// Makes these accesses in order; values read are stored in the requests.
///
/// # Errors
/// As [`read`], of the first access that fails; those before it are done.
pub fn vector(requests: &mut [PortRequest]) -> Result<()> {
    if way() != way::SYSTASK {
        return requests.iter_mut().try_for_each(access);
    }
    for piece in requests.chunks_mut(abi::call::MAX_VECTOR as usize) {
        let mut rest = piece;
        while !rest.is_empty() {
            let bytes = rest.as_mut_bytes();
            let done = ask(KernelCall::VDevIo, [bytes.as_mut_ptr() as u64, rest.len() as u64, 0, 0, 0, 0])?;
            rest = &mut rest[done.words[0] as usize..];
        }
    }
    Ok(())
}

fn access(request: &mut PortRequest) -> Result<()> {
    let (width, writes) = (request.operation as u64 & io::WIDTH, request.operation as u64 & io::OUT != 0);
    if writes {
        return write(request.port, width, request.value);
    }
    request.value = read(request.port, width)?;
    Ok(())
}

/// Traps to the kernel (HAL) for one access.
#[inline(always)]
fn trap(operation: u64, port: u16, value: u32) -> Result<u64> {
    let result: u64;
    // SAFETY: the trap changes nothing but rax. Not `nomem`: the device may react by accessing memory.
    unsafe {
        asm!(
            "int {vector}", vector = const HAL_VECTOR,
            inlateout("rax") operation => result, in("rdx") port as u64, in("rdi") value as u64,
            options(nostack, preserves_flags),
        );
    }
    // What is read from a port is never negative.
    if result as i64 >= 0 { Ok(result) } else { Err(refused(result)) }
}

/// Maps the result of a failed access; kept out of line, off the fast path.
#[cold]
fn refused(result: u64) -> Errno {
    Errno((result as i64).wrapping_neg() as i32)
}

/// Traps to the kernel (HAL) for many accesses of one port, to or from memory that is long enough for them.
fn trap_string(operation: u64, port: u16, address: u64, count: u64) -> Result<()> {
    let result: u64;
    // SAFETY: the kernel reads or writes `count` items at the address, for which the caller vouches; otherwise as in `trap`.
    unsafe {
        asm!(
            "int {vector}", vector = const HAL_VECTOR,
            inlateout("rax") operation | io::STRING => result, in("rdx") port as u64, in("rdi") address, in("r10") count,
            options(nostack, preserves_flags),
        );
    }
    Result::<u64>::from_word(result).map(drop)
}

/// Executes IN.
#[inline(always)]
fn input(port: u16, width: u64) -> u32 {
    let value: u32;
    // SAFETY: the kernel or the CPU lets only ports of the service's own device through.
    unsafe {
        match width {
            1 => {
                let byte: u8;
                asm!("in al, dx", in("dx") port, out("al") byte, options(nostack, preserves_flags));
                value = byte as u32;
            }
            2 => {
                let word: u16;
                asm!("in ax, dx", in("dx") port, out("ax") word, options(nostack, preserves_flags));
                value = word as u32;
            }
            _ => asm!("in eax, dx", in("dx") port, out("eax") value, options(nostack, preserves_flags)),
        }
    }
    value
}

/// Executes OUT.
#[inline(always)]
fn output(port: u16, width: u64, value: u32) {
    // SAFETY: as in `input`.
    unsafe {
        match width {
            1 => asm!("out dx, al", in("dx") port, in("al") value as u8, options(nostack, preserves_flags)),
            2 => asm!("out dx, ax", in("dx") port, in("ax") value as u16, options(nostack, preserves_flags)),
            _ => asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags)),
        }
    }
}

#[inline(always)]
fn check(width: u64) -> Result<()> {
    if matches!(width, 1 | 2 | 4) { Ok(()) } else { Err(Errno::EINVAL) }
}

fn items(bytes: usize, width: u64) -> Result<u64> {
    check(width)?;
    if (bytes as u64).is_multiple_of(width) { Ok(bytes as u64 / width) } else { Err(Errno::EINVAL) }
}
