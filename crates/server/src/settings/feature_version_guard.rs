//! The document of the feature compatibility version, written by whatever command: it is never nonsense, never goes, and
//! what it says holds from its commit on.

use super::Settings;
use super::feature_version::{FEATURE_VERSION, FeatureVersion};
use pando_access::observer::{Deleted, Inserted, OpObserver, Updated};
use pando_access::{Collection, WriteOp, WriteUnit};
use pando_base::{Error, Result};
use pando_bson::RawDoc;
use std::sync::Weak;

pub(crate) struct FeatureVersionGuard(pub(crate) Weak<Settings>);

fn is_it(coll: &Collection, doc: &RawDoc) -> bool {
    coll.ns.as_str() == "admin.system.version"
        && doc.get("_id").and_then(|v| v.as_str()) == Some(FEATURE_VERSION)
}

impl FeatureVersionGuard {
    fn written(&self, unit: &mut WriteUnit, coll: &Collection, doc: &RawDoc) -> Result<()> {
        if !is_it(coll, doc) {
            return Ok(());
        }
        let Some(version) = FeatureVersion::from_doc(doc) else {
            // What is in the log has happened.
            if unit.is_applying() {
                return Ok(());
            }
            let page =
                "https://docs.mongodb.com/master/release-notes/6.0-compatibility/#feature-compatibility.";
            return Err(Error::location(
                4_926_900,
                format!(
                    "Invalid featureCompatibilityVersion document in {}: {doc}. See {page} :: caused by :: Invalid feature \
                     compatibility version value, expected '6.0' or '6.3' or '7.0. See {page}",
                    coll.ns
                ),
            ));
        };
        let settings = self.0.clone();
        unit.after_commit(move |_| {
            if let Some(settings) = settings.upgrade() {
                settings.set_feature_version(version);
            }
        });
        Ok(())
    }
}

impl OpObserver for FeatureVersionGuard {
    fn inserted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        self.written(unit, e.coll, e.doc)
    }
    fn updated(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        self.written(unit, e.coll, e.new)
    }
    fn deleted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        if is_it(e.coll, e.old) && !unit.is_applying() {
            let text = "removing FeatureCompatibilityVersion document is not allowed";
            return Err(Error::location(40670, text));
        }
        Ok(())
    }
}
