//! /proc over invented figures: two processes, one of them a service. The file is long because each kind of file has its test.

use super::*;
use crate::source::{FileUsage, Memory, ProcessMemory, Screen};
use abi::Endpoint;
use abi::info::KernelInfo;
use abi::pm::{IPC_SEGMENTS, IpcRecord};
use abi::vm::MapRecord;
use core::fmt;
use fs::file_system::S_IFMT;

const TOP_NODE: NodeId = 1;
const SYS: Entries = Entries::new(&[crate::system::SYSTEM, crate::graphics::GRAPHICS]);

struct Figures {
    /// Questions that are answered yet; then there is no memory.
    left: usize,
    /// What further questions fail with.
    error: Errno,
    host: Vec<u8>,
    pid_max: u64,
    has_screen: bool,
}

fn proc_over(figures: Figures) -> Tree<Figures> {
    Tree::of_processes(figures, crate::PROC, 0)
}

impl Figures {
    fn new() -> Figures {
        Figures::with_memory_for(usize::MAX)
    }

    fn with_memory_for(left: usize) -> Figures {
        Figures { left, error: Errno::ENOMEM, host: b"skink".to_vec(), pid_max: 32768, has_screen: true }
    }

    fn line(&mut self, text: &mut Text, line: &str) -> fmt::Result {
        self.answer(()).map_err(|error| text.failed(error))?;
        writeln!(text, "{line}")
    }

