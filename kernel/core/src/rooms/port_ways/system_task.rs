//! The SYSTEM task: kernel calls as messages, as in MINIX; the baseline that the other access paths are measured against.
//!
//! It is a task of the kernel with a context of its own, the frame of slot 0, and a ready queue of its own, between the real-time and the
//! time-shared ones. A request goes to it by rendezvous like any message; the scheduler dispatches it; it makes the call in the name and with
//! the rights of the sender, answers by `REPLYREC`, and waits for the next one. Having no memory, it needs no stack and no space.
//!
//! It waits for nothing but the next request. A call that needs memory which vm must map first, or that is preempted by an interrupt, is
//! handed back to its sender, which asks again when it runs next; `Thread::progress` says how much is done. So a long copy of one driver
//! delays no other request. Neighbours: `ipc` (delivers), `scheduler` (dispatches), `call` (makes the calls).

use crate::{
    Machine, Node, ipc::message, ipc::report, priority::SYSTEM_QUEUE, probes::tracing, rooms::Kernel, stop::Stop,
    thread::MessageSource, thread::attention, thread::state::BlockedOn,
};

use abi::{
    Endpoint, Errno, Word, call, call::BY_MESSAGE, call::KERNEL_CALLS, call::KernelCall, call::SYSTEM_LABELS,
    endpoint::SERVICE_SLOTS, endpoint::slot, message::REPLY, privilege::Privileges,
};

/// Makes a kernel call (`None`: a number that is none), if the caller may.
type MakeCall<M> = fn(&mut Kernel, &mut M, Option<KernelCall>) -> Result<u64, Stop>;

/// Makes the task wait for its first request.
pub fn start_system_task(node: &mut Node) {
    let task = &mut node.threads[slot::SYSTEM];
    task.state.block(BlockedOn::Receive(Endpoint::ANY));
    task.queue = SYSTEM_QUEUE;
    task.base_queue = SYSTEM_QUEUE;
    node.privileges[slot::SYSTEM] = Privileges { destinations: [u64::MAX; SERVICE_SLOTS / 64], ..Privileges::NONE };
}

/// The task has the CPU, and a request in its registers.
#[inline(never)]
pub fn run_system_task<M: Machine>(kernel: &mut Kernel, m: &mut M, make_call: MakeCall<M>) {
    let node = &kernel.node;
    let frame = &node.threads[slot::SYSTEM].frame;
    let (source, label) = (frame.endpoint(), frame.label());
    let waits = Some(BlockedOn::Answer(Endpoint::SYSTEM));
    // The sender may have died or given up meanwhile.
    let requester =
        node.threads.find(source).ok().filter(|&requester| node.threads[requester].state.blocked_on() == waits);
    let result = requester.and_then(|requester| serve(kernel, m, make_call, requester, label));
    let node = &mut kernel.node;
    let frame = &mut node.threads[slot::SYSTEM].frame;
    let mut to = Endpoint::NONE;
    if let Some(result) = result {
        (frame.rdx, frame.rsi, frame.rdi) = (frame.rsi, frame.rdi, result.to_word());
        to = source;
    }
    frame.rax = call::REPLYREC;
    frame.r13 = to.to_word() | ((label | REPLY) as u64) << 32;
    frame.r14 = Endpoint::ANY.to_word();
    message::primitive(node, m, call::REPLYREC);
}

/// Makes the call that a message asks for. `None`: there is no answer, now or ever.
fn serve<M: Machine>(
    kernel: &mut Kernel,
    m: &mut M,
    make_call: MakeCall<M>,
    requester: usize,
    label: u32,
) -> Option<Result<u64, Errno>> {
    kernel.node.serving = requester as u16;
    let result = make_call(kernel, m, requested_call(label));
    let node = &mut kernel.node;
    let number = KERNEL_CALLS + (label & 0xffff) as u64;
    tracing::trace!(node, KERNEL_CALL, trace_call(m, &node.threads, requester, number, result));
    node.serving = 0;
    let answer = match result {
        Ok(value) => Ok(value),
        Err(Stop::Error(error)) => Err(error),
        Err(Stop::NoResult) => return None,
        Err(stop) => {
            let again = match node.threads[requester].form {
                MessageSource::Memory => attention::AGAIN33,
                _ => attention::ASK_AGAIN,
            };
            node.threads[requester].state.unblock();
            report::finish(node, m, requester, again, Err(stop));
            node.threads.wake_if_free(requester);
            return None;
        }
    };
    node.threads[requester].progress = 0;
    Some(answer)
}

/// The call with this label, if it may be made by message.
fn requested_call(label: u32) -> Option<KernelCall> {
    let number = label.checked_sub(SYSTEM_LABELS).filter(|&number| number < 1 << 16)?;
    KernelCall::from_number(KERNEL_CALLS + number as u64).filter(|call| call.bit() & BY_MESSAGE != 0)
}
