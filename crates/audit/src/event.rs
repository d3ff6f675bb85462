//! One thing that happened. The kinds of events, and what each tells, are in [`crate::events`].

use crate::who::Who;
use pando_base::ErrorCode;
use pando_bson::{DocBuf, DocBuilder};

/// The result of what was done.
pub(crate) const DONE: ErrorCode = ErrorCode(0);

/// What happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// MongoDB's name of the action (`atype`).
    pub action: &'static str,
    pub param: DocBuf,
    /// 0 where it was done, else why not.
    pub result: ErrorCode,
    /// It tells of a change that outlives the process, which does not reach the disk before this does.
    pub(crate) is_change: bool,
}

impl Event {
    /// One that was done.
    pub(crate) fn done(action: &'static str, fill: impl FnOnce(&mut DocBuilder)) -> Event {
        let mut param = DocBuilder::new();
        fill(&mut param);
        Event { action, param: param.finish(), result: DONE, is_change: true }
    }
    pub(crate) fn with_result(self, result: ErrorCode) -> Event {
        Event { result, ..self }
    }
    /// It changes nothing.
    pub(crate) fn of_access(self) -> Event {
        Event { is_change: false, ..self }
    }
    /// The whole record, which is what a filter sees. `wall_ms` is since 1970.
    pub(crate) fn document(&self, who: &Who, wall_ms: i64) -> DocBuf {
        let mut b = DocBuilder::with_capacity(self.param.byte_len() + 512);
        b.str("atype", self.action);
        b.date("ts", wall_ms);
        who.append_to(&mut b);
        b.raw_doc("param", &self.param);
        b.i32("result", self.result.0);
        b.finish()
    }
}
