//! Rules: the kernel stays small, and a long file says why it is one.
//!
//! Two limits hold for the kernel: one for all of it, and one for the microkernel proper, which is the kernel without its rooms, the folders
//! that a build can leave out or that only read what the boot loader left.

use super::Source;
use super::source::{code_only, test_items};

/// The kernel has fewer lines than this, without comments, blank lines and tests.
const KERNEL_LINES: usize = 10_000;
/// The microkernel proper has at most so many.
const MICROKERNEL_LINES: usize = 7_500;
const KERNEL_FOLDERS: [&str; 3] = ["kernel/boot/src/", "kernel/core/src/", "kernel/x86_64/src/"];
/// The rooms, by name.
const ROOMS: [(&str, &str); 7] = [
    ("boot", "kernel/boot/src/"),
    ("minix4rt", "kernel/core/src/rooms/minix4rt/"),
    ("port_ways", "kernel/core/src/rooms/port_ways/"),
    ("injection", "kernel/core/src/probes/injection/"),
    ("tracing", "kernel/core/src/probes/tracing/"),
    ("trace ring", "kernel/x86_64/src/trace.rs"),
    ("absent", "kernel/core/src/rooms/absent/"),
];
/// What is compiled for tests only besides what has `cfg(test)`: their own crate cannot set that for this one.
const FOR_TESTS: &str = "#[cfg(feature = \"snapshot\")]";
/// A file may have this many lines without a reason.
const FILE_LINES: usize = 500;
/// The words with which a longer file gives its reason, in its first paragraph.
const REASON: &str = "long because";

/// Finds a kernel that is too large, and long files without a reason.
pub fn problems(files: &[Source]) -> Vec<String> {
    let mut problems: Vec<String> = files.iter().filter_map(unexplained_length).collect();
    let (whole, proper) = (kernel_lines(files), microkernel_lines(files));
    if whole >= KERNEL_LINES {
        problems.push(format!(
            "kernel: {whole} lines without comments, blank lines and tests; fewer than {KERNEL_LINES} are allowed"
        ));
    }
    if proper > MICROKERNEL_LINES {
        problems.push(format!(
            "kernel: {proper} of its lines are in no room; {MICROKERNEL_LINES} are allowed for the microkernel proper"
        ));
    }
    problems
}

/// Says how large the kernel is, the microkernel proper, and each room.
pub fn summary(files: &[Source]) -> String {
    let lines = |folder: &str| lines_in(files, |path| path.starts_with(folder));
    let rooms = ROOMS.map(|(name, folder)| format!("{name} {}", lines(folder)));
    format!(
        "kernel: {} lines (fewer than {KERNEL_LINES}), {} of them microkernel (at most {MICROKERNEL_LINES}); rooms: {}",
        kernel_lines(files),
        microkernel_lines(files),
        rooms.join(", ")
    )
}

fn unexplained_length(file: &Source) -> Option<String> {
    let lines = file.text.lines().count();
    let paragraph = file.text.lines().take_while(|line| !matches!(line.trim(), "" | "//!" | "//" | "*"));
    let explained = paragraph.collect::<Vec<_>>().join(" ").contains(REASON);
    (lines > FILE_LINES && !explained).then(|| {
        format!(
            "{}: has {lines} lines; a file over {FILE_LINES} says in its first paragraph \"… is {REASON} …\"",
            file.path
        )
    })
}

/// Counts the lines of code in the kernel.
pub fn kernel_lines(files: &[Source]) -> usize {
    lines_in(files, |_| true)
}

/// Counts those that are in no room.
fn microkernel_lines(files: &[Source]) -> usize {
    lines_in(files, |path| !ROOMS.iter().any(|(_, folder)| path.starts_with(folder)))
}

