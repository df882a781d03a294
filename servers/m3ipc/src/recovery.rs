//! m3ipc has died, and its tables are as it left them.
//!
//! Whoever waited for an answer makes its call again, with the same number: it waits on, or gets the result that was ready
//! (`M3ipc::repeated`). Messages by the kernel's primitives have gone on meanwhile; notifications of the predecessor have not. A binding that was half made or half undone is undone here,
//! and the ends of processes that were missed are looked for.

use crate::server::M3ipc;
use crate::system::System;
use crate::threads::Place;

impl<S: System> M3ipc<S> {
    /// Makes the predecessor's tables consistent.
    pub fn recover(&mut self) {
        self.node.alarm_ns = 0;
        self.threads.recover();
        while let Some(place) = self.half_bound() {
            self.vacate(place.container, place.number);
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

    /// A slot that is occupied in the rendezvous or among the members, but not in both, or whose thread does not know of it.
    fn half_bound(&self) -> Option<Place> {
        self.containers.iter().find_map(|container| {
            let of_member = container.members.iter().find(|(number, member)| {
                let known = self.threads.get(member.thread).and_then(|known| known.place);
                container.machine.endpoint(*number).is_none() || known != Some(container.place(*number))
            });
            of_member.map(|(number, _)| container.place(number))
        })
    }
}
