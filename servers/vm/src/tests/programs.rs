//! fork, exec and exit of programs, real ones among them.

use super::*;
use crate::memory::pages::LEAF_PAGES;
use crate::simulation::Touch;
use crate::space::Limits;
use abi::{Errno, kernel, layout::map, linux::nr};
use elf::{HEAD_BYTES, Kind, Program};

type ExecResults = (u64, u64, u64, u64, u64, u64);

fn exec(
    server: &mut Server<Simulation>,
    process: Endpoint,
    image: u64,
    interpreter: u64,
) -> Result<ExecResults, Errno> {
    let request = vm::Exec { process, image, interpreter, stack_bytes: 8 << 20, seed: 0 };
    let reply = server.ask(slot::PM, request.message());
    vm::Exec::results(&reply)
}

/// A position-independent program that every Debian has.
const LINKER: &str = "/lib64/ld-linux-x86-64.so.2";

fn linker() -> Vec<u8> {
    std::fs::read(LINKER).expect("this machine has a dynamic linker")
}

/// Programs of this machine, busybox where it is there.
fn real_programs() -> Vec<Vec<u8>> {
    std::fs::read("/bin/busybox").into_iter().chain([linker()]).collect()
}

/// Checks that memory shows the segments of the program.
fn check_loaded(server: &mut Server<Simulation>, process: Endpoint, file: &[u8], base: u64) {
    let program = Program::parse(&file[..HEAD_BYTES], file.len() as u64).expect("a real program");
    for segment in program.segments() {
        let bytes = segment.file.bytes;
        for offset in [0, bytes / 3, bytes / 2, bytes - 1] {
            let expected = file[(segment.file.offset + offset) as usize];
            assert_eq!(server.load(process, base + segment.address + offset), Ok(expected));
        }
        for offset in [bytes, (bytes + segment.memory_bytes) / 2, segment.memory_bytes - 1] {
            if offset >= bytes && offset < segment.memory_bytes {
                assert_eq!(server.load(process, base + segment.address + offset), Ok(0), "zeros behind the file");
            }
        }
        let address = base + segment.address;
        assert_eq!(server.touch(process, address, Touch::Execute).is_ok(), segment.execute);
        assert_eq!(server.store(process, address + bytes - 1, 0x5a).is_ok(), segment.write);
    }
}

#[test]
fn an_exec_takes_the_payer_along() {
    let (mut server, p) = with_program(4000);
    let request = vm::SetContainer { process: p, container: 4, pages: 1000 };
    assert_eq!(server.ask(slot::PM, request.message()).result(), Ok(0));
    let image = files::image(&mut server, 9, linker());
    let (.., stack_end) = exec(&mut server, p, image, 0).expect("a real program");
    server.store(p, stack_end - (1 << 16), 1).expect("the stack grows");
    invariants::check(&server);
    let payer = server.processes.space(p).expect("there").payer();
    assert!(server.memory.frames.paid_by(payer) >= 3, "two pages of the stack at once, and one");
    assert_eq!(server.ask(slot::PM, vm::ContainerMemory { container: 5 }.message()).words[1], 0);
}

#[test]
fn real_programs_are_in_memory_as_in_their_files() {
    for file in real_programs() {
        let (mut server, p) = with_program(4000);
        let image = files::image(&mut server, 9, file.clone());
        let program = Program::parse(&file[..HEAD_BYTES], file.len() as u64).expect("a real program");
        for _ in 0..2 {
            let (start, entry, phdr, count, interpreter, stack_end) =
                exec(&mut server, p, image, 0).expect("a real program");
            let base = if program.kind == Kind::Fixed { 0 } else { 0x5555_5555_4000 };
            assert_eq!((start, entry, interpreter), (base + program.entry, base + program.entry, 0));
            assert_eq!((phdr, count), (base + program.headers, u64::from(program.header_count)));
            check_loaded(&mut server, p, &file, base);
            assert_eq!(server.store(p, stack_end - 8, 1), Ok(()));
            assert_eq!(server.store(p, stack_end - (1 << 20), 1), Ok(()));
            assert_eq!(server.touch(p, stack_end - 8, Touch::Execute), Err(Errno::EACCES));
            let heap = server.call(p, nr::BRK, [0; 6]).expect("brk");
            assert_eq!(heap, base + program.end());
            assert_eq!(server.call(p, nr::BRK, [heap + 5000, 0, 0, 0, 0, 0]), Ok(heap + 5000));
            assert_eq!(server.store(p, heap + 4999, 1), Ok(()));
            invariants::check(&server);
        }
        exit(&mut server, p).expect("known");
        invariants::check(&server);
    }
}

