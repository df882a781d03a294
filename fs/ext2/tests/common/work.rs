//! A random workload on a disk that is recorded, with the tree that there should be after each request.

use std::collections::BTreeMap;

use ext2::Ext2;
use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::{FileSystem, NodeId};

use super::disk::Disk;
use super::{ROOT_USER, Random, list, memory_of, options, read_all, write};

const ROOT: NodeId = 2;

/// What a tree holds: paths with the content of files; directories have none.
pub type Tree = BTreeMap<String, Option<Vec<u8>>>;

pub fn tree(volume: &mut Ext2<impl BlockDevice>) -> Tree {
    let mut found = Tree::new();
    add_below(volume, ROOT, "", &mut found);
    found
}

fn add_below(volume: &mut Ext2<impl BlockDevice>, dir: NodeId, path: &str, found: &mut Tree) {
    for (name, node, _) in list(volume, dir) {
        let name = String::from_utf8(name).unwrap();
        if [".", "..", "lost+found"].contains(&name.as_str()) {
            continue;
        }
        let path = format!("{path}/{name}");
        if volume.attributes(node).unwrap().is_directory() {
            add_below(volume, node, &path, found);
            found.insert(path, None);
        } else {
            let content = read_all(volume, node);
            found.insert(path, Some(content));
        }
    }
}

/// A random workload: the trees after each request, and how far the disk was then.
pub struct Work {
    pub volume: Ext2<Disk>,
    pub disk: Disk,
    random: Random,
    pub tree: Tree,
    /// After each request: the tree, the length of the log, whether it was a sync.
    pub moments: Vec<(Tree, usize, bool)>,
    /// Files in use that have no name.
    pub unnamed: Vec<NodeId>,
}

impl Work {
    pub fn node(&mut self, path: &str) -> NodeId {
        path.split('/').skip(1).fold(ROOT, |dir, name| match name {
            "" => dir,
            name => self.volume.lookup(dir, name.as_bytes()).unwrap(),
        })
    }

    fn done(&mut self, is_sync: bool) {
        self.volume.settle().unwrap();
        self.moments.push((self.tree.clone(), self.disk.log().len(), is_sync));
    }

    fn any(&mut self, is_directory: bool) -> Option<String> {
        let paths: Vec<_> = self.tree.iter().filter(|(_, content)| content.is_none() == is_directory).collect();
        let count = paths.len() as u64;
        (count > 0).then(|| paths[self.random.below(count) as usize].0.clone())
    }

    /// A new path in some directory, and that directory.
    fn new_path(&mut self, what: &str) -> (String, NodeId, String) {
        let parent = if self.random.below(3) == 0 { String::new() } else { self.any(true).unwrap_or_default() };
        let name = format!("{what}{}{}", self.random.below(1000), "-".repeat(self.random.below(60) as usize));
        let dir = self.node(&parent);
        (format!("{parent}/{name}"), dir, name)
    }

    fn step(&mut self) {
        match self.random.below(16) {
            0..=4 => self.make_file(),
            5 | 6 => self.append(),
            7 => self.truncate(),
            8 => self.make_directory(),
            9 | 10 => self.unlink(),
            11 => self.remove_directory(),
            12 | 13 => self.rename(),
            14 => self.put(),
            _ => {
                self.volume.sync().unwrap();
                self.done(true);
            }
        }
        self.volume.clean_up().unwrap();
    }

    fn make_file(&mut self) {
        let (path, dir, name) = self.new_path("f");
        if self.tree.contains_key(&path) {
            return;
        }
        let made = self.volume.make_node(dir, name.as_bytes(), 0o100_644, 0, ROOT_USER);
        if made == Err(Errno::ENOSPC) {
            return;
        }
        self.tree.insert(path.clone(), Some(Vec::new()));
        self.done(false);
        self.append_to(&path);
    }

    fn append(&mut self) {
        if let Some(path) = self.any(false) {
            self.append_to(&path);
        }
    }

    fn append_to(&mut self, path: &str) {
        let len = [100, 5000, 40_000][self.random.below(3) as usize];
        let data = if self.random.below(4) == 0 {
            // What looks like the journal.
            [0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 2].into_iter().cycle().take(len).collect()
        } else {
            self.random.bytes(len)
        };
        let node = self.node(path);
        let content = self.tree.get_mut(path).unwrap().as_mut().unwrap();
        if let Ok(done) = write(&mut self.volume, node, content.len() as u64, &data) {
            content.extend_from_slice(&data[..done]);
        }
        self.done(false);
    }

    /// To whole blocks: the rest of the last one is zeroed in place.
    fn truncate(&mut self) {
        let Some(path) = self.any(false) else { return };
        let node = self.node(&path);
        let size = [0, 4096, 16_384][self.random.below(3) as usize];
        let content = self.tree.get_mut(&path).unwrap().as_mut().unwrap();
        if size < content.len() {
            content.truncate(size);
            self.volume.truncate(node, size as u64).unwrap();
            self.done(false);
        }
    }

    fn make_directory(&mut self) {
        let (path, dir, name) = self.new_path("d");
        if self.volume.make_dir(dir, name.as_bytes(), 0o755, ROOT_USER).is_ok() {
            self.tree.insert(path, None);
            self.done(false);
        }
    }

    fn unlink(&mut self) {
        let Some(path) = self.any(false) else { return };
        let (parent, name) = path.rsplit_once('/').unwrap();
        let (dir, node) = (self.node(parent), self.node(&path));
        if self.random.below(3) == 0 {
            self.volume.get(node).unwrap();
            self.unnamed.push(node);
        }
        self.volume.unlink(dir, name.as_bytes()).unwrap();
        self.tree.remove(&path);
        self.done(false);
    }

    fn remove_directory(&mut self) {
        let Some(path) = self.any(true) else { return };
        let (parent, name) = path.rsplit_once('/').unwrap();
        let dir = self.node(parent);
        if self.volume.remove_dir(dir, name.as_bytes()).is_ok() {
            self.tree.remove(&path);
            self.done(false);
        }
    }

    /// Often over another file, which may be in use.
    fn rename(&mut self) {
        let Some(path) = self.any(false) else { return };
        let (parent, name) = path.rsplit_once('/').unwrap();
        let dir = self.node(parent);
        let (to, to_dir, to_name) = match self.any(false) {
            Some(to) if to != path && self.random.below(2) == 0 => {
                let (parent, name) = to.rsplit_once('/').unwrap();
                (to.clone(), self.node(parent), name.to_owned())
            }
            _ => self.new_path("r"),
        };
        if self.volume.rename(dir, name.as_bytes(), to_dir, to_name.as_bytes(), ROOT_USER).is_ok() {
            let content = self.tree.remove(&path).unwrap();
            self.tree.insert(to, content);
            self.done(false);
        }
    }

    fn put(&mut self) {
        if let Some(node) = self.unnamed.pop() {
            self.volume.put(node, 1).unwrap();
            self.done(false);
        }
    }
}

pub fn work(kind: (u32, &[&str]), cache_kib: usize, seed: u64, steps: u64) -> (Work, Vec<u8>) {
    let disk = Disk::with_kib(kind.0, kind.1);
    let mut volume = Ext2::mount(disk.clone(), options(), memory_of(cache_kib << 10)).unwrap();
    volume.sync().unwrap();
    let before = disk.bytes();
    disk.forget_log();
    let random = Random::new(seed);
    let (tree, moments, unnamed) = (Tree::new(), vec![(Tree::new(), 0, true)], Vec::new());
    let mut work = Work { volume, disk, random, tree, moments, unnamed };
    for _ in 0..steps {
        work.step();
    }
    (work, before)
}
