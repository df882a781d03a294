//! `System` on the real thing: kernel calls through `sys`, messages to vm, vfs and tty.
//!
//! A request over which a server has died is sent again: its successor knows nothing of the first try.

use crate::system::{
    End, FileEvent, FileIds, FileLimits, Footprint, Identity, MemoryLimits, MemoryUse, NewMemory, ProgramName,
    Requester, SegmentUse, System, TerminalEvent, ThreadUse,
};
use abi::endpoint::{FIRST_CONTAINER, FIRST_SERVICE};
use abi::registers::Registers;
use abi::{Endpoint, Errno, GrantId, Message, Parts, m3ipc, tty, vfs, vm};
use core::fmt;
use sys::{copy, grant, info, ipc, rights, thread, time};
use zerocopy::IntoBytes;

/// The kernel and the servers below pm.
pub struct Native;

type Result<T> = core::result::Result<T, Errno>;

fn ask(server: Endpoint, request: &Message) -> Result<Message> {
    ipc::call_repeating(server, request)
}

/// Logs the failure of a request that pm can do nothing about: the peer is dead, or its table and pm's differ.
fn tell(server: Endpoint, request: &Message) {
    if let Err(error) = ask(server, request) {
        let name = abi::describe(request.label).map_or("?", |(_, message)| message.name);
        sys::log!("{name} of {:#x}: {error}", request.words[0]);
    }
}

/// Makes a request while the server may read `text`.
fn ask_lending(server: Endpoint, text: &[u8], request: impl FnOnce(GrantId) -> Message) -> Result<Message> {
    grant::lend(text, server, |id| ask(server, &request(id)))?
}

impl System for Native {
    fn fork(&mut self, parent: Endpoint) -> Result<Endpoint> {
        thread::fork(parent, 0)
    }

    fn destroy(&mut self, thread: Endpoint) {
        // It can only fail because the thread is gone.
        let _ = thread::destroy(thread, false);
    }

    fn start(&mut self, thread: Endpoint, tid: u32) {
        let _ = thread::start_as(thread, tid);
    }

    fn stop(&mut self, thread: Endpoint) {
        let _ = thread::stop(thread);
    }

    fn registers(&mut self, thread: Endpoint, registers: &mut Registers) -> Result<()> {
        thread::registers(thread, registers)
    }

    fn set_registers(&mut self, thread: Endpoint, registers: &Registers, resume: u64) -> Result<()> {
        thread::set_registers(thread, registers, resume)
    }

    fn interrupt(&mut self, thread: Endpoint) -> Result<Endpoint> {
        thread::interrupt(thread)
    }

    fn notify(&mut self, service: Endpoint) {
        // A service that has died looks for itself what it has missed.
        let _ = ipc::notify(service);
    }

    fn m3ipc_ends(&mut self, m3ipc: Endpoint, thread: Endpoint) -> bool {
        ipc::send_nonblocking(m3ipc, &m3ipc::Ends { thread }.message()).is_ok()
    }

    fn schedule(&mut self, thread: Endpoint, queue: u64, quantum_us: u64) {
        let _ = thread::schedule(thread, queue, quantum_us);
    }

    fn keep_answer(&mut self, thread: Endpoint, number: u32, answer: u64) {
        // A thread that is gone asks no more.
        let _ = thread::keep_answer(thread, number, answer);
    }

    fn forget_answers(&mut self, thread: Endpoint) {
        let _ = thread::forget_answers(thread);
    }

    fn wake_futex(&mut self, thread: Endpoint, address: u64) {
        // As Linux: a bad address is ignored.
        let _ = thread::wake_futex(thread, address, 1);
    }

    fn read(&mut self, thread: Endpoint, address: u64, buffer: &mut [u8]) -> Result<()> {
        copy::from_process(thread, address, buffer)
    }

    fn write(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) -> Result<()> {
        copy::to_process(thread, address, bytes)
    }

    fn time_ns(&mut self) -> (u64, u64) {
        time::both_ns()
    }

    fn set_real_time_ns(&mut self, since_1970_ns: u64) -> Result<()> {
        server::clock::set_real_ns(since_1970_ns)
    }

    fn settle_clock(&mut self) {
        server::clock::settle();
    }

    fn set_alarm(&mut self, deadline_ns: Option<u64>, queue: u64) {
        // 0 cancels; a deadline of 0 never comes from a sleep that begins after boot.
        time::set_alarm_for(deadline_ns.unwrap_or(0), queue).expect("pm may set its alarm");
    }