    fn answer<T>(&mut self, answer: T) -> Result<T, Errno> {
        self.left = self.left.checked_sub(1).ok_or(self.error)?;
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
        let thread = ProcessRecord {
            pid: 8,
            endpoint: Endpoint(8),
            policy: 1,
            priority: 10,
            effective: 50,
            seccomp: 2,
            filters: 3,
            ..record(7, "sh", 0)
        };
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
            (7, ProcessText::Limits) => Ok([8u64.to_le_bytes(), u64::MAX.to_le_bytes()].concat()),
            (7, ProcessText::Executable) => Ok(b"/bin/busybox".to_vec()),
            (7, ProcessText::UserMap) => Ok([0u32, 0, u32::MAX].map(u32::to_le_bytes).concat()),
            (7, ProcessText::GroupMap) => Ok([0u32, 100, 1].map(u32::to_le_bytes).concat()),
            (7, ProcessText::Setgroups) => Ok(b"deny".to_vec()),
            _ => Err(Errno::ESRCH),
        }
    }
    fn read_memory(&mut self, _: Endpoint, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let length = (0x401000u64.saturating_sub(address) as usize).min(into.len());
        if address < 0x400000 || length == 0 {
            return Err(Errno::EIO);
        }
        into[..length].fill(address as u8);
        Ok(length)
    }
    fn write_memory(&mut self, _: Endpoint, address: u64, _: &[u8]) -> Result<(), Errno> {
        if address < 0x400000 { Err(Errno::EIO) } else { Ok(()) }
    }
    fn process_memory(&mut self, _: Endpoint) -> ProcessMemory {
        ProcessMemory { size: 8192, resident: 4096, data: 4096, stack: 0, faults: 7, peak: 12288 }
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
            MapRecord { start: 0x7fffa000, end: 0x7fffb000, protection: 3, ..MapRecord::default() },
        ];
        let Some(region) = regions.get(first as usize) else { return self.answer(0) };
        records[0] = *region;
        self.answer(1)
    }
    fn mapped_name(&mut self, _: Endpoint, address: u64) -> Result<Vec<u8>, Errno> {
        self.answer(())?;
        if address == 0x400000 { Ok(b"/lib/libc.so".to_vec()) } else { Err(Errno::ENOENT) }
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
    fn descriptor_access(&mut self, _: Endpoint, descriptor: u32) -> Result<u64, Errno> {
        self.answer([1, 2, 3].get(descriptor as usize).copied().unwrap_or(0))
    }
    fn memory(&mut self) -> Memory {
        Memory { total: 512 << 20, free: 400 << 20, cached: 8 << 20 }
    }
    fn kernel(&mut self) -> KernelInfo {
        KernelInfo { now_ns: 12_340_000_000, idle_ns: 10_000_000_000, tsc_hz: 2_596_000_000, ..KernelInfo::default() }
    }
    fn m3ipc_text(&mut self, what: u64, container: u64) -> Result<Vec<u8>, Errno> {
        self.answer(())?;
        let exists = what < abi::m3ipc::TEXT_CONTAINER || [0, 31].contains(&container);
        exists.then(|| format!("text {what} of {container}\n").into_bytes()).ok_or(Errno::ESRCH)
    }
    fn m3ipc_containers(&mut self) -> Result<u32, Errno> {
        self.answer(1 | 1 << 31)
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
    fn command_line(&mut self, text: &mut Text) -> fmt::Result {
        self.line(text, "trace")
    }
    fn mounts(&mut self, _: Endpoint, text: &mut Text) -> fmt::Result {
        self.line(text, "ext2 / ext2 rw 0 0")
    }
    fn mount_info(&mut self, _: Endpoint, text: &mut Text) -> fmt::Result {
        self.line(text, "1 0 254:0 / / rw - ext2 /dev/vda rw")
    }
    fn locks(&mut self, text: &mut Text) -> fmt::Result {
        self.line(text, "1: POSIX  ADVISORY  WRITE 7 fe:00:12 0 EOF")
    }
    fn partitions(&mut self, text: &mut Text) -> fmt::Result {
        text.write_str("major minor  #blocks  name\n\n")
    }

    fn sockets(&mut self, text: &mut Text) -> fmt::Result {
        self.line(text, "0000000000000000: 00000002 00000000 00010000 0001 01    12 /tmp/s")
    }
    fn descriptor_info(&mut self, _: Endpoint, descriptor: u32) -> Result<Vec<u8>, Errno> {
        self.answer(())?;
        if descriptor == 10 { Ok(b"pos:\t5\n".to_vec()) } else { Err(Errno::EBADF) }
    }
    fn process_files(&mut self, _: Endpoint) -> Option<(u64, u64)> {
        Some((0o22, 64))
    }
    fn file_usage(&mut self) -> FileUsage {
        FileUsage {
            files: 3,
            files_max: 65536,
            nodes: 9,
            user_pipe_bytes: 8 << 20,
            user_interests: 100,
            aio_requests: 5,
        }
    }
    fn machine_name(&mut self, which: u64) -> Result<Vec<u8>, Errno> {
        let name = if which == 0 { self.host.clone() } else { b"(none)".to_vec() };
        self.answer(name)
    }
    fn set_machine_name(&mut self, which: u64, name: &[u8]) -> Result<(), Errno> {
        assert_eq!(which, 0);
        self.host = name.to_vec();
        Ok(())
    }
    fn set_id_map(&mut self, pid: u32, which: ProcessText, text: &[u8], writer: Caller) -> Result<(), Errno> {
        assert_eq!((pid, which), (7, ProcessText::UserMap));
        if text == b"0 1000 1\n" && writer.uid == 1000 { Ok(()) } else { Err(Errno::EPERM) }
    }
    fn set_oom_adjust(&mut self, pid: u32, value: i32, is_old: bool, writer: Caller) -> Result<(), Errno> {
        assert_eq!((pid, value, is_old), (7, 411, true));
        if writer.uid == 1000 { Ok(()) } else { Err(Errno::EACCES) }
    }
    fn set_name(&mut self, tid: u32, name: &[u8]) -> Result<(), Errno> {
        if tid == 7 && name == b"sh" { Ok(()) } else { Err(Errno::ESRCH) }
    }
    fn setting(&mut self, what: u64) -> u64 {
        [2, self.pid_max][what as usize]
    }
    fn set_setting(&mut self, what: u64, value: u64) -> Result<(), Errno> {
        assert_eq!(what, 1);
        self.pid_max = value;
        if value > 300 { Ok(()) } else { Err(Errno::EINVAL) }
    }
    fn loads(&mut self) -> [u64; 3] {
        [2048, 1024, 3 * 2048 + 20]
    }
    fn screen(&mut self) -> Result<Screen, Errno> {
        if !self.has_screen {
            return Err(Errno::ENODEV);
        }
        let (size, whole, place) = ((1280, 800), (1280, 1600), (0, 800));
        self.answer(Screen { depth: 32, rotation: 0, size, whole, place, name: *b"bochs\0\0\0\0\0\0\0\0\0\0\0" })
    }
    fn change_screen(&mut self, what: u64, value: u64) -> Result<(), Errno> {
        if (what, value) == (CHANGE_ROTATION, 1) { Ok(()) } else { Err(Errno::EINVAL) }
    }
    fn text_rotation(&mut self) -> Result<u64, Errno> {
        self.answer(3)
    }
    fn turn_text(&mut self, quarters: u64) -> Result<(), Errno> {
        if quarters < 4 { Ok(()) } else { Err(Errno::EINVAL) }
    }
    fn identity(&mut self) -> (u128, u128) {
        (u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef)
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

fn walk_in(proc: &mut Tree<Figures>, path: &str) -> Result<NodeId, Errno> {
    path.split('/').try_fold(TOP_NODE, |node, name| proc.lookup(node, name.as_bytes()))
}

fn walk(path: &str) -> Result<NodeId, Errno> {
    walk_in(&mut proc_over(Figures::new()), path)
}

fn read_in(proc: &mut Tree<Figures>, path: &str) -> Result<Vec<u8>, Errno> {
    let mut bytes = Bytes(Vec::new());
    let node = walk_in(proc, path)?;
    proc.read(node, 0, 1 << 20, &mut bytes)?;
    Ok(bytes.0)
}

fn read(path: &str) -> String {
    String::from_utf8(read_in(&mut proc_over(Figures::new()), path).unwrap()).unwrap()
}

fn link_in(proc: &mut Tree<Figures>, path: &str) -> Result<Vec<u8>, Errno> {
    let mut target = [0; 64];
    let node = walk_in(proc, path)?;
    let length = proc.read_link_for(node, Reader { pid: 7, thread: Endpoint(8) }, &mut target)?;
    Ok(target[..length].to_vec())
}

fn link(path: &str) -> Result<String, Errno> {
    Ok(String::from_utf8(link_in(&mut proc_over(Figures::new()), path)?).unwrap())
}

fn list(path: &str, at_once: usize) -> Vec<String> {
    let node = if path.is_empty() { TOP_NODE } else { walk(path).unwrap() };
    let mut proc = proc_over(Figures::new());
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
    let (process, thread) = (list("7", 3), list("7/task/8", 2));
    let of_one = |own: &[String], other: &[String]| -> Vec<String> {
        own.iter().filter(|name| !other.contains(name)).cloned().collect()
    };
    assert_eq!((of_one(&thread, &process), of_one(&process, &thread)), (vec!["children".into()], vec!["task".into()]));
    assert_eq!(walk("7/task/8/.."), walk("7/task"));
    assert_eq!(walk("7/task/9"), Err(Errno::ENOENT));
    let text = read("7/task/8/stat");
    let fields: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(fields.len(), 52);
    assert_eq!((fields[0], fields[17], fields[39], fields[40]), ("8", "-51", "10", "1"));
    assert!(read("7/task/8/status").contains("Tgid:\t7\nNgid:\t0\nPid:\t8\n"));
    assert!(read("7/task/8/status").contains("\nSeccomp:\t2\nSeccomp_filters:\t3\n"));
    assert!(read("7/status").contains("\nSeccomp:\t0\nSeccomp_filters:\t0\n"));
    assert_eq!(read("7/task/8/comm"), "sh\n");
}

#[test]
fn a_directory_listed_in_pieces_is_complete_and_in_order() {
    let whole = list("", 100);
    let entries = crate::top::TOP.iter().skip(1).filter(|entry| !entry.path().contains('/')).count();
    // The table has everything but ., .., sys and two processes.
    assert_eq!(whole.len(), entries + 5);
    assert_eq!(whole[whole.len() - 2..], ["7", "40"]);
    for at_once in 1..4 {
        assert_eq!(list("", at_once), whole);
        assert_eq!(list("7/fd", at_once), [".", "..", "0", "1", "2", "10"]);
    }
}

#[test]
fn every_listed_file_can_be_read_or_followed() {
    let folders =
        ["", "7", "7/fdinfo", "7/ns", "7/task/8", "net", "sys/kernel", "sys/kernel/random", "sys/fs", "sys/vm"];
    for directory in folders {
        for name in list(directory, 100) {
            if name.starts_with('.') || name.parse::<u32>().is_ok() {
                continue;
            }
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            let mut proc = proc_over(Figures::new());
            let node = walk(&path).unwrap();
            assert_eq!(Place::of(node).unwrap().node(), node);
            let attributes = proc.attributes(node).unwrap();
            let mut bytes = Bytes(Vec::new());
            if attributes.is_symlink() {
                assert!(path.ends_with("/root") || link(&path).is_ok(), "{path}");
            } else if !attributes.is_directory() {
                if path.ends_with("/mem") {
                    // Nothing is mapped at 0.
                    assert_eq!(proc.read(node, 0, 1 << 20, &mut bytes), Err(Errno::EIO));
                    continue;
                }
                proc.read(node, 0, 1 << 20, &mut bytes).unwrap();
                let may_be_empty = ["environ", "auxv", "modules", "children"].iter().any(|name| path.ends_with(name));
                assert!(!bytes.0.is_empty() || may_be_empty, "{path}");
            }
        }
    }
}

#[test]
fn the_system_is_a_tree_of_its_own_without_processes() {
    let mut system = Tree::of_system(Figures::new(), SYS);
    assert_eq!(read_in(&mut system, "devices/system/cpu/online").unwrap(), b"0\n");
    assert_eq!(walk_in(&mut system, "7"), Err(Errno::ENOENT));
    assert_eq!(system.statistics().kind, 0x6265_6572);
    let mut names = Names(Vec::new(), usize::MAX);
    system.read_dir(TOP_NODE, 0, &mut names).unwrap();
    let names: Vec<String> = names.0.into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, [".", "..", "class", "devices", "fs", "kernel", "module", "power"]);
}

#[test]
fn the_screen_is_told_and_changed_line_by_line() {
    let mut system = Tree::of_system(Figures::new(), SYS);
    let told = [
        ("fb0/bits_per_pixel", "32\n"),
        ("fb0/blank", ""),
        ("fb0/modes", "U:1280x800p-0\n"),
        ("fb0/name", "bochs\n"),
        ("fb0/pan", "0,800\n"),
        ("fb0/stride", "5120\n"),
        ("fb0/virtual_size", "1280,1600\n"),
        ("fbcon/rotate", "3\n"),
    ];
    for (file, text) in told {
        assert_eq!(read_in(&mut system, &format!("class/graphics/{file}")).unwrap(), text.as_bytes(), "{file}");
    }
    let mut write = |file: &str, text: &[u8]| write(&mut system, &format!("class/graphics/{file}"), text);
    assert_eq!(write("fb0/rotate", b"1\n"), Ok(2));
    assert_eq!(write("fb0/rotate", b"4\n"), Err(Errno::EINVAL));
    assert_eq!(write("fb0/stride", b"1\n"), Err(Errno::EACCES));
    assert_eq!((write("fbcon/rotate_all", b"2"), write("fbcon/rotate", b"x")), (Ok(1), Err(Errno::EINVAL)));
}

#[test]
fn without_a_screen_what_is_said_of_it_is_enodev() {
    let mut system = Tree::of_system(Figures { has_screen: false, ..Figures::new() }, SYS);
    let files = [
        "bits_per_pixel",
        "blank",
        "console",
        "cursor",
        "mode",
        "modes",
        "name",
        "pan",
        "rotate",
        "stride",
        "virtual_size",
    ];
    for file in files {
        assert_eq!(read_in(&mut system, &format!("class/graphics/fb0/{file}")), Err(Errno::ENODEV), "{file}");
    }
}

#[test]
fn every_file_is_in_a_folder_of_its_table() {
    for entries in [crate::PROC, SYS] {
        for number in 0..entries.len() {
            let entry = entries.get(number).unwrap();
            let folder = entries.get(entries.parent(entry)).unwrap();
            assert!(folder.is_folder());
            if number > 0 {
                assert_eq!(entries.find(folder, entry.name().as_bytes()), Some(number), "{}", entry.name());
            }
        }
    }
}

#[test]
fn self_leads_to_the_reader() {
    assert_eq!((link("self").unwrap(), link("thread-self").unwrap()), ("7".into(), "7/task/8".into()));
    assert_eq!(link("mounts").unwrap(), "self/mounts");
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
    assert_eq!(proc_over(Figures::new()).attributes(0xff), Err(Errno::ESTALE));
}

#[test]
fn a_read_beyond_the_end_gives_nothing() {
    let mut bytes = Bytes(Vec::new());
    assert_eq!(proc_over(Figures::new()).read(walk("uptime").unwrap(), u64::MAX, 10, &mut bytes), Ok(0));
}

#[test]
fn maps_name_file_and_stack() {
    let text = read("7/maps");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(&lines[0][..49], "00400000-00401000 r-xp 00000000 fe:00 12         ");
    assert_eq!(&lines[0][73..], "/lib/libc.so");
    assert!(lines[1].starts_with("7fff0000-7fff8000 rw-p") && lines[1].ends_with(" [stack]"));
    assert_eq!(lines[2], "7fffa000-7fffb000 rw-p 00000000 00:00 0 ");
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
    assert_eq!(read("loadavg"), "1.00 0.50 3.01 0/2 40\n");
}

#[test]
fn settings_are_in_folders_of_their_own() {
    assert_eq!(read("sys/fs/lease-break-time"), "45\n");
    assert_eq!(&list("sys", 100)[2..], ["fs", "kernel", "net", "user", "vm"]);
    assert_eq!(&list("sys/net", 1)[2..], ["core", "unix"]);
    let mut proc = proc_over(Figures::new());
    let [sys, folder] = ["sys", "sys/fs"].map(|path| walk(path).unwrap());
    assert_eq!((proc.lookup(folder, b".."), proc.lookup(sys, b"..")), (Ok(sys), Ok(TOP_NODE)));
    assert!([sys, folder].map(|node| proc.attributes(node).unwrap().mode) == [S_IFDIR | 0o555; 2]);
    assert_eq!(proc.attributes(walk("sys/fs/lease-break-time").unwrap()).unwrap().mode, S_IFREG | 0o444);
    for path in ["sys/x", "sys/fs/x", "fs", "sys/7"] {
        assert_eq!(walk(path), Err(Errno::ENOENT), "{path}");
    }
    assert_eq!(proc.read(sys, 0, 10, &mut Bytes(Vec::new())), Err(Errno::EISDIR));
    assert_eq!(walk("sys/fs/lease-break-time/x"), Err(Errno::ENOTDIR));
}

struct Written<'a>(&'a [u8]);

impl DataSource for Written<'_> {
    fn take(&mut self, buffer: &mut [u8]) -> Result<(), Errno> {
        buffer.copy_from_slice(&self.0[..buffer.len()]);
        Ok(())
    }
}