/// A program of these segments: flags, offset in the file, address, bytes in the file and in memory. The file goes on behind them.
fn made_up(segments: &[[u64; 5]], file_bytes: u64) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2u16, 62].iter().flat_map(|half| half.to_le_bytes()));
    file.extend(1u32.to_le_bytes());
    [segments[0][2], 64, 0].iter().for_each(|word| file.extend(word.to_le_bytes()));
    file.extend(0u32.to_le_bytes());
    let halves = [64, 56, segments.len() as u16, 0, 0, 0];
    file.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
    for &[flags, offset, address, bytes, memory_bytes] in segments {
        let words = [flags << 32 | 1, offset, address, 0, bytes, memory_bytes, P];
        words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    }
    file.extend((file.len() as u64..file_bytes).map(|at| (at % 251) as u8 | 1));
    file
}

#[test]
fn a_segment_without_zeros_shows_its_last_page_of_the_file_and_one_of_zeros_alone_nothing_of_it() {
    let text = 0x40_0000;
    let (zeros, both, one) = (text + 3 * P + 50, text + 5 * P, text + 6 * P);
    let whole = [5, 0, text, P + 100, P + 100];
    let file = made_up(&[whole, [6, 50, zeros, 0, 200], [6, P, both, 30, 60], [6, 2 * P, one, 1, 2]], 3 * P);
    let (mut server, p) = with_program(512);
    let image = files::image(&mut server, 9, file.clone());
    exec(&mut server, p, image, 0).expect("a program");
    for offset in [P, P + 99, P + 100, 2 * P - 1] {
        assert_eq!(server.load(p, text + offset), Ok(file[offset as usize]), "{offset}");
    }
    for address in [zeros - 50, zeros - 1, zeros, zeros + 199, both + 30, both + P - 1, one + 1] {
        assert_eq!(server.load(p, address), Ok(0), "{address:#x}");
    }
    for (address, offset) in [(both + 29, P + 29), (one, 2 * P)] {
        assert_eq!(server.load(p, address), Ok(file[offset as usize]), "{address:#x}");
    }
    invariants::check(&server);
}

#[test]
fn an_interpreter_is_loaded_beside_its_program() {
    let file = linker();
    let (mut server, p) = with_program(2000);
    let image = files::image(&mut server, 9, file.clone());
    let interpreter = files::image(&mut server, 10, file.clone());
    let (start, entry, _, _, base, _) = exec(&mut server, p, image, interpreter).expect("two programs");
    assert_eq!((entry - 0x5555_5555_4000, start - base), (start - base, entry - 0x5555_5555_4000));
    check_loaded(&mut server, p, &file, base);
    check_loaded(&mut server, p, &file, 0x5555_5555_4000);
    invariants::check(&server);
}

#[test]
fn a_seed_moves_every_part_of_a_program() {
    let file = linker();
    let (mut server, p) = with_program(4000);
    let image = files::image(&mut server, 9, file.clone());
    let interpreter = files::image(&mut server, 10, file.clone());
    let mut places: Vec<[u64; 5]> = (0..3)
        .map(|seed| {
            let request = vm::Exec { process: p, image, interpreter, stack_bytes: 8 << 20, seed };
            let reply = server.ask(slot::PM, request.message());
            let (_, entry, _, _, base, stack_end) = vm::Exec::results(&reply).expect("two programs");
            check_loaded(&mut server, p, &file, base);
            server.store(p, stack_end - 8, 1).expect("the stack is there");
            server.store(p, stack_end - (1 << 20), 1).expect("the stack grows");
            let heap = server.call(p, nr::BRK, [0; 6]).expect("brk");
            let words = [0, P, READ | WRITE, PRIVATE | ANONYMOUS, 0, 0];
            let mapped = server.call(p, nr::MMAP, words).expect("memory");
            assert!(mapped < base && base < stack_end);
            invariants::check(&server);
            [entry, base, stack_end, heap, mapped]
        })
        .collect();
    let fixed = places.remove(0);
    assert_eq!(fixed[2], abi::layout::USER_END - abi::layout::VDSO_BYTES);
    for part in 0..5 {
        assert!(fixed[part] != places[0][part] && places[0][part] != places[1][part], "{part}: {places:x?}");
    }
}

