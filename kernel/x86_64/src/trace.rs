//! The trace ring (`abi::trace`), and its way out: every record goes to port 0xe9 as it is, where the host decodes it.

use abi::trace::Record;
use core::mem::size_of;
use zerocopy::{FromBytes, transmute};

/// QEMU's `debugcon`.
const PORT: u16 = 0xe9;
/// Records that the ring holds, for a debugger.
const RECORDS: usize = 256;

/// The newest records.
#[derive(FromBytes)]
pub struct TraceRing {
    records: [Record; RECORDS],
    next: usize,
}

impl TraceRing {
    /// An empty ring.
    pub const EMPTY: TraceRing = transmute!([0u8; size_of::<TraceRing>()]);

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
