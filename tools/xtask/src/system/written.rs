//! A system file as people write it. `abi::system` says what each key means; here most have a value that holds when the key is left
//! out.
//!
//! A system that extends another is laid over it as text is, key by key, before either is taken for a system ([`over`]).

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use toml::{Table, Value};

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// One line for people.
    pub description: String,
    /// Another system, which this one is but for what stands here.
    pub extends: Option<String>,
    /// Access path of all services with ports, in place of their own, with the rights that it needs. One line makes a system with all
    /// drivers on another access path.
    pub io_way: Option<String>,
    /// The services in the order of their start. In a system that extends another: keys in place of those of the other's service of the
    /// same name, or a service after all of them.
    #[serde(default)]
    pub service: Vec<WrittenService>,
    /// Service, or `kernel`, and the names of the Linux system calls it implements. In a system that extends another: in place of the
    /// other's calls for the same service.
    #[serde(default)]
    pub routes: BTreeMap<String, Vec<String>>,
}

/// The system file `own` laid over the one that it extends. A service of both has the keys of both, each as `own` has it; a new one stands
/// behind the others.
pub fn over(own: Table, base: Table) -> Table {
    let mut result = base;
    for (key, value) in own {
        match (result.get_mut(&key), value) {
            (Some(Value::Array(services)), Value::Array(own)) if key == "service" => add_services(services, own),
            (Some(Value::Table(routes)), Value::Table(own)) if key == "routes" => routes.extend(own),
            (_, value) => {
                result.insert(key, value);
            }
        }
    }
    result
}

fn add_services(services: &mut Vec<Value>, own: Vec<Value>) {
    for service in own {
        let same = services.iter_mut().find(|other| other.get("name") == service.get("name"));
        match (same, service) {
            (Some(Value::Table(other)), Value::Table(service)) => other.extend(service),
            (_, service) => services.push(service),
        }
    }
}

/// One `[[service]]`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenService {
    /// Folder, crate and process.
    pub name: String,
    /// Another crate than `name`.
    pub binary: Option<String>,
    /// Text handed to the service.
    #[serde(default)]
    pub arguments: String,
    /// Queue, 0 (best) to 15.
    #[serde(default = "usual_queue")]
    pub queue: u32,
    /// Quantum in microseconds.
    #[serde(default = "usual_quantum_us")]
    pub quantum_us: u32,
    /// Heap in bytes.
    #[serde(default)]
    pub heap_bytes: u64,
    /// Preserved memory in bytes.
    #[serde(default)]
    pub keep_bytes: u64,
    /// Limit of its memory for DMA, in bytes: 0, it gets none.
    #[serde(default)]
    pub dma_bytes: u64,
    /// May ask vm for sizes and maps of the memory of other processes.
    #[serde(default)]
    pub inspects_memory: bool,
    /// Names of kernel calls.
    #[serde(default)]
    pub kernel_calls: Vec<String>,
    /// Names of services; "*" stands for all.
    #[serde(default)]
    pub destinations: Vec<String>,
    /// Services that have this one among their destinations although they do not name it: those of the system that this one extends.
    #[serde(default)]
    pub callers: Vec<String>,
    /// Devices that it drives. Their nodes, who may open them and who may reply follow (`devices`).
    #[serde(default)]
    pub devices: Vec<WrittenDevice>,
    /// Kinds of devices that it opens: it may send to every service that drives one.
    #[serde(default)]
    pub opens: Vec<String>,
    /// The table of all devices (`abi::device`) is added to its arguments.
    #[serde(default)]
    pub device_table: bool,
    /// May answer application threads.
    #[serde(default)]
    pub applications: bool,
    /// Names of privilege flags.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Access path to the ports.
    #[serde(default = "usual_io_way")]
    pub io_way: String,
    /// First and last port.
    #[serde(default)]
    pub ports: Vec<(u16, u16)>,
    /// Name of a device that the kernel plays, first and last port.
    #[serde(default)]
    pub virtual_ports: Vec<(String, u16, u16)>,
    /// Interrupt lines.
    #[serde(default)]
    pub irqs: Vec<u8>,
    /// Start and bytes.
    #[serde(default)]
    pub memory: Vec<(u64, u64)>,
    /// File of the boot archive that it may map.
    pub module: Option<String>,
    /// PCI devices, "VENDOR:DEVICE" in hexadecimal.
    #[serde(default)]
    pub pci: Vec<String>,
    /// Heartbeat period; 0: not watched.
    #[serde(default = "usual_heartbeat_ms")]
    pub heartbeat_ms: u32,
    /// Missed heartbeats until it counts as hung.
    #[serde(default = "usual_heartbeat_misses")]
    pub heartbeat_misses: u32,
    /// Restarts within the window until rs gives up; 0: never restarted.
    #[serde(default)]
    pub restarts: u32,
    /// The window.
    #[serde(default = "usual_restart_window_ms")]
    pub restart_window_ms: u32,
    /// The first wait before a restart; doubles with each.
    #[serde(default = "usual_backoff_ms")]
    pub backoff_ms: u32,
    /// Trial of a new binary.
    #[serde(default = "usual_trial_ms")]
    pub trial_ms: u32,
    /// Names of services that are restarted with it.
    #[serde(default)]
    pub dependants: Vec<String>,
    /// Never given up.
    #[serde(default)]
    pub essential: bool,
    /// A successor starts in the memory of the dead.
    #[serde(default)]
    pub retained: bool,
    /// The system starts without it when its device is missing.
    #[serde(default)]
    pub optional: bool,
    /// In place of a device that is missing: the boot loader's frame buffer.
    #[serde(default)]
    pub framebuffer: bool,
}