    fn thread_at(&mut self, slot: usize) -> Option<Endpoint> {
        info::thread(slot).ok().map(|known| known.endpoint)
    }

    fn thread_use(&mut self, thread: Endpoint) -> ThreadUse {
        match info::thread(thread.slot()) {
            Ok(known) if known.endpoint == thread => {
                // A message there and one back.
                let waits = known.messages / 2;
                ThreadUse {
                    run_ns: known.run_ns,
                    state: known.state,
                    blocked_on: known.blocked_on,
                    queue: known.queue,
                    waits,
                    messages: known.messages,
                }
            }
            _ => ThreadUse::default(),
        }
    }

    fn services_ns(&mut self) -> u64 {
        let services = (FIRST_SERVICE..FIRST_CONTAINER).filter_map(|slot| info::thread(slot).ok());
        services.map(|service| service.run_ns).sum()
    }

    fn kernel_log(&mut self, buffer: &mut [u8]) -> usize {
        info::get_bytes(abi::info::LOG, 0, buffer).unwrap_or(0)
    }

    fn log(&mut self, text: fmt::Arguments) {
        sys::console::write_line(text);
    }

    fn shutdown(&mut self, end: End) {
        let end = match end {
            End::PowerOff => rights::End::PowerOff,
            End::Reboot => rights::End::Reboot,
            End::Halt => rights::End::Halt,
        };
        // The end does not depend on it.
        let _ = ask(Endpoint::TTY, &tty::Drain {}.message());
        if let Err(error) = rights::shutdown(end, 0) {
            sys::log!("the machine does not stop: {error}");
        }
    }

    fn reply(&mut self, thread: Endpoint, result: Result<u64>) {
        // One that died in the meantime needs no answer.
        let _ = ipc::send_nonblocking(thread, &Message::new(abi::message::REPLY).reply(result));
    }

    fn write_grant(&mut self, granter: Endpoint, grant: GrantId, bytes: &[u8]) -> Result<u64> {
        copy::to_grant(granter, grant, 0, bytes)?;
        Ok(bytes.len() as u64)
    }

    fn read_grant(&mut self, granter: Endpoint, grant: GrantId, bytes: &mut [u8]) -> Result<()> {
        copy::from_grant(granter, grant, 0, bytes)
    }

    fn vm_fork(&mut self, parent: Endpoint, child: Endpoint, share: bool, pid: u32) -> Result<()> {
        ask(Endpoint::VM, &vm::Fork { parent, child, share, pid: pid.into() }.message()).map(drop)
    }

    fn vm_exit(&mut self, process: Endpoint) -> Option<Footprint> {
        let (faults, peak_bytes) = vm::Exit::results(&ask(Endpoint::VM, &vm::Exit { process }.message()).ok()?).ok()?;
        Some(Footprint { faults, peak_bytes })
    }

    fn vm_use(&mut self, process: Endpoint) -> Footprint {
        let reply = ask(Endpoint::VM, &vm::MemoryUse { process }.message());
        let (faults, peak_bytes) = reply.and_then(|reply| vm::MemoryUse::results(&reply)).unwrap_or_default();
        Footprint { faults, peak_bytes }
    }

    fn vm_exec(&mut self, request: vm::Exec) -> Result<NewMemory> {
        let reply = ask(Endpoint::VM, &request.message())?;
        let (start, entry, phdr, phdr_count, interpreter_base, stack_end) = vm::Exec::results(&reply)?;
        Ok(NewMemory { start, entry, phdr, phdr_count, interpreter_base, stack_end })
    }

    fn vm_attach(&mut self, request: vm::SegmentAttach) -> Result<u64> {
        vm::SegmentAttach::results(&ask(Endpoint::VM, &request.message())?)
    }

    fn vm_release_segment(&mut self, segment: u32) -> u64 {
        let reply = ask(Endpoint::VM, &vm::SegmentRelease { segment: segment.into() }.message());
        // vm refuses only what it has died of twice: the segment stays in the table, and is released again before it goes.
        reply.and_then(|reply| vm::SegmentRelease::results(&reply)).unwrap_or(1)
    }

    fn vm_segment(&mut self, segment: u32) -> Option<SegmentUse> {
        let reply = ask(Endpoint::VM, &vm::SegmentStatus { segment: segment.into() }.message()).ok()?;
        let (attaches, resident_pages, attached_s, detached_s, pid) = vm::SegmentStatus::results(&reply).ok()?;
        Some(SegmentUse { attaches, resident_pages, attached_s, detached_s, pid })
    }

