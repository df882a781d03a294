//! The trace ring (`abi::trace`), and its ways out: `GetInfo` shows its bytes, and if the machine was booted with `trace`, every record also
//! goes to port 0xe9 as it is, where the host decodes it.
//!
//! It is no field of `Hardware` so that it takes no room in the image. Who holds `Hardware` has it, too.

use crate::{hardware::Hardware, state::State, state::zeroed};
use abi::trace::{RING_RECORDS, Record};
use core::{arch::asm, mem::MaybeUninit};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// QEMU's `debugcon`.
const PORT: u16 = 0xe9;

static RING: State<MaybeUninit<TraceRing>> = zeroed();

/// The newest records, in the layout that `abi::trace` describes.
#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable)]
struct TraceRing {
    written: u64,
    is_sent: u64,
    records: [Record; RING_RECORDS],
}

/// Sends every record to the port, too, from now on.
pub fn send(hardware: &mut Hardware) {
    ring(hardware).is_sent = 1;
}

/// The ring's bytes from `offset` on.
pub fn bytes(_: &Hardware, offset: usize) -> &[u8] {
    // SAFETY: initialised with zeros; the only mutable reference borrows `Hardware`.
    unsafe { (*RING.0.get()).assume_init_ref() }.as_bytes().get(offset..).unwrap_or_default()
}

fn ring(_: &mut Hardware) -> &mut TraceRing {
    // SAFETY: initialised with zeros; all other references borrow `Hardware`, of which the caller holds the only one.
    unsafe { (*RING.0.get()).assume_init_mut() }
}

/// Keeps a record and sends it.
pub fn add(hardware: &mut Hardware, record: &Record) {
    let ring = ring(hardware);
    ring.records[ring.written as usize % RING_RECORDS] = *record;
    ring.written += 1;
    if ring.is_sent != 0 {
        // SAFETY: `rep outsb` reads exactly the record, which has no padding.
        unsafe { asm!("rep outsb", in("dx") PORT, inout("rcx") size_of::<Record>() => _, inout("rsi") record => _) };
    }
}
