//! What goes wrong in a run, and at which action.

use super::FAILURES;
use crate::Home;
use pando_base::ErrorCode;

/// One run: which of several actions that are under way comes first, and what goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// 0: in the order given.
    pub order: u64,
    pub fault: Fault,
    /// The process ends again behind this action, and what no majority has is lost.
    pub then_crash: Option<usize>,
}

impl Plan {
    pub fn of(fault: Fault) -> Plan {
        Plan { order: 0, fault, then_crash: None }
    }
}

/// What goes wrong; `at` counts actions from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    None,
    /// Each action is carried out twice; the answer is the second one's, or the first one's.
    Twice {
        answer_second: bool,
    },
    /// The process ends before the action, or behind it and before its answer. What no majority has is lost, or not.
    Crash {
        at: usize,
        behind: bool,
        lost: bool,
    },
    /// This node is primary no more, from this action on.
    StepDown {
        at: usize,
        lost: bool,
    },
    /// The action is carried out, and its answer never comes.
    Lost {
        at: usize,
    },
    /// The same, but the answer comes when nobody waits for it any more.
    Late {
        at: usize,
    },
    /// The answer comes twice.
    Doubled {
        at: usize,
    },
    /// The action fails.
    Failed {
        at: usize,
        code: ErrorCode,
    },
    /// The same call fails for longer than anybody tries who may give up.
    FailedEver {
        at: usize,
        code: ErrorCode,
    },
    /// Somebody wants the workflow to end: before the action, or behind it and before its answer.
    Abort {
        at: usize,
        behind: bool,
    },
}

impl Fault {
    /// The action behind which this life is over.
    pub(crate) fn last_action(&self) -> Option<usize> {
        match self {
            Fault::Crash { at, .. } | Fault::StepDown { at, .. } => Some(*at),
            _ => None,
        }
    }
    /// An action fails in a way that trying again does not mend.
    pub fn is_lasting(&self) -> bool {
        use pando_base::codes::class::{NOT_PRIMARY, RECOVERING, RETRIABLE, SHUTDOWN};
        match self {
            Fault::FailedEver { .. } => true,
            Fault::Failed { code, .. } => !code.is(RETRIABLE | NOT_PRIMARY | RECOVERING | SHUTDOWN),
            _ => false,
        }
    }
    /// Every fault at each of `actions` actions.
    pub(crate) fn all(actions: usize, home: Home) -> Vec<Fault> {
        let mut all = vec![Fault::Twice { answer_second: false }];
        // A command's writes are never repeated by themselves.
        if home == Home::Primary {
            all.push(Fault::Twice { answer_second: true });
        }
        for at in 0..actions {
            for lost in [false, true] {
                all.extend([false, true].map(|behind| Fault::Crash { at, behind, lost }));
                all.push(Fault::StepDown { at, lost });
            }
            all.extend([Fault::Lost { at }, Fault::Late { at }, Fault::Doubled { at }]);
            all.extend([false, true].map(|behind| Fault::Abort { at, behind }));
            for &code in FAILURES {
                all.push(Fault::Failed { at, code });
                all.push(Fault::FailedEver { at, code });
            }
        }
        all
    }
}