fn write(proc: &mut Tree<Figures>, path: &str, text: &[u8]) -> Result<usize, Errno> {
    let node = walk_in(proc, path)?;
    proc.truncate(node, 0)?;
    proc.write(node, 0, text.len(), &mut Written(text), Caller::default())
}

#[test]
fn what_is_written_has_an_effect_or_is_refused() {
    let mut proc = proc_over(Figures::new());
    assert_eq!(write(&mut proc, "sys/kernel/hostname", b"lizard\n"), Ok(7));
    assert_eq!(read_in(&mut proc, "sys/kernel/hostname").unwrap(), b"lizard\n");
    assert_eq!(write(&mut proc, "sys/kernel/pid_max", b" 400 "), Ok(5));
    assert_eq!(read_in(&mut proc, "sys/kernel/pid_max").unwrap(), b"400\n");
    for bad in [&b"300"[..], b"x", b"-1", b"", &[b'9'; 200]] {
        assert_eq!(write(&mut proc, "sys/kernel/pid_max", bad), Err(Errno::EINVAL), "{bad:?}");
    }
    for path in ["sys/kernel/ostype", "sys/fs/file-max", "version", "7/cmdline"] {
        assert_eq!(write(&mut proc, path, b"1"), Err(Errno::EACCES), "{path}");
    }
    assert_eq!(write(&mut proc, "sys/kernel", b"1"), Err(Errno::EISDIR));
    let modes =
        ["sys/kernel/pid_max", "sys/kernel/ostype"].map(|path| proc.attributes(walk(path).unwrap()).unwrap().mode);
    assert_eq!(modes, [S_IFREG | 0o644, S_IFREG | 0o444]);
}

