//! Debian's apt with a state of its own: the machine's sources of packages and keys are read, nothing of the machine is
//! written, and no rights of root are needed.
//!
//! apt itself resolves, verifies signatures and checksums. Its messages are read in the C locale.

use super::nearest::nearest;
use crate::process::{self, tail};
use crate::progress::Step;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where the machine lists its sources of packages.
const SOURCES: [&str; 2] = ["/etc/apt/sources.list", "/etc/apt/sources.list.d"];
/// An older index is fetched again.
const MAX_INDEX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// What a Release file of Debian says of its origin; its labels begin with the same word.
const DEBIAN: &str = "Debian";
/// How much of apt's complaints is shown.
const SHOWN_LINES: usize = 8;

/// apt, in a folder of its own.
pub struct Apt {
    folder: PathBuf,
}

/// A package as apt resolved it.
#[derive(Debug, PartialEq)]
pub struct Package {
    /// Its name.
    pub name: String,
    version: String,
    architecture: String,
}

impl Package {
    /// The name of its file, as apt has it.
    pub fn file(&self) -> String {
        format!("{}_{}_{}.deb", self.name, self.version.replace(':', "%3a"), self.architecture)
    }
}

impl Apt {
    /// Makes the state in `folder`, unless it is there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn open(folder: &Path) -> Result<Self> {
        let apt = Self { folder: folder.to_path_buf() };
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part)).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        // No package is installed, so that the result does not depend on this machine's.
        fs::write(folder.join("status"), "")?;
        fs::write(folder.join("apt.conf"), configuration(folder))?;
        if !folder.join("preferences").exists() {
            fs::write(folder.join("preferences"), "")?;
        }
        Ok(apt)
    }

    /// Fetches the index unless there is one that is new enough, and returns its date.
    ///
    /// # Errors
    /// When there is no index and none can be fetched, or it has nothing of Debian.
    pub fn refresh(&self, step: &Step) -> Result<String> {
        if self.is_stale() {
            self.update(step)?;
        }
        self.index_date()
    }

    /// When the index was fetched, in seconds since 1970.
    ///
    /// # Errors
    /// When there is no index.
    pub fn index_date(&self) -> Result<String> {
        let date = fs::metadata(self.stamp())?.modified()?.duration_since(UNIX_EPOCH)?;
        Ok(date.as_secs().to_string())
    }

    /// The file whose time is when the index was fetched.
    fn stamp(&self) -> PathBuf {
        self.folder.join("fetched")
    }

    fn is_stale(&self) -> bool {
        let Ok(fetched) = fs::metadata(self.stamp()).and_then(|stamp| stamp.modified()) else { return true };
        let is_old = fetched.elapsed().is_ok_and(|age| age > MAX_INDEX_AGE);
        is_old || newest_source().is_some_and(|changed| changed > fetched)
    }

    /// Fetches the index. An older one serves where a source fails.
    ///
    /// # Errors
    /// As of `refresh`.
    pub fn update(&self, step: &Step) -> Result<()> {
        step.detail("fetching the index of Debian's packages");
        let output = self.run("apt-get", &["update"])?;
        let releases = releases(&self.text("apt-cache", &["policy"])?);
        if !releases.iter().any(Release::is_debian) {
            bail!("{}", no_debian(&output, &releases));
        }
        fs::write(self.folder.join("preferences"), preferences(&releases))?;
        if !output.status.success() {
            eprintln!("skink: not every source of packages could be fetched: {}", words(&output));
        }
        if output.status.success() || !self.stamp().exists() {
            fs::write(self.stamp(), "").context("cannot write the date of the index")?;
        }
        Ok(())
    }

    /// The packages that `requests` need, themselves included, in the order in which dpkg would unpack them.
    ///
    /// # Errors
    /// When a package is unknown or not Debian's, or packages conflict.
    pub fn resolve(&self, requests: &[String]) -> Result<Vec<Package>> {
        let output = self.run("apt-get", &with(&["--simulate", "install"], requests))?;
        if !output.status.success() {
            bail!("{}", self.explain(&output));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().filter(|line| line.starts_with("Inst ")).map(parse_package).collect()
    }

    /// Downloads the `lacking` packages of `requests` that are not in the cache.
    ///
    /// # Errors
    /// When there is no network or space, or a file is not what the index says.
    pub fn download(&self, requests: &[String], lacking: usize, step: &Step) -> Result<()> {
        let mut apt = self.command("apt-get", &with(&["--yes", "--download-only", "install"], requests));
        let complaints = self.folder.join("complaints");
        apt.stdout(Stdio::piped()).stderr(fs::File::create(&complaints)?);
        let mut apt = apt.spawn().context("cannot start apt-get")?;
        let printed = BufReader::new(apt.stdout.take().context("apt-get has no output")?);
        for line in printed.lines() {
            if let Some((number, name)) = download_progress(&line?) {
                step.detail(&format!("downloading package {number} of {lacking}: {name}"));
            }
        }
        if !apt.wait().context("cannot wait for apt-get")?.success() {
            bail!("packages cannot be downloaded: {}", tail(&fs::read_to_string(&complaints)?, SHOWN_LINES));
        }
        Ok(())
    }

    /// Where apt keeps the downloaded file `file`.
    pub fn archive(&self, file: &str) -> PathBuf {
        self.folder.join("cache/archives").join(file)
    }

    /// What kept apt from resolving, with the nearest names for one that does not exist.
    fn explain(&self, output: &Output) -> String {
        let (printed, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let named = |before| complaints.lines().find_map(|line| line.strip_prefix("E: ")?.strip_prefix(before));
        if let Some(name) = named("Unable to locate package ") {
            let known = self.text("apt-cache", &["pkgnames"]).unwrap_or_default();
            return unknown(name, &nearest(name, known.lines()));
        }
        match named("Package '").and_then(|rest| rest.strip_suffix("' has no installation candidate")) {
            Some(name) => without_candidate(name, &printed),
            None => format!("the packages cannot be put together: {}{}", unmet(&printed), words(output)),
        }
    }

    fn text(&self, tool: &str, arguments: &[&str]) -> Result<String> {
        let output = process::output(&mut self.command(tool, arguments))?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    fn run(&self, tool: &str, arguments: &[&str]) -> Result<Output> {
        match self.command(tool, arguments).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("--package needs {tool}, of Debian's package apt, which is missing")
            }
            result => result.with_context(|| format!("cannot start {tool}")),
        }
    }

    fn command(&self, tool: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(tool);
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command.arg("--config-file").arg(self.folder.join("apt.conf")).args(arguments);
        command
    }
}

