//! /proc over invented figures: two processes, one of them a service.

use super::*;
use crate::source::{Memory, ProcessMemory};
use abi::Endpoint;
use abi::info::KernelInfo;
use abi::pm::{IPC_SEGMENTS, IpcRecord};
use abi::vm::MapRecord;
use fs::file_system::S_IFMT;

struct Figures {
    /// Questions that are answered yet; then there is no memory.
    left: usize,
}

impl Figures {
    fn new() -> Figures {
        Figures { left: usize::MAX }
    }

    fn answer<T>(&mut self, answer: T) -> Result<T, Errno> {
        self.left = self.left.checked_sub(1).ok_or(Errno::ENOMEM)?;
        Ok(answer)
    }
}

fn record(pid: u32, name: &str, service: u32) -> ProcessRecord {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    ProcessRecord {
        endpoint: Endpoint(pid),
        pid,
        parent: 1,
        process: pid,
        group: pid,
        session: 1,
        euid: 1000,
        threads: 1,
        state: u32::from(b'S'),
        nice: -5,
        service,
        started_ns: 30_000_000_000,
        name: bytes,
        ..ProcessRecord::default()
    }
}

impl Source for Figures {
    fn process_from(&mut self, pid: u32) -> Result<Option<ProcessRecord>, Errno> {
        self.answer(match pid {
            0..=7 => Some(record(7, "sh", 0)),
            8..=40 => Some(record(40, "ext2", 1)),
            _ => None,
        })
    }
    fn thread_from(&mut self, pid: u32, tid: u32) -> Result<Option<ProcessRecord>, Errno> {
        let thread = ProcessRecord { pid: 8, policy: 1, priority: 10, effective: 50, ..record(7, "sh", 0) };
        self.answer(match (pid, tid) {
            (7, 0..=7) => Some(record(7, "sh", 0)),
            (7, 8) => Some(thread),
            _ => None,
        })
    }
    fn process_text(&mut self, pid: u32, which: ProcessText) -> Result<Vec<u8>, Errno> {
        self.answer(())?;
        match (pid, which) {
            (7, ProcessText::Arguments) => Ok(b"sh\0-l\0".to_vec()),
            (7, ProcessText::Executable) => Ok(b"/bin/busybox".to_vec()),
            _ => Err(Errno::ESRCH),
        }
    }
    fn process_memory(&mut self, _: Endpoint) -> ProcessMemory {
        ProcessMemory { size: 8192, resident: 4096, data: 4096, stack: 0 }
    }
    fn maps(&mut self, _: Endpoint, first: u64, records: &mut [MapRecord]) -> Result<usize, Errno> {
        let regions = [
            MapRecord {
                start: 0x400000,
                end: 0x401000,
                resident: 0x1000,
                inode: 12,
                device: 0xfe00,
                protection: 5,
                ..MapRecord::default()
            },
            MapRecord { start: 0x7fff0000, end: 0x7fff8000, protection: 3, kind: 2, ..MapRecord::default() },
        ];
        let Some(region) = regions.get(first as usize) else { return self.answer(0) };
        records[0] = *region;
        self.answer(1)
    }
    fn descriptor_from(&mut self, _: Endpoint, descriptor: u64) -> Result<Option<u32>, Errno> {
        self.answer([0, 1, 2, 10].into_iter().find(|&open| u64::from(open) >= descriptor))
    }
    fn open_file(&mut self, _: Endpoint, which: OpenFile) -> Result<Vec<u8>, Errno> {
        self.answer(())?;
        match which {
            OpenFile::Descriptor(10) => Ok(b"/etc/passwd".to_vec()),
            OpenFile::WorkingDirectory => Ok(b"/root".to_vec()),
            _ => Err(Errno::EBADF),
        }
    }
    fn memory(&mut self) -> Memory {
        Memory { total: 512 << 20, free: 400 << 20, cached: 8 << 20 }
    }
    fn kernel(&mut self) -> KernelInfo {
        KernelInfo { now_ns: 12_340_000_000, idle_ns: 10_000_000_000, tsc_hz: 2_596_000_000, ..KernelInfo::default() }
    }
    fn ipc_objects(&mut self, kind: u64, first: u32, records: &mut [IpcRecord]) -> Result<usize, Errno> {
        if first > 3 {
            return self.answer(0);
        }
        let head = IpcRecord { index: 3, key: 0x4d2, id: 515, mode: 0o1640, user: 1000, ..IpcRecord::default() };
        let owned = IpcRecord { group: 100, creator: 1001, creator_group: 101, ..head };
        let values = if kind == IPC_SEGMENTS {
            [10_000, 7, 8, 2, 11, 12, 13, 8192]
        } else {
            core::array::from_fn(|n| n as u64 + 1)
        };
        records[0] = IpcRecord { values, ..owned };
        self.answer(1)
    }
    fn real_time_ns(&mut self) -> u64 {
        1_795_296_659_000_000_000
    }
    fn command_line(&mut self) -> Result<Vec<u8>, Errno> {
        Ok(b"trace".to_vec())
    }
    fn mounts(&mut self) -> Result<Vec<u8>, Errno> {
        Ok(b"ext2 / ext2 rw 0 0\n".to_vec())
    }
}

