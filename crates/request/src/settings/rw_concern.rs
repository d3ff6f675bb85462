//! The arguments of `getDefaultRWConcern` and `setDefaultRWConcern`.

use crate::declare::kinds::{Bool, Object};
use crate::declare::{arguments, kind};
use pando_base::Result;
use pando_bson::Value;
use pando_bson::shape::{Shape, wrong_type_at};
use pando_command::{ReadConcern, WriteConcern};

arguments! {
    /// What `getDefaultRWConcern` asks for.
    pub struct GetDefaultRwConcernArgs of "getDefaultRWConcern" as "getDefaultRWConcern", refusing {
        "inMemory" in_memory: optional Bool,
    }
}
arguments! {
    /// What `setDefaultRWConcern` asks for. Concerns with nothing in them take a default away.
    pub struct SetDefaultRwConcernArgs of "setDefaultRWConcern" as "setDefaultRWConcern", refusing {
        "defaultReadConcern" read: optional DefaultRead,
        "defaultWriteConcern" write: optional DefaultWrite,
    }
}

kind! { pub DefaultRead like Object { SHAPE: Shape::Checked { like: &[Shape::Object], check: check_read } } }
kind! { pub DefaultWrite like Object { SHAPE: Shape::Checked { like: &[Shape::Object], check: check_write } } }

fn check_read(path: &str, v: &Value<'_>) -> Result<()> {
    match v {
        Value::Document(_) => ReadConcern::parse(v).map(drop),
        v => Err(wrong_type_at(path, v, &["object"])),
    }
}
fn check_write(path: &str, v: &Value<'_>) -> Result<()> {
    match v {
        Value::Document(_) => WriteConcern::parse(v).map(drop),
        v => Err(wrong_type_at(path, v, &["object"])),
    }
}
