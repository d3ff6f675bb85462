//! Which failure is tried again, how often, and after which pause. Decided here, without a clock; the shell waits.

use crate::mutants::{Mutant, broken};
use crate::{Action, Home, Target};
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Millis, limits};

/// What a workflow wants to be done about an action that fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Retry {
    /// The workflow hears every failure.
    Never,
    /// Again where the same may work on the next try: the network, an election over there. The workflow hears all other
    /// failures, and the last one after `limits::WORKFLOW_TRIES_MAX` tries.
    Transient,
    /// Again without end where the same may work on the next try. The workflow hears all other failures: whether the thing was
    /// done it has to find out.
    UntilRefused,
    /// Until it works. The workflow hears no failure.
    Always,
}

/// What becomes of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Again {
        after_ms: Millis,
    },
    Tell,
    /// This node is primary no more: the instance goes on elsewhere.
    Abandon,
}

/// After `tries` tries the last one failed with `error`.
pub fn judge(home: Home, action: &Action, retry: Retry, tries: u32, error: &Error) -> Verdict {
    let local = !matches!(action, Action::Call { to, .. } if *to != Target::Own);
    let office_lost = error.code.is(class::NOT_PRIMARY | class::SHUTDOWN);
    if local && home == Home::Primary && office_lost && !broken(Mutant::OfficeOutlived) {
        return Verdict::Abandon;
    }
    let again = match retry {
        Retry::Never => false,
        Retry::Transient => {
            (is_transient(error) || broken(Mutant::RefusalRetried))
                && (tries < limits::WORKFLOW_TRIES_MAX || broken(Mutant::RetriedWithoutEnd))
        }
        Retry::UntilRefused => is_transient(error),
        Retry::Always => true,
    };
    match again {
        true => Verdict::Again { after_ms: pause(retry, tries) },
        false => Verdict::Tell,
    }
}

/// Also where nobody over there is primary yet.
fn is_transient(error: &Error) -> bool {
    error.code == ErrorCode::FailedToSatisfyReadPreference
        || error.code.is(class::RETRIABLE | class::NOT_PRIMARY | class::RECOVERING | class::SHUTDOWN)
}

fn pause(retry: Retry, tries: u32) -> Millis {
    if broken(Mutant::RetriedAtOnce) {
        return 0;
    }
    let first = limits::WORKFLOW_RETRY_MS as Millis;
    match retry {
        Retry::Transient | Retry::UntilRefused => {
            let doubled = first << tries.saturating_sub(1).min(16);
            doubled.min(limits::WORKFLOW_RETRY_MS_MAX as Millis)
        }
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn call() -> Action {
        Action::Call { to: Target::Host("b".into()), body: doc! { "ping": 1 }.to_raw() }
    }
    fn said(action: &Action, retry: Retry, tries: u32, code: ErrorCode) -> Verdict {
        judge(Home::Primary, action, retry, tries, &Error::new(code, "x"))
    }

    #[test]
    fn pauses_double_up_to_the_bound_and_tries_end() {
        let pauses: Vec<Verdict> =
            (1..=6).map(|n| said(&call(), Retry::Transient, n, ErrorCode::HostUnreachable)).collect();
        let again = |after_ms| Verdict::Again { after_ms };
        let story = [again(500), again(1000), again(2000), again(4000), again(8000), Verdict::Tell];
        assert_eq!(pauses, story);
    }
    #[test]
    fn a_refusal_is_told_at_once_and_an_election_over_there_is_waited_out() {
        assert_eq!(said(&call(), Retry::Transient, 1, ErrorCode::BadValue), Verdict::Tell);
        let elsewhere = said(&call(), Retry::Transient, 1, ErrorCode::NotWritablePrimary);
        assert_eq!(elsewhere, Verdict::Again { after_ms: 500 });
        let nobody = said(&call(), Retry::UntilRefused, 1, ErrorCode::FailedToSatisfyReadPreference);
        assert_eq!(nobody, Verdict::Again { after_ms: 500 });
    }
    #[test]
    fn an_instance_leaves_a_node_that_is_primary_no_more_and_a_command_tells_its_client() {
        let code = ErrorCode::NotWritablePrimary;
        assert_eq!(said(&Action::Draw, Retry::Always, 1, code), Verdict::Abandon);
        let e = Error::new(code, "x");
        assert_eq!(judge(Home::Command, &Action::Draw, Retry::Never, 1, &e), Verdict::Tell);
    }
    #[test]
    fn who_insists_hears_a_refusal_and_nothing_else() {
        let said = |tries, code| said(&call(), Retry::UntilRefused, tries, code);
        assert_eq!(said(900, ErrorCode::HostUnreachable), Verdict::Again { after_ms: 10_000 });
        assert_eq!(said(1, ErrorCode::ShardNotFound), Verdict::Tell);
    }
    #[test]
    fn a_step_of_this_node_ends_with_its_office() {
        let own = Action::Call { to: Target::Own, body: doc! { "ping": 1 }.to_raw() };
        assert_eq!(said(&own, Retry::Always, 1, ErrorCode::NotWritablePrimary), Verdict::Abandon);
    }
    #[test]
    fn what_must_be_done_is_tried_without_end() {
        let code = ErrorCode::OutOfDiskSpace;
        assert_eq!(said(&Action::Forget, Retry::Always, 900, code), Verdict::Again { after_ms: 500 });
    }
}
