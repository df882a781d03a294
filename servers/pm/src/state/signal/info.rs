//! `siginfo_t`: why a signal was sent. pm keeps its first 48 bytes, which hold every field Linux defines; the
//! rest of the 128 bytes a program sees is zero.

use super::Signal;
use crate::state::bpf::ARCHITECTURE;

/// Size of `siginfo_t`.
pub const INFO_BYTES: usize = 128;
/// Bytes pm keeps.
pub const KEPT_BYTES: usize = 48;

/// Values of `si_code`.
pub mod code {
    #![allow(missing_docs)]
    pub const USER: i32 = 0;
    pub const KERNEL: i32 = 0x80;
    pub const TKILL: i32 = -6;
    pub const TIMER: i32 = -2;
    pub const MESSAGE: i32 = -3;
    pub const IO: i32 = -5;
    pub const CHILD_EXITED: i32 = 1;
    pub const CHILD_KILLED: i32 = 2;
    pub const CHILD_DUMPED: i32 = 3;
    pub const CHILD_TRAPPED: i32 = 4;
    pub const CHILD_STOPPED: i32 = 5;
    pub const CHILD_CONTINUED: i32 = 6;
    pub const SEGV_MAPERR: i32 = 1;
    pub const SEGV_ACCERR: i32 = 2;
    pub const BUS_ADRALN: i32 = 1;
    pub const BUS_ADRERR: i32 = 2;
    pub const FPE_INTDIV: i32 = 1;
    pub const FPE_FLTINV: i32 = 7;
    pub const ILL_ILLOPN: i32 = 2;
    pub const TRAP_TRACE: i32 = 2;
    pub const TRAP_HWBKPT: i32 = 4;
    pub const SYS_SECCOMP: i32 = 1;
}

/// What the union of a `siginfo_t` holds.
enum Layout {
    Kill,
    Queued,
    Timer,
    Poll,
    Fault,
    Child,
}

/// One `siginfo_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigInfo {
    /// The signal.
    pub signal: Signal,
    /// `si_errno`.
    pub errno: i32,
    /// `si_code`.
    pub code: i32,
    /// Bytes 16 to 47: the union.
    fields: [u64; 4],
}

impl SigInfo {
    fn new(signal: Signal, code: i32, fields: [u64; 4]) -> Self {
        SigInfo { signal, errno: 0, code, fields }
    }

    /// A standard signal for whose reason there was no memory: from nobody, as Linux would say.
    pub fn without_reason(signal: Signal) -> Self {
        SigInfo::new(signal, code::USER, [0; 4])
    }

    /// From the kernel, as Linux would say.
    pub fn kernel(signal: Signal) -> Self {
        SigInfo::new(signal, code::KERNEL, [0; 4])
    }

    /// From a process: `kill` (`code::USER`) or `tkill`.
    pub fn user(signal: Signal, code: i32, pid: u32, uid: u32) -> Self {
        SigInfo::new(signal, code, [pid as u64 | (uid as u64) << 32, 0, 0, 0])
    }

    /// An expiry of a POSIX timer.
    pub fn timer(signal: Signal, id: u32, value: u64) -> Self {
        SigInfo::new(signal, code::TIMER, [id as u64, value, 0, 0])
    }

    /// A message in a queue; `sender`: pid (low half) and user.
    pub fn message(signal: Signal, sender: u64, value: u64) -> Self {
        SigInfo::new(signal, code::MESSAGE, [sender, value, 0, 0])
    }

    /// Something happened to an open file, or its lease is to be broken (`abi::vfs::OWNER_INPUT` and so on, which are Linux's `POLL_IN` and so
    /// on). Where that code would be another reason of the same signal, it is `SI_SIGIO`.
    pub fn io(signal: Signal, reason: u32, descriptor: u32) -> Self {
        /// What Linux says of each reason, as `POLL*`.
        const BANDS: [u64; 7] = [0, 0x41, 0x304, 0x441, 0x8, 0x82, 0x18];
        const AMBIGUOUS: [Signal; 7] =
            [Signal::ILL, Signal::FPE, Signal::SEGV, Signal::BUS, Signal::TRAP, Signal::CHLD, Signal::SYS];
        let code = if AMBIGUOUS.contains(&signal) { code::IO } else { reason as i32 };
        let band = BANDS.get(reason as usize).copied().unwrap_or(u64::MAX);
        SigInfo::new(signal, code, [band, descriptor as u64, 0, 0])
    }

    /// How many expiries of its timer a signal stands for, beyond the first.
    pub fn with_overruns(self, overruns: u32) -> Self {
        let mut fields = self.fields;
        fields[0] = fields[0] as u32 as u64 | (overruns as u64) << 32;
        SigInfo { fields, ..self }
    }

