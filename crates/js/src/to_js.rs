//! From BSON to JavaScript.
//!
//! Ints and doubles become numbers; a document becomes an object that remembers where it came from, so that it
//! returns unchanged when it was not changed; types that JavaScript lacks become [`Held`] values.

use crate::held::Held;
use crate::interp::Prelude;
use pando_bson::{Elem, ElementType, RawDoc, Texts, Value};
use rquickjs::{Array, Class, Function, IntoJs, Object, Result, Value as Js};

pub(crate) struct ToJs<'k, 'js> {
    pub(crate) prelude: &'k Prelude<'js>,
}

impl<'js> ToJs<'_, 'js> {
    pub(crate) fn value(&self, e: Elem<'_>) -> Result<Js<'js>> {
        let ctx = &self.prelude.ctx;
        match e.value() {
            // JavaScript's strings are characters.
            Value::NotUtf8(v) => match v.texts() {
                Texts::String(s) | Texts::Symbol(s) => String::from_utf8_lossy(s).into_js(ctx),
                Texts::Regex { pattern, options } => {
                    self.regex(&String::from_utf8_lossy(pattern), &String::from_utf8_lossy(options))
                }
                Texts::JavaScript(code) | Texts::JavaScriptWithScope { code, .. } => {
                    self.code(&String::from_utf8_lossy(code))
                }
                Texts::DbPointer { .. } => self.held(e, "ObjectId"),
            },
            Value::Double(d) => d.into_js(ctx),
            Value::Int32(n) => n.into_js(ctx),
            Value::String(s) | Value::Symbol(s) => s.into_js(ctx),
            Value::Boolean(b) => b.into_js(ctx),
            Value::Null => Ok(Js::new_null(ctx.clone())),
            Value::Undefined => Ok(Js::new_undefined(ctx.clone())),
            Value::Document(d) => Ok(self.document(d)?.into_value()),
            Value::Array(a) => Ok(self.array(a)?.into_value()),
            Value::DateTime(ms) => self.construct("Date", (ms as f64,)),
            Value::Regex { pattern, options } => self.regex(pattern, options),
            Value::JavaScript(code) | Value::JavaScriptWithScope { code, .. } => self.code(code),
            Value::MinKey => self.prelude.get("MinKey"),
            Value::MaxKey => self.prelude.get("MaxKey"),
            Value::Int64(_) => self.held(e, "NumberLong"),
            Value::Decimal128(_) => self.held(e, "NumberDecimal"),
            Value::ObjectId(_) => self.held(e, "ObjectId"),
            Value::Timestamp(_) => self.held(e, "Timestamp"),
            Value::Binary { .. } => self.held(e, "BinData"),
            Value::DbPointer { .. } => self.held(e, "ObjectId"),
        }
    }

    fn held(&self, e: Elem<'_>, kind: &str) -> Result<Js<'js>> {
        self.prelude.hold(kind, e.ty, e.data())
    }

    /// An object with all fields.
    pub(crate) fn document(&self, d: &RawDoc) -> Result<Object<'js>> {
        let held = Held { ty: ElementType::Document, data: d.as_bytes().into() };
        let object = Class::instance_proto(held, self.prelude.get("object")?)?.into_inner();
        for e in d {
            object.set(&*e.shown_name(), self.value(e)?)?;
        }
        Ok(object)
    }

    /// An object with these fields only, which remembers nothing.
    pub(crate) fn fields(&self, d: &RawDoc, names: &[String]) -> Result<Object<'js>> {
        let object = Object::new(self.prelude.ctx.clone())?;
        for name in names {
            if let Some(e) = d.elem(name) {
                object.set(&*e.shown_name(), self.value(e)?)?;
            }
        }
        Ok(object)
    }

    pub(crate) fn array(&self, a: &RawDoc) -> Result<Array<'js>> {
        let array = Array::new(self.prelude.ctx.clone())?;
        for (i, e) in a.iter().enumerate() {
            array.set(i, self.value(e)?)?;
        }
        Ok(array)
    }

    fn construct(&self, name: &str, args: impl rquickjs::function::IntoArgs<'js>) -> Result<Js<'js>> {
        self.prelude.get::<rquickjs::function::Constructor>(name)?.construct(args)
    }

    /// Flags and patterns that JavaScript does not know give an error, as in MongoDB.
    fn regex(&self, pattern: &str, options: &str) -> Result<Js<'js>> {
        let flags: String = options.chars().filter(|c| "ims".contains(*c)).collect();
        self.construct("RegExp", (pattern, flags))
    }

    /// A function; other code becomes the body of one.
    fn code(&self, code: &str) -> Result<Js<'js>> {
        let function: Function = self.prelude.compile(code)?;
        Ok(function.into_value())
    }
}