struct Bytes(Vec<u8>);

impl DataSink for Bytes {
    fn put(&mut self, data: &[u8]) -> Result<(), Errno> {
        self.0.extend_from_slice(data);
        Ok(())
    }
}

struct Names(Vec<(NodeId, String)>, usize);

impl EntrySink for Names {
    fn entry(&mut self, node: NodeId, _: u64, _: u32, name: &[u8]) -> bool {
        let room = self.0.len() < self.1;
        if room {
            self.0.push((node, String::from_utf8(name.to_vec()).unwrap()));
        }
        room
    }
}

fn walk_in(proc: &mut Proc<Figures>, path: &str) -> Result<NodeId, Errno> {
    path.split('/').try_fold(TOP_NODE, |node, name| proc.lookup(node, name.as_bytes()))
}

fn walk(path: &str) -> Result<NodeId, Errno> {
    walk_in(&mut Proc::new(Figures::new()), path)
}

fn read_in(proc: &mut Proc<Figures>, path: &str) -> Result<Vec<u8>, Errno> {
    let mut bytes = Bytes(Vec::new());
    let node = walk_in(proc, path)?;
    proc.read(node, 0, 1 << 20, &mut bytes)?;
    Ok(bytes.0)
}

fn read(path: &str) -> String {
    String::from_utf8(read_in(&mut Proc::new(Figures::new()), path).unwrap()).unwrap()
}

fn link_in(proc: &mut Proc<Figures>, path: &str) -> Result<Vec<u8>, Errno> {
    let mut target = [0; 64];
    let node = walk_in(proc, path)?;
    let length = proc.read_link_for(node, 7, &mut target)?;
    Ok(target[..length].to_vec())
}

fn link(path: &str) -> Result<String, Errno> {
    Ok(String::from_utf8(link_in(&mut Proc::new(Figures::new()), path)?).unwrap())
}

fn list(path: &str, at_once: usize) -> Vec<String> {
    let node = if path.is_empty() { TOP_NODE } else { walk(path).unwrap() };
    let mut proc = Proc::new(Figures::new());
    let (mut all, mut position) = (Vec::new(), 0);
    loop {
        let mut names = Names(Vec::new(), at_once);
        position = proc.read_dir(node, position, &mut names).unwrap();
        if names.0.is_empty() {
            return all;
        }
        all.extend(names.0.into_iter().map(|(_, name)| name));
    }
}

#[test]
fn stat_has_the_fields_of_linux_in_their_places() {
    let text = read("7/stat");
    let fields: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(fields.len(), 52);
    assert_eq!(fields[..6], ["7", "(sh)", "S", "1", "7", "1"]);
    // priority, nice, threads, itrealvalue, starttime, vsize, rss
    assert_eq!(fields[17..24], ["15", "-5", "1", "0", "3000", "8192", "1"]);
}

