//! The files of an ext2 image that e2fsck has mended: an own reader, because what is tried here is Skink's.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;

const ROOT: usize = 2;
const DIRECT: usize = 12;
const POINTERS: usize = 40;
const KIND: u16 = 0xf000;
const DIRECTORY: u16 = 0x4000;
const REGULAR: u16 = 0x8000;
/// Where e2fsck puts what it finds without a name.
const FOUND: &str = "lost+found";

/// What a path names.
#[derive(Debug, PartialEq)]
pub enum Found {
    /// A directory.
    Directory,
    /// A file with its content.
    File(Vec<u8>),
    /// Anything else.
    Other,
}

/// Reads all files and directories.
///
/// # Errors
/// When the image is not what e2fsck would leave.
pub fn read(image: &[u8]) -> Result<BTreeMap<String, Found>> {
    let reader = Reader { image, block: 1024 << u32_at(image, 1024 + 24)? };
    let mut found = BTreeMap::new();
    reader.walk(ROOT, "", &mut found)?;
    Ok(found)
}

struct Reader<'a> {
    image: &'a [u8],
    block: usize,
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    Ok(u16::from_le_bytes(bytes.get(at..at + 2).context("beyond the end")?.try_into()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(bytes.get(at..at + 4).context("beyond the end")?.try_into()?))
}

impl<'a> Reader<'a> {
    fn bytes(&self, at: usize, length: usize) -> Result<&'a [u8]> {
        self.image.get(at..at + length).context("beyond the end of the disk")
    }

    fn inode(&self, number: usize) -> Result<&'a [u8]> {
        let superblock = self.bytes(1024, 1024)?;
        let per_group = u32_at(superblock, 40)? as usize;
        let size = usize::from(u16_at(superblock, 88)?);
        let (group, index) = ((number - 1) / per_group, (number - 1) % per_group);
        let descriptors = (u32_at(superblock, 20)? as usize + 1) * self.block;
        let table = u32_at(self.image, descriptors + group * 32 + 8)? as usize;
        self.bytes(table * self.block + index * size, size)
    }

    /// Blocks of a file, in order; 0 for a hole.
    fn blocks(&self, inode: &[u8], count: usize) -> Result<Vec<u32>> {
        let mut blocks = Vec::new();
        for pointer in 0..DIRECT {
            blocks.push(u32_at(inode, POINTERS + pointer * 4)?);
        }
        for levels in 1..=3 {
            if blocks.len() < count {
                self.add_tree(u32_at(inode, POINTERS + (DIRECT + levels - 1) * 4)?, levels, count, &mut blocks)?;
            }
        }
        blocks.truncate(count);
        Ok(blocks)
    }

    fn add_tree(&self, root: u32, levels: usize, count: usize, blocks: &mut Vec<u32>) -> Result<()> {
        let pointers = self.block / 4;
        if root == 0 {
            let holes = pointers.pow(levels as u32).min(count.saturating_sub(blocks.len()));
            blocks.extend(std::iter::repeat_n(0, holes));
            return Ok(());
        }
        let content = self.bytes(root as usize * self.block, self.block)?;
        for index in 0..pointers {
            let pointer = u32_at(content, index * 4)?;
            match levels {
                1 => blocks.push(pointer),
                _ if blocks.len() < count => self.add_tree(pointer, levels - 1, count, blocks)?,
                _ => break,
            }
        }
        Ok(())
    }

    fn content(&self, inode: &[u8]) -> Result<Vec<u8>> {
        let size = u32_at(inode, 4)? as usize;
        ensure!(size <= self.image.len() * 16, "a file of {size} bytes");
        let mut content = Vec::with_capacity(size);
        for block in self.blocks(inode, size.div_ceil(self.block))? {
            match block {
                0 => content.resize(content.len() + self.block, 0),
                block => content.extend_from_slice(self.bytes(block as usize * self.block, self.block)?),
            }
        }
        content.truncate(size);
        Ok(content)
    }

    fn walk(&self, directory: usize, path: &str, found: &mut BTreeMap<String, Found>) -> Result<()> {
        let content = self.content(self.inode(directory)?)?;
        let mut at = 0;
        while at < content.len() {
            let number = u32_at(&content, at)? as usize;
            let size = usize::from(u16_at(&content, at + 4)?);
            ensure!(size >= 8, "a directory entry of {size} bytes in '{path}'");
            let length = usize::from(*content.get(at + 6).context("beyond the end")?);
            let name = String::from_utf8_lossy(content.get(at + 8..at + 8 + length).context("beyond the end")?);
            at += size;
            if number == 0 || name == "." || name == ".." || (path.is_empty() && name == FOUND) {
                continue;
            }
            let path = if path.is_empty() { name.into_owned() } else { format!("{path}/{name}") };
            let inode = self.inode(number)?;
            match u16_at(inode, 0)? & KIND {
                DIRECTORY => {
                    found.insert(path.clone(), Found::Directory);
                    self.walk(number, &path, found)?;
                }
                REGULAR => drop(found.insert(path, Found::File(self.content(inode)?))),
                _ => drop(found.insert(path, Found::Other)),
            }
        }
        Ok(())
    }
}
