//! A BSON value that a script holds: a type without a counterpart in JavaScript, or the document an object came from.

use pando_bson::ElementType;
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::Constructor;
use rquickjs::{Ctx, JsLifetime, Object, Result};

pub(crate) struct Held {
    pub(crate) ty: ElementType,
    pub(crate) data: Box<[u8]>,
}

impl Trace<'_> for Held {
    fn trace<'a>(&self, _: Tracer<'a, '_>) {}
}

// SAFETY: it holds nothing of the interpreter's.
#[allow(unsafe_code)]
unsafe impl<'js> JsLifetime<'js> for Held {
    type Changed<'to> = Held;
}

impl<'js> JsClass<'js> for Held {
    const NAME: &'static str = "BSON";
    type Mutable = Readable;
    fn prototype(_: &Ctx<'js>) -> Result<Option<Object<'js>>> {
        Ok(None)
    }
    fn constructor(_: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}
