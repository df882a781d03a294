//! Compiles our C programs, user/*/NAME.c, which run on Linux as they are: static, for the host's ABI. Those that use lib/c find it.

use crate::c_services::Library;
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One compiled program.
#[derive(Clone)]
pub struct CProgram {
    /// Its name, without `.c`.
    pub name: String,
    /// The executable.
    pub path: PathBuf,
}

/// Compiles the programs in all folders of user/, sorted by folder and name.
///
/// # Errors
/// When one does not compile.
pub fn compile_all(workspace: &Workspace) -> Result<Vec<CProgram>> {
    compile_in(workspace, &entries(&workspace.root.join("user"))?)
}

/// Compiles the programs in these folders of user/, sorted by name in each.
///
/// # Errors
/// When one does not compile.
pub fn compile(workspace: &Workspace, folders: &[&str]) -> Result<Vec<CProgram>> {
    let user = workspace.root.join("user");
    compile_in(workspace, &folders.iter().map(|folder| user.join(folder)).collect::<Vec<_>>())
}

/// Compiles the library once for all of them.
fn compile_in(workspace: &Workspace, folders: &[PathBuf]) -> Result<Vec<CProgram>> {
    let sources = folders.iter().map(|folder| sources_in(folder)).collect::<Result<Vec<_>>>()?.concat();
    let _alone = workspace.build_alone();
    let to = workspace.build.join("c");
    fs::create_dir_all(&to)?;
    let library = Library::build(workspace)?;
    sources.iter().map(|source| compile_one(source, &library, &to)).collect()
}

fn compile_one(source: &Path, library: &Library, to: &Path) -> Result<CProgram> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let path = to.join(&name);
    process::replace(&path, |new| {
        let mut cc = Command::new("cc");
        // Without a build id and symbols, so that the same source gives the same file.
        cc.args(["-O2", "-Wall", "-static", "-s", "-Wl,--build-id=none", "-I"]).arg(&library.include);
        cc.arg("-o").arg(new).arg(source).arg(&library.archive);
        process::run(&mut cc)
    })?;
    Ok(CProgram { name, path })
}

fn sources_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut sources = entries(folder)?;
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    Ok(sources)
}

/// Returns the entries of a folder, sorted; none if it is no folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_is_compiled_again_is_whole_all_the_time() {
        let mut workspace = Workspace::from_environment().expect("is a checkout");
        let folder = workspace.run_folder().expect("is made");
        // The process that runs this test may build into its own.
        workspace.build = folder.path().to_path_buf();
        let program = compile(&workspace, &["rtop"]).expect("compiles").remove(0).path;
        let archive = workspace.build.join("libskink/libskink.a");
        let size = |path: &Path| fs::metadata(path).map(|data| data.len()).ok();
        let sizes = (size(&program), size(&archive));
        thread::scope(|scope| {
            let again = scope.spawn(|| compile(&workspace, &["rtop"]).map(drop));
            while !again.is_finished() {
                assert_eq!((size(&program), size(&archive)), sizes);
            }
            again.join().expect("ends").expect("compiles again");
        });
    }
}
