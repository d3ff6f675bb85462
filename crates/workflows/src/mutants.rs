//! Rules of the machine layer that can be switched off one at a time, in tests only (feature `mutants`): each must be
//! noticed by the kit, or what the kit says of workflows proves nothing. Each workflow has a list of its own.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// An answer to an earlier attempt counts as one to the last.
    LateAnswerTaken,
    /// A second answer to one attempt reaches the workflow.
    DoubledAnswerTaken,
    /// The workflow goes on hearing things after its end.
    HeardAfterTheEnd,
    /// A call that fails is made again and again.
    RetriedWithoutEnd,
    /// A call is made again though it was refused.
    RefusalRetried,
    /// A call is made again without a pause.
    RetriedAtOnce,
    /// A node that is primary no more goes on with its instances.
    OfficeOutlived,
    /// The state document stays behind.
    DocumentLeft,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::LateAnswerTaken,
        Mutant::DoubledAnswerTaken,
        Mutant::HeardAfterTheEnd,
        Mutant::RetriedWithoutEnd,
        Mutant::RefusalRetried,
        Mutant::RetriedAtOnce,
        Mutant::OfficeOutlived,
        Mutant::DocumentLeft,
    ];
}

/// A switch for one list of mutants; `broken` is a constant `false` without the feature.
macro_rules! switch {
    ($mutant:ty) => {
        #[cfg(feature = "mutants")]
        thread_local! {
            static ACTIVE: std::cell::Cell<Option<$mutant>> = const { std::cell::Cell::new(None) };
        }
        /// Breaks the workflows of this thread.
        #[cfg(feature = "mutants")]
        pub fn activate(mutant: Option<$mutant>) {
            ACTIVE.set(mutant);
        }
        #[cfg(feature = "mutants")]
        pub(crate) fn broken(mutant: $mutant) -> bool {
            ACTIVE.get() == Some(mutant)
        }
        #[cfg(not(feature = "mutants"))]
        #[inline(always)]
        pub(crate) const fn broken(_: $mutant) -> bool {
            false
        }
    };
}
pub(crate) use switch;

switch!(Mutant);
