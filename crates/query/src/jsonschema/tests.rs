//! Expected outcomes were asked of a real server.

use super::*;
use pando_bson::{Bson, DocBuilder, Document, doc};

fn subject() -> DocBuf {
    doc! { "_id": 1, "a": 5, "s": "hello", "arr": [1, "x", 3], "o": { "p": 1, "q": "z" } }.to_raw()
}

fn accepts(schema: Document) -> bool {
    Schema::parse(&schema.to_raw(), &QueryCtx::default()).unwrap().accepts(&subject())
}

/// The first broken rule.
fn broken(schema: Document) -> Document {
    let schema = Schema::parse(&schema.to_raw(), &QueryCtx::default()).unwrap();
    assert!(!schema.accepts(&subject()));
    let mut b = DocBuilder::new();
    schema.explain(&subject(), &mut b);
    let out = Document::from(&*b.finish());
    match out.get("schemaRulesNotSatisfied").and_then(|r| r.as_array()) {
        Some([Bson::Document(first), ..]) => first.clone(),
        other => panic!("no broken rule in {other:?}"),
    }
}

#[test]
fn each_keyword_accepts_and_refuses() {
    for (schema, expected) in [
        (doc! { "required": ["a", "s"] }, true),
        (doc! { "required": ["zz"] }, false),
        (doc! { "bsonType": "object" }, true),
        (doc! { "properties": { "a": { "bsonType": "int" } } }, true),
        (doc! { "properties": { "a": { "bsonType": ["string", "bool"] } } }, false),
        (doc! { "properties": { "a": { "type": "number" } } }, true),
        (doc! { "properties": { "a": { "minimum": 5 } } }, true),
        (doc! { "properties": { "a": { "minimum": 5, "exclusiveMinimum": true } } }, false),
        (doc! { "properties": { "s": { "minimum": 5 } } }, true),
        (doc! { "properties": { "a": { "multipleOf": 2 } } }, false),
        (doc! { "properties": { "a": { "enum": [1, 5.0] } } }, true),
        (doc! { "properties": { "s": { "minLength": 5, "maxLength": 5, "pattern": "^h" } } }, true),
        (doc! { "properties": { "arr": { "minItems": 4 } } }, false),
        (doc! { "properties": { "arr": { "uniqueItems": true } } }, true),
        (doc! { "properties": { "arr": { "items": { "bsonType": "int" } } } }, false),
        (doc! { "properties": { "arr": { "items": [{}, {}], "additionalItems": false } } }, false),
        (doc! { "properties": { "zz": { "bsonType": "int" } } }, true),
        (doc! { "additionalProperties": false }, false),
        (doc! { "patternProperties": { "^s": { "bsonType": "int" } } }, false),
        (doc! { "dependencies": { "a": ["s"] } }, true),
        (doc! { "dependencies": { "a": { "required": ["zz"] } } }, false),
        (doc! { "anyOf": [{ "required": ["zz"] }, { "required": ["a"] }] }, true),
        (doc! { "oneOf": [{ "required": ["s"] }, { "required": ["a"] }] }, false),
        (doc! { "not": { "required": ["a"] } }, false),
    ] {
        assert_eq!(accepts(schema.clone()), expected, "{schema:?}");
    }
}

#[test]
fn a_refusal_names_the_rule_the_property_and_the_value() {
    assert_eq!(
        broken(doc! { "properties": { "a": { "bsonType": "string", "description": "must be text" } } }),
        doc! {
            "operatorName": "properties",
            "propertiesNotSatisfied": [{
                "propertyName": "a",
                "description": "must be text",
                "details": [{
                    "operatorName": "bsonType", "specifiedAs": { "bsonType": "string" },
                    "reason": "type did not match", "consideredValue": 5, "consideredType": "int"
                }]
            }]
        }
    );
    assert_eq!(
        broken(doc! { "required": ["zz", "yy", "a"] }),
        doc! {
            "operatorName": "required", "specifiedAs": { "required": ["zz", "yy", "a"] },
            "missingProperties": ["yy", "zz"]
        }
    );
    assert_eq!(
        broken(doc! { "oneOf": [{ "required": ["s"] }, { "required": ["a"] }] }),
        doc! {
            "operatorName": "oneOf", "reason": "more than one subschema matched", "matchingSchemaIndexes": [0, 1]
        }
    );
}

#[test]
fn bad_schemas_get_mongodbs_codes() {
    let code = |s: Document| Schema::parse(&s.to_raw(), &QueryCtx::default()).unwrap_err().code.0;
    assert_eq!(code(doc! { "foo": 1 }), 9);
    assert_eq!(code(doc! { "type": "integer" }), 9);
    assert_eq!(code(doc! { "bsonType": "foo" }), 2);
    assert_eq!(code(doc! { "type": "string", "bsonType": "string" }), 9);
    assert_eq!(code(doc! { "required": [] }), 9);
    assert_eq!(code(doc! { "required": "a" }), 14);
    assert_eq!(code(doc! { "properties": { "a": 5 } }), 14);
    assert_eq!(code(doc! { "exclusiveMinimum": true }), 9);
    assert_eq!(code(doc! { "enum": [1, 1.0] }), 9);
    assert_eq!(code(doc! { "minLength": -1 }), 9);
    assert_eq!(code(doc! { "allOf": [] }), 2);
    assert_eq!(code(doc! { "$ref": "x" }), 9);
    assert_eq!(code(doc! { "multipleOf": 0 }), 9);
}
