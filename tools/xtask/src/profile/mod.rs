//! `./skink profile`: runs a command in the guest and tells where every tick of it went: in which function of which service, for whom.
//!
//! QEMU counts instructions by a plug-in (`tools/qemu_plugin`), so the guest is the one that is measured otherwise, tick for tick, and
//! nothing in it is switched on.
//!
//! * `places`: where the plug-in finds the kernel's words;
//! * `code`: from a page of instructions to the file that it comes from, and to functions;
//! * `stacks`: whole stacks, through processes, and their ticks;
//! * `flame`, `timeline`, `report`: the flame graph, the Perfetto trace, the tables.

mod code;
mod flame;
mod places;
mod report;
mod stacks;
mod timeline;

use crate::bundle::{Bundle, Root};
use crate::cli::{ProfileOptions, RAMDISK_SYSTEM};
use crate::debian::Set;
use crate::guest::{Guest, Job};
use crate::plugin;
use crate::process::tail;
use crate::progress::Step;
use crate::rootfs::BUSYBOX;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use code::Programs;
use profile::recorder::{BEGIN, END, USUAL};
use profile::recording::Recording;
use stacks::Stacks;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Lines of the console that are shown of a failure.
const SHOWN_LINES: usize = 20;
/// The files that are written.
const FOLDED: &str = "profile.folded";
const FLAME: &str = "flame.svg";
const TIMELINE: &str = "trace.json";
const REPORT: &str = "profile.txt";

/// Runs the command, writes what is known of it into a folder, and prints the tables.
///
/// # Errors
/// When the build fails, the command does not end, or a file cannot be written.
pub fn profile(workspace: &Workspace, options: &ProfileOptions) -> Result<u8> {
    let system = options.machine.system.as_deref().unwrap_or(RAMDISK_SYSTEM);
    let bundle = Bundle::build_as(workspace, system, options.machine.profile)?;
    if bundle.root() != Root::Ramdisk {
        bail!(
            "profile counts instructions, which needs a system with its root on the ramdisk; {system} has none, leave --system out"
        );
    }
    let packages = Set::get(&workspace.build, &options.machine.packages)?;
    let plugin = plugin::build(workspace)?;
    let folder = options.out.clone().unwrap_or_else(|| workspace.build.join("profile"));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let (recording, status) = record(workspace, &bundle, packages.as_ref(), &plugin, options)?;
    let step = Step::begin("symbols");
    let files = program_files(workspace, &bundle, packages.as_ref(), &options.machine.overlays)?;
    let programs = Programs::read(bundle.kernel(), &files)?;
    let stacks = Stacks::of(&recording, &programs)?;
    drop(step);
    let title = options.command.split_whitespace().collect::<Vec<_>>().join(" ");
    let report = report::text(&title, &recording, &stacks);
    fs::write(folder.join(FOLDED), stacks.folded())?;
    fs::write(folder.join(FLAME), flame::svg(&title, &stacks))?;
    fs::write(folder.join(TIMELINE), timeline::json(&recording, &stacks)?)?;
    fs::write(folder.join(REPORT), &report)?;
    print!("{report}");
    println!("\n{}: {REPORT}, {FOLDED}, {FLAME}, and {TIMELINE} for ui.perfetto.dev", folder.display());
    Ok(status)
}

/// Runs the command. Returns what was recorded, and its status.
fn record(
    workspace: &Workspace,
    bundle: &Bundle,
    packages: Option<&Set>,
    plugin: &Path,
    options: &ProfileOptions,
) -> Result<(Recording, u8)> {
    let marked =
        format!("umask {BEGIN:o}; umask {USUAL:o}\n{}\nstatus=$?; umask {END:o}; exit $status", options.command);
    let job = Job {
        icount: true,
        overlays: &options.machine.overlays,
        packages,
        memory_mib: options.machine.memory_mib,
        ..Job::new(&marked)
    };
    let mut guest = Guest::prepare(workspace, bundle, &job)?;
    let out = guest.folder.join("recording");
    let arguments = places::arguments(bundle.kernel(), options.machine.memory_mib, &out)?;
    guest.add_arguments(["-plugin".into(), format!("{},{arguments}", plugin.display()).into()]);
    workspace.release_lock();
    let pass = |bytes: &[u8]| drop(io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()));
    let pass_errors = |bytes: &[u8]| drop(io::stderr().write_all(bytes));
    let outcome = guest.run(pass, pass_errors)?;
    let Some(status) = outcome.status else {
        bail!("the machine stopped before the command ended:\n{}", tail(&outcome.console, SHOWN_LINES));
    };
    let bytes = fs::read(&out).context("QEMU's plug-in has recorded nothing")?;
    let recording: Recording = postcard::from_bytes(&bytes).context("the recording cannot be read")?;
    if recording.ticks == 0 {
        bail!("nothing was recorded: the beginning of the command was not seen");
    }
    Ok((recording, status))
}

/// The files whose instructions may have been executed in user mode: services first.
fn program_files(
    workspace: &Workspace,
    bundle: &Bundle,
    packages: Option<&Set>,
    overlays: &[PathBuf],
) -> Result<Vec<PathBuf>> {
    let services = bundle.services().iter().map(|service| bundle.with_symbols(&service.binary));
    let mut files: Vec<PathBuf> = services.collect();
    files.sort();
    files.dedup();
    files.extend(bundle.contents(workspace).programs.into_iter().map(|(_, file)| file));
    files.push(BUSYBOX.into());
    let folders = packages.into_iter().flat_map(Set::roots).chain(overlays.iter().cloned());
    for folder in folders {
        add_files(&folder, &mut files)?;
    }
    Ok(files)
}

fn add_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            add_files(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}
