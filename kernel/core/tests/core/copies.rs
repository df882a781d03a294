//! Copies and grants.

use abi::{
    Endpoint, Errno, GrantId,
    call::KernelCall,
    grant::{MAGIC, READ, USED, WRITE},
    layout::{MAX_COPY, USER_END, map},
    privilege::{COPY_APPLICATIONS_ONLY, MAGIC_GRANTS},
};
use kernel_core::Next;

use crate::{
    fake::PAGE,
    world::{A, B, BUFFER, C, RS, World, all_rights},
};

const TABLE: u64 = BUFFER + 2 * PAGE;
const SELF: u64 = Endpoint::SELF.0 as u64;

struct Grant {
    flags: u32,
    sequence: u32,
    grantee: Endpoint,
    owner: Endpoint,
    address: u64,
    bytes: u64,
}

/// Writes entry 0 of the table of `slot` and registers the table.
fn grant(w: &mut World, slot: usize, grant: &Grant) {
    let mut entry = Vec::new();
    entry.extend_from_slice(&grant.flags.to_le_bytes());
    entry.extend_from_slice(&grant.sequence.to_le_bytes());
    entry.extend_from_slice(&grant.grantee.0.to_le_bytes());
    entry.extend_from_slice(&grant.owner.0.to_le_bytes());
    entry.extend_from_slice(&grant.address.to_le_bytes());
    entry.extend_from_slice(&grant.bytes.to_le_bytes());
    let space = w.space(slot);
    w.m.poke(space, TABLE, &entry);
    w.kernel_call(slot, KernelCall::SetGrants, &[TABLE, 8]).expect("registered");
}

/// A grants 16 bytes at BUFFER + 32 to B.
fn granted_to_b(w: &mut World, flags: u32) {
    let grantee = w.endpoint(B);
    let entry = Grant { flags, sequence: 5, grantee, owner: Endpoint::NONE, address: BUFFER + 32, bytes: 16 };
    grant(w, A, &entry);
}

fn safe_copy(w: &mut World, slot: usize, call: KernelCall, id: GrantId, offset: u64, bytes: u64) -> Result<u64, Errno> {
    let granter = w.endpoint(A).0 as u64;
    w.kernel_call(slot, call, &[granter, id.0 as u64, offset, BUFFER, bytes])
}

const ID: GrantId = GrantId::new(0, 5);

#[test]
fn a_grantee_reads_and_writes_the_granted_bytes_only() {
    let mut w = World::with_services();
    granted_to_b(&mut w, USED | READ | WRITE);
    let (a, b) = (w.space(A), w.space(B));
    w.m.poke(a, BUFFER + 32, b"0123456789abcdef");
    assert_eq!(safe_copy(&mut w, B, KernelCall::SafeCopyFrom, ID, 4, 12), Ok(12));
    assert_eq!(w.m.peek(b, BUFFER, 12), b"456789abcdef");
    assert_eq!(safe_copy(&mut w, B, KernelCall::SafeCopyTo, ID, 15, 1), Ok(1));
    assert_eq!(w.m.peek(a, BUFFER + 32, 16), b"0123456789abcde4");
    for (offset, bytes) in [(4, 13), (16, 1), (u64::MAX, 1), (1, u64::MAX)] {
        assert_eq!(safe_copy(&mut w, B, KernelCall::SafeCopyFrom, ID, offset, bytes), Err(Errno::EPERM));
    }
}

#[test]
fn a_grant_gives_only_its_right_to_its_grantee_under_its_number() {
    let mut w = World::with_services();
    granted_to_b(&mut w, USED | READ);
    assert_eq!(safe_copy(&mut w, B, KernelCall::SafeCopyTo, ID, 0, 1), Err(Errno::EPERM));
    assert_eq!(safe_copy(&mut w, C, KernelCall::SafeCopyFrom, ID, 0, 1), Err(Errno::EPERM));
    for id in [GrantId::new(0, 4), GrantId::new(1, 5), GrantId::new(8, 5), GrantId::NONE] {
        assert_eq!(safe_copy(&mut w, B, KernelCall::SafeCopyFrom, id, 0, 1), Err(Errno::EPERM));
    }
}

