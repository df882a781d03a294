//! Each rule once, by itself.

use super::*;
use crate::{limits::SYSTEM_PROCESSES, rights::Trap};
use std::vec::Vec;

/// A container with a record of whose calls have ended.
struct World {
    container: Rendezvous<u32>,
    ended: Vec<(i32, End<u32>)>,
}

impl World {
    fn new(numbers: &[i32]) -> World {
        let mut container = Rendezvous::new();
        for number in numbers {
            container.bind(slot(*number), Place::Here).unwrap();
        }
        World { container, ended: Vec::new() }
    }

    fn name(&self, number: i32) -> Endpoint {
        self.container.endpoint(slot(number)).unwrap()
    }

    fn send(&mut self, who: i32, to: i32, message: u32) -> Turn<u32> {
        let to = self.name(to);
        self.container.send(slot(who), to, message, Wait::Yes, &mut record(&mut self.ended))
    }

    fn send_receive(&mut self, who: i32, to: i32, message: u32) -> Turn<u32> {
        let to = self.name(to);
        self.container.send_receive(slot(who), to, message, Wait::Yes, &mut record(&mut self.ended))
    }

    fn receive(&mut self, who: i32, from: Option<i32>) -> Turn<u32> {
        let from = from.map_or(Endpoint::ANY, |from| self.name(from));
        self.container.receive(slot(who), from, Wait::Yes, &mut record(&mut self.ended))
    }

    fn notify(&mut self, who: i32, to: i32) -> Result<(), Error> {
        let to = self.name(to);
        self.container.notify(slot(who), to, false, &mut record(&mut self.ended))
    }

    fn reply(&mut self, who: i32, to: i32, message: u32) -> Result<(), Error> {
        let to = self.name(to);
        self.container.reply(slot(who), to, message, &mut record(&mut self.ended))
    }

    fn unbind(&mut self, number: i32) {
        self.container.unbind(slot(number), &mut record(&mut self.ended)).unwrap();
    }

    /// Takes the record, when the container is in order.
    fn ended(&mut self) -> Vec<(i32, End<u32>)> {
        assert_eq!(self.container.check(), Ok(()));
        std::mem::take(&mut self.ended)
    }
}

fn record(list: &mut Vec<(i32, End<u32>)>) -> impl Ended<u32> {
    |who: Number, end| list.push((who.get(), end))
}

fn slot(number: i32) -> Number {
    Number::new(number).unwrap()
}

fn message(from: Endpoint, message: u32) -> End<u32> {
    End::Received(Received::Message(from, message))
}

fn failed(error: Error) -> Turn<u32> {
    Turn::Ended(End::Failed(error))
}

#[test]
fn a_message_waits_for_its_receiver_and_a_receiver_for_its_message() {
    let mut world = World::new(&[100, 101]);
    let [first, second] = [100, 101].map(|number| world.name(number));
    assert_eq!(world.send(100, 101, 7), Turn::Waits);
    assert_eq!(world.receive(101, None), Turn::Ended(message(first, 7)));
    assert_eq!(world.ended(), [(100, End::Sent)]);
    assert_eq!(world.receive(100, Some(101)), Turn::Waits);
    assert_eq!(world.send(101, 100, 8), Turn::Ended(End::Sent));
    assert_eq!(world.ended(), [(100, message(second, 8))]);
}

#[test]
fn the_sender_that_waits_longest_is_first_and_a_named_one_before_it() {
    let mut world = World::new(&[100, 101, 102, 103]);
    for sender in [103, 101, 102] {
        assert_eq!(world.send(sender, 100, sender as u32), Turn::Waits);
    }
    let names = [101, 102, 103].map(|number| world.name(number));
    assert_eq!(world.receive(100, Some(102)), Turn::Ended(message(names[1], 102)));
    assert_eq!(world.receive(100, None), Turn::Ended(message(names[2], 103)));
    assert_eq!(world.receive(100, None), Turn::Ended(message(names[0], 101)));
    assert_eq!(world.receive(100, None), Turn::Waits);
}

