//! `$type`: sets of BSON types, by number, name or `"number"`.

use super::number::exact_i64;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{ElementType, Value};

/// A set of types; `"number"` is remembered as such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeSet {
    bits: u32,
    /// `"number"` was named: all four numeric types.
    pub all_numbers: bool,
}

fn bit(ty: ElementType) -> u32 {
    match ty {
        ElementType::MinKey => 1 << 30,
        ElementType::MaxKey => 1 << 31,
        other => 1 << (other as u8),
    }
}

/// The type with this `$type` number (-1 min key, 127 max key).
pub fn type_of_code(code: i64) -> Option<ElementType> {
    match code {
        -1 => Some(ElementType::MinKey),
        127 => Some(ElementType::MaxKey),
        1..=19 => ElementType::from_byte(code as u8),
        _ => None,
    }
}

pub(super) fn code_of(ty: ElementType) -> i32 {
    match ty {
        ElementType::MinKey => -1,
        other => other as u8 as i32,
    }
}

impl TypeSet {
    pub fn of(ty: ElementType) -> TypeSet {
        TypeSet { bits: bit(ty), all_numbers: false }
    }
    pub fn insert(&mut self, ty: ElementType) {
        self.bits |= bit(ty);
    }
    #[inline]
    pub fn contains(&self, ty: ElementType) -> bool {
        self.bits & bit(ty) != 0
            || (self.all_numbers
                && matches!(
                    ty,
                    ElementType::Double | ElementType::Int32 | ElementType::Int64 | ElementType::Decimal128
                ))
    }
    pub fn is_empty(&self) -> bool {
        self.bits == 0 && !self.all_numbers
    }
    /// The explicitly named types by ascending number.
    pub fn iter(&self) -> impl Iterator<Item = ElementType> + '_ {
        (-1..=127).filter_map(type_of_code).filter(|t| self.bits & bit(*t) != 0)
    }
    /// `["number", 2, 4]` as explain shows it.
    pub fn write(&self, out: &mut pando_bson::ArrayBuilder) {
        if self.all_numbers {
            out.str("number");
        }
        for ty in self.iter() {
            out.value(Value::Int32(code_of(ty)));
        }
    }

    fn add_name(&mut self, name: &str) -> Result<()> {
        if name == "number" {
            self.all_numbers = true;
            return Ok(());
        }
        if name == "missing" {
            return Err(Error::bad_value(
                "'missing' is not a legal type name. To query for non-existence of a field, use {$exists:false}.",
            ));
        }
        let ty = ElementType::named(name)
            .ok_or_else(|| Error::bad_value(format!("Unknown type name alias: {name}")))?;
        self.insert(ty);
        Ok(())
    }

    fn add(&mut self, v: Value<'_>) -> Result<()> {
        match v {
            Value::String(name) => self.add_name(name),
            _ if v.is_number() => {
                let code = exact_i64(v).filter(|c| type_of_code(*c).is_some());
                match code.and_then(type_of_code) {
                    Some(ty) => {
                        self.insert(ty);
                        Ok(())
                    }
                    None if exact_i64(v) == Some(0) => {
                        Err(Error::bad_value("Invalid numerical type code: 0. Instead use {$exists:false}."))
                    }
                    None => {
                        let text = v.to_string();
                        let code = text.strip_suffix(".0").unwrap_or(&text);
                        Err(Error::bad_value(format!("Invalid numerical type code: {code}")))
                    }
                }
            }
            _ => Err(Error::type_mismatch("type must be represented as a number or a string")),
        }
    }

    /// Parses the argument of `$type`; `field` is for the message.
    pub fn parse(field: &str, v: Value<'_>) -> Result<TypeSet> {
        let mut set = TypeSet::default();
        match v {
            Value::Array(items) => {
                for item in items {
                    set.add(item.value())?;
                }
            }
            one => set.add(one)?,
        }
        if set.is_empty() {
            return Err(Error::new(
                ErrorCode::FailedToParse,
                format!("{field} must match at least one type"),
            ));
        }
        Ok(set)
    }
}
