//! The arguments of `compact`.

use crate::declare::arguments;
use crate::declare::kinds::Truth;

arguments! {
    /// What `compact` asks for.
    pub struct CompactArgs of "compact" as "compact", keeping {
        "force" force: optional Truth,
    }
}