#[test]
fn threads_have_folders_of_their_own_and_show_the_priority_that_they_run_with() {
    assert_eq!(list("7/task", 1), [".", "..", "7", "8"]);
    assert_eq!(list("7/task/8", 2), [".", "..", "comm", "stat", "status"]);
    assert_eq!(walk("7/task/8/.."), walk("7/task"));
    assert_eq!(walk("7/task/9"), Err(Errno::ENOENT));
    let text = read("7/task/8/stat");
    let fields: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(fields.len(), 52);
    assert_eq!((fields[0], fields[17], fields[39], fields[40]), ("8", "-51", "10", "1"));
    assert!(read("7/task/8/status").contains("Tgid:\t7\nNgid:\t0\nPid:\t8\n"));
    assert_eq!(read("7/task/8/comm"), "sh\n");
}

#[test]
fn a_directory_listed_in_pieces_is_complete_and_in_order() {
    let whole = list("", 100);
    assert_eq!(whole.len(), 2 + TOP.len() + 2);
    assert_eq!(whole[whole.len() - 2..], ["7", "40"]);
    for at_once in 1..4 {
        assert_eq!(list("", at_once), whole);
        assert_eq!(list("7/fd", at_once), [".", "..", "0", "1", "2", "10"]);
    }
}

#[test]
fn every_listed_file_can_be_read_or_followed() {
    for directory in ["", "7"] {
        for name in list(directory, 100) {
            if name.starts_with('.') || name.parse::<u32>().is_ok() {
                continue;
            }
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            let mut proc = Proc::new(Figures::new());
            let node = walk(&path).unwrap();
            assert_eq!(Place::of(node).unwrap().node(), node);
            let attributes = proc.attributes(node).unwrap();
            let mut bytes = Bytes(Vec::new());
            if attributes.is_symlink() {
                assert!(path == "7/root" || link(&path).is_ok(), "{path}");
            } else if !attributes.is_directory() {
                proc.read(node, 0, 1 << 20, &mut bytes).unwrap();
                assert!(!bytes.0.is_empty() || path == "7/environ", "{path}");
            }
        }
    }
}

#[test]
fn self_leads_to_the_reader() {
    assert_eq!(link("self").unwrap(), "7");
}

#[test]
fn links_lead_where_the_process_is() {
    assert_eq!(link("7/cwd").unwrap(), "/root");
    assert_eq!(link("7/exe").unwrap(), "/bin/busybox");
    assert_eq!(link("7/fd/10").unwrap(), "/etc/passwd");
    assert_eq!(link("7/fd/3"), Err(Errno::ENOENT));
}

#[test]
fn what_does_not_exist_is_not_found() {
    for path in ["8", "07", "x", "7/nothing", "-1", "99999999999"] {
        assert_eq!(walk(path), Err(Errno::ENOENT), "{path}");
    }
    assert_eq!(walk("uptime/x"), Err(Errno::ENOTDIR));
    assert_eq!(Proc::new(Figures::new()).attributes(0xff), Err(Errno::ESTALE));
}

#[test]
fn a_read_beyond_the_end_gives_nothing() {
    let mut bytes = Bytes(Vec::new());
    assert_eq!(Proc::new(Figures::new()).read(walk("uptime").unwrap(), u64::MAX, 10, &mut bytes), Ok(0));
}

#[test]
fn maps_name_file_and_stack() {
    let text = read("7/maps");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(&lines[0][..49], "00400000-00401000 r-xp 00000000 fe:00 12         ");
    assert_eq!(&lines[0][73..], "/bin/busybox");
    assert!(lines[1].starts_with("7fff0000-7fff8000 rw-p") && lines[1].ends_with(" [stack]"));
}

#[test]
fn sizes_follow_each_region() {
    let text = read("7/smaps");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], read("7/maps").lines().next().unwrap());
    assert_eq!(lines[1..5].join("|").replace(' ', ""), "Size:4kB|KernelPageSize:4kB|MMUPageSize:4kB|Rss:4kB");
    assert_eq!((lines[6], lines[9]), ("Size:                 32 kB", "Rss:                   0 kB"));
}

#[test]
fn uptime_and_memory_are_in_the_units_of_linux() {
    assert_eq!(read("uptime"), "12.34 10.00\n");
    assert!(read("meminfo").starts_with("MemTotal:         524288 kB\n"));
    assert_eq!(read("loadavg"), "0.00 0.00 0.00 0/2 40\n");
}

