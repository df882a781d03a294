//! Pages that go back to vm.

use abi::{Endpoint, vm::Discard};

/// Frees whole pages of the caller's heap or preserved memory, which nothing refers to. They read as zeros.
pub fn discard(start: *mut u8, bytes: usize) {
    let request = Discard { address: start as u64, bytes: bytes as u64 };
    // When vm refuses, the memory stays as it is.
    let _ = crate::ipc::call(Endpoint::VM, &request.message());
}
