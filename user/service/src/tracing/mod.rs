//! What the kernel's trace ring tells: who calls whom and for how long (`top`), every event (`trace`), and where the time goes (`profile`).
//!
//! The analysis is `lib/traces`, which `probe` uses, too. What this program itself and the driver of the ring do is left out.

mod profile;
mod top;
mod trace;

pub use profile::profile;
pub use top::top;
pub use trace::trace;
