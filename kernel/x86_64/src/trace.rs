//! The trace ring (`abi::trace`), and its way out: every record goes to port 0xe9 as it is, where the host decodes it.

use abi::trace::Record;
use core::mem::size_of;

/// QEMU's `debugcon`.
const PORT: u16 = 0xe9;
/// Records that the ring holds, for a debugger.
const RECORDS: usize = 256;

/// The newest records.
pub struct TraceRing {
    records: [Record; RECORDS],
    next: usize,
}

impl TraceRing {
    /// An empty ring.
    pub const fn new() -> Self {
        const NOTHING: Record =
            Record { tsc: 0, event: 0, label: 0, from: abi::Endpoint(0), to: abi::Endpoint(0), words: [0; 7] };
        TraceRing { records: [NOTHING; RECORDS], next: 0 }
    }

    /// Keeps a record and sends it.
    pub fn add(&mut self, record: &Record) {
        let place = &mut self.records[self.next % RECORDS];
        *place = *record;
        self.next += 1;
        let bytes: *const Record = place;
        // SAFETY: `rep outsb` reads exactly the record, which has no padding.
        unsafe {
            core::arch::asm!(
                "rep outsb",
                in("dx") PORT, inout("rcx") size_of::<Record>() => _, inout("rsi") bytes => _,
                options(nostack, preserves_flags)
            );
        }
    }
}
