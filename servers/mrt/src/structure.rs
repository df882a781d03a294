//! Which operation has which structure: words of 64 bits, and where they go.

use abi::rt::control;

/// Where a structure goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the caller to the kernel.
    In,
    /// From the kernel to the caller.
    Out,
}

/// The structure of an operation: 0 words where there is none.
pub fn structure(operation: u64) -> (Direction, usize) {
    use Direction::{In, Out};
    match operation {
        control::SETPATTR => (In, 8),
        control::SETIATTR => (In, 7),
        control::SEMALLOC => (In, 5),
        control::GETSEMID => (In, 2),
        control::GETPATTR => (Out, 8),
        control::GETSVAL | control::GETSSTAT | control::GETPSTAT | control::GETIATTR => (Out, 7),
        control::GETISTAT => (Out, 6),
        control::GETSEMATTR => (Out, 5),
        control::GETPINT | control::GETIINT => (Out, 4),
        control::GETSEMSTAT | control::GETSEMINT | control::GETMQSTAT => (Out, 3),
        _ => (Out, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::rt;

    #[test]
    fn each_operation_has_the_length_of_its_structure() {
        let lengths = [
            (control::SETPATTR, size_of::<rt::ProcessAttributes>()),
            (control::GETPATTR, size_of::<rt::ProcessAttributes>()),
            (control::SETIATTR, size_of::<rt::IrqAttributes>()),
            (control::GETIATTR, size_of::<rt::IrqAttributes>()),
            (control::SEMALLOC, size_of::<rt::SemaphoreAttributes>()),
            (control::GETSEMATTR, size_of::<rt::SemaphoreAttributes>()),
            (control::GETSVAL, size_of::<rt::SystemValues>()),
            (control::GETSSTAT, size_of::<rt::SystemStatistics>()),
            (control::GETPSTAT, size_of::<rt::ProcessStatistics>()),
            (control::GETISTAT, size_of::<rt::IrqStatistics>()),
            (control::GETPINT, size_of::<rt::ProcessInternals>()),
            (control::GETIINT, size_of::<rt::IrqInternals>()),
            (control::GETSEMSTAT, size_of::<rt::SemaphoreStatistics>()),
            (control::GETSEMINT, size_of::<rt::SemaphoreInternals>()),
            (control::GETMQSTAT, size_of::<rt::QueueStatistics>()),
            (control::GETSEMID, 16),
            (control::RTSTOP, 0),
        ];
        for (operation, bytes) in lengths {
            assert_eq!(structure(operation).1 * 8, bytes, "operation {operation}");
        }
    }
}
