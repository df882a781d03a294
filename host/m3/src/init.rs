//! `m3 init`: starts a container with the settings of the command line, and the node first if need be.

use crate::{Problem, failed, number};
use lexopt::prelude::{Long, ValueExt};
use m3core::backend::ask;
use m3ipc::call::Call;
use m3ipc::descriptor::{self, CONTAINER_OPEN, ContainerInfo, DrvsInfo, JOINERS};
use m3ipc::error::Error;
use zerocopy::IntoBytes;

/// What the command line says.
struct Settings {
    node: i64,
    /// `None`: the largest limits, or those that the node has.
    limits: Option<DrvsInfo>,
    name: String,
    info: ContainerInfo,
}

/// Starts a container.
///
/// # Errors
/// The command line is wrong; limits of a node that runs cannot be changed; and those of the two calls.
pub fn init(mut parser: lexopt::Parser) -> Result<(), Problem> {
    let vm = number(&mut parser, "VM")?;
    let mut settings = settings(vm, parser)?;
    let limits = settings.limits.as_ref().map_or(&[][..], DrvsInfo::as_bytes);
    match ask(Call::DrvsInit, &[settings.node], limits) {
        Ok(_) => {}
        Err(Error::AlreadyInitialised) if settings.limits.is_none() => {}
        Err(Error::AlreadyInitialised) => {
            return Err(Problem::Other(
                "the node runs with the limits that `m3 info` tells; `m3 end` ends it".to_string(),
            ));
        }
        Err(error) => return Err(Problem::Failed("start of the node", error)),
    }
    let name = descriptor::name(settings.name.as_bytes());
    settings.info.name = name.map_err(|_| Problem::Usage("a name has 1 to 15 bytes".to_string()))?;
    ask(Call::VmInit, &[], settings.info.as_bytes()).map(|_| ()).map_err(failed("start of the container"))
}

fn settings(vm: i32, mut parser: lexopt::Parser) -> Result<Settings, Problem> {
    let info = ContainerInfo { number: vm, ..ContainerInfo::default() };
    let mut settings = Settings { node: 0, limits: None, name: format!("vm{vm}"), info };
    while let Some(argument) = parser.next()? {
        let Long(name) = argument else { return Err(argument.unexpected().into()) };
        let (name, info) = (name.to_string(), &mut settings.info);
        match name.as_str() {
            "name" => settings.name = parser.value()?.string()?,
            "node" => settings.node = parser.value()?.parse()?,
            "processes" => info.processes = parser.value()?.parse()?,
            "tasks" => info.tasks = parser.value()?.parse()?,
            "system" => info.system_processes = parser.value()?.parse()?,
            "uid" => add(&mut info.users, parser.value()?.parse()?)?,
            "gid" => add(&mut info.groups, parser.value()?.parse()?)?,
            "capability" => info.capabilities |= bit(parser.value()?.parse()?)?,
            "open" => info.flags |= CONTAINER_OPEN,
            limit => {
                let Some(limit) = limit.strip_prefix("max-").and_then(|what| node_limit(&mut settings.limits, what))
                else {
                    return Err(Long(&name).unexpected().into());
                };
                *limit = parser.value()?.parse()?;
            }
        }
    }
    Ok(settings)
}

/// The limit of the node that is called so.
fn node_limit<'a>(limits: &'a mut Option<DrvsInfo>, what: &str) -> Option<&'a mut i32> {
    let of = |limits: &'a mut DrvsInfo| match what {
        "containers" => Some(&mut limits.containers),
        "nodes" => Some(&mut limits.nodes),
        "processes" => Some(&mut limits.processes),
        "tasks" => Some(&mut limits.tasks),
        "system" => Some(&mut limits.system_processes),
        "copy" => Some(&mut limits.max_copy),
        _ => None,
    };
    of(limits.get_or_insert(DrvsInfo::LARGEST))
}

/// Adds a user or group to those who may join. 0 is root, who may anyway.
fn add(joiners: &mut [u32], id: u32) -> Result<(), Problem> {
    let full = || Problem::Usage(format!("a container names at most {JOINERS} users, and as many groups"));
    if id != 0 {
        *joiners.iter_mut().find(|joiner| **joiner == 0).ok_or_else(full)? = id;
    }
    Ok(())
}

fn bit(capability: u32) -> Result<u64, Problem> {
    1_u64.checked_shl(capability).ok_or_else(|| Problem::Usage("a capability is a number below 64".to_string()))
}
