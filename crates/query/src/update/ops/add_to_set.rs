//! `$addToSet`.

use crate::update::modifier::{Apply, Arg, ArrayOut, Effect, Modifier, Stored, value_depth};
use crate::update::path::Path;
use crate::value_set::ValueSet;
use pando_base::{Error, Result, patience};
use pando_bson::{Elem, ElementType, Value};

#[derive(Debug)]
struct AddToSet {
    /// Without repeats, in order of first appearance.
    values: Vec<Stored>,
}

pub(super) fn parse(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    let each = match arg.elem.value() {
        Value::Document(d) => d.first().filter(|e| e.name() == "$each").map(|e| (d, e)),
        _ => None,
    };
    let Some((spec, each)) = each else {
        return Ok(Box::new(AddToSet { values: vec![Stored::of(arg.elem)] }));
    };
    let Value::Array(items) = each.value() else {
        return Err(Error::type_mismatch(format!(
            "The argument to $each in $addToSet must be an array but it was of type {}",
            each.ty.name()
        )));
    };
    if spec.count() > 1 {
        return Err(Error::bad_value(format!("Found unexpected fields after $each in $addToSet: {spec:#}")));
    }
    let mut seen = ValueSet::default();
    let values = items.iter().filter(|item| seen.insert(item.value(), arg.ctx)).map(Stored::of).collect();
    patience::check()?;
    Ok(Box::new(AddToSet { values }))
}

impl Modifier for AddToSet {
    fn makes_array(&self) -> bool {
        !self.values.is_empty()
    }
    fn update(&self, cx: &Apply<'_>, old: Elem<'_>, path: &Path<'_>, out: &mut Vec<u8>) -> Result<Effect> {
        let Value::Array(array) = old.value() else {
            return Err(Error::bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                path.name,
                old.ty.name()
            )));
        };
        let mut grown = ArrayOut::begin(out);
        for e in array {
            grown.elem(e);
        }
        let mut added = false;
        if let [one] = &self.values[..] {
            added = !array.iter().any(|e| cx.compare(one.value(), e.value()).is_eq());
            if added {
                grown.elem(one.elem());
            }
        } else {
            let mut seen = ValueSet::default();
            for e in array {
                seen.insert(e.value(), cx.ctx);
            }
            for v in self.values.iter().filter(|v| seen.insert(v.value(), cx.ctx)) {
                grown.elem(v.elem());
                added = true;
            }
        }
        patience::check()?;
        grown.end();
        Ok(if added { Effect::Set(ElementType::Array) } else { Effect::Same })
    }
    fn create(&self, _cx: &Apply<'_>, out: &mut Vec<u8>) -> Result<Option<ElementType>> {
        let mut array = ArrayOut::begin(out);
        for v in &self.values {
            array.elem(v.elem());
        }
        array.end();
        Ok(Some(ElementType::Array))
    }
    fn depth(&self) -> usize {
        1 + self.values.iter().map(|v| value_depth(v.value())).max().unwrap_or(0)
    }
}
