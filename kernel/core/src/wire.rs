//! The kernel's structs as bytes in user memory, in the layout that `abi` gives them (`repr(C)`, little endian),
//! without `unsafe`.
//!
//! Neighbours: `life` (registers), `grants`, `privilege`, `inform` (answers of `GetInfo`), `ipc` (vector 33).

use abi::{
    Endpoint, Message, Name,
    call::CopyRequest,
    endpoint::SERVICE_SLOTS,
    grant::GrantEntry,
    info::{KernelInfo, ThreadInfo},
    privilege::{MemoryRange, PortRange, PortRequest, Privileges},
    registers::{EXTENDED_BYTES, Registers},
};

use crate::{Frame, frame::entry};

/// Bytes of the registers without the FPU state: 22 words.
const PLAIN_REGISTER_BYTES: usize = 22 * 8;
/// Bytes of `Registers` without its padding at the end.
pub(crate) const REGISTER_BYTES: usize = PLAIN_REGISTER_BYTES + EXTENDED_BYTES;

const _: () = assert!(core::mem::offset_of!(Registers, extended) == PLAIN_REGISTER_BYTES);
const _: () = assert!(core::mem::size_of::<Privileges>() == PRIVILEGE_BYTES);
const _: () = assert!(core::mem::size_of::<PortRequest>() == PORT_REQUEST_BYTES);
const _: () = assert!(core::mem::size_of::<CopyRequest>() == COPY_REQUEST_BYTES);
const _: () = assert!(core::mem::size_of::<ThreadInfo>() == THREAD_INFO_BYTES);
const _: () = assert!(core::mem::size_of::<KernelInfo>() == KERNEL_INFO_BYTES);

/// Bytes of `Privileges`.
pub(crate) const PRIVILEGE_BYTES: usize = 272;
/// Bytes of `PortRequest`.
pub(crate) const PORT_REQUEST_BYTES: usize = 8;
/// Bytes of `CopyRequest`.
pub(crate) const COPY_REQUEST_BYTES: usize = 32;
/// Bytes of `ThreadInfo`.
pub(crate) const THREAD_INFO_BYTES: usize = 64;
/// Bytes of `KernelInfo`.
pub(crate) const KERNEL_INFO_BYTES: usize = 88;

/// Reads values one after the other; past the end it reads zeros.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk() {
            Some((value, rest)) => {
                self.0 = rest;
                *value
            }
            None => [0; N],
        }
    }
    fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.bytes())
    }
    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }
    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }
    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }
}

/// Writes values one after the other, into a buffer that is long enough.
struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }
    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }
    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }
}

/// The two parts of `Registers`: words and FPU state.
pub(crate) fn split_registers(
    bytes: &mut [u8; REGISTER_BYTES],
) -> (&mut [u8; PLAIN_REGISTER_BYTES], &mut [u8; EXTENDED_BYTES]) {
    let (plain, extended) = bytes.split_first_chunk_mut().expect("shorter than the whole");
    (plain, extended.first_chunk_mut().expect("the rest"))
}

/// The words of `Registers`, in the order of `abi::registers`.
pub(crate) fn put_registers(out: &mut [u8; PLAIN_REGISTER_BYTES], f: &Frame, linux_call: u64, extended_valid: bool) {
    let words = [
        f.r15,
        f.r14,
        f.r13,
        f.r12,
        f.r11,
        f.r10,
        f.r9,
        f.r8,
        f.rbp,
        f.rdi,
        f.rsi,
        f.rdx,
        f.rcx,
        f.rbx,
        f.rax,
        f.rip,
        f.rflags,
        f.rsp,
        f.fs_base,
        f.gs_base,
        linux_call,
        extended_valid as u64,
    ];
    let mut writer = Writer { out, at: 0 };
    for word in words {
        writer.u64(word);
    }
}

/// The frame in the words of `Registers`, as they are, and whether FPU state comes with it.
pub(crate) fn get_registers(bytes: &[u8; PLAIN_REGISTER_BYTES]) -> (Frame, bool) {
    let mut reader = Reader(bytes);
    let mut next = || reader.u64();
    let frame = Frame {
        r15: next(),
        r14: next(),
        r13: next(),
        r12: next(),
        r11: next(),
        r10: next(),
        r9: next(),
        r8: next(),
        rbp: next(),
        rdi: next(),
        rsi: next(),
        rdx: next(),
        rcx: next(),
        rbx: next(),
        rax: next(),
        rip: next(),
        rflags: next(),
        rsp: next(),
        fs_base: next(),
        gs_base: next(),
        entry: entry::FULL,
    };
    let _linux_call = next();
    (frame, next() != 0)
}

