//! StartKind, registers, stopping, spaces.

use abi::{
    Endpoint, Errno,
    call::KernelCall,
    endpoint::SERVICE_SLOTS,
    layout::{USER_END, map},
};

use kernel_core::Next;

use crate::{
    fake::PAGE,
    world::{A, B, BUFFER, RS, World},
};

const RIP: u64 = 15 * 8;
const RFLAGS: u64 = 16 * 8;

fn get(w: &mut World, endpoint: Endpoint) {
    w.kernel_call(RS, KernelCall::GetRegisters, &[endpoint.0 as u64, BUFFER]).expect("waits");
}

fn set(w: &mut World, endpoint: Endpoint, resume: u64) -> Result<u64, Errno> {
    w.kernel_call(RS, KernelCall::SetRegisters, &[endpoint.0 as u64, BUFFER, resume])
}

#[test]
fn a_forked_thread_has_its_parents_registers_and_zero_as_result() {
    let mut w = World::with_services();
    let parent = w.application();
    let slot = parent.slot();
    w.m.extended.insert(slot, [7; abi::registers::EXTENDED_BYTES]);
    *w.node.frame_mut(slot) = kernel_core::Frame { rbx: 1, rsp: 2, rip: 3, rax: 57, ..kernel_core::Frame::start(3, 2) };
    let child = w.kernel_call(RS, KernelCall::Fork, &[parent.0 as u64]).expect("forked");
    let child = Endpoint(child as u32);
    assert!(child.is_application() && child != parent);
    let frame = w.node.frame_mut(child.slot());
    assert_eq!((frame.rbx, frame.rsp, frame.rip, frame.rax), (1, 2, 3, 0));
    assert_eq!(w.m.extended[&child.slot()], [7; abi::registers::EXTENDED_BYTES]);
    w.kernel_call(RS, KernelCall::Start, &[child.0 as u64]).expect("started");
    assert!(!w.is_ready(child.slot()), "it has no space");
    let space = w.space(slot) as u64;
    w.kernel_call(RS, KernelCall::SpaceSet, &[child.0 as u64, space]).expect("space");
    assert!(w.is_ready(child.slot()));
}

#[test]
fn slots_run_out_and_come_back() {
    let mut w = World::new();
    let mut last = 0;
    for _ in SERVICE_SLOTS..abi::endpoint::SLOTS {
        last = w.kernel_call(RS, KernelCall::Fork, &[Endpoint::NONE.0 as u64]).expect("a slot");
    }
    assert_eq!(w.kernel_call(RS, KernelCall::Fork, &[Endpoint::NONE.0 as u64]), Err(Errno::EAGAIN));
    w.kernel_call(RS, KernelCall::Destroy, &[last, 0]).expect("destroyed");
    let next = w.kernel_call(RS, KernelCall::Fork, &[Endpoint::NONE.0 as u64]).expect("a slot");
    assert_eq!(Endpoint(next as u32).slot(), Endpoint(last as u32).slot());
    assert_ne!(next, last);
}

#[test]
fn a_stopped_thread_gets_messages_but_does_not_run() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.receive(B, Endpoint::ANY);
    w.kernel_call(RS, KernelCall::Stop, &[b.0 as u64]).expect("stopped");
    w.send(A, b, 5);
    assert_eq!(w.result(A), Ok(0));
    assert!(!w.is_ready(B));
    w.kernel_call(RS, KernelCall::Start, &[b.0 as u64]).expect("started");
    assert!(w.is_ready(B));
    assert_eq!(w.message(B).label, 5);
}

#[test]
fn registers_go_out_and_in_unchanged() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.kernel_call(RS, KernelCall::Stop, &[b.0 as u64]).expect("stopped");
    let bytes: Vec<u8> = (0..15 * 8).map(|byte| byte as u8).collect();
    w.m.poke(RS as u16, BUFFER, &[0; 1008]);
    w.m.poke(RS as u16, BUFFER, &bytes);
    w.m.poke(RS as u16, BUFFER + RIP, &0x1234u64.to_le_bytes());
    w.m.poke(RS as u16, BUFFER + 21 * 8, &[1]);
    w.m.poke(RS as u16, BUFFER + 22 * 8, &[9; 832]);
    set(&mut w, b, 0).expect("set");
    w.m.poke(RS as u16, BUFFER, &[0; 1008]);
    get(&mut w, b);
    assert_eq!(w.m.peek(RS as u16, BUFFER, 15 * 8), bytes);
    assert_eq!(w.m.peek(RS as u16, BUFFER + RIP, 2), [0x34, 0x12]);
    assert_eq!(w.m.peek(RS as u16, BUFFER + 22 * 8, 832), [9; 832]);
    assert_eq!(w.m.peek(RS as u16, BUFFER + 20 * 8, 8), [0xff; 8], "in no Linux call");
}

