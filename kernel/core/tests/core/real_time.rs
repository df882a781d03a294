//! Real-time processes on a node: who runs, what waits for them, what they may call. Programs in the guest (user/mrt) do the rest.

use abi::{
    Endpoint, Errno, Message,
    call::{self, KernelCall},
    kernel::{Notify, Resident, irq},
    linux::nr,
    rt::{self, NOPROC, control, flag},
};
use kernel_core::Next;

use crate::world::{A, B, BUFFER, RS, VM, World, all_rights};

const LINE: u64 = 4;
const PID: u64 = 100;

impl World {
    /// A system call of a process, as mrt hands it on; B stands for mrt.
    fn control(&mut self, operation: u64, process: usize, argument: u64, words: [u64; 8]) -> Result<u64, Errno> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (space, endpoint) = (self.space(B), self.endpoint(process).0 as u64);
        self.m.poke(space, BUFFER, &bytes);
        self.kernel_call(B, KernelCall::RtControl, &[operation, endpoint, argument, BUFFER])
    }

    fn real_time_call(&mut self, slot: usize, number: u64, arguments: [u64; 2]) -> Next {
        self.syscall(slot, |frame| (frame.rax, frame.rdi, frame.rsi) = (number, arguments[0], arguments[1]))
    }

    /// An application that is real-time with this priority and waits for a wake-up.
    fn sleeper(&mut self, priority: u64) -> usize {
        let slot = self.application().slot();
        let attributes = [0, priority, 0, 0, 0, NOPROC as u64, 8, 0];
        self.control(control::SETPATTR, slot, PID + slot as u64, attributes).expect("attributes");
        self.receive(VM, Endpoint::ANY);
        self.real_time_call(slot, rt::call::SET2RT, [0, 0]);
        assert_eq!(self.message(VM).label, Resident::LABEL);
        let requester = self.endpoint(slot);
        self.syscall(VM, |frame| {
            frame.set_message(&Message { source: requester, ..Message::new(0) });
            frame.rax = call::SENDNB;
        });
        self.make_current(slot);
        assert_eq!(self.result(slot), Ok(0));
        self.real_time_call(slot, rt::call::SLEEP, [rt::FOREVER as u64, 0]);
        slot
    }

    fn wake(&mut self, by: usize, slot: usize) -> Next {
        self.real_time_call(by, rt::call::WAKEUP, [PID + slot as u64, 0])
    }
}

/// In real-time mode, A with a line, and two sleepers, the first one better.
fn begin() -> (World, usize, usize) {
    let mut w = World::with_services();
    w.control(control::RTSTART, A, 20 | 1000 << 32, [0; 8]).expect("started");
    let mut rights = all_rights();
    (rights.irqs[0], rights.irq_count) = (LINE as u8, 1);
    let driver = w.endpoint(A);
    w.set_privileges(driver, &rights);
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 3, irq::MASK_UNTIL_ENABLED]).expect("set");
    w.kernel_call(A, KernelCall::IrqEnable, &[3]).expect("enabled");
    w.receive(A, Endpoint::ANY);
    let (better, worse) = (w.sleeper(5), w.sleeper(9));
    (w, better, worse)
}

#[test]
fn a_driver_hears_of_its_interrupt_when_nothing_real_time_is_ready() {
    let (mut w, better, _) = begin();
    wake_by_interrupt(&mut w, better);
    assert_eq!(w.next(), Next::Run(better));
    w.node.interrupt(&mut w.m, LINE as usize);
    assert!(!w.m.unmasked.contains(&(LINE as usize)), "it comes once");
    assert_eq!(w.next(), Next::Run(better), "the driver waits");
    w.real_time_call(better, rt::call::SLEEP, [rt::FOREVER as u64, 0]);
    let message = w.message(A);
    assert_eq!((message.source, Notify::from_message(&message).bits), (Endpoint::HARDWARE, 1 << 3));
    assert!(w.is_ready(A));
}

/// Wakes a sleeper by a software interrupt.
fn wake_by_interrupt(w: &mut World, slot: usize) {
    let pid = PID + slot as u64;
    let kind = rt::irq::TDIRQ | rt::irq::SOFTIRQ;
    w.control(control::SETIATTR, B, 70, [50, pid, NOPROC as u64, 4, kind, 0, 0, 0]).expect("descriptor");
    w.m.now += 60 * 1_000_000_000;
    w.node.timer(&mut w.m);
}

#[test]
fn a_better_process_runs_as_soon_as_it_is_woken_and_a_worse_one_when_it_may() {
    let (mut w, better, worse) = begin();
    wake_by_interrupt(&mut w, worse);
    assert_eq!(w.next(), Next::Run(worse));
    assert_eq!(w.wake(worse, better), Next::Run(better));
    assert_eq!(w.result(worse), Ok(0));
    w.real_time_call(better, rt::call::SLEEP, [rt::FOREVER as u64, 0]);
    assert_eq!(w.next(), Next::Run(worse));
}

#[test]
fn a_real_time_process_makes_no_other_calls_and_ends_as_an_ordinary_one() {
    let (mut w, better, _) = begin();
    wake_by_interrupt(&mut w, better);
    w.kernel_call(better, KernelCall::Yield, &[]).expect_err("not for it");
    assert_eq!(w.result(better), Err(Errno(rt::error::E_MRT_RTMODE)));
    w.linux_call(better, nr::GETPPID as u64, [0; 6]);
    assert_eq!(w.result(better), Err(Errno(rt::error::E_MRT_RTMODE)));
    w.linux_call(better, nr::EXIT as u64, [0; 6]);
    assert_eq!(w.result(better), Err(Errno::ENOSYS), "nobody serves it here");
    w.real_time_call(better, rt::call::SLEEP, [1, 0]);
    assert_eq!(w.result(better), Err(Errno(rt::error::E_MRT_BADPTYPE)));
}

#[test]
fn a_process_that_never_waits_becomes_ordinary() {
    let (mut w, better, _) = begin();
    wake_by_interrupt(&mut w, better);
    assert_eq!(w.next(), Next::Run(better));
    w.m.now += rt::RUNAWAY_NS;
    w.node.timer(&mut w.m);
    assert!(w.is_ready(RS), "others run");
    w.real_time_call(better, rt::call::SET2NRT, [0, 0]);
    assert_eq!(w.result(better), Err(Errno(rt::error::E_MRT_BADPTYPE)));
}

#[test]
fn what_a_dead_process_held_goes_to_the_next_in_line() {
    let (mut w, better, worse) = begin();
    let mutex = flag::SEM_MUTEX | flag::SEM_PRTYORDER;
    let id = w.control(control::SEMALLOC, B, 1, [1, mutex, 0, 0, 0, 0, 0, 0]).expect("allocated");
    wake_by_interrupt(&mut w, worse);
    w.real_time_call(worse, rt::call::SEMDOWN, [id, rt::FOREVER as u64]);
    w.wake(worse, better);
    w.real_time_call(better, rt::call::SEMDOWN, [id, rt::FOREVER as u64]);
    w.real_time_call(worse, rt::call::SLEEP, [rt::FOREVER as u64, 0]);
    assert!(!w.is_ready(better));
    let endpoint = w.endpoint(worse).0 as u64;
    w.kernel_call(RS, KernelCall::Destroy, &[endpoint, 0]).expect("destroyed");
    assert!(w.is_ready(better));
    assert_eq!(w.result(better), Ok(0));
}
