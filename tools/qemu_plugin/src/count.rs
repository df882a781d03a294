//! Counts entries into the kernel and loads of page tables between the marks of a benchmark (`profile::counter`). QEMU adds by itself where a word
//! is enough, so that programs run at nearly their usual speed.

use crate::qemu::{self, Block, Id};
use profile::counter::{Counter, Counts, Event, UPPER_HALF};
use std::ffi::{c_uint, c_void};
use std::fs;
use std::path::PathBuf;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Blocks of programs that were executed, and how many of them before the last block of the kernel.
static OF_PROGRAMS: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);
static ENTRIES: AtomicU64 = AtomicU64::new(0);
static LOADS: AtomicU64 = AtomicU64::new(0);

/// The rows, and the file for them.
static COUNTER: Mutex<Option<(Counter, PathBuf)>> = Mutex::new(None);

/// Begins to count; the rows go to `out` when the machine ends.
///
/// # Safety
/// `id` is QEMU's.
pub unsafe fn install(id: Id, out: PathBuf) {
    if let Ok(mut counter) = COUNTER.lock() {
        *counter = Some((Counter::default(), out));
    }
    // SAFETY: promised by the caller; the functions have the signatures that QEMU calls.
    unsafe {
        qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu::qemu_plugin_register_atexit_cb(id, at_exit, ptr::null_mut());
    }
}

extern "C" fn translated(_id: Id, block: *mut Block) {
    // SAFETY: QEMU's block lives while this runs.
    let block = unsafe { qemu::read_block(block) };
    if block.instructions.first().is_some_and(|first| first.address >= UPPER_HALF) {
        block.on_execution(kernel_runs, 0);
    } else {
        block.count_execution(&OF_PROGRAMS);
    }
    for (index, instruction) in block.instructions.iter().enumerate() {
        match Event::of(&instruction.bytes) {
            Some(Event::LoadsPageTable) => block.count_instruction(index, &LOADS),
            Some(Event::Reads) => block.on_instruction(index, reads),
            Some(Event::Reports) => block.on_instruction(index, reports),
            None => {}
        }
    }
}

/// A block of the kernel is about to be executed. Only one processor executes, so nobody else changes these words.
extern "C" fn kernel_runs(_processor: c_uint, _number: *mut c_void) {
    let of_programs = OF_PROGRAMS.load(Relaxed);
    if SEEN.load(Relaxed) != of_programs {
        SEEN.store(of_programs, Relaxed);
        ENTRIES.store(ENTRIES.load(Relaxed) + 1, Relaxed);
    }
}

fn with_counter(act: impl FnOnce(&mut Counter)) {
    if let Ok(mut counter) = COUNTER.lock()
        && let Some((counter, _)) = counter.as_mut()
    {
        act(counter);
    }
}

extern "C" fn reads(_processor: c_uint, _data: *mut c_void) {
    let now = Counts { loads: LOADS.load(Relaxed), entries: ENTRIES.load(Relaxed) };
    with_counter(|counter| counter.reads(now));
}

extern "C" fn reports(_processor: c_uint, _data: *mut c_void) {
    with_counter(Counter::reports);
}

extern "C" fn at_exit(_id: Id, _data: *mut c_void) {
    let Ok(Some((counter, out))) = COUNTER.lock().map(|mut counter| counter.take()) else { return };
    if let Err(error) = fs::write(&out, counter.text()) {
        eprintln!("skink bench: cannot write {}: {error}", out.display());
    }
}
