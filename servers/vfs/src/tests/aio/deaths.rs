//! vfs dies while requests are submitted, events handed over, contexts made and ended.

use super::*;

/// A world in which a submission of everything that must not be done twice is about to begin, and its arguments.
fn delicate() -> (World, u64, u64, [u64; 3]) {
    let (world, file, context) = begun();
    let appending = world.open(world.root, "/file", O_RDWR | O_APPEND, 0).unwrap();
    let (_, write) = world.pipe(world.root, 0);
    let counter = world.call(world.root, nr::EVENTFD2, &[0, O_NONBLOCK]).unwrap();
    world.data(world.root, b"abcdefgh");
    let mut told = iocb(appending, PWRITE, DATA, 3, 0);
    told[7] = 1 | counter << 32;
    let iocbs = [
        told,
        iocb(write, PWRITE, DATA, 4, 0),
        iocb(appending, FSYNC, 0, 0, 0),
        told,
        iocb(write, PWRITE, DATA, 5, 0),
        iocb(file, PWRITE, DATA, 2, 4),
        told,
    ];
    let arguments = requests(&world, world.root, context, &iocbs);
    (world, context, counter, arguments)
}

#[test]
fn a_submission_is_carried_out_once_whenever_vfs_dies() {
    for death in 1.. {
        let (mut world, context, counter, arguments) = delicate();
        let (result, died) = world.call_with_deaths(&[death, 2], world.root, nr::IO_SUBMIT, &arguments);
        assert_eq!(result, Ok(7), "death at {death}");
        let results = collect(&world, world.root, context, 16).unwrap().into_iter().map(|event| (event.1, event.2));
        let expected = [(0, 3), (1, 4), (2, 0), (3, 3), (4, 5), (5, 2), (6, 3)];
        assert_eq!(results.collect::<Vec<_>>(), expected, "death at {death}");
        assert_eq!(world.content("/file"), b"0123ab6789abcabcabc", "death at {death}");
        assert_eq!(world.read(world.root, counter, 8).map(|count| count[0]), Ok(3), "death at {death}");
        let read = world.call(world.root, nr::READ, &[counter - 2, DATA, 64]);
        assert_eq!((read, world.machine.read(world.root, DATA, 9)), (Ok(9), b"abcdabcde".to_vec()), "death at {death}");
        if died == 0 {
            assert!(death > 3, "it has died in between");
            return;
        }
    }
}

/// A call that goes on in a later turn comes again after a death of vfs, which has put this where ids are told.
fn interrupted(world: &mut World, number: u32, arguments: &[u64], told: &[u64]) -> Result<u64> {
    assert_eq!(world.begin_call(world.root, number, arguments), None);
    put(world, world.root, ID, told);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    let repeated = world.repeat_call(world.root, number, arguments);
    repeated.unwrap_or_else(|| {
        world.machine.advance_ns(TURN_NS);
        world.result(world.root).expect("it waits for nothing else")
    })
}

#[test]
fn contexts_are_made_and_end_once_when_vfs_dies_meanwhile() {
    let mut world = World::new();
    let arguments = begin_setup(&world, world.root, 100);
    assert_eq!(interrupted(&mut world, nr::IO_SETUP, &arguments, &[MAPPED_PAGES]), Ok(0), "it has told the id");
    assert_eq!((destroy(&world, world.root, MAPPED_PAGES), world.vm().mapped_pages.len()), (Ok(0), 1));
    let arguments = begin_setup(&world, world.root, 200);
    assert_eq!(interrupted(&mut world, nr::IO_SETUP, &arguments, &[0]), Ok(0));
    let context = world.read_words(world.root, ID, 1)[0];
    assert_eq!((context, world.vm().mapped_pages.len(), used(&world)), (MAPPED_PAGES + 4096, 2, 200));
    world.restart_vfs();
    assert_eq!(world.repeat_call(world.root, nr::IO_SETUP, &arguments), Some(Ok(0)), "though there is an id now");
    assert_eq!(interrupted(&mut world, nr::IO_DESTROY, &[context], &[context]), Ok(0));
    let unmapped = |world: &World| world.vm().unmapped_pages.values().copied().collect::<Vec<_>>();
    assert_eq!(unmapped(&world), [MAPPED_PAGES, context]);
    world.restart_vfs();
    assert_eq!(world.repeat_call(world.root, nr::IO_DESTROY, &[context]), Some(Ok(0)));
    assert_eq!(unmapped(&world), [MAPPED_PAGES, context], "once each");
    assert_eq!((destroy(&world, world.root, context), used(&world)), (Err(Errno::EINVAL), 0));
    let unwritable = [1, NOWHERE];
    assert_eq!(world.call(world.root, nr::IO_SETUP, &unwritable), Err(Errno::EFAULT));
}

