//! intruder: a driver that tries everything it has no right to, on the way to its ports that its system file gives it (system
//! `intruders`), and writes to the kernel's log what came of it: lines `trial: NAME …`.
//!
//! It has the kernel calls it needs to get as far as the checks of ranges, grants and lines, and one port that it may use. What ends it,
//! a refused port on the ways `emulate` and `direct` or under the policy KILL_ON_DENIAL, comes last; its successor says that it is there.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

use abi::call::KernelCall;
use abi::kernel::irq;
use abi::privilege::Privileges;
use abi::{Endpoint, Errno, GrantId};
use driver::Region;
use sys::start::Birth;
use sys::{Result, copy, ipc, port, rights, system};

sys::program!(main);

/// The port of power-on codes, which is its own.
const OWN_PORT: u16 = 0x80;
/// The keyboard's, which is not.
const FOREIGN_PORT: u16 = 0x60;
/// The kernel's devices that its system file gives it.
const CLOCK_PORT: u16 = 0xff00;
const LOG_PORT: u16 = 0xff10;
const KEYBOARD_LINE: u8 = 1;
/// Where a PC's text screen is.
const FOREIGN_MEMORY: u64 = 0xb_8000;
const GRANT: GrantId = GrantId::new(0, 1);

fn main(start: sys::Start) {
    server::ready();
    match start.birth {
        Birth::Fresh => {
            uses_what_is_its_own();
            tries_by_trap();
            tries_by_message();
            tell("port", port::read(FOREIGN_PORT, 1).map(drop));
        }
        _ => sys::log!("trial: {} is here again", sys::name()),
    }
    loop {
        if ipc::receive(Endpoint::ANY).is_ok_and(|message| message.source.slot() == Endpoint::RS.slot()) {
            // Its sign of life: rs gone is nothing that it could mend.
            let _ = ipc::notify(Endpoint::RS);
        }
    }
}

fn uses_what_is_its_own() {
    tell("own port", port::read(OWN_PORT, 1).and_then(|_| port::write(OWN_PORT, 1, 0)));
    let mut buffer = [0; 1024];
    tell("own port, string", port::read_string(OWN_PORT, 2, &mut buffer));
    let now = port::read(CLOCK_PORT, 4).and_then(|low| Ok(low as u64 | (port::read(CLOCK_PORT + 4, 4)? as u64) << 32));
    let runs = now.is_ok_and(|now| now.abs_diff(sys::time::now_ns()) < 1_000_000_000);
    sys::log!("trial: {} clock by port {}", sys::name(), if runs { "runs" } else { "does not run" });
    tell("log by port", port::write_string(LOG_PORT, 1, b"trial: written by port\n"));
}

fn tries_by_trap() {
    tell("call", sys::time::set_real_ns(0));
    tell("destination", ipc::notify(Endpoint::PM));
    tell("line", sys::irq::set(KEYBOARD_LINE, 0, irq::REENABLE));
    tell("memory, copied", copy::from_physical(FOREIGN_MEMORY, &mut [0; 8]));
    tell("memory, mapped", Region::registers(FOREIGN_MEMORY, 4096).map(drop));
    tell("grant", copy::from_grant(Endpoint::DS, GRANT, 0, &mut [0; 8]));
    let all = Privileges { kernel_calls: u64::MAX, ..Privileges::NONE };
    tell("own rights", rights::set_privileges(sys::endpoint(), &all));
    tell("rights of ds", rights::set_privileges(Endpoint::DS, &Privileges::NONE));
}

fn tries_by_message() {
    let own = Endpoint::SELF.0 as u64;
    tell("call, by message", system::call(KernelCall::SetAlarm, [1, 0, 0, 0, 0, 0]).map(drop));
    tell("line, by message", system::call(KernelCall::IrqSet, [KEYBOARD_LINE as u64, 0, 0, 0, 0, 0]).map(drop));
    tell("memory, by message", system::from_physical(FOREIGN_MEMORY, &mut [0; 8]));
    tell("grant, by message", system::from_grant(Endpoint::DS, GRANT, 0, &mut [0; 8]));
    tell("own rights, by message", system::call(KernelCall::PrivCtl, [own, 0x40_0000, 0, 0, 0, 0]).map(drop));
    tell("port, by message", system::call(KernelCall::DevIo, [FOREIGN_PORT as u64, 1, 0, 0, 0, 0]).map(drop));
}

fn tell(what: &str, result: Result<()>) {
    match result {
        Ok(()) => sys::log!("trial: {} {what}: done", sys::name()),
        Err(Errno(_)) => sys::log!("trial: {} {what}: {}", sys::name(), result.expect_err("is one")),
    }
}
