//! `$pull` and `$pullAll`.

use crate::matcher::{Matcher, Place};
use crate::update::modifier::{Apply, Arg, ArrayOut, Blocked, Effect, Modifier, Stored};
use crate::update::path::Path;
use crate::value_set::ValueSet;
use pando_base::{Error, Result, patience};
use pando_bson::{DocBuilder, Elem, ElementType, Value};

/// Which elements go.
#[derive(Debug)]
enum Pull {
    /// `{$pull: {a: {x: 1}}}`: sub-documents that match a filter.
    Documents(Matcher),
    /// `{$pull: {a: {$gt: 3}}}` or a regex: a filter on the element itself, which it knows as [`ELEMENT`].
    Elements(Matcher),
    /// Equal to one of these.
    Values(Vec<Stored>),
}

const ELEMENT: &str = "e";

/// Operators that make a `$pull` argument a condition on the element rather than a filter of sub-documents.
const ELEMENT_OPERATORS: &[&str] = &[
    "$all",
    "$bitsAllClear",
    "$bitsAllSet",
    "$bitsAnyClear",
    "$bitsAnySet",
    "$elemMatch",
    "$eq",
    "$exists",
    "$geoIntersects",
    "$geoNear",
    "$geoWithin",
    "$gt",
    "$gte",
    "$in",
    "$lt",
    "$lte",
    "$maxDistance",
    "$minDistance",
    "$mod",
    "$ne",
    "$near",
    "$nearSphere",
    "$nin",
    "$options",
    "$regex",
    "$size",
    "$type",
    "$within",
];

pub(super) fn parse(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    let v = arg.elem.value();
    let on_elements = match v {
        _ if arg.elem.ty == ElementType::Regex => true,
        Value::Document(d) => d.first().is_some_and(|e| ELEMENT_OPERATORS.contains(&e.name())),
        _ => return Ok(Box::new(Pull::Values(vec![Stored::of(arg.elem)]))),
    };
    if on_elements {
        let mut filter = DocBuilder::new();
        filter.value(ELEMENT, v);
        return Ok(Box::new(Pull::Elements(Matcher::parse_in(Place::Elements, &filter.finish(), arg.ctx)?)));
    }
    let filter = v.as_doc().ok_or_else(|| Error::internal("$pull filter is not a document"))?;
    Ok(Box::new(Pull::Documents(Matcher::parse_in(Place::Elements, filter, arg.ctx)?)))
}

pub(super) fn parse_all(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    let Value::Array(values) = arg.elem.value() else {
        return Err(Error::bad_value(format!(
            "$pullAll requires an array argument but was given a {}",
            arg.elem.ty.name()
        )));
    };
    Ok(Box::new(Pull::Values(values.iter().map(Stored::of).collect())))
}

impl Pull {
    /// Many values are looked up rather than compared with one by one.
    fn known(&self, cx: &Apply<'_>) -> Option<ValueSet> {
        let Pull::Values(values) = self else { return None };
        let mut known = ValueSet::default();
        for v in values {
            known.insert(v.value(), cx.ctx);
        }
        (values.len() > 1).then_some(known)
    }
    fn takes(&self, cx: &Apply<'_>, e: Elem<'_>, known: Option<&mut ValueSet>) -> Result<bool> {
        match self {
            Pull::Documents(filter) => match e.value() {
                Value::Document(d) => filter.matches(d),
                _ => Ok(false),
            },
            Pull::Elements(filter) => filter.matches_elem(Elem::new(e.ty, ELEMENT, e.data())),
            Pull::Values(values) => match known {
                Some(known) => Ok(known.contains(e.value(), cx.ctx)),
                None => Ok(values.iter().any(|v| cx.compare(v.value(), e.value()).is_eq())),
            },
        }
    }
}

impl Modifier for Pull {
    fn update(&self, cx: &Apply<'_>, old: Elem<'_>, _path: &Path<'_>, out: &mut Vec<u8>) -> Result<Effect> {
        let Value::Array(array) = old.value() else {
            return Err(Error::bad_value("Cannot apply $pull to a non-array value"));
        };
        let mut kept = ArrayOut::begin(out);
        let (mut pulled, mut known) = (false, self.known(cx));
        for e in array {
            patience::spend(1)?;
            if self.takes(cx, e, known.as_mut())? {
                pulled = true;
            } else {
                kept.elem(e);
            }
        }
        kept.end();
        Ok(if pulled { Effect::Set(ElementType::Array) } else { Effect::Same })
    }
    fn create(&self, _: &Apply<'_>, _: &mut Vec<u8>) -> Result<Option<ElementType>> {
        Ok(None)
    }
    fn blocked(&self, _: &Apply<'_>) -> Result<Blocked> {
        Ok(Blocked::RefuseTraversal)
    }
}
