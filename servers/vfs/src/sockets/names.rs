//! The names of sockets: special files, and abstract names, which begin with NUL and lie in no file system.

use super::Socket;
use crate::files::vnode::NodeRef;
use alloc::{
    collections::BTreeMap,
    rc::{Rc, Weak},
};
use core::cell::{Cell, RefCell};

/// Digits of an abstract name that vfs chooses.
const DIGITS: u32 = 5;

/// What a socket is found by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// An abstract name, and the container with limits that it is of; 0: of the system.
    Abstract(u8, Rc<[u8]>),
    /// A special file: its mount, and its number there.
    File(u16, u64),
}

impl Key {
    /// That of a special file.
    pub fn of(node: &NodeRef) -> Key {
        let record = node.record();
        Key::File(record.mount, record.node)
    }

    /// That of an abstract name, which is short, of a container with limits or the system.
    pub fn named(container: u8, name: &[u8]) -> Key {
        Key::Abstract(container, name.into())
    }
}

/// All sockets with names.
#[derive(Debug, Default)]
pub struct Names {
    sockets: RefCell<BTreeMap<Key, Weak<Socket>>>,
    next: Cell<u32>,
}

impl Names {
    /// The socket with this name.
    pub fn get(&self, key: &Key) -> Option<Rc<Socket>> {
        self.sockets.borrow().get(key).and_then(Weak::upgrade)
    }

    /// An abstract name that no socket of a container has: NUL and five digits.
    pub fn free_name(&self, container: u8) -> [u8; 1 + DIGITS as usize] {
        loop {
            let number = self.next.replace(self.next.get().wrapping_add(1));
            let digit = |at: u32| b"0123456789abcdef"[(number >> (4 * (DIGITS - at)) & 0xf) as usize];
            let name = core::array::from_fn(|at| if at == 0 { 0 } else { digit(at as u32) });
            if self.get(&Key::named(container, &name)).is_none() {
                return name;
            }
        }
    }
}

/// The name of a socket. It is free when this is dropped.
#[derive(Debug)]
pub struct Bound {
    names: Rc<Names>,
    key: Key,
    /// Keeps the number of the special file from being given to another.
    _node: Option<NodeRef>,
}

impl Bound {
    /// Gives a socket a name.
    pub fn new(names: &Rc<Names>, key: Key, node: Option<NodeRef>, socket: &Rc<Socket>) -> Bound {
        names.sockets.borrow_mut().insert(key.clone(), Rc::downgrade(socket));
        Bound { names: names.clone(), key, _node: node }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.names.sockets.borrow_mut().remove(&self.key);
    }
}