#[test]
fn a_failed_exec_changes_nothing() {
    let (mut server, p) = with_program(512);
    let at = server.call(p, nr::MMAP, [0, P, READ | WRITE, PRIVATE | ANONYMOUS, 0, 0]).expect("memory");
    server.store(p, at, 5).expect("writable");
    let image = files::image(&mut server, 9, files::content(3 * P));
    assert_eq!(exec(&mut server, p, image, 0), Err(Errno::ENOEXEC));
    assert_eq!(exec(&mut server, p, 12345, 0), Err(Errno::EINVAL));
    assert_eq!(exec(&mut server, program(9), image, 0), Err(Errno::ESRCH));
    assert_eq!(server.load(p, at), Ok(5));
    invariants::check(&server);
}

#[test]
fn bent_programs_are_refused_or_loaded_but_harm_nobody() {
    let file = linker();
    let mut random = Random(7);
    let (mut server, p) = with_program(8000);
    for round in 0..200 {
        let mut bent = file.clone();
        for _ in 0..=random.below(6) {
            let at = random.below(1024) as usize;
            bent[at] = random.below(256) as u8;
        }
        let image = files::image(&mut server, 100 + round, bent);
        if let Ok((start, .., stack_end)) = exec(&mut server, p, image, 0) {
            let _ = server.touch(p, start, Touch::Execute);
            server.store(p, stack_end - 1, 1).expect("a stack");
        }
        server.ask(slot::VFS, vm::ImageClose { image }.message()).result().expect("held");
        server
            .ask(slot::VFS, vm::ImageForget { device: 1, inode: 100 + round, gone: false }.message())
            .result()
            .expect("known");
    }
    invariants::check(&server);
    exit(&mut server, p).expect("known");
    let used = server.memory.frames.total() - server.memory.frames.free();
    assert_eq!(used as u64, server.memory.own_frames(), "frames are lost");
}

#[test]
fn a_sole_owner_writes_without_a_copy() {
    let (mut server, p) = with_program(512);
    let at = server.call(p, nr::MMAP, [0, 4 * P, READ | WRITE, PRIVATE | ANONYMOUS, 0, 0]).expect("memory");
    (0..4).for_each(|page| server.store(p, at + page * P, 1).expect("writable"));
    let free = server.memory.frames.free();
    fork(&mut server, p, program(1)).expect("enough memory");
    server.store(p, at, 2).expect("copied");
    assert_eq!(server.memory.frames.free(), free - 1);
    exit(&mut server, program(1)).expect("known");
    assert_eq!(server.memory.frames.free(), free);
    let calls = server.memory.kernel.calls;
    (0..4).for_each(|page| server.store(p, at + page * P, 3).expect("writable"));
    assert_eq!((server.memory.frames.free(), server.memory.kernel.calls), (free, calls + 1));
    invariants::check(&server);
}