#[test]
fn dangerous_flags_and_addresses_do_not_get_into_registers() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.kernel_call(RS, KernelCall::Stop, &[b.0 as u64]).expect("stopped");
    get(&mut w, b);
    w.m.poke(RS as u16, BUFFER + RFLAGS, &u64::MAX.to_le_bytes());
    set(&mut w, b, 0).expect("set");
    assert_eq!(w.node.frame_mut(B).rflags & 0xffff_ffff_0018_7000, 0, "no IOPL, NT, VM, VIF, VIP");
    assert_eq!(w.node.frame_mut(B).rflags & 0x200, 0x200);
    for register in [15, 18, 19] {
        get(&mut w, b);
        w.m.poke(RS as u16, BUFFER + register * 8, &USER_END.to_le_bytes());
        assert_eq!(set(&mut w, b, 0), Err(Errno::EINVAL));
    }
}

#[test]
fn registers_of_a_running_thread_are_out_of_reach() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    assert_eq!(w.kernel_call(RS, KernelCall::GetRegisters, &[b.0 as u64, BUFFER]), Err(Errno::EBUSY));
    assert_eq!(set(&mut w, b, 1), Err(Errno::EBUSY));
}

#[test]
fn setting_registers_with_resume_drops_the_wait() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.send(A, b, 1);
    get(&mut w, a);
    w.m.poke(RS as u16, BUFFER + RIP, &0x4444u64.to_le_bytes());
    set(&mut w, a, 1).expect("resumed");
    assert!(w.is_ready(A));
    assert_eq!(w.node.frame_mut(A).rip, 0x4444);
    w.receive(B, Endpoint::ANY);
    assert!(!w.is_ready(B), "the message is gone");
}

#[test]
fn slots_are_created_once_and_only_for_services() {
    let mut w = World::with_services();
    assert_eq!(w.kernel_call(RS, KernelCall::Create, &[B as u64]), Err(Errno::EBUSY));
    for slot in [0, 3, 128, 1151, u64::MAX] {
        assert_eq!(w.kernel_call(RS, KernelCall::Create, &[slot]), Err(Errno::EINVAL));
    }
}

#[test]
fn a_space_in_use_is_not_destroyed() {
    let mut w = World::with_services();
    let space = w.space(B) as u64;
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceDestroy, &[space]), Err(Errno::EAGAIN));
    let b = w.endpoint(B);
    w.kernel_call(RS, KernelCall::SpaceSet, &[b.0 as u64, u64::MAX]).expect("taken away");
    assert!(!w.is_ready(B));
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceDestroy, &[space]), Ok(0));
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceDestroy, &[space]), Err(Errno::EINVAL));
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceSet, &[b.0 as u64, space]), Err(Errno::EINVAL));
}

#[test]
fn the_end_of_a_space_makes_way_for_interrupts_and_goes_on() {
    let mut w = World::with_services();
    let (b, space) = (w.endpoint(B), w.space(B));
    w.kernel_call(RS, KernelCall::SpaceSet, &[b.0 as u64, u64::MAX]).expect("taken away");
    w.m.polls_until_interrupt = Some(2);
    assert_eq!(w.begin_kernel_call(RS, KernelCall::SpaceDestroy, &[space as u64]), Next::Interrupts);
    assert!(w.m.spaces.contains_key(&space), "some of its tables are still there");
    w.m.polls_until_interrupt = None;
    w.make_current(RS);
    assert_eq!(w.result(RS), Ok(0));
    assert!(!w.m.spaces.contains_key(&space));
}

#[test]
fn the_death_of_its_threads_frees_a_space() {
    let mut w = World::with_services();
    let (b, space) = (w.endpoint(B), w.space(B) as u64);
    w.kernel_call(RS, KernelCall::Destroy, &[b.0 as u64, 0]).expect("destroyed");
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceDestroy, &[space]), Ok(0));
}

