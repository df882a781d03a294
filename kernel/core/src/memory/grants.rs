//! Grants: finds the buffer that a grant stands for, and refuses everything it does not allow (`abi::grant`).
//!
//! The granter's table is read from its memory at every copy, so that clearing an entry revokes it at once.
//! Neighbours: `copy`.

use crate::{Machine, Node, machine::check_range, memory::copy, memory::place::Place, stop::Stop};

use abi::{
    Endpoint, Errno, GrantId, grant::GrantEntry, grant::MAGIC, grant::MAX_GRANTS, grant::USED, privilege::MAGIC_GRANTS,
};
use zerocopy::IntoBytes;

/// Bytes of one entry.
const ENTRY_BYTES: u64 = size_of::<GrantEntry>() as u64;

/// `SetGrants (address, entries)`. `EINVAL`: not aligned, too many. `EFAULT`: not user memory.
pub fn set_grants(node: &mut Node, address: u64, entries: u64) -> Result<u64, Errno> {
    if entries > MAX_GRANTS as u64 || !address.is_multiple_of(ENTRY_BYTES) {
        return Err(Errno::EINVAL);
    }
    check_range(address, entries * ENTRY_BYTES)?;
    let caller = node.caller();
    node.threads[caller].grants = [address, entries];
    Ok(0)
}

/// The place `offset` into the buffer that `granter` has granted to the current thread with `right`, if `bytes`
/// from there on are part of it. `EPERM`: not granted so. `EDEADSRCDST`: granter or owner is dead.
pub fn granted<M: Machine>(
    node: &mut Node,
    m: &mut M,
    granter: u64,
    grant: u64,
    offset: u64,
    bytes: u64,
    right: u32,
) -> Result<Place, Stop> {
    let granter = node.find_or_self(Endpoint(granter as u32))?;
    let entry = grant_entry(node, m, granter, GrantId(grant as u32))?;
    let inside = offset.checked_add(bytes).is_some_and(|end| end <= entry.bytes);
    if entry.flags & right == 0 || !is_grantee(node, entry.grantee) || !inside {
        return Err(Errno::EPERM.into());
    }
    let owner = match entry.flags & MAGIC {
        0 => granter,
        _ if node.privileges(granter).flags & MAGIC_GRANTS == 0 => return Err(Errno::EPERM.into()),
        _ => node.threads.find(entry.owner)?,
    };
    let address = entry.address.checked_add(offset).ok_or(Errno::EFAULT)?;
    Ok(Place { owner, address })
}

/// The valid entry with this number. `EPERM`: there is none.
fn grant_entry<M: Machine>(node: &mut Node, m: &mut M, granter: usize, grant: GrantId) -> Result<GrantEntry, Stop> {
    let [table, entries] = node.threads[granter].grants;
    if grant.index() as u64 >= entries {
        return Err(Errno::EPERM.into());
    }
    let mut entry = GrantEntry::default();
    let address = table + grant.index() as u64 * ENTRY_BYTES;
    m.read(copy::space_of(node, granter)?, address, entry.as_mut_bytes())
        .map_err(|fault| Stop::Fault(granter, fault))?;
    let valid = entry.flags & USED != 0 && entry.sequence as u16 == grant.sequence();
    if valid { Ok(entry) } else { Err(Errno::EPERM.into()) }
}

/// True when an entry for `grantee` is for the current thread.
fn is_grantee(node: &Node, grantee: Endpoint) -> bool {
    let own = node.threads[node.caller()].endpoint;
    grantee == own || own.is_service() && grantee == Endpoint::current(own.slot())
}
