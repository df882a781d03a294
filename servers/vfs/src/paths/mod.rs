//! From path names to files: `walk` resolves them, within a `restriction` if there is one; `own_program` knows one link without that; `change` is what
//! calls that make, move or remove names have in common. Neighbour: `pathname`, path names as text.

pub mod change;
pub mod own_program;
pub mod restriction;
pub mod walk;
