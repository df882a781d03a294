//! The heap of a native program that is started by execve: services get theirs from rs. Neighbours: `heap`, `linux`.

use crate::{Result, linux};

/// Gives the program a heap of this size. Memory is taken when it is used. Once, before anything is allocated.
///
/// # Errors
/// As mmap(2).
pub fn make(bytes: usize) -> Result<()> {
    let memory = linux::memory(bytes)?;
    // On the host, programs have a heap.
    #[cfg(not(target_os = "none"))]
    let _ = memory;
    // SAFETY: the mapping is new, and nobody else knows of it.
    #[cfg(target_os = "none")]
    unsafe {
        crate::heap::claim(memory.as_mut_ptr(), memory.len())
    };
    Ok(())
}