    fn vm_present(&mut self, process: Endpoint, from: u64, end: u64) -> Option<(u64, u64)> {
        let reply = ask(Endpoint::VM, &vm::NextPresent { process, from, end }.message()).ok()?;
        vm::NextPresent::results(&reply).ok()
    }

    fn vm_poke(&mut self, process: Endpoint, address: u64, text: &[u8]) -> Result<()> {
        let bytes = text.len() as u64;
        let request = |grant| vm::Poke { process, address, grant, bytes }.message();
        ask_lending(Endpoint::VM, text, request)?.result().map(drop)
    }

    fn vm_set_limits(&mut self, process: Endpoint, limits: MemoryLimits) {
        let MemoryLimits { addresses, data, locked, stack } = limits;
        tell(Endpoint::VM, &vm::SetLimits { process, addresses, data, locked, stack }.message());
    }

    fn vm_set_container(&mut self, process: Endpoint, container: u8, pages: u64) -> Result<()> {
        let container = container.into();
        ask(Endpoint::VM, &vm::SetContainer { process, container, pages }.message()).map(drop)
    }

    fn vm_container(&mut self, container: u8) -> u64 {
        let reply = ask(Endpoint::VM, &vm::ContainerMemory { container: container.into() }.message());
        reply.and_then(|reply| vm::ContainerMemory::results(&reply)).unwrap_or(0)
    }

    fn memory(&mut self) -> MemoryUse {
        let reply = ask(Endpoint::VM, &vm::MemoryInfo {}.message());
        match reply.and_then(|reply| vm::MemoryInfo::results(&reply)) {
            Ok((total, free, _, _)) => MemoryUse { total, free },
            Err(_) => MemoryUse::default(),
        }
    }

    fn vfs_fork(
        &mut self,
        parent: Endpoint,
        child: Endpoint,
        identity: Identity,
        flags: u64,
        parts: Parts,
    ) -> Result<()> {
        let identity = identity.to_word();
        ask(Endpoint::VFS, &vfs::Fork { parent, child, identity, flags, parts }.message()).map(drop)
    }

    fn vfs_set_parts(&mut self, process: Endpoint, parts: Parts, unshared: u64) -> Result<()> {
        ask(Endpoint::VFS, &vfs::SetParts { process, parts, unshared }.message()).map(drop)
    }

    fn vfs_set_id_map(&mut self, process: Endpoint, users: u64, groups: u64) {
        tell(Endpoint::VFS, &vfs::SetIdMap { process, users, groups }.message());
    }

    fn vfs_exit(&mut self, process: Endpoint) {
        tell(Endpoint::VFS, &vfs::Exit { process }.message());
    }

    fn vfs_exec(&mut self, process: Endpoint, program: &ProgramName) -> Result<()> {
        let ProgramName { directory, ref path, flags } = *program;
        let bytes = path.len() as u64;
        let request = |grant| vfs::Exec { process, grant, bytes, directory, flags }.message();
        ask_lending(Endpoint::VFS, path, request).map(drop)
    }

    fn vfs_exec_commit(&mut self, process: Endpoint) {
        tell(Endpoint::VFS, &vfs::ExecCommit { process }.message());
    }

    fn vfs_exec_text(&mut self, process: Endpoint, buffer: &mut [u8]) -> Result<usize> {
        let bytes = buffer.len() as u64;
        let request = |grant| vfs::ExecText { process, grant, bytes }.message();
        let reply = grant::lend_mut(buffer, Endpoint::VFS, |grant| ask(Endpoint::VFS, &request(grant)))??;
        reply.result().map(|length| length as usize)
    }

    fn vfs_cancel(&mut self, process: Endpoint, error: Errno) -> Result<()> {
        ask(Endpoint::VFS, &vfs::Cancel { process, error: error.0 }.message()).map(drop)
    }

    fn vfs_unmasked(&mut self, process: Endpoint) {
        tell(Endpoint::VFS, &vfs::Unmasked { process }.message());
    }

    fn vfs_signals_pending(&mut self, process: Endpoint) {
        tell(Endpoint::VFS, &vfs::SignalsPending { process }.message());
    }

    fn vfs_set_ids(&mut self, process: Endpoint, ids: FileIds, groups: &[u32]) {
        let FileIds { effective, real, capabilities, real_capabilities } = ids;
        let count = groups.len() as u64;
        let request = |grant| {
            vfs::SetIds { process, effective, real, grant, groups: count, capabilities, real_capabilities }.message()
        };
        if groups.is_empty() {
            return tell(Endpoint::VFS, &request(GrantId::NONE));
        }
        let text = groups.as_bytes();
        if let Err(error) = ask_lending(Endpoint::VFS, text, request) {
            sys::log!("vfs does not take the ids of {:#x}: {error}", process.0);
        }
    }

