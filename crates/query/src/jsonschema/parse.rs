//! From a schema document to rules, with MongoDB's refusals.

use super::{Additional, Dependency, Rule, Rules, Test};
use crate::ctx::QueryCtx;
use crate::matcher::{TypeSet, exact_i64};
use crate::names::Seen;
use crate::number::Number;
use crate::regex::Regex;
use pando_base::{Error, ErrorCode, Result, limits, patience};
use pando_bson::compare::cmp_numbers;
use pando_bson::{DocBuilder, Elem, ElementType, RawDoc, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

const UNSUPPORTED: &[&str] = &["$ref", "$schema", "default", "definitions", "format", "id"];

const KNOWN: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "bsonType",
    "dependencies",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// What a keyword takes to parse.
const SCHEMA_STEPS: usize = 16;

/// The order in which rules are listed where a document breaks them, which is not that in which they are read.
const LISTED: &[&str] = &[
    "type",
    "bsonType",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "enum",
    "multipleOf",
    "maximum",
    "minimum",
    "minLength",
    "maxLength",
    "pattern",
    "minProperties",
    "maxProperties",
    "properties",
    "patternProperties",
    "additionalProperties",
    "required",
    "dependencies",
    "minItems",
    "maxItems",
    "uniqueItems",
    "items",
    "additionalItems",
];

/// `whole`: the rules are about the whole document, not about one of its values.
pub(super) fn rules(schema: &RawDoc, ctx: &QueryCtx, depth: usize, whole: bool) -> Result<Rules> {
    if depth > limits::BSON_DEPTH_MAX {
        return Err(Error::new(ErrorCode::Overflow, "$jsonSchema exceeds the nesting limit"));
    }
    for e in schema {
        patience::spend(SCHEMA_STEPS)?;
        check_keyword(e.name())?;
    }
    let mut p = Parser { schema, ctx, depth, whole, out: Rules::default() };
    p.out.description = p.text("description")?;
    p.out.title = p.text("title")?;
    p.types()?;
    p.scalars()?;
    p.arrays()?;
    p.objects()?;
    p.logic()?;
    p.out.list.sort_by_key(|rule| LISTED.iter().position(|k| *k == rule.keyword));
    Ok(p.out)
}

fn check_keyword(name: &str) -> Result<()> {
    if UNSUPPORTED.contains(&name) || matches!(name, "encrypt" | "encryptMetadata") {
        return Err(failed(format!("$jsonSchema keyword '{name}' is not currently supported")));
    }
    if !KNOWN.contains(&name) {
        return Err(failed(format!("Unknown $jsonSchema keyword: {name}")));
    }
    Ok(())
}

fn failed(text: String) -> Error {
    Error::failed_to_parse(text)
}
fn mismatch(keyword: &str, wanted: &str) -> Error {
    Error::type_mismatch(format!("$jsonSchema keyword '{keyword}' must be {wanted}"))
}

struct Parser<'a> {
    schema: &'a RawDoc,
    ctx: &'a QueryCtx,
    depth: usize,
    whole: bool,
    out: Rules,
}