#[test]
fn mappings_are_made_within_user_memory_and_never_writable_and_executable() {
    let mut w = World::with_services();
    let space = w.space(B) as u64;
    let mut map =
        |address, frame, pages, flags| w.kernel_call(RS, KernelCall::SpaceMap, &[space, address, frame, pages, flags]);
    assert_eq!(map(0x50_0000, 0x80_0000, 1000, map::WRITE), Ok(1000));
    assert_eq!(map(0x50_0000, 0x80_0000, 1, map::WRITE | map::EXECUTE), Err(Errno::EINVAL));
    assert_eq!(map(0x50_0001, 0x80_0000, 1, 0), Err(Errno::EINVAL));
    assert_eq!(map(0x50_0000, 0x80_0001, 1, 0), Err(Errno::EINVAL));
    assert_eq!(map(USER_END, 0x80_0000, 1, 0), Err(Errno::EFAULT));
    assert_eq!(map(0, 0x80_0000, u64::MAX, 0), Err(Errno::EFAULT));
    assert_eq!(map(0x50_0000, 0x80_0000, 1, map::COMBINED << 1), Err(Errno::EINVAL));
    assert_eq!(w.m.spaces[&(space as u16)][&(0x50_0000 + 999 * PAGE)].frame, 0x80_0000 + 999 * PAGE);
}

#[test]
fn an_empty_pool_is_told_with_the_pages_done() {
    let mut w = World::with_services();
    let space = w.space(B) as u64;
    w.m.pool = 0;
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceMap, &[space, 0x50_0000, 0x80_0000, 4, 0]), Ok(0));
    assert_eq!(w.node.frame_mut(RS).rdi as i64, -(Errno::ENOMEM.0 as i64));
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceCreate, &[]), Err(Errno::ENOMEM));
    w.kernel_call(RS, KernelCall::Donate, &[0x100_0000, 9]).expect("donated");
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceMap, &[space, 0x50_0000, 0x80_0000, 4, 0]), Ok(4));
    assert_eq!(w.node.frame_mut(RS).rdi, 0);
}

#[test]
fn slots_of_programs_are_used_in_turn() {
    let mut w = World::new();
    let fork = |w: &mut World| {
        let endpoint = w.kernel_call(RS, KernelCall::Fork, &[Endpoint::NONE.0 as u64]).expect("forked");
        let slot = Endpoint(endpoint as u32).slot();
        w.kernel_call(RS, KernelCall::Destroy, &[endpoint, 0]).expect("destroyed");
        slot
    };
    for expected in SERVICE_SLOTS..abi::endpoint::SLOTS {
        assert_eq!(fork(&mut w), expected, "a slot rests before it is used again");
    }
    assert_eq!((fork(&mut w), fork(&mut w)), (SERVICE_SLOTS, SERVICE_SLOTS + 1), "round again");
}

#[test]
fn a_thread_without_a_parent_begins_with_nothing() {
    let mut w = World::new();
    let endpoint = w.kernel_call(RS, KernelCall::Fork, &[Endpoint::NONE.0 as u64]).expect("forked");
    let frame = *w.node.frame_mut(Endpoint(endpoint as u32).slot());
    assert_eq!((frame.rip, frame.rsp, frame.rax, frame.rflags, frame.entry), (0, 0, 0, 0x202, 0));
    let dead = w.kernel_call(RS, KernelCall::Fork, &[endpoint + (1 << 12)]);
    assert_eq!(dead, Err(Errno::EDEADSRCDST));
}

#[test]
fn a_child_has_the_queue_and_the_quantum_of_its_parent() {
    let mut w = World::with_services();
    let parent = w.application();
    w.receive(parent.slot(), Endpoint::ANY);
    w.kernel_call(RS, KernelCall::Schedule, &[parent.0 as u64, 3, 5000]).expect("scheduled");
    let child = w.kernel_call(RS, KernelCall::Fork, &[parent.0 as u64]).expect("forked");
    let slot = Endpoint(child as u32).slot();
    let space = w.space(parent.slot()) as u64;
    w.kernel_call(RS, KernelCall::SpaceSet, &[child, space]).expect("space");
    assert_eq!(w.kernel_call(RS, KernelCall::Start, &[child]), Ok(0));
    assert_eq!(w.next(), Next::Run(slot), "better than the services");
    w.m.now += 4_999_999;
    w.node.timer(&mut w.m);
    assert_eq!(w.next(), Next::Run(slot));
    w.m.now += 1;
    w.node.timer(&mut w.m);
    assert_ne!(w.next(), Next::Run(slot), "it sinks to their queue");
}

