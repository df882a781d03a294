//! Checks that every client can get its reply, by the keys `destinations` and `callers` of a written system file.
//!
//! A reply is a message like any other and needs the same right. Without it the kernel refuses the reply, and the client
//! waits for ever. "*" is for services that everybody asks; what such a service may send says nothing about whom it asks.

use super::resolve::EVERYBODY;
use super::written::WrittenService;

/// Checks that every service may send to those that may ask it by name.
///
/// # Errors
/// `service NAME: destinations: what was expected`.
pub fn check(services: &[WrittenService]) -> Result<(), String> {
    for client in services {
        for server in services.iter().filter(|server| names(client, server)) {
            if !names(server, client) && !has(server, EVERYBODY) {
                return Err(format!(
                    "service {0}: destinations: expected \"{1}\" among them: {1} may ask {0}, whose reply would be \
                     refused, and {1} would wait for ever",
                    server.name, client.name
                ));
            }
        }
    }
    Ok(())
}

/// Whether `one` may send to `other`, by the one's destinations or the other's callers.
fn names(one: &WrittenService, other: &WrittenService) -> bool {
    has(one, &other.name) || other.callers.contains(&one.name)
}

fn has(service: &WrittenService, destination: &str) -> bool {
    service.destinations.iter().any(|name| name == destination)
}