impl<'a> Parser<'a> {
    fn find(&self, name: &str) -> Option<Elem<'a>> {
        self.schema.elem(name)
    }
    fn rule(&mut self, keyword: &'static str, test: Test) {
        self.rule_with(keyword, &[keyword], test);
    }
    fn rule_with(&mut self, keyword: &'static str, shown: &[&str], test: Test) {
        let mut spec = DocBuilder::new();
        for name in shown {
            if let Some(e) = self.find(name) {
                spec.elem(e);
            }
        }
        self.out.list.push(Rule { keyword, spec: spec.finish(), test });
    }
    /// A schema for a part of what this one is about.
    fn nested(&self, v: Value<'_>) -> Result<Option<Rules>> {
        self.schema_of(v, false)
    }
    /// Another schema for the same.
    fn beside(&self, v: Value<'_>) -> Result<Option<Rules>> {
        self.schema_of(v, self.whole)
    }
    fn schema_of(&self, v: Value<'_>, whole: bool) -> Result<Option<Rules>> {
        match v {
            Value::Document(d) => rules(d, self.ctx, self.depth + 1, whole).map(Some),
            _ => Ok(None),
        }
    }
    fn text(&self, name: &str) -> Result<Option<String>> {
        match self.find(name).map(|e| e.value()) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s.to_owned())),
            Some(_) => Err(mismatch(name, "of type string")),
        }
    }

    fn types(&mut self) -> Result<()> {
        match (self.find("type"), self.find("bsonType")) {
            (Some(_), Some(_)) => {
                Err(failed("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'".into()))
            }
            (Some(e), None) => {
                let set = type_set("type", e.value(), json_type)?;
                self.rule("type", Test::Type(set));
                Ok(())
            }
            (None, Some(e)) => {
                let set = type_set("bsonType", e.value(), bson_type)?;
                self.rule("bsonType", Test::Type(set));
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    fn logic(&mut self) -> Result<()> {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(e) = self.find(keyword) else { continue };
            let Value::Array(items) = e.value() else {
                return Err(mismatch(keyword, "an array"));
            };
            if items.is_empty() {
                let text = format!("$jsonSchema keyword '{keyword}' must be a non-empty array");
                return Err(Error::bad_value(text));
            }
            let mut all = Vec::new();
            for item in items {
                let nested = self.beside(item.value())?;
                let text = || {
                    let ty = item.value().type_name();
                    format!(
                        "$jsonSchema keyword '{keyword}' must be an array of objects, but found an element of type {ty}"
                    )
                };
                all.push(nested.ok_or_else(|| Error::type_mismatch(text()))?);
            }
            match keyword {
                "allOf" => self.rule("allOf", Test::AllOf(all)),
                "anyOf" => self.rule("anyOf", Test::AnyOf(all)),
                _ => self.rule("oneOf", Test::OneOf(all)),
            }
        }
        if let Some(e) = self.find("not") {
            let wanted = format!("an object, but found an element of type {}", e.value().type_name());
            let rules = self.beside(e.value())?.ok_or_else(|| mismatch("not", &wanted))?;
            self.rule("not", Test::Not(rules));
        }
        if let Some(e) = self.find("enum") {
            let Value::Array(items) = e.value() else { return Err(mismatch("enum", "an array")) };
            if items.is_empty() {
                return Err(failed("$jsonSchema keyword 'enum' cannot be an empty array".into()));
            }
            if super::duplicate(items).is_some() {
                let text = "$jsonSchema keyword 'enum' array cannot contain duplicate values.";
                return Err(failed(text.into()));
            }
            self.rule("enum", Test::Enum);
        }
        Ok(())
    }

    fn scalars(&mut self) -> Result<()> {
        if let Some(e) = self.find("pattern") {
            let Value::String(p) = e.value() else { return Err(mismatch("pattern", "a string")) };
            match Regex::new(p, "") {
                Ok(regex) => self.rule("pattern", Test::Pattern(Arc::new(regex))),
                // The whole document is no string: nobody reads the pattern.
                Err(_) if self.whole => {}
                Err(e) => return Err(e),
            }
        }
        for keyword in ["maxLength", "minLength"] {
            if let Some(n) = self.count(keyword)? {
                match keyword {
                    "minLength" => self.rule("minLength", Test::MinLength(n)),
                    _ => self.rule("maxLength", Test::MaxLength(n)),
                }
            }
        }
        if let Some(e) = self.find("multipleOf") {
            self.multiple_of(e)?;
        }
        for (keyword, exclusive) in [("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum")] {
            self.bound(keyword, exclusive)?;
        }
        Ok(())
    }

    fn multiple_of(&mut self, e: Elem<'_>) -> Result<()> {
        let Some(n) = Number::of(e.value()) else { return Err(mismatch("multipleOf", "a number")) };
        let (nan, infinite) = match n {
            Number::Decimal(d) => (d.is_nan(), d.is_infinite()),
            n => (n.to_f64().is_nan(), n.to_f64().is_infinite()),
        };
        let sign = cmp_numbers(e.value(), Value::Int32(0));
        match (nan, infinite && sign == Ordering::Greater) {
            // The whole document is no number: nobody divides.
            (true, _) | (_, true) if self.whole => return Ok(()),
            (true, _) => return Err(Error::bad_value("divisor cannot be NaN")),
            (_, true) => return Err(Error::bad_value("divisor cannot be infinite")),
            _ => {}
        }
        if sign != Ordering::Greater {
            return Err(failed("$jsonSchema keyword 'multipleOf' must have a positive value".into()));
        }
        self.rule("multipleOf", Test::MultipleOf(n));
        Ok(())
    }

    fn bound(&mut self, keyword: &'static str, exclusive_keyword: &'static str) -> Result<()> {
        if self.find(exclusive_keyword).is_some() && self.find(keyword).is_none() {
            return Err(failed(format!(
                "$jsonSchema keyword '{keyword}' must be a present if {exclusive_keyword} is present"
            )));
        }
        let exclusive = match self.find(exclusive_keyword).map(|e| e.value()) {
            None => None,
            Some(Value::Boolean(b)) => Some(b),
            Some(_) => return Err(mismatch(exclusive_keyword, "a boolean")),
        };
        let Some(e) = self.find(keyword) else { return Ok(()) };
        if !e.value().is_number() {
            return Err(mismatch(keyword, "a number"));
        }
        let exclusive = exclusive.unwrap_or(false);
        let shown: &[&str] = if exclusive { &[keyword, exclusive_keyword] } else { &[keyword] };
        let test = match keyword {
            "maximum" => Test::Maximum { exclusive },
            _ => Test::Minimum { exclusive },
        };
        self.rule_with(keyword, shown, test);
        Ok(())
    }

    /// A non-negative whole number.
    fn count(&self, keyword: &str) -> Result<Option<usize>> {
        let Some(e) = self.find(keyword) else { return Ok(None) };
        if !e.value().is_number() {
            return Err(failed(format!("Expected a number in: {e}")));
        }
        let Some(n) = exact_i64(e.value()) else {
            return Err(failed(format!("Expected an integer: {e}")));
        };
        let n = usize::try_from(n).map_err(|_| failed(format!("Expected a non-negative number in: {e}")))?;
        Ok(Some(n))
    }

    fn objects(&mut self) -> Result<()> {
        let mut named = Vec::new();
        let mut patterns = Vec::new();
        if let Some(e) = self.find("required") {
            let names = names("required", e.value())?;
            self.rule("required", Test::Required(names));
        }
        if let Some(e) = self.find("properties") {
            let Value::Document(d) = e.value() else { return Err(mismatch("properties", "an object")) };
            let mut all = Vec::new();
            for p in d {
                let name = p.path()?;
                let text = format!("Nested schema for $jsonSchema property '{name}' must be an object");
                let rules = self.nested(p.value())?.ok_or_else(|| Error::type_mismatch(text))?;
                named.push(name.to_owned());
                all.push((name.to_owned(), rules));
            }
            self.rule("properties", Test::Properties(all));
        }
        if let Some(e) = self.find("patternProperties") {
            let Value::Document(d) = e.value() else {
                return Err(mismatch("patternProperties", "an object"));
            };
            let mut all = Vec::new();
            for p in d {
                let name = p.path()?;
                let text = format!(
                    "$jsonSchema keyword 'patternProperties' has property '{name}' which is not an object"
                );
                let rules = self.nested(p.value())?.ok_or_else(|| Error::type_mismatch(text))?;
                let regex = Arc::new(Regex::new(name, "").map_err(|e| {
                    let why = e.message.strip_prefix("Regular expression is invalid: ").unwrap_or(&e.message);
                    Error::bad_value(format!("Invalid regular expression: {why}"))
                })?);
                patterns.push(regex.clone());
                all.push((name.to_owned(), regex, rules));
            }
            self.rule("patternProperties", Test::PatternProperties(all));
        }
        if let Some(e) = self.find("additionalProperties")
            && let Some(allowed) = self.additional(e)?
        {
            named.sort();
            let test = Test::AdditionalProperties { named, patterns, allowed };
            self.rule("additionalProperties", test);
        }
        for keyword in ["minProperties", "maxProperties"] {
            if let Some(n) = self.count(keyword)? {
                match keyword {
                    "minProperties" => self.rule("minProperties", Test::MinProperties(n)),
                    _ => self.rule("maxProperties", Test::MaxProperties(n)),
                }
            }
        }
        self.dependencies()
    }

    fn additional(&self, e: Elem<'_>) -> Result<Option<Additional>> {
        match e.value() {
            Value::Boolean(true) => Ok(None),
            Value::Boolean(false) => Ok(Some(Additional::No)),
            v => match self.nested(v)? {
                Some(rules) => Ok(Some(Additional::If(rules))),
                None if e.name() == "additionalItems" => {
                    let wanted = format!("either an object or a boolean, but got a {}", v.type_name());
                    Err(mismatch(e.name(), &wanted))
                }
                None => Err(mismatch(e.name(), "an object or a boolean")),
            },
        }
    }

    fn dependencies(&mut self) -> Result<()> {
        let Some(e) = self.find("dependencies") else { return Ok(()) };
        let Value::Document(d) = e.value() else { return Err(mismatch("dependencies", "an object")) };
        let mut all = Vec::new();
        for p in d {
            let name = p.path()?;
            let dependency = match p.value() {
                Value::Array(_) => Dependency::Properties(names("dependencies", p.value())?),
                v => match self.beside(v)? {
                    Some(rules) => Dependency::Schema(rules),
                    None => {
                        return Err(Error::type_mismatch(format!(
                            "property '{name}' in $jsonSchema keyword 'dependencies' must be either an object or an array"
                        )));
                    }
                },
            };
            all.push((name.to_owned(), dependency));
        }
        self.rule("dependencies", Test::Dependencies(all));
        Ok(())
    }

    fn arrays(&mut self) -> Result<()> {
        for keyword in ["minItems", "maxItems"] {
            if let Some(n) = self.count(keyword)? {
                match keyword {
                    "minItems" => self.rule("minItems", Test::MinItems(n)),
                    _ => self.rule("maxItems", Test::MaxItems(n)),
                }
            }
        }
        match self.find("uniqueItems").map(|e| e.value()) {
            None | Some(Value::Boolean(false)) => {}
            Some(Value::Boolean(true)) => self.rule("uniqueItems", Test::UniqueItems),
            Some(_) => return Err(mismatch("uniqueItems", "a boolean")),
        }
        let mut by_position = None;
        if let Some(e) = self.find("items") {
            match e.value() {
                Value::Array(items) => {
                    let mut list = Vec::new();
                    for item in items {
                        let ty = item.value().type_name();
                        let wanted = format!("an array of objects, but found an element of type {ty}");
                        list.push(self.nested(item.value())?.ok_or_else(|| mismatch("items", &wanted))?);
                    }
                    by_position = Some(list.len());
                    self.rule("items", Test::ItemList(list));
                }
                v => {
                    let wanted = format!("an array or an object, not {}", v.type_name());
                    let rules = self.nested(v)?.ok_or_else(|| mismatch("items", &wanted))?;
                    self.rule("items", Test::Items(rules));
                }
            }
        }
        if let Some(e) = self.find("additionalItems") {
            let allowed = self.additional(e)?;
            // Without positions there is nothing additional.
            if let (Some(allowed), Some(from)) = (allowed, by_position) {
                self.rule("additionalItems", Test::AdditionalItems { from, allowed });
            }
        }
        Ok(())
    }
}

/// Distinct property names.
fn names(keyword: &str, v: Value<'_>) -> Result<Vec<String>> {
    let Value::Array(items) = v else {
        let wanted = format!("an array, but found an element of type {}", v.type_name());
        return Err(mismatch(keyword, &wanted));
    };
    if items.is_empty() {
        return Err(failed(format!("$jsonSchema keyword '{keyword}' cannot be an empty array")));
    }
    let mut out: Vec<String> = Vec::new();
    let mut seen = Seen::default();
    for item in items {
        let Value::String(s) = item.value() else {
            let ty = item.value().type_name();
            let wanted = format!("an array of strings, but found an element of type {ty}");
            return Err(mismatch(keyword, &wanted));
        };
        if !seen.insert(s) {
            let text = format!("$jsonSchema keyword '{keyword}' array cannot contain duplicate values");
            return Err(failed(text));
        }
        out.push(s.to_owned());
    }
    Ok(out)
}

fn type_set(keyword: &str, v: Value<'_>, add: fn(&str, &mut TypeSet) -> Result<()>) -> Result<TypeSet> {
    let mut set = TypeSet::default();
    match v {
        Value::String(name) => add(name, &mut set)?,
        Value::Array(items) => {
            if items.is_empty() {
                return Err(failed(format!("$jsonSchema keyword '{keyword}' must name at least one type")));
            }
            let mut seen = BTreeSet::new();
            for item in items {
                let Value::String(name) = item.value() else {
                    let text = format!("$jsonSchema keyword '{keyword}' array elements must be strings");
                    return Err(Error::type_mismatch(text));
                };
                if !seen.insert(name) {
                    return Err(failed(format!(
                        "$jsonSchema keyword '{keyword}' has duplicate value: {name}"
                    )));
                }
                add(name, &mut set)?;
            }
        }
        _ => return Err(mismatch(keyword, "either a string or an array of strings")),
    }
    Ok(set)
}

const NUMBERS: [ElementType; 4] =
    [ElementType::Int32, ElementType::Int64, ElementType::Double, ElementType::Decimal128];

fn json_type(name: &str, set: &mut TypeSet) -> Result<()> {
    let ty = match name {
        "object" => ElementType::Document,
        "array" => ElementType::Array,
        "boolean" => ElementType::Boolean,
        "string" => ElementType::String,
        "null" => ElementType::Null,
        "number" => {
            NUMBERS.into_iter().for_each(|t| set.insert(t));
            return Ok(());
        }
        "integer" => {
            return Err(failed("$jsonSchema type 'integer' is not currently supported.".into()));
        }
        other => return Err(Error::bad_value(format!("Unknown type name alias: {other}"))),
    };
    set.insert(ty);
    Ok(())
}

fn bson_type(name: &str, set: &mut TypeSet) -> Result<()> {
    if name == "number" {
        NUMBERS.into_iter().for_each(|t| set.insert(t));
        return Ok(());
    }
    let ty = ElementType::named(name);
    set.insert(ty.ok_or_else(|| Error::bad_value(format!("Unknown type name alias: {name}")))?);
    Ok(())
}