#[test]
fn sendrec_waits_for_the_answer_of_its_peer_and_takes_no_notification_for_it() {
    let mut world = World::new(&[1, 2, 3]);
    assert_eq!(world.receive(2, None), Turn::Waits);
    assert_eq!(world.send_receive(1, 2, 5), Turn::Waits);
    assert_eq!(world.notify(2, 1), Ok(()));
    assert_eq!(world.reply(3, 1, 0), Err(Error::BadState));
    assert_eq!(world.reply(2, 1, 6), Ok(()));
    let [first, second] = [1, 2].map(|number| world.name(number));
    assert_eq!(world.ended(), [(2, message(first, 5)), (1, message(second, 6))]);
    assert_eq!(world.receive(1, None), Turn::Ended(End::Received(Received::Notification(second))));
}

#[test]
fn notifications_are_one_for_each_source_and_come_before_messages() {
    let mut world = World::new(&[1, 2, 3]);
    assert_eq!(world.send(2, 1, 9), Turn::Waits);
    assert_eq!([world.notify(3, 1), world.notify(3, 1)], [Ok(()), Err(Error::Overrun)]);
    let wait = |world: &mut World| world.container.receive_request(slot(1), Wait::No, &mut record(&mut world.ended));
    let [second, third] = [2, 3].map(|number| world.name(number));
    assert_eq!(wait(&mut world), Turn::Ended(message(second, 9)));
    assert_eq!(wait(&mut world), failed(Error::Again));
    assert_eq!(world.receive(1, Some(2)), Turn::Waits);
    assert_eq!(world.notify(2, 1), Ok(()));
    assert_eq!(world.receive(1, None), Turn::Ended(End::Received(Received::Notification(third))));
}

#[test]
fn only_system_processes_notify_and_others_are_notified_while_they_wait() {
    let mut world = World::new(&[SYSTEM_PROCESSES as i32 - 1, SYSTEM_PROCESSES as i32]);
    assert_eq!(world.notify(64, 63), Err(Error::Privileges));
    assert_eq!(world.notify(63, 64), Err(Error::Privileges));
    assert_eq!(world.receive(64, None), Turn::Waits);
    assert_eq!(world.notify(63, 64), Ok(()));
}

#[test]
fn circles_are_refused_and_answers_are_none() {
    let mut world = World::new(&[100, 101, 102]);
    assert_eq!([world.send(100, 101, 0), world.send_receive(101, 102, 0)], [Turn::Waits; 2]);
    assert_eq!(world.send(102, 100, 0), failed(Error::Locked));
    assert_eq!(world.receive(102, Some(100)), failed(Error::Locked));
    assert_eq!(world.receive(102, None), Turn::Ended(message(world.name(101), 0)));
    assert_eq!(world.send(102, 101, 1), Turn::Ended(End::Sent));
}

#[test]
fn the_end_of_a_process_ends_the_waits_for_it_as_each_call_says() {
    let mut world = World::new(&[100, 101, 102, 103, 104]);
    let old = world.name(100);
    world.send(101, 100, 0);
    world.receive(102, Some(100));
    world.send_receive(103, 100, 0);
    world.receive(100, Some(103));
    world.unbind(100);
    let ends = [(101, Error::DestinationDied), (102, Error::SourceDied), (103, Error::PeerDied)];
    assert_eq!(world.ended(), ends.map(|(who, error)| (who, End::Failed(error))));
    let call = |world: &mut World| world.container.send(slot(104), old, 0, Wait::Yes, &mut |_: Number, _: End<u32>| {});
    assert_eq!(call(&mut world), failed(Error::DestinationDied));
    world.container.bind(slot(100), Place::Here).unwrap();
    assert_eq!(call(&mut world), failed(Error::StaleEndpoint));
}

#[test]
fn the_name_of_a_system_process_is_its_successors() {
    let mut world = World::new(&[5, 100]);
    let name = world.name(5);
    world.unbind(5);
    assert_eq!(world.container.bind(slot(5), Place::Here), Ok(name));
}