#[test]
fn settings_are_in_folders_of_their_own() {
    assert_eq!(read("sys/fs/lease-break-time"), "45\n");
    assert_eq!(
        (&list("sys", 100)[2..], &list("sys/fs", 1)[2..]),
        (&["fs".into()][..], &["lease-break-time".into()][..])
    );
    let mut proc = Proc::new(Figures::new());
    let [sys, folder] = ["sys", "sys/fs"].map(|path| walk(path).unwrap());
    assert_eq!((proc.lookup(folder, b".."), proc.lookup(sys, b"..")), (Ok(sys), Ok(TOP_NODE)));
    assert!([sys, folder].map(|node| proc.attributes(node).unwrap().mode) == [S_IFDIR | 0o555; 2]);
    assert_eq!(proc.attributes(walk("sys/fs/lease-break-time").unwrap()).unwrap().mode, S_IFREG | 0o444);
    for path in ["sys/x", "sys/fs/x", "fs"] {
        assert_eq!(walk(path), Err(Errno::ENOENT), "{path}");
    }
    assert_eq!(proc.read(sys, 0, 10, &mut Bytes(Vec::new())), Err(Errno::EISDIR));
    assert_eq!(walk("sys/fs/lease-break-time/x"), Err(Errno::ENOTDIR));
}

#[test]
fn maps_and_environment_are_their_owners_and_roots_when_there_is_more_than_one_user() {
    let mut proc = Proc::new(Figures::new());
    let place = |file| Place::ProcessFile(7, file);
    for file in [ProcessFile::Maps, ProcessFile::MapSizes, ProcessFile::Environment] {
        let attributes = proc.attributes(place(file).node()).unwrap();
        assert_eq!((attributes.mode & 0o777, attributes.uid), (0o400, 0), "the record has another real user");
    }
    assert_eq!(proc.attributes(Place::Process(7).node()).unwrap().uid, 1000);
}

/// Reads a file, follows a link or lists a folder, of which nothing may be left out.
fn look(proc: &mut Proc<Figures>, path: &str) -> Result<Vec<u8>, Errno> {
    let node = walk_in(proc, path)?;
    match mode_of(Place::of(node)?) & S_IFMT {
        S_IFDIR => {
            let mut names = Names(Vec::new(), usize::MAX);
            proc.read_dir(node, 0, &mut names)?;
            Ok(names.0.into_iter().flat_map(|(_, name)| name.into_bytes()).collect())
        }
        S_IFLNK => link_in(proc, path),
        _ => read_in(proc, path),
    }
}

#[test]
fn what_cannot_be_told_for_lack_of_memory_is_not_absent() {
    let process = list("7", 100).into_iter().map(|name| format!("7/{name}"));
    let others = ["7", "7/fd/10", "7/fd/3", "7/task/8", "7/task/8/stat", "loadavg", "40/exe", "self"].map(String::from);
    for path in process.chain(others) {
        let whole = look(&mut Proc::new(Figures::new()), &path);
        let questions = 40;
        let with_memory_for = |left| look(&mut Proc::new(Figures { left }), &path);
        for left in 0..questions {
            let seen = with_memory_for(left);
            assert!(seen == whole || seen == Err(Errno::ENOMEM), "{path} after {left} questions: {seen:?}");
        }
        assert_eq!(with_memory_for(questions), whole, "{path}");
    }
}

#[test]
fn system_v_objects_are_in_the_columns_of_linux() {
    assert_eq!(list("sysvipc", 2)[2..], ["msg", "sem", "shm"]);
    let line = |path| read(path).lines().nth(1).map(String::from).unwrap();
    assert_eq!(
        line("sysvipc/shm"),
        "      1234        515  1640                 10000     7     8      2  1000   100  1001   101         11         12         \
         13                  8192                     0"
    );
    assert_eq!(
        line("sysvipc/sem"),
        "      1234        515  1640          1  1000   100  1001   101          2          3"
    );
    assert_eq!(
        line("sysvipc/msg"),
        "      1234        515  1640           1          2     3     4  1000   100  1001   101          5          6          7"
    );
    for path in ["sysvipc/shm", "sysvipc/sem", "sysvipc/msg"] {
        let heading = read(path).lines().next().map(str::len);
        assert_eq!(heading, Some(line(path).len()), "{path}");
    }
    assert_eq!(walk("sysvipc/x"), Err(Errno::ENOENT));
}
