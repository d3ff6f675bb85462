//! `$jsonSchema`: MongoDB's dialect of JSON Schema draft 4 (BSON types, no references, formats or defaults).
//!
//! A schema becomes a list of [`Rule`]s ([`parse`]). A rule speaks of values of some types only and accepts all
//! others, as the standard wants: `minimum` says nothing about a string. [`explain`] tells which rules a
//! document breaks, in the shape that `errInfo.details` has.

mod explain;
mod parse;

use crate::ctx::QueryCtx;
use crate::matcher::{ArrayAtEnd, Path, TypeSet, decimal_is_nan, walk};
use crate::number::Number;
use crate::regex::Regex;
use pando_base::{Result, patience};
use pando_bson::compare::{cmp_elems, cmp_numbers};
use pando_bson::{DocBuf, Elem, ElementType, RawDoc, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// A parsed schema.
#[derive(Debug)]
pub struct Schema {
    source: DocBuf,
    rules: Rules,
}

/// The rules of a schema or sub-schema.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    list: Vec<Rule>,
    title: Option<String>,
    description: Option<String>,
}

/// One keyword (or keywords that only make sense together).
#[derive(Debug)]
pub(crate) struct Rule {
    keyword: &'static str,
    /// The keyword as written, with what belongs to it: `{maximum: 5, exclusiveMaximum: true}`.
    spec: DocBuf,
    test: Test,
}

#[derive(Debug)]
pub(crate) enum Test {
    Type(TypeSet),
    /// The values as array elements.
    Enum,
    MultipleOf(Number),
    Maximum {
        exclusive: bool,
    },
    Minimum {
        exclusive: bool,
    },
    Pattern(Arc<Regex>),
    MinLength(usize),
    MaxLength(usize),
    MinItems(usize),
    MaxItems(usize),
    UniqueItems,
    /// All items against one schema.
    Items(Rules),
    /// Items by position.
    ItemList(Vec<Rules>),
    AdditionalItems {
        from: usize,
        allowed: Additional,
    },
    MinProperties(usize),
    MaxProperties(usize),
    Required(Vec<String>),
    Properties(Vec<(String, Rules)>),
    PatternProperties(Vec<(String, Arc<Regex>, Rules)>),
    AdditionalProperties {
        /// In order.
        named: Vec<String>,
        patterns: Vec<Arc<Regex>>,
        allowed: Additional,
    },
    Dependencies(Vec<(String, Dependency)>),
    AllOf(Vec<Rules>),
    AnyOf(Vec<Rules>),
    OneOf(Vec<Rules>),
    Not(Rules),
}

#[derive(Debug)]
pub(crate) enum Additional {
    No,
    If(Rules),
}

#[derive(Debug)]
pub(crate) enum Dependency {
    Properties(Vec<String>),
    Schema(Rules),
}

impl Schema {
    /// Calls `each` with every name of a field that the schema knows.
    pub(crate) fn try_each_name(&self, each: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
        try_each_name(&self.rules, each)
    }
}

fn try_each_name(rules: &Rules, each: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    rules.list.iter().try_for_each(|rule| match &rule.test {
        Test::Required(names) => names.iter().try_for_each(|name| each(name)),
        Test::Properties(all) => all.iter().try_for_each(|(name, rules)| {
            each(name)?;
            try_each_name(rules, each)
        }),
        Test::AllOf(all) | Test::AnyOf(all) | Test::OneOf(all) => {
            all.iter().try_for_each(|rules| try_each_name(rules, each))
        }
        Test::Not(rules) => try_each_name(rules, each),
        _ => Ok(()),
    })
}

/// A schema of other things than documents.
pub(crate) fn takes_no_document(schema: &RawDoc) -> bool {
    schema.iter().any(|e| match (e.name(), e.value()) {
        ("type" | "bsonType", Value::String(name)) => name != "object",
        ("type" | "bsonType", Value::Array(names)) => {
            names.iter().all(|n| n.value().as_str() != Some("object"))
        }
        ("enum", Value::Array(values)) => docs_of(values).next().is_none(),
        ("allOf", Value::Array(members)) => docs_of(members).any(takes_no_document),
        ("anyOf", Value::Array(members)) => docs_of(members).all(takes_no_document),
        _ => false,
    })
}

fn docs_of(members: &RawDoc) -> impl Iterator<Item = &RawDoc> {
    members.iter().filter_map(|m| m.value().as_doc())
}

