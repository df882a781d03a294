//! Puts numbers in the place of names: from a written system file to the table that rs reads.

use super::dependants;
use super::devices;
use super::replies;
use super::written::{Written, WrittenService};
use abi::Name;
use abi::call::KERNEL_CALL_NAMES;
use abi::endpoint::{FIRST_CONTAINER, slot};
use abi::linux;
use abi::privilege::{self, Privileges};
use abi::system::{Route, Service, System};
use std::collections::{BTreeMap, BTreeSet};

/// The word for all services among the destinations.
pub(super) const EVERYBODY: &str = "*";
/// The SYSTEM task among the destinations.
const SYSTEM: &str = "system";
const SYSTASK: &str = "systask";
const WORST_QUEUE: u32 = 15;
/// The longest wait before a restart that a first wait may be; rs waits no longer than this.
const MAX_BACKOFF_MS: u32 = 10_000;

/// The ways to a port, by name.
const WAYS: [(&str, u32); 4] = [
    (SYSTASK, privilege::way::SYSTASK),
    ("hal", privilege::way::HAL),
    ("emulate", privilege::way::EMULATE),
    ("direct", privilege::way::DIRECT),
];

/// The flags that a file may give. RESTARTABLE follows from `restarts`.
const FLAGS: [(&str, u32); 4] = [
    ("MAGIC_GRANTS", privilege::MAGIC_GRANTS),
    ("MSI", privilege::MSI),
    ("COPY_APPLICATIONS_ONLY", privilege::COPY_APPLICATIONS_ONLY),
    ("KILL_ON_DENIAL", privilege::KILL_ON_DENIAL),
];

type Slots = BTreeMap<String, u32>;

/// The table for `written`. `has_program` knows the programs we build.
///
/// # Errors
/// `service NAME: KEY: what was expected`, or the same for a route.
pub fn resolve(written: &Written, has_program: &dyn Fn(&str) -> bool) -> Result<System, String> {
    check_order(&written.service)?;
    let slots = slots(&written.service)?;
    check_callers(&written.service, &slots)?;
    let mut complete = written.service.clone();
    devices::derive(&mut complete)?;
    replies::check(&complete)?;
    dependants::check(&complete)?;
    let mut service = complete
        .iter()
        .map(|service| {
            let service = on_the_way_of_all(service.clone(), written.io_way.as_deref());
            resolve_service(&service, &slots, has_program).map_err(|wrong| format!("service {}: {wrong}", service.name))
        })
        .collect::<Result<Vec<_>, _>>()?;
    add_callers(&written.service, &slots, &mut service);
    let routes = routes(&written.routes, &slots).map_err(|wrong| format!("routes: {wrong}"))?;
    Ok(System { description: written.description.clone(), service, routes })
}

/// Sets the system's access path, if it has one, for a service with ports. `systask` needs kernel calls of its own for strings and
/// vectors.
fn on_the_way_of_all(mut service: WrittenService, way: Option<&str>) -> WrittenService {
    let has_ports = service.kernel_calls.iter().any(|call| call == "DevIo");
    if let Some(way) = way.filter(|_| has_ports) {
        service.io_way = way.to_string();
        if way == SYSTASK {
            service.destinations.push(SYSTEM.to_string());
            service.kernel_calls.extend(["SDevIo", "VDevIo"].map(str::to_string));
        }
    }
    service
}

/// The kernel starts rs and vm itself, from the head of the table.
fn check_order(services: &[WrittenService]) -> Result<(), String> {
    match services {
        [rs, vm, ..] if rs.name == "rs" && vm.name == "vm" => Ok(()),
        _ => Err("service: expected rs and vm as the first two".to_string()),
    }
}

fn check_callers(services: &[WrittenService], slots: &Slots) -> Result<(), String> {
    for service in services {
        if let Some(name) = service.callers.iter().find(|name| !slots.contains_key(*name)) {
            return Err(format!("service {}: callers: expected services of this file, not '{name}'", service.name));
        }
    }
    Ok(())
}

/// Puts each service among the destinations of those that it names as its callers.
fn add_callers(written: &[WrittenService], slots: &Slots, services: &mut [Service]) {
    for callee in written {
        for caller in services.iter_mut().filter(|caller| callee.callers.contains(&caller.name)) {
            caller.destinations.push(slots[&callee.name]);
            caller.destinations.sort_unstable();
            caller.destinations.dedup();
        }
    }
}

