//! `./skink exec`: one command in the guest, as if it ran here.

use crate::bundle::{Bundle, Root};
use crate::cli::{DEFAULT_SYSTEM, ExecOptions, RAMDISK_SYSTEM};
use crate::debian::Set;
use crate::guest::{Guest, Job, Outcome};
use crate::keys::Script;
use crate::process::tail;
use crate::run::EXIT_MACHINE_DIED;
use crate::second_line::SecondLine;
use crate::trace;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{self, Write};

/// How much of the console is shown then.
const CONSOLE_LINES: usize = 40;

/// Runs the command and returns its exit status.
///
/// # Errors
/// When the build fails, QEMU does not start or a result cannot be written.
pub fn exec(workspace: &Workspace, options: &ExecOptions) -> Result<u8> {
    let usual = if options.icount { RAMDISK_SYSTEM } else { DEFAULT_SYSTEM };
    let system = options.machine.system.as_deref().unwrap_or(usual);
    let bundle = Bundle::build_as(workspace, system, options.machine.profile)?;
    if options.icount && bundle.root() != Root::Ramdisk {
        bail!("--icount needs a system with its root on the ramdisk; {system} has none, leave --system out");
    }
    if let Some(out) = &options.out {
        fs::create_dir_all(out).with_context(|| format!("cannot make the folder {}", out.display()))?;
    }
    let mut trace_to = match &options.trace {
        Some(path) => Some(File::create(path).with_context(|| format!("cannot make {}", path.display()))?),
        None => None,
    };
    let keys = options.keys.as_deref().map(Script::read).transpose()?;
    let packages = Set::get(&workspace.build, &options.machine.packages)?;
    let guest = Guest::prepare(workspace, &bundle, &Job { packages: packages.as_ref(), keys, ..job(options) })?;
    workspace.release_lock();
    let outcome = guest.run(pass_to(io::stdout()), pass_to(io::stderr()))?;
    if let (Some(to), Some(raw)) = (&mut trace_to, guest.trace()) {
        trace::decode(raw, to)?;
    }
    if let Some(out) = &options.out {
        guest.bring_out(out)?;
    }
    Ok(status_of(&outcome))
}

fn job(options: &ExecOptions) -> Job<'_> {
    Job {
        overlays: &options.machine.overlays,
        wants_out: options.out.is_some(),
        icount: options.icount,
        tablet: options.tablet,
        devices: &options.devices,
        trace: options.trace.is_some(),
        memory_mib: options.machine.memory_mib,
        processors: options.machine.processors,
        screen: options.machine.screen,
        screenshot: options.screenshot.clone(),
        second_line: options.com2.clone().map(|command| SecondLine { command, variables: Vec::new() }),
        ..Job::new(&options.command)
    }
}

/// Passes bytes on at once. The guest runs on even if the reader has closed its end.
fn pass_to(mut to: impl Write + Send) -> impl FnMut(&[u8]) + Send {
    move |bytes| {
        let _ = to.write_all(bytes).and_then(|()| to.flush());
    }
}

fn status_of(outcome: &Outcome) -> u8 {
    outcome.status.unwrap_or_else(|| {
        eprintln!("skink: the machine stopped before the command ended; the console's last lines:");
        eprintln!("{}", tail(&outcome.console, CONSOLE_LINES));
        EXIT_MACHINE_DIED
    })
}
