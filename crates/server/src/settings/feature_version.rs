//! The feature compatibility version: which release's features, and forms of data, may be used (R-FCV-1).
//!
//! ```text
//!   6.0 ──► {version 6.0, targetVersion 7.0} ──────────────────────────────────────────────► 7.0
//!   7.0 ──► {version 6.0, targetVersion 6.0, previousVersion 7.0} ──► … isCleaningServerMetadata ──► 6.0
//! ```
//! Each step is a document in `admin.system.version` that a majority holds before the next one begins; a change that
//! was cut off is taken up by asking for it again, at whichever primary. Here the moves are decided; the command acts.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::fmt;

/// `_id` of the document in `admin.system.version`.
pub(crate) const FEATURE_VERSION: &str = "featureCompatibilityVersion";

/// Versions that a 7.0 server can be told to stay compatible with.
pub(crate) const LAST_LTS: &str = "6.0";
pub(crate) const LAST_CONTINUOUS: &str = "6.3";
pub(crate) const LATEST: &str = "7.0";

const KNOWN: [&str; 3] = [LAST_LTS, LAST_CONTINUOUS, LATEST];

/// What the document says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FeatureVersion {
    /// What every member's features must be content with.
    pub(crate) version: &'static str,
    /// A change is under way.
    pub(crate) target: Option<&'static str>,
    /// Where a downgrade came from.
    pub(crate) previous: Option<&'static str>,
    /// A downgrade has come so far that it must end before an upgrade begins.
    pub(crate) cleaning: bool,
}

/// How far a change goes now. That of a cluster goes in two phases, the second of which begins when all shards have done the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// To where what differs between the versions is not used.
    Start,
    End,
}

impl Reach {
    pub(crate) fn of_phase(phase: &str) -> Reach {
        if phase == "complete" { Reach::End } else { Reach::Start }
    }
}

impl Default for FeatureVersion {
    fn default() -> FeatureVersion {
        FeatureVersion::settled(LATEST)
    }
}

impl pando_base::redaction::Plain for FeatureVersion {}

impl fmt::Display for FeatureVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.target, self.previous) {
            (Some(to), Some(from)) => write!(f, "downgrading from {from} to {to}"),
            (Some(to), None) => write!(f, "upgrading from {} to {to}", self.version),
            (None, _) => f.write_str(self.version),
        }
    }
}

pub(crate) fn known(text: &str) -> Option<&'static str> {
    KNOWN.into_iter().find(|v| *v == text)
}

impl FeatureVersion {
    pub(crate) fn settled(version: &'static str) -> FeatureVersion {
        FeatureVersion { version, target: None, previous: None, cleaning: false }
    }
    /// `None` for a document of another release, which this one leaves alone.
    pub(crate) fn from_doc(doc: &RawDoc) -> Option<FeatureVersion> {
        let text = |name| doc.get(name).and_then(|v| v.as_str()).and_then(known);
        Some(FeatureVersion {
            version: text("version")?,
            target: text("targetVersion"),
            previous: text("previousVersion"),
            cleaning: doc.get("isCleaningServerMetadata").is_some_and(|v| v.is_truthy()),
        })
    }
    pub(crate) fn to_doc(self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("_id", FEATURE_VERSION);
        self.append_to(&mut b);
        b.finish()
    }
    /// The fields that `getParameter` shows.
    pub(crate) fn append_to(&self, b: &mut DocBuilder) {
        b.str("version", self.version);
        if let Some(target) = self.target {
            b.str("targetVersion", target);
        }
        if let Some(previous) = self.previous {
            b.str("previousVersion", previous);
        }
        if self.cleaning {
            b.bool("isCleaningServerMetadata", true);
        }
    }

