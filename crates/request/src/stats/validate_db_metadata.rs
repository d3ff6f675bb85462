//! The arguments of `validateDBMetadata`.

use crate::declare::arguments;
use crate::declare::kinds::{Object, Text};
use pando_base::Result;
use pando_bson::shape::{Field, Shape, check_fields};

arguments! {
    /// What `validateDBMetadata` asks for.
    pub struct ValidateDbMetadataArgs of "validateDBMetadata" as "validateDBMetadata", refusing {
        "db" db: optional Text,
        "collection" collection: optional Text,
        "apiParameters" api: required Object,
    }
}

const API: &[Field] = &[
    Field::required("version", Shape::String),
    Field::optional("strict", Shape::Any),
    Field::optional("deprecationErrors", Shape::Any),
];

impl ValidateDbMetadataArgs<'_> {
    /// The fields of `apiParameters`, which are looked at once all arguments are there.
    pub fn check_api(&self) -> Result<()> {
        check_fields(API, "validateDBMetadata.apiParameters", self.api)
    }
}
