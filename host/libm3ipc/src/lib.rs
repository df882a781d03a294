//! The calls of M3-IPC for C, as `m3ipc.h` declares them. Programs link it, static or shared, and run on every back end.
//!
//! This is a thin skin over [`m3core::backend`]: it turns pointers into references and errors into negative numbers.
//! A pointer to memory that is not there, or may not be written, fails with `EMOLFAULT` ([`backend::readable`] says what is asked, and when).

#![allow(clippy::missing_safety_doc, reason = "one for all: where pointers point to memory, it is what m3ipc.h says")]
#![allow(missing_docs, reason = "m3ipc.h has the documentation, made from lib/m3ipc")]

use m3core::backend::{self, Access};
use m3ipc::call::Call;
use m3ipc::descriptor::{ContainerInfo, DrvsInfo, Name, NodeInfo, Privileges, ProcessInfo, ProxiesInfo, name};
use m3ipc::error::Error;
use m3ipc::limits::{FOREVER, NAME_BYTES};
use m3ipc::message::Message;
use std::ffi::{c_char, c_int, c_long, c_void};
use zerocopy::{FromBytes, Immutable, IntoBytes};

fn result<T: TryInto<i32>>(result: Result<T, Error>) -> c_int {
    match result {
        Ok(value) => value.try_into().unwrap_or(Error::Range.to_result()),
        Err(error) => error.to_result(),
    }
}

fn done(ended: Result<(), Error>) -> c_int {
    result(ended.map(|()| 0))
}

fn ask(call: Call, arguments: &[i64]) -> c_int {
    result(backend::ask(call, arguments, &[]).map(|(value, _)| value))
}

/// Asks with a descriptor.
///
/// # Safety
/// If `descriptor` is the address of memory at all, that is a `T` of the caller's.
unsafe fn tell<T: IntoBytes + Immutable>(call: Call, arguments: &[i64], descriptor: *const T) -> c_int {
    if !backend::has(descriptor as usize, size_of::<T>(), Access::Read) {
        return Error::Fault.to_result();
    }
    // SAFETY: it is there, and the caller promises what it is.
    let bytes = unsafe { &*descriptor }.as_bytes();
    result(backend::ask(call, arguments, bytes).map(|(value, _)| value))
}

/// Asks for a descriptor.
///
/// # Safety
/// If `descriptor` is the address of memory at all, that is room for a `T` of the caller's.
unsafe fn learn<T: FromBytes>(call: Call, arguments: &[i64], descriptor: *mut T) -> c_int {
    if !backend::has(descriptor as usize, size_of::<T>(), Access::Write) {
        return Error::Fault.to_result();
    }
    let answer = backend::ask(call, arguments, &[]).and_then(|(value, bytes)| {
        let told = T::read_from_bytes(&bytes).map_err(|_| Error::Invalid)?;
        // SAFETY: it is there, and the caller promises what it is.
        unsafe { descriptor.write(told) };
        Ok(value)
    });
    result(answer)
}

/// Reads a name of C.
///
/// # Safety
/// If `text` is the address of memory at all, that is a string.
unsafe fn read_name(text: *const c_char) -> Result<Name, Error> {
    let mut bytes = [0; NAME_BYTES];
    for at in 0..NAME_BYTES {
        let place = text.wrapping_add(at);
        // Its end may be that of the memory. Calls with names are rare.
        if !backend::has(place as usize, 1, Access::Read) {
            return Err(Error::Fault);
        }
        // SAFETY: the byte is there, and the caller promises what it is.
        bytes[at] = unsafe { *place }.cast_unsigned();
        if bytes[at] == 0 {
            return name(&bytes[..at]);
        }
    }
    Err(Error::Range)
}

/// Runs `work` with a message that it reads.
///
/// # Safety
/// If `message` is the address of memory at all, that is a message of the caller's.
#[inline(always)]
unsafe fn with_readable(message: *const Message, work: impl FnOnce(&Message) -> Result<(), Error>) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { backend::readable(message) } {
        Some(message) => done(work(message)),
        None => Error::Fault.to_result(),
    }
}

/// Runs `work` with a message that it reads and writes.
///
/// # Safety
/// As [`with_readable`].
#[inline(always)]
unsafe fn with_writable(message: *mut Message, work: impl FnOnce(&mut Message) -> Result<(), Error>) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { backend::writable(message) } {
        Some(message) => done(work(message)),
        None => Error::Fault.to_result(),
    }
}

macro_rules! plain {
    ($($name:ident($($argument:ident),*) = $call:ident;)*) => {
        $(#[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: c_int),*) -> c_int {
            ask(Call::$call, &[$($argument.into()),*])
        })*
    };
}