fn is_nan(v: Value<'_>) -> bool {
    match v {
        Value::Double(d) => d.is_nan(),
        Value::Decimal128(d) => decimal_is_nan(d),
        _ => false,
    }
}

impl Schema {
    pub fn parse(schema: &RawDoc, ctx: &QueryCtx) -> Result<Schema> {
        Ok(Schema { source: schema.to_buf(), rules: parse::rules(schema, ctx, 0, true)? })
    }
    pub fn source(&self) -> &RawDoc {
        &self.source
    }
    pub fn accepts(&self, doc: &RawDoc) -> bool {
        self.rules.accept(Elem::new(ElementType::Document, "", doc.as_bytes()))
    }
}

impl Rules {
    fn accept(&self, v: Elem<'_>) -> bool {
        self.list.iter().all(|r| r.accepts(v))
    }
}

fn doc_of<'a>(v: &Elem<'a>) -> &'a RawDoc {
    RawDoc::trusted(v.data())
}

/// The first item that is equal to one before it.
fn duplicate(items: &RawDoc) -> Option<Elem<'_>> {
    let mut all: Vec<(usize, Elem<'_>)> = items.iter().enumerate().collect();
    patience::sort_by(&mut all, patience::COMPARE_STEPS, |a, b| cmp_elems(&a.1, &b.1, None)).ok()?;
    let repeated = all.windows(2).filter(|w| cmp_elems(&w[0].1, &w[1].1, None) == Ordering::Equal);
    repeated.map(|w| w[1]).min_by_key(|(at, _)| *at).map(|(_, e)| e)
}

/// Whether a field, looked for as long as there is time, passes a test. A name with dots is a path, which may lead to several.
fn any_named<'d>(doc: &'d RawDoc, name: &str, test: &mut dyn FnMut(Elem<'d>) -> bool) -> bool {
    if patience::is_over(1 + doc.byte_len() / 256) {
        return false;
    }
    if !name.contains('.') {
        return doc.elem(name).is_some_and(test);
    }
    let path = Path::new(name);
    let mut there = |(e, _): (Option<Elem<'d>>, _)| e.is_some_and(&mut *test);
    walk(doc.elem(path.first()), path.rest(), ArrayAtEnd::Whole, &mut there)
}

fn is_there(doc: &RawDoc, name: &str) -> bool {
    any_named(doc, name, &mut |_| true)
}

fn missing<'r>(doc: &RawDoc, names: &'r [String]) -> Vec<&'r str> {
    names.iter().map(String::as_str).filter(|n| !is_there(doc, n)).collect()
}

impl Additional {
    fn accepts(&self, v: Elem<'_>) -> bool {
        match self {
            Additional::No => false,
            Additional::If(rules) => rules.accept(v),
        }
    }
}

/// A property that neither `properties` nor `patternProperties` speaks of.
fn is_additional(e: Elem<'_>, named: &[String], patterns: &[Arc<Regex>]) -> bool {
    !patience::is_over(1)
        && named.binary_search_by(|n| n.as_bytes().cmp(e.name_bytes())).is_err()
        && !patterns.iter().any(|p| names_match(p, e))
}

/// A pattern looks at U+FFFD in a name that is not UTF-8.
fn names_match(pattern: &Regex, e: Elem<'_>) -> bool {
    pattern.is_match(&e.shown_name())
}

/// Of a string that need not be UTF-8.
fn code_points(s: &[u8]) -> usize {
    s.iter().filter(|b| *b & 0xC0 != 0x80).count()
}

