//! What the device is told, and what it replies, as bytes (VIRTIO 1.2, 5.7.6).

use driver::display::{Area, Pointer};

/// Bytes before every request and reply: kind, flags, fence, context.
pub const HEADER_BYTES: usize = 24;
/// Limit of a request, in bytes.
pub const REQUEST_BYTES: usize = 64;
/// Limit of a reply: an EDID.
pub const REPLY_BYTES: usize = HEADER_BYTES + 8 + EDID_BYTES;
/// Bytes of the EDID in a reply.
const EDID_BYTES: usize = 1024;
/// Offset of the first screen's rectangle and state in the reply to `GET_DISPLAY_INFO`.
const SCREEN: usize = HEADER_BYTES;

/// The only screen that this driver serves.
const FIRST_SCREEN: u32 = 0;

/// How the pixels of a picture lie in memory, and its number in the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pixels {
    /// 0xAARRGGBB, little-endian: of the cursor's image.
    Transparent = 1,
    /// 0x00RRGGBB: the highest byte means nothing.
    Opaque = 2,
}

/// Kinds of replies.
mod reply {
    pub const NO_DATA: u32 = 0x1100;
    pub const DISPLAY_INFO: u32 = 0x1101;
    pub const EDID: u32 = 0x1104;
}

/// A picture in the device: a *resource*. 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource(pub u32);

impl Resource {
    /// No picture.
    pub const NONE: Resource = Resource(0);
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Which screens there are, and the size that each likes.
    GetDisplayInfo,
    /// What the screen says of itself.
    GetEdid,
    /// Makes a picture of this many pixels and lines.
    Create { resource: Resource, pixels: Pixels, width: u32, height: u32 },
    /// Deletes a picture.
    Delete { resource: Resource },
    /// The picture is at this physical address, line after line.
    AttachBacking { resource: Resource, physical: u64, bytes: u32 },
    /// The screen shows an area of a picture, or nothing.
    SetScanout { resource: Resource, area: Area },
    /// The device copies an area from memory, where its first pixel is at `offset`.
    Transfer { resource: Resource, area: Area, offset: u64 },
    /// The device shows what it has copied.
    Flush { resource: Resource, area: Area },
    /// The cursor is there, with a picture of 64 by 64 pixels, or there is none (cursor queue).
    UpdateCursor { resource: Resource, pointer: Pointer },
    /// The cursor is there, with the picture that it has (cursor queue).
    MoveCursor { resource: Resource, pointer: Pointer },
}

impl Command {
    /// The request, and its length.
    pub fn bytes(self) -> ([u8; REQUEST_BYTES], usize) {
        let mut request = Request { bytes: [0; REQUEST_BYTES], len: HEADER_BYTES };
        let kind: u32 = match self {
            Command::GetDisplayInfo => 0x100,
            Command::GetEdid => {
                request.add(&[FIRST_SCREEN, 0]);
                0x10a
            }
            Command::Create { resource, pixels, width, height } => {
                request.add(&[resource.0, pixels as u32, width, height]);
                0x101
            }
            Command::Delete { resource } => {
                request.add(&[resource.0, 0]);
                0x102
            }
            Command::AttachBacking { resource, physical, bytes } => {
                request.add(&[resource.0, 1, physical as u32, (physical >> 32) as u32, bytes, 0]);
                0x106
            }
            Command::SetScanout { resource, area } => {
                request.add_area(area);
                request.add(&[FIRST_SCREEN, resource.0]);
                0x103
            }
            Command::Transfer { resource, area, offset } => {
                request.add_area(area);
                request.add(&[offset as u32, (offset >> 32) as u32, resource.0, 0]);
                0x105
            }
            Command::Flush { resource, area } => {
                request.add_area(area);
                request.add(&[resource.0, 0]);
                0x104
            }
            Command::UpdateCursor { resource, pointer } => {
                request.add_pointer(resource, pointer);
                0x300
            }
            Command::MoveCursor { resource, pointer } => {
                request.add_pointer(resource, pointer);
                0x301
            }
        };
        request.bytes[..4].copy_from_slice(&kind.to_le_bytes());
        (request.bytes, request.len)
    }

    /// Whether it is about the cursor, which has a queue of its own and no replies.
    pub fn is_of_cursor(self) -> bool {
        matches!(self, Command::UpdateCursor { .. } | Command::MoveCursor { .. })
    }

