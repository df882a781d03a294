//! Messages that the kernel sends in a thread's name (`abi::kernel`): faults, exceptions, interruptions, the end.
//!
//! The thread becomes blocked as in `SENDREC`, the message lies in `outgoing`, its registers stay as they are. Word 0
//! of the answer says how it goes on. Managers are named by slot, so that a report waits for, or is repeated to, a
//! restarted one. vm and rs have no manager: they start again in their own memory. Neighbours: `ipc` (delivers), `call`
//! (goes on with interrupted kernel calls), `life` (repeats reports to a successor), `roots` (vm and rs).

use abi::{
    Endpoint, Errno, Message, Word,
    endpoint::slot,
    kernel::{CopyFault, Exception, Exited, Fault, Interrupted, Resident},
};

use crate::{
    Machine, Node, machine,
    roots::is_root,
    thread::{Form, Then, attention, blocked},
};

/// Vector of page faults.
pub(crate) const PAGE_FAULT: u64 = 14;

impl Node {
    /// Who looks after a thread: rs for services, pm for programs.
    fn manager(&self, slot: usize) -> Endpoint {
        if self.threads[slot].endpoint.is_service() { Endpoint::RS } else { Endpoint::PM }
    }

    /// Makes a thread, which runs or is about to, send `message` to `manager` and wait for the answer.
    fn report<M: Machine>(&mut self, m: &mut M, slot: usize, message: Message, manager: Endpoint) -> Result<(), Errno> {
        let thread = &mut self.threads[slot];
        thread.form = Form::Kernel;
        thread.outgoing = message;
        match self.transmit(m, slot, manager, Then::Answer) {
            Err(Errno::EDEADSRCDST) => {
                self.wait_to_send(slot, manager, Then::Answer);
                Ok(())
            }
            result => result,
        }
    }

    /// A user-mode page fault goes to vm; what vm cannot be asked about is an exception.
    pub(crate) fn report_fault<M: Machine>(&mut self, m: &mut M, slot: usize, address: u64, access: u64) {
        let ip = self.threads[slot].frame.rip;
        let message = Fault { address, access, ip }.message();
        if slot == slot::VM || self.report(m, slot, message, Endpoint::VM).is_err() {
            self.report_exception(m, slot, PAGE_FAULT, Err(Errno::EFAULT).to_word(), address);
        }
    }

    /// The thread, which runs, is to become real-time: vm makes its memory resident, then its call is made again.
    pub(crate) fn report_resident<M: Machine>(&mut self, m: &mut M, slot: usize) -> Result<(), Errno> {
        let stack = self.threads[slot].frame.rsp;
        self.report(m, slot, Resident { stack }.message(), Endpoint::VM)
    }

    /// An exception goes to the thread's manager.
    pub(crate) fn report_exception<M: Machine>(
        &mut self,
        m: &mut M,
        slot: usize,
        vector: u64,
        error: u64,
        address: u64,
    ) {
        let ip = self.threads[slot].frame.rip;
        let message = Exception { vector, error, ip, address }.message();
        self.report_to_manager(m, slot, message);
    }

    /// The thread has called `Exit`.
    pub(crate) fn report_exit<M: Machine>(&mut self, m: &mut M, slot: usize, status: u64) {
        self.report_to_manager(m, slot, Exited { status }.message());
    }

    /// Reports what ends or suspends a thread. If its manager waits for this very thread, it waits in vain: the thread
    /// is stopped, and the manager's call to it fails.
    fn report_to_manager<M: Machine>(&mut self, m: &mut M, slot: usize, message: Message) {
        if is_root(slot) {
            return self.begin_again(m, slot, &message);
        }
        let manager = self.manager(slot);
        while self.report(m, slot, message, manager) == Err(Errno::ELOCKED) {
            self.break_chain(m, slot, manager);
        }
    }

    /// Ends the wait that leads from `manager` to `slot` at its last link, the thread that waits for `slot` itself.
    fn break_chain<M: Machine>(&mut self, m: &mut M, slot: usize, manager: Endpoint) {
        let mut link = manager.slot();
        while self.threads[link].peer.slot() != slot {
            link = self.threads[link].peer.slot();
        }
        self.fail_wait(m, link);
    }

    /// The thread was marked by `Interrupt`: pm decides how it goes on.
    pub(crate) fn report_interrupted<M: Machine>(&mut self, m: &mut M, slot: usize) {
        if self.report(m, slot, Interrupted {}.message(), Endpoint::PM).is_err() {
            self.threads[slot].attention |= attention::INTERRUPT;
            self.break_chain(m, slot, Endpoint::PM);
        }
    }

    /// The kernel call in the registers of `slot` (or the delivery of its vector-33 message) needs memory of `owner`
    /// that is not there: vm may map it, and then the call goes on. Memory that vm cannot be asked for ends it with
    /// `EFAULT`.
    pub(crate) fn report_copy_fault<M: Machine>(
        &mut self,
        m: &mut M,
        slot: usize,
        owner: usize,
        fault: machine::Fault,
    ) {
        let owner = self.threads[owner].endpoint;
        let message = CopyFault { address: fault.address, access: fault.access, owner }.message();
        let no_way = slot == slot::VM || owner == self.threads[slot::VM].endpoint;
        if no_way || self.report(m, slot, message, Endpoint::VM).is_err() {
            self.fail_call(slot, Errno::EFAULT);
        }
    }

    /// Ends the kernel call, or the delivery, that `slot` was in the middle of.
    pub(crate) fn fail_call(&mut self, slot: usize, error: Errno) {
        let thread = &mut self.threads[slot];
        thread.attention &= attention::INTERRUPT | attention::DIE;
        thread.progress = 0;
        thread.frame.set_result(Err(error));
    }

    /// The answer to a report has come, with this word 0; the thread's wait is over.
    #[cold]
    #[inline(never)]
    pub(crate) fn answered<M: Machine>(&mut self, m: &mut M, slot: usize, word: u64) {
        let answer: Result<u64, Errno> = Word::from_word(word);
        let report = self.threads[slot].outgoing;
        match (report.label, answer) {
            (Fault::LABEL, Err(_)) => {
                let Fault { address, .. } = Fault::from_message(&report);
                self.report_exception(m, slot, PAGE_FAULT, word, address);
            }
            (CopyFault::LABEL, Err(_)) => self.fail_call(slot, Errno::EFAULT),
            (Resident::LABEL, Err(error)) => self.fail_call(slot, error),
            (Resident::LABEL, Ok(_)) => {
                self.threads[slot].progress = 1;
                self.threads[slot].attention |= attention::RESUME;
            }
            (Exited::LABEL, _) => self.threads[slot].flags |= blocked::STOPPED,
            _ => {}
        }
    }
}
