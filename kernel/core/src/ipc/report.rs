//! Messages that the kernel sends in a thread's name (`abi::kernel`): faults, exceptions, interruptions, the end.
//!
//! The thread becomes blocked as in `SENDREC`, the message lies in `outgoing`, its registers stay as they are. Word 0
//! of the answer says how it goes on. Managers are named by slot, so that a report waits for, or is repeated to, a
//! restarted one. vm and rs have no manager: they start again in their own memory. Neighbours: `ipc` (delivers), `dispatch`
//! (goes on with interrupted kernel calls), `release` (repeats reports to a successor), `critical` (vm and rs).

use crate::{
    Machine, Node, ipc::critical, ipc::critical::is_critical, ipc::message, machine, memory::copy, probes::tracing,
    stop::Stop, thread::MessageSource, thread::attention, thread::state::Continuation, thread::state::Hold,
    vector::GENERAL_PROTECTION, vector::PAGE_FAULT,
};

use abi::{
    Endpoint, Errno, Message, Word, endpoint::slot, kernel::CopyFault, kernel::Exception, kernel::Exited,
    kernel::Fault, kernel::Interrupted, kernel::LinuxCall, kernel::Resident,
};

/// Makes a thread, which runs or is about to, send `message` to its manager and wait for the answer.
fn report<M: Machine>(node: &mut Node, m: &mut M, slot: usize, message: Message, to: Endpoint) -> Result<(), Errno> {
    let thread = &mut node.threads[slot];
    thread.form = MessageSource::Kernel;
    thread.outgoing = message;
    match message::transmit(node, m, slot, to, Continuation::Answer) {
        Err(Errno::EDEADSRCDST) => {
            message::wait_to_send(node, slot, to, Continuation::Answer);
            Ok(())
        }
        result => result,
    }
}

/// The current thread, in user mode, touched memory that is not mapped so: the fault goes to vm. What vm cannot be asked
/// about is an exception.
pub fn page_fault<M: Machine>(node: &mut Node, m: &mut M, address: u64, access: u64) {
    let slot = node.current();
    let thread = &mut node.threads[slot];
    thread.linux_call = 0;
    let ip = thread.frame.rip;
    tracing::trace!(node, EXCEPTION, trace_exception(m, thread, PAGE_FAULT, address));
    let message = Fault { address, access, ip }.message();
    if slot == slot::VM || report(node, m, slot, message, Endpoint::VM).is_err() {
        report_exception(node, m, slot, PAGE_FAULT, Err(Errno::EFAULT).to_word(), address);
    }
}

/// The thread, which runs, is to become real-time: vm makes its memory resident, then its call is made again.
pub fn report_resident<M: Machine>(node: &mut Node, m: &mut M, slot: usize) -> Result<(), Errno> {
    let stack = node.threads[slot].frame.rsp;
    report(node, m, slot, Resident { stack }.message(), Endpoint::VM)
}

/// The current thread, of whose Linux calls pm is told, makes one.
pub fn report_linux_call<M: Machine>(node: &mut Node, m: &mut M, number: u64) {
    let slot = node.current();
    node.threads[slot].linux_call = number as u32 + 1;
    report_to_manager(node, m, slot, LinuxCall { number }.message());
}

/// An exception goes to the thread's manager.
pub fn report_exception<M: Machine>(node: &mut Node, m: &mut M, slot: usize, vector: u64, error: u64, address: u64) {
    let ip = node.threads[slot].frame.rip;
    let message = Exception { vector, error, ip, address }.message();
    report_to_manager(node, m, slot, message);
}

/// Reports what ends or suspends a thread to its manager: rs for a service, pm for a program. If the manager waits for this very thread, it
/// waits in vain: the thread is stopped, and the manager's call to it fails.
pub fn report_to_manager<M: Machine>(node: &mut Node, m: &mut M, slot: usize, message: Message) {
    if is_critical(slot) {
        return critical::begin_again(node, m, slot, &message);
    }
    let manager = if node.threads[slot].endpoint.is_service() { Endpoint::RS } else { Endpoint::PM };
    while report(node, m, slot, message, manager) == Err(Errno::ELOCKED) {
        break_chain(node, m, slot, manager);
    }
}

