//! exec: loads programs into vm as images.
//!
//! An image is filled through a buffer of vfs, only where vm has no pages yet. vfs holds the images of an exec until it is committed,
//! the process ends, or another exec takes its place.

mod script;

use crate::{
    callers::permission::{self, EXECUTE, S_ISGID, S_ISUID},
    files::{
        mount::{MS_NOEXEC, MS_NOSUID},
        pages::{close_image, open_image},
        vnode::NodeRef,
    },
    keep::records::ExecRecord,
    memory::PATH_MAX,
    objects::O_RDWR,
    paths::walk::Last,
    processes::{AT_FDCWD, Process},
    state::Vfs,
};
use abi::{Endpoint, Errno, Word, vfs};
use alloc::{rc::Rc, vec, vec::Vec};
use elf::{FileRange, Program};
use sys::copy;

/// Longest path of an exec.
const PATH_BYTES: u64 = PATH_MAX as u64;

/// An executable file that may be executed.
struct Executable {
    node: NodeRef,
    canonical: Vec<u8>,
    /// The first bytes.
    head: Vec<u8>,
}

/// What pm is told when all went well.
struct Loaded {
    image: u64,
    interpreter: u64,
    flags: u64,
    ids: u64,
}

impl Vfs {
    /// `vfs::Exec`: copies the path; the rest happens in the background.
    pub fn begin_exec(&'static self, pm: Endpoint, request: &vfs::Exec) -> Result<(), Errno> {
        let process = self.processes.get(request.process)?;
        if request.bytes >= PATH_BYTES {
            return Err(Errno::ENAMETOOLONG);
        }
        let mut path = vec![0; request.bytes as usize];
        copy::from_grant(pm, request.grant, 0, &mut path)?;
        if path.last() == Some(&0) {
            path.pop();
        }
        self.close_images(&process);
        let text = self.base.store.put_text(&path)?;
        let record = ExecRecord { reported: false, text, images: [0; 2], report: [0; 4] };
        self.base.store.set_exec(process.caller.endpoint.slot(), Some(&record));
        self.run_exec(process, path);
        Ok(())
    }

    /// Finds and loads the program in the background, and reports.
    pub fn run_exec(&'static self, process: Rc<Process>, path: Vec<u8>) {
        self.base.runtime.spawn(async move {
            let result = self.exec(&process, path).await;
            if process.caller.is_gone() {
                self.close_images(&process);
                return;
            }
            let report = match result {
                Ok(loaded) => [loaded.image, loaded.interpreter, loaded.flags, loaded.ids],
                Err(error) => {
                    self.close_images(&process);
                    [Err(error).to_word(), 0, 0, 0]
                }
            };
            self.save_exec(&process, Some(report));
            self.report_exec(process.caller.endpoint, report);
            self.base.sweep();
        });
    }

    /// Preserves how far an exec has come: its images, or the report, which a successor repeats.
    fn save_exec(&self, process: &Process, report: Option<[u64; 4]>) {
        let slot = process.caller.endpoint.slot();
        let Some(mut record) = self.base.store.exec(slot) else { return };
        let images = process.exec_images.borrow();
        record.images = core::array::from_fn(|index| images.get(index).copied().unwrap_or(0));
        if let Some(report) = report {
            // Without room for the text pm gets none: the program sees a wrong path of itself.
            record.text = self.base.store.put_text(&process.exec_text.borrow()).unwrap_or_default();
            (record.reported, record.report) = (true, report);
        }
        self.base.store.set_exec(slot, Some(&record));
    }

    /// Resumes an exec of a predecessor.
    pub fn resume_exec(&'static self, process: &Rc<Process>, record: &ExecRecord) {
        let images = record.images.into_iter().filter(|image| *image != 0);
        process.exec_images.replace(images.collect());
        let text = self.base.store.text(record.text);
        if record.reported {
            process.exec_text.replace(text);
            self.report_exec(process.caller.endpoint, record.report);
        } else {
            self.close_images(process);
            self.run_exec(process.clone(), text);
        }
    }

