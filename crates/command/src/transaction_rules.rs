//! Which commands may be statements of a transaction, where, and which may begin one.

use crate::generic_args::GenericArgs;
use crate::{Flags, Request, Roles};
use pando_base::{Error, ErrorCode, Result};

/// Whether a command ends the transaction that it is a statement of.
pub fn ends_transaction(command: &str) -> bool {
    matches!(
        command,
        "commitTransaction" | "abortTransaction" | "prepareTransaction" | "coordinateCommitTransaction"
    )
}

/// Those that never use a session are refused in words of their own.
const SESSIONLESS: &[&str] = &[
    "buildInfo",
    "configureFailPoint",
    "connectionStatus",
    "echo",
    "getLastError",
    "hello",
    "isMaster",
    "listCommands",
    "ping",
    "waitForFailPoint",
    "whatsmyuri",
];

/// The end of a transaction has a transaction that it ends.
pub fn check_is_within(name: &str, args: &GenericArgs) -> Result<()> {
    match args.txn_number {
        Some(_) => Ok(()),
        None => {
            let text = format!("{name} must be run within a transaction");
            Err(Error::new(ErrorCode::CommandFailed, text))
        }
    }
}

pub(crate) fn check(
    name: &str,
    flags: Flags,
    args: &GenericArgs,
    process: Roles,
    req: &Request<'_>,
) -> Result<()> {
    let refuse = |text: String| Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text));
    if !flags.has(Flags::IN_TXN) {
        return refuse(match name {
            "count" => "Cannot run 'count' in a multi-document transaction. Please see \
                        http://dochub.mongodb.org/core/transaction-count for a recommended alternative."
                .to_owned(),
            _ if SESSIONLESS.contains(&name) => "This command is not supported in transactions".to_owned(),
            _ => format!("Cannot run '{name}' in a multi-document transaction."),
        });
    }
    match req.db {
        // Where it is a cluster's metadata, shards change several documents of it at once.
        "config" if !process.any(Roles::CONFIG) => {
            return refuse("Cannot run command against the config database in a transaction.".to_owned());
        }
        "local" => {
            return refuse("Cannot run command against the 'local' database in a transaction.".to_owned());
        }
        _ => {}
    }
    if let Some("system.profile") = req.first().value().as_str() {
        return refuse(format!(
            "Cannot run command against the '{}.system.profile' collection in a transaction.",
            req.db
        ));
    }
    if !args.start_transaction {
        return Ok(());
    }
    match name {
        "commitTransaction" => refuse("Cannot start a transaction with a commit".to_owned()),
        "abortTransaction" => refuse("Cannot start a transaction with an abort".to_owned()),
        "prepareTransaction" => refuse("Cannot start a transaction with a prepare".to_owned()),
        "killCursors" => refuse(
            "Cannot run killCursors as the first operation in a multi-document transaction.".to_owned(),
        ),
        _ => Ok(()),
    }
}