impl Rule {
    /// The keyword's own value.
    fn operand(&self) -> Value<'_> {
        self.spec.first().map_or(Value::Null, |e| e.value())
    }

    fn accepts(&self, v: Elem<'_>) -> bool {
        if patience::is_over(1) {
            return false;
        }
        match self.kind_of_value() {
            Some(ElementType::Double) if !v.value().is_number() => return true,
            Some(ElementType::Double) | None => {}
            Some(ty) if v.ty != ty => return true,
            Some(_) => {}
        }
        match &self.test {
            Test::Type(set) => set.contains(v.ty),
            Test::Enum => match self.operand() {
                Value::Array(items) => {
                    items.iter().any(|i| patience::is_over(1) || cmp_elems(&i, &v, None) == Ordering::Equal)
                }
                _ => false,
            },
            // In decimals, so that 0.3 is a multiple of 0.1.
            Test::MultipleOf(n) => {
                Number::of(v.value()).is_some_and(|value| (value.to_decimal() % n.to_decimal()).is_zero())
            }
            Test::Maximum { exclusive } => self.bounds(v, Ordering::Less, *exclusive),
            Test::Minimum { exclusive } => self.bounds(v, Ordering::Greater, *exclusive),
            Test::Pattern(p) => v.value().as_str().is_some_and(|s| p.is_match(s)),
            Test::MinLength(n) => v.value().string_bytes().is_some_and(|s| code_points(s) >= *n),
            Test::MaxLength(n) => v.value().string_bytes().is_some_and(|s| code_points(s) <= *n),
            Test::MinItems(n) => doc_of(&v).count() >= *n,
            Test::MaxItems(n) => doc_of(&v).count() <= *n,
            Test::UniqueItems => duplicate(doc_of(&v)).is_none(),
            Test::Items(rules) => doc_of(&v).iter().all(|i| rules.accept(i)),
            Test::ItemList(list) => doc_of(&v).iter().zip(list).all(|(i, rules)| rules.accept(i)),
            Test::AdditionalItems { from, allowed } => {
                doc_of(&v).iter().skip(*from).all(|i| allowed.accepts(i))
            }
            Test::MinProperties(n) => doc_of(&v).count() >= *n,
            Test::MaxProperties(n) => doc_of(&v).count() <= *n,
            Test::Required(names) => missing(doc_of(&v), names).is_empty(),
            Test::Properties(all) => {
                let doc = doc_of(&v);
                let holds = |name: &str, r: &Rule| any_named(doc, name, &mut |e| r.accepts(e));
                all.iter().all(|(name, rules)| {
                    !is_there(doc, name) || rules.list.iter().all(|rule| holds(name, rule))
                })
            }
            Test::PatternProperties(all) => {
                let fits = |e: Elem<'_>| all.iter().all(|(_, p, r)| !names_match(p, e) || r.accept(e));
                doc_of(&v).iter().all(fits)
            }
            Test::AdditionalProperties { named, patterns, allowed } => {
                let mut extra = doc_of(&v).iter().filter(|e| is_additional(*e, named, patterns));
                extra.all(|e| allowed.accepts(e))
            }
            Test::Dependencies(all) => all.iter().all(|(name, d)| {
                !is_there(doc_of(&v), name)
                    || match d {
                        Dependency::Properties(names) => missing(doc_of(&v), names).is_empty(),
                        Dependency::Schema(rules) => rules.accept(v),
                    }
            }),
            Test::AllOf(all) => all.iter().all(|r| r.accept(v)),
            Test::AnyOf(all) => all.iter().any(|r| r.accept(v)),
            Test::OneOf(all) => all.iter().filter(|r| r.accept(v)).count() == 1,
            Test::Not(rules) => !rules.accept(v),
        }
    }

    /// The value is on this side of the keyword's own, or equal where that is not excluded. As the query operators have it NaN
    /// is only below, above or equal to NaN.
    fn bounds(&self, v: Elem<'_>, side: Ordering, exclusive: bool) -> bool {
        if is_nan(v.value()) != is_nan(self.operand()) {
            return false;
        }
        match cmp_numbers(v.value(), self.operand()) {
            Ordering::Equal => !exclusive,
            other => other == side,
        }
    }

    /// The type this rule speaks of; `Double` stands for all numbers, `None` for every type.
    fn kind_of_value(&self) -> Option<ElementType> {
        Some(match &self.test {
            Test::MultipleOf(_) | Test::Maximum { .. } | Test::Minimum { .. } => ElementType::Double,
            Test::Pattern(_) | Test::MinLength(_) | Test::MaxLength(_) => ElementType::String,
            Test::MinItems(_)
            | Test::MaxItems(_)
            | Test::UniqueItems
            | Test::Items(_)
            | Test::ItemList(_)
            | Test::AdditionalItems { .. } => ElementType::Array,
            Test::MinProperties(_)
            | Test::MaxProperties(_)
            | Test::Required(_)
            | Test::Properties(_)
            | Test::PatternProperties(_)
            | Test::AdditionalProperties { .. }
            | Test::Dependencies(_) => ElementType::Document,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
