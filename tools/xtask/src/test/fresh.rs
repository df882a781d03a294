//! `./skink test fresh`: the README's two commands, in a new Debian 12 with nothing installed but git.
//!
//! debootstrap makes the tree, which is kept for the next time as it was before anything was
//! installed; the checkout's last commit is cloned into a copy of it; `run` and `test` go in there by
//! chroot. Package and crate downloads use this machine's sources and settings.

use super::{Verdict, dialogue, iso};
use crate::process::{self, tail};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const RELEASE: &str = "bookworm";
const MIRROR: &str = "http://deb.debian.org/debian";
const SECURITY: &str = "http://deb.debian.org/debian-security";
/// How long `run` may take, with everything that it installs and builds first.
const RUN_LIMIT: Duration = Duration::from_secs(1800);
const SHOWN_LINES: usize = 60;

/// Tries the set-up; fails with the end of its output.
///
/// # Errors
/// When the tree cannot be made.
pub fn run(workspace: &Workspace) -> Result<Verdict> {
    let tree = Tree::make(workspace)?;
    tree.clone_checkout(workspace)?;
    let failure = match tree.boot()? {
        None => tree.test()?,
        failure => failure,
    };
    Ok(failure.map_or_else(Verdict::passed, Verdict::failed))
}

/// A Debian tree with the file systems that programs expect mounted in it.
struct Tree {
    root: PathBuf,
    logs: PathBuf,
}

impl Tree {
    fn make(workspace: &Workspace) -> Result<Self> {
        let base = workspace.build.join("fresh-base");
        let root = workspace.build.join("fresh");
        if !base.join("usr/bin/git").exists() {
            make_base(&base)?;
        }
        unmount(&root);
        let _ = fs::remove_dir_all(&root);
        process::run(Command::new("cp").args(["-a", "-T"]).arg(&base).arg(&root))?;
        let tree = Self { root, logs: workspace.build.clone() };
        tree.mount("proc", "proc")?;
        tree.mount("sysfs", "sys")?;
        tree.bind("/dev")?;
        Ok(tree)
    }

    fn mount(&self, kind: &str, at: &str) -> Result<()> {
        process::run(Command::new("mount").args(["-t", kind, kind]).arg(self.root.join(at)))
    }

    fn bind(&self, folder: &str) -> Result<()> {
        process::run(Command::new("mount").args(["--rbind", "--make-rslave", folder]).arg(self.inside(folder)))
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Clones the last commit, and takes over how this machine reaches packages.
    fn clone_checkout(&self, workspace: &Workspace) -> Result<()> {
        process::run(
            Command::new("git")
                .args(["clone", "--quiet", "--no-hardlinks"])
                .arg(&workspace.root)
                .arg(self.inside("/root/skink")),
        )?;
        for settings in ["/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt"] {
            fs::copy(settings, self.inside(settings)).with_context(|| format!("cannot copy {settings}"))?;
        }
        Ok(())
    }

    /// `./skink run`, to the prompt and out again; what failed, if something did.
    fn boot(&self) -> Result<Option<String>> {
        let (log, file) = self.log("fresh-run.log")?;
        let talk = dialogue::converse(self.command("./skink run").stderr(file), &iso::steps(), RUN_LIMIT)?;
        if talk.failure.is_none() && talk.status.success() {
            return Ok(None);
        }
        let reason = talk.failure.unwrap_or_else(|| talk.status.to_string());
        let messages = fs::read_to_string(log)?;
        Ok(Some(format!("./skink run: {reason}\n{}\n{}", tail(&messages, SHOWN_LINES), tail(&talk.said, SHOWN_LINES))))
    }

    /// `./skink test`; what failed, if something did.
    fn test(&self) -> Result<Option<String>> {
        let (log, file) = self.log("fresh-test.log")?;
        let mut command = self.command("./skink test");
        let status = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).status();
        let status = status.context("cannot start chroot")?;
        if status.success() {
            return Ok(None);
        }
        let text = fs::read_to_string(&log)?;
        Ok(Some(format!("./skink test: {status}\n{}\nall of it is in {}", tail(&text, SHOWN_LINES), log.display())))
    }

    fn log(&self, name: &str) -> Result<(PathBuf, File)> {
        let path = self.logs.join(name);
        let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok((path, file))
    }

    /// `command` in the checkout in the tree, with nothing of our environment.
    fn command(&self, command: &str) -> Command {
        let mut chroot = Command::new("chroot");
        chroot
            .arg(&self.root)
            .args(["/usr/bin/env", "--chdir=/root/skink", "sh", "-c", command])
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .envs([("HOME", "/root"), ("CI", "true"), ("LC_ALL", "C.UTF-8")]);
        chroot
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        unmount(&self.root);
    }
}

/// Takes the mounted file systems out of the tree; there may be none.
fn unmount(root: &Path) {
    for at in ["dev", "sys", "proc"] {
        let _ = Command::new("umount").args(["-R", "-l"]).arg(root.join(at)).stderr(Stdio::null()).status();
    }
}

fn make_base(base: &Path) -> Result<()> {
    let unfinished = base.with_extension("unfinished");
    let _ = fs::remove_dir_all(&unfinished);
    process::run(
        Command::new("debootstrap")
            .args(["--variant=minbase", "--include=git,ca-certificates", RELEASE])
            .arg(&unfinished)
            .arg(MIRROR),
    )?;
    let sources = format!(
        "deb {MIRROR} {RELEASE} main\ndeb {MIRROR} {RELEASE}-updates main\ndeb {SECURITY} {RELEASE}-security main\n"
    );
    fs::write(unfinished.join("etc/apt/sources.list"), sources)?;
    if base.exists() {
        bail!("{} is in the way", base.display());
    }
    fs::rename(&unfinished, base).context("cannot keep the new Debian")
}
