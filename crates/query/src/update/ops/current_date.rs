//! `$currentDate`.

use crate::update::modifier::{Apply, Arg, Effect, Modifier};
use crate::update::path::Path;
use pando_base::{Error, Result};
use pando_bson::{Elem, ElementType, Value};

#[derive(Debug)]
struct CurrentDate {
    timestamp: bool,
}

pub(super) fn parse(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    let needs_type = || {
        Error::bad_value(
            "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: \
             'date'}}}",
        )
    };
    let timestamp = match arg.elem.value() {
        Value::Boolean(_) => false,
        Value::Document(spec) => {
            let mut timestamp = None;
            for e in spec {
                if e.name() != "$type" {
                    return Err(Error::bad_value(format!("Unrecognized $currentDate option: {}", e.name())));
                }
                timestamp = match e.value() {
                    Value::String("date") => Some(false),
                    Value::String("timestamp") => Some(true),
                    _ => return Err(needs_type()),
                };
            }
            timestamp.ok_or_else(needs_type)?
        }
        other => {
            return Err(Error::bad_value(format!(
                "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression \
                 ({{$type: 'timestamp/date'}}).",
                other.type_name()
            )));
        }
    };
    Ok(Box::new(CurrentDate { timestamp }))
}

impl CurrentDate {
    fn put(&self, cx: &Apply<'_>, out: &mut Vec<u8>) -> ElementType {
        if self.timestamp {
            out.extend_from_slice(&cx.ctx.vars.cluster_time.unwrap_or_default().0.to_le_bytes());
            ElementType::Timestamp
        } else {
            out.extend_from_slice(&cx.ctx.vars.now_ms.to_le_bytes());
            ElementType::DateTime
        }
    }
}

impl Modifier for CurrentDate {
    fn update(&self, cx: &Apply<'_>, _old: Elem<'_>, _path: &Path<'_>, out: &mut Vec<u8>) -> Result<Effect> {
        Ok(Effect::Set(self.put(cx, out)))
    }
    fn create(&self, cx: &Apply<'_>, out: &mut Vec<u8>) -> Result<Option<ElementType>> {
        Ok(Some(self.put(cx, out)))
    }
}