plain! {
    mnx_drvs_end() = DrvsEnd;
    mnx_vm_end(vm) = VmEnd;
    mnx_vm_dump(vm) = VmDump;
    mnx_lclbind(vm, pid, number) = LocalBind;
    mnx_bkupbind(vm, pid, endpoint, node) = BackupBind;
    mnx_replbind(vm, pid, endpoint) = ReplicaBind;
    mnx_unbind(vm, endpoint) = Unbind;
    mnx_getep(pid) = GetEndpoint;
    mnx_proc_dump(vm) = ProcessDump;
    mnx_src_notify(source, to) = NotifyAs;
    mnx_hdw_notify(vm, to) = NotifyHardware;
    mnx_wakeup(vm, endpoint) = WakeUp;
    mnx_migr_start(vm, endpoint) = MigrateStart;
    mnx_migr_rollback(vm, endpoint) = MigrateRollback;
    mnx_migr_commit(pid, vm, endpoint, node) = MigrateCommit;
    mnx_proxies_unbind(proxies) = ProxiesUnbind;
    mnx_proxy_conn(proxies, status) = ProxyConnection;
    mnx_node_down(node) = NodeDown;
    mnx_add_node(vm, node) = AddNode;
    mnx_del_node(vm, node) = DelNode;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_drvs_init(node: c_int, drvs: *const DrvsInfo) -> c_int {
    if drvs.is_null() {
        return ask(Call::DrvsInit, &[node.into()]);
    }
    // SAFETY: as the caller promises.
    unsafe { tell(Call::DrvsInit, &[node.into()], drvs) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_getdrvsinfo(drvs: *mut DrvsInfo) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { learn(Call::DrvsInfo, &[], drvs) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_vm_init(vm: *const ContainerInfo) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { tell(Call::VmInit, &[], vm) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_getvminfo(number: c_int, vm: *mut ContainerInfo) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { learn(Call::VmInfo, &[number.into()], vm) }
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_bind(vm: c_int, number: c_int) -> c_int {
    result(backend::bind(Call::Bind, &[vm.into(), number.into()]))
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_tbind(vm: c_int, number: c_int) -> c_int {
    result(backend::bind_thread(vm.into(), number.into()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_rmtbind(vm: c_int, text: *const c_char, endpoint: c_int, node: c_int) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { read_name(text) } {
        Ok(name) => {
            let arguments = [vm, endpoint, node].map(i64::from);
            result(backend::ask(Call::RemoteBind, &arguments, &name).map(|(value, _)| value))
        }
        Err(error) => error.to_result(),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_wait4bind_T(ms: c_long) -> c_int {
    result(backend::wait_for_bind(ms))
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_wait4bind() -> c_int {
    mnx_wait4bind_T(FOREVER)
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_wait4bindep_T(endpoint: c_int, ms: c_long) -> c_int {
    ask(Call::WaitForBindOf, &[endpoint.into(), ms])
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_wait4bindep(endpoint: c_int) -> c_int {
    mnx_wait4bindep_T(endpoint, FOREVER)
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_wait4unbind_T(endpoint: c_int, ms: c_long) -> c_int {
    ask(Call::WaitForUnbind, &[endpoint.into(), ms])
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_wait4unbind(endpoint: c_int) -> c_int {
    mnx_wait4unbind_T(endpoint, FOREVER)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_getprocinfo(vm: c_int, number: c_int, process: *mut ProcessInfo) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { learn(Call::ProcessInfo, &[vm.into(), number.into()], process) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_setpriv(vm: c_int, endpoint: c_int, rights: *const Privileges) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { tell(Call::SetPrivileges, &[vm.into(), endpoint.into()], rights) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_getpriv(vm: c_int, endpoint: c_int, rights: *mut Privileges) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { learn(Call::GetPrivileges, &[vm.into(), endpoint.into()], rights) }
}

// A function for each back end where they need different registers saved.

#[inline(never)]
unsafe extern "C" fn send_by_box(to: c_int, message: *const Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { with_readable(message, |message| backend::send_by_box(to, message)) }
}

#[inline(never)]
unsafe extern "C" fn receive_by_box(from: c_int, message: *mut Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { with_writable(message, |message| backend::receive_by_box(from, message)) }
}

#[inline(never)]
unsafe extern "C" fn ask_by_box(peer: c_int, message: *mut Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        with_writable(message, |message| {
            // It is kept where it costs no register.
            message.source = peer;
            backend::send_receive_by_box(peer, message)
        })
    }
}

#[inline(never)]
unsafe extern "C" fn send_by_module(to: c_int, message: *const Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { with_readable(message, |message| backend::send_by_module(to, message)) }
}

#[inline(never)]
unsafe extern "C" fn receive_by_module(from: c_int, message: *mut Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { with_writable(message, |message| backend::receive_by_module(from, message)) }
}

#[inline(never)]
unsafe extern "C" fn ask_by_module(peer: c_int, message: *mut Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { with_writable(message, |message| backend::send_receive_by_module(peer, message)) }
}

#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn mnx_send_T(to: c_int, message: *const Message, ms: c_long) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { with_readable(message, |message| backend::send(to, message, ms)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_send(to: c_int, message: *const Message) -> c_int {
    // A broker is looked for first: the others need what it does not.
    // SAFETY: as the caller promises.
    unsafe { if backend::is_broker() { send_by_box(to, message) } else { send_by_kernel(to, message) } }
}

#[inline(never)]
unsafe extern "C" fn send_by_kernel(to: c_int, message: *const Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        if backend::send_at_once(to, message) {
            return 0;
        }
        if backend::is_module() { send_by_module(to, message) } else { mnx_send_T(to, message, FOREVER) }
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn mnx_receive_T(from: c_int, message: *mut Message, ms: c_long) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { with_writable(message, |message| backend::receive(from, message, ms)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_receive(from: c_int, message: *mut Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { if backend::is_broker() { receive_by_box(from, message) } else { receive_by_kernel(from, message) } }
}

#[inline(never)]
unsafe extern "C" fn receive_by_kernel(from: c_int, message: *mut Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        if backend::receive_at_once(from, message) {
            return 0;
        }
        if backend::is_module() { receive_by_module(from, message) } else { mnx_receive_T(from, message, FOREVER) }
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn mnx_sendrec_T(peer: c_int, message: *mut Message, ms: c_long) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { with_writable(message, |message| backend::send_receive(peer, message, ms)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_sendrec(peer: c_int, message: *mut Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { if backend::is_broker() { ask_by_box(peer, message) } else { ask_by_kernel(peer, message) } }
}

#[inline(never)]
unsafe extern "C" fn ask_by_kernel(peer: c_int, message: *mut Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        if backend::send_receive_at_once(peer, message) {
            return 0;
        }
        if backend::is_module() { ask_by_module(peer, message) } else { mnx_sendrec_T(peer, message, FOREVER) }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_rcvrqst_T(message: *mut Message, ms: c_long) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { with_writable(message, |message| backend::receive_request(message, ms)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_rcvrqst(message: *mut Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { mnx_rcvrqst_T(message, FOREVER) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_reply_T(to: c_int, message: *const Message, _ms: c_long) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { mnx_reply(to, message) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_reply(to: c_int, message: *const Message) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { with_readable(message, |message| backend::reply(to, message)) }
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_notify(to: c_int) -> c_int {
    done(backend::notify(to, 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_ntfy_value(to: c_int, value: c_int) -> c_int {
    done(backend::notify(to, value.cast_unsigned().into()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_vcopy(
    from: c_int,
    source: *mut c_void,
    to: c_int,
    target: *mut c_void,
    bytes: c_int,
) -> c_int {
    let (from, to) = ((from, source as usize), (to, target as usize));
    // SAFETY: the caller has named the memory, here or elsewhere, that is written.
    unsafe { if backend::copy_at_once(from, to, bytes) { bytes } else { copy(from, to, bytes) } }
}

/// # Safety
/// As [`backend::copy`].
#[inline(never)]
unsafe fn copy(from: (i32, usize), to: (i32, usize), bytes: c_int) -> c_int {
    // SAFETY: as the caller promises.
    result(unsafe { backend::copy(from, to, bytes) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_alloc(buffer: *mut *mut c_void, bytes: c_long) -> c_int {
    if !backend::has(buffer as usize, size_of::<*mut c_void>(), Access::Write) {
        return Error::Fault.to_result();
    }
    done(backend::allocate(bytes).map(|address| {
        // SAFETY: the memory is there, and the caller's.
        unsafe { buffer.write(address as *mut c_void) }
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_free(buffer: *mut c_void) -> c_int {
    done(backend::free(buffer as usize))
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_relay(endpoint: c_int, _message: *mut Message) -> c_int {
    ask(Call::Relay, &[endpoint.into()])
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_proxies_bind(
    text: *const c_char,
    proxies: c_int,
    sender: c_int,
    receiver: c_int,
    max_bytes: c_int,
) -> c_int {
    let arguments = [proxies, sender, receiver, max_bytes].map(i64::from);
    // SAFETY: as the caller promises.
    match unsafe { read_name(text) } {
        Ok(name) => result(backend::ask(Call::ProxiesBind, &arguments, &name).map(|(value, _)| value)),
        Err(error) => error.to_result(),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_getproxyinfo(
    number: c_int,
    proxies: *mut ProxiesInfo,
    _sender: *mut ProcessInfo,
    _receiver: *mut ProcessInfo,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { learn(Call::ProxyInfo, &[number.into()], proxies) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_node_up(text: *const c_char, node: c_int, proxies: c_int) -> c_int {
    let arguments = [node, proxies].map(i64::from);
    // SAFETY: as the caller promises.
    match unsafe { read_name(text) } {
        Ok(name) => result(backend::ask(Call::NodeUp, &arguments, &name).map(|(value, _)| value)),
        Err(error) => error.to_result(),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mnx_getnodeinfo(number: c_int, node: *mut NodeInfo) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { learn(Call::NodeInfo, &[number.into()], node) }
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_get2rmt_T(_header: *mut c_void, _payload: *mut c_void, ms: c_long) -> c_int {
    ask(Call::GetToRemote, &[ms])
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_get2rmt(header: *mut c_void, payload: *mut c_void) -> c_int {
    mnx_get2rmt_T(header, payload, FOREVER)
}

#[unsafe(no_mangle)]
pub extern "C" fn mnx_put2lcl(_header: *mut c_void, _payload: *mut c_void) -> c_int {
    ask(Call::PutToLocal, &[])
}