    async fn exec(&'static self, process: &Rc<Process>, path: Vec<u8>) -> Result<Loaded, Errno> {
        self.mounted.wait().await;
        self.recovered.wait().await;
        self.give_root(process)?;
        if process.caller.record().first {
            self.open_console(process).await;
            process.caller.update(|record| record.first = false);
        }
        let mut program = self.find_program(process, path.clone()).await?;
        let mut flags = 0;
        let mut text = program.canonical.clone();
        if let Some(line) = script::parse(&program.head)? {
            program = self.find_program(process, line.interpreter.to_vec()).await?;
            if script::parse(&program.head)?.is_some() {
                return Err(Errno::ENOEXEC);
            }
            flags |= vfs::EXEC_SCRIPT;
            text = script::text(&line, &path);
        }
        let parsed = Program::parse(&program.head, program.node.size()).map_err(|_| Errno::ENOEXEC)?;
        let image = self.load(process, &program.node, &parsed).await?;
        let interpreter = match parsed.interpreter {
            Some(range) => self.load_interpreter(process, &program, range).await?,
            None => 0,
        };
        let (set_id, ids) = set_id(&program.node);
        process.exec_text.replace(text);
        Ok(Loaded { image, interpreter, flags: flags | set_id, ids })
    }

    async fn find_program(&self, process: &Process, path: Vec<u8>) -> Result<Executable, Errno> {
        let found = self.resolve(process, AT_FDCWD, path, Last::Follow).await?;
        let node = found.existing()?.clone();
        if !node.is_regular() || node.mount().has(MS_NOEXEC) {
            return Err(Errno::EACCES);
        }
        permission::check(&process.caller.credentials(), node.attributes(), EXECUTE)?;
        let head = self.base.mappings.read_into(&node, 0, elf::HEAD_BYTES).await?;
        Ok(Executable { node, canonical: found.canonical, head })
    }

    async fn load_interpreter(&self, process: &Process, program: &Executable, range: FileRange) -> Result<u64, Errno> {
        let end =
            range.offset.checked_add(range.bytes).filter(|end| *end <= program.node.size()).ok_or(Errno::ENOEXEC)?;
        let bytes = match program.head.get(range.offset as usize..end as usize) {
            Some(bytes) => bytes.to_vec(),
            None if range.bytes < PATH_BYTES => {
                self.base.mappings.read_into(&program.node, range.offset, range.bytes as usize).await?
            }
            None => return Err(Errno::ENOEXEC),
        };
        let path = elf::interpreter_path(&bytes).map_err(|_| Errno::ENOEXEC)?;
        let interpreter = self.find_program(process, path.to_vec()).await?;
        let parsed = Program::parse(&interpreter.head, interpreter.node.size()).map_err(|_| Errno::ENOEXEC)?;
        self.load(process, &interpreter.node, &parsed).await
    }

    /// Fills vm with what the segments of a program need. Returns the image, which the process holds.
    async fn load(&self, process: &Process, node: &NodeRef, program: &Program) -> Result<u64, Errno> {
        let image = open_image(node)?;
        process.exec_images.borrow_mut().push(image);
        self.save_exec(process, None);
        for segment in program.segments() {
            let start = segment.file.offset & !(abi::layout::PAGE_BYTES - 1);
            let bytes = segment.file.offset - start + segment.file.bytes;
            self.base.mappings.fill_image(node, image, start, bytes).await?;
        }
        Ok(image)
    }

    /// Closes the images of the last exec.
    pub fn close_images(&self, process: &Process) {
        for image in process.exec_images.take() {
            close_image(image);
        }
    }

    /// The first program gets the console as input, output and error output.
    async fn open_console(&'static self, process: &Rc<Process>) {
        match self.open_file(process, AT_FDCWD, b"/dev/console".to_vec(), O_RDWR, 0).await {
            Ok(console) => {
                for _ in 0..3 {
                    // The table of the first program is empty.
                    let _ = process.insert(console.clone(), false);
                }
            }
            Err(error) => sys::log!("/dev/console cannot be opened for the first program: {error}"),
        }
    }
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
