//! A constant of a filter, kept as encoded bytes.

use super::number::decimal_is_nan;
use pando_bson::{Bson, DocBuilder, Elem, ElementType, Value};
use std::fmt;

/// An owned encoded value.
#[derive(Clone, PartialEq, Eq)]
pub struct Operand {
    ty: ElementType,
    data: Box<[u8]>,
}

impl fmt::Debug for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

impl From<Elem<'_>> for Operand {
    fn from(e: Elem<'_>) -> Operand {
        Operand { ty: e.ty, data: e.data().into() }
    }
}

impl From<Value<'_>> for Operand {
    fn from(v: Value<'_>) -> Operand {
        let mut b = DocBuilder::with_capacity(64);
        b.value("", v);
        b.finish().first().map_or(Operand::null(), Operand::from)
    }
}

impl From<&Bson> for Operand {
    fn from(v: &Bson) -> Operand {
        let mut b = DocBuilder::with_capacity(64);
        b.bson("", v);
        b.finish().first().map_or(Operand::null(), Operand::from)
    }
}

impl Operand {
    pub fn null() -> Operand {
        Operand { ty: ElementType::Null, data: Box::default() }
    }
    pub fn ty(&self) -> ElementType {
        self.ty
    }
    /// The encoded value.
    pub fn data(&self) -> &[u8] {
        &self.data
    }
    pub fn elem(&self) -> Elem<'_> {
        Elem::new(self.ty, "", &self.data)
    }
    pub fn value(&self) -> Value<'_> {
        self.elem().value()
    }
    pub fn is_number(&self) -> bool {
        self.value().is_number()
    }
    pub fn is_nan(&self) -> bool {
        match self.value() {
            Value::Double(d) => d.is_nan(),
            Value::Decimal128(d) => decimal_is_nan(d),
            _ => false,
        }
    }
}
