//! A file system in memory that does what POSIX says, to compare with.

use std::collections::BTreeMap;

use fs::Errno;
use fs::file_system::{FileSystem, NodeId, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};

use super::{list, read_all};

pub type Name = Vec<u8>;

#[derive(Clone, Debug)]
pub enum Content {
    Directory(BTreeMap<Name, usize>),
    File(Vec<u8>),
    Link(Vec<u8>),
}

#[derive(Clone, Debug)]
pub struct Node {
    pub content: Content,
    pub parent: usize,
    pub links: u32,
}

/// Nodes by number; node 0 is the root.
#[derive(Clone)]
pub struct Model {
    pub nodes: Vec<Node>,
}

impl Model {
    pub fn new() -> Self {
        let root = Node { content: Content::Directory(BTreeMap::new()), parent: 0, links: 2 };
        Model { nodes: vec![root] }
    }

    pub fn entries(&self, dir: usize) -> &BTreeMap<Name, usize> {
        match &self.nodes[dir].content {
            Content::Directory(entries) => entries,
            _ => panic!("{dir} is no directory"),
        }
    }

    pub fn entries_mut(&mut self, dir: usize) -> &mut BTreeMap<Name, usize> {
        match &mut self.nodes[dir].content {
            Content::Directory(entries) => entries,
            _ => panic!("{dir} is no directory"),
        }
    }

    pub fn data_mut(&mut self, file: usize) -> &mut Vec<u8> {
        match &mut self.nodes[file].content {
            Content::File(data) => data,
            _ => panic!("{file} is no file"),
        }
    }

    pub fn is_directory(&self, node: usize) -> bool {
        matches!(self.nodes[node].content, Content::Directory(_))
    }

    pub fn add(&mut self, dir: usize, name: &[u8], content: Content) -> Result<usize, Errno> {
        if self.entries(dir).contains_key(name) {
            return Err(Errno::EEXIST);
        }
        let is_directory = matches!(content, Content::Directory(_));
        let links = if is_directory { 2 } else { 1 };
        self.nodes.push(Node { content, parent: dir, links });
        let node = self.nodes.len() - 1;
        self.entries_mut(dir).insert(name.to_vec(), node);
        if is_directory {
            self.nodes[dir].links += 1;
        }
        Ok(node)
    }

    pub fn link(&mut self, dir: usize, name: &[u8], node: usize) -> Result<(), Errno> {
        if self.is_directory(node) {
            return Err(Errno::EPERM);
        }
        if self.entries(dir).contains_key(name) {
            return Err(Errno::EEXIST);
        }
        self.entries_mut(dir).insert(name.to_vec(), node);
        self.nodes[node].links += 1;
        Ok(())
    }

    pub fn unlink(&mut self, dir: usize, name: &[u8]) -> Result<(), Errno> {
        let node = *self.entries(dir).get(name).ok_or(Errno::ENOENT)?;
        if self.is_directory(node) {
            return Err(Errno::EISDIR);
        }
        self.entries_mut(dir).remove(name);
        self.nodes[node].links -= 1;
        Ok(())
    }

    pub fn remove_dir(&mut self, dir: usize, name: &[u8]) -> Result<(), Errno> {
        let node = *self.entries(dir).get(name).ok_or(Errno::ENOENT)?;
        if !self.is_directory(node) {
            return Err(Errno::ENOTDIR);
        }
        if !self.entries(node).is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.entries_mut(dir).remove(name);
        self.nodes[node].links = 0;
        self.nodes[dir].links -= 1;
        Ok(())
    }

    fn is_inside(&self, mut dir: usize, ancestor: usize) -> bool {
        loop {
            if dir == ancestor {
                return true;
            }
            if dir == 0 {
                return false;
            }
            dir = self.nodes[dir].parent;
        }
    }

