//! Rules of access blockers, switched off one at a time in tests; each must be noticed.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A decision holds before a majority has it.
    DecisionNotAwaited,
    /// Reads go on behind the time of blocking.
    ReadsPass,
    /// What has blocked writes early does not survive the next document.
    EarlyForgotten,
    /// A primary that steps down goes on blocking what no document says.
    EarlyOutlivesOffice,
    /// Who was turned away waits for nothing.
    NobodyWaits,
    /// Whoever comes between block and document finds the document's state.
    EarlyNotShown,
    /// A tenant whose name begins like another's is taken for it.
    PrefixIsEnough,
    /// A second kind of operation may begin.
    KindsTogether,
    /// A tenant may be in two operations.
    TenantsShared,
    /// A document may become anything.
    AnyStepIsLegal,
    /// A member that knows of the decision, and not yet that it holds, answers reads.
    ReadsPassAfterRestart,
    /// What was decided is forgotten before whoever waited has looked.
    DecisionForgotten,
    /// Two splits may make one set.
    SetsShared,
    /// Of several documents that name a tenant the last one counts, whatever it says.
    LastDocumentCounts,
    /// Who is no copier may write what is still being copied.
    AnybodyCopies,
    /// A recipient lets clients in before it knows the donor's decision.
    AnswersBeforeDecision,
    /// A member of the recipient shows what a majority may not have.
    OwnsBeforeMajority,
    /// The recipient answers for times when it had nothing of the tenant.
    OldReadsPass,
    /// The recipient goes on with change streams whose events it has not.
    OldStreamsPass,
    /// What was read while a tenant came is shown.
    HalfCopiesShown,
    /// A tenant comes back while clients are told that it is elsewhere.
    BackTooEarly,
    /// A set that is merged goes on taking new tenants.
    NewTenantsPass,
    /// What a tenant that has gone has left is given to another set.
    GoneGoesAgain,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::DecisionNotAwaited,
        Mutant::ReadsPass,
        Mutant::EarlyForgotten,
        Mutant::EarlyOutlivesOffice,
        Mutant::NobodyWaits,
        Mutant::EarlyNotShown,
        Mutant::PrefixIsEnough,
        Mutant::KindsTogether,
        Mutant::TenantsShared,
        Mutant::AnyStepIsLegal,
        Mutant::ReadsPassAfterRestart,
        Mutant::DecisionForgotten,
        Mutant::SetsShared,
        Mutant::LastDocumentCounts,
        Mutant::AnybodyCopies,
        Mutant::AnswersBeforeDecision,
        Mutant::OwnsBeforeMajority,
        Mutant::OldReadsPass,
        Mutant::OldStreamsPass,
        Mutant::HalfCopiesShown,
        Mutant::BackTooEarly,
        Mutant::NewTenantsPass,
        Mutant::GoneGoesAgain,
    ];
}

#[cfg(feature = "mutants")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Breaks the blockers of this thread.
#[cfg(feature = "mutants")]
pub fn activate(mutant: Option<Mutant>) {
    ACTIVE.set(mutant);
}
#[cfg(feature = "mutants")]
pub(crate) fn broken(mutant: Mutant) -> bool {
    ACTIVE.get() == Some(mutant)
}
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub(crate) const fn broken(_: Mutant) -> bool {
    false
}
