//! The arguments of `drop` and `dropDatabase`.

use crate::declare::arguments;
use crate::declare::kinds::Uuid;
use pando_base::{Error, Result};
use pando_bson::Value;
use pando_bson::fields::safe_i64;
use pando_command::Request;
use pando_command::request::{missing, wrong_type};

arguments! {
    /// What `drop` asks for.
    pub struct DropArgs of "drop" as "drop", refusing {
        "collectionUUID" collection_uuid: optional Uuid,
    }
}
arguments! {
    /// What `dropDatabase` asks for, which is nothing but the database.
    pub struct DropDatabaseArgs of "dropDatabase" as "dropDatabase", refusing {}
}

impl DropDatabaseArgs<'_> {
    /// The command's own element, as a number. Only [`DropDatabaseArgs::check_one`] says which.
    pub fn number(req: &Request<'_>) -> Result<i64> {
        const OWNER: &str = "dropDatabase";
        match req.first().value() {
            Value::Null | Value::Undefined => Err(missing(OWNER, OWNER)),
            v => safe_i64(&v)
                .ok_or_else(|| wrong_type(OWNER, OWNER, &v, &["long", "int", "decimal", "double"])),
        }
    }
    pub fn check_one(n: i64) -> Result<()> {
        match n {
            1 => Ok(()),
            _ => Err(Error::location(5_255_100, "Have to pass 1 as 'drop' parameter")),
        }
    }
}
