//! What an object shows, and which of its pages are zeros as long as they are not there. Neighbour: `object`.

use crate::memory::window::Window;
use abi::layout::PAGE_BYTES;
use sys::space::Space;

/// Which file an image shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
}

impl FileId {
    /// No file: that of an image whose file is freed.
    pub const GONE: FileId = FileId { device: u64::MAX, inode: u64::MAX };
}

/// What an object shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Zeros at first.
    Anonymous,
    /// A file of this length and version. From page `zeros` on, what is not there is zeros: the file has been shorter since it is here.
    File { file: FileId, version: u64, bytes: u64, zeros: u64 },
    /// A file of this length, as all see it who map it shared. `zeros`: as of `File`.
    Shared { file: FileId, bytes: u64, zeros: u64 },
    /// A System V segment with this number of pm's; zeros at first.
    Segment { number: u64, pages: u64 },
    /// Memory of a device, of which nothing is in `pages`.
    Window(Window),
    /// The cache of vfs, mapped in its space from this address on; a page that is not there is lost.
    Cache { space: Space, address: u64 },
}

impl Content {
    /// Length of the file.
    pub fn file_bytes(&self) -> Option<u64> {
        match *self {
            Content::Anonymous | Content::Segment { .. } | Content::Window(_) | Content::Cache { .. } => None,
            Content::File { bytes, .. } | Content::Shared { bytes, .. } => Some(bytes),
        }
    }

    /// True when page `index` is zeros if it is not there.
    pub fn is_zeros(&self, index: u64) -> bool {
        match *self {
            Content::Anonymous => true,
            Content::Window(_) | Content::Cache { .. } => false,
            Content::Segment { pages, .. } => index < pages,
            Content::File { bytes, zeros, .. } | Content::Shared { bytes, zeros, .. } => {
                index >= zeros && index < bytes.div_ceil(PAGE_BYTES)
            }
        }
    }

    /// Sets the length of a file.
    pub fn set_file_bytes(&mut self, new_bytes: u64) {
        if let Content::File { bytes, zeros, .. } | Content::Shared { bytes, zeros, .. } = self {
            *bytes = new_bytes;
            *zeros = (*zeros).min(new_bytes.div_ceil(PAGE_BYTES));
        }
    }

    /// True for images.
    pub fn is_image(&self) -> bool {
        matches!(self, Content::File { .. })
    }

    /// True for files that are mapped shared.
    pub fn is_shared_file(&self) -> bool {
        matches!(self, Content::Shared { .. })
    }
}