#[test]
fn figures_of_vfs_and_pm_are_shown_as_linux_does() {
    assert_eq!(
        (read("sys/fs/file-nr"), read("sys/fs/pipe-user-pages-soft")),
        ("3\t0\t65536\n".into(), "2048\n".into())
    );
    assert_eq!(read("sys/kernel/random/boot_id"), "ffffffff-ffff-4fff-bfff-ffffffffffff\n");
    assert_eq!(read("sys/kernel/random/uuid"), "01234567-89ab-4def-8123-456789abcdef\n");
    assert_eq!(read("7/fdinfo/10"), "pos:\t5\n");
    assert_eq!(read("7/cgroup"), "0::/\n");
    assert_eq!(read("7/uid_map"), "         0          0 4294967295\n");
    assert_eq!(read("7/gid_map"), "         0        100          1\n");
    assert_eq!(read("7/setgroups"), "deny\n");
    assert_eq!(link("7/ns/mnt").unwrap(), "mnt:[4026531841]");
    assert_eq!(read("7/task/7/children"), "");
    assert!(read("7/status").contains("\nUmask:\t0022\nState:\tS (sleeping)\n"));
    assert!(read("7/status").contains("\nFDSize:\t64\n"));
}

#[test]
fn memory_of_a_process_is_read_as_far_as_it_is_mapped() {
    let mut proc = proc_over(Figures::new());
    let node = walk("7/mem").unwrap();
    let mut bytes = Bytes(Vec::new());
    assert_eq!(proc.read(node, 0x400ff8, 100, &mut bytes), Ok(8));
    assert_eq!(bytes.0, [0xf8; 8]);
    assert_eq!(proc.attributes(node).unwrap().mode & 0o777, 0o600);
    assert_eq!(write(&mut proc, "7/mem", b"text"), Err(Errno::EIO));
}

