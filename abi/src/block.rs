//! The protocol of block drivers: what file systems and vfs ask of virtio_blk, ramdisk, ata.
//! All requests may be repeated: a caller that gets `EDEADSRCDST` sends the same again to the successor.

use crate::GrantId;

protocol! {
    /// Block devices. Positions and lengths are multiples of 512 bytes, at most 1 MiB a request.
    pub "block" = 7;
    /// → size of the device. `ENXIO`: no such minor.
    Open = 1 { minor: u64 } -> { bytes: u64, sector_bytes: u64, read_only: bool }
    /// Reads into the grant. → word 0: bytes. `EINVAL` past the end or misaligned; `EIO`.
    Read = 2 { minor: u64, grant: GrantId, position: u64, bytes: u64 }
    /// Writes from the grant. → word 0: bytes. `EROFS`.
    Write = 3 { minor: u64, grant: GrantId, position: u64, bytes: u64 }
    /// Everything written is on the medium when this is answered.
    Flush = 4 { minor: u64 }
}
