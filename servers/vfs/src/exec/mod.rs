//! exec: loads programs into vm as images.
//!
//! An image is filled through a buffer of vfs, only where vm has no pages yet. vfs holds the images of an exec, and the file that nobody may
//! write to, until it is committed, the process ends, or another exec takes its place. Neighbours: `program` (finds files), `script`.

mod program;
mod script;

use crate::{
    base::Base,
    callers::permission::{S_ISGID, S_ISUID},
    events::Startup,
    files::{
        mount::MS_NOSUID,
        pages::open_image,
        vnode::{NodeRef, Running},
    },
    keep::{
        Store,
        records::{ExecRecord, NodeRecord},
    },
    memory::PATH_MAX,
    objects::O_RDWR,
    open::{How, open_file},
    pathname,
    processes::{AT_FDCWD, Place, Process, directories::Directories},
};
use abi::{Endpoint, Errno, Word, vfs};
use alloc::{rc::Rc, vec::Vec};
use elf::{FileRange, Program};
use program::{Executable, Name};
use sys::copy;
use sys::fallible::{TryVec, copied, filled};

/// Longest path of an exec.
const PATH_BYTES: u64 = PATH_MAX as u64;
/// A script's interpreter may be a script, and so on, but not so many times.
const SCRIPTS_MAX: usize = 6;

/// The report to pm of an exec that succeeded.
struct Loaded {
    image: u64,
    interpreter: u64,
    flags: u64,
    ids: u64,
}

/// Begins an exec (`vfs::Exec`): copies the path, and does the rest in the background.
pub fn begin(
    base: &'static Base,
    startup: &'static Startup,
    process: Rc<Process>,
    pm: Endpoint,
    request: &vfs::Exec,
) -> Result<(), Errno> {
    if request.bytes >= PATH_BYTES {
        return Err(Errno::ENAMETOOLONG);
    }
    let mut path = filled(0, request.bytes as usize)?;
    copy::from_grant(pm, request.grant, 0, &mut path)?;
    if path.last() == Some(&0) {
        path.pop();
    }
    process.drop_exec();
    let text = base.store().put_text(&path, process.caller.user())?;
    let name = Name { directory: request.directory, path, flags: request.flags };
    let (images, report) = ([0; 2], name.to_words());
    let record = ExecRecord { reported: false, text, images, report, program: NodeRecord::NONE };
    base.store().set_exec(process.caller.endpoint.slot(), Some(&record));
    run(base, startup, process, name);
    Ok(())
}

/// Finds and loads the program in the background, and reports.
fn run(base: &'static Base, startup: &'static Startup, process: Rc<Process>, name: Name) {
    base.runtime().spawn(async move {
        let result = exec(base, startup, &process, name).await;
        if process.caller.is_gone() {
            process.drop_exec();
            return;
        }
        let report = match result {
            Ok(loaded) => [loaded.image, loaded.interpreter, loaded.flags, loaded.ids],
            Err(error) => {
                process.drop_exec();
                [Err(error).to_word(), 0, 0, 0]
            }
        };
        save(base.store(), &process, Some(report));
        base.notices().executed(process.caller.endpoint, report);
        base.sweep();
    });
}

/// Preserves how far an exec has come: its images, or the report, which a successor repeats.
fn save(store: &Rc<Store>, process: &Process, report: Option<[u64; 4]>) {
    let slot = process.caller.endpoint.slot();
    let Some(mut record) = store.exec(slot) else { return };
    (record.images, record.program) = (process.exec_images(), process.next_program());
    if let Some(report) = report {
        // Without room for the text pm gets none: the program sees a wrong path of itself.
        record.text = store.put_text(&process.exec_text(), process.caller.user()).unwrap_or_default();
        (record.reported, record.report) = (true, report);
    }
    store.set_exec(slot, Some(&record));
}

/// Resumes an exec of a predecessor; `program`: the file that it executes, if it was found.
pub fn resume(
    base: &'static Base,
    startup: &'static Startup,
    process: &Rc<Process>,
    record: &ExecRecord,
    program: Option<NodeRef>,
) {
    record.images.into_iter().filter(|image| *image != 0).for_each(|image| process.hold_image(image));
    let text = base.store().text(record.text);
    if record.reported {
        if let Some(program) = program {
            process.set_next_program(Running::restore(program));
        }
        process.set_exec_text(text);
        base.notices().executed(process.caller.endpoint, record.report);
    } else {
        process.drop_exec();
        run(base, startup, process.clone(), Name::from_words(text, record.report));
    }
}