#[test]
fn the_owner_of_a_thread_names_it() {
    let mut proc = proc_over(Figures::new());
    let comm = walk("7/comm").unwrap();
    assert_eq!(proc.attributes(comm).unwrap().mode & 0o777, 0o644);
    assert_eq!(proc.truncate(comm, 0), Ok(()));
    assert_eq!((write(&mut proc, "7/comm", b"sh\n"), write(&mut proc, "7/comm", b"sh")), (Ok(3), Ok(2)));
    assert_eq!(write(&mut proc, "7/comm", b"other"), Err(Errno::ESRCH));
    assert_eq!(write(&mut proc, "7/comm", &[b'x'; 40]), Err(Errno::ESRCH), "cut");
}

#[test]
fn limits_have_the_columns_of_linux() {
    let text = read("7/limits");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Limit                     Soft Limit           Hard Limit           Units     ");
    assert_eq!(lines[1], "Max cpu time              8                    unlimited            seconds   ");
}

#[test]
fn maps_and_environment_are_their_owners_and_roots_when_there_is_more_than_one_user() {
    let mut proc = proc_over(Figures::new());
    for file in ["maps", "smaps", "environ", "auxv"] {
        let attributes = proc.attributes(walk(&format!("7/{file}")).unwrap()).unwrap();
        assert_eq!((attributes.mode & 0o777, attributes.uid), (0o400, 0), "the record has another real user");
    }
    assert_eq!(proc.attributes(walk("7").unwrap()).unwrap().uid, 1000);
}

