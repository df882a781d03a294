//! intruder: a driver that attempts everything its privileges deny, on the access path of its system file (system `intruders`), and
//! logs the results: lines `trial: NAME …`.
//!
//! It may make the kernel calls that reach the checks of ranges, grants and lines, and access one port. The attempt that kills it, a
//! denied port on the access paths `emulate` and `direct` or under the policy KILL_ON_DENIAL, comes last; its successor reports in.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

use abi::call::KernelCall;
use abi::kernel::irq;
use abi::privilege::Privileges;
use abi::{Endpoint, GrantId};
use driver::Region;
use sys::{Result, StartKind, copy, grant, ipc, port, rights, system};

sys::program!(main);

/// The port of power-on codes, which is its own.
const OWN_PORT: u16 = 0x80;
/// The keyboard's, which is not.
const FOREIGN_PORT: u16 = 0x60;
/// The virtual devices that its system file assigns to it.
const CLOCK_PORT: u16 = 0xff00;
const LOG_PORT: u16 = 0xff10;
const KEYBOARD_LINE: u8 = 1;
/// Physical address of a PC's text screen.
const FOREIGN_MEMORY: u64 = 0xb_8000;
const GRANT: GrantId = GrantId::new(0, 1);
/// The registers of the high-precision timer, which one of them has.
const OWN_REGISTERS: u64 = 0xfed0_0000;

fn main(start: sys::Start) {
    server::ready();
    let trial = Trial { name: start.argument("name").unwrap_or("nameless") };
    match start.kind {
        StartKind::Fresh => {
            trial.uses_what_is_its_own();
            if start.argument("registers").is_some() {
                trial.copies_to_registers();
            }
            trial.tries_by_trap();
            trial.tries_by_message();
            trial.tell("port", port::read(FOREIGN_PORT, 1).map(drop));
        }
        _ => trial.say("is here again"),
    }
    loop {
        if ipc::receive(Endpoint::ANY).is_ok_and(|message| message.source.slot() == Endpoint::RS.slot()) {
            // The reply to a heartbeat. An error means that rs has died, and is ignored.
            let _ = ipc::notify(Endpoint::RS);
        }
    }
}

/// An intruder, identified by its name in the system file.
struct Trial {
    name: &'static str,
}

impl Trial {
    fn uses_what_is_its_own(&self) {
        self.tell("own port", port::read(OWN_PORT, 1).and_then(|_| port::write(OWN_PORT, 1, 0)));
        let mut buffer = [0; 1024];
        self.tell("own port, string", port::read_string(OWN_PORT, 2, &mut buffer));
        let now =
            port::read(CLOCK_PORT, 4).and_then(|low| Ok(low as u64 | (port::read(CLOCK_PORT + 4, 4)? as u64) << 32));
        let runs = now.is_ok_and(|now| now.abs_diff(sys::time::now_ns()) < 1_000_000_000);
        self.say(if runs { "clock by port runs" } else { "clock by port does not run" });
        self.tell("log by port", port::write_string(LOG_PORT, 1, b"trial: written by port\n"));
    }

    /// Registers that it says are memory are none for the kernel, which has no address for them.
    fn copies_to_registers(&self) {
        let copied = Region::memory(OWN_REGISTERS, 4096).and_then(|registers| {
            let to_itself = sys::endpoint();
            grant::lend(&[0; 8], to_itself, |id| registers.from_grant(0xf8, 8, to_itself, id, 0))?
        });
        self.tell("registers, copied to", copied);
    }

    fn tries_by_trap(&self) {
        self.tell("call", sys::time::set_real_ns(0));
        self.tell("destination", ipc::notify(Endpoint::PM));
        self.tell("line", sys::irq::set(KEYBOARD_LINE, 0, irq::REENABLE));
        self.tell("memory, copied", copy::from_physical(FOREIGN_MEMORY, &mut [0; 8]));
        self.tell("memory, mapped", Region::registers(FOREIGN_MEMORY, 4096).map(drop));
        self.tell("memory for DMA", Region::dma(1).map(drop));
        self.tell("grant", copy::from_grant(Endpoint::DS, GRANT, 0, &mut [0; 8]));
        let all = Privileges { kernel_calls: u64::MAX, ..Privileges::NONE };
        self.tell("own rights", rights::set_privileges(sys::endpoint(), &all));
        self.tell("rights of ds", rights::set_privileges(Endpoint::DS, &Privileges::NONE));
    }

    fn tries_by_message(&self) {
        let own = Endpoint::SELF.0 as u64;
        self.tell("call, by message", system::call(KernelCall::SetAlarm, [1, 0, 0, 0, 0, 0]).map(drop));
        self.tell(
            "line, by message",
            system::call(KernelCall::IrqSet, [KEYBOARD_LINE as u64, 0, 0, 0, 0, 0]).map(drop),
        );
        self.tell("memory, by message", system::from_physical(FOREIGN_MEMORY, &mut [0; 8]));
        self.tell("grant, by message", system::from_grant(Endpoint::DS, GRANT, 0, &mut [0; 8]));
        self.tell("own rights, by message", system::call(KernelCall::PrivCtl, [own, 0x40_0000, 0, 0, 0, 0]).map(drop));
        self.tell("port, by message", system::call(KernelCall::DevIo, [FOREIGN_PORT as u64, 1, 0, 0, 0, 0]).map(drop));
    }

    fn tell(&self, what: &str, result: Result<()>) {
        match result {
            Ok(()) => self.say(format_args!("{what}: done")),
            Err(error) => self.say(format_args!("{what}: {error}")),
        }
    }

    fn say(&self, what: impl core::fmt::Display) {
        sys::log!("trial: {} {what}", self.name);
    }
}
