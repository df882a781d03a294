//! Kernel calls: decoding, the permission each needs, and how one that cannot finish at once is taken up again.
//!
//! A call leaves the caller's registers alone until it is done, so a call that was interrupted (memory that vm must map
//! first, a preemption point) is simply made again when the thread is next dispatched; `Thread::progress` says how much
//! of a long one is done. Calls with lasting effects touch user memory before the effect, or nothing after it.
//! Neighbours: every file that implements calls; `report` (asks vm for memory); `scheduler` (dispatches).

mod info;
mod privileges;

use crate::{
    Machine, Node, futex, futex::inheriting, interrupts, ipc::release, ipc::report, life, linux::route, memory::copy,
    memory::copy::request, memory::grants, memory::spaces, priority::SYSTEM_QUEUE, probes::tracing, rooms::Kernel,
    rooms::minix4rt, rooms::port_ways, stop::Stop, thread::attention, time::alarm, time::alarm::Kind,
};

use abi::{
    Endpoint, Errno, call::KernelCall, call::REAL_TIME, call::UNRESTRICTED, endpoint::SERVICE_SLOTS, endpoint::slot,
    kernel::Exited, trace::MIN_PERIOD_NS,
};

/// A kernel call (or a number that is none) by the current thread.
#[inline(never)]
pub fn kernel_call<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u64) {
    let result = permitted_call(kernel, m, KernelCall::from_number(number));
    let node = &mut kernel.node;
    tracing::trace!(node, KERNEL_CALL, trace_call(m, &node.threads, node.current(), number, result));
    report::finish(node, m, node.current(), attention::RESUME, result);
}

/// Makes a call (`None`: a number that is none), if the caller may.
pub fn permitted_call<M: Machine>(kernel: &mut Kernel, m: &mut M, call: Option<KernelCall>) -> Result<u64, Stop> {
    let node = &mut kernel.node;
    match call {
        None => Err(Errno::EBADCALL.into()),
        Some(call) if may_call(node, call) => perform(kernel, m, call),
        Some(call) => Err(port_ways::refuse_call(node, m, call)),
    }
}

fn may_call(node: &Node, call: KernelCall) -> bool {
    let caller = node.caller();
    let mask = node.privileges[node.threads[caller].privileges as usize % SERVICE_SLOTS].kernel_calls | UNRESTRICTED;
    match call {
        KernelCall::PrivCtl | KernelCall::Inject => caller == slot::RS,
        _ => mask & call.bit() != 0,
    }
}

