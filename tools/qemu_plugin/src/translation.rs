//! Blocks and the pages they lie in, by number. QEMU translates a block anew now and then: it keeps its number as long as its code is the same.

use crate::qemu::Translated;
use profile::block::{self, Block, Blocks};
use profile::recording::Page;
use std::collections::HashMap;
use std::ptr;

const PAGE_BYTES: usize = abi::layout::PAGE_BYTES as usize;

/// What makes two blocks the same: page, address, number of instructions.
type Key = (u32, u64, usize);

/// All that was translated.
#[derive(Default)]
pub struct Translation {
    blocks: Blocks,
    known: HashMap<Key, u32>,
    pages: Vec<Page>,
    /// The newest page at each place of QEMU's memory.
    at: HashMap<usize, u32>,
}

impl Translation {
    /// The number of a block; `None`: it does not lie in memory.
    pub fn number(&mut self, block: &Translated) -> Option<u32> {
        let (first, last) = (block.instructions.first()?, block.instructions.last()?);
        if block.host.is_null() {
            return None;
        }
        let bytes: Vec<u8> = block.instructions.iter().flat_map(|one| one.bytes.iter().copied()).collect();
        let page = self.page(block.host, first.address, &bytes);
        let key = (page, first.address, block.instructions.len());
        let blocks = &mut self.blocks;
        Some(*self.known.entry(key).or_insert_with(|| {
            let lengths = block.instructions.iter().map(|one| one.bytes.len() as u8).collect();
            let end = block::end_of(last.address, &last.bytes);
            blocks.push(Block { address: first.address, page, lengths, end });
            blocks.len() as u32 - 1
        }))
    }

    /// All blocks.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Blocks and pages.
    pub fn into_parts(self) -> (Blocks, Vec<Page>) {
        (self.blocks, self.pages)
    }

    /// The number of the page at `host`, in which `bytes` lie; another one when they were others before.
    fn page(&mut self, host: *const u8, address: u64, bytes: &[u8]) -> u32 {
        let offset = host as usize % PAGE_BYTES;
        let start = host as usize - offset;
        let here = &bytes[..bytes.len().min(PAGE_BYTES - offset)];
        let page_address = address - offset as u64;
        if let Some(&known) = self.at.get(&start)
            && let Some(page) = self.pages.get(known as usize)
            && page.address == page_address
            && page.bytes[offset..offset + here.len()] == *here
        {
            return known;
        }
        let mut content = vec![0; PAGE_BYTES];
        // SAFETY: the guest's memory consists of whole pages, and QEMU has just read instructions from this one.
        unsafe { ptr::copy_nonoverlapping(host.sub(offset), content.as_mut_ptr(), PAGE_BYTES) };
        self.pages.push(Page { address: page_address, bytes: content });
        let number = self.pages.len() as u32 - 1;
        self.at.insert(start, number);
        number
    }
}
