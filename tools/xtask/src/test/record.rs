//! `./skink test record`: runs cases of tests/programs on Linux, in the root that the guest would have, and keeps what they print as what they
//! have to print in the guest.
//!
//! Cases with a screen run on Debian's Linux in the emulator, on the machine that Skink has; the others on this machine's Linux.

use super::Setting;
use super::case::{self, Case};
use super::scripts::{PROGRAMS, Parts, Printed, make_overlay, packages};
use crate::cli::Depth;
use crate::guest;
use crate::linux::Linux;
use crate::linux_guest::{self, Root};
use crate::process::tail;
use crate::progress::Step;
use crate::rootfs::{self, Contents, Room};
use crate::workspace::{RunFolder, Workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes the namespaces' own /proc and /dev, and runs the case as /etc/rc would: `$1` is the root.
const ENTER: &str = r#"
mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/dev/shm" || exit 125
cd "$1/root" && exec env -i PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root TERM=vt100 \
    chroot "$1" sh -c 'cd /root && sh -c "$(cat /etc/skink-exec)"'
"#;

/// How much is shown of a failure.
const SHOWN_LINES: usize = 30;

/// Writes NAME.expect of the cases whose name contains `name`, or of all. Returns 1 when one ended with another status than it has to.
///
/// # Errors
/// When there is no such case, this user is not root, or a root cannot be made.
pub fn record(workspace: &Workspace, name: Option<&str>) -> Result<u8> {
    let setting = Setting::new(workspace, Depth::Short, name.unwrap_or_default());
    let mut cases = case::find(&workspace.root, PROGRAMS, "sh")?;
    cases.retain(|case| name.is_none_or(|name| case.name.contains(name)));
    if cases.is_empty() {
        bail!("tests/{PROGRAMS} has no case with '{}' in its name", name.unwrap_or_default());
    }
    let mut wrong = 0;
    for case in &cases {
        if case.terms.screen {
            match record_in_emulator(&setting, case) {
                Ok(()) => println!("kept {}", case.name),
                Err(error) => {
                    println!("NOT KEPT {}: {error:#}", case.name);
                    wrong = 1;
                }
            }
            continue;
        }
        let status = record_one(&setting, case)?;
        let verdict = if status == i32::from(case.terms.status) { "kept" } else { "WRONG STATUS" };
        println!("{verdict} {} {status}", case.name);
        wrong |= u8::from(status != i32::from(case.terms.status));
    }
    Ok(wrong)
}

/// Runs the case and keeps what it printed. → its exit status.
fn record_one(setting: &Setting, case: &Case) -> Result<i32> {
    let folder = setting.workspace.run_folder()?;
    let root = make_root(setting, case, &folder)?;
    let _step = Step::begin(&format!("{} on this machine", case.name));
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "sh", "-c", ENTER, "sh"]);
    let output =
        unshare.arg(&root).stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot start unshare")?;
    let status = output.status.code().context("the case was killed; only root may make namespaces")?;
    fs::write(case.path.with_extension("expect"), &output.stdout)?;
    Ok(status)
}

/// Runs the case on Debian's Linux in the emulator, keeps what it printed, and makes the case's own check.
fn record_in_emulator(setting: &Setting, case: &Case) -> Result<()> {
    let bundle = setting.bundle(&case.terms.system)?;
    let work = setting.workspace.run_folder()?;
    let parts = Parts::of(setting, case, work.path())?;
    let debian = Linux::get(setting.workspace)?;
    let job = parts.job(setting)?;
    let guest = linux_guest::prepare(setting.workspace, bundle, &debian, &job, Root::Disk)?;
    let _step = Step::begin(&format!("{} on Debian's Linux", case.name));
    let printed = Printed::by(&guest)?;
    let kept = || tail(&printed.errors(), SHOWN_LINES);
    printed.check_end(case).with_context(kept)?;
    parts.check(&guest, &printed).with_context(kept)?;
    fs::write(case.path.with_extension("expect"), &printed.output).context("cannot write what it printed")
}

/// Makes a folder of the guest's root: of the image, which has owners and modes that files of the cache have not.
fn make_root(setting: &Setting, case: &Case, folder: &RunFolder) -> Result<PathBuf> {
    let bundle = setting.bundle(&case.terms.system)?;
    let overlay = make_overlay(case, &folder.join("overlay"), &setting.workspace.build.join("programs"))?;
    let packages = packages(setting, &case.terms.packages)?;
    let mut contents = Contents {
        command: Some(&case.text),
        overlays: std::slice::from_ref(&overlay),
        packages: packages.as_ref(),
        ..bundle.contents(setting.workspace)
    };
    let programs = setting.c_programs()?;
    contents.programs.extend(programs.iter().map(|program| (program.name.clone(), program.path.clone())));
    let _step = Step::begin("root of the case");
    let image = folder.join("root.img");
    rootfs::make(&contents, Room::Disk, folder.path(), &image)?;
    let root = folder.join("linux");
    fs::create_dir_all(&root)?;
    guest::dump(&image, "/", &root)?;
    make_folders(&root)?;
    Ok(root)
}

/// What the boot of the guest makes.
fn make_folders(root: &Path) -> Result<()> {
    for name in ["proc", "dev", "root"] {
        fs::create_dir_all(root.join(name))?;
    }
    // debugfs drops the sticky bit.
    let tmp = root.join("tmp");
    fs::set_permissions(&tmp, fs::Permissions::from_mode(0o1777)).context("the root has no /tmp")
}
