//! What holds between requests: every page, inode and entry has one owner, and every count is right.

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use fs::file_system::{EntrySink, NodeId, S_IFLNK, S_IFMT, S_IFREG};

use crate::entry;
use crate::inode::{self, Inode, POINTERS, ROOT, SHORT_TARGET};
use crate::memory::Memory;
use crate::pages::{self, LEVELS, SPAN};
use crate::plan::PAGE;
use crate::volume::Tmpfs;

struct Owners(Vec<Option<std::string::String>>);

impl Owners {
    fn take(&mut self, page: u32, who: &str) {
        assert!(page > 0 && (page as usize) < self.0.len(), "{who} has page {page}, which was never used");
        let before = self.0[page as usize].replace(who.into());
        assert_eq!(before, None, "page {page} is of {who}, too");
    }

    /// Takes a tree whose pages begin at `index` of a file. Returns the number of pages with content.
    fn take_tree(&mut self, memory: &Memory, page: u32, level: usize, index: u64, end: u64, who: &str) -> u32 {
        self.take(page, who);
        if level == 0 {
            assert!(index < end, "{who} has page {index} behind its end");
            return 1;
        }
        let below = (SPAN as u64).pow(level as u32 - 1);
        let start = memory.places().page(page);
        let children = (0..SPAN).map(|slot| (slot as u64, memory.half(start + 4 * slot)));
        let children = children.filter(|(_, child)| *child != 0);
        children.map(|(slot, child)| self.take_tree(memory, child, level - 1, index + slot * below, end, who)).sum()
    }
}

/// The whole names of a directory, from its entries.
#[derive(Default)]
struct Listed(Vec<(Vec<u8>, NodeId, u64)>);

impl EntrySink for Listed {
    fn entry(&mut self, node: NodeId, next: u64, _: u32, name: &[u8]) -> bool {
        self.0.push((name.to_vec(), node, next));
        true
    }
}

/// Fails unless everything in the file system agrees.
pub fn check(volume: &Tmpfs) {
    let memory = &volume.memory;
    check_pages(memory);
    check_names(memory);
}

fn check_pages(memory: &Memory) {
    let mut owners = Owners(vec![None; pages::fresh(memory) as usize]);
    let free = pages::list(memory, 0);
    free.iter().for_each(|&page| owners.take(page, "the list of free pages"));
    let never_used = memory.places().plan().pages() - (owners.0.len() - 1);
    assert_eq!(free.len() + never_used, pages::free(memory) as usize);
    for level in 1..=LEVELS {
        for page in pages::list(memory, level) {
            owners.take_tree(memory, page, level, 0, u64::MAX, "what is to be freed");
        }
    }
    for inode in Inode::all(memory) {
        check_content(memory, inode, &mut owners);
    }
    let lost: Vec<_> = (1..owners.0.len()).filter(|&page| owners.0[page].is_none()).collect();
    assert!(lost.is_empty(), "nobody has the pages {lost:?}");
}

fn check_content(memory: &Memory, inode: Inode, owners: &mut Owners) {
    let who = std::format!("inode {}", inode.number());
    let attributes = inode.attribute_page(memory);
    if attributes != 0 {
        owners.take(attributes, &who);
    }
    let size = inode.size(memory);
    match inode.mode(memory) & S_IFMT {
        S_IFLNK if size > SHORT_TARGET as u64 => owners.take(memory.half(inode.pointer(0)), &who),
        S_IFREG => {
            let (mut start, mut count, end) = (0, 0, size.div_ceil(PAGE as u64));
            for pointer in 0..POINTERS {
                let levels = (pointer + 1).saturating_sub(POINTERS - LEVELS);
                let page = memory.half(inode.pointer(pointer));
                if page != 0 {
                    let found = owners.take_tree(memory, page, levels, start, end, &who);
                    assert!(levels == 0 || found == memory.half(pages::count_place(memory, page)), "{who}");
                    count += found;
                }
                start += (SPAN as u64).pow(levels as u32);
            }
            assert_eq!(count, inode.pages(memory), "{who}");
        }
        _ => {}
    }
}

fn check_names(memory: &Memory) {
    let mut links = BTreeMap::from([(ROOT, 2)]);
    let (mut names, mut nameless) = (0, 0);
    for directory in Inode::all(memory).filter(|inode| inode.is_directory(memory)) {
        let mut listed = Listed::default();
        entry::list(memory, directory, 2, &mut listed);
        assert_eq!(listed.0.len() as u64, directory.size(memory));
        assert!(listed.0.is_sorted_by(|one, other| one.2 > other.2), "the newest name is not first");
        for (name, node, _) in listed.0 {
            let node = Inode::open(memory, node).expect("a name is of an inode in use");
            let name = entry::Name::new(memory, directory, &name).unwrap();
            assert_eq!(name.find(memory).map(|entry| entry.node(memory)), Some(node));
            names += 1;
            *links.entry(node.number()).or_default() += 1;
            if node.is_directory(memory) {
                assert_eq!(node.parent(memory), Ok(directory));
                *links.entry(node.number()).or_default() += 1;
                *links.entry(directory.number()).or_default() += 1;
            }
        }
    }
    for inode in Inode::all(memory) {
        let found = links.get(&inode.number()).copied().unwrap_or(0);
        assert_eq!(inode.links(memory), found, "links of inode {}", inode.number());
        assert!(found > 0 || inode.uses(memory) > 0, "inode {} is nobody's", inode.number());
        nameless += usize::from(found == 0 || inode.number() == ROOT);
    }
    let (used, free) = (Inode::all(memory).count(), inode::free_list(memory));
    assert_eq!(used + free.len(), Inode::numbers(memory).len());
    assert!(free.iter().all(|&number| Inode::open(memory, number.into()).is_err()));
    assert_eq!(names + entry::free_list(memory).len(), entry::fresh(memory) as usize - 1);
    assert_eq!(names + nameless + inode::room(memory) as usize, memory.places().plan().inodes());
}