/// Reads a file, follows a link or lists a folder, of which nothing may be left out.
fn look(proc: &mut Tree<Figures>, path: &str) -> Result<Vec<u8>, Errno> {
    let node = walk_in(proc, path)?;
    match proc.attributes(node)?.mode & S_IFMT {
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
    let others = [
        "7",
        "7/fd/10",
        "7/fd/3",
        "7/fdinfo/10",
        "thread-self",
        "locks",
        "sys/kernel/hostname",
        "7/task/8",
        "7/task/8/stat",
        "loadavg",
        "40/exe",
        "self",
    ]
    .map(String::from);
    for path in process.chain(others) {
        let whole = look(&mut proc_over(Figures::new()), &path);
        let questions = 40;
        let with_memory_for = |left| look(&mut proc_over(Figures::with_memory_for(left)), &path);
        for left in 0..questions {
            let seen = with_memory_for(left);
            assert!(seen == whole || seen == Err(Errno::ENOMEM), "{path} after {left} questions: {seen:?}");
        }
        assert_eq!(with_memory_for(questions), whole, "{path}");
    }
}

#[test]
fn what_cannot_be_told_for_another_reason_is_no_lack_of_memory() {
    let others = ["loadavg", "locks", "partitions", "sysvipc/shm", "7/task/8/stat", "net/unix"].map(String::from);
    for path in list("7", 100).into_iter().map(|name| format!("7/{name}")).chain(others) {
        for left in 0..40 {
            let figures = Figures { left, error: Errno::ESRCH, ..Figures::new() };
            let seen = look(&mut proc_over(figures), &path);
            assert_ne!(seen, Err(Errno::ENOMEM), "{path} after {left} questions");
        }
    }
    let figures = |left| Figures { left, error: Errno::ESRCH, ..Figures::new() };
    let maps: Vec<_> = (0..9).map(|left| look(&mut proc_over(figures(left)), "7/maps")).collect();
    assert!(maps.contains(&Err(Errno::ESRCH)), "who ends while it is looked at: {maps:?}");
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

#[test]
fn a_link_of_a_descriptor_has_the_permissions_that_it_was_opened_with() {
    let mode = |descriptor: &str| {
        let mut proc = proc_over(Figures::new());
        let node = walk_in(&mut proc, &std::format!("7/fd/{descriptor}")).unwrap();
        proc.attributes(node).unwrap().mode
    };
    assert_eq!(["0", "1", "2", "10"].map(mode), [0o500, 0o300, 0o700, 0].map(|permissions| S_IFLNK | permissions));
}

#[test]
fn each_container_that_runs_has_a_folder_in_drvs() {
    for at_once in [1, 100] {
        assert_eq!(list("drvs", at_once), [".", "..", "info", "nodes", "VM0", "VM31"]);
    }
    assert_eq!(list("drvs/VM31", 2), [".", "..", "info", "procs", "stats"]);
    assert_eq!(read("drvs/info"), "text 0 of 0\n");
    assert_eq!(read("drvs/VM31/procs"), "text 3 of 31\n");
    assert_eq!(walk("drvs/VM0/.."), walk("drvs"));
    for absent in ["drvs/VM1", "drvs/VM01", "drvs/VM32", "drvs/VM", "drvs/31", "drvs/VM0/more"] {
        assert_eq!(walk(absent), Err(Errno::ENOENT), "{absent}");
    }
    let mut proc = proc_over(Figures::new());
    let ended = Place::Container(5).node();
    assert_eq!(proc.attributes(ended).map(|_| ()), Err(Errno::ESTALE));
}

#[test]
fn a_look_up_and_the_attributes_behind_it_ask_for_a_process_once() {
    let mut tree = proc_over(Figures::with_memory_for(3));
    let folder = tree.lookup(TOP_NODE, b"7").expect("exists");
    assert!(tree.attributes(folder).is_ok());
    assert_eq!(tree.source.left, 2);
    assert!(tree.attributes(folder).is_ok(), "asks again");
    assert_eq!(tree.lookup(folder, b"nothing"), Err(Errno::ENOENT));
    assert_eq!(tree.attributes(folder).err(), Some(Errno::ENOMEM), "what a look-up in vain has fetched is not kept");
}