#[test]
fn clearing_the_entry_revokes_the_grant() {
    let mut w = World::with_services();
    granted_to_b(&mut w, USED | READ);
    let a = w.space(A);
    w.m.poke(a, TABLE, &0u32.to_le_bytes());
    assert_eq!(safe_copy(&mut w, B, KernelCall::SafeCopyFrom, ID, 0, 1), Err(Errno::EPERM));
}

#[test]
fn a_grant_to_the_holder_of_a_slot_outlives_its_restart() {
    let mut w = World::with_services();
    let entry = Grant {
        flags: USED | READ,
        sequence: 5,
        grantee: Endpoint::current(B),
        owner: Endpoint::NONE,
        address: BUFFER,
        bytes: 8,
    };
    grant(&mut w, A, &entry);
    let b = w.endpoint(B);
    w.kernel_call(RS, KernelCall::Destroy, &[b.0 as u64, 1]).expect("destroyed");
    w.service(B);
    assert_eq!(safe_copy(&mut w, B, KernelCall::SafeCopyFrom, ID, 0, 8), Ok(8));
}

#[test]
fn magic_grants_reach_the_owner_only_with_the_privilege() {
    let mut w = World::with_services();
    let (a, b, c) = (w.endpoint(A), w.endpoint(B), w.endpoint(C));
    let entry = Grant { flags: USED | READ | MAGIC, sequence: 5, grantee: b, owner: c, address: BUFFER, bytes: 8 };
    grant(&mut w, A, &entry);
    assert_eq!(safe_copy(&mut w, B, KernelCall::SafeCopyFrom, ID, 0, 8), Err(Errno::EPERM));
    w.set_privileges(a, &abi::privilege::Privileges { flags: MAGIC_GRANTS, ..all_rights() });
    let (b_space, c_space) = (w.space(B), w.space(C));
    w.m.poke(c_space, BUFFER, b"of C    ");
    assert_eq!(safe_copy(&mut w, B, KernelCall::SafeCopyFrom, ID, 0, 8), Ok(8));
    assert_eq!(w.m.peek(b_space, BUFFER, 8), b"of C    ");
}

#[test]
fn virtual_copies_stay_in_user_memory_and_within_the_limit() {
    let mut w = World::with_services();
    let a = w.endpoint(A).0 as u64;
    let mut copy = |from: u64, to: u64, bytes: u64| w.kernel_call(B, KernelCall::VirCopy, &[a, from, SELF, to, bytes]);
    assert_eq!(copy(BUFFER, BUFFER, 3 * PAGE), Ok(3 * PAGE));
    assert_eq!(copy(BUFFER, BUFFER, 0), Ok(0));
    assert_eq!(copy(USER_END, BUFFER, 1), Err(Errno::EFAULT));
    assert_eq!(copy(BUFFER, 0xffff_8000_0000_0000, 8), Err(Errno::EFAULT));
    assert_eq!(copy(u64::MAX - 4, BUFFER, 8), Err(Errno::EFAULT));
    assert_eq!(copy(BUFFER, BUFFER, MAX_COPY + 1), Err(Errno::EINVAL));
}

#[test]
fn a_restricted_copier_does_not_reach_other_services() {
    let mut w = World::with_services();
    let program = w.application().0 as u64;
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.set_privileges(b, &abi::privilege::Privileges { flags: COPY_APPLICATIONS_ONLY, ..all_rights() });
    assert_eq!(w.kernel_call(B, KernelCall::VirCopy, &[a.0 as u64, BUFFER, SELF, BUFFER, 8]), Err(Errno::EPERM));
    assert_eq!(w.kernel_call(B, KernelCall::VirCopy, &[SELF, BUFFER, a.0 as u64, BUFFER, 8]), Err(Errno::EPERM));
    assert_eq!(w.kernel_call(B, KernelCall::VirCopy, &[program, BUFFER, SELF, BUFFER, 8]), Ok(8));
    let [of_service, of_program] = [a.0 as u64, program].map(|from| [from, BUFFER, SELF, BUFFER, 8]);
    assert_eq!(w.kernel_call(B, KernelCall::PhysCopy, &of_service), Err(Errno::ECALLDENIED));
    assert_eq!(w.kernel_call(B, KernelCall::PhysCopy, &of_program), Ok(8));
}

