//! The `ioctl`s of the module's device, by the system call itself.

use m3ipc::call::Call;
use m3ipc::descriptor::Request;
use m3ipc::device::{IOCTL, Parcel};
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

/// Makes a call with a message.
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