fn with<'a>(arguments: &[&'a str], requests: &'a [String]) -> Vec<&'a str> {
    arguments.iter().copied().chain(requests.iter().map(String::as_str)).collect()
}

/// apt's settings, read after the machine's own, of which a proxy may be needed. What the machine runs after an update
/// is not run; preferences are not read; of the indices only the list of packages is fetched. apt's own user, to whom it turns for
/// downloads when root starts it, might not reach the build folder.
fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"#clear APT::Architectures;
#clear APT::Update;
#clear DPkg;
#clear Acquire::IndexTargets;
Dir::State "{folder}";
Dir::State::lists "lists";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
Dir::Log "{folder}";
Dir::Etc::preferences "{folder}/preferences";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Install-Recommends "false";
APT::Install-Suggests "false";
APT::Keep-Downloaded-Packages "true";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::GzipIndexes "false";
Acquire::IndexTargets::deb::Packages {{
    MetaKey "$(COMPONENT)/binary-$(ARCHITECTURE)/Packages";
    flatMetaKey "Packages";
    ShortDescription "Packages";
    Description "$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Packages";
    flatDescription "$(RELEASE) Packages";
    Optional "0";
}};
"#
    )
}

/// When the list of sources changed last.
fn newest_source() -> Option<SystemTime> {
    let folder = fs::read_dir(SOURCES[1]).into_iter().flatten().flatten().map(|entry| entry.path());
    let paths = SOURCES.iter().map(PathBuf::from).chain(folder);
    paths.filter_map(|path| fs::metadata(path).and_then(|file| file.modified()).ok()).max()
}

/// A source of packages: what its Release file says, as `apt-cache policy` prints it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Release {
    fields: Vec<String>,
}

