//! The calls of the module's device, by the system calls themselves.

use m3ipc::call::Call;
use m3ipc::descriptor::Request;
use m3ipc::device::{IOCTL, Parcel, peer_word};
use m3ipc::message::Message;
use std::arch::asm;

/// Makes a system call of three arguments.
///
/// # Safety
/// `address` is that of memory which the device may read and write for this command.
#[inline(always)]
unsafe fn ioctl(device: i32, command: u32, address: u64) -> i64 {
    let result: i64;
    // SAFETY: as the caller promises; all registers that the kernel may change are declared.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") libc::SYS_ioctl => result,
            in("rdi") i64::from(device), in("rsi") u64::from(command), in("rdx") address,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes a call by `posix_fadvise`.
///
/// # Safety
/// `address` is that of memory which the device may read and write for this call.
#[inline(always)]
unsafe fn advise(device: i32, call: Call, peer: i32, address: u64, upper: i64) -> i64 {
    let result: i64;
    // SAFETY: as the caller promises; all registers that the kernel may change are declared. Other files know no such advice.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") libc::SYS_fadvise64 => result,
            in("rdi") i64::from(device), in("rsi") address, in("rdx") peer_word(peer, upper), in("r10") u64::from(IOCTL + call as u32),
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// `send`, `reply`.
#[inline(always)]
pub fn send(device: i32, call: Call, peer: i32, message: &Message, limit_ms: i64) -> i64 {
    // SAFETY: the module reads a message there for these calls.
    unsafe { advise(device, call, peer, std::ptr::from_ref(message) as u64, limit_ms) }
}

/// Calls that receive.
#[inline(always)]
pub fn receive(device: i32, call: Call, peer: i32, message: &mut Message, limit_ms: i64) -> i64 {
    // SAFETY: the module reads and writes a message there.
    unsafe { advise(device, call, peer, std::ptr::from_mut(message) as u64, limit_ms) }
}

/// `ntfy_value`.
#[inline(always)]
pub fn notify(device: i32, to: i32, value: u64) -> i64 {
    // SAFETY: there is no address.
    unsafe { advise(device, Call::NotifyValue, to, 0, i64::from(value as u32 as i32)) }
}

/// Makes a call with a message by `ioctl`.
#[inline(always)]
pub fn exchange(device: i32, call: Call, parcel: &mut Parcel) -> i64 {
    // SAFETY: the module reads and writes a parcel there, and no other device knows the command.
    unsafe { ioctl(device, IOCTL + call as u32, std::ptr::from_mut(parcel) as u64) }
}

/// Makes a call without a message.
///
/// # Safety
/// Arguments that are addresses are those of memory that the call may read or change.
pub unsafe fn request(device: i32, call: Call, request: &mut Request) -> i64 {
    // SAFETY: the module reads and writes a request there, and what the caller promises.
    unsafe { ioctl(device, IOCTL + call as u32, std::ptr::from_mut(request) as u64) }
}