    /// A fault at an address.
    pub fn fault(signal: Signal, code: i32, address: u64) -> Self {
        SigInfo::new(signal, code, [address, 0, 0, 0])
    }

    /// A filter of seccomp lets a call end in SIGSYS: the call's number, the address behind it, and the filter's data.
    pub fn filtered(number: u64, ip: u64, data: u16) -> Self {
        let fields = [ip, number as u32 as u64 | u64::from(ARCHITECTURE) << 32, 0, 0];
        SigInfo { errno: data.into(), ..SigInfo::new(Signal::SYS, code::SYS_SECCOMP, fields) }
    }

    /// It tells the end of a single step.
    pub fn is_of_step(&self) -> bool {
        (self.signal, self.code) == (Signal::TRAP, code::TRAP_TRACE)
    }

    /// A change of a child; `status` is its exit status or signal, times in clock ticks.
    pub fn child(code: i32, pid: u32, uid: u32, status: i32, user_ticks: u64) -> Self {
        SigInfo::new(Signal::CHLD, code, [pid as u64 | (uid as u64) << 32, status as u32 as u64, user_ticks, 0])
    }

    /// The same reason under another signal (a child created with a signal of its own choice).
    pub fn with_signal(self, signal: Signal) -> Self {
        SigInfo { signal, ..self }
    }

    /// What a program handed to `rt_sigqueueinfo` for `signal`.
    pub fn from_user(signal: Signal, bytes: &[u8; KEPT_BYTES]) -> Self {
        let int = |at: usize| i32::from_le_bytes(core::array::from_fn(|i| bytes[at + i]));
        let fields = core::array::from_fn(|n| u64::from_le_bytes(core::array::from_fn(|i| bytes[16 + 8 * n + i])));
        SigInfo { signal, errno: int(4), code: int(8), fields }
    }

    /// As a read of a signalfd shows it: `struct signalfd_siginfo`.
    pub fn to_signalfd_bytes(self) -> [u8; INFO_BYTES] {
        let mut bytes = [0; INFO_BYTES];
        // Of a constant length, so that each is one instruction.
        #[inline(always)]
        fn put<const LENGTH: usize>(bytes: &mut [u8; INFO_BYTES], at: usize, value: u64) {
            bytes[at..at + LENGTH].copy_from_slice(&value.to_le_bytes()[..LENGTH]);
        }
        let [first, second, third, fourth] = self.fields;
        put::<4>(&mut bytes, 0, self.signal.number() as u64);
        put::<4>(&mut bytes, 4, self.errno as u64);
        put::<4>(&mut bytes, 8, self.code as u64);
        match self.layout() {
            Layout::Kill => put::<8>(&mut bytes, 12, first),
            Layout::Queued => {
                put::<8>(&mut bytes, 12, first);
                put::<4>(&mut bytes, 44, second);
                put::<8>(&mut bytes, 48, second);
            }
            Layout::Timer => {
                put::<4>(&mut bytes, 24, first);
                put::<4>(&mut bytes, 32, first >> 32);
                put::<4>(&mut bytes, 44, second);
                put::<8>(&mut bytes, 48, second);
            }
            Layout::Poll => {
                put::<4>(&mut bytes, 28, first);
                put::<4>(&mut bytes, 20, second);
            }
            Layout::Fault => put::<8>(&mut bytes, 72, first),
            Layout::Child => {
                put::<8>(&mut bytes, 12, first);
                put::<4>(&mut bytes, 40, second);
                put::<8>(&mut bytes, 56, third);
                put::<8>(&mut bytes, 64, fourth);
            }
        }
        bytes
    }

    /// Which fields the union has: as Linux finds out by signal and code.
    fn layout(&self) -> Layout {
        const FAULTS: [Signal; 5] = [Signal::ILL, Signal::FPE, Signal::SEGV, Signal::BUS, Signal::TRAP];
        const LAST_POLL_CODE: i32 = 6;
        match self.code {
            code::TIMER => Layout::Timer,
            code::IO => Layout::Poll,
            ..0 => Layout::Queued,
            code::USER | code::KERNEL.. => Layout::Kill,
            _ if FAULTS.contains(&self.signal) => Layout::Fault,
            _ if self.signal == Signal::CHLD => Layout::Child,
            1..=LAST_POLL_CODE => Layout::Poll,
            _ => Layout::Kill,
        }
    }

    /// As programs see it.
    pub fn to_bytes(self) -> [u8; INFO_BYTES] {
        let mut bytes = [0; INFO_BYTES];
        bytes[0..4].copy_from_slice(&(self.signal.number() as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.errno.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.code.to_le_bytes());
        for (n, field) in self.fields.iter().enumerate() {
            bytes[16 + 8 * n..24 + 8 * n].copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }
}
