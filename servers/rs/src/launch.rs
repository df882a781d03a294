//! Starting and ending an incarnation: kernel slot, memory from vm, rights, registers.
//!
//! A restart needs no memory of its own: binaries are lent to vm straight out of the boot archive (or out of the update that brought
//! them), and what a crash report takes has its place since rs started.

use crate::autopsy::Remains;
use crate::policy::Activity;
use crate::record::Death;
use crate::reports::Reports;
use crate::rights::{self, Granted};
use crate::world::{Plan, World};
use abi::archive::Archive;
use abi::info::{FRAMEBUFFER, Framebuffer, state};
use abi::layout::{PAGE_BYTES, SERVICE_HEAP, start_kind};
use abi::registers::Registers;
use abi::rs::Injection;
use abi::symbols::{self, Symbols};
use abi::system::{Service, System};
use abi::vm::{Renew, SetRights, Spawn};
use abi::{Endpoint, Errno, vm};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use sys::rights::End;
use sys::{Result, StartKind, copy, fallible, grant, ipc, thread};

/// Status with which a system ends that has lost what it needs.
const LOST_STATUS: u32 = 1;
/// Stacks end at a multiple of this.
const STACK_ALIGNMENT: u64 = 16;
const NS_PER_S: u64 = 1_000_000_000;

/// What crash reports say of a service.
struct Known {
    slot: usize,
    name: String,
    binary: String,
    /// Address of its ring of messages, 0: none.
    ring: u64,
}

/// The world as it is.
pub struct Launcher {
    archive: Archive<'static>,
    archive_physical: u64,
    services: Vec<Known>,
    remains: Remains,
    /// Crash reports.
    pub reports: Reports,
}

impl Launcher {
    /// Starts services of `system` from the archive, which lies at a physical address.
    #[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "at the start")]
    pub fn new(archive: Archive<'static>, archive_physical: u64, system: &System) -> Launcher {
        let known = |service: &Service| Known {
            slot: service.slot as usize,
            name: service.name.clone(),
            binary: service.binary.clone(),
            ring: archive
                .find(&format!("{}{}", service.binary, symbols::SUFFIX))
                .and_then(|file| Symbols::new(file.data))
                .map_or(0, |symbols| symbols.recent()),
        };
        let services = system.service.iter().map(known).collect();
        Launcher { archive, archive_physical, services, remains: Remains::new(archive), reports: Reports::new() }
    }

    /// Returns the name of the function of a service, as it is in the archive, at this address.
    #[expect(clippy::disallowed_macros, reason = "short texts of the system file: from the heap's reserve")]
    pub fn function(&self, name: &str, address: u64) -> Option<&'static str> {
        let known = self.services.iter().find(|known| known.name == name)?;
        let file = self.archive.find(&format!("{}{}", known.binary, symbols::SUFFIX))?;
        Symbols::new(file.data)?.function(address).map(|function| function.name)
    }

    fn known(&self, endpoint: Endpoint) -> Option<&Known> {
        self.services.iter().find(|known| known.slot == endpoint.slot())
    }

    /// The argument text: what the system file says, and where the module is.
    #[expect(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        reason = "short texts of the system file: from the heap's reserve"
    )]
    fn arguments(&self, service: &Service, module: Option<(u64, u64)>) -> String {
        let mut text = service.arguments.clone();
        if let Some((start, bytes)) = module {
            let blank = if text.is_empty() { "" } else { " " };
            text.push_str(&format!("{blank}module={start:#x},{bytes:#x}"));
        }
        text
    }

    fn module(&self, service: &Service) -> Result<Option<(u64, u64)>> {
        let Some(name) = &service.module else { return Ok(None) };
        let file = self.archive.find(name).ok_or(Errno::ENXIO)?;
        Ok(Some((self.archive_physical + file.offset, file.data.len() as u64)))
    }

    /// The rest of a launch, once the slot exists.
    fn bring_up(&mut self, endpoint: Endpoint, plan: &Plan) -> Result<()> {
        let service = plan.service;
        let module = self.module(service)?;
        let memory = fallible::collect(plan.device.memory.iter().copied().chain(module))?;
        let granted = Granted { ports: &plan.device.ports, memory: &memory, irqs: &plan.device.irqs };
        sys::rights::set_privileges(endpoint, &rights::privileges(service, granted)?)?;
        thread::schedule(endpoint, service.queue as u64, service.quantum_us as u64)?;
        let (entry, _, stack_end) = self.build(endpoint, plan)?;
        let text = self.arguments(service, module);
        let arguments = (stack_end - text.len() as u64) & !(STACK_ALIGNMENT - 1);
        if !text.is_empty() {
            copy::to_process(endpoint, arguments, text.as_bytes())?;
        }
        let registers = Registers {
            rip: entry,
            rsp: arguments,
            rdi: start_word(plan.kind),
            rsi: arguments,
            rdx: text.len() as u64,
            r10: SERVICE_HEAP,
            r8: service.heap_bytes,
            r9: endpoint.0.into(),
            ..Registers::ZERO
        };
        thread::set_registers(endpoint, &registers, 0)?;
        thread::start(endpoint)
    }

    /// Has vm build the memory, or make that of the predecessor fit. → entry, end of the arguments (of which there are none yet), end of
    /// the stack.
    fn build(&mut self, process: Endpoint, plan: &Plan) -> Result<(u64, u64, u64)> {
        let service = plan.service;
        let image = match plan.program {
            Some(program) => program.bytes(),
            None => self.archive.find(&service.binary).ok_or(Errno::ENOENT)?.data,
        };
        let (image_bytes, argument_bytes) = (image.len() as u64, 0);
        let (heap_bytes, keep_bytes) = (service.heap_bytes, service.keep_bytes);
        grant::lend(image, Endpoint::VM, |grant| {
            if service.retained && plan.kind == StartKind::Restarted {
                let request = Renew { process, grant, image_bytes, argument_bytes };
                return Renew::results(&ipc::call(Endpoint::VM, &request.message())?);
            }
            let (dma_bytes, inspects_memory) = (service.dma_bytes, service.inspects_memory);
            if dma_bytes > 0 || inspects_memory {
                let rights = SetRights { process, dma_bytes, inspects_memory };
                ipc::call(Endpoint::VM, &rights.message())?.result()?;
            }
            let request = Spawn { process, grant, image_bytes, argument_bytes, heap_bytes, keep_bytes };
            Spawn::results(&ipc::call(Endpoint::VM, &request.message())?)
        })?
    }
}

