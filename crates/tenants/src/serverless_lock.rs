//! The serverless operation lock (SV-LOCK): operations on tenants of one kind at a time, a tenant in one of them, and a
//! set made by one of them.
//!
//! It is a question about the state documents that are there: an operation has it from its first document on until it may be forgotten.
//! Documents outlive offices, and so does the lock.

use crate::mutants::{Mutant, broken};
use crate::operation::{Kind, Operation, Phase};
use pando_base::{Error, ErrorCode, Result};
use std::collections::BTreeSet;

/// Whether an operation may begin beside others.
///
/// # Errors
/// 385 where one of another kind is under way, 117 where one of the same kind has a tenant of it, or makes the same set.
pub fn may_begin(operation: &Operation, others: &[Operation]) -> Result<()> {
    let under_way = || others.iter().filter(|o| o.id != operation.id && !o.expires);
    let kind = operation.kind;
    if let Some(other) = under_way().find(|o| o.kind != kind && !broken(Mutant::KindsTogether)) {
        let text = format!(
            "Cannot start a {} while a {} is in progress: {}",
            kind.text(),
            other.kind.text(),
            other.id
        );
        return Err(Error::new(ErrorCode::ConflictingServerlessOperation, text));
    }
    let own: BTreeSet<&String> = operation.tenants.iter().collect();
    // It has gone and comes back, and clients are still told where it went.
    let gone = |o: &&Operation| !o.kind.takes() && matches!(o.phase, Phase::Committed { .. });
    let mut back = others.iter().filter(|_| kind.takes()).filter(gone);
    if let Some(other) = back.find(|o| o.all || o.tenants.iter().any(|t| own.contains(t)))
        && !broken(Mutant::BackTooEarly)
    {
        let text = format!("a tenant has left with {} and is not forgotten here yet", other.id);
        return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
    }
    // What is left here of it is not its own any more; whoever is merged would take it along.
    let mut left =
        others.iter().filter(|o| o.id != operation.id && kind == Kind::Donor && o.kind == kind).filter(gone);
    if let Some(other) = left.find(|o| operation.all || o.all || o.tenants.iter().any(|t| own.contains(t)))
        && !broken(Mutant::GoneGoesAgain)
    {
        let text = format!("a tenant has left with {}, and what it has left is here still", other.id);
        return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
    }
    for other in under_way() {
        let any = operation.all || other.all || kind == Kind::MergeRecipient;
        let shared = other.tenants.iter().find(|tenant| any || own.contains(tenant));
        // Members take in the files of one set at a time; and whoever is merged gives all away, also where that is nothing.
        let shared = shared.map(String::as_str).or(any.then_some("(any)"));
        if let Some(tenant) = shared.filter(|_| !broken(Mutant::TenantsShared)) {
            let text = format!("tenant {tenant} is part of a {} already: {}", kind.text(), other.id);
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        if operation.shares_set_with(other) && !broken(Mutant::SetsShared) {
            let text = format!(
                "the set {} is that of another {}: {}",
                operation.recipient_set,
                kind.text(),
                other.id
            );
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
    }
    Ok(())
}