    pub(crate) fn goes_up(&self, wanted: &str) -> bool {
        wanted > self.version || (self.target.is_some() && self.previous.is_none())
    }
    /// Is it where `wanted` would bring it?
    pub(crate) fn is(&self, wanted: &str) -> bool {
        self.target.is_none() && self.version == wanted
    }
    /// The next state on the way to `wanted`, as far as it is to go; `None` where it is there.
    pub(crate) fn next(&self, wanted: &'static str, reach: Reach) -> Result<Option<FeatureVersion>> {
        if self.is(wanted) {
            return Ok(None);
        }
        let next = self.way_to(wanted)?.first().copied();
        Ok(next.filter(|step| reach == Reach::End || !step.is_behind_start()))
    }
    /// Whether it comes when every node that it concerns has started.
    pub(crate) fn is_behind_start(&self) -> bool {
        self.target.is_none() || self.cleaning
    }
    /// The states on the way to `wanted`, the last one settled. An error where that way does not exist.
    pub(crate) fn way_to(&self, wanted: &'static str) -> Result<Vec<FeatureVersion>> {
        let from = self.target.map_or(self.version, |_| self.previous.unwrap_or(self.version));
        let possible = match (wanted, self.target, self.previous) {
            // Up, also while a downgrade is under way.
            (LATEST, ..) => true,
            // On with the downgrade that is under way.
            (_, Some(to), Some(_)) => to == wanted,
            (_, Some(_), None) => false,
            (_, None, _) => self.version == LATEST,
        };
        if !possible {
            return Err(Error::location(
                5_147_403,
                format!(
                    "cannot set featureCompatibilityVersion to '{wanted}' while featureCompatibilityVersion is '{self}'"
                ),
            ));
        }
        if wanted == LATEST && self.cleaning {
            return Err(Error::new(
                ErrorCode(7_428_200),
                "Cannot upgrade featureCompatibilityVersion if the previous FCV downgrade stopped in the middle of \
                 cleaning up internal server metadata. Retry the FCV downgrade until it succeeds before attempting to \
                 upgrade the FCV.",
            ));
        }
        let target = Some(wanted);
        let mut way = Vec::new();
        if wanted == LATEST {
            way.push(FeatureVersion { version: self.version, target, previous: None, cleaning: false });
        } else {
            let down =
                FeatureVersion { version: wanted, target, previous: Some(from), cleaning: self.cleaning };
            way.extend([down, FeatureVersion { cleaning: true, ..down }]);
        }
        way.push(FeatureVersion::settled(wanted));
        way.retain(|step| step != self);
        Ok(way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(from: FeatureVersion, to: &'static str) -> Vec<String> {
        from.way_to(to).map_or_else(
            |e| vec![e.message.to_string()],
            |way| way.iter().map(|s| format!("{s}{}", if s.cleaning { ", cleaning" } else { "" })).collect(),
        )
    }

    #[test]
    fn a_change_goes_through_its_phases_and_is_taken_up_where_it_was_cut_off() {
        let latest = FeatureVersion::settled(LATEST);
        let all = ["downgrading from 7.0 to 6.0", "downgrading from 7.0 to 6.0, cleaning", "6.0"];
        assert_eq!(names(latest, LAST_LTS), all);
        let down = latest.way_to(LAST_LTS).unwrap();
        assert_eq!(names(down[0], LAST_LTS), all[1..]);
        assert_eq!(names(down[1], LAST_LTS), all[2..]);
        assert_eq!(names(down[2], LATEST), ["upgrading from 6.0 to 7.0", "7.0"]);
        let up = down[2].way_to(LATEST).unwrap();
        assert_eq!(names(up[0], LATEST), ["7.0"]);
        let start = |from: FeatureVersion, to| from.next(to, Reach::Start).unwrap();
        assert_eq!((start(latest, LAST_LTS), start(down[0], LAST_LTS)), (Some(down[0]), None));
        assert_eq!((start(down[2], LATEST), start(up[0], LATEST)), (Some(up[0]), None));
        assert_eq!((start(latest, LATEST), latest.next(LATEST, Reach::End).unwrap()), (None, None));
        for state in down.iter().chain(&up) {
            assert_eq!(FeatureVersion::from_doc(&state.to_doc()), Some(*state));
        }
    }

    #[test]
    fn some_ways_do_not_exist() {
        let cannot = |to: &str, now: &str| {
            vec![format!(
                "cannot set featureCompatibilityVersion to '{to}' while featureCompatibilityVersion is '{now}'"
            )]
        };
        let (old, between) = (FeatureVersion::settled(LAST_LTS), FeatureVersion::settled(LAST_CONTINUOUS));
        assert_eq!(names(old, LAST_CONTINUOUS), cannot("6.3", "6.0"));
        assert_eq!(names(between, LAST_LTS), cannot("6.0", "6.3"));
        let up = old.way_to(LATEST).unwrap()[0];
        assert_eq!(names(up, LAST_LTS), cannot("6.0", "upgrading from 6.0 to 7.0"));
        let down = FeatureVersion::settled(LATEST).way_to(LAST_LTS).unwrap();
        assert_eq!(names(down[0], LAST_CONTINUOUS), cannot("6.3", "downgrading from 7.0 to 6.0"));
        assert_eq!(names(down[0], LATEST), ["upgrading from 6.0 to 7.0", "7.0"]);
        assert!(names(down[1], LATEST)[0].starts_with("Cannot upgrade featureCompatibilityVersion if"));
    }
}
