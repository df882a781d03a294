//! Who has sent a message: `SO_PASSCRED` and `SCM_CREDENTIALS`.

use super::{
    messages::pair_of,
    rights::{CONTROL, ROOM, control, receiving, sending},
    *,
};

const SCM_CREDENTIALS: u64 = 2;
const SO_PASSCRED: u64 = 16;
const SOCK_SEQPACKET: u64 = 5;
const NOBODY: [u32; 3] = [0, 65_534, 65_534];

fn pass(world: &World, who: Endpoint, socket: u64, on: u64) {
    let address = world.words(who, &[on]);
    assert_eq!(world.call(who, nr::SETSOCKOPT, &[socket, SOL_SOCKET, SO_PASSCRED, address, 4]), Ok(0));
}

fn send_as(world: &World, who: Endpoint, socket: u64, ids: &[u32]) -> Result<u64> {
    let arguments = sending(world, who, socket, b"me", &control(SCM_CREDENTIALS, ids));
    world.call(who, nr::SENDMSG, &arguments)
}

/// Text and sender of the next message.
fn next(world: &World, socket: u64) -> (Vec<u8>, Option<[u32; 3]>) {
    let arguments = receiving(world, world.root, socket, ROOM, MSG_DONTWAIT);
    let bytes = world.call(world.root, nr::RECVMSG, &arguments).expect("there is something");
    let text = world.machine.read(world.root, DATA, bytes as usize);
    let length = world.read_words(world.root, arguments[1], 7)[5];
    let words: Vec<u32> =
        world.read_words(world.root, CONTROL, 4).iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).collect();
    if length == 0 {
        return (text, None);
    }
    assert_eq!((length, &words[..4]), (32, &[28, 0, 1, 2][..]));
    (text, Some([words[4], words[5], words[6]]))
}

#[test]
fn a_receiver_that_asks_is_told_who_has_sent() {
    for kind in [SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM] {
        let mut world = World::new();
        let (one, two) = pair_of(&world, kind);
        let user = world.user(1000, 100);
        let pid = user.slot() as u32;
        world.write(user, one, b"before").unwrap();
        assert_eq!(next(&world, two), (b"before".to_vec(), None));
        world.write(user, one, b"unknown").unwrap();
        pass(&world, world.root, two, 1);
        world.write(user, one, b"known").unwrap();
        world.restart_vfs();
        assert_eq!(next(&world, two), (b"unknown".to_vec(), Some(NOBODY)));
        assert_eq!(next(&world, two), (b"known".to_vec(), Some([pid, 1000, 100])));
        world.restart_vfs();
        world.write(user, one, b"still").unwrap();
        assert_eq!(next(&world, two), (b"still".to_vec(), Some([pid, 1000, 100])));
        pass(&world, world.root, two, 0);
        world.write(user, one, b"after").unwrap();
        assert_eq!(next(&world, two), (b"after".to_vec(), None));
        pass(&world, world.root, one, 1);
        world.write(user, one, b"told").unwrap();
        pass(&world, world.root, two, 1);
        assert_eq!(next(&world, two), (b"told".to_vec(), Some([pid, 1000, 100])));
    }
}

#[test]
fn a_read_of_a_stream_is_of_one_sender() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    let user = world.user(1000, 100);
    let pid = user.slot() as u32;
    pass(&world, world.root, two, 1);
    for (who, text) in [(user, b"ab"), (user, b"cd"), (world.root, b"ef"), (user, b"gh")] {
        assert_eq!(world.write(who, one, text), Ok(2));
    }
    assert_eq!(world.read(world.root, two, 1).unwrap(), b"a");
    assert_eq!(next(&world, two), (b"bcd".to_vec(), Some([pid, 1000, 100])));
    assert_eq!(world.read(world.root, two, 10).unwrap(), b"ef");
    assert_eq!(next(&world, two), (b"gh".to_vec(), Some([pid, 1000, 100])));
    world.close(world.root, one).unwrap();
    world.close(user, one).unwrap();
    assert_eq!(next(&world, two), (b"".to_vec(), Some([0; 3])), "as on Linux");
}

#[test]
fn nobody_but_root_sends_as_another() {
    for kind in [SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM] {
        let world = World::new();
        let (one, two) = pair_of(&world, kind);
        let user = world.user(1000, 100);
        world.set_ids(user, (1001, 101), (1000, 100), &[]);
        let pid = user.slot() as u32;
        pass(&world, world.root, two, 1);
        for ids in [[pid, 1000, 100], [pid, 1001, 101], [pid, 1000, 101]] {
            assert_eq!(send_as(&world, user, one, &ids), Ok(2));
            assert_eq!(next(&world, two), (b"me".to_vec(), Some(ids)));
        }
        for ids in [[pid + 1, 1000, 100], [pid, 0, 100], [pid, 1000, 0], [1, 1000, 100]] {
            assert_eq!(send_as(&world, user, one, &ids), Err(Errno::EPERM));
        }
        assert_eq!(send_as(&world, user, one, &[pid, 1000]), Err(Errno::EINVAL));
        assert_eq!(send_as(&world, world.root, one, &[pid, 7, 8]), Ok(2));
        assert_eq!(next(&world, two), (b"me".to_vec(), Some([pid, 7, 8])));
        assert_eq!(send_as(&world, world.root, one, &[31_000, 0, 0]), Err(Errno::ESRCH));
    }
}
