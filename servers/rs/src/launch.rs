//! Starting and ending an incarnation: kernel slot, memory from vm, device from pci, rights, registers.

use crate::policy::Activity;
use crate::rights::{self, Granted};
use crate::world::World;
use abi::archive::Archive;
use abi::endpoint::slot;
use abi::info::state;
use abi::layout::{SERVICE_HEAP, birth};
use abi::pci::{Assign, Bar};
use abi::registers::Registers;
use abi::rs::Injection;
use abi::system::{Service, System};
use abi::vm::{Renew, Spawn};
use abi::{Endpoint, Errno, vm};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use sys::rights::End;
use sys::{Birth, Result, grant, ipc, thread};

/// Ranges of a PCI device.
const BARS: u64 = 6;
/// Interrupt line of a device that has none.
const NO_LINE: u8 = 0xff;
/// Status with which a system ends that has lost what it needs.
const LOST_STATUS: u32 = 1;
/// Room for argument texts behind the largest image.
const ARGUMENT_BYTES: usize = 4096;

/// The world as it is.
pub struct Launcher {
    archive: Archive<'static>,
    archive_physical: u64,
    /// Image and arguments of the service being started, for vm; allocated once, so that a restart needs no memory.
    image: Vec<u8>,
}

/// What a PCI device brings.
#[derive(Default)]
struct Device {
    ports: Vec<(u16, u16)>,
    memory: Vec<(u64, u64)>,
    irqs: Vec<u8>,
}

impl Launcher {
    /// Starts services of `system` from the archive, which lies at a physical address.
    pub fn new(archive: Archive<'static>, archive_physical: u64, system: &System) -> Launcher {
        let bytes = |service: &Service| archive.find(&service.binary).map_or(0, |file| file.data.len());
        let started = system.service.iter().filter(|service| !matches!(service.slot as usize, slot::RS | slot::VM));
        let largest = started.map(bytes).max().unwrap_or(0);
        Launcher { archive, archive_physical, image: Vec::with_capacity(largest + ARGUMENT_BYTES) }
    }

    /// The argument text: what the system file says, and where the module is.
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

    /// A dead incarnation's memory is the successor's.
    fn inherits(service: &Service, how: Birth) -> bool {
        service.retained && how == Birth::Restarted
    }

    /// Everything after the slot is there.
    fn bring_up(&mut self, endpoint: Endpoint, service: &Service, device: Device, how: Birth) -> Result<()> {
        let module = self.module(service)?;
        let mut device = device;
        device.memory.extend(module);
        let granted = Granted { ports: &device.ports, memory: &device.memory, irqs: &device.irqs };
        sys::rights::set_privileges(endpoint, &rights::privileges(service, granted)?)?;
        thread::schedule(endpoint, service.queue, service.quantum_us)?;
        let text = self.arguments(service, module);
        let (entry, arguments, stack_end) = self.build(endpoint, service, &text, Self::inherits(service, how))?;
        let registers = Registers {
            rip: entry,
            rsp: stack_end,
            rdi: birth_word(how),
            rsi: arguments,
            rdx: text.len() as u64,
            r10: SERVICE_HEAP,
            r8: service.heap_bytes,
            r9: endpoint.0.into(),
            ..Registers::ZERO
        };
        thread::set_registers(endpoint, &registers, false)?;
        thread::start(endpoint)
    }

    /// Has vm build the memory, or make that of the predecessor fit. → entry, address of the arguments, end of the stack.
    fn build(&mut self, process: Endpoint, service: &Service, text: &str, inherits: bool) -> Result<(u64, u64, u64)> {
        let file = self.archive.find(&service.binary).ok_or(Errno::ENOENT)?;
        self.image.clear();
        self.image.extend_from_slice(file.data);
        self.image.extend_from_slice(text.as_bytes());
        let (image_bytes, argument_bytes) = (file.data.len() as u64, text.len() as u64);
        let (heap_bytes, keep_bytes) = (service.heap_bytes, service.keep_bytes);
        grant::lend(&self.image, Endpoint::VM, |grant| {
            if inherits {
                let request = Renew { process, grant, image_bytes, argument_bytes };
                return Renew::results(&ipc::call(Endpoint::VM, &request.message())?);
            }
            let request = Spawn { process, grant, image_bytes, argument_bytes, heap_bytes, keep_bytes };
            Spawn::results(&ipc::call(Endpoint::VM, &request.message())?)
        })?
    }
}

