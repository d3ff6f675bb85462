//! Which way back a member takes when its log has parted from its source's (R-RB-2, R-REF-1). No I/O: the shell brings
//! the facts and goes the way.

use pando_base::{OpTime, Term, Timestamp};

/// What is known once the common point is found.
#[derive(Clone, Debug)]
pub struct Facts {
    pub common: OpTime,
    /// Where this member's log ends. What a member that applies late forgets of what it had fetched was never in it.
    pub top: OpTime,
    /// Where the source's ends.
    pub theirs: OpTime,
    /// The newest that this member has heard of.
    pub term: Term,
    /// The newest commit point this member has heard of.
    pub committed: OpTime,
    pub stable: Timestamp,
    /// Where this member's history begins: the end of its initial sync, or where it left another set for this one (SV-SPLIT-11): what that
    /// one has committed binds nobody here.
    pub began: Timestamp,
    /// Not `enableMajorityReadConcern: false`: stable follows the commit point.
    pub majority_reads: bool,
    pub force_refetch: bool,
    /// The data is not of one time yet: an earlier rollback fetched documents and has not reached its minValid.
    pub uneven: bool,
    /// Definitions of collections are known as of the common point.
    pub definitions_known: bool,
    /// A name of a command above the common point that only the history can undo.
    pub unfetchable: Option<&'static str>,
    pub spans_secs: i64,
    pub limit_secs: i64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Way {
    /// Rows back to stable, then the log up to the common point.
    ToTimestamp,
    /// What was changed is fetched from the source.
    Refetch,
    /// There is nothing to go back to: the set's data is copied once more.
    CopyAgain,
    /// The source lacks what is committed: it is on a branch of an earlier office, and will have to leave that itself.
    AnotherSource(String),
    /// Data that others count on would be lost, or nobody can say what is right.
    Never(String),
}

/// Two logs from their ends down to `reached` have no entry in common: may another source be asked, and the data be given
/// up if none can tell more?
pub fn without_common_point(reached: OpTime, committed: OpTime) -> Result<(), String> {
    if committed < reached || committed.is_null() {
        return Ok(());
    }
    Err(format!(
        "the oplogs have no entry in common since {reached}, before the commit point {committed}: committed writes would be lost"
    ))
}

pub fn choose(f: &Facts) -> Way {
    let (common, committed, stable) = (f.common, f.committed, f.stable);
    // The branch that has won has everything that is committed, so this is not it; unless it is the present office's own.
    let committed_is_lost = |text: String| match f.theirs.t < f.term {
        true => Way::AnotherSource(text),
        false => Way::Never(text),
    };
    if common < committed && common < f.top {
        return committed_is_lost(format!(
            "the common point {common} lies before the commit point {committed}: committed writes would be lost"
        ));
    }
    if f.spans_secs > f.limit_secs {
        return Way::Never(format!(
            "not willing to roll back more than {} seconds of data, have {} seconds (parameter \
             rollbackTimeLimitSecs)",
            f.limit_secs, f.spans_secs
        ));
    }
    if f.uneven {
        return Way::CopyAgain;
    }
    if !f.majority_reads || f.force_refetch {
        return match f.unfetchable {
            Some(command) => Way::Never(format!(
                "rollback via refetch cannot undo a {command}: empty this member's data directory and start it again, it \
                 copies the set's data"
            )),
            None if f.definitions_known => Way::Refetch,
            None => Way::CopyAgain,
        };
    }
    if common.ts >= stable {
        return Way::ToTimestamp;
    }
    // Stable moves beyond the end of the initial sync with the commit point only.
    if stable <= f.began {
        return Way::CopyAgain;
    }
    committed_is_lost(format!(
        "the common point {common} lies before the stable timestamp {stable}: committed writes would be lost"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u32) -> OpTime {
        OpTime::new(Timestamp::new(n, 1), 1)
    }
    fn facts() -> Facts {
        Facts {
            common: at(10),
            top: at(20),
            theirs: at(15),
            term: 1,
            committed: at(9),
            stable: at(8).ts,
            began: Timestamp::ZERO,
            majority_reads: true,
            force_refetch: false,
            uneven: false,
            definitions_known: true,
            unfetchable: None,
            spans_secs: 5,
            limit_secs: 100,
        }
    }
    fn refused(f: Facts, word: &str) {
        match choose(&f) {
            Way::Never(why) => assert!(why.contains(word), "{why}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_usual_way_is_to_the_timestamp_and_refetch_where_stable_runs_ahead_or_when_told() {
        assert_eq!(choose(&facts()), Way::ToTimestamp);
        assert_eq!(choose(&Facts { force_refetch: true, ..facts() }), Way::Refetch);
        let ahead = Facts { majority_reads: false, stable: at(30).ts, ..facts() };
        assert_eq!(choose(&ahead), Way::Refetch);
        assert_eq!(choose(&Facts { definitions_known: false, ..ahead }), Way::CopyAgain);
    }
    #[test]
    fn nothing_committed_is_undone_whatever_the_way() {
        refused(Facts { committed: at(11), ..facts() }, "commit point");
        refused(Facts { committed: at(11), majority_reads: false, ..facts() }, "commit point");
        refused(Facts { stable: at(11).ts, ..facts() }, "stable timestamp");
    }
    #[test]
    fn a_source_of_an_earlier_office_that_lacks_what_is_committed_is_left_alone() {
        for lost in [Facts { committed: at(11), ..facts() }, Facts { stable: at(11).ts, ..facts() }] {
            let left = choose(&Facts { term: 2, ..lost.clone() });
            assert!(matches!(left, Way::AnotherSource(_)), "{left:?}");
            let own = OpTime::new(Timestamp::new(15, 1), 2);
            let fatal = choose(&Facts { term: 2, theirs: own, ..lost });
            assert!(matches!(fatal, Way::Never(_)), "{fatal:?}");
        }
        assert_eq!(choose(&Facts { term: 2, ..facts() }), Way::ToTimestamp);
    }
    #[test]
    fn what_a_late_member_had_fetched_and_never_wrote_is_not_undone() {
        assert_eq!(choose(&Facts { committed: at(11), top: at(10), ..facts() }), Way::ToTimestamp);
    }
    #[test]
    fn without_history_the_data_is_copied_again() {
        let synced = Facts { stable: at(11).ts, began: at(11).ts, ..facts() };
        assert_eq!(choose(&synced), Way::CopyAgain);
        assert_eq!(choose(&Facts { uneven: true, ..facts() }), Way::CopyAgain);
        refused(Facts { uneven: true, committed: at(12), ..facts() }, "commit point");
    }
    #[test]
    fn logs_without_a_common_entry_are_a_matter_for_others_unless_they_reach_below_the_commit_point() {
        assert!(without_common_point(at(10), at(9)).is_ok());
        assert!(without_common_point(at(10), OpTime::NULL).is_ok());
        for committed in [at(10), at(11)] {
            let why = without_common_point(at(10), committed).unwrap_err();
            assert!(why.contains("commit point"), "{why}");
        }
    }
    #[test]
    fn what_cannot_be_fetched_and_what_is_too_long_ago_ends_the_member() {
        refused(Facts { force_refetch: true, unfetchable: Some("dropDatabase"), ..facts() }, "dropDatabase");
        assert_eq!(choose(&Facts { unfetchable: Some("dropDatabase"), ..facts() }), Way::ToTimestamp);
        refused(Facts { spans_secs: 101, ..facts() }, "rollbackTimeLimitSecs");
    }
}
