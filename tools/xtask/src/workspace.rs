//! Where things are: the checkout, the build folder, the folder of one run, and the lock.

use anyhow::{Context, Result};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the name of a run's folder begins with; the process and a number follow.
const RUN_PREFIX: &str = "run-";

/// The places a command works in.
pub struct Workspace {
    /// The checkout.
    pub root: PathBuf,
    /// What `./skink` builds, besides cargo's own folder.
    pub build: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
    /// A sysroot with the bare target, where the compiler lacks it.
    pub sysroot: Option<PathBuf>,
    lock: Mutex<Option<Lock>>,
    building: Mutex<()>,
    fetching: Mutex<()>,
}

impl Workspace {
    /// Takes the places from the environment that the shell script has set, with the same defaults.
    ///
    /// # Errors
    /// When the build folder cannot be made.
    pub fn from_environment() -> Result<Self> {
        let root = match env::var_os("SKINK_ROOT") {
            Some(root) => PathBuf::from(root),
            None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?,
        };
        let build = env::var_os("SKINK_BUILD").map_or_else(|| root.join("build"), PathBuf::from);
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        fs::create_dir_all(&build).with_context(|| format!("cannot make the folder {}", build.display()))?;
        remove_left_overs(&build);
        let lock = env::var_os("SKINK_LOCK").map(|path| Lock { path: PathBuf::from(path) });
        let sysroot = env::var_os("SKINK_SYSROOT").map(PathBuf::from);
        Ok(Self {
            root,
            build,
            target,
            sysroot,
            lock: Mutex::new(lock),
            building: Mutex::new(()),
            fetching: Mutex::new(()),
        })
    }

    /// Gives the build folder back to others. Called when all that is left to do happens in a
    /// [`RunFolder`].
    pub fn release_lock(&self) {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Waits until no other thread builds; none does while the result is held.
    pub fn build_alone(&self) -> MutexGuard<'_, ()> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread fetches or unpacks Debian's packages; none does while the result is held.
    pub fn fetch_alone(&self) -> MutexGuard<'_, ()> {
        self.fetching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new folder for one run of a machine, removed when the run is over.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn run_folder(&self) -> Result<RunFolder> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = self.build.join(format!("{RUN_PREFIX}{}-{number}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(RunFolder { path })
    }
}

/// Removes the folders of runs whose process was killed.
fn remove_left_overs(build: &Path) {
    let Ok(entries) = fs::read_dir(build) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(RUN_PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // What cannot be removed now stays for the next time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The lock file of the build folder, taken by the shell script; removed when dropped.
struct Lock {
    path: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A lock that is gone already is what is wanted.
        let _ = fs::remove_file(&self.path);
    }
}

/// A folder of one run; removed with everything in it when dropped.
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of `name` in the folder.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // Left-overs of a run harm nobody; the next command tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}