/// A copy by B out of A's memory in a world of its own: its result, what B's buffer begins with then, and whether it took the fast path.
fn copied(
    is_ordinary: bool,
    prepare: fn(&mut World),
    [from, to, bytes]: [u64; 3],
) -> (Next, Result<u64, Errno>, Vec<u8>, bool) {
    let mut w = World::with_services();
    w.is_ordinary = is_ordinary;
    let (a, own) = (w.space(A), w.space(B));
    w.m.poke(a, BUFFER, b"arguments of a call");
    prepare(&mut w);
    let owner = w.endpoint(A).0 as u64;
    let next = w.begin_kernel_call(B, KernelCall::VirCopy, &[owner, from, SELF, to, bytes]);
    (next, w.result(B), w.m.peek(own, BUFFER, 24), w.fast_copies > 0)
}

#[test]
fn a_short_copy_by_the_fast_path_is_the_same_as_by_the_general_one() {
    let nothing = |_: &mut World| {};
    let traced = |w: &mut World| w.node.set_tracing(abi::trace::event::ALL);
    let restricted = |w: &mut World| {
        let b = w.endpoint(B);
        w.set_privileges(b, &abi::privilege::Privileges { flags: COPY_APPLICATIONS_ONLY, ..all_rights() });
    };
    let without_right = |w: &mut World| {
        let b = w.endpoint(B);
        w.set_privileges(b, &abi::privilege::Privileges { kernel_calls: !KernelCall::VirCopy.bit(), ..all_rights() });
    };
    let of_the_dead = |w: &mut World| {
        let a = w.endpoint(A).0 as u64;
        w.kernel_call(RS, KernelCall::Destroy, &[a, 0]).expect("destroyed");
    };
    let high = 0xffff_8000_0000_0000;
    let cases: [(fn(&mut World), [u64; 3], bool); 14] = [
        (nothing, [BUFFER, BUFFER + 1, 8], true),
        (nothing, [BUFFER, BUFFER, 19], true),
        (nothing, [BUFFER, BUFFER, PAGE], true),
        (nothing, [BUFFER, BUFFER, PAGE + 1], false),
        (nothing, [BUFFER + PAGE - 4, BUFFER, 8], false),
        (nothing, [BUFFER, BUFFER + PAGE - 4, 8], false),
        (nothing, [USER_END, BUFFER, 8], false),
        (nothing, [BUFFER, high, 8], false),
        (nothing, [BUFFER, BUFFER, u64::MAX], false),
        (nothing, [8 * PAGE, BUFFER, 8], false),
        (traced, [BUFFER, BUFFER, 8], false),
        (restricted, [BUFFER, BUFFER, 8], false),
        (without_right, [BUFFER, BUFFER, 8], false),
        (of_the_dead, [BUFFER, BUFFER, 8], false),
    ];
    for (index, (prepare, arguments, is_fast)) in cases.into_iter().enumerate() {
        let (fast, general) = (copied(false, prepare, arguments), copied(true, prepare, arguments));
        assert_eq!((&fast.0, &fast.1, &fast.2), (&general.0, &general.1, &general.2), "case {index}");
        assert_eq!((fast.3, general.3), (is_fast, false), "case {index}");
    }
}

/// A copy of `bytes` by B between its buffer and what A has granted, in a world of its own: its result, both buffers then, and whether it took
/// the fast path.
fn copied_by_grant(
    is_ordinary: bool,
    call: KernelCall,
    prepare: fn(&mut World),
    [offset, own, bytes]: [u64; 3],
) -> (Next, Result<u64, Errno>, [Vec<u8>; 2], bool) {
    let mut w = World::with_services();
    w.is_ordinary = is_ordinary;
    let spaces = [w.space(A), w.space(B)];
    w.m.poke(spaces[0], BUFFER + 32, b"granted to B, 16");
    w.m.poke(spaces[1], BUFFER, b"of B, which gives as it takes");
    granted_to_b(&mut w, USED | READ | WRITE);
    prepare(&mut w);
    let granter = w.endpoint(A).0 as u64;
    let next = w.begin_kernel_call(B, call, &[granter, ID.0 as u64, offset, own, bytes]);
    (next, w.result(B), spaces.map(|space| w.m.peek(space, BUFFER, 64)), w.fast_copies > 0)
}

