//! Linux system calls: each number has a route to the service, or the part of the kernel, that implements it
//! (DESIGN.md, "The one idea", 2).
//!
//! The kernel sends the call in the program's name to whoever serves the slot now; a call that meets a restart waits.
//! Programs have no other way out. Neighbours: `ipc`, `futex`; rs fills the table.

use abi::{
    Endpoint, Errno,
    call::NATIVE,
    endpoint::{FIRST_SERVICE, SERVICE_SLOTS, slot},
    linux::{NUMBERS, nr},
};

use crate::{
    Machine, Node,
    thread::{Form, Then, attention},
};

/// Numbers that may be routed: below this.
pub(crate) const ROUTES: usize = NUMBERS;

/// `Route`: removes.
const NO_ROUTE: u64 = u64::MAX;

/// All routes: the slot plus 1; 0: none. Slot 0 is the kernel.
pub(crate) type Routes = [u8; ROUTES];

impl Node {
    /// `Route (number, slot)`. `EINVAL`: no such number or slot.
    pub(crate) fn set_route(&mut self, number: u64, slot: u64) -> Result<u64, Errno> {
        let entry = match slot {
            NO_ROUTE => 0,
            slot if slot == slot::SYSTEM as u64 => slot::SYSTEM as u8 + 1,
            slot if (FIRST_SERVICE as u64..SERVICE_SLOTS as u64).contains(&slot) => slot as u8 + 1,
            _ => return Err(Errno::EINVAL),
        };
        let route = usize::try_from(number).ok().and_then(|number| self.routes.get_mut(number));
        *route.ok_or(Errno::EINVAL)? = entry;
        Ok(0)
    }

    /// The current thread made a Linux system call.
    #[inline(always)]
    pub(crate) fn linux_call<M: Machine>(&mut self, m: &mut M, number: u64) {
        debug_assert!(number < NATIVE);
        let caller = self.current;
        self.threads[caller].linux_call = number as u32 + 1;
        let route = self.routes.get(number as usize).copied().unwrap_or(0) as usize;
        let result = match route.wrapping_sub(1) {
            service @ FIRST_SERVICE..SERVICE_SLOTS => self.send_linux_call(m, caller, service),
            slot::SYSTEM => {
                self.kernel_linux_call(m, number as u32);
                Ok(())
            }
            _ => Err(Errno::ENOSYS),
        };
        if let Err(error) = result {
            self.threads[caller].frame.set_result(Err(error));
        }
    }

    /// Programs may reach every routed service; a service only those in its bitmap.
    #[inline(always)]
    pub(crate) fn send_linux_call<M: Machine>(
        &mut self,
        m: &mut M,
        caller: usize,
        service: usize,
    ) -> Result<(), Errno> {
        let to = Endpoint::current(service);
        let thread = &mut self.threads[caller];
        thread.form = Form::Linux;
        if thread.endpoint.is_service() {
            self.may_send(caller, to)?;
        }
        match self.transmit(m, caller, to, Then::Answer) {
            Err(Errno::EDEADSRCDST) => Err(Errno::EIO),
            Err(Errno::ELOCKED) => Err(Errno::EDEADLK),
            result => result,
        }
    }

    /// A Linux call that the kernel implements, by the current thread.
    #[inline(never)]
    pub(crate) fn kernel_linux_call<M: Machine>(&mut self, m: &mut M, number: u32) {
        let caller = self.current;
        let [w0, w1, w2, w3, w4, w5, _] = self.threads[caller].frame.words();
        let result = match number {
            nr::SCHED_YIELD => {
                self.threads[caller].frame.rax = 0;
                self.yield_current(m);
                return;
            }
            nr::FUTEX => self.futex(m, [w0, w1, w2, w3, w4, w5]),
            nr::CLOCK_GETTIME => self.clock_gettime(m, w0, w1),
            nr::CLOCK_NANOSLEEP => self.clock_nanosleep(m, [w0, w1, w2]),
            nr::GETCPU => self.getcpu(m, w0, w1),
            _ => Err(Errno::ENOSYS.into()),
        };
        self.finish(m, caller, attention::RESUME, result);
    }

    /// `getcpu (address of cpu, address of node)`: both 0, where wanted.
    fn getcpu<M: Machine>(&mut self, m: &mut M, cpu: u64, node: u64) -> Result<u64, crate::call::Stop> {
        for address in [cpu, node] {
            if address != 0 {
                self.write_own(m, address, &0u32.to_le_bytes())?;
            }
        }
        Ok(0)
    }
}