impl Release {
    fn is_debian(&self) -> bool {
        self.fields.iter().any(|field| field.strip_prefix("o=") == Some(DEBIAN))
    }
}

/// The sources in the output of `apt-cache policy`, without the machine's own list of what is installed.
fn releases(policy: &str) -> BTreeSet<Release> {
    let lines = policy.lines().filter_map(|line| line.trim().strip_prefix("release "));
    let fields = lines.map(|line| line.split(',').map(str::to_string).collect());
    fields
        .filter(|fields: &Vec<String>| !fields.iter().any(|field| field == "a=now"))
        .map(|fields| Release { fields })
        .collect()
}

/// apt's preferences that keep packages out which are not Debian's. Debian's keep the priorities that their Release files give.
fn preferences(releases: &BTreeSet<Release>) -> String {
    let mut text = String::new();
    for release in releases.iter().filter(|release| !release.is_debian()) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "Package: *\nPin: release {}\nPin-Priority: -1\n", release.fields.join(","));
    }
    text
}

fn no_debian(output: &Output, releases: &BTreeSet<Release>) -> String {
    if !output.status.success() {
        return format!("the index of Debian's packages cannot be fetched: {}", words(output));
    }
    let others: Vec<String> = releases.iter().map(|release| release.fields.join(",")).collect();
    format!(
        "none of this machine's sources of packages is Debian's, and --package takes no others: {}",
        others.join("; ")
    )
}

/// Reads a line `Inst NAME (VERSION LABEL:RELEASE/SUITE, ... [ARCHITECTURE]) ...`.
///
/// # Errors
/// When it is another line, or the package is not Debian's.
pub fn parse_package(line: &str) -> Result<Package> {
    let strange = || format!("apt-get printed a line that is not understood: {line}");
    let (name, rest) = line.strip_prefix("Inst ").and_then(|rest| rest.split_once(" (")).with_context(strange)?;
    let (version, rest) = rest.split_once(' ').with_context(strange)?;
    let (labels, rest) = rest.split_once(" [").with_context(strange)?;
    let (architecture, _) = rest.split_once(']').with_context(strange)?;
    if !labels.split(", ").any(|label| label.starts_with(DEBIAN)) {
        bail!("the package {name} is from {labels}, which is not Debian's; --package takes no others");
    }
    Ok(Package { name: name.to_string(), version: version.to_string(), architecture: architecture.to_string() })
}

/// The number and name in a line `Get:NUMBER URI SUITE ARCHITECTURE NAME ...` of a download.
fn download_progress(line: &str) -> Option<(&str, &str)> {
    let mut words = line.strip_prefix("Get:")?.split_whitespace();
    Some((words.next()?, words.nth(3)?))
}

fn unknown(name: &str, nearest: &[&str]) -> String {
    match nearest {
        [] => format!("Debian has no package '{name}'; 'apt-cache search WORD' finds packages by what they do"),
        _ => format!("Debian has no package '{name}'; similar names: {}", nearest.join(", ")),
    }
}

/// `name` is known, but no package of Debian: others have it, or other sources.
fn without_candidate(name: &str, printed: &str) -> String {
    let heading = format!("Package {name} is a virtual package provided by:");
    let lines = printed.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| line.starts_with("  "));
    let providers: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    match providers.as_slice() {
        [] => format!("Debian's suites have no package '{name}', and --package takes no other sources"),
        _ => format!("'{name}' stands for several packages; name one of them: {}", providers.join(", ")),
    }
}

/// The lines in which apt says what does not fit, with semicolons between.
fn unmet(printed: &str) -> String {
    let lines = printed.lines().filter(|line| {
        [" : Conflicts: ", " : Depends: ", " : PreDepends: ", " : Breaks: "].iter().any(|word| line.contains(word))
    });
    lines.map(|line| format!("{}; ", line.split_whitespace().collect::<Vec<_>>().join(" "))).collect()
}

/// apt's complaints in one line.
fn words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    tail(&text, SHOWN_LINES).lines().map(|line| line.trim_start_matches("E: ")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
#[path = "apt_tests.rs"]
mod tests;
