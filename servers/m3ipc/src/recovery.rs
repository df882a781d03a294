//! m3ipc has died, and its tables are as it left them.
//!
//! Whoever waited for an answer makes its call again, with the same number: it waits on, or gets the result that was ready
//! (`M3ipc::repeated`). Messages by the kernel's primitives have gone on meanwhile; notifications of the predecessor have not. What had been decided about a member is done here (`container::Unfinished`),
//! and the ends of processes that were missed are looked for.

use crate::container::Container;
use crate::server::M3ipc;
use crate::system::System;
use crate::threads::Place;
use m3ipc::endpoint::Number;
use m3ipc::limits::SLOTS;
use m3ipc::rights::SlotSet;

impl<S: System> M3ipc<S> {
    /// Makes the predecessor's tables consistent.
    pub fn recover(&mut self) {
        self.node.alarm_ns = 0;
        self.threads.recover();
        self.containers.iter_mut().for_each(free_half_taken);
        while let Some(place) = self.next_unfinished() {
            self.finish(place);
        }
        let M3ipc { threads, containers, .. } = self;
        threads.for_each(|known| {
            let is_bound = |place: Place| {
                let container = containers.iter().find(|container| container.number == place.container);
                container.is_some_and(|container| container.members.get(place.number).is_some())
            };
            known.place = known.place.filter(|place| is_bound(*place));
        });
        self.threads.deadlines_passed();
        self.look_for_ends();
        self.tell_again();
    }

    /// Notifications that the predecessor had sent, and that were not received yet, were cancelled when it died: whoever has ever used primitives looks once
    /// more what m3ipc has for it, and whether it may use them.
    fn tell_again(&mut self) {
        let M3ipc { system, threads, .. } = self;
        threads.iter().filter(|known| known.was_in != 0).for_each(|known| system.notify(known.endpoint));
    }

    /// A member about which something has been decided that is not done.
    fn next_unfinished(&self) -> Option<Place> {
        self.containers.iter().find_map(|container| {
            let mut members = container.members.iter();
            members.find(|(_, member)| member.unfinished.is_some()).map(|(number, _)| container.place(number))
        })
    }
}

/// Frees the slots that were occupied in the rendezvous, but by no member yet. Those whose calls have ended, and who were not told, make them again.
fn free_half_taken(container: &mut Container) {
    container.ended = SlotSet::NONE;
    for number in (0..SLOTS).map(Number::at).filter(|number| container.members.get(*number).is_none()) {
        // Mostly it is free. Nobody has had time to wait for who is in it.
        let _ = container.machine.unbind(number, &mut |_, _| ());
    }
}
