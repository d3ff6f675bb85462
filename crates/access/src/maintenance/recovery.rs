//! Where the data stand: after a start, a rollback, a copy of another member's, and at checkpoints.

use super::Maintenance;
use pando_base::{Namespace, OpTime, Result, Term, Timestamp};
use pando_catalog::observer::RolledBack;
use pando_catalog::{Applied, MinValid, WriteGate};

impl Maintenance {
    /// Who may write replicated collections now.
    pub fn gate(&self) -> &WriteGate {
        self.catalog.gate()
    }
    /// The term that new log entries carry.
    pub fn term(&self) -> Term {
        self.catalog.term()
    }
    pub fn set_term(&self, term: Term) {
        self.catalog.set_term(term)
    }
    pub fn applied(&self) -> &Applied {
        self.catalog.applied()
    }
    /// Takes a checkpoint and stores the sizes as of it. Returns the timestamp the tables now stand at.
    pub fn checkpoint(&self) -> Result<Timestamp> {
        self.catalog.checkpoint()
    }
    /// Where this node's history begins: the end of its initial sync. Zero if it never had one.
    pub fn initial_data(&self) -> Result<Timestamp> {
        self.catalog.initial_data()
    }
    /// Changes the bound at once and durably.
    pub fn resize_oplog(&self, bytes: u64) -> Result<()> {
        self.catalog.resize_oplog(bytes)
    }
    /// Counts a collection anew. Nobody else may be writing.
    pub fn recount_all_of(&self, ns: &Namespace) -> Result<()> {
        self.catalog.recount_all_of(ns)
    }
    /// The log is applied over data of different ages.
    pub fn is_before_min_valid(&self) -> bool {
        self.catalog.is_before_min_valid()
    }
    pub fn min_valid(&self) -> Result<Option<MinValid>> {
        self.catalog.min_valid()
    }
    /// The log is applied up to `minValid`: the data is of one time again. False when the entry there is not the one
    /// the documents were fetched behind: its branch was undone, and nobody can say what they are.
    pub fn reach_min_valid(&self) -> Result<bool> {
        self.catalog.reach_min_valid()
    }
    /// Whether definitions are known as of `common`: documents can be fetched, collections cannot.
    pub fn remembers_definitions(&self, common: Timestamp) -> Result<bool> {
        self.catalog.remembers_definitions(common)
    }
    /// Nobody may read or write meanwhile, and no transaction be open. Returns how many entries were replayed.
    pub fn roll_back(&self, common: Timestamp) -> Result<u64> {
        self.catalog.roll_back(common)
    }
    /// Takes everything above `common` back with the help of a finished [`FetchedFile`](pando_catalog::FetchedFile). Nobody may read or write
    /// meanwhile. The log is to be applied up to `min_valid` then.
    pub fn roll_back_fetched(&self, common: Timestamp, min_valid: OpTime) -> Result<()> {
        self.catalog.roll_back_fetched(common, min_valid)
    }
    /// Makes this node empty, whatever it holds, so that it copies another member's data. Entries up to `promised` may
    /// have been counted on by others.
    pub fn give_up_data(&self, promised: OpTime) -> Result<()> {
        self.catalog.give_up_data(promised)
    }
    /// What this node has told others to hold and may not hold any more.
    pub fn promised(&self) -> Result<OpTime> {
        self.catalog.promised()
    }
    /// The same as long as the process lives, without looking at the disk.
    pub fn is_copying(&self) -> bool {
        self.catalog.is_copying()
    }
    /// Whether the node's data is an unfinished copy.
    pub fn is_copy_unfinished(&self) -> Result<bool> {
        self.catalog.is_copy_unfinished()
    }
    /// The files here were another node's: its promises are not ours, and ours are not known to it. Nor did this node come from
    /// a backup because that one did.
    pub fn take_over_copy(&self, promised: OpTime, restored: bool) -> Result<()> {
        self.catalog.take_over_copy(promised, restored)
    }
    pub fn is_restored(&self) -> Result<bool> {
        self.catalog.is_restored()
    }
    /// This folder was restored from a backup as a member of its set: what it held, and whom it voted for, after the backup
    /// nobody knows.
    pub fn note_restored(&self) -> Result<()> {
        self.catalog.note_restored()
    }
    /// It holds what the set does. Durable at the next sync of such rows.
    pub fn end_restored(&self) -> Result<()> {
        self.catalog.end_restored()
    }
    /// Observers are told what a rollback has taken away.
    pub fn tell_rolled_back(&self, what: &RolledBack<'_>) {
        self.catalog.tell_rolled_back(what)
    }
}