#[test]
fn the_fork_of_a_large_region_maps_nothing_until_the_child_touches_it() {
    const PAGES: u64 = 1000;
    let (mut server, p) = with_program(4000);
    let child = program(1);
    let at = server.call(p, nr::MMAP, [0, PAGES * P, READ | WRITE, PRIVATE | ANONYMOUS, 0, 0]).expect("memory");
    (0..PAGES).for_each(|page| server.store(p, at + page * P, page as u8).expect("writable"));
    let calls = server.memory.kernel.calls;
    fork(&mut server, p, child).expect("enough memory");
    let is_mapped =
        |server: &Server<Simulation>, page: u64| server.memory.kernel.mapping(child, at + page * P).is_some();
    assert!(server.memory.kernel.calls <= calls + 3, "nothing is done page by page");
    assert!((0..PAGES).all(|page| !is_mapped(&server, page) && !is_writable(&server, p, at + page * P)));
    assert_eq!(server.load(child, at + 500 * P), Ok(500u64 as u8));
    let is_near = |page: &u64| (at / P + page) / LEAF_PAGES == (at / P + 500) / LEAF_PAGES;
    assert!((0..PAGES).filter(is_near).all(|page| is_mapped(&server, page)), "its neighbours come along");
    let free = server.memory.frames.free();
    server.store(child, at + 501 * P, 1).expect("copied");
    server.store(p, at + 502 * P, 2).expect("copied");
    assert_eq!(server.memory.frames.free(), free - 2);
    invariants::check(&server);
    let seen = |server: &mut Server<Simulation>, process| [501, 502].map(|page| server.load(process, at + page * P));
    assert_eq!(seen(&mut server, child), [Ok(1), Ok(502u64 as u8)]);
    assert_eq!(seen(&mut server, p), [Ok(501u64 as u8), Ok(2)]);
    exit(&mut server, p).expect("known");
    assert!((0..PAGES).all(|page| page == 501 || server.load(child, at + page * P) == Ok(page as u8)));
    exit(&mut server, child).expect("known");
    invariants::check(&server);
}

#[test]
fn a_fork_protects_what_was_written_since_the_last_one() {
    const PAGES: u64 = 1000;
    let (mut server, p) = with_program(4000);
    let at = server.call(p, nr::MMAP, [0, PAGES * P, READ | WRITE, PRIVATE | ANONYMOUS, 0, 0]).expect("memory");
    (0..PAGES).for_each(|page| server.store(p, at + page * P, page as u8).expect("writable"));
    let mut children = 1..;
    let mut protected = |server: &mut Server<Simulation>, dies: bool| {
        let child = program(children.next().expect("endless"));
        let before = server.memory.kernel.protected_pages;
        fork(server, p, child).expect("enough memory");
        invariants::check(server);
        if dies {
            exit(server, child).expect("known");
        }
        server.memory.kernel.protected_pages - before
    };
    assert!(protected(&mut server, true) >= PAGES);
    assert_eq!(protected(&mut server, true), 0);
    // Alone: the page is made writable. Beside a child: it is copied.
    for dies in [true, false, false] {
        server.store(p, at + 300 * P, 1).expect("writable");
        assert!((1..=2 * LEAF_PAGES).contains(&protected(&mut server, dies)));
    }
}

#[test]
fn threads_share_and_the_last_one_frees() {
    let (mut server, p) = with_program(512);
    let at = server.call(p, nr::MMAP, [0, P, READ | WRITE, PRIVATE | ANONYMOUS, 0, 0]).expect("memory");
    let request = vm::Fork { parent: p, child: program(1), share: true, pid: 0 };
    server.ask(slot::PM, request.message()).result().expect("shares");
    server.store(program(1), at, 5).expect("writable");
    assert_eq!(server.load(p, at), Ok(5));
    exit(&mut server, p).expect("known");
    assert_eq!(server.load(program(1), at), Ok(5));
    exit(&mut server, program(1)).expect("known");
    assert_eq!(exit(&mut server, program(1)), Ok(()), "pm may not know yet");
    assert_eq!(exit(&mut server, p), Err(Errno::ESRCH));
    let used = server.memory.frames.total() - server.memory.frames.free();
    assert_eq!(used as u64, server.memory.own_frames());
    invariants::check(&server);
}

