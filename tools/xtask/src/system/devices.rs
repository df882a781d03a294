//! Devices: checks the keys `devices` and `opens` of a written system file, and derives what follows from them.
//!
//! A service that opens a kind of devices may send to every service that drives one, and the driver may reply. The services with
//! `device_table = true` get a word for each device among their arguments (`abi::device`).

use super::written::{WrittenDevice, WrittenService};
use abi::device::{Device, Kind, MAX_NAMES};
use std::collections::{BTreeMap, BTreeSet};

const MAX_MODE: u16 = 0o777;

/// Adds destinations and arguments that follow from the devices of all services.
///
/// # Errors
/// `service NAME: KEY: what was expected`.
pub fn derive(services: &mut [WrittenService]) -> Result<(), String> {
    let drivers = drivers(services)?;
    check_names(&drivers)?;
    check_numbers(&drivers)?;
    let openers = openers(services)?;
    for driver in &drivers {
        if !openers.contains_key(&driver.kind) {
            let (name, kind) = (driver.written.name.as_str(), driver.kind.name());
            return Err(wrong(
                driver,
                &format!("{name}: expected a service that opens \"{kind}\", and no service does"),
            ));
        }
    }
    let table: Vec<String> = drivers.iter().map(Driver::word).collect();
    let pairs = permissions(&drivers, &openers);
    for service in services.iter_mut() {
        if service.device_table {
            let own = (!service.arguments.is_empty()).then_some(&service.arguments);
            service.arguments = own.into_iter().chain(&table).map(String::as_str).collect::<Vec<_>>().join(" ");
        }
        let reached = pairs.iter().filter(|(from, _)| *from == service.name).map(|(_, to)| to.clone());
        service.destinations.extend(reached);
    }
    Ok(())
}

/// A device with its service.
struct Driver {
    service: String,
    kind: Kind,
    written: WrittenDevice,
}

impl Driver {
    /// Its word of the table.
    fn word(&self) -> String {
        let WrittenDevice { name, major, minor, mode, links, .. } = &self.written;
        let (kind, links) = (self.kind, links.join(","));
        Device::new(name, kind, (*major, *minor), *mode, &self.service).with_links(&links).to_string()
    }

    /// Its names in /dev.
    fn names(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.written.name).chain(&self.written.links)
    }
}

fn wrong(driver: &Driver, what: &str) -> String {
    format!("service {}: devices: {what}", driver.service)
}

fn drivers(services: &[WrittenService]) -> Result<Vec<Driver>, String> {
    let all = services.iter().flat_map(|service| service.devices.iter().map(|device| (service.name.clone(), device)));
    let driver = |(service, device): (String, &WrittenDevice)| {
        let kind = kind(&device.kind)
            .map_err(|wrong| format!("service {service}: devices: {}: kind: {wrong}", device.name))?;
        Ok(Driver { service, kind, written: device.clone() })
    };
    all.map(driver).collect()
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::from_name(name).ok_or_else(|| format!("expected \"char\" or \"block\", not '{name}'"))
}

fn check_names(drivers: &[Driver]) -> Result<(), String> {
    let (mut owners, mut folders) = (BTreeMap::new(), BTreeSet::new());
    for (driver, name) in drivers.iter().flat_map(|driver| driver.names().map(move |name| (driver, name))) {
        if !is_name(name) {
            return Err(wrong(
                driver,
                &format!("'{name}': expected a name of letters, digits, '_' and '-', or one in a folder (input/mice)"),
            ));
        }
        if let Some(other) = owners.insert(name, &driver.service) {
            return Err(wrong(driver, &format!("{name}: expected each name in /dev once, and service {other} has it")));
        }
        if driver.written.mode > MAX_MODE {
            return Err(wrong(
                driver,
                &format!("{name}: mode: expected at most 0o777, not {:#o}", driver.written.mode),
            ));
        }
        folders.extend(name.split_once('/').map(|(folder, _)| folder));
        if let Some(folder) = folders.iter().find(|folder| owners.keys().any(|name| name == *folder)) {
            return Err(wrong(driver, &format!("{name}: expected a folder or a device named {folder}, not both")));
        }
        if owners.len() + folders.len() > MAX_NAMES {
            return Err(wrong(driver, &format!("{name}: expected at most {MAX_NAMES} names in /dev")));
        }
    }
    Ok(())
}

/// Whether a name is plain, or a folder's and a plain one behind a slash.
fn is_name(name: &str) -> bool {
    let is_plain = |part: &str| {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        !part.is_empty() && part.chars().all(letter)
    };
    let (folder, own) = name.split_once('/').unwrap_or(("dev", name));
    is_plain(folder) && is_plain(own)
}

fn check_numbers(drivers: &[Driver]) -> Result<(), String> {
    let mut known = BTreeMap::new();
    for driver in drivers {
        let WrittenDevice { name, major, minor, .. } = &driver.written;
        if let Some(other) = known.insert((driver.kind, major, minor), &driver.written.name) {
            let kind = driver.kind.name();
            return Err(wrong(
                driver,
                &format!("{name}: expected a number of its own, and {other} is {kind} {major},{minor} too"),
            ));
        }
    }
    Ok(())
}