/// The slot of each service: fixed for some names, in the file's order for the others.
fn slots(services: &[WrittenService]) -> Result<Slots, String> {
    let mut slots = Slots::new();
    let mut next = slot::FIRST_FREE;
    for service in services {
        let name = &service.name;
        if Name::new(name).is_none() {
            return Err(format!("service {name}: name: expected 1 to 16 bytes"));
        }
        let slot = match slot::NAMES.iter().position(|fixed| fixed == name) {
            Some(index) => slot::RS + index,
            None => {
                next += 1;
                next - 1
            }
        };
        if slot >= FIRST_CONTAINER {
            return Err(format!("service {name}: there are more than {FIRST_CONTAINER} services"));
        }
        if slots.insert(name.clone(), slot as u32).is_some() {
            return Err(format!("service {name}: name: two services have it, expected each name once"));
        }
    }
    Ok(slots)
}

fn resolve_service(
    written: &WrittenService,
    slots: &Slots,
    has_program: &dyn Fn(&str) -> bool,
) -> Result<Service, String> {
    let binary = written.binary.as_ref().unwrap_or(&written.name);
    if !has_program(binary) {
        return Err(format!("binary: expected the name of a program in this checkout, not '{binary}'"));
    }
    check_ranges(written)?;
    let mut flags = sum_of("flags", &written.flags, &FLAGS)?;
    if written.restarts > 0 {
        flags |= privilege::RESTARTABLE;
    }
    Ok(Service {
        name: written.name.clone(),
        slot: slots[&written.name],
        binary: binary.clone(),
        arguments: written.arguments.clone(),
        queue: written.queue,
        quantum_us: written.quantum_us,
        heap_bytes: written.heap_bytes,
        keep_bytes: written.keep_bytes,
        dma_bytes: written.dma_bytes,
        inspects_memory: written.inspects_memory,
        kernel_calls: kernel_calls(&written.kernel_calls)?,
        destinations: destinations(&written.destinations, slots)?,
        applications: written.applications,
        flags,
        io_way: one_of("io_way", &written.io_way, &WAYS)?,
        ports: written.ports.clone(),
        virtual_ports: virtual_ports(&written.virtual_ports)?,
        irqs: written.irqs.clone(),
        memory: written.memory.clone(),
        module: written.module.clone(),
        pci: written.pci.iter().map(|device| pci_device(device)).collect::<Result<_, _>>()?,
        heartbeat_ms: written.heartbeat_ms,
        heartbeat_misses: written.heartbeat_misses,
        restarts: written.restarts,
        restart_window_ms: written.restart_window_ms,
        backoff_ms: written.backoff_ms,
        trial_ms: written.trial_ms,
        dependants: written.dependants.iter().map(|name| slots[name]).collect(),
        essential: written.essential,
        retained: written.retained,
        optional: written.optional,
        framebuffer: written.framebuffer,
    })
}

fn check_ranges(written: &WrittenService) -> Result<(), String> {
    if written.queue > WORST_QUEUE {
        return Err(format!("queue: expected 0 to {WORST_QUEUE}, not {}", written.queue));
    }
    if written.quantum_us == 0 {
        return Err("quantum_us: expected more than 0".to_string());
    }
    if written.heartbeat_ms > 0 && written.heartbeat_misses == 0 {
        return Err("heartbeat_misses: expected more than 0 for a service with heartbeats".to_string());
    }
    if written.backoff_ms > MAX_BACKOFF_MS {
        return Err(format!("backoff_ms: expected at most {MAX_BACKOFF_MS}, not {}", written.backoff_ms));
    }
    if written.trial_ms == 0 {
        return Err("trial_ms: expected more than 0".to_string());
    }
    if let Some((first, last)) = written.ports.iter().find(|(first, last)| first > last) {
        return Err(format!("ports: expected [first, last], not [{first:#x}, {last:#x}]"));
    }
    if let Some((start, bytes)) =
        written.memory.iter().find(|(start, bytes)| *bytes == 0 || start.checked_add(*bytes).is_none())
    {
        return Err(format!("memory: expected [start, bytes], not [{start:#x}, {bytes:#x}]"));
    }
    check_way(written)?;
    at_most("ports", written.ports.len() + written.virtual_ports.len(), Privileges::NONE.ports.len())?;
    at_most("irqs", written.irqs.len(), Privileges::NONE.irqs.len())?;
    at_most("memory", written.memory.len(), Privileges::NONE.memory.len())
}

