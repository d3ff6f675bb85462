//! From JavaScript to BSON.
//!
//! Numbers become doubles, except where the field held an int and still holds a whole number. An object that came
//! from a document and was not changed is that document again, byte for byte.

use crate::held::Held;
use crate::interp::Prelude;
use pando_base::limits::{BSON_INTERNAL_BYTES_MAX, JS_OBJECT_DEPTH_MAX};
use pando_base::{Error, ErrorCode};
use pando_bson::{DocBuilder, Elem, ElementType, RawDoc, Value};
use rquickjs::{Atom, Class, Function, Object, Type, Value as Js};

/// What went wrong: in the interpreter, or by MongoDB's rules.
pub(crate) enum Fail {
    Js(rquickjs::Error),
    Db(Error),
}

impl From<rquickjs::Error> for Fail {
    fn from(e: rquickjs::Error) -> Fail {
        Fail::Js(e)
    }
}
impl From<Error> for Fail {
    fn from(e: Error) -> Fail {
        Fail::Db(e)
    }
}

type Result<T> = std::result::Result<T, Fail>;

pub(crate) struct ToBson<'k, 'js> {
    pub(crate) prelude: &'k Prelude<'js>,
}

impl<'js> ToBson<'_, 'js> {
    /// Appends the value under the name. `was` is the element this one took the place of.
    pub(crate) fn put(
        &self,
        b: &mut DocBuilder,
        name: &str,
        v: &Js<'js>,
        was: Option<Elem<'_>>,
        depth: usize,
    ) -> Result<()> {
        check_name(name)?;
        match v.type_of() {
            Type::Undefined | Type::Null | Type::Uninitialized => drop(b.null(name)),
            Type::Bool => drop(b.bool(name, v.as_bool().unwrap_or_default())),
            Type::Int | Type::Float => number(b, name, v.as_number().unwrap_or_default(), was),
            Type::String => drop(b.str(name, &self.text(v)?)),
            Type::Function | Type::Constructor => self.function(b, name, v)?,
            Type::Symbol | Type::BigInt => return Err(Error::bad_value("unable to get type").into()),
            _ => self.object(b, name, v, depth)?,
        }
        if b.buffer_len() > BSON_INTERNAL_BYTES_MAX {
            return Err(too_large(b.buffer_len()).into());
        }
        Ok(())
    }

    fn text(&self, v: &Js<'js>) -> Result<String> {
        let Some(s) = v.as_string() else { return Ok(String::new()) };
        match s.to_string() {
            Err(rquickjs::Error::Utf8(_)) => {
                // Half a surrogate pair.
                let repair: Function = self.prelude.get("wellFormed")?;
                Ok(repair.call::<_, String>((s.clone(),))?)
            }
            other => Ok(other?),
        }
    }

    fn function(&self, b: &mut DocBuilder, name: &str, v: &Js<'js>) -> Result<()> {
        for (key, ty) in [("MinKey", ElementType::MinKey), ("MaxKey", ElementType::MaxKey)] {
            if self.prelude.get::<Js>(key)? == *v {
                b.raw(ty, name, &[]);
                return Ok(());
            }
        }
        let source: rquickjs::Coerced<String> = v.get()?;
        b.value(name, Value::JavaScript(&source.0));
        Ok(())
    }

    fn object(&self, b: &mut DocBuilder, name: &str, v: &Js<'js>, depth: usize) -> Result<()> {
        let Some(object) = v.as_object() else { return Err(Error::bad_value("unable to get type").into()) };
        if depth >= JS_OBJECT_DEPTH_MAX {
            let text = format!(
                "Exceeded depth limit of {JS_OBJECT_DEPTH_MAX} when converting js object to BSON. Do you have a cycle?"
            );
            return Err(Error::location(17279, text).into());
        }
        let held = Class::<Held>::from_object(object);
        if let Some(class) = &held {
            let held = class.borrow();
            if held.ty != ElementType::Document || self.unchanged(object, RawDoc::trusted(&held.data))? {
                b.raw(held.ty, name, &held.data);
                return Ok(());
            }
        }
        if v.is_array() {
            let nested = b.open_nested(ElementType::Array, name);
            self.array(b, object, depth + 1)?;
            b.close_nested(nested);
            return Ok(());
        }
        if object.is_instance_of(self.prelude.get::<Object>("Date")?) {
            let ms = self.prelude.date_ms(object)?;
            b.date(name, if ms.is_nan() { 0 } else { ms as i64 });
            return Ok(());
        }
        if object.is_instance_of(self.prelude.get::<Object>("RegExp")?) {
            let (pattern, flags): (String, String) = (object.get("source")?, object.get("flags")?);
            let options: String = flags.chars().filter(|c| "ims".contains(*c)).collect();
            check_name(&pattern)?;
            b.regex(name, &pattern, &options);
            return Ok(());
        }
        let nested = b.open_nested(ElementType::Document, name);
        let held = held.as_ref().map(|class| class.borrow());
        let was = held.as_ref().map(|h| RawDoc::trusted(&h.data));
        for entry in object.own_props::<Atom, Js>(rquickjs::object::Filter::new().string().enum_only()) {
            let (key, value) = entry?;
            let key = self.text(&key.to_js_string()?.into_value())?;
            self.put(b, &key, &value, was.and_then(|d| d.elem(&key)), depth + 1)?;
        }
        b.close_nested(nested);
        Ok(())
    }

    /// Holes are left out, as in MongoDB.
    fn array(&self, b: &mut DocBuilder, object: &Object<'js>, depth: usize) -> Result<()> {
        let mut at = 0usize;
        for entry in object.own_props::<Atom, Js>(rquickjs::object::Filter::new().string().enum_only()) {
            let (key, value) = entry?;
            let key = self.text(&key.to_js_string()?.into_value())?;
            if !key.bytes().all(|c| c.is_ascii_digit()) {
                continue;
            }
            self.put(b, &at.to_string(), &value, None, depth)?;
            at += 1;
        }
        Ok(())
    }

    /// Whether an object holds just what its document does.
    fn unchanged(&self, object: &Object<'js>, was: &RawDoc) -> Result<bool> {
        if object.len() != was.count() {
            return Ok(false);
        }
        for e in was {
            let v: Js = object.get(&*e.shown_name())?;
            if !self.same(&v, e)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn same(&self, v: &Js<'js>, e: Elem<'_>) -> Result<bool> {
        Ok(match e.value() {
            Value::Int32(n) => v.as_number() == Some(f64::from(n)),
            Value::Double(d) => v.as_number().is_some_and(|n| n.to_bits() == d.to_bits() || n == d),
            Value::Boolean(x) => v.as_bool() == Some(x),
            Value::Null => v.is_null(),
            Value::Undefined => v.is_undefined(),
            Value::String(s) => v.is_string() && self.text(v)? == s,
            Value::NotUtf8(odd) if e.ty == ElementType::String => {
                let bytes = Value::NotUtf8(odd).string_bytes().unwrap_or_default();
                v.is_string() && self.text(v)? == String::from_utf8_lossy(bytes)
            }
            Value::Array(a) => {
                let Some(array) = v.as_array() else { return Ok(false) };
                if array.len() != a.count() {
                    return Ok(false);
                }
                for (i, e) in a.iter().enumerate() {
                    if !self.same(&array.get::<Js>(i)?, e)? {
                        return Ok(false);
                    }
                }
                true
            }
            Value::Document(d) => {
                let Some(object) = v.as_object() else { return Ok(false) };
                let held = Class::<Held>::from_object(object);
                held.is_some_and(|h| *h.borrow().data == *d.as_bytes()) && self.unchanged(object, d)?
            }
            _ => {
                let mut b = DocBuilder::new();
                self.put(&mut b, "", v, None, 0)?;
                b.finish().first().is_some_and(|now| now.ty == e.ty && now.data() == e.data())
            }
        })
    }
}

fn number(b: &mut DocBuilder, name: &str, n: f64, was: Option<Elem<'_>>) {
    let int = n as i32;
    if was.is_some_and(|e| e.ty == ElementType::Int32) && f64::from(int) == n {
        b.i32(name, int);
    } else {
        b.f64(name, n);
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.contains('\0') {
        let text = "JavaScript property (name) contains a null char which is not allowed in BSON. ";
        return Err(Error::location(16985, text).into());
    }
    Ok(())
}

fn too_large(bytes: usize) -> Error {
    let max = BSON_INTERNAL_BYTES_MAX;
    let text =
        format!("BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {max}(16MB)");
    Error::new(ErrorCode::BSONObjectTooLarge, text)
}
