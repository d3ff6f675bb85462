//! The arguments of `renameCollection`.

use crate::declare::kinds::{Bool, Text, Uuid};
use crate::declare::{Kind, arguments, kind};
use pando_base::{DbName, Error, ErrorCode, Namespace, Result};
use pando_bson::shape::{Means, Null, Shape, wrong_type_at};
use pando_bson::{DocBuilder, Value};
use pando_command::Request;

arguments! {
    /// What `renameCollection` asks for. The first element names the source.
    pub struct RenameCollectionArgs of "renameCollection" as "renameCollection", refusing {
        "to" to: required Target,
        "dropTarget" drop_target: optional DropTarget,
        "stayTemp" stay_temp: optional Bool,
        "collectionUUID" collection_uuid: optional Uuid,
    }
}

impl RenameCollectionArgs<'_> {
    /// What the first element names.
    pub fn source(req: &Request<'_>) -> Result<Namespace> {
        let full = req.coll()?;
        full_name(full, || format!("Invalid namespace specified '{full}'"))
    }
    pub fn target(&self) -> Result<Namespace> {
        full_name(self.to, || format!("Invalid target namespace: {}", self.to))
    }
    /// UUIDs are expected of names in one database alone.
    pub fn check_uuids(&self, from: &Namespace, to: &Namespace) -> Result<()> {
        let expects = self.collection_uuid.is_some() || matches!(self.drop_target, Some(Dropped::Uuid(_)));
        if from.db() != to.db() && expects {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "Cannot provide an expected collection UUID when renaming between databases",
            ));
        }
        Ok(())
    }
}

/// `db.coll` as far as a name can be read from it; what is wrong with the collection's part is said by whoever renames.
fn full_name(full: &str, invalid: impl Fn() -> String) -> Result<Namespace> {
    if full.contains('\0') {
        let text = "namespaces cannot have embedded null characters";
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    match full.split_once('.') {
        Some((db, coll)) if !coll.is_empty() && DbName::parse(db).is_ok() => {
            Ok(Namespace::unchecked(db, coll))
        }
        _ => Err(Error::new(ErrorCode::InvalidNamespace, invalid())),
    }
}

kind! { pub Target like Text { MEANS: Means::Namespace } }

/// What may be dropped to make room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dropped {
    Anything(bool),
    /// The collection of this UUID.
    Uuid([u8; 16]),
}

#[derive(Debug)]
pub struct DropTarget;
impl Kind for DropTarget {
    type Of<'a> = Dropped;
    const SHAPE: Shape = Shape::Checked { like: &[Shape::Bool, Shape::Uuid], check: check_drop_target };
    const NULL: Null = Null::Value;
    fn read(v: Value<'_>) -> Option<Dropped> {
        match v {
            Value::Boolean(on) => Some(Dropped::Anything(on)),
            Value::Binary { subtype: 4, bytes } => bytes.try_into().ok().map(Dropped::Uuid),
            _ => None,
        }
    }
    fn spell(v: &Dropped, name: &str, b: &mut DocBuilder) {
        match v {
            Dropped::Anything(on) => b.bool(name, *on),
            Dropped::Uuid(id) => b.uuid(name, id),
        };
    }
}

fn check_drop_target(path: &str, v: &Value<'_>) -> Result<()> {
    match v {
        Value::Boolean(_) => Ok(()),
        Value::Binary { subtype: 4, bytes } if bytes.len() == 16 => Ok(()),
        Value::Binary { .. } => Err(Error::new(
            ErrorCode::InvalidUUID,
            "uuid must be a 16-byte binary field with UUID (4) subtype",
        )),
        v => Err(wrong_type_at(path, v, &["bool", "binData"])),
    }
}