fn check_way(written: &WrittenService) -> Result<(), String> {
    let asks_system = written.destinations.iter().any(|name| name == SYSTEM);
    if written.io_way == SYSTASK && !asks_system {
        return Err(format!("destinations: expected \"{SYSTEM}\" among them, which io_way = \"{SYSTASK}\" needs"));
    }
    let mut ranges: Vec<(u16, u16)> = written.virtual_ports.iter().map(|&(_, first, last)| (first, last)).collect();
    if let Some((first, last)) = ranges.iter().find(|(first, last)| first > last) {
        return Err(format!("virtual_ports: expected [device, first, last], not {first:#x}, {last:#x}"));
    }
    let virtual_count = ranges.len();
    ranges.extend(&written.ports);
    for (index, (first, last)) in ranges.iter().take(virtual_count).enumerate() {
        if ranges[index + 1..].iter().any(|(other_first, other_last)| first <= other_last && other_first <= last) {
            return Err(format!("virtual_ports: expected ports of no other range, not {first:#x} to {last:#x}"));
        }
    }
    Ok(())
}

fn virtual_ports(written: &[(String, u16, u16)]) -> Result<Vec<(u8, u16, u16)>, String> {
    let device =
        |name: &str| privilege::device::NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    let resolve = |(name, first, last): &(String, u16, u16)| match device(name) {
        Some(number) => Ok((number, *first, *last)),
        None => {
            let names: Vec<&str> = privilege::device::NAMES.iter().map(|(name, _)| *name).collect();
            Err(format!("virtual_ports: expected one of {}, not '{name}'", names.join(", ")))
        }
    };
    written.iter().map(resolve).collect()
}

fn at_most(key: &str, count: usize, most: usize) -> Result<(), String> {
    if count > most {
        return Err(format!("{key}: expected at most {most} entries, not {count}"));
    }
    Ok(())
}

fn kernel_calls(names: &[String]) -> Result<u64, String> {
    names.iter().try_fold(0, |mask, name| match KERNEL_CALL_NAMES.iter().find(|(known, _)| known == name) {
        Some((_, call)) => Ok(mask | call.bit()),
        None => Err(format!("kernel_calls: expected names of kernel calls as abi::call has them, not '{name}'")),
    })
}

fn destinations(names: &[String], slots: &Slots) -> Result<Vec<u32>, String> {
    let mut destinations = BTreeSet::new();
    for name in names {
        match slots.get(name) {
            Some(slot) => {
                destinations.insert(*slot);
            }
            None if name == SYSTEM => {
                destinations.insert(slot::SYSTEM as u32);
            }
            None if name == EVERYBODY => destinations.extend(slots.values()),
            None => {
                return Err(format!(
                    "destinations: expected \"{EVERYBODY}\", \"{SYSTEM}\" or a service of this file, not '{name}'"
                ));
            }
        }
    }
    Ok(destinations.into_iter().collect())
}

fn sum_of(key: &str, names: &[String], known: &[(&str, u32)]) -> Result<u32, String> {
    names.iter().try_fold(0, |sum, name| Ok(sum | one_of(key, name, known)?))
}

fn one_of(key: &str, name: &str, known: &[(&str, u32)]) -> Result<u32, String> {
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        format!("{key}: expected one of {}, not '{name}'", names.join(", "))
    })
}

fn pci_device(text: &str) -> Result<(u16, u16), String> {
    let number = |digits: &str| u16::from_str_radix(digits, 16).ok();
    text.split_once(':')
        .and_then(|(vendor, device)| Some((number(vendor)?, number(device)?)))
        .ok_or_else(|| format!("pci: expected \"VENDOR:DEVICE\" in hexadecimal, not '{text}'"))
}

fn routes(written: &BTreeMap<String, Vec<String>>, slots: &Slots) -> Result<Vec<Route>, String> {
    let mut routes = BTreeMap::new();
    for (service, calls) in written {
        let slot = match slots.get(service) {
            Some(slot) => *slot,
            None if service == "kernel" => slot::SYSTEM as u32,
            None => return Err(format!("expected \"kernel\" or a service of this file, not '{service}'")),
        };
        for call in calls {
            let number = linux::number(call).ok_or_else(|| format!("{service}: '{call}' is no Linux system call"))?;
            if routes.insert(number, slot).is_some() {
                return Err(format!("{service}: '{call}' is routed twice, expected each call once"));
            }
        }
    }
    Ok(routes.into_iter().map(|(number, slot)| Route { number, slot }).collect())
}