/// The services that open each kind.
fn openers(services: &[WrittenService]) -> Result<BTreeMap<Kind, Vec<&str>>, String> {
    let mut openers: BTreeMap<Kind, Vec<&str>> = BTreeMap::new();
    for service in services {
        for name in &service.opens {
            let kind = kind(name).map_err(|wrong| format!("service {}: opens: {wrong}", service.name))?;
            openers.entry(kind).or_default().push(&service.name);
        }
    }
    Ok(openers)
}

/// Who may send to whom: opener to driver, and the reply.
fn permissions(drivers: &[Driver], openers: &BTreeMap<Kind, Vec<&str>>) -> Vec<(String, String)> {
    let opened =
        drivers.iter().flat_map(|driver| openers[&driver.kind].iter().map(|opener| (&driver.service, *opener)));
    let others = opened.filter(|(driver, opener)| driver != opener);
    others.flat_map(|(driver, opener)| [(driver.clone(), opener.into()), (opener.into(), driver.clone())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::written;

    const SYSTEM: &str = r#"
description = "for tests"
[[service]]
name = "vfs"
arguments = "root=x"
heap_bytes = 0
kernel_calls = []
destinations = []
opens = ["char", "block"]
device_table = true
devices = [{ name = "null", kind = "char", major = 1, minor = 3, mode = 0o666 }]
[[service]]
name = "ext2"
heap_bytes = 0
kernel_calls = []
destinations = []
opens = ["block"]
[[service]]
name = "disk"
heap_bytes = 0
kernel_calls = []
destinations = ["rs"]
devices = [{ name = "hda", kind = "block", major = 3, mode = 0o660, links = ["disk"] }]
[[service]]
name = "counter"
heap_bytes = 0
kernel_calls = []
destinations = []
devices = [{ name = "counter", kind = "char", major = 60 }]
"#;

    fn derived(text: &str) -> Result<Vec<WrittenService>, String> {
        let mut services = written::parse(text)?.1.service;
        derive(&mut services).map(|()| services)
    }

    fn refusal(from: &str, to: &str) -> String {
        assert!(SYSTEM.contains(from), "{from} is not in the file");
        derived(&SYSTEM.replace(from, to)).map(drop).expect_err("was accepted")
    }

    #[test]
    fn openers_and_drivers_may_send_to_each_other() {
        let services = derived(SYSTEM).expect("is right");
        let destinations: Vec<_> = services.iter().map(|service| service.destinations.join(" ")).collect();
        assert_eq!(destinations, ["disk counter", "disk", "rs vfs ext2", "vfs"]);
    }

    #[test]
    fn the_table_stands_behind_the_arguments_of_those_that_want_it() {
        let services = derived(SYSTEM).expect("is right");
        let table = "dev:null=char,1,3,666,vfs dev:hda=block,3,0,660,disk,disk dev:counter=char,60,0,600,counter";
        assert_eq!(services[0].arguments, format!("root=x {table}"));
        assert!(services[1..].iter().all(|service| service.arguments.is_empty()));
    }

    #[test]
    fn every_name_in_dev_is_declared_once() {
        assert_eq!(
            refusal("name = \"counter\", kind", "name = \"null\", kind"),
            "service counter: devices: null: expected each name in /dev once, and service vfs has it"
        );
        assert!(
            refusal("links = [\"disk\"]", "links = [\"null\"]").contains("service disk: devices: null: expected each")
        );
        assert!(refusal("name = \"hda\"", "name = \"a/b/c\"").contains("'a/b/c': expected a name of letters"));
        assert!(
            refusal("name = \"hda\"", "name = \"h,da\"").contains("service disk: devices: 'h,da': expected a name of")
        );
        let many: String = (0..127).map(|index| format!(", \"l{index}\"")).collect();
        assert!(refusal("[\"disk\"]", &format!("[\"disk\"{many}]")).contains("expected at most 128 names in /dev"));
    }

    #[test]
    fn every_number_is_declared_once_of_each_kind() {
        assert_eq!(
            refusal("major = 60", "major = 1, minor = 3"),
            "service counter: devices: counter: expected a number of its own, and null is char 1,3 too"
        );
        assert!(derived(&SYSTEM.replace("major = 60", "major = 3")).is_ok());
        assert!(refusal("major = 60", "major = 256").contains("expected u8"));
    }

    #[test]
    fn kinds_are_known_and_somebody_opens_them() {
        assert_eq!(
            refusal("kind = \"block\"", "kind = \"tape\""),
            "service disk: devices: hda: kind: expected \"char\" or \"block\", not 'tape'"
        );
        assert!(refusal("[\"char\", \"block\"]", "[\"chr\"]").contains("service vfs: opens: expected \"char\" or"));
        assert_eq!(
            refusal("[\"char\", \"block\"]", "[\"block\"]"),
            "service vfs: devices: null: expected a service that opens \"char\", and no service does"
        );
        assert!(refusal("0o660", "0o1000").contains("service disk: devices: hda: mode: expected at most 0o777"));
    }
}
