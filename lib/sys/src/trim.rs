//! Returns memory that a service has used and does not need any more to vm. The server kit does so at heartbeats.

/// Returns the free pages of the heap, if much less is in use than at the peak. A service whose heap has grown may send to vm.
pub fn heap() {
    #[cfg(target_os = "none")]
    crate::heap::trim(crate::discard::discard);
}
