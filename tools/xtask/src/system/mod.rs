//! Reads a system file, systems/NAME.toml, into the table that rs gets.
//!
//! `written` has the file's own form, with names; `resolve` puts numbers in their place and refuses
//! what makes no sense. Every refusal names the file, the key and what was expected.

mod dependants;
mod devices;
mod replies;
mod resolve;
mod written;

use self::written::Written;
use crate::c_services;
use crate::programs::Packages;
use crate::workspace::Workspace;
use abi::system::System;
use anyhow::{Context, Result, bail};
use std::fs;

/// Reads and checks systems/`name`.toml.
///
/// # Errors
/// When there is no such system or something is wrong in its file.
pub fn read(workspace: &Workspace, packages: &Packages, name: &str) -> Result<System> {
    let path = format!("systems/{name}.toml");
    let written = parse(&path, &text_of(workspace, name)?, &|base| text_of(workspace, base))?;
    let has_program = |binary: &str| packages.has_program(binary) || c_services::exists(workspace, binary);
    resolve::resolve(&written, &has_program).map_err(|wrong| anyhow::anyhow!("{path}: {wrong}"))
}

/// The text of a system file.
fn text_of(workspace: &Workspace, name: &str) -> Result<String> {
    let path = format!("systems/{name}.toml");
    match fs::read_to_string(workspace.root.join(&path)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let names = names(workspace);
            let names = if names.is_empty() { "no systems".to_string() } else { names.join(", ") };
            bail!("there is no system '{name}'; systems/ has {names}")
        }
        text => text.with_context(|| format!("cannot read {path}")),
    }
}

/// How many systems may extend each other in a row: enough, and not for ever when they go in a circle.
const MAX_EXTENSIONS: usize = 4;

/// The system in `text`, which stands in the file `path`, over the one that it extends, and so on.
fn parse(path: &str, text: &str, text_of: &dyn Fn(&str) -> Result<String>) -> Result<Written> {
    let read = |path: &str, text: &str| written::parse(text).map_err(|wrong| anyhow::anyhow!("{path}{wrong}"));
    let (mut keys, mut last) = read(path, text)?;
    for _ in 0..MAX_EXTENSIONS {
        let Some(base) = last.extends else {
            return written::system(keys).map_err(|wrong| anyhow::anyhow!("{path}: {wrong}"));
        };
        let text = text_of(&base).with_context(|| format!("{path}: extends: expected the name of a system"))?;
        let (lower, written) = read(&format!("systems/{base}.toml"), &text)?;
        (keys, last) = (written::over(keys, lower), written);
    }
    bail!("{path}: extends: expected at most {MAX_EXTENSIONS} systems over each other")
}