async fn exec(base: &'static Base, startup: &Startup, process: &Rc<Process>, name: Name) -> Result<Loaded, Errno> {
    startup.wait().await;
    start_at_root(base, process)?;
    if process.caller.record().first {
        open_console(base, process).await;
        process.caller.update(|record| record.first = false);
    }
    let shown = name.shown()?;
    let mut program = Executable::find(base, process, &name).await?;
    let mut arguments = Vec::new();
    let mut scripts = 0;
    while let Some(line) = script::parse(&program.head)? {
        if name.vanishes(process) {
            return Err(Errno::ENOENT);
        }
        arguments = line.arguments(if scripts == 0 { &shown } else { &arguments })?;
        program = Executable::find(base, process, &Name::at(line.interpreter)).await?;
        scripts += 1;
        if scripts == SCRIPTS_MAX {
            return Err(Errno::ELOOP);
        }
    }
    let parsed = Program::parse(&program.head, program.file.node.size()).map_err(|_| Errno::ENOEXEC)?;
    let image = load(base, process, &program, &parsed).await?;
    let interpreter = match parsed.interpreter {
        Some(range) => load_interpreter(base, process, &program, range).await?,
        None => 0,
    };
    let (mut flags, ids) = set_id(&program.file.node);
    let mut text = Vec::new();
    if let Some(given) = capabilities(base, &program.file.node).await? {
        flags |= vfs::EXEC_CAPABILITIES;
        text.try_extend_from_slice(&given.to_bytes())?;
    }
    text.try_extend_from_slice(pathname::known(&program.canonical).unwrap_or_default())?;
    text.try_push(0)?;
    text.try_extend_from_slice(&shown)?;
    text.try_extend_from_slice(&arguments)?;
    process.set_exec_text(text);
    process.set_next_program(program.running);
    Ok(Loaded { image, interpreter, flags, ids })
}

async fn load_interpreter(
    base: &Base,
    process: &Process,
    program: &Executable,
    range: FileRange,
) -> Result<u64, Errno> {
    let end =
        range.offset.checked_add(range.bytes).filter(|end| *end <= program.file.node.size()).ok_or(Errno::ENOEXEC)?;
    let bytes = match program.head.get(range.offset as usize..end as usize) {
        Some(bytes) => copied(bytes)?,
        None if range.bytes < PATH_BYTES => {
            base.mappings().read_into(&program.file.node, range.offset, range.bytes as usize).await?
        }
        None => return Err(Errno::ENOEXEC),
    };
    let path = elf::interpreter_path(&bytes).map_err(|_| Errno::ENOEXEC)?;
    let interpreter = Executable::find(base, process, &Name::at(copied(path)?)).await?;
    let parsed = Program::parse(&interpreter.head, interpreter.file.node.size()).map_err(|_| Errno::ENOEXEC)?;
    load(base, process, &interpreter, &parsed).await
}

/// Fills vm with what the segments of a program need. Returns the image, which the process holds.
async fn load(base: &Base, process: &Process, file: &Executable, program: &Program) -> Result<u64, Errno> {
    let node = &file.file.node;
    let image = open_image(node, &file.canonical)?;
    process.hold_image(image);
    save(base.store(), process, None);
    for segment in program.segments() {
        let start = segment.file.offset & !(abi::layout::PAGE_BYTES - 1);
        let bytes = segment.file.offset - start + segment.file.bytes;
        base.mappings().fill_image(node, image, start, bytes).await?;
    }
    Ok(image)
}

/// Gives a program that has no directories yet the root of the tree as both.
pub fn start_at_root(base: &Base, process: &Process) -> Result<(), Errno> {
    if process.directories().is_ok() {
        return Ok(());
    }
    let place = Place { node: base.files().mounts.root(process.caller.mounts())?, path: Rc::from(&b"/"[..]) };
    process.set_directories(Directories::new(base.store(), process.caller.user(), place.clone(), place, 0o022)?);
    Ok(())
}

/// The first program gets the console as input, output and error output.
#[expect(clippy::disallowed_methods, reason = "at the start")]
async fn open_console(base: &'static Base, process: &Rc<Process>) {
    match open_file(base, process, AT_FDCWD, b"/dev/console".to_vec(), How { flags: O_RDWR, mode: 0, resolve: 0 }).await
    {
        Ok(console) => {
            for _ in 0..3 {
                // The table of the first program is empty.
                let _ = process.insert(console.clone(), false);
            }
        }
        Err(error) => sys::log!("/dev/console cannot be opened for the first program: {error}"),
    }
}

/// The capabilities that a program gives.
async fn capabilities(base: &Base, node: &NodeRef) -> Result<Option<vfs::FileCapabilities>, Errno> {
    if node.mount().has(MS_NOSUID) { Ok(None) } else { base.files().capabilities(node).await }
}

/// The set-id flags of an exec event, and the ids.
fn set_id(node: &NodeRef) -> (u64, u64) {
    let mode = node.mode();
    if node.mount().has(MS_NOSUID) {
        return (0, 0);
    }
    let mut flags = 0;
    if mode & S_ISUID != 0 {
        flags |= vfs::EXEC_SETUID;
    }
    // Without the group's execute bit it does not mean a change of ids.
    if mode & S_ISGID != 0 && mode & 0o010 != 0 {
        flags |= vfs::EXEC_SETGID;
    }
    (flags, node.uid() as u64 | (node.gid() as u64) << 32)
}
