//! `./skink test fresh`: the README's two commands, in a new Debian 12 with nothing installed but git.
//!
//! debootstrap makes the tree, which is kept for the next time as it was before anything was
//! installed; the checkout's last commit is cloned into a copy of it; `run` and `test` go in there by
//! chroot. Package and crate downloads use this machine's sources and settings.

use super::Verdict;
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const RELEASE: &str = "bookworm";
const MIRROR: &str = "http://deb.debian.org/debian";
const SECURITY: &str = "http://deb.debian.org/debian-security";
/// What `run` gets as its terminal's input: the shell's first command leaves the machine.
const TYPED: &str = "poweroff\n";

/// Tries the set-up; fails with the end of its output.
///
/// # Errors
/// When the tree cannot be made.
pub fn run(workspace: &Workspace) -> Result<Verdict> {
    let tree = Tree::make(workspace)?;
    tree.clone_checkout(workspace)?;
    for (command, input) in [("./skink run", TYPED), ("./skink test", "")] {
        let log = tree.log(command);
        if !tree.run(command, input, &log)? {
            let text = fs::read_to_string(&log).unwrap_or_default();
            return Ok(Verdict::failed(format!(
                "{command} failed:\n{}\nall of it is in {}",
                process::tail(&text, 60),
                log.display()
            )));
        }
    }
    Ok(Verdict::passed())
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

    fn log(&self, command: &str) -> PathBuf {
        let name = command.rsplit(' ').next().unwrap_or_default();
        self.logs.join(format!("fresh-{name}.log"))
    }

    /// Runs `command` in the checkout in the tree; true when it ended well.
    fn run(&self, command: &str, input: &str, log: &Path) -> Result<bool> {
        let output = fs::File::create(log).with_context(|| format!("cannot make {}", log.display()))?;
        let mut child = Command::new("chroot")
            .arg(&self.root)
            .args(["/usr/bin/env", "--chdir=/root/skink", "sh", "-c", command])
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .envs([("HOME", "/root"), ("CI", "true"), ("LC_ALL", "C.UTF-8")])
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("cannot start chroot")?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read it is none the worse.
            let _ = stdin.write_all(input.as_bytes());
        }
        Ok(child.wait()?.success())
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