/// Makes a permitted call with the arguments in the registers of the current thread: the caller, or the SYSTEM task in its name.
fn perform<M: Machine>(kernel: &mut Kernel, m: &mut M, call: KernelCall) -> Result<u64, Stop> {
    let node = &mut kernel.node;
    let caller = node.caller();
    let words @ [w0, w1, w2, w3, w4, w5, _] = node.threads.running().frame.words();
    let e0 = Endpoint(w0 as u32);
    let value = match call {
        KernelCall::Exit => {
            report::report_to_manager(node, m, caller, Exited { status: w0 }.message());
            return Err(Stop::NoResult);
        }
        KernelCall::Yield => {
            node.threads[caller].frame.rax = 0;
            node.yield_current(m);
            return Err(Stop::NoResult);
        }
        KernelCall::Fork => life::fork(node, m, e0)?,
        KernelCall::Create => {
            release::finish(node, m)?;
            life::create(node, m, w0)?
        }
        KernelCall::Destroy => {
            let slot = life::slot_to_destroy(node, e0)?;
            release::finish(node, m)?;
            inheriting::bequeath(node, m, slot)?;
            minix4rt::end_process(kernel, m, slot);
            life::destroy(&mut kernel.node, m, slot, w1 != 0)
        }
        KernelCall::Join => life::join(node, m, node.threads.find(e0)?, [w1, w2, w3])?,
        KernelCall::Inject => inject(node, m, node.find_or_self(e0)?, [w1, w2, w3, w4])?,
        KernelCall::GetRegisters => life::get_registers(node, m, node.threads.find(e0)?, w1)?,
        KernelCall::SetRegisters => life::set_registers(node, m, node.threads.find(e0)?, w1, w2)?,
        KernelCall::Start => life::start(node, node.threads.find(e0)?, w1),
        KernelCall::Stop => {
            node.threads.stop(node.find_or_self(e0)?);
            0
        }
        KernelCall::Interrupt => {
            let slot = node.threads.find(e0)?;
            minix4rt::leave_real_time(kernel, m, slot);
            life::interrupt_thread(&mut kernel.node, slot)
        }
        KernelCall::PrivCtl => privileges::set_privileges(node, m, e0, w1)?,
        KernelCall::Schedule => life::schedule_call(node, m, node.find_or_self(e0)?, w1, w2)?,
        KernelCall::SpaceCreate => spaces::create_space(node, m)?,
        KernelCall::SpaceDestroy => spaces::destroy_space(node, m, w0)?,
        KernelCall::SpaceSet => {
            let slot = node.find_or_self(e0)?;
            inheriting::bequeath(node, m, slot)?;
            life::set_space(node, slot, w1)?
        }
        KernelCall::SpaceMap => spaces::map_space(node, m, [w0, w1, w2, w3, w4])?,
        KernelCall::SpaceUnmap => spaces::change_space(node, m, [w0, w1, w2], None)?,
        KernelCall::SpaceProtect => spaces::change_space(node, m, [w0, w1, w2], Some(w3))?,
        KernelCall::SpaceCopy => spaces::copy_space(node, m, [w0, w1, w2, w3])?,
        KernelCall::Donate => spaces::donate_frames(m, w0, w1)?,
        KernelCall::Reclaim => m.reclaim()?,
        KernelCall::FrameCopy => copy::copy_frame(m, w0, w1)?,
        KernelCall::FrameFill => copy::fill_frames(node, m, [w0, w1, w2, w3, w4, w5])?,
        KernelCall::VirCopy => copy::copy_between(node, m, &request(words))?,
        KernelCall::SafeCopyFrom | KernelCall::SafeCopyTo => copy::copy_by_grant(node, m, call, words)?,
        KernelCall::SetGrants => grants::set_grants(node, w0, w1)?,
        KernelCall::Umap => copy::translate(node, m, w0)?,
        KernelCall::DevIo | KernelCall::SDevIo | KernelCall::VDevIo => {
            port_ways::call(node, m, call, [w0, w1, w2, w3])?
        }
        KernelCall::IrqSet => interrupts::set_line(node, m, w0, w1, w2)?,
        KernelCall::IrqEnable => interrupts::enable_line(node, m, w0)?,
        KernelCall::IrqDisable => interrupts::disable_line(node, m, w0)?,
        KernelCall::IrqRemove => interrupts::remove_line(node, m, w0)?,
        KernelCall::MsiSet => interrupts::set_msi(node, m, w0)?,
        KernelCall::SetAlarm => set_alarm(node, m, caller, w0, w1),
        KernelCall::Time => time(node, m),
        KernelCall::SetTime => {
            node.real_offset_ns = w0.wrapping_sub(alarm::now_ns(m));
            0
        }
        KernelCall::GetInfo => info::get_info(node, m, [w0, w1, w2, w3])?,
        KernelCall::Diag => copy::print(node, m, w0, w1)?,
        KernelCall::Shutdown => m.shutdown(w0, w1),
        KernelCall::Trace => {
            node.set_tracing(w0, m.ns_to_ticks(w1.max(MIN_PERIOD_NS)));
            node.timer.arm(m, 0);
            0
        }
        KernelCall::Route => route::set_route(node, w0, w1)?,
        KernelCall::WhoIs => who_is(node, w0)?,
        KernelCall::PrivCheck => privileges::check_privilege(node, node.find_or_self(e0)?, w1, w2, w3)?,
        KernelCall::PhysCopy => copy::copy_physical(node, m, &request(words))?,
        KernelCall::VirVCopy => copy::copy_vector(node, m, (w0, w1), copy::copy_between)?,
        KernelCall::PhysVCopy => copy::copy_vector(node, m, (w0, w1), copy::copy_physical)?,
        KernelCall::GetTsc => time_stamp(node, m),
        KernelCall::RtControl => minix4rt::real_time_control(kernel, m, [w0, w1, w2, w3])?,
        KernelCall::KeepAnswer => route::keep_answer(node, node.threads.find(e0)?, w1, w2),
        KernelCall::FutexWake => futex::wake_futex_of(node, m, node.threads.find(e0)?, [w1, w2])?,
    };
    Ok(value)
}

/// `WhoIs`.
fn who_is(node: &Node, slot: u64) -> Result<u64, Errno> {
    let thread = usize::try_from(slot).ok().and_then(|slot| node.threads.get(slot)).ok_or(Errno::EINVAL)?;
    if thread.is_live() { Ok(thread.endpoint.0 as u64) } else { Err(Errno::EDEADSRCDST) }
}

/// `Time`: monotonic time; real time in word 0.
fn time<M: Machine>(node: &mut Node, m: &mut M) -> u64 {
    let now_ns = alarm::now_ns(m);
    node.threads.running_mut().frame.rdi = now_ns.wrapping_add(node.real_offset_ns);
    now_ns
}

/// `GetTsc`: its halves in words 0 and 1.
fn time_stamp<M: Machine>(node: &mut Node, m: &mut M) -> u64 {
    let ticks = m.ticks();
    let frame = &mut node.threads.running_mut().frame;
    (frame.rdi, frame.rsi) = (ticks >> 32, ticks & u32::MAX as u64);
    0
}

/// `Inject`: see `Injection::call`.
fn inject<M: Machine>(node: &mut Node, m: &mut M, slot: usize, words: [u64; 4]) -> Result<u64, Errno> {
    let result = node.injection.call(&mut node.threads, m, slot, words);
    node.update_fast_path();
    result
}

/// `SetAlarm`: one notification from CLOCK at this monotonic time, in place of the alarm before; 0: none. A queue that is
/// not real-time counts as 0.
fn set_alarm<M: Machine>(node: &mut Node, m: &mut M, slot: usize, deadline_ns: u64, queue: u64) -> u64 {
    let queue = queue.checked_sub(REAL_TIME).filter(|&queue| queue < SYSTEM_QUEUE as u64);
    node.threads[slot].alarm_queue = queue.unwrap_or(0) as u8;
    match deadline_ns {
        0 => node.alarms.cancel(slot, Kind::Alarm),
        _ => node.alarms.set_ns(&mut node.timer, m, (slot, Kind::Alarm), deadline_ns),
    }
    0
}
