//! What must hold after every request: each frame counted right, and the kernel's tables within what vm knows.

use crate::memory::frames::{Frame, OWN, Payer};
use crate::memory::object::ObjectId;
use crate::memory::pages::{Page, Seen};
use crate::server::Server;
use crate::simulation::{FIRST_FRAME, Simulation};
use crate::space::AddressSpace;
use crate::space::region::{Backing, Purpose};
use abi::container::CONTAINERS;
use abi::layout::{PAGE_BYTES, map};
use std::collections::BTreeMap;

/// Checks everything.
pub fn check(server: &Server<Simulation>) {
    check_frames(server);
    let mut spaces = 0;
    for space in server.processes.spaces() {
        spaces += 1;
        check_regions(space);
        check_tables(server, space);
    }
    check_attaches(server);
    let spares = server.memory.spares();
    assert!(spares.iter().all(|spare| server.memory.kernel.tables[&spare.0].is_empty()), "a spare space is not empty");
    assert_eq!(server.memory.kernel.tables.len(), spaces + spares.len(), "a kernel space is lost");
    assert!(server.processes.knows_free_places(), "a place for a space is lost");
}

fn check_frames(server: &Server<Simulation>) {
    let frames = &server.memory.frames;
    let mut users: BTreeMap<Frame, u16> = BTreeMap::new();
    let mut count = |frame: Frame| *users.entry(frame).or_default() += 1;
    let mut leaves = Seen::new();
    server.processes.spaces().for_each(|space| space.pages.owned_once(&mut leaves).for_each(&mut count));
    assert!(leaves.values().all(|&(seen, counted)| seen == counted), "leaves are counted wrong");
    server.memory.objects.iter().flat_map(|object| object.pages.owned()).for_each(|(_, frame)| count(frame));
    server.memory.objects.iter().flat_map(|object| object.unused_reserve()).for_each(&mut count);
    let loaded = server.memory.objects.iter().filter_map(|object| object.loaded.as_deref());
    loaded.flat_map(|loaded| loaded.tails).flatten().for_each(&mut count);
    server.dma.frames().for_each(&mut count);
    server.memory.kernel.donated.iter().for_each(|&frame| {
        users.insert(frame, OWN);
    });
    let zeros = 1;
    assert_eq!(frames.total() - frames.free(), users.len() + zeros, "frames are lost or found");
    let all = (FIRST_FRAME..FIRST_FRAME + frames.total() as u32).map(Frame);
    let wrong = all.filter(|frame| frames.users(*frame) != users.get(frame).copied().unwrap_or(0)).count();
    assert_eq!(wrong, zeros, "frames are counted wrong");
    check_payers(server, users.keys().copied());
}

/// What each container pays for is what is marked so, and the page tables of its spaces.
fn check_payers(server: &Server<Simulation>, used: impl Iterator<Item = Frame> + Clone) {
    let frames = &server.memory.frames;
    for payer in (1..CONTAINERS as u64).map(|number| Payer::container(number).expect("is one")) {
        let paid = used.clone().filter(|frame| frames.payer_of(*frame) == payer).count() as u64;
        let spaces = server.processes.spaces().filter(|space| space.payer() == payer);
        let tables = spaces.map(|space| space.table_frames).sum::<u64>();
        assert_eq!(frames.paid_by(payer), paid + tables, "{payer:?}");
    }
}

fn check_attaches(server: &Server<Simulation>) {
    let mut mapped: BTreeMap<ObjectId, u64> = BTreeMap::new();
    for region in server.processes.spaces().flat_map(|space| space.regions.iter()) {
        if let (Purpose::Segment, Backing::Object(id, _)) = (region.purpose, region.backing) {
            *mapped.entry(id).or_default() += 1;
        }
    }
    let counted = server.memory.objects.iter().map(|object| object.attaches.count).sum::<u64>();
    assert_eq!(counted, mapped.values().sum(), "mappings of segments are counted wrong");
    for (id, count) in mapped {
        assert_eq!(server.memory.objects.get(id).map(|object| object.attaches.count), Some(count));
    }
}

fn check_regions(space: &AddressSpace) {
    let mut last_end = 0;
    let mut pages = 0;
    for region in space.regions.iter() {
        assert!(region.start >= last_end && region.end > region.start);
        assert!(region.start % PAGE_BYTES == 0 && region.end % PAGE_BYTES == 0);
        last_end = region.end;
        pages += space.pages.count_in(region.first_page(), region.end_page());
    }
    assert_eq!(pages, space.pages.count(), "pages lie outside of regions");
}

fn check_tables(server: &Server<Simulation>, space: &AddressSpace) {
    for (&page, &(frame, flags)) in &server.memory.kernel.tables[&space.id.0] {
        let mut regions = space.regions.overlapping(page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
        let region = regions.next().expect("a page is mapped outside of regions");
        let is_sole = space.pages.is_sole(page, &server.memory.frames);
        let may_write = match (space.pages.get(page), region.backing) {
            (_, Backing::Device) => true,
            (Page::Owned(owned), _) => {
                assert_eq!(owned, frame);
                is_sole
            }
            (Page::Borrowed, Backing::Object(id, _) | Backing::Permanent(id, _)) => {
                let (_, index) = region.object_page(page).expect("an object");
                let object = server.memory.objects.get(id).expect("regions keep objects");
                let window = region.window(&server.memory).and_then(|window| window.frame(index));
                assert_eq!(object.pages.frame(index).or(window), Some(frame));
                region.shared
            }
            other => panic!("page {page:#x} is mapped but {other:?}"),
        };
        assert!(flags & map::WRITE == 0 || may_write && region.rights.0 & 2 != 0, "page {page:#x} is writable");
        assert!(flags & map::EXECUTE == 0 || region.rights.0 & 4 != 0, "page {page:#x} is executable");
        assert!(region.rights.0 != 0, "page {page:#x} is readable");
    }
}
