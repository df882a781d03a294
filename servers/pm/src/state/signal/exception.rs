//! What an exception of the processor means to the program that caused it.

use super::frame::Trap;
use super::info::code;
use super::{SigInfo, Signal};
use abi::{Errno, kernel};

/// Vectors of x86-64 exceptions.
mod vector {
    pub const DIVIDE: u64 = 0;
    pub const DEBUG: u64 = 1;
    pub const BREAKPOINT: u64 = 3;
    pub const OVERFLOW: u64 = 4;
    pub const BOUNDS: u64 = 5;
    pub const INVALID_OPCODE: u64 = 6;
    pub const STACK: u64 = 12;
    pub const PAGE: u64 = 14;
    pub const X87: u64 = 16;
    pub const ALIGNMENT: u64 = 17;
    pub const SIMD: u64 = 19;
}

/// The signal for an exception, as Linux chooses it. Lack of memory becomes SIGKILL.
pub fn describe(exception: &kernel::Exception) -> SigInfo {
    let fault = |signal, code| SigInfo::fault(signal, code, exception.address);
    let at_instruction = |signal, code| SigInfo::fault(signal, code, exception.ip);
    match exception.vector {
        vector::DIVIDE => at_instruction(Signal::FPE, code::FPE_INTDIV),
        vector::X87 | vector::SIMD => at_instruction(Signal::FPE, code::FPE_FLTINV),
        vector::DEBUG => at_instruction(Signal::TRAP, code::TRAP_TRACE),
        vector::BREAKPOINT => SigInfo::kernel(Signal::TRAP),
        vector::OVERFLOW | vector::BOUNDS => SigInfo::kernel(Signal::SEGV),
        vector::INVALID_OPCODE => at_instruction(Signal::ILL, code::ILL_ILLOPN),
        vector::STACK => SigInfo::kernel(Signal::BUS),
        vector::ALIGNMENT => fault(Signal::BUS, code::BUS_ADRALN),
        vector::PAGE => match refusal(exception) {
            Errno::ENOMEM => SigInfo::kernel(Signal::KILL),
            Errno::EFAULT => fault(Signal::SEGV, code::SEGV_MAPERR),
            Errno::EACCES => fault(Signal::SEGV, code::SEGV_ACCERR),
            _ => fault(Signal::BUS, code::BUS_ADRERR),
        },
        _ => SigInfo::kernel(Signal::SEGV),
    }
}

/// What the signal frame tells of the exception.
pub fn trap(exception: &kernel::Exception) -> Trap {
    // vm's refusal stands where the processor's error code was; all a program may rely on is "user mode".
    const USER_MODE: u64 = 4;
    let error = if exception.vector == vector::PAGE { USER_MODE } else { exception.error };
    Trap { vector: exception.vector, error, address: exception.address }
}

fn refusal(exception: &kernel::Exception) -> Errno {
    Errno((exception.error as i64).unsigned_abs() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::Word;

    fn page_fault(refusal: Errno) -> Signal {
        let error = Err(refusal).to_word();
        describe(&kernel::Exception { vector: 14, error, ip: 1, address: 2 }).signal
    }

    #[test]
    fn page_faults_follow_the_refusal_of_vm() {
        assert_eq!(page_fault(Errno::EFAULT), Signal::SEGV);
        assert_eq!(page_fault(Errno::EIO), Signal::BUS);
        assert_eq!(page_fault(Errno::ENOMEM), Signal::KILL);
    }

    #[test]
    fn any_other_vector_has_a_signal() {
        for vector in (0..256).filter(|v| *v != 14) {
            let info = describe(&kernel::Exception { vector, error: 0, ip: 1, address: 2 });
            assert_ne!(info.signal, Signal::KILL, "vector {vector}");
        }
    }
}
