//! Rules that can be switched off one at a time, in tests only (feature `mutants`): each must be missed by a script or
//! by the model, or the test that is said to prove it proves nothing.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A vote is told before it is on disk.
    VoteBeforeDurable,
    /// A second vote in one term.
    VoteTwice,
    /// A vote for a candidate that lacks entries.
    VoteForStaleData,
    /// A vote for a candidate of an older term.
    VoteForOldTerm,
    /// A vote for a candidate with an older configuration.
    VoteForOldConfig,
    /// An arbiter votes although it sees a healthy primary.
    ArbiterVotesAgainstPrimary,
    /// The candidate asks before its own vote is on disk.
    AskBeforeOwnVote,
    /// Elections begin without a dry run.
    NoDryRun,
    /// A primary stays although it saw a higher term.
    KeepOfficeInOldTerm,
    /// Entries of older terms are committed by counting.
    CommitOlderTerm,
    /// Entries count before they are on disk.
    CommitBeforeDurable,
    /// One member fewer than a majority commits.
    CommitByMinority,
    /// A commit point of another term is taken from a heartbeat.
    HeartbeatCommitOfAnyTerm,
    /// A commit point beyond the shared log is taken from the sync source.
    SourceCommitUncapped,
    /// Own entries that the sync source need not have count as committed with it.
    SourceCommitUnproven,
    /// Progress of another term counts for a write concern.
    WaitCountsOtherTerms,
    /// A write is acknowledged before this node has it itself.
    WaitSkipsSelf,
    /// A member without data yet counts for a write concern.
    WaitCountsStartup2,
    /// A drain signal of an older term is taken.
    StaleDrain,
    /// `replSetStepDown` does not wait for anyone.
    StepDownAtOnce,
    /// A member far behind takes over by priority.
    StalePriorityTakeover,
    /// A catch-up takeover does not ask the primary.
    CatchUpTakeoverUnasked,
    /// One member alone replaces a primary it lost.
    FastWithoutMajority,
    /// Silence counts as refusal.
    FastOnSilence,
    /// A connection that was accepted and closed counts as refused.
    FastOnClosed,
    /// A claim counts whatever the term of the office that it is about.
    FastClaimOfAnyTerm,
    /// A voter that hears the primary promises its vote to who has lost it.
    FastVoteDespitePrimary,
    /// One early election follows the other at once.
    FastWithoutCooldown,
    /// A voter promises its vote to an early candidate right after an early election.
    FastVoteWithoutCooldown,
    /// A starting set elects although somebody knows a primary.
    StartDespitePrimary,
    /// A primary that hears of nobody stays.
    LonelyPrimaryStays,
    /// A frozen node stands for election.
    StandWhileFrozen,
    /// A reconfiguration may change any number of voters.
    ManyVotersAtOnce,
    /// Arbiters and a newcomer may elect it, though all that is committed is on one other member.
    ArbitersElectNewcomer,
    /// A reconfiguration does not wait for the one before.
    ReconfigBeforeCommitted,
    /// Who has stepped down while a configuration was written waits for a majority that has it, or another one.
    ReconfigAcknowledgedByWhoSteppedDown,
    /// A majority that has it counts, though a later term is known.
    ReconfigAcknowledgedWhileSteppingDown,
    /// What a majority of the configuration before holds is enough for the next one to follow.
    ReconfigOnOldMajority,
    /// A new member votes before it has data.
    NewMemberVotesAtOnce,
    /// A new member votes once it answers, copying or not.
    NewMemberVotesWithoutData,
    /// A new member counts for a write concern before the primary has made it a voter.
    WaitCountsNewMembers,
    /// An older configuration replaces a newer one.
    OlderConfigInstalled,
    /// A sync source that is not ahead.
    SourceNotAhead,
    /// A denied sync source.
    SourceDenied,
    /// A nearer source is taken however often that happens.
    NearerWithoutLimit,
    /// A hidden sync source where a visible one would do.
    SourceHidden,
    /// A source that cannot tell where the logs parted is asked again.
    AskAgainWhoCannotTell,
    /// A member copies again although somebody who might tell has not been asked.
    CopyAgainUnasked,
    /// A member copies again without waiting for members that are down or behind.
    CopyAgainAtOnce,
    /// A member that is too stale copies again although its operator wants to be asked.
    CopyAgainUnallowed,
    /// `w: "majority", j: true` counts members that have only written, where that is enough to be committed.
    MajorityForgetsJournal,
    /// A member stands for election with less than it once held.
    StandWithLessThanPromised,
    /// Another member's term is taken over however large it is.
    AnyTermBelieved,
    /// A configuration that came by heartbeat is installed as it is.
    AnyConfigInstalled,
    /// A recipient leaves as soon as it hears of the split, whoever else has it.
    LeaveWithoutMajority,
    /// A voter of a later term counts among those that have the split configuration.
    LeaveOnLaterTerm,
    /// A recipient leaves before what it fetched is applied.
    LeaveUndrained,
    /// A recipient takes the commit point of the old set along.
    LeaveWithCommitPoint,
    /// A recipient takes what it knows of the old set's members for its new members.
    LeaveWithMembers,
    /// Metadata of another set is taken.
    TakeFromOtherSet,
    /// A configuration that takes the place of the split one leaves that in effect.
    SplitOutlivesNextConfig,
    /// A member whose process was told its set's name leaves, too.
    LeaveGivenName,
    /// A member that has just started shows tenants before it has heard of a primary.
    TenantsShownUnheard,
    /// A member that has just started shows tenants as soon as it has heard of a primary, however far it is.
    TenantsShownBehind,
    /// A member that has rolled back shows tenants as they were when its branch began.
    TenantsShownRolledBack,
    /// A member that hears of no primary never shows tenants.
    TenantsHiddenForEver,
    /// An arbiter counts for a commit quorum.
    QuorumCountsArbiters,
    /// A member without a vote counts among the voting members of a commit quorum.
    QuorumCountsNonVoters,
    /// A member votes for an index build before it has its part.
    BuildVoteBeforeReady,
    /// A vote for an index build is not told to the next primary.
    BuildVoteOnlyOnce,
    /// A member that follows commits an index build.
    BuildPermitElsewhere,
    /// A primary commits an index build before it has its own part.
    BuildPermitUnready,
    /// The document of an index build goes while it is unfinished.
    BuildForgetUnfinished,
    /// A member whose part of an index build failed keeps it to itself.
    BuildFailureUntold,
    /// A member that follows gives an index build up.
    BuildAbortElsewhere,
    /// A wish to give an index build up waits for the next office.
    BuildWishOutlivesOffice,
    /// An index build that somebody wants to give up is committed.
    BuildPermitUnwanted,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::VoteBeforeDurable,
        Mutant::VoteTwice,
        Mutant::VoteForStaleData,
        Mutant::VoteForOldTerm,
        Mutant::VoteForOldConfig,
        Mutant::ArbiterVotesAgainstPrimary,
        Mutant::AskBeforeOwnVote,
        Mutant::NoDryRun,
        Mutant::KeepOfficeInOldTerm,
        Mutant::CommitOlderTerm,
        Mutant::CommitBeforeDurable,
        Mutant::CommitByMinority,
        Mutant::HeartbeatCommitOfAnyTerm,
        Mutant::SourceCommitUncapped,
        Mutant::SourceCommitUnproven,
        Mutant::WaitCountsOtherTerms,
        Mutant::WaitSkipsSelf,
        Mutant::WaitCountsStartup2,
        Mutant::StaleDrain,
        Mutant::StepDownAtOnce,
        Mutant::StalePriorityTakeover,
        Mutant::CatchUpTakeoverUnasked,
        Mutant::FastWithoutMajority,
        Mutant::FastOnSilence,
        Mutant::FastOnClosed,
        Mutant::FastClaimOfAnyTerm,
        Mutant::FastVoteDespitePrimary,
        Mutant::FastWithoutCooldown,
        Mutant::FastVoteWithoutCooldown,
        Mutant::StartDespitePrimary,
        Mutant::LonelyPrimaryStays,
        Mutant::StandWhileFrozen,
        Mutant::ManyVotersAtOnce,
        Mutant::ArbitersElectNewcomer,
        Mutant::ReconfigBeforeCommitted,
        Mutant::ReconfigAcknowledgedByWhoSteppedDown,
        Mutant::ReconfigAcknowledgedWhileSteppingDown,
        Mutant::ReconfigOnOldMajority,
        Mutant::NewMemberVotesAtOnce,
        Mutant::NewMemberVotesWithoutData,
        Mutant::WaitCountsNewMembers,
        Mutant::OlderConfigInstalled,
        Mutant::SourceNotAhead,
        Mutant::SourceDenied,
        Mutant::NearerWithoutLimit,
        Mutant::SourceHidden,
        Mutant::AskAgainWhoCannotTell,
        Mutant::CopyAgainUnasked,
        Mutant::CopyAgainAtOnce,
        Mutant::CopyAgainUnallowed,
        Mutant::MajorityForgetsJournal,
        Mutant::StandWithLessThanPromised,
        Mutant::AnyTermBelieved,
        Mutant::AnyConfigInstalled,
        Mutant::LeaveWithoutMajority,
        Mutant::LeaveOnLaterTerm,
        Mutant::LeaveUndrained,
        Mutant::LeaveWithCommitPoint,
        Mutant::LeaveWithMembers,
        Mutant::TakeFromOtherSet,
        Mutant::SplitOutlivesNextConfig,
        Mutant::LeaveGivenName,
        Mutant::TenantsShownUnheard,
        Mutant::TenantsShownBehind,
        Mutant::TenantsShownRolledBack,
        Mutant::TenantsHiddenForEver,
        Mutant::QuorumCountsArbiters,
        Mutant::QuorumCountsNonVoters,
        Mutant::BuildVoteBeforeReady,
        Mutant::BuildVoteOnlyOnce,
        Mutant::BuildPermitElsewhere,
        Mutant::BuildPermitUnready,
        Mutant::BuildForgetUnfinished,
        Mutant::BuildFailureUntold,
        Mutant::BuildAbortElsewhere,
        Mutant::BuildWishOutlivesOffice,
        Mutant::BuildPermitUnwanted,
    ];
}

/// Those about [`crate::index_builds`] and [`crate::commit_quorum`].
pub const OF_INDEX_BUILDS: &[Mutant] = &[
    Mutant::QuorumCountsArbiters,
    Mutant::QuorumCountsNonVoters,
    Mutant::BuildVoteBeforeReady,
    Mutant::BuildVoteOnlyOnce,
    Mutant::BuildPermitElsewhere,
    Mutant::BuildPermitUnready,
    Mutant::BuildForgetUnfinished,
    Mutant::BuildFailureUntold,
    Mutant::BuildAbortElsewhere,
    Mutant::BuildWishOutlivesOffice,
    Mutant::BuildPermitUnwanted,
];

#[cfg(feature = "mutants")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Breaks the cores of this thread.
#[cfg(feature = "mutants")]
pub fn activate(mutant: Option<Mutant>) {
    ACTIVE.with(|a| a.set(mutant));
}

#[cfg(feature = "mutants")]
pub(crate) fn broken(mutant: Mutant) -> bool {
    ACTIVE.with(|a| a.get() == Some(mutant))
}
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub(crate) fn broken(_: Mutant) -> bool {
    false
}
