//! The kinds of arguments that several commands share.

use pando_base::Result;
use pando_base::Timestamp as Time;
use pando_bson::fields::safe_i64;
use pando_bson::shape::{Field, Means, Null, Range, Shape, wrong_type_at};
use pando_bson::{DocBuilder, RawDoc, Value};

/// What may stand at an argument, what it becomes, and how that is written.
pub trait Kind {
    type Of<'a>: Clone;
    const SHAPE: Shape;
    const NULL: Null = Null::Absent;
    const MEANS: Means = Means::Itself;
    const UNSTABLE: bool = false;
    /// The value of what has the shape; `None` for anything else.
    fn read(v: Value<'_>) -> Option<Self::Of<'_>>;
    fn spell(v: &Self::Of<'_>, name: &str, b: &mut DocBuilder);
}

/// A kind that is read as another one, and differs in what its table says.
macro_rules! kind {
    ($(#[$meta:meta])* $vis:vis $Name:ident like $Base:ty { $($constant:ident: $value:expr),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $Name;
        impl $crate::declare::Kind for $Name {
            type Of<'a> = <$Base as $crate::declare::Kind>::Of<'a>;
            $crate::declare::kind!(@constants $Base; $($constant: $value,)*);
            fn read(v: pando_bson::Value<'_>) -> Option<Self::Of<'_>> {
                <$Base as $crate::declare::Kind>::read(v)
            }
            fn spell(v: &Self::Of<'_>, name: &str, b: &mut pando_bson::DocBuilder) {
                <$Base as $crate::declare::Kind>::spell(v, name, b)
            }
        }
    };
    // The shape is named first, or is that of the base.
    (@constants $Base:ty; SHAPE: $shape:expr, $($constant:ident: $value:expr,)*) => {
        const SHAPE: pando_bson::shape::Shape = $shape;
        $($crate::declare::kind!(@constant $constant: $value);)*
    };
    (@constants $Base:ty; $($constant:ident: $value:expr,)*) => {
        const SHAPE: pando_bson::shape::Shape = <$Base as $crate::declare::Kind>::SHAPE;
        $($crate::declare::kind!(@constant $constant: $value);)*
    };
    (@constant NULL: $value:expr) => { const NULL: pando_bson::shape::Null = $value; };
    (@constant MEANS: $value:expr) => { const MEANS: pando_bson::shape::Means = $value; };
    (@constant UNSTABLE: $value:expr) => { const UNSTABLE: bool = $value; };
}
pub(crate) use kind;

macro_rules! plain_kind {
    ($(#[$meta:meta])* $Name:ident of $Of:ty, $shape:expr, $read:expr, $spell:expr) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $Name;
        impl Kind for $Name {
            type Of<'a> = $Of;
            const SHAPE: Shape = $shape;
            fn read(v: Value<'_>) -> Option<Self::Of<'_>> {
                ($read)(v)
            }
            fn spell(v: &Self::Of<'_>, name: &str, b: &mut DocBuilder) {
                let write: fn(&mut DocBuilder, &str, &Self::Of<'_>) = $spell;
                write(b, name, v);
            }
        }
    };
}

plain_kind!(
    /// A boolean.
    Bool of bool, Shape::Bool, truth, |b, name, on| { b.bool(name, *on); }
);
plain_kind!(
    /// A boolean or a number.
    SafeBool of bool, Shape::SafeBool, truth, |b, name, on| { b.bool(name, *on); }
);
plain_kind!(
    /// Anything, of which only matters whether it counts as true.
    Truth of bool, Shape::Any, truth, |b, name, on| { b.bool(name, *on); }
);
plain_kind!(Text of &'a str, Shape::String, |v| text(v), |b, name, s| { b.str(name, s); });
plain_kind!(Object of &'a RawDoc, Shape::Object, |v| object(v), |b, name, d| { b.raw_doc(name, d); });
plain_kind!(Array of &'a RawDoc, Shape::List(&Shape::Any), |v| array(v), |b, name, d| { b.raw_array(name, d); });
plain_kind!(
    /// Any number, as an integer.
    Integer of i64, Shape::Integer(Range::between(i64::MIN, i64::MAX)), |v| safe_i64(&v),
    |b, name, n| { b.i64(name, *n); }
);
plain_kind!(Uuid of [u8; 16], Shape::Uuid, uuid, |b, name, id| { b.uuid(name, id); });
plain_kind!(Timestamp of Time, Shape::Timestamp, timestamp, |b, name, ts| { b.timestamp(name, *ts); });
plain_kind!(
    /// Whatever it is, as it came.
    Anything of Value<'a>, Shape::Any, Some, |b, name, v| { b.value(name, *v); }
);

kind! {
    /// The same, a null included.
    pub AnythingGiven like Anything { NULL: Null::Value }
}
kind! { pub Count like Integer { SHAPE: Shape::Integer(Range::at_least(0)) } }
kind! { pub Filter like Object { MEANS: Means::Filter } }
kind! { pub Sort like Object { MEANS: Means::Sort } }
kind! { pub IndexKey like Object { MEANS: Means::IndexKey } }
kind! { pub Pipeline like Array { SHAPE: Shape::List(&Shape::Object), MEANS: Means::Pipeline } }

fn truth(v: Value<'_>) -> Option<bool> {
    Some(v.is_truthy())
}
fn text(v: Value<'_>) -> Option<&str> {
    match v {
        Value::String(s) => Some(s),
        _ => None,
    }
}
fn object(v: Value<'_>) -> Option<&RawDoc> {
    v.as_doc()
}
fn array(v: Value<'_>) -> Option<&RawDoc> {
    v.as_array()
}
fn uuid(v: Value<'_>) -> Option<[u8; 16]> {
    match v {
        Value::Binary { subtype: 4, bytes } => bytes.try_into().ok(),
        _ => None,
    }
}
fn timestamp(v: Value<'_>) -> Option<Time> {
    match v {
        Value::Timestamp(ts) => Some(ts),
        _ => None,
    }
}

/// `{batchSize: n}` of a command that answers with a cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CursorOptions {
    pub batch_size: Option<u64>,
}

/// `cursor` of a command.
#[derive(Debug)]
pub struct Cursor;
impl Kind for Cursor {
    type Of<'a> = CursorOptions;
    const SHAPE: Shape = Shape::Fields(&[Field::optional("batchSize", Shape::Integer(Range::at_least(0)))]);
    fn read(v: Value<'_>) -> Option<CursorOptions> {
        let batch_size = v.as_doc()?.get("batchSize").and_then(|n| safe_i64(&n));
        Some(CursorOptions { batch_size: batch_size.and_then(|n| u64::try_from(n).ok()) })
    }
    fn spell(v: &CursorOptions, name: &str, b: &mut DocBuilder) {
        b.doc(name, |d| crate::spell::count(d, "batchSize", v.batch_size));
    }
}

/// `{enabled: <bool>}` of `changeStreamPreAndPostImages`.
#[derive(Debug)]
pub struct Images;
impl Kind for Images {
    type Of<'a> = bool;
    const SHAPE: Shape = Shape::Fields(&[Field::required("enabled", Shape::Bool)]);
    fn read(v: Value<'_>) -> Option<bool> {
        v.as_doc()?.get("enabled").map(|on| on.is_truthy())
    }
    fn spell(on: &bool, name: &str, b: &mut DocBuilder) {
        b.doc(name, |d| {
            d.bool("enabled", *on);
        });
    }
}

kind! { pub ValidationLevel like Text { SHAPE: Shape::Word(&["off", "strict", "moderate"]) } }
kind! { pub ValidationAction like Text { SHAPE: Shape::Word(&["error", "warn"]) } }
kind! {
    /// A name that must not be empty.
    pub ViewOn like Text { SHAPE: Shape::Checked { like: &[Shape::String], check: check_view_on }, MEANS: Means::Collection }
}

fn check_view_on(path: &str, v: &Value<'_>) -> Result<()> {
    match v {
        Value::String("") => Err(pando_base::Error::bad_value("'viewOn' cannot be empty")),
        Value::String(_) => Ok(()),
        v => Err(wrong_type_at(path, v, &["string"])),
    }
}