/// Ends the wait that leads from `manager` to `slot` at its last link, the thread that waits for `slot` itself.
fn break_chain<M: Machine>(node: &mut Node, m: &mut M, slot: usize, manager: Endpoint) {
    let mut link = manager.slot();
    while let Some(peer) = node.threads[link].state.peer().filter(|peer| peer.slot() != slot) {
        link = peer.slot();
    }
    message::fail_wait(node, m, link, Errno::EDEADSRCDST);
}

/// The thread was marked by `Interrupt`: pm decides how it goes on.
pub fn report_interrupted<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    if report(node, m, slot, Interrupted {}.message(), Endpoint::PM).is_err() {
        node.threads[slot].attention |= attention::INTERRUPT;
        break_chain(node, m, slot, Endpoint::PM);
    }
}

/// The kernel call in the registers of `slot` (or the delivery of its vector-33 message) needs memory of `owner`
/// that is not there: vm may map it, and then the call goes on. Memory that vm cannot be asked for ends it with
/// `EFAULT`.
pub fn report_copy_fault<M: Machine>(node: &mut Node, m: &mut M, slot: usize, owner: usize, fault: machine::Fault) {
    let owner = node.threads[owner].endpoint;
    let message = CopyFault { address: fault.address, access: fault.access, owner }.message();
    let no_way = slot == slot::VM || owner == node.threads[slot::VM].endpoint;
    if no_way || report(node, m, slot, message, Endpoint::VM).is_err() {
        fail_call(node, slot, Errno::EFAULT);
    }
}

/// Ends the kernel call, or the delivery, that `slot` was in the middle of. A call for a vector has the records that are done as its result.
pub fn fail_call(node: &mut Node, slot: usize, error: Errno) {
    let thread = &mut node.threads[slot];
    let done = copy::records_done(core::mem::take(&mut thread.progress));
    let is_vector = done > 0 && thread.attention & attention::RESUME != 0;
    thread.attention &= attention::INTERRUPT | attention::DIE | attention::TRACED;
    thread.frame.set_result(if is_vector { Ok(done) } else { Err(error) });
}

/// The answer to a report has come, with this word 0; the thread's wait is over.
#[cold]
#[inline(never)]
pub fn answered<M: Machine>(node: &mut Node, m: &mut M, slot: usize, word: u64) {
    let answer: Result<u64, Errno> = Word::from_word(word);
    let report = &node.threads[slot].outgoing;
    match (report.label, answer) {
        (Fault::LABEL, Err(_)) => {
            let Fault { address, .. } = Fault::from_message(report);
            report_exception(node, m, slot, PAGE_FAULT, word, address);
        }
        (CopyFault::LABEL, Err(_)) => fail_call(node, slot, Errno::EFAULT),
        (Resident::LABEL, Err(error)) => fail_call(node, slot, error),
        (Resident::LABEL, Ok(_)) => {
            node.threads[slot].progress = 1;
            node.threads[slot].attention |= attention::RESUME;
        }
        (Exited::LABEL, _) => node.threads[slot].state.hold(Hold::Stopped),
        _ => {}
    }
}

/// Gives a call its result, or arranges for it to go on: `again` is the bit of `attention` for that.
pub fn finish<M: Machine>(node: &mut Node, m: &mut M, caller: usize, again: u16, result: Result<u64, Stop>) {
    let thread = &mut node.threads[caller];
    match result {
        Ok(_) | Err(Stop::Error(_) | Stop::Exception(_)) => thread.progress = 0,
        Err(Stop::Fault(..) | Stop::Preempted) => thread.attention |= again,
        Err(Stop::NoResult) => {}
    }
    match result {
        Ok(value) => thread.frame.rax = value,
        Err(Stop::Error(error)) => thread.frame.set_result(Err(error)),
        Err(Stop::Exception(address)) => report_exception(node, m, caller, GENERAL_PROTECTION, 0, address),
        Err(Stop::Fault(owner, fault)) => report_copy_fault(node, m, caller, owner, fault),
        Err(Stop::Preempted) => node.interrupts_first = true,
        Err(Stop::NoResult) => {}
    }
}