fn birth_word(how: Birth) -> u64 {
    match how {
        Birth::Fresh => birth::FRESH,
        Birth::Restarted => birth::RESTARTED,
        Birth::Updated => birth::UPDATED,
    }
}

/// pci as it is now. A call to `Endpoint::PCI` would wait for a successor that only rs itself can start.
fn pci() -> Result<Endpoint> {
    thread::who_is(slot::PCI).map_err(|_| Errno::EAGAIN)
}

/// Errors of the way to pci mean that it is not there just now.
fn ask_pci(request: &abi::Message) -> Result<abi::Message> {
    ipc::call(pci()?, request).map_err(|error| match error {
        Errno::EDEADSRCDST | Errno::ELOCKED => Errno::EAGAIN,
        other => other,
    })
}

/// The first device among those that the service drives becomes its own.
///
/// `ENODEV`: none is there; `EAGAIN`: pci is not there just now.
fn find_device(service: &Service) -> Result<Device> {
    if service.pci.is_empty() {
        return Ok(Device::default());
    }
    for &(vendor, device) in &service.pci {
        let request = Assign { slot: service.slot.into(), vendor: vendor.into(), device: device.into(), index: 0 };
        match ask_pci(&request.message()) {
            Ok(reply) => return describe(service, Assign::results(&reply)?.1),
            Err(Errno::ENODEV) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::ENODEV)
}

fn describe(service: &Service, interrupts: u64) -> Result<Device> {
    let mut device = Device::default();
    let [first, second, ..] = interrupts.to_le_bytes();
    device.irqs.extend([first, second].into_iter().filter(|line| *line != NO_LINE));
    for bar in 0..BARS {
        let reply = ask_pci(&Bar { slot: service.slot.into(), bar }.message())?;
        match Bar::results(&reply)? {
            (_, 0, _) => {}
            (start, bytes, true) => device.ports.push((start as u16, (start + bytes - 1) as u16)),
            (start, bytes, false) => device.memory.push((start, bytes)),
        }
    }
    Ok(device)
}

impl World for Launcher {
    fn now_ns(&self) -> u64 {
        sys::time::now_ns()
    }

    fn launch(&mut self, service: &Service, how: Birth) -> Result<Endpoint> {
        let device = find_device(service)?;
        let endpoint = thread::create(service.slot as usize)?;
        match self.bring_up(endpoint, service, device, how) {
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
            .and_then(|()| thread::schedule(endpoint, service.queue, service.quantum_us));
        if let Err(error) = set {
            self.say(format_args!("the rights of {} cannot be set: {error}", service.name));
        }
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

    fn clear_away(&mut self, endpoint: Endpoint) {
        match ipc::call(Endpoint::VM, &vm::Exit { process: endpoint }.message()) {
            // A start that failed half way has freed it.
            Ok(_) | Err(Errno::ESRCH) => {}
            Err(error) => self.say(format_args!("vm keeps the memory of slot {}: {error}", endpoint.slot())),
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
            state::SENDING | state::RECEIVING => info.blocked_on.is_service(),
            state::FAULTING => true,
            _ => false,
        };
        Activity { waits_for_service, messages: info.messages }
    }

    fn assign_devices(&mut self, service: &Service) {
        if let Err(error) = find_device(service) {
            self.say(format_args!("pci does not find the device of {} again: {error}", service.name));
        }
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