#[test]
fn events_are_handed_over_once_whenever_vfs_dies() {
    for death in 1..4 {
        let (mut world, file, context) = begun();
        assert_eq!(submit(&world, world.root, context, &[iocb(file, PREAD, DATA, 4, 0); 5]), Ok(5));
        let arguments = collect_arguments(&world, world.root, context, 1, 3);
        let (result, _) = world.call_with_deaths(&[death], world.root, nr::IO_GETEVENTS, &arguments);
        assert_eq!(result, Ok(3));
        assert_eq!(events_at(&world, world.root, 3).iter().map(|event| event.1).collect::<Vec<_>>(), [0, 1, 2]);
        world.restart_vfs();
        assert_eq!(world.repeat_call(world.root, nr::IO_GETEVENTS, &arguments), Some(Ok(3)), "as before");
        let rest = collect(&world, world.root, context, 8).unwrap();
        assert_eq!(rest.iter().map(|event| event.1).collect::<Vec<_>>(), [3, 4]);
    }
}

#[test]
fn waits_and_submissions_go_on_when_they_come_again() {
    let (mut world, file, context) = begun();
    let (read, write) = world.pipe(world.root, 0);
    let (waiter, submitter) = (thread(&world, 300), thread(&world, 301));
    let iocbs = [iocb(file, PREAD, DATA, 4, 0), iocb(read, PREAD, DATA + 8, 8, 0), iocb(file, PREAD, DATA, 2, 0)];
    let submission = requests(&world, submitter, context, &iocbs);
    assert_eq!(world.begin_call(submitter, nr::IO_SUBMIT, &submission), None);
    assert_eq!(wait(&world, waiter, context, 3), None);
    let waiting = [context, 3, 16, EVENTS, 0];
    world.restart_vfs();
    for program in [waiter, submitter] {
        world.machine.forget_request(program);
    }
    assert_eq!(world.repeat_earlier(2, submitter, nr::IO_SUBMIT, &submission), None);
    assert_eq!(world.repeat_earlier(1, waiter, nr::IO_GETEVENTS, &waiting), None);
    assert_eq!(world.write(world.root, write, b"text"), Ok(4));
    assert_eq!((world.result(submitter), world.result(waiter)), (Some(Ok(3)), Some(Ok(3))));
    assert_eq!(events_at(&world, waiter, 3).iter().map(|event| event.1).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn what_is_noted_of_a_request_does_not_concern_the_next() {
    const FULL: u64 = 65_536;
    let (mut world, _, context) = begun();
    let (read, write) = world.pipe(world.root, 0);
    let other = thread(&world, 300);
    let iocbs = [iocb(write, PWRITE, DATA, FULL + PIPE_BUF, 0), iocb(write, PWRITE, DATA, PIPE_BUF, 0)];
    // Its memory is used from DATA on.
    let [iocbs_at, pointers] = [MEMORY.end - 0x1000, MEMORY.end - 0x2000];
    put(&world, other, iocbs_at, iocbs.as_flattened());
    put(&world, other, pointers, &[iocbs_at, iocbs_at + 64]);
    let submission = [context, 2, pointers];
    assert_eq!(world.begin_call(other, nr::IO_SUBMIT, &submission), None);
    assert_eq!(world.read(world.root, read, PIPE_BUF as usize).map(|bytes| bytes.len()), Ok(4096));
    assert_eq!((world.result(other), used(&world)), (None, 8), "the first has ended, the second waits for room");
    put(&world, world.root, TIME, &[0, 0]);
    let now = world.call(world.root, nr::IO_GETEVENTS, &[context, 0, 1, EVENTS, TIME]);
    assert_eq!((now, world.read_words(world.root, EVENTS, 3)[2]), (Ok(1), FULL + PIPE_BUF));
    world.restart_vfs();
    world.machine.forget_request(other);
    assert_eq!(world.repeat_earlier(3, other, nr::IO_SUBMIT, &submission), None);
    let rest = [(); 17].map(|()| world.read(world.root, read, PIPE_BUF as usize).map(|bytes| bytes.len()));
    assert_eq!((rest, world.result(other)), ([Ok(4096); 17], Some(Ok(2))));
}
