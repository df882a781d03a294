//! Checks the key `dependants` of a written system file: services that are restarted with another.
//!
//! A circle of dependants would restart its members without end.

use super::written::WrittenService;
use std::collections::BTreeSet;

/// Checks the dependants of all services.
///
/// # Errors
/// `service NAME: dependants: what was expected`.
pub fn check(services: &[WrittenService]) -> Result<(), String> {
    for service in services {
        check_names(service, services).map_err(|wrong| format!("service {}: dependants: {wrong}", service.name))?;
    }
    match services.iter().find(|service| reaches_itself(&service.name, services)) {
        Some(service) => {
            Err(format!("service {}: dependants: expected no service that depends on itself over others", service.name))
        }
        None => Ok(()),
    }
}

fn check_names(service: &WrittenService, services: &[WrittenService]) -> Result<(), String> {
    for name in &service.dependants {
        match services.iter().find(|other| other.name == *name) {
            None => return Err(format!("expected services of this file, not '{name}'")),
            Some(other) if other.name == service.name => return Err("expected other services than itself".to_string()),
            Some(other) if other.restarts == 0 => {
                return Err(format!("expected services that may be restarted, and '{name}' has restarts = 0"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Whether a restart of `name` leads to another of itself.
fn reaches_itself(name: &str, services: &[WrittenService]) -> bool {
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        let dependants =
            services.iter().find(|service| service.name == next).map_or(&[][..], |found| &found.dependants);
        for dependant in dependants {
            if dependant == name {
                return true;
            }
            if reached.insert(dependant) {
                open.push(dependant);
            }
        }
    }
    false
}