fn start_word(how: StartKind) -> u64 {
    match how {
        StartKind::Fresh => start_kind::FRESH,
        StartKind::Restarted => start_kind::RESTARTED,
        StartKind::Updated => start_kind::UPDATED,
    }
}

impl World for Launcher {
    fn now_ns(&self) -> u64 {
        sys::time::now_ns()
    }

    fn launch(&mut self, plan: &Plan) -> Result<Endpoint> {
        let endpoint = thread::create(plan.service.slot as usize)?;
        match self.bring_up(endpoint, plan) {
            Ok(()) => Ok(endpoint),
            Err(error) => {
                self.destroy(endpoint, true);
                Err(error)
            }
        }
    }

    fn adopt(&mut self, endpoint: Endpoint, service: &Service) {
        let set = rights::privileges(service, Granted::default())
            .and_then(|rights| sys::rights::set_privileges(endpoint, &rights))
            .and_then(|()| thread::schedule(endpoint, service.queue as u64, service.quantum_us as u64));
        if let Err(error) = set {
            self.say(format_args!("the rights of {} cannot be set: {error}", service.name));
        }
    }

    fn examine(&mut self, death: &Death) {
        let ring = self.known(death.endpoint).filter(|_| !death.is_updated).map_or(0, |known| known.ring);
        self.remains.take(death.endpoint, ring);
    }

    fn report(&mut self, death: &Death) {
        let now_ns = sys::time::now_ns();
        let Launcher { services, remains, reports, .. } = self;
        let known = |endpoint: Endpoint| services.iter().find(|known| known.slot == endpoint.slot());
        let binary = known(death.endpoint).map_or("", |known| &known.binary);
        let (s, us) = (now_ns / NS_PER_S, now_ns % NS_PER_S / 1000);
        let (name, generation) = (death.name, death.endpoint.generation());
        let is_updated = if death.is_updated { ", with an updated program" } else { "" };
        reports.add(death.name, |text, number| {
            writeln!(text, "crash report {number}: {name}, generation {generation}{is_updated}")?;
            writeln!(text, "time: {s}.{us:06} s after the start of the system")?;
            remains.describe(text, death, binary, |endpoint| known(endpoint).map(|known| known.name.as_str()))
        });
    }

    fn destroy(&mut self, endpoint: Endpoint, keep: bool) {
        if let Err(error) = thread::destroy(endpoint, keep) {
            self.say(format_args!("slot {} cannot be cleared: {error}", endpoint.slot()));
        }
    }

    fn expect_nobody(&mut self, slot: usize) {
        // Fails when nobody was expected any more, which is what is wanted.
        let _ = thread::destroy(Endpoint::current(slot), false);
    }

    fn free_memory(&mut self, endpoint: Endpoint) {
        match ipc::call(Endpoint::VM, &vm::Exit { process: endpoint }.message()) {
            // A start that failed half way has freed it.
            Ok(_) | Err(Errno::ESRCH) => {}
            Err(error) => self.say(format_args!("vm keeps the memory of slot {}: {error}", endpoint.slot())),
        }
    }

    fn boot_framebuffer(&self) -> Option<(u64, u64)> {
        let found: Framebuffer = sys::info::get(FRAMEBUFFER, 0).ok()?;
        let end = found.address.checked_add(u64::from(found.pitch) * u64::from(found.height))?;
        let start = found.address / PAGE_BYTES * PAGE_BYTES;
        Some((start, end.checked_next_multiple_of(PAGE_BYTES)? - start)).filter(|(_, bytes)| *bytes > 0)
    }

    fn lose_device(&mut self, slot: usize) {
        if let Err(error) = ipc::call(Endpoint::VM, &vm::DeviceLost { slot: slot as u64 }.message()) {
            self.say(format_args!("programs keep memory of the device of slot {slot}: {error}"));
        }
    }

    fn inject(&mut self, endpoint: Endpoint, request: &Injection) -> Result<()> {
        sys::rights::inject(endpoint, request.kind, request.value, request.further, request.bytes)
    }

    fn notify(&mut self, endpoint: Endpoint) {
        // One that has died in the meantime is reported by the kernel.
        let _ = ipc::notify(endpoint);
    }

    fn activity(&mut self, endpoint: Endpoint) -> Activity {
        let Ok(info) = sys::info::thread(endpoint.slot()) else { return Activity::default() };
        let waits_for_service = match info.state {
            state::SENDING | state::RECEIVING | state::ANSWERING => info.blocked_on.is_service(),
            state::FAULTING => true,
            _ => false,
        };
        Activity { waits_for_service, messages: info.messages }
    }

    fn end_system(&mut self, lost: &Service) {
        self.say(format_args!("the system cannot go on without {}", lost.name));
        if let Err(error) = sys::rights::shutdown(End::PowerOff, LOST_STATUS) {
            self.say(format_args!("and cannot be switched off: {error}"));
        }
    }

    fn say(&mut self, text: fmt::Arguments) {
        sys::log!("{text}");
    }
}
