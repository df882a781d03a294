//! What vfs holds after its restart: a predecessor may have died between a request and its own note of it.

use super::{ObjectId, Objects};
use crate::memory::frames::Frames;

impl Objects {
    /// Ends each hold of an image but those in the list, which has the number of each as often as it is held.
    pub fn claim_images(&mut self, frames: &mut Frames, held: impl Iterator<Item = ObjectId>) {
        let objects = self.table.iter_mut().filter_map(|entry| entry.object.as_deref_mut());
        objects.filter(|object| object.content.is_image()).for_each(|image| image.holds = 0);
        held.for_each(|id| {
            if let Some(image) = self.get_mut(id).filter(|object| object.content.is_image()) {
                image.holds += 1;
            }
        });
        for index in 0..self.table.len() {
            let id = self.id_at(index);
            if let Some(image) = self.get_mut(id).filter(|object| object.content.is_image() && object.holds == 0) {
                image.release_reserve(frames);
                self.drop_if_idle(frames, id);
            }
        }
    }
}