/// A grant table entry.
pub(crate) fn get_grant(bytes: &[u8; 32]) -> GrantEntry {
    let mut r = Reader(bytes);
    GrantEntry {
        flags: r.u32(),
        sequence: r.u32(),
        grantee: Endpoint(r.u32()),
        owner: Endpoint(r.u32()),
        address: r.u64(),
        bytes: r.u64(),
    }
}

/// A record of `VDevIo`.
pub(crate) fn get_port_request(bytes: &[u8]) -> PortRequest {
    let mut r = Reader(bytes);
    PortRequest { port: r.u16(), operation: r.u16(), value: r.u32() }
}

/// A record of `VDevIo`, into a buffer of its length.
pub(crate) fn put_port_request(out: &mut [u8], request: &PortRequest) {
    let mut w = Writer { out, at: 0 };
    w.u16(request.port);
    w.u16(request.operation);
    w.u32(request.value);
}

/// A record of `VirVCopy` and `PhysVCopy`.
pub(crate) fn get_copy_request(bytes: &[u8]) -> CopyRequest {
    let mut r = Reader(bytes);
    CopyRequest {
        from: Endpoint(r.u32()),
        to: Endpoint(r.u32()),
        from_address: r.u64(),
        to_address: r.u64(),
        bytes: r.u64(),
    }
}

/// A message in memory.
pub(crate) fn get_message(bytes: &[u8; 64]) -> Message {
    let mut r = Reader(bytes);
    Message { source: Endpoint(r.u32()), label: r.u32(), words: core::array::from_fn(|_| r.u64()) }
}

/// A message in memory.
pub(crate) fn put_message(message: &Message) -> [u8; 64] {
    let mut out = [0; 64];
    let mut w = Writer { out: &mut out, at: 0 };
    w.u32(message.source.0);
    w.u32(message.label);
    for word in message.words {
        w.u64(word);
    }
    out
}

/// Privileges.
pub(crate) fn get_privileges(bytes: &[u8; PRIVILEGE_BYTES]) -> Privileges {
    let mut r = Reader(bytes);
    Privileges {
        name: Name(r.bytes()),
        kernel_calls: r.u64(),
        destinations: core::array::from_fn::<_, { SERVICE_SLOTS / 64 }, _>(|_| r.u64()),
        flags: r.u32(),
        io_way: r.u32(),
        ports: core::array::from_fn(|_| PortRange { first: r.u16(), last: r.u16() }),
        devices: r.bytes(),
        port_count: r.u32(),
        irq_count: r.u32(),
        irqs: core::array::from_fn(|_| r.u8()),
        memory: core::array::from_fn(|_| MemoryRange { start: r.u64(), bytes: r.u64() }),
    }
}

/// Privileges.
pub(crate) fn put_privileges(p: &Privileges) -> [u8; PRIVILEGE_BYTES] {
    let mut out = [0; PRIVILEGE_BYTES];
    let mut w = Writer { out: &mut out, at: 0 };
    w.bytes(&p.name.0);
    w.u64(p.kernel_calls);
    for word in p.destinations {
        w.u64(word);
    }
    w.u32(p.flags);
    w.u32(p.io_way);
    for range in p.ports {
        w.u16(range.first);
        w.u16(range.last);
    }
    w.bytes(&p.devices);
    w.u32(p.port_count);
    w.u32(p.irq_count);
    w.bytes(&p.irqs);
    for range in p.memory {
        w.u64(range.start);
        w.u64(range.bytes);
    }
    out
}

/// What is known about a thread.
pub(crate) fn put_thread_info(i: &ThreadInfo) -> [u8; THREAD_INFO_BYTES] {
    let mut out = [0; THREAD_INFO_BYTES];
    let mut w = Writer { out: &mut out, at: 0 };
    w.u32(i.endpoint.0);
    w.u32(i.state);
    w.u32(i.blocked_on.0);
    w.u32(i.queue);
    w.u64(i.run_ns);
    w.u64(i.messages);
    w.bytes(&i.name.0);
    w.u64(i.ip);
    w.u64(i.sp);
    out
}

/// What is known about the kernel.
pub(crate) fn put_kernel_info(i: &KernelInfo) -> [u8; KERNEL_INFO_BYTES] {
    let mut out = [0; KERNEL_INFO_BYTES];
    let mut w = Writer { out: &mut out, at: 0 };
    for word in [
        i.now_ns,
        i.idle_ns,
        i.tsc_hz,
        i.entry_tsc,
        i.messages,
        i.switches,
        i.interrupts,
        i.kernel_bytes,
        i.total_bytes,
        i.pool_frames,
        i.threads,
    ] {
        w.u64(word);
    }
    out
}