    pub fn rename(&mut self, old: usize, old_name: &[u8], new: usize, new_name: &[u8]) -> Result<(), Errno> {
        let node = *self.entries(old).get(old_name).ok_or(Errno::ENOENT)?;
        let target = self.entries(new).get(new_name).copied();
        if target == Some(node) {
            return Ok(());
        }
        let moves_directory = self.is_directory(node);
        if moves_directory && self.is_inside(new, node) {
            return Err(Errno::EINVAL);
        }
        if let Some(target) = target {
            match (moves_directory, self.is_directory(target)) {
                (true, false) => return Err(Errno::ENOTDIR),
                (false, true) => return Err(Errno::EISDIR),
                (true, true) if !self.entries(target).is_empty() => return Err(Errno::ENOTEMPTY),
                (true, true) => {
                    self.nodes[target].links = 0;
                    self.nodes[new].links -= 1;
                }
                (false, false) => self.nodes[target].links -= 1,
            }
        }
        self.entries_mut(old).remove(old_name);
        self.entries_mut(new).insert(new_name.to_vec(), node);
        if moves_directory {
            self.nodes[node].parent = new;
            self.nodes[old].links -= 1;
            self.nodes[new].links += 1;
        }
        Ok(())
    }

    pub fn exchange(
        &mut self,
        first: usize,
        first_name: &[u8],
        second: usize,
        second_name: &[u8],
    ) -> Result<(), Errno> {
        let one = *self.entries(first).get(first_name).ok_or(Errno::ENOENT)?;
        let other = *self.entries(second).get(second_name).ok_or(Errno::ENOENT)?;
        if one == other {
            return Ok(());
        }
        for (node, to) in [(one, second), (other, first)] {
            if self.is_directory(node) && self.is_inside(to, node) {
                return Err(Errno::EINVAL);
            }
        }
        for (node, name, from, to) in [(one, second_name, first, second), (other, first_name, second, first)] {
            self.entries_mut(to).insert(name.to_vec(), node);
            if self.is_directory(node) {
                self.nodes[node].parent = to;
                self.nodes[from].links -= 1;
                self.nodes[to].links += 1;
            }
        }
        Ok(())
    }

    pub fn write(&mut self, file: usize, offset: usize, bytes: &[u8]) {
        let data = self.data_mut(file);
        let end = offset + bytes.len();
        if data.len() < end {
            data.resize(end, 0);
        }
        data[offset..end].copy_from_slice(bytes);
    }

    /// Fails unless the volume's tree below `node` is the model's below `dir`.
    pub fn compare(&self, volume: &mut impl FileSystem, dir: usize, node: NodeId) {
        let mut names = BTreeMap::new();
        for (name, child, mode) in list(volume, node) {
            assert!(names.insert(name.clone(), (child, mode)).is_none(), "{name:?} twice");
        }
        assert_eq!(names.remove(&b"."[..]).unwrap().0, node);
        assert!(names.remove(&b".."[..]).is_some());
        names.remove(&b"lost+found"[..]);
        let expected: Vec<_> = self.entries(dir).keys().collect();
        assert_eq!(names.keys().collect::<Vec<_>>(), expected);
        for (name, &child) in self.entries(dir) {
            self.compare_node(volume, child, names[name].0, names[name].1);
            assert_eq!(volume.lookup(node, name), Ok(names[name].0));
        }
    }

    fn compare_node(&self, volume: &mut impl FileSystem, model: usize, node: NodeId, kind: u32) {
        let attributes = volume.attributes(node).unwrap();
        assert_eq!(attributes.links, self.nodes[model].links);
        let expected_kind = match &self.nodes[model].content {
            Content::Directory(_) => {
                self.compare(volume, model, node);
                S_IFDIR
            }
            Content::File(data) => {
                assert!(read_all(volume, node) == *data, "content of node {node} differs");
                S_IFREG
            }
            Content::Link(target) => {
                let mut bytes = vec![0; 5000];
                let len = volume.read_link(node, &mut bytes).unwrap();
                assert_eq!(&bytes[..len], target);
                S_IFLNK
            }
        };
        assert_eq!(attributes.mode & S_IFMT, expected_kind);
        assert!(kind == expected_kind || kind == 0);
    }
}
