//! Fields that Stable API version 1 does not have, by command. (`find` looks at its own while it reads them: the same
//! fields are refused inside an `explain`.)

use crate::request::unstable_field;
use pando_base::Result;
use pando_bson::RawDoc;

const UNSTABLE: &[(&str, &[&str])] = &[
    ("aggregate", &["isMapReduceCommand", "collectionUUID"]),
    ("collMod", &["changeStreamPreAndPostImages", "dryRun", "collectionUUID"]),
    (
        "create",
        &[
            "size",
            "max",
            "autoIndexId",
            "storageEngine",
            "indexOptionDefaults",
            "temp",
            "changeStreamPreAndPostImages",
            "recordPreImages",
            "flags",
        ],
    ),
    ("createIndexes", &["ignoreUnknownIndexOptions", "collectionUUID"]),
    ("delete", &["runtimeConstants", "collectionUUID"]),
    ("drop", &["collectionUUID"]),
    ("dropIndexes", &["collectionUUID"]),
    ("insert", &["collectionUUID"]),
    ("update", &["runtimeConstants", "collectionUUID"]),
];

/// 323 for the first field of `body` that is outside the API.
pub(crate) fn check_fields(command: &'static str, body: &RawDoc) -> Result<()> {
    let Some((_, fields)) = UNSTABLE.iter().find(|(name, _)| *name == command) else { return Ok(()) };
    match body.iter().skip(1).find(|e| fields.contains(&e.name())) {
        Some(e) => Err(unstable_field(command, e.name())),
        None => Ok(()),
    }
}