/// Counts the lines of the kernel's files whose path is `wanted`.
fn lines_in(files: &[Source], wanted: impl Fn(&str) -> bool) -> usize {
    let kernel = files.iter().filter(|file| KERNEL_FOLDERS.iter().any(|folder| file.path.starts_with(folder)));
    let counted: Vec<(&str, Counted)> = kernel.map(|file| (file.path.as_str(), count(file))).collect();
    let for_tests: Vec<String> =
        counted.iter().flat_map(|(path, counted)| test_files(path, &counted.test_modules)).collect();
    let counts = |path: &str| wanted(path) && !for_tests.iter().any(|prefix| path.starts_with(prefix.as_str()));
    counted.iter().filter(|(path, _)| counts(path)).map(|(_, counted)| counted.lines).sum()
}

struct Counted {
    lines: usize,
    test_modules: Vec<String>,
}

fn count(file: &Source) -> Counted {
    if !file.path.ends_with(".rs") {
        let is_code = |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("//");
        return Counted { lines: file.text.lines().map(str::trim).filter(is_code).count(), test_modules: Vec::new() };
    }
    let items = test_items(&code_only(&file.text.replace(FOR_TESTS, "#[cfg(test)]")));
    let lines = items.without.lines().filter(|line| !line.trim().is_empty()).count();
    Counted { lines, test_modules: items.modules }
}

/// What the paths of the files of these modules of the file `path` begin with.
fn test_files(path: &str, modules: &[String]) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.trim_end_matches(".rs");
    let folder = match stem {
        "lib" | "main" | "mod" => folder.to_string(),
        _ => format!("{folder}/{stem}"),
    };
    modules.iter().flat_map(|module| [format!("{folder}/{module}.rs"), format!("{folder}/{module}/")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::source;

    #[test]
    fn comments_blank_lines_and_tests_do_not_count() {
        let text = "//! What it is\n\nfn a() {\n    b(); // c\n}\n#[cfg(test)]\nmod tests {\n    fn d() {}\n}\n";
        assert_eq!(kernel_lines(&[source("kernel/core/src/a.rs", text)]), 3);
        assert_eq!(kernel_lines(&[source("servers/pm/src/a.rs", text)]), 0);
    }

    #[test]
    fn rooms_count_for_the_kernel_but_not_for_the_microkernel() {
        let core = source("kernel/core/src/a.rs", "fn a() {}\n");
        let room = source("kernel/core/src/probes/tracing/mod.rs", "fn b() {}\nfn c() {}\n");
        let files = [core, room];
        assert_eq!((kernel_lines(&files), microkernel_lines(&files)), (3, 1));
        assert!(summary(&files).contains("tracing 2"), "{}", summary(&files));
    }

    #[test]
    fn either_limit_is_held() {
        let lines = |count: usize| "a();\n".repeat(count);
        let room = "kernel/core/src/probes/tracing/mod.rs";
        let found = |core: usize, in_room: usize| {
            let files = [source("kernel/core/src/a.rs", &lines(core)), source(room, &lines(in_room))];
            problems(&files).into_iter().filter(|problem| problem.starts_with("kernel:")).count()
        };
        assert_eq!((found(7_500, 2_499), found(7_501, 0), found(7_500, 2_500)), (0, 1, 1));
    }

    #[test]
    fn files_of_test_modules_do_not_count() {
        let root = source("kernel/core/src/lib.rs", "#[cfg(test)]\nmod model;\nmod ipc;\n");
        let model = source("kernel/core/src/model.rs", "fn a() {}\n");
        let part = source("kernel/core/src/model/part.rs", "fn a() {}\n");
        let ipc = source("kernel/core/src/ipc.rs", "fn a() {}\n");
        assert_eq!(kernel_lines(&[root, model, part, ipc]), 2);
    }

    #[test]
    fn a_long_file_needs_its_reason_in_the_first_paragraph() {
        let body = "x\n".repeat(FILE_LINES);
        assert_eq!(
            problems(&[source("abi/src/a.rs", &format!("//! A table.\n\n//! It is long because\n{body}"))]).len(),
            1
        );
        assert!(
            problems(&[source("abi/src/a.rs", &format!("//! A table. It is long because of 300 rows.\n{body}"))])
                .is_empty()
        );
        assert!(problems(&[source("abi/src/a.rs", &body)]).is_empty());
    }
}