#[test]
fn the_hog_meets_the_end_of_memory_before_its_neighbour() {
    let (mut server, p) = with_program(2000);
    fork(&mut server, p, program(1)).expect("enough memory");
    let flags = PRIVATE | ANONYMOUS | 0x4000;
    let big = server.call(p, nr::MMAP, [0, 4000 * P, READ | WRITE, flags, 0, 0]).expect("memory");
    let filled = (0..4000).take_while(|page| server.store(p, big + page * P, 1).is_ok()).count();
    assert!((1500..1900).contains(&filled), "{filled} pages");
    assert_eq!(server.store(p, big + 3999 * P, 1), Err(Errno::ENOMEM));
    let small = server.call(program(1), nr::MMAP, [0, 10 * P, READ | WRITE, flags, 0, 0]).expect("memory");
    (0..10).for_each(|page| server.store(program(1), small + page * P, 1).expect("kept for the small"));
    invariants::check(&server);
}

/// A program whose memory is resident, with its stack pointer in its stack.
fn resident(stack_bytes: u64) -> (Server<Simulation>, Endpoint, u64) {
    let (mut server, p) = with_program(4000);
    let image = files::image(&mut server, 9, linker());
    let request = vm::Exec { process: p, image, interpreter: 0, stack_bytes, seed: 0 };
    let reply = server.ask(slot::PM, request.message());
    let (.., stack_end) = vm::Exec::results(&reply).expect("a real program");
    server.store(p, stack_end - 8, 1).expect("the first page of the stack");
    make_resident(&mut server, p, stack_end - 8).expect("enough memory");
    (server, p, stack_end)
}

fn make_resident(server: &mut Server<Simulation>, p: Endpoint, stack: u64) -> Result<(), Errno> {
    server.ask(p.slot(), kernel::Resident { stack }.message()).result().map(drop)
}

/// Returns true when the kernel maps the page for writing, so that a write does not fault.
fn is_writable(server: &Server<Simulation>, p: Endpoint, address: u64) -> bool {
    server.memory.kernel.mapping(p, address).is_some_and(|(_, flags)| flags & map::WRITE != 0)
}

#[test]
fn a_resident_stack_does_not_fault_down_to_its_limit() {
    for (limit, resident_bytes) in [(300 << 10, 300 << 10), (8 << 20, 1 << 20)] {
        let (server, p, end) = resident(limit);
        assert!((1..=resident_bytes / P).all(|page| is_writable(&server, p, end - page * P)), "{limit}");
        assert!(!is_writable(&server, p, end - resident_bytes - P));
        invariants::check(&server);
    }
}

#[test]
fn the_fork_of_a_resident_program_takes_nothing_from_it() {
    let (mut server, p, end) = resident(64 << 10);
    let child = program(1);
    fork(&mut server, p, child).expect("enough memory");
    assert!((1..=16).all(|page| is_writable(&server, p, end - page * P)), "it never faults");
    server.store(p, end - 8, 2).expect("its own");
    assert_eq!((server.load(child, end - 8), server.load(p, end - 8)), (Ok(1), Ok(2)));
    server.store(child, end - 8, 3).expect("the child's own");
    assert_eq!(server.load(p, end - 8), Ok(2));
    invariants::check(&server);
    exit(&mut server, child).expect("known");
    exit(&mut server, p).expect("known");
    invariants::check(&server);
}

#[test]
fn the_fork_of_a_resident_program_that_is_too_large_takes_nothing_either() {
    let (mut server, p, end) = resident(1 << 20);
    let mut children = 1..;
    while fork(&mut server, p, program(children.next().expect("endless"))).is_ok() {}
    assert!((1..=256).all(|page| is_writable(&server, p, end - page * P)));
    invariants::check(&server);
}

#[test]
fn an_exec_keeps_the_limits_and_the_first_one_finds_none() {
    let (mut server, p) = with_program(4000);
    let image = files::image(&mut server, 9, linker());
    let limits = Limits { addresses: 1 << 40, data: 1 << 30, locked: 1 << 20 };
    server.processes.space(p).expect("known").limits = limits;
    exec(&mut server, p, image, 0).expect("a program");
    assert_eq!(server.processes.space(p).expect("known").limits, limits);
    let first = program(1);
    let fork = vm::Fork { parent: Endpoint::NONE, child: first, share: false, pid: 2 };
    assert_eq!(server.ask(slot::PM, fork.message()).result(), Ok(0));
    exec(&mut server, first, image, 0).expect("a program");
    assert_eq!(server.processes.space(first).expect("known").limits, Limits::NONE);
}
