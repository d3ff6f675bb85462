//! Rules of `dropDatabase`, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Others may create in the database while it goes.
    NotPending,
    /// Others may create in it once its collections are gone.
    PendingEndsEarly,
    /// Nothing can ever be created in it again.
    PendingForEver,
    /// The collections are listed and dropped without the database's lock.
    ListsUnlocked,
    /// The entry is written without the database's lock.
    EntryUnlocked,
    /// The lock is held while others are waited for.
    LockedWhileWaiting,
    /// The lock is not given back.
    LockKept,
    /// The views go before what they show.
    ViewsFirst,
    /// The views stay.
    LeavesTheViews,
    /// Index builds of a collection go on when it is dropped.
    BuildsGoOn,
    /// A collection that was not there counts as dropped.
    CountsWhatWasGone,
    /// A drop that failed counts as done.
    DropMayFail,
    /// The entry does not wait for a majority.
    EntryAtOnce,
    /// The entry is written although the wait failed.
    WaitMayFail,
    /// What is waited for is the first drop, not the last.
    WaitsForTheFirst,
    /// A node without a set waits for others.
    WaitsAlone,
    /// `w: 1` is enough for the drops.
    LessIsEnough,
    /// Who asks for more than a majority gets a majority.
    MoreIsIgnored,
    /// The client's `wtimeout` does not count.
    ClientsTimeIgnored,
    /// The wait has no bound.
    WaitsForever,
    /// A database without collections leaves an entry.
    EntryForNothing,
    /// The entry is left out.
    NoEntry,
    /// The client's session does not hear of the drops.
    DropsUnreported,
    /// The client's session does not hear of the entry.
    EntryUnreported,
    /// A killed command drops on.
    DeafBeforeTheWait,
    /// A killed command says so although its entry is being written.
    StoppedWhileFinishing,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::NotPending,
        Mutant::PendingEndsEarly,
        Mutant::PendingForEver,
        Mutant::ListsUnlocked,
        Mutant::EntryUnlocked,
        Mutant::LockedWhileWaiting,
        Mutant::LockKept,
        Mutant::ViewsFirst,
        Mutant::LeavesTheViews,
        Mutant::BuildsGoOn,
        Mutant::CountsWhatWasGone,
        Mutant::DropMayFail,
        Mutant::EntryAtOnce,
        Mutant::WaitMayFail,
        Mutant::WaitsForTheFirst,
        Mutant::WaitsAlone,
        Mutant::LessIsEnough,
        Mutant::MoreIsIgnored,
        Mutant::ClientsTimeIgnored,
        Mutant::WaitsForever,
        Mutant::EntryForNothing,
        Mutant::NoEntry,
        Mutant::DropsUnreported,
        Mutant::EntryUnreported,
        Mutant::DeafBeforeTheWait,
        Mutant::StoppedWhileFinishing,
    ];
}

crate::mutants::switch!(Mutant);
