//! The plug-in of QEMU with which `./skink profile` counts instructions: it hands on what the emulator executes to `tools/profile`, and writes
//! down what that has recorded. With the argument `count=FILE` it counts for `./skink bench compare` instead.
//!
//! * `count`: all of the latter;
//! * `qemu`: QEMU's functions for plug-ins;
//! * `guest`: the guest's memory, and the kernel's words in it;
//! * `places`: what `./skink profile` says about the kernel;
//! * `translation`: blocks and pages, by number;
//! * this file: what QEMU calls.

mod count;
mod guest;
mod places;
mod qemu;
mod translation;

use guest::Memory;
use places::Places;
use profile::Recorder;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use translation::Translation;

/// What is known while the machine runs.
struct Session {
    places: Places,
    memory: Memory,
    translation: Translation,
    recorder: Recorder,
}

/// The session until its end. QEMU has one virtual processor here, so nobody waits for the lock.
static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// Makes the session do something, if there is one still.
fn with_session(act: impl FnOnce(&mut Session)) {
    if let Ok(mut session) = SESSION.lock()
        && let Some(session) = session.as_mut()
    {
        act(session);
    }
}

/// QEMU asks which version of its interface this is made for.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

/// QEMU has loaded the plug-in. Returns 0, or another number if an argument is missing.
///
/// # Safety
/// Called by QEMU, with `argc` strings in `argv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: qemu::Id,
    _info: *const c_void,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let arguments = (0..usize::try_from(argc).unwrap_or(0)).map(|index| {
        // SAFETY: promised by QEMU.
        unsafe { CStr::from_ptr(*argv.add(index)) }.to_string_lossy().into_owned()
    });
    let arguments: Vec<String> = arguments.collect();
    if let Some(file) = arguments.iter().find_map(|argument| argument.strip_prefix("count=")) {
        // SAFETY: `id` is QEMU's.
        unsafe { count::install(id, file.into()) };
        return 0;
    }
    let places = match Places::read(arguments.into_iter()) {
        Ok(places) => places,
        Err(error) => {
            eprintln!("skink profile: {error}");
            return 1;
        }
    };
    let session = Session {
        memory: Memory::new(&places),
        translation: Translation::default(),
        recorder: Recorder::new(places.kernel),
        places,
    };
    if let Ok(mut place) = SESSION.lock() {
        *place = Some(session);
    }
    // SAFETY: `id` is QEMU's, and the functions have the signatures that it calls.
    unsafe {
        qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu::qemu_plugin_register_atexit_cb(id, at_exit, std::ptr::null_mut());
    }
    0
}

/// QEMU has translated a block.
extern "C" fn translated(_id: qemu::Id, block: *mut qemu::Block) {
    with_session(|session| {
        // SAFETY: QEMU's block lives while this runs.
        let block = unsafe { qemu::read_block(block) };
        session.memory.learn(&block);
        let Some(number) = session.translation.number(&block) else { return };
        block.on_execution(executed, number);
        for (index, instruction) in block.instructions.iter().enumerate() {
            let places = &session.places;
            if instruction.address == places.syscall_saved {
                block.on_instruction(index, syscall_saved);
            } else if instruction.address == places.trap_saved {
                block.on_instruction(index, trap_saved);
            } else if places.switches.contains(&instruction.address) {
                block.on_instruction(index, switched);
            }
        }
    });
}

extern "C" fn executed(_processor: c_uint, number: *mut c_void) {
    with_session(|session| session.recorder.block(session.translation.blocks(), number as u32, &session.memory));
}

extern "C" fn syscall_saved(_processor: c_uint, _data: *mut c_void) {
    with_session(|session| session.recorder.syscall_saved(session.translation.blocks(), &session.memory));
    let is_over =
        SESSION.lock().is_ok_and(|session| session.as_ref().is_some_and(|session| session.recorder.is_over()));
    if is_over {
        write_down();
    }
}

extern "C" fn trap_saved(_processor: c_uint, _data: *mut c_void) {
    with_session(|session| session.recorder.trap_saved(session.translation.blocks(), &session.memory));
}

extern "C" fn switched(_processor: c_uint, _data: *mut c_void) {
    with_session(|session| session.recorder.switched());
}

extern "C" fn at_exit(_id: qemu::Id, _data: *mut c_void) {
    write_down();
}

/// Ends the session and writes what was recorded.
fn write_down() {
    let Ok(Some(session)) = SESSION.lock().map(|mut session| session.take()) else { return };
    let Session { places, translation, recorder, .. } = session;
    let (blocks, pages) = translation.into_parts();
    let recording = recorder.finish(&blocks, pages);
    let written = postcard::to_stdvec(&recording)
        .map_err(|error| error.to_string())
        .and_then(|bytes| fs::write(&places.out, bytes).map_err(|error| error.to_string()));
    if let Err(error) = written {
        let out: &PathBuf = &places.out;
        eprintln!("skink profile: cannot write {}: {error}", out.display());
    }
}