#[test]
fn registers_tell_whether_the_fpu_was_used() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.kernel_call(RS, KernelCall::Stop, &[b.0 as u64]).expect("stopped");
    const VALID: u64 = BUFFER + 21 * 8;
    for state in [None, Some([5; abi::registers::EXTENDED_BYTES])] {
        match state {
            Some(state) => w.m.extended.insert(B, state),
            None => w.m.extended.remove(&B),
        };
        w.m.poke(RS as u16, VALID, &[9; 8]);
        get(&mut w, b);
        assert_eq!(w.m.peek(RS as u16, VALID, 8), [state.is_some() as u8, 0, 0, 0, 0, 0, 0, 0]);
        w.m.extended.insert(B, [1; abi::registers::EXTENDED_BYTES]);
        set(&mut w, b, 0).expect("set");
        assert_eq!(w.m.extended.get(&B).copied(), state);
    }
}

#[test]
fn the_last_addresses_of_user_memory_are_good_for_registers() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.kernel_call(RS, KernelCall::Stop, &[b.0 as u64]).expect("stopped");
    get(&mut w, b);
    for register in [15, 18, 19] {
        w.m.poke(RS as u16, BUFFER + register * 8, &(USER_END - 1).to_le_bytes());
    }
    assert_eq!(set(&mut w, b, 0), Ok(0));
    let frame = *w.node.frame_mut(B);
    assert_eq!([frame.rip, frame.fs_base, frame.gs_base], [USER_END - 1; 3]);
    assert!(!w.is_ready(B), "it is stopped still");
    get(&mut w, b);
    assert_eq!(set(&mut w, b, 1), Ok(0));
    assert!(w.is_ready(B));
}

#[test]
fn a_thread_that_is_started_or_stopped_twice_is_so_once() {
    let mut w = World::with_services();
    let b = w.endpoint(B).0 as u64;
    for _ in 0..2 {
        assert_eq!(w.kernel_call(RS, KernelCall::Stop, &[b]), Ok(0));
    }
    assert!(!w.is_ready(B));
    for _ in 0..2 {
        assert_eq!(w.kernel_call(RS, KernelCall::Start, &[b]), Ok(0));
    }
    assert!(w.is_ready(B));
    let this = Endpoint::SELF.0 as u64;
    w.begin_kernel_call(A, KernelCall::Stop, &[this]);
    assert!(!w.is_ready(A), "itself");
}

#[test]
fn a_new_space_takes_the_place_of_the_old_one() {
    let mut w = World::with_services();
    let (b, old) = (w.endpoint(B).0 as u64, w.space(B) as u64);
    let new = w.kernel_call(RS, KernelCall::SpaceCreate, &[]).expect("created");
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceSet, &[b, new]), Ok(0));
    assert_eq!(w.space(B) as u64, new);
    assert!(w.is_ready(B));
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceDestroy, &[new]), Err(Errno::EAGAIN));
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceDestroy, &[old]), Ok(0));
    for nobody in [old, 5000, u64::MAX - 1] {
        assert_eq!(w.kernel_call(RS, KernelCall::SpaceSet, &[b, nobody]), Err(Errno::EINVAL));
    }
    assert_eq!(w.space(B) as u64, new, "it keeps its own");
}

/// How a program that has come from a Linux call enters the kernel next.
#[test]
fn the_number_of_a_linux_call_is_forgotten_with_the_next_fault_or_interrupt() {
    type Enter = fn(&mut World);
    let entries: [(&str, Enter); 4] = [
        ("timer", |w| w.node.timer(&mut w.m)),
        ("interrupt", |w| w.node.interrupt(&mut w.m, 3)),
        ("exception", |w| w.node.exception(&mut w.m, 6, 0, 0)),
        ("page fault", |w| w.node.page_fault(&mut w.m, 0x7000_0000, 0)),
    ];
    for (name, enter) in entries {
        let mut w = World::with_services();
        let program = w.application();
        w.linux_call(program.slot(), 39, [0; 6]);
        w.make_current(program.slot());
        enter(&mut w);
        w.kernel_call(RS, KernelCall::Stop, &[program.0 as u64]).expect("stopped");
        get(&mut w, program);
        assert_eq!(w.m.peek(RS as u16, BUFFER + 20 * 8, 8), [0xff; 8], "{name}");
    }
}
