//! The arguments of `commitTransaction` and `abortTransaction`.

use crate::declare::kinds::{Object, Timestamp};
use crate::declare::{arguments, kind};
use pando_bson::shape::{Field, Shape};

arguments! {
    /// What `commitTransaction` asks for.
    pub struct CommitTransactionArgs of "commitTransaction" as "commitTransaction", refusing {
        "recoveryToken" recovery_token: optional RecoveryToken,
        /// Of a prepared transaction.
        "commitTimestamp" commit_timestamp: optional Timestamp,
    }
}
arguments! {
    /// What `abortTransaction` asks for.
    pub struct AbortTransactionArgs of "abortTransaction" as "abortTransaction", refusing {
        "recoveryToken" recovery_token: optional RecoveryToken,
    }
}

kind! {
    /// What a router gives its clients along.
    pub RecoveryToken like Object {
        SHAPE: Shape::Fields(&[Field::optional("recoveryShardId", Shape::String)]),
    }
}