#[test]
fn a_short_copy_by_grant_is_the_same_by_the_fast_path() {
    let nothing = |_: &mut World| {};
    let traced = |w: &mut World| w.node.set_tracing(abi::trace::event::ALL);
    let revoked = |w: &mut World| granted_to_b(w, READ | WRITE);
    let neither = |w: &mut World| granted_to_b(w, USED);
    let of_the_dead = |w: &mut World| {
        let a = w.endpoint(A).0 as u64;
        w.kernel_call(RS, KernelCall::Destroy, &[a, 0]).expect("destroyed");
    };
    let cases: [(fn(&mut World), [u64; 3], bool); 9] = [
        (nothing, [0, BUFFER, 16], true),
        (nothing, [5, BUFFER + 3, 8], true),
        (nothing, [9, BUFFER, 8], false),
        (nothing, [0, BUFFER + PAGE - 4, 8], false),
        (nothing, [0, USER_END, 8], false),
        (traced, [0, BUFFER, 8], false),
        (revoked, [0, BUFFER, 8], false),
        (neither, [0, BUFFER, 8], false),
        (of_the_dead, [0, BUFFER, 8], false),
    ];
    for call in [KernelCall::SafeCopyFrom, KernelCall::SafeCopyTo] {
        for (index, (prepare, arguments, is_fast)) in cases.into_iter().enumerate() {
            let [fast, general] = [false, true].map(|ordinary| copied_by_grant(ordinary, call, prepare, arguments));
            assert_eq!((&fast.0, &fast.1, &fast.2), (&general.0, &general.1, &general.2), "{call:?} {index}");
            assert_eq!((fast.3, general.3), (is_fast, false), "{call:?} {index}");
        }
    }
}

#[test]
fn a_long_copy_makes_way_for_interrupts_and_goes_on() {
    let mut w = World::with_services();
    const LONG: u64 = 200 * 1024;
    for slot in [A, B] {
        let space = w.space(slot);
        for page in 0..LONG / PAGE {
            w.m.map(space, 0x100_0000 + page * PAGE, (slot as u64 * 1000 + page) * PAGE, map::WRITE);
        }
    }
    let (a, from, to) = (w.endpoint(A).0 as u64, w.space(A), w.space(B));
    w.m.poke(from, 0x100_0000 + LONG - 3, b"end");
    w.m.polls_until_interrupt = Some(2);
    let next = w.begin_kernel_call(B, KernelCall::VirCopy, &[a, 0x100_0000, SELF, 0x100_0000, LONG]);
    assert_eq!(next, Next::Interrupts);
    assert_eq!(w.m.peek(to, 0x100_0000 + LONG - 3, 3), [0; 3]);
    w.m.polls_until_interrupt = None;
    w.make_current(B);
    assert_eq!(w.result(B), Ok(LONG));
    assert_eq!(w.m.peek(to, 0x100_0000 + LONG - 3, 3), b"end");
}

#[test]
fn frames_are_filled_from_a_grant() {
    let mut w = World::with_services();
    granted_to_b(&mut w, USED | READ);
    let a = w.space(A);
    w.m.poke(a, BUFFER + 32, b"content");
    w.m.map(99, 0, 0x777 * PAGE, map::WRITE);
    let granter = w.endpoint(A).0 as u64;
    let filled = w.kernel_call(B, KernelCall::FrameFill, &[0x777 * PAGE, 8, granter, ID.0 as u64, 0, 7]);
    assert_eq!(filled, Ok(7));
    assert_eq!(w.m.peek(99, 8, 7), b"content");
    let outside = w.kernel_call(B, KernelCall::FrameFill, &[0x999_9000, 0, granter, ID.0 as u64, 0, 7]);
    assert_eq!(outside, Err(Errno::EINVAL));
}