/// The names of the systems there are.
pub fn names(workspace: &Workspace) -> Vec<String> {
    let Ok(entries) = fs::read_dir(workspace.root.join("systems")) else { return Vec::new() };
    let files = entries.flatten().map(|entry| entry.path());
    let toml = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut names: Vec<String> =
        toml.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::call::KernelCall;
    use abi::endpoint::slot;
    use abi::privilege;

    const GOOD: &str = r#"
description = "for tests"

[[service]]
name = "rs"
heap_bytes = 0x10_0000
kernel_calls = ["Diag"]
destinations = ["*"]
applications = true

[[service]]
name = "vm"
heap_bytes = 0
kernel_calls = []
destinations = []

[[service]]
name = "uart"
heap_bytes = 4096
kernel_calls = ["Diag", "DevIo"]
destinations = ["rs"]
io_way = "direct"
ports = [[0x3f8, 0x3ff]]
irqs = [4]
pci = ["1af4:1042"]
restarts = 5

[routes]
rs = ["skink_service"]
kernel = ["sched_yield"]
"#;

    fn read(text: &str) -> Result<System> {
        let written = parse("systems/x.toml", text, &|_| Ok(GOOD.to_string()))?;
        resolve::resolve(&written, &|name| name != "nothing")
            .map_err(|wrong| anyhow::anyhow!("systems/x.toml: {wrong}"))
    }

    #[test]
    fn a_system_over_another_replaces_keys_and_adds_services() {
        let text = r#"
description = "more"
extends = "good"
[[service]]
name = "uart"
heap_bytes = 8192
irqs = [3, 4]
[[service]]
name = "rtc"
heap_bytes = 4096
[routes]
kernel = []
"#;
        let system = read(text).expect("is right");
        let names: Vec<_> = system.service.iter().map(|service| (service.name.as_str(), service.heap_bytes)).collect();
        assert_eq!(names, [("rs", 0x10_0000), ("vm", 0), ("uart", 8192), ("rtc", 4096)]);
        let uart = &system.service[2];
        assert_eq!((uart.irqs.as_slice(), uart.restarts, uart.ports.len()), ([3, 4].as_slice(), 5, 1));
        assert_eq!((system.description.as_str(), system.routes.len()), ("more", 1));
        let wrong = read(&text.replace("8192", "8192\nheap = 1")).expect_err("was accepted").to_string();
        assert!(wrong.starts_with("systems/x.toml:7: heap: unknown field"), "{wrong}");
    }

    #[test]
    fn callers_get_a_new_service_among_their_destinations() {
        let text = r#"
description = "more"
extends = "good"
[[service]]
name = "lp"
heap_bytes = 4096
kernel_calls = []
destinations = ["uart"]
callers = ["uart"]
"#;
        let system = read(text).expect("is right");
        let [_, _, uart, lp] = &system.service[..] else { panic!("not four services") };
        assert_eq!(uart.destinations, [slot::RS as u32, lp.slot]);
        let wrong = read(&text.replace("\"uart\"", "\"usart\"")).expect_err("was accepted").to_string();
        assert!(wrong.contains("service lp: callers: expected services of this file, not 'usart'"), "{wrong}");
    }

    #[test]
    fn a_service_that_may_be_asked_may_reply() {
        let refused = refusal("kernel_calls = []\ndestinations = []", "kernel_calls = []\ndestinations = [\"uart\"]");
        assert_eq!(
            refused,
            "systems/x.toml: service uart: destinations: expected \"vm\" among them: vm may ask uart, whose reply would \
             be refused, and vm would wait for ever"
        );
        let both = GOOD
            .replacen("kernel_calls = []\ndestinations = []", "kernel_calls = []\ndestinations = [\"uart\"]", 1)
            .replacen("destinations = [\"rs\"]", "destinations = [\"rs\", \"vm\"]", 1);
        assert!(read(&both).is_ok());
    }

    #[test]
    fn every_system_of_the_checkout_is_right() {
        const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems");
        let text_of = |name: &str| Ok(fs::read_to_string(format!("{FOLDER}/{name}.toml"))?);
        for entry in fs::read_dir(FOLDER).expect("is there").flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = file.strip_suffix(".toml") else { continue };
            let text = text_of(name).expect("is read");
            let written = parse(&file, &text, &text_of).expect("is written rightly");
            assert_eq!(resolve::resolve(&written, &|_| true).map(drop), Ok(()), "{file}");
        }
    }

    #[test]
    fn a_circle_of_systems_is_refused() {
        let text = "description = \"x\"\nextends = \"y\"\n";
        let wrong = parse("systems/x.toml", text, &|_| Ok(text.to_string())).map(drop).expect_err("was accepted");
        assert!(wrong.to_string().contains("extends: expected"), "{wrong}");
    }

    #[test]
    fn a_way_for_all_changes_the_services_with_ports_alone() {
        let system = read("description = \"x\"\nextends = \"good\"\nio_way = \"systask\"\n").expect("is right");
        let [rs, _, uart] = &system.service[..] else { panic!("not three services") };
        assert_eq!((rs.io_way, uart.io_way), (privilege::way::HAL, privilege::way::SYSTASK));
        assert_eq!(uart.destinations, [slot::SYSTEM as u32, slot::RS as u32]);
        let calls = [KernelCall::Diag, KernelCall::DevIo, KernelCall::SDevIo, KernelCall::VDevIo];
        assert_eq!(uart.kernel_calls, calls.iter().map(|call| call.bit()).sum::<u64>());
    }

    #[test]
    fn virtual_ports_have_a_device_and_a_place_of_their_own() {
        let with = |text: &str| GOOD.replacen("irqs = [4]", text, 1);
        let system = read(&with("virtual_ports = [[\"log\", 0xff00, 0xff00]]")).expect("is right");
        assert_eq!(system.service[2].virtual_ports, [(privilege::device::LOG, 0xff00, 0xff00)]);
        assert!(refusal("irqs = [4]", "virtual_ports = [[\"lag\", 1, 1]]").contains("expected one of clock, log"));
        assert!(refusal("irqs = [4]", "virtual_ports = [[\"log\", 0x3ff, 0x400]]").contains("no other range"));
        assert!(refusal("irqs = [4]", "virtual_ports = [[\"log\", 2, 1]]").contains("virtual_ports:"));
    }

    #[test]
    fn the_way_by_messages_needs_the_system_task() {
        assert!(refusal("\"direct\"", "\"systask\"").contains("service uart: destinations: expected \"system\""));
    }

    fn refusal(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from} is not in the file");
        read(&GOOD.replacen(from, to, 1)).expect_err("was accepted").to_string()
    }

    #[test]
    fn names_become_numbers() {
        let system = read(GOOD).expect("is right");
        let [rs, _, uart] = &system.service[..] else { panic!("not three services") };
        assert_eq!((rs.slot as usize, uart.slot as usize), (slot::RS, slot::FIRST_FREE));
        assert_eq!(uart.kernel_calls, KernelCall::Diag.bit() | KernelCall::DevIo.bit());
        assert_eq!(uart.destinations, [slot::RS as u32]);
        assert_eq!(rs.destinations, [slot::RS as u32, slot::VM as u32, slot::FIRST_FREE as u32]);
        assert_eq!(uart.io_way, privilege::way::DIRECT);
        assert_eq!((uart.ports[0], uart.pci[0]), ((0x3f8, 0x3ff), (0x1af4, 0x1042)));
        assert_eq!((rs.flags, uart.flags), (0, privilege::RESTARTABLE));
        assert_eq!((uart.binary.as_str(), rs.applications), ("uart", true));
        let routes: Vec<_> = system.routes.iter().map(|route| (route.number, route.slot)).collect();
        assert_eq!(routes, [(24, 0), (abi::linux::SERVICE, slot::RS as u32)]);
    }

    #[test]
    fn refusals_name_file_key_and_expectation() {
        let unknown_key = refusal("heap_bytes = 4096", "heap_byte = 4096");
        assert!(unknown_key.starts_with("systems/x.toml:"), "{unknown_key}");
        assert!(unknown_key.contains("heap_byte") && unknown_key.contains("expected"), "{unknown_key}");
        let wrong_type = refusal("irqs = [4]", "irqs = \"four\"");
        assert!(wrong_type.contains("irqs") && wrong_type.contains("expected"), "{wrong_type}");
        assert!(refusal("irqs = [4]", "irqs = [400]").contains("irqs"));
        assert!(refusal("description = \"for tests\"", "").contains("description"));
    }

    #[test]
    fn refusals_name_the_service() {
        let destination = refusal("destinations = [\"rs\"]", "destinations = [\"sr\"]");
        assert_eq!(
            destination,
            "systems/x.toml: service uart: destinations: expected \"*\", \"system\" or a service of this file, not 'sr'"
        );
        assert!(refusal("\"DevIo\"", "\"DevO\"").contains("service uart: kernel_calls:"));
        assert!(refusal("name = \"uart\"", "name = \"rs\"").contains("rs: name:"));
        assert!(refusal("name = \"vm\"", "name = \"ds\"").contains("expected rs and vm as the first two"));
        assert!(refusal("name = \"uart\"", "name = \"nothing\"").contains("service nothing: binary:"));
        assert!(
            refusal("\"direct\"", "\"indirect\"").contains("io_way: expected one of systask, hal, emulate, direct")
        );
        assert!(refusal("[0x3f8, 0x3ff]", "[0x3ff, 0x3f8]").contains("ports:"));
        assert!(refusal("1af4:1042", "1af4").contains("pci: expected \"VENDOR:DEVICE\""));
        assert!(refusal("restarts = 5", "queue = 16").contains("queue: expected 0 to 15, not 16"));
        assert!(
            refusal("restarts = 5", "backoff_ms = 10001").contains("backoff_ms: expected at most 10000, not 10001")
        );
        assert!(refusal("restarts = 5", "trial_ms = 0").contains("trial_ms: expected more than 0"));
    }

    #[test]
    fn dependants_are_other_services_that_may_be_restarted_and_never_a_circle() {
        let depends = |on: &str| refusal("restarts = 5", &format!("restarts = 5\ndependants = [\"{on}\"]"));
        assert!(depends("urat").contains("service uart: dependants: expected services of this file, not 'urat'"));
        assert!(depends("uart").contains("expected other services than itself"));
        assert!(depends("vm").contains("expected services that may be restarted, and 'vm' has restarts = 0"));
        let circle = "restarts = 5\ndependants = [\"tty\"]\n[[service]]\nname = \"tty\"\nheap_bytes = 0\nkernel_calls = []\n\
                      destinations = []\nrestarts = 1\ndependants = [\"uart\"]\n";
        assert!(refusal("restarts = 5", circle).contains("depends on itself over others"));
    }

    #[test]
    fn refusals_name_the_route() {
        assert!(refusal("sched_yield", "yield").contains("routes: kernel: 'yield' is no Linux system call"));
        assert!(
            refusal("kernel = [", "nobody = [")
                .contains("routes: expected \"kernel\" or a service of this file, not 'nobody'")
        );
        assert!(refusal("[\"sched_yield\"]", "[\"skink_service\"]").contains("'skink_service' is routed twice"));
    }
}
