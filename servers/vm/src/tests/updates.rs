//! A service gets a new program and keeps its memory (`Renew`); and what a service may be made of.

use super::*;
use crate::simulation::grant;
use abi::{
    Errno,
    layout::{SERVICE_DEVICES, SERVICE_HEAP, SERVICE_IMAGE, SERVICE_KEEP, SERVICE_STACK_BYTES, SERVICE_STACK_END},
};

const SLOT: usize = 20;
const DATA: u64 = SERVICE_IMAGE + 0x3010;
const TEXT_BYTES: usize = 0x2010;
const MAX_ARGUMENT_BYTES: usize = 64 << 10;

type Vm = Server<Simulation>;

fn service(generation: u32) -> Endpoint {
    Endpoint::new(SLOT, generation)
}

/// Has `asker` ask for a service with this image and argument text, with preserved memory of a page.
fn spawn(vm: &mut Vm, file: &[u8], arguments: &[u8], heap_bytes: u64, keep_bytes: u64) -> Result<u64, Errno> {
    let grant = grant(vm, [file, arguments].concat());
    let (image_bytes, argument_bytes) = (file.len() as u64, arguments.len() as u64);
    let request = vm::Spawn { process: service(1), grant, image_bytes, argument_bytes, heap_bytes, keep_bytes };
    let reply = vm.ask(slot::RS, request.message());
    vm::Spawn::results(&reply).map(|(entry, ..)| entry)
}

fn renew(vm: &mut Vm, asker: usize, process: Endpoint, file: &[u8], text: &[u8]) -> Result<(u64, u64, u64), Errno> {
    let grant = grant(vm, [file, text].concat());
    let (image_bytes, argument_bytes) = (file.len() as u64, text.len() as u64);
    let reply = vm.ask(asker, vm::Renew { process, grant, image_bytes, argument_bytes }.message());
    vm::Renew::results(&reply)
}

/// The image with other text and other data.
fn other_image() -> Vec<u8> {
    let mut file = services::image();
    file[0x300..].iter_mut().for_each(|byte| *byte ^= 0xff);
    file
}

#[test]
fn a_successor_has_new_text_and_arguments_an_empty_stack_and_all_the_rest_as_it_was() {
    let mut vm = Simulation::start(512);
    let (old_file, new_file) = (services::image(), other_image());
    spawn(&mut vm, &old_file, services::ARGUMENTS, 2 * P, P).expect("a service");
    let (old, new) = (service(1), service(2));
    let stack = SERVICE_STACK_END - SERVICE_STACK_BYTES;
    let kept = [DATA + 5, DATA + 0x1000, SERVICE_HEAP + P, SERVICE_KEEP + 7];
    kept.iter().for_each(|&at| vm.store(old, at, 42).expect("writable"));
    let gone = [stack, stack + 9 * P, SERVICE_STACK_END - 2 * P];
    gone.iter().for_each(|&at| vm.store(old, at, 43).expect("writable"));
    let pages = |vm: &mut Vm, process| vm.processes.space(process).expect("known").pages.count();
    let before = pages(&mut vm, old);
    let text = b"a longer text than the first";
    let (entry, arguments, stack_end) = renew(&mut vm, slot::RS, new, &new_file, text).expect("renewed");
    assert_eq!((entry, arguments, stack_end), (SERVICE_IMAGE + 0x200, arguments, arguments));
    assert_eq!(arguments, (SERVICE_STACK_END - text.len() as u64) & !0xf);
    assert!(pages(&mut vm, new) < before, "the pages of the stack have gone");
    for offset in [0, 0x2ff, 0x300, 0xfff, 0x1000, TEXT_BYTES - 1] {
        assert_eq!(vm.load(new, SERVICE_IMAGE + offset as u64), Ok(new_file[offset]), "{offset:#x}");
    }
    assert_eq!(kept.map(|at| vm.load(new, at)), [Ok(42); 4]);
    assert_eq!(vm.load(new, DATA + 6), Ok(old_file[TEXT_BYTES + 6]), "its data is not that of the file");
    assert_eq!(gone.map(|at| vm.load(new, at)), [Ok(0); 3]);
    let told: Vec<_> = (0..text.len() as u64).map(|at| vm.load(new, arguments + at).expect("readable")).collect();
    assert_eq!((told.as_slice(), vm.store(new, stack_end - 8, 1)), (&text[..], Ok(())));
    assert_eq!(vm.load(old, SERVICE_HEAP), Err(Errno::EFAULT), "the one before is not known any more");
    invariants::check(&vm);
    // And again, with the first program.
    renew(&mut vm, slot::RS, service(3), &old_file, b"").expect("renewed");
    assert_eq!(vm.load(service(3), SERVICE_IMAGE + 0x1000), Ok(old_file[0x1000]));
    assert_eq!(vm.load(service(3), SERVICE_STACK_END - 1), Ok(0));
    invariants::check(&vm);
}

