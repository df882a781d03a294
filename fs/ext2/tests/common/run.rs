//! Random operations on a file system, the same in every run, compared with a model in memory.
#![allow(dead_code)]

use std::collections::BTreeMap;

use fs::Errno;
use fs::file_system::{Allocation, Caller, FileSystem, NodeId, XattrMode};

use super::model::{Content, Model, Name};
use super::{ROOT_USER, Random, read_all, write};

/// A file system, and what it should be.
pub struct Run<F> {
    pub random: Random,
    pub volume: F,
    pub model: Model,
    /// The node of the volume for each node of the model.
    pub nodes: Vec<NodeId>,
    /// The extended attributes of nodes of the model, by their names.
    pub xattrs: BTreeMap<(usize, String), Vec<u8>>,
}

impl<F: FileSystem> Run<F> {
    /// Nothing has happened yet in the volume, which is empty.
    pub fn new(seed: u64, mut volume: F) -> Self {
        let (root, mut model) = (volume.root(), Model::new());
        model.nodes[0].links = volume.attributes(root).unwrap().links;
        Run { random: Random::new(seed), volume, model, nodes: vec![root], xattrs: BTreeMap::new() }
    }

    fn directory(&mut self) -> usize {
        let live = |&node: &usize| self.model.is_directory(node) && self.model.nodes[node].links > 0;
        let all: Vec<_> = (0..self.model.nodes.len()).filter(live).collect();
        all[self.random.below(all.len() as u64) as usize]
    }

    fn file(&mut self) -> Option<usize> {
        let nodes = &self.model.nodes;
        let live = |&node: &usize| matches!(nodes[node].content, Content::File(_)) && nodes[node].links > 0;
        let all: Vec<_> = (0..nodes.len()).filter(live).collect();
        (!all.is_empty()).then(|| all[self.random.below(all.len() as u64) as usize])
    }

    fn name(&mut self) -> Name {
        let number = self.random.below(60);
        let length = if number.is_multiple_of(7) { 200 } else { 1 + number as usize % 20 };
        format!("{number}-{}", "n".repeat(length)).into_bytes()
    }

    fn made(&mut self, model: Result<usize, Errno>, real: Result<NodeId, Errno>) {
        assert_eq!(model.err(), real.err());
        if let Ok(node) = real {
            self.nodes.push(node);
        }
    }

    pub fn step(&mut self) {
        let (dir, name) = (self.directory(), self.name());
        let node = self.nodes[dir];
        match self.random.below(23) {
            0..3 => {
                let model = self.model.add(dir, &name, Content::File(Vec::new()));
                let real = self.volume.make_node(node, &name, 0o100_644, 0, ROOT_USER);
                self.made(model, real);
            }
            3 => {
                let model = self.model.add(dir, &name, Content::Directory(Default::default()));
                let real = self.volume.make_dir(node, &name, 0o755, ROOT_USER);
                self.made(model, real);
            }
            4 => {
                let target = vec![b't'; 1 + self.random.below(300) as usize];
                let model = self.model.add(dir, &name, Content::Link(target.clone()));
                let real = self.volume.make_symlink(node, &name, &target, ROOT_USER);
                self.made(model, real);
            }
            5 => {
                let Some(file) = self.file() else { return };
                let real = self.volume.link(node, &name, self.nodes[file], Caller::default());
                assert_eq!(self.model.link(dir, &name, file), real);
            }
            6 => assert_eq!(self.model.unlink(dir, &name), self.volume.unlink(node, &name)),
            7 => assert_eq!(self.model.remove_dir(dir, &name), self.volume.remove_dir(node, &name)),
            8..10 => self.rename(dir, &name),
            10..14 => self.write(),
            14 => self.truncate(),
            15 => self.compare_file(),
            16..18 => self.exchange(dir, &name),
            18..21 => self.change_xattr(),
            _ => self.change_space(),
        }
    }

    fn rename(&mut self, dir: usize, name: &[u8]) {
        let (to, to_name) = (self.directory(), self.name());
        let real = self.volume.rename(self.nodes[dir], name, self.nodes[to], &to_name, ROOT_USER);
        assert_eq!(self.model.rename(dir, name, to, &to_name), real);
    }

    /// Swaps names, most of which exist.
    fn exchange(&mut self, dir: usize, name: &[u8]) {
        let to = self.directory();
        let [name, to_name] = [(dir, name), (to, name)].map(|(dir, name)| {
            let names: Vec<_> = self.model.entries(dir).keys().cloned().collect();
            let chosen = self.random.below(names.len() as u64 + 1) as usize;
            names.get(chosen).cloned().unwrap_or(name.to_vec())
        });
        let real = self.volume.exchange(self.nodes[dir], &name, self.nodes[to], &to_name);
        assert_eq!(self.model.exchange(dir, &name, to, &to_name), real);
    }

    fn write(&mut self) {
        let Some(file) = self.file() else { return };
        let range = if self.random.below(8) == 0 { 900_000 } else { 30_000 };
        let offset = self.random.below(range);
        let len = self.random.below(9000) as usize;
        let data = self.random.bytes(len);
        assert_eq!(write(&mut self.volume, self.nodes[file], offset, &data), Ok(data.len()));
        if !data.is_empty() {
            self.model.write(file, offset as usize, &data);
        }
    }

    fn truncate(&mut self) {
        let Some(file) = self.file() else { return };
        let size = self.random.below(400_000);
        assert_eq!(self.volume.truncate(self.nodes[file], size), Ok(()));
        self.model.data_mut(file).resize(size as usize, 0);
    }

    fn change_space(&mut self) {
        let Some(file) = self.file() else { return };
        let (offset, bytes) = (self.random.below(500_000), 1 + self.random.below(300_000));
        let how = match self.random.below(6) {
            0 => Allocation::Fill,
            1 => Allocation::Zero,
            _ => Allocation::Punch,
        };
        assert_eq!(self.volume.allocate(self.nodes[file], offset, bytes, how), Ok(()));
        let data = self.model.data_mut(file);
        let end = data.len().min((offset + bytes) as usize);
        if how != Allocation::Fill && end > offset as usize {
            data[offset as usize..end].fill(0);
        }
    }

    /// Sets or removes an attribute of a file; revision 0 has none.
    fn change_xattr(&mut self) {
        let Some(file) = self.file() else { return };
        let name = format!("user.{}", self.random.below(4));
        let node = self.nodes[file];
        if self.random.below(3) == 0 {
            let known = self.xattrs.remove(&(file, name.clone())).is_some();
            let expected = if known { Ok(()) } else { Err(Errno::ENODATA) };
            assert_eq!(self.volume.remove_xattr(node, name.as_bytes()), expected);
            return;
        }
        let bytes = self.random.below(200) as usize;
        let value = self.random.bytes(bytes);
        match self.volume.set_xattr(node, name.as_bytes(), &value, XattrMode::Any, ROOT_USER) {
            Ok(()) => drop(self.xattrs.insert((file, name), value)),
            error => assert_eq!(error, Err(Errno::EOPNOTSUPP)),
        }
    }

    fn compare_file(&mut self) {
        let Some(file) = self.file() else { return };
        for ((_, name), value) in self.xattrs.iter().filter(|((of, _), _)| *of == file) {
            assert_eq!(self.volume.xattr(self.nodes[file], name.as_bytes()).as_ref(), Ok(value));
        }
        let content = read_all(&mut self.volume, self.nodes[file]);
        assert!(content == *self.model.data_mut(file));
        if file.is_multiple_of(2) {
            self.volume.forget_content(self.nodes[file], 0, content.len());
        }
    }
}
