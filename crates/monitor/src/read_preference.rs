//! Who may answer: `$readPreference` (SH-REG-4).

use pando_base::{Error, Millis, Result, limits};
use pando_bson::{RawDoc, Value};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    #[default]
    Primary,
    PrimaryPreferred,
    Secondary,
    SecondaryPreferred,
    Nearest,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::Primary => "primary",
            Mode::PrimaryPreferred => "primaryPreferred",
            Mode::Secondary => "secondary",
            Mode::SecondaryPreferred => "secondaryPreferred",
            Mode::Nearest => "nearest",
        }
    }
    pub fn from_name(name: &str) -> Option<Mode> {
        use Mode::*;
        [Primary, PrimaryPreferred, Secondary, SecondaryPreferred, Nearest]
            .into_iter()
            .find(|m| m.name() == name)
    }
}

/// Tags that a member must have, all of them.
pub type TagSet = BTreeMap<String, String>;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ReadPreference {
    pub mode: Mode,
    /// Tried in order; none means that any member will do.
    pub tag_sets: Vec<TagSet>,
    /// Members that are farther behind do not answer.
    pub max_staleness_ms: Option<Millis>,
}

impl ReadPreference {
    pub fn of(mode: Mode) -> ReadPreference {
        ReadPreference { mode, ..ReadPreference::default() }
    }
    /// The value of `$readPreference`, which the door has checked.
    pub fn parse(doc: &RawDoc) -> Result<ReadPreference> {
        let name = doc.get("mode").and_then(|v| v.as_str()).unwrap_or("primary");
        let mode = Mode::from_name(name)
            .ok_or_else(|| Error::failed_to_parse(format!("Unrecognized read preference mode '{name}'")))?;
        let mut tag_sets = Vec::new();
        let all = doc.get("tags").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        for e in all.iter().take(limits::READ_PREFERENCE_TAG_SETS_MAX) {
            let Value::Document(set) = e.value() else { continue };
            let tags =
                set.iter().filter_map(|t| Some((t.utf8_name()?.to_owned(), t.value().as_str()?.to_owned())));
            tag_sets.push(tags.collect());
        }
        let secs = doc.get("maxStalenessSeconds").and_then(|v| v.as_i64()).filter(|s| *s > 0);
        Ok(ReadPreference { mode, tag_sets, max_staleness_ms: secs.map(|s| s.saturating_mul(1000)) })
    }
}

impl fmt::Display for ReadPreference {
    /// As errors name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ mode: \"{}\"", self.mode.name())?;
        if !self.tag_sets.is_empty() {
            let set = |tags: &TagSet| {
                let inner: Vec<String> = tags.iter().map(|(k, v)| format!("{k}: \"{v}\"")).collect();
                if inner.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", inner.join(", ")) }
            };
            let sets: Vec<String> = self.tag_sets.iter().map(set).collect();
            write!(f, ", tags: [ {} ]", sets.join(", "))?;
        }
        if let Some(ms) = self.max_staleness_ms {
            write!(f, ", maxStalenessSeconds: {}", ms / 1000)?;
        }
        f.write_str(" }")
    }
}
