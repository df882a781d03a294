//! What is run on both systems. Everything is run once without being reported before it is measured.

/// A script, and what it measures.
pub struct Section {
    /// Heading of its table.
    pub title: &'static str,
    /// For the guest's shell: prints lines "NAME TICKS ROUNDS".
    pub script: String,
}

impl Section {
    /// Whether its title contains this, in any case, `_` for a blank.
    pub fn has_in_title(&self, part: &str) -> bool {
        self.title.to_lowercase().contains(&part.to_lowercase().replace('_', " "))
    }
}

/// Single operations: the programs of user/bench that are no experiments of Skink's own.
const OPERATIONS: &str = "
for program in calls single attributes names directories pipe process memory thread_calls terminals copy; do
    BENCH_WARM_UP=1 $program && $program || exit
done";

/// Sizes of the thesis' grids: files and reads of each; processes and laps.
const FILES: &str = "10 100 1000";
const RING: &str = "10 100 200";

/// Whole workloads in the directory $1, each on files that the ones before it have left.
const WORKLOADS: &str = r#"
workloads() {
    mkdir -p $1/work && cd $1/work || exit
    timed untar tar xf /tree.tar || exit
    timed 'tar to a file' tar cf all.tar tree || exit
    timed 'tar to /dev/null' tar cf /dev/null tree || exit
    timed find find tree -name '*7.txt' || exit
    timed 'du -s' du -s tree || exit
    timed 'ls -lR' ls -lR tree || exit
    timed 'grep -r' grep -r rendezvous tree || exit
    timed 'cp -r' cp -r tree copy || exit
    timed 'rm -r' rm -r copy || exit
    timed 'gzip' gzip -c all.tar || exit
    timed sort sort -o sorted tree/words.txt || exit
    timed awk awk '{ n[length($1)]++ } END { for (l in n) print l, n[l] }' tree/words.txt || exit
    timed 'dd 1 MiB from /dev/zero to a new file' dd if=/dev/zero of=big bs=1M count=8 || exit
    timed 'dd 1 MiB, the same file again' dd if=/dev/zero of=big bs=1M count=8 conv=notrunc || exit
    timed 'dd 1 MiB from the file to /dev/null' dd if=big of=/dev/null bs=1M || exit
    timed 'dd 512 B from the file to /dev/null' dd if=big of=/dev/null bs=512 || exit
    timed 'dd 512 B from /dev/zero to a file' dd if=/dev/zero of=small bs=512 count=4096 || exit
    timed 'dd 512 B from /dev/zero to /dev/null' dd if=/dev/zero of=/dev/null bs=512 count=4096 || exit
    timed 'dd 1 MiB from /dev/zero to /dev/null' dd if=/dev/zero of=/dev/null bs=1M count=32 || exit
    timed 'cp of 8 MiB' cp big big.copy || exit
    timed '500 programs' sh -c 'i=0; while [ $i -lt 500 ]; do /bin/busybox true; i=$((i + 1)); done' || exit
    timed '300 subshells' sh -c 'i=0; while [ $i -lt 300 ]; do x=$(echo $i); i=$((i + 1)); done' || exit
    timed 'cat, tr and wc of 8 MiB' sh -c 'cat big | tr a b | wc' || exit
    cd / && rm -r $1/work
}
export BENCH_WARM_UP=1
workloads $1
unset BENCH_WARM_UP
workloads $1
"#;

/// All sections, in the order of the page.
pub fn all() -> Vec<Section> {
    let section = |title, script| Section { title, script };
    vec![
        section("Single operations", OPERATIONS.to_string()),
        section("Files of the thesis, ext2", files("/tmp")),
        section("Files of the thesis, tmpfs", files("/dev/shm")),
        section("Ring of the thesis", ring()),
        section("Workloads, ext2", workloads("/tmp")),
        section("Workloads, tmpfs", workloads("/dev/shm")),
    ]
}

/// What names the rows starts after the program has ended: in a pipeline its start would be measured with the first files.
fn files(directory: &str) -> String {
    let warm_up = format!("BENCH_WARM_UP=1 files {directory} $n 10");
    let run = format!("said=$(files {directory} $n $r); echo \"$said\" | sed \"s/^file_/$n files, $r reads each: /\"");
    format!("set -eo pipefail; for n in {FILES}; do {warm_up}; for r in {FILES}; do {run}; done; done")
}

fn ring() -> String {
    let run = "said=$(ring $n $k); echo \"$said\" | sed \"s/^ring_${n}_/$n processes, $k laps: /\"";
    format!("set -eo pipefail; for n in {RING}; do BENCH_WARM_UP=1 ring $n 10; for k in {FILES}; do {run}; done; done")
}

fn workloads(directory: &str) -> String {
    format!("set -- {directory}\n{WORKLOADS}")
}
