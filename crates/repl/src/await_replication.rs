//! Write concerns: what must be true before a write is acknowledged (R-WC-1..9).
//!
//! With one member the question is only "is my own log durable up to there?", but refusals are those of a set:
//! too many nodes asked for (100) and modes nobody configured (79) leave the write in place and say so.

use crate::config::ReplSetConfig;
use pando_base::{Error, ErrorCode};
use pando_bson::{DocBuf, DocBuilder};
use pando_command::concern::{W, WriteConcern, WriteConcernError};
use pando_topology::write_concern::{Concern, Want};

/// What to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// The write is in memory: enough.
    Applied,
    /// The log must be on disk up to the write.
    Durable,
}

/// What `wc` asks of a set configured as `config`, or why it can never be met.
pub fn plan(wc: &WriteConcern, config: &ReplSetConfig) -> Result<Wait, WriteConcernError> {
    let journaled = wc.j == Some(true) || wc.fsync;
    let wait = |durable: bool| if durable { Wait::Durable } else { Wait::Applied };
    match &wc.w {
        W::Nodes(n) if *n as usize > config.data_bearing() => {
            Err(failed(wc, ErrorCode::UnsatisfiableWriteConcern, "Not enough data-bearing nodes"))
        }
        W::Nodes(_) => Ok(wait(journaled)),
        W::Majority => {
            Ok(wait(journaled || (config.write_concern_majority_journal_default && wc.j != Some(false))))
        }
        W::Mode(mode) if config.settings.get_last_error_modes.contains(mode) => Ok(wait(journaled)),
        W::Mode(mode) => Err(failed(
            wc,
            ErrorCode::UnknownReplWriteConcern,
            format!("No write concern mode named '{mode}' found in replica set configuration"),
        )),
        W::Tags(tags) => {
            let unknown = tags
                .iter()
                .find(|t| !config.members.iter().any(|m| m.tags.iter().any(|(k, _)| k == t.name())));
            match unknown {
                Some(t) => Err(failed(
                    wc,
                    ErrorCode::NoSuchKey,
                    format!("No replica set tag key {} in config", t.name()),
                )),
                None => Ok(wait(journaled)),
            }
        }
    }
}

/// The same for the topology core, which knows the other members.
pub fn concern(wc: &WriteConcern, config: &ReplSetConfig) -> Concern {
    let on_disk = wc.j == Some(true) || wc.fsync;
    let want = match &wc.w {
        W::Nodes(n) => Want::Nodes(*n as u32),
        W::Majority => Want::Majority,
        W::Mode(mode) => Want::Mode(mode.clone()),
        W::Tags(tags) => Want::Tags(
            tags.iter()
                .map(|e| (e.name().to_owned(), e.value().as_f64().unwrap_or(0.0).max(0.0) as u32))
                .collect(),
        ),
    };
    let by_default = want == Want::Majority && config.write_concern_majority_journal_default;
    Concern { want, journaled: on_disk || (by_default && wc.j != Some(false)) }
}

/// Code 2 for concerns that make no sense without a replica set.
pub fn check_standalone(wc: &WriteConcern) -> Result<Wait, Error> {
    match &wc.w {
        W::Nodes(n) if *n > 1 => Err(Error::bad_value("cannot use 'w' > 1 when a host is not replicated")),
        W::Mode(mode) => Err(Error::bad_value(format!(
            "cannot use non-majority 'w' mode \"{mode}\" when a host is not a member of a replica set"
        ))),
        W::Tags(tags) => Err(Error::bad_value(format!(
            "cannot use non-majority 'w' mode {} when a host is not a member of a replica set",
            &**tags
        ))),
        _ if wc.j == Some(true) || wc.fsync => Ok(Wait::Durable),
        _ => Ok(Wait::Applied),
    }
}

/// `writeConcernError` with the concern in `errInfo`.
pub fn failed(wc: &WriteConcern, code: ErrorCode, message: impl Into<String>) -> WriteConcernError {
    WriteConcernError { code, message: message.into(), info: Some(info(wc, false)) }
}

/// Code 64 after `wtimeout`: the write stays.
pub fn timed_out(wc: &WriteConcern) -> WriteConcernError {
    WriteConcernError {
        code: ErrorCode::WriteConcernFailed,
        message: "waiting for replication timed out".to_owned(),
        info: Some(info(wc, true)),
    }
}

fn info(wc: &WriteConcern, timed_out: bool) -> DocBuf {
    let mut b = DocBuilder::new();
    if timed_out {
        b.bool("wtimeout", true);
    }
    b.doc("writeConcern", |d| wc.append_to(d));
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_command::concern::Provenance;

    fn wc(w: W, j: Option<bool>) -> WriteConcern {
        WriteConcern { j, ..WriteConcern::of(w, Provenance::ClientSupplied) }
    }

    #[test]
    fn one_member_satisfies_majority_by_its_own_disk() {
        let c = ReplSetConfig::single("rs", "a:1");
        assert_eq!(plan(&wc(W::Nodes(1), None), &c).unwrap(), Wait::Applied);
        assert_eq!(plan(&wc(W::Nodes(1), Some(true)), &c).unwrap(), Wait::Durable);
        assert_eq!(plan(&wc(W::Majority, None), &c).unwrap(), Wait::Durable);
        let e = plan(&wc(W::Nodes(2), None), &c).unwrap_err();
        assert_eq!((e.code.0, &*e.message), (100, "Not enough data-bearing nodes"));
        let e = plan(&wc(W::Mode("zz".to_owned()), None), &c).unwrap_err();
        assert_eq!(e.code.0, 79);
        assert_eq!(
            e.info.unwrap().to_string(),
            "{ writeConcern: { w: \"zz\", wtimeout: 0, provenance: \"clientSupplied\" } }"
        );
    }

    #[test]
    fn a_standalone_node_refuses_more_than_itself() {
        assert_eq!(check_standalone(&wc(W::Nodes(2), None)).unwrap_err().code.0, 2);
        assert_eq!(check_standalone(&wc(W::Majority, None)).unwrap(), Wait::Applied);
    }
}