#[test]
fn only_rs_renews_and_only_a_service_that_is_there_with_a_program_that_fits() {
    let mut vm = Simulation::start(512);
    let file = services::image();
    spawn(&mut vm, &file, services::ARGUMENTS, P, P).expect("a service");
    vm.store(service(1), SERVICE_HEAP, 42).expect("writable");
    assert_eq!(renew(&mut vm, slot::PM, service(2), &file, b"x"), Err(Errno::EPERM));
    assert_eq!(renew(&mut vm, slot::RS, program(0), &file, b"x"), Err(Errno::EINVAL));
    assert_eq!(renew(&mut vm, slot::RS, Endpoint::new(SLOT + 1, 1), &file, b"x"), Err(Errno::ESRCH));
    let too_long = vec![b'x'; MAX_ARGUMENT_BYTES + 1];
    assert_eq!(renew(&mut vm, slot::RS, service(2), &file, &too_long), Err(Errno::E2BIG));
    for at in [0, 4, 16, 18] {
        let mut bent = file.clone();
        bent[at] ^= 0xff;
        assert_eq!(renew(&mut vm, slot::RS, service(2), &bent, b"x"), Err(Errno::ENOEXEC), "byte {at}");
    }
    // Text where the service has no page.
    let mut longer = file.clone();
    let text = 64 + 16;
    longer[text..text + 8].copy_from_slice(&(SERVICE_IMAGE + 0x10_0000).to_le_bytes());
    assert_eq!(renew(&mut vm, slot::RS, service(2), &longer, b"x"), Err(Errno::ENOEXEC));
    let longest = vec![b'x'; MAX_ARGUMENT_BYTES];
    let (_, arguments, _) = renew(&mut vm, slot::RS, service(2), &file, &longest).expect("renewed");
    assert_eq!(vm.load(service(2), arguments), Ok(b'x'));
    assert_eq!(vm.load(service(2), arguments + MAX_ARGUMENT_BYTES as u64 - 1), Ok(b'x'));
    assert_eq!(vm.load(service(2), SERVICE_HEAP), Ok(42));
    invariants::check(&vm);
}

#[test]
fn a_service_has_as_much_heap_and_preserved_memory_as_there_are_addresses() {
    let mut vm = Simulation::start(512);
    let file = services::image();
    let (heap, keep) = (SERVICE_KEEP - SERVICE_HEAP, SERVICE_DEVICES - SERVICE_KEEP);
    for (heap_bytes, keep_bytes, expected) in [
        (heap, P, Ok(SERVICE_IMAGE + 0x200)),
        (heap + 1, P, Err(Errno::EINVAL)),
        (P, keep, Ok(SERVICE_IMAGE + 0x200)),
        (P, keep + 1, Err(Errno::EINVAL)),
        (0, 0, Ok(SERVICE_IMAGE + 0x200)),
    ] {
        assert_eq!(spawn(&mut vm, &file, b"x", heap_bytes, keep_bytes), expected, "{heap_bytes:#x} {keep_bytes:#x}");
        invariants::check(&vm);
    }
    assert_eq!(vm.store(service(1), SERVICE_HEAP, 1), Err(Errno::EFAULT), "it has none");
    assert_eq!(vm.store(service(1), SERVICE_KEEP, 1), Err(Errno::EFAULT));
    assert_eq!(spawn(&mut vm, &file, b"x", 1, 1), Ok(SERVICE_IMAGE + 0x200));
    assert_eq!([SERVICE_HEAP, SERVICE_KEEP].map(|at| vm.store(service(1), at + P - 1, 1)), [Ok(()); 2], "a whole page");
    assert_eq!([SERVICE_HEAP, SERVICE_KEEP].map(|at| vm.store(service(1), at + P, 1)), [Err(Errno::EFAULT); 2]);
    for (bytes, expected) in [(MAX_ARGUMENT_BYTES, true), (MAX_ARGUMENT_BYTES + 1, false)] {
        let made = spawn(&mut vm, &file, &vec![b'x'; bytes], P, P);
        assert_eq!(made.is_ok(), expected);
        assert!(expected || made == Err(Errno::E2BIG));
    }
}

/// Text that begins within a page.
#[test]
fn text_is_written_again_from_its_first_byte_to_its_last() {
    let with_text_at_16 = |mut file: Vec<u8>| {
        let words = [(72, 16), (80, SERVICE_IMAGE + 16), (96, TEXT_BYTES as u64 - 16), (104, TEXT_BYTES as u64 - 16)];
        words.iter().for_each(|&(at, word)| file[at..at + 8].copy_from_slice(&u64::to_le_bytes(word)));
        file
    };
    let (old, new) = (with_text_at_16(services::image()), with_text_at_16(other_image()));
    let mut vm = Simulation::start(512);
    spawn(&mut vm, &old, b"x", P, P).expect("a service");
    renew(&mut vm, slot::RS, service(2), &new, b"x").expect("renewed");
    for offset in [16, 17, 0x2ff, 0x300, 0xfff, 0x1000, 0x1fff, 0x2000, TEXT_BYTES - 1] {
        assert_eq!(vm.load(service(2), SERVICE_IMAGE + offset as u64), Ok(new[offset]), "{offset:#x}");
    }
    assert_eq!([15, TEXT_BYTES as u64].map(|at| vm.load(service(2), SERVICE_IMAGE + at)), [Ok(0); 2]);
    invariants::check(&vm);
}

/// A look at a page that a fork has shared is no reason to protect it once more.
#[test]
fn what_was_only_read_is_not_protected_again() {
    const PAGES: u64 = 1000;
    let (mut vm, p) = with_program(4000);
    let [child, grandchild] = [1, 2].map(program);
    let call = [0, PAGES * P, READ | WRITE, PRIVATE | ANONYMOUS, 0, 0];
    let at = vm.call(p, abi::linux::nr::MMAP, call).expect("memory");
    (0..PAGES).for_each(|page| vm.store(p, at + page * P, page as u8).expect("writable"));
    fork(&mut vm, p, child).expect("memory");
    (0..PAGES).step_by(70).for_each(|page| assert_eq!(vm.load(child, at + page * P), Ok(page as u8)));
    let protected = vm.memory.kernel.protected_pages;
    fork(&mut vm, child, grandchild).expect("memory");
    assert_eq!(vm.memory.kernel.protected_pages, protected);
    vm.store(child, at, 9).expect("writable");
    assert_eq!([p, child, grandchild].map(|process| vm.load(process, at)), [Ok(0), Ok(9), Ok(0)]);
    invariants::check(&vm);
}
