//! M3-IPC by the module of Linux (host/m3ipc-module): every call is an `ioctl` of its device (`m3ipc::device`), and the module does all of it. Calls with a
//! message are made by `posix_fadvise` (docs/adr/0114-the-processor-and-the-way-into-the-module.md); where that is refused, by `ioctl` too.
//!
//! The module knows who calls by process and thread, so nothing is kept here but the open file. A child uses its parent's; a program that has closed it
//! gets another.

mod raw;

use m3ipc::call::Call;
use m3ipc::descriptor::{ContainerInfo, Request};
use m3ipc::device::{PATH, Parcel};
use m3ipc::error::Error;
use m3ipc::message::Message;
use rustix::fd::IntoRawFd;
use rustix::fs::{Mode, OFlags};
use std::sync::atomic::{AtomicI32, Ordering};

/// The open device, or one of the two below.
static DEVICE: AtomicI32 = AtomicI32::new(UNKNOWN);
const UNKNOWN: i32 = -1;
const ABSENT: i32 = -2;

/// What a file that is no device of ours says, and one that is not open.
const FOREIGN: [i64; 2] = [-(libc::ENOTTY as i64), -(libc::EBADF as i64)];

/// Whether the module is loaded, and this process may use it. Who names a broker's socket in `M3IPC_SOCKET` wants that.
pub fn is_here() -> bool {
    match DEVICE.load(Ordering::Relaxed) {
        UNKNOWN => open() >= 0,
        known => known >= 0,
    }
}

/// Whether a call has found the module before.
#[inline(always)]
pub fn is_known() -> bool {
    DEVICE.load(Ordering::Relaxed) >= 0
}

#[cold]
fn open() -> i32 {
    let wants_broker = std::env::var_os("M3IPC_SOCKET").is_some();
    let device = match rustix::fs::open(PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) if !wants_broker => file.into_raw_fd(),
        _ => ABSENT,
    };
    DEVICE.store(device, Ordering::Relaxed);
    device
}

/// Makes a call, with another file if the one that is known is not the device any more.
#[inline(always)]
fn checked(mut call: impl FnMut(i32) -> i64) -> Result<(), Error> {
    let mut result = call(DEVICE.load(Ordering::Relaxed));
    if FOREIGN.contains(&result) {
        result = call(open());
    }
    match result {
        0 => Ok(()),
        error => Err(i32::try_from(error).ok().and_then(Error::from_result).unwrap_or(Error::NotInitialised)),
    }
}

/// What a file says to a call by `posix_fadvise` that is no device of ours, or that is not open; and a filter of system calls. None of it is a result of
/// the module.
const NOT_ADVISED: [i64; 5] = [
    -(libc::EINVAL as i64),
    -(libc::ESPIPE as i64),
    -(libc::EBADF as i64),
    -(libc::ENOSYS as i64),
    -(libc::EPERM as i64),
];

/// The result of a call by the short way; if that was refused, of the same by `ioctl`, which finds the device again.
#[inline(always)]
fn exchanged(advised: i64, by_ioctl: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    if advised == 0 { Ok(()) } else { failed(advised).unwrap_or_else(by_ioctl) }
}

/// The error of a call by the short way; `None`: it was refused.
#[cold]
#[inline(never)]
fn failed(advised: i64) -> Option<Result<(), Error>> {
    let error = || i32::try_from(advised).ok().and_then(Error::from_result).unwrap_or(Error::NotInitialised);
    (!NOT_ADVISED.contains(&advised)).then(|| Err(error()))
}

#[cold]
fn by_ioctl(call: Call, peer: i32, message: &Message, limit_ms: i64) -> Result<Message, Error> {
    let mut parcel = Parcel::new(peer, message, limit_ms);
    checked(|device| raw::exchange(device, call, &mut parcel))?;
    Ok(parcel.message)
}

/// `send`, `reply`.
///
/// # Errors
/// As `Rendezvous::send`, `Rendezvous::reply`.
#[inline(always)]
pub fn send(call: Call, to: i32, message: &Message, limit_ms: i64) -> Result<(), Error> {
    let advised = raw::send(DEVICE.load(Ordering::Relaxed), call, to, message, limit_ms);
    exchanged(advised, || by_ioctl(call, to, message, limit_ms).map(drop))
}