    fn vfs_set_limits(&mut self, process: Endpoint, limits: FileLimits) {
        let FileLimits { descriptors, file_bytes, message_bytes } = limits;
        tell(Endpoint::VFS, &vfs::SetLimits { process, descriptors, file_bytes, message_bytes }.message());
    }

    fn vfs_limit_container(&mut self, container: u8, files: u64, pipes: u64) -> Result<()> {
        let container = container.into();
        ask(Endpoint::VFS, &vfs::LimitContainer { container, files, pipes }.message()).map(drop)
    }

    fn vfs_container(&mut self, container: u8) -> (u64, u64) {
        let reply = ask(Endpoint::VFS, &vfs::ContainerFiles { container: container.into() }.message());
        reply.and_then(|reply| vfs::ContainerFiles::results(&reply)).unwrap_or((0, 0))
    }

    fn vfs_works_for(&mut self, process: Endpoint) -> bool {
        ask(Endpoint::VFS, &vfs::WorksFor { process }.message()).and_then(|reply| reply.result()) == Ok(1)
    }

    fn vfs_set_session(&mut self, process: Endpoint, session: u32, group: u32, leader: bool) {
        let (session, group) = (session as u64, group as u64);
        tell(Endpoint::VFS, &vfs::SetSession { process, session, group, leader }.message());
    }

    fn vfs_open_pidfd(&mut self, to: &Requester, identity: Identity, flags: u64, address: u64) -> Result<u64> {
        let Requester { thread: process, call } = *to;
        let request = vfs::OpenPidFd { process, call, identity: identity.to_word(), flags, address };
        ask(Endpoint::VFS, &request.message())?.result()
    }

    fn vfs_pidfd(&mut self, process: Endpoint, descriptor: i32) -> Result<(Identity, bool)> {
        let request = vfs::PidFd { process, descriptor: descriptor.into() };
        let reply = ask(Endpoint::VFS, &request.message())?;
        vfs::PidFd::results(&reply).map(|(identity, nonblocking)| (Identity::from_word(identity), nonblocking))
    }

    fn vfs_process_folder(&mut self, process: Endpoint, descriptor: i32) -> Result<u32> {
        let request = vfs::ProcessFolder { process, descriptor: descriptor.into() };
        ask(Endpoint::VFS, &request.message())?.result().map(|pid| pid as u32)
    }

    fn vfs_copy_descriptor(&mut self, to: &Requester, from: Endpoint, descriptor: i32) -> Result<u64> {
        let Requester { thread: process, call } = *to;
        let request = vfs::CopyDescriptor { process, call, from, descriptor: descriptor.into() };
        ask(Endpoint::VFS, &request.message())?.result()
    }

    fn vfs_compare(&mut self, request: &vfs::Compare) -> Result<u64> {
        ask(Endpoint::VFS, &request.message())?.result()
    }

    fn vfs_next_event(&mut self, done: u64) -> Option<FileEvent> {
        let reply = ask(Endpoint::VFS, &vfs::NextEvent { done }.message()).ok()?;
        let (kind, process, a, b, c, d) = vfs::NextEvent::results(&reply).ok()?;
        Some(FileEvent { number: reply.result().ok()?, kind, process, values: [a, b, c, d] })
    }

    fn vfs_sync_all(&mut self, unmount: bool) -> Result<()> {
        ask(Endpoint::VFS, &vfs::SyncAll { unmount }.message()).map(drop)
    }

    fn tty_next_event(&mut self, done: u64) -> Option<TerminalEvent> {
        let reply = ask(Endpoint::TTY, &tty::NextEvent { done }.message()).ok()?;
        let (number, signal, target) = tty::NextEvent::results(&reply).ok()?;
        Some(TerminalEvent { number, signal, target })
    }

    fn tty_session_end(&mut self, session: u32) {
        tell(Endpoint::TTY, &tty::SessionEnd { session: session as u64 }.message());
    }

    fn tty_background(&mut self, pid: u32, is_allowed: bool) {
        tell(Endpoint::TTY, &tty::Background { process: pid.into(), allowed: is_allowed }.message());
    }

    fn tty_process_gone(&mut self, pid: u32) {
        tell(Endpoint::TTY, &tty::ProcessGone { process: pid.into() }.message());
    }
}