/// A device of a service.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenDevice {
    /// Name of its node in /dev.
    pub name: String,
    /// "char" or "block".
    pub kind: String,
    /// Major number: Linux's for this device (devices.txt); 60 to 63 are for local use.
    pub major: u8,
    /// Minor number, by which the driver tells its devices apart.
    #[serde(default)]
    pub minor: u8,
    /// Permission bits of the node.
    #[serde(default = "usual_mode")]
    pub mode: u16,
    /// Names of symbolic links to the node.
    #[serde(default)]
    pub links: Vec<String>,
}

fn usual_mode() -> u16 {
    0o600
}

fn usual_queue() -> u32 {
    4
}

fn usual_quantum_us() -> u32 {
    20_000
}

fn usual_io_way() -> String {
    "hal".to_string()
}

fn usual_heartbeat_ms() -> u32 {
    1000
}

fn usual_heartbeat_misses() -> u32 {
    3
}

fn usual_restart_window_ms() -> u32 {
    60_000
}

fn usual_backoff_ms() -> u32 {
    10
}

fn usual_trial_ms() -> u32 {
    2000
}

/// Reads the file's text, as keys and as a system.
///
/// # Errors
/// What is wrong, on one line, to be put behind the file's name: `:LINE: KEY: what was expected`.
pub fn parse(text: &str) -> Result<(Table, Written), String> {
    let both = toml::from_str(text).and_then(|keys| Ok((keys, toml::from_str(text)?)));
    both.map_err(|error| describe(text, &error))
}

/// The system of keys laid over each other, each of which [`parse`] has read.
///
/// # Errors
/// What is wrong.
pub fn system(keys: Table) -> Result<Written, String> {
    keys.try_into().map_err(|error: toml::de::Error| error.message().to_string())
}

fn describe(text: &str, error: &toml::de::Error) -> String {
    let mut sentence = String::new();
    if let Some(span) = error.span() {
        let line = text[..span.start].matches('\n').count();
        // Writing to a string cannot fail.
        let _ = write!(sentence, ":{}", line + 1);
        let key = text.lines().nth(line).and_then(|line| line.split_once('='));
        if let Some((key, _)) = key.filter(|(key, _)| !key.trim_start().starts_with('{')) {
            let _ = write!(sentence, ": {}", key.trim());
        }
    }
    let _ = write!(sentence, ": {}", error.message().replace('\n', " "));
    sentence
}
