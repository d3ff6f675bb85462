//! `$pop`.

use crate::matcher::exact_i64 as integral;
use crate::number::Number;
use crate::update::modifier::{Apply, Arg, ArrayOut, Blocked, Effect, Modifier};
use crate::update::path::Path;
use pando_base::{Error, Result};
use pando_bson::{Elem, ElementType, Value};

#[derive(Debug)]
struct Pop {
    first: bool,
}

pub(super) fn parse(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    let v = arg.elem.value();
    if Number::of(v).is_none() {
        return Err(Error::failed_to_parse(format!("Expected a number in: {:#}", arg.elem)));
    }
    let Some(n) = integral(v) else {
        let nan = if v.as_f64().is_some_and(f64::is_nan) { ", but found NaN in" } else { "" };
        return Err(Error::failed_to_parse(format!("Expected an integer{nan}: {:#}", arg.elem)));
    };
    if n != 1 && n != -1 {
        return Err(Error::failed_to_parse(format!("$pop expects 1 or -1, found: {n}")));
    }
    Ok(Box::new(Pop { first: n == -1 }))
}

impl Modifier for Pop {
    fn update(&self, _cx: &Apply<'_>, old: Elem<'_>, path: &Path<'_>, out: &mut Vec<u8>) -> Result<Effect> {
        let Value::Array(array) = old.value() else {
            return Err(Error::type_mismatch(format!(
                "Path '{path}' contains an element of non-array type '{}'",
                old.ty.name()
            )));
        };
        let len = array.count();
        if len == 0 {
            return Ok(Effect::Same);
        }
        let mut kept = ArrayOut::begin(out);
        for e in array.iter().skip(usize::from(self.first)).take(len - 1) {
            kept.elem(e);
        }
        kept.end();
        Ok(Effect::Set(ElementType::Array))
    }
    fn create(&self, _: &Apply<'_>, _: &mut Vec<u8>) -> Result<Option<ElementType>> {
        Ok(None)
    }
    fn blocked(&self, _: &Apply<'_>) -> Result<Blocked> {
        Ok(Blocked::RefuseTraversal)
    }
}
