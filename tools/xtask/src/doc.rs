//! `./skink doc`: builds the book (docs/book, by mdBook) and the API pages of every crate (by rustdoc), and
//! says where they are. A dead link is an error.

use crate::process;
use crate::progress::Step;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The mdBook that is installed into the build folder where the machine has none.
const MDBOOK: &str = "0.4.52";

/// Dead links are errors; pages of private items may link to each other.
const FLAGS: &str = "-Dwarnings -Arustdoc::private_intra_doc_links -Arustdoc::redundant_explicit_links";

/// Builds both and prints where they are.
///
/// # Errors
/// When mdBook cannot be installed, or a page has a broken link.
pub fn doc(workspace: &Workspace) -> Result<u8> {
    let book = book(workspace)?;
    let api = api(workspace)?;
    println!("book  {}\nAPI   {}", book.display(), api.display());
    Ok(0)
}

fn book(workspace: &Workspace) -> Result<PathBuf> {
    let source = workspace.root.join("docs/book");
    if !source.join("SUMMARY.md").exists() {
        bail!("docs/book has no SUMMARY.md, which lists its chapters");
    }
    let mdbook = mdbook(workspace)?;
    let step = Step::begin("book");
    let folder = workspace.build.join("book");
    let work = workspace.run_folder()?;
    fs::write(work.join("book.toml"), configuration(&source)).context("cannot write book.toml")?;
    process::run(Command::new(mdbook).arg("build").arg(work.path()).arg("--dest-dir").arg(&folder))?;
    drop(step);
    Ok(folder.join("index.html"))
}

fn configuration(source: &Path) -> String {
    format!("[book]\ntitle = \"Skink\"\nlanguage = \"en\"\nsrc = {:?}\n", source.display().to_string())
}

/// The machine's mdBook, or one that is built once.
fn mdbook(workspace: &Workspace) -> Result<PathBuf> {
    let runs = |path: &Path| {
        let asked = Command::new(path).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    let root = workspace.build.join("tools");
    let own = root.join("bin/mdbook");
    if runs(&own) {
        return Ok(own);
    }
    let installed = PathBuf::from("mdbook");
    if runs(&installed) {
        return Ok(installed);
    }
    let _step = Step::begin("mdBook, once");
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "mdbook", "--locked", "--version", MDBOOK, "--no-default-features", "--features", "search"]);
    process::run(cargo.arg("--root").arg(&root)).context("cannot install mdBook")?;
    Ok(own)
}

fn api(workspace: &Workspace) -> Result<PathBuf> {
    let _step = Step::begin("API pages");
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"]);
    cargo.args(["--exclude", "kernel"]).env("RUSTDOCFLAGS", FLAGS);
    process::run(&mut cargo).context("the API pages have errors")?;
    Ok(workspace.target.join("doc/kernel_core/index.html"))
}