#[test]
fn threads_are_bound_beside_their_leader_and_go_with_it() {
    let mut world = World::new(&[100, 101]);
    assert_eq!(world.container.bind_thread(slot(110), slot(99)), Err(Error::GroupLeader));
    let thread = world.container.bind_thread(slot(110), slot(100)).unwrap();
    assert_eq!(world.container.bind_thread(slot(111), slot(110)), Err(Error::GroupLeader));
    assert_eq!(world.container.bind_thread(slot(101), slot(100)), Err(Error::SlotUsed));
    world.receive(101, Some(110));
    world.unbind(100);
    assert_eq!(world.ended(), [(101, End::Failed(Error::SourceDied))]);
    assert_eq!(world.container.locate(thread), Err(Error::DestinationDied));
}

#[test]
fn blocks_are_copied_between_those_who_wait_and_not_within_a_group() {
    let mut world = World::new(&[100, 101, 102]);
    world.container.bind_thread(slot(110), slot(100)).unwrap();
    let [first, second, thread] = [100, 101, 110].map(|number| world.name(number));
    let check = |world: &World, caller, from, to| world.container.check_copy(slot(caller), from, to, |_| false);
    assert_eq!(check(&world, 102, first, second), Err(Error::BadState));
    assert_eq!(check(&world, 100, Endpoint::SELF, thread), Err(Error::BadState));
    world.receive(101, None);
    world.receive(110, None);
    assert_eq!(check(&world, 100, Endpoint::SELF, thread), Err(Error::NotPermitted));
    assert_eq!(check(&world, 100, second, Endpoint::SELF), Ok((slot(101), slot(100))));
    assert_eq!(check(&world, 102, thread, second), Ok((slot(110), slot(101))));
    assert_eq!(check(&world, 102, Endpoint::ANY, second), Err(Error::BadPeer));
}

#[test]
fn a_wait_ends_by_its_limit_a_signal_or_another_process() {
    let mut world = World::new(&[100, 101]);
    let end = |world: &mut World, error| world.container.end_wait(slot(100), error, &mut record(&mut world.ended));
    assert_eq!(end(&mut world, Error::TimedOut), Err(Error::Running));
    world.send(100, 101, 0);
    assert_eq!(end(&mut world, Error::TimedOut), Ok(()));
    world.receive(100, None);
    let name = world.name(100);
    assert_eq!(world.container.wake_up(name, &mut record(&mut world.ended)), Ok(()));
    assert_eq!(world.container.wake_up(name, &mut record(&mut world.ended)), Err(Error::Running));
    let ends = [Error::TimedOut, Error::WokenUp].map(|error| (100, End::Failed(error)));
    assert_eq!(world.ended(), ends);
}

#[test]
fn rights_limit_calls_and_peers() {
    let mut world = World::new(&[100, 101]);
    let full = Rights::of_new(slot(100));
    let mut others = SlotSet::ALL;
    others.remove(slot(101));
    for (rights, error) in [
        (Rights { traps: !(1 << Trap::Send as u32), ..full }, Error::CallDenied),
        (Rights { sends_to: others, ..full }, Error::CallDenied),
    ] {
        world.container.set_rights(slot(100), rights).unwrap();
        assert_eq!(world.send(100, 101, 0), failed(error));
        assert_eq!(world.receive(100, Some(101)), Turn::Waits);
        world.container.end_wait(slot(100), Error::Interrupted, &mut |_: Number, _: End<u32>| {}).unwrap();
    }
    world.container.set_rights(slot(100), Rights { receives_from: others, ..full }).unwrap();
    assert_eq!(world.receive(100, Some(101)), failed(Error::CallDenied));
    assert_eq!(world.send(101, 100, 0), failed(Error::CallDenied));
}

#[test]
fn nobody_names_himself_nobody_everybody_or_another_node() {
    let mut world = World::new(&[100]);
    world.container.bind(slot(101), Place::There(1)).unwrap();
    assert_eq!(world.send(100, 100, 0), failed(Error::BadPeer));
    assert_eq!(world.receive(100, Some(100)), failed(Error::BadPeer));
    assert_eq!(world.send(100, 101, 0), failed(Error::NoProxy));
    for nobody in [Endpoint::ANY, Endpoint::NONE] {
        let turn = world.container.send(slot(100), nobody, 0, Wait::Yes, &mut record(&mut world.ended));
        assert_eq!(turn, failed(Error::BadPeer));
    }
}