    /// Whether this is the reply of a device that has done it.
    pub fn is_done(self, reply: &[u8]) -> bool {
        let expected = match self {
            Command::GetDisplayInfo => reply::DISPLAY_INFO,
            Command::GetEdid => reply::EDID,
            _ => reply::NO_DATA,
        };
        word(reply, 0) == Some(expected)
    }
}

struct Request {
    bytes: [u8; REQUEST_BYTES],
    len: usize,
}

impl Request {
    fn add(&mut self, words: &[u32]) {
        for word in words {
            self.bytes[self.len..self.len + 4].copy_from_slice(&word.to_le_bytes());
            self.len += 4;
        }
    }

    fn add_area(&mut self, area: Area) {
        self.add(&[area.x, area.y, area.width, area.height]);
    }

    fn add_pointer(&mut self, resource: Resource, Pointer { x, y, hot }: Pointer) {
        self.add(&[FIRST_SCREEN, x as u32, y as u32, 0, resource.0, hot.0, hot.1, 0]);
    }
}

/// The size that the first screen likes, of the reply to `GetDisplayInfo`. `None`: it is not connected.
pub fn preferred_size(reply: &[u8]) -> Option<(u32, u32)> {
    let [width, height, enabled] = [8, 12, 16].map(|at| word(reply, SCREEN + at));
    let size = (width?, height?);
    (enabled? != 0 && size.0 > 0 && size.1 > 0).then_some(size)
}

/// The EDID in the reply to `GetEdid`: as many bytes as the device says, and as there are.
pub fn edid(reply: &[u8]) -> &[u8] {
    let bytes = word(reply, HEADER_BYTES).unwrap_or(0) as usize;
    let all = reply.get(HEADER_BYTES + 8..).unwrap_or(&[]);
    all.get(..bytes).unwrap_or(all)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: Command) -> Vec<u32> {
        let (bytes, len) = command.bytes();
        bytes[..len].as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    #[test]
    fn requests_are_laid_out_as_the_standard_says() {
        let area = Area { x: 1, y: 2, width: 3, height: 4 };
        let resource = Resource(7);
        let header = |kind| [kind, 0, 0, 0, 0, 0];
        let of = |kind, rest: &[u32]| [&header(kind)[..], rest].concat();
        assert_eq!(words(Command::GetDisplayInfo), of(0x100, &[]));
        assert_eq!(
            words(Command::Create { resource, pixels: Pixels::Opaque, width: 640, height: 480 }),
            of(0x101, &[7, 2, 640, 480])
        );
        let pointer = Pointer { x: -1, y: 2, hot: (3, 4) };
        assert_eq!(words(Command::UpdateCursor { resource, pointer }), of(0x300, &[0, u32::MAX, 2, 0, 7, 3, 4, 0]));
        assert_eq!(words(Command::MoveCursor { resource, pointer })[0], 0x301);
        let physical = 0x1_2345_6000;
        let attach = Command::AttachBacking { resource, physical, bytes: 4096 };
        assert_eq!(words(attach), of(0x106, &[7, 1, 0x2345_6000, 1, 4096, 0]));
        assert_eq!(words(Command::SetScanout { resource, area }), of(0x103, &[1, 2, 3, 4, 0, 7]));
        let transfer = Command::Transfer { resource, area, offset: 5 };
        assert_eq!(words(transfer), of(0x105, &[1, 2, 3, 4, 5, 0, 7, 0]));
        assert_eq!(words(Command::Flush { resource, area }), of(0x104, &[1, 2, 3, 4, 7, 0]));
    }

    #[test]
    fn replies_are_believed_only_as_far_as_they_go() {
        let mut reply = [0; REPLY_BYTES];
        reply[..4].copy_from_slice(&0x1104_u32.to_le_bytes());
        assert!(Command::GetEdid.is_done(&reply) && !Command::GetDisplayInfo.is_done(&reply));
        assert!(!Command::GetEdid.is_done(&[4, 0x11]));
        for claimed in [0, 128, 1024, 1025, u32::MAX] {
            reply[24..28].copy_from_slice(&claimed.to_le_bytes());
            assert_eq!(edid(&reply).len(), (claimed as usize).min(1024));
        }
        assert_eq!(edid(&reply[..20]), [0; 0]);
        let mut info = [0; 48];
        assert_eq!(preferred_size(&info), None);
        for (at, value) in [(32, 1280_u32), (36, 800), (40, 1)] {
            info[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        assert_eq!(preferred_size(&info), Some((1280, 800)));
        assert_eq!(preferred_size(&info[..40]), None);
    }
}
