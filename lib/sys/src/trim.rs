//! Returns memory that a service has used and does not need any more to vm. For services that may send to vm, when they are idle.

/// Returns the heap's free pages, if there are many more than when most was in use. Call it at heartbeats.
pub fn heap() {
    #[cfg(target_os = "none")]
    crate::heap::trim(crate::discard::discard);
}