/// `sendrec`. The answer comes in the place of the message.
///
/// # Errors
/// As `Rendezvous::send_receive`.
#[inline(always)]
pub fn send_receive(to: i32, message: &mut Message, limit_ms: i64) -> Result<(), Error> {
    receive_into(Call::SendReceive, to, message, limit_ms)
}

/// `receive`, `rcvrqst`.
///
/// # Errors
/// As `Rendezvous::receive`, `Rendezvous::receive_request`.
#[inline(always)]
pub fn receive(call: Call, from: i32, message: &mut Message, limit_ms: i64) -> Result<(), Error> {
    receive_into(call, from, message, limit_ms)
}

#[inline(always)]
fn receive_into(call: Call, peer: i32, message: &mut Message, limit_ms: i64) -> Result<(), Error> {
    let advised = raw::receive(DEVICE.load(Ordering::Relaxed), call, peer, message, limit_ms);
    exchanged(advised, || by_ioctl(call, peer, message, limit_ms).map(|received| *message = received))
}

/// `notify`, `ntfy_value`.
///
/// # Errors
/// As `Rendezvous::notify`.
pub fn notify(to: i32, value: u64) -> Result<(), Error> {
    let advised = raw::notify(DEVICE.load(Ordering::Relaxed), to, value);
    exchanged(advised, || request(Call::NotifyValue, &[to.into(), value.cast_signed()]).map(drop))
}

/// Makes a call without addresses. Returns what it returns.
fn request(call: Call, arguments: &[i64]) -> Result<i64, Error> {
    // SAFETY: there are none.
    unsafe { request_with_addresses(call, arguments) }
}

/// Makes a call without a message.
///
/// # Safety
/// Arguments that are addresses are those of memory that the call may read or change.
unsafe fn request_with_addresses(call: Call, arguments: &[i64]) -> Result<i64, Error> {
    let mut request = Request::new(arguments);
    // SAFETY: as the caller promises.
    checked(|device| unsafe { raw::request(device, call, &mut request) })?;
    Ok(request.value)
}

/// `vcopy`. Returns how many bytes.
///
/// # Errors
/// As `Rendezvous::check_copy`; `AddressNotAvailable`.
///
/// # Safety
/// The caller has named the memory that is written, if it is its own.
pub unsafe fn copy(from: (i32, usize), to: (i32, usize), bytes: i32) -> Result<i64, Error> {
    let arguments = [from.0.into(), from.1 as i64, to.0.into(), to.1 as i64, bytes.into()];
    // SAFETY: as the caller promises.
    unsafe { request_with_addresses(Call::Copy, &arguments) }
}

/// Makes a call without a message. `bytes`: the descriptor or name that it reads. Returns what it returns, and the descriptor that it tells.
///
/// # Errors
/// The call's.
pub fn ask(call: Call, arguments: &[i64], bytes: &[u8]) -> Result<(i64, Vec<u8>), Error> {
    let mut buffer = match told_bytes(call) {
        0 => bytes.to_vec(),
        told => vec![0; told],
    };
    let address = if buffer.is_empty() { 0 } else { buffer.as_mut_ptr() as i64 };
    let mut all = arguments.to_vec();
    // Prototypes have names among the numbers, and descriptors behind them.
    let place = match call {
        Call::NodeUp | Call::ProxiesBind => 0,
        Call::RemoteBind => 1,
        _ => all.len(),
    };
    all.insert(place, address);
    // SAFETY: the buffer has the size of what the call reads or tells.
    let value = unsafe { request_with_addresses(call, &all)? };
    Ok((value, if told_bytes(call) == 0 { Vec::new() } else { buffer }))
}

/// Size of the descriptor that a call tells.
fn told_bytes(call: Call) -> usize {
    use m3ipc::descriptor::{DrvsInfo, NodeInfo, Privileges, ProcessInfo, ProxiesInfo};
    match call {
        Call::DrvsInfo => size_of::<DrvsInfo>(),
        Call::VmInfo => size_of::<ContainerInfo>(),
        Call::ProcessInfo => size_of::<ProcessInfo>(),
        Call::GetPrivileges => size_of::<Privileges>(),
        Call::NodeInfo => size_of::<NodeInfo>(),
        Call::ProxyInfo => size_of::<ProxiesInfo>(),
        _ => 0,
    }
}
