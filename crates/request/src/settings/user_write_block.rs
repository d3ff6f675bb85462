//! The arguments of `setUserWriteBlockMode`.

use crate::declare::arguments;
use crate::declare::kinds::Bool;

arguments! {
    /// What `setUserWriteBlockMode` asks for.
    pub struct SetUserWriteBlockModeArgs of "setUserWriteBlockMode" as "setUserWriteBlockMode", refusing {
        /// Whether writes of users are blocked from now on.
        "global" global: required Bool,
    }
}
