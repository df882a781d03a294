//! open and its relatives (open(2)): `open` finds the file, the process gets a descriptor of it.

use super::{
    Changes::First,
    Entry,
    call::{Call, Side},
    change, done, task,
};
use crate::{
    base::{Base, Flow},
    files::watches::flag,
    memory as user,
    objects::{O_CLOEXEC, O_CREAT, O_PATH, O_TMPFILE, O_TRUNC, O_WRONLY, OpenFile},
    open::{How, Opening, open_file, open_found, open_now, open_stopped},
    pathname,
    paths::restriction::{BENEATH, IN_ROOT},
    processes::Process,
};
use abi::{Endpoint, Errno, linux::nr};
use alloc::rc::Rc;
use core::ops::Range;

/// Bytes of the `struct open_how` that is known.
const OPEN_HOW_BYTES: u64 = 24;

pub(super) const CALLS: &[Entry] = &[
    change(nr::OPEN, First, |c| begin(c, c.here(0)?, how(c.flags(1), c.flags(2)))),
    change(nr::OPENAT, First, |c| begin(c, c.at(0)?, how(c.flags(2), c.flags(3)))),
    change(nr::OPENAT2, First, openat2),
    change(nr::CREAT, First, |c| begin(c, c.here(0)?, how(O_CREAT | O_TRUNC | O_WRONLY, c.flags(1)))),
];

fn how(flags: u32, mode: u32) -> How {
    How { flags, mode, resolve: 0 }
}

/// openat2. `E2BIG`: a longer structure says something that is not known; `EAGAIN`: RESOLVE_CACHED, because nobody knows in advance.
fn openat2(call: &Call) -> Result<Flow, Errno> {
    const RESOLVE_CACHED: u64 = 0x20;
    const RESOLVE_KNOWN: u64 = 0x3f;
    // Flags that the kernel keeps to itself are unknown, too.
    const FLAGS_KNOWN: u64 = 0o37777703;
    const BOTH: u64 = BENEATH | IN_ROOT;
    let (who, address, bytes) = (call.process.caller.endpoint, call.words[2], call.words[3]);
    if bytes < OPEN_HOW_BYTES {
        return Err(Errno::EINVAL);
    }
    check_zero(who, address, OPEN_HOW_BYTES..bytes)?;
    let [flags, mode, resolve] = user::fetch_words::<3>(who, address)?;
    let unknown = flags & !FLAGS_KNOWN != 0 || mode & !0o7777 != 0 || resolve & !RESOLVE_KNOWN != 0;
    let creates = flags as u32 & (O_CREAT | O_TMPFILE) != 0;
    if unknown || resolve & BOTH == BOTH || (mode != 0 && !creates) {
        return Err(Errno::EINVAL);
    }
    if resolve & RESOLVE_CACHED != 0 {
        return Err(Errno::EAGAIN);
    }
    begin(call, call.at(0)?, How { flags: flags as u32, mode: mode as u32, resolve })
}

/// Checks that the end of a structure is zero. `E2BIG`: it is not, or longer than a page.
fn check_zero(who: Endpoint, address: u64, range: Range<u64>) -> Result<(), Errno> {
    const PAGE: u64 = 4096;
    let mut piece = [0; 64];
    if range.end > PAGE {
        return Err(Errno::E2BIG);
    }
    for at in range.clone().step_by(piece.len()) {
        let piece = &mut piece[..(range.end - at).min(64) as usize];
        user::fetch(who, address.wrapping_add(at), piece)?;
        if piece.iter().any(|byte| *byte != 0) {
            return Err(Errno::E2BIG);
        }
    }
    Ok(())
}

/// open, openat, creat. Most files that programs open are known, and most that they create are not: then no task is needed.
#[inline]
fn begin(call: &Call, (directory, path): Side, how: How) -> Result<Flow, Errno> {
    let (base, process) = (call.base(), call.process);
    process.files().check_room(process.caller.descriptor_limit())?;
    match open_now(base, process, directory, path, how)? {
        Opening::Open(file) => done(opened(base, process, file, how)),
        opening => go_on(base, call.process(), directory, how, opening),
    }
}

/// Goes on from where opening has come to.
fn go_on(base: &'static Base, process: Rc<Process>, place: i32, how: How, opening: Opening) -> Result<Flow, Errno> {
    match opening {
        Opening::Open(file) => done(opened(base, &process, file, how)),
        Opening::New(creation) => {
            let (caller, (service, request)) = (process.caller.clone(), creation.request());
            base.ask_then(&caller, (service, request, caller.change_tag()), move |reply| {
                let opening = creation.replied(base, &process, reply);
                opening.and_then(|opening| go_on(base, process, place, how, opening))
            })
        }
        Opening::Known { node, path, created } => task(async move {
            let file = open_found(base, &process, node, how.flags, path, created).await?;
            opened(base, &process, file, how)
        }),
        Opening::Stopped(stopped) => task(async move {
            let file = open_stopped(base, &process, place, *stopped, how).await?;
            opened(base, &process, file, how)
        }),
        Opening::Unknown { path, directory } => task(async move {
            if let Some(directory) = directory {
                // It is known then, so that it is not to be created again.
                base.files().lookup(&directory, pathname::last(&path)).await?;
            }
            let file = open_file(base, &process, place, path, how).await?;
            opened(base, &process, file, how)
        }),
    }
}

/// Returns the descriptor of a file that was opened.
fn opened(base: &Base, process: &Process, file: Rc<OpenFile>, how: How) -> Result<u64, Errno> {
    if let (true, Some(node)) = (how.flags & O_PATH == 0, file.node()) {
        base.files().watches().happened(node, &file.path(), flag::OPEN);
    }
    process.insert(file, how.flags & O_CLOEXEC != 0)
}
