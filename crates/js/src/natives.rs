//! What the prelude needs of BSON: making, reading and comparing values of its types.

use crate::guard::Guard;
use crate::held::Held;
use crate::interp::Prelude;
use crate::to_bson::{Fail, ToBson};
use md5::{Digest, Md5};
use pando_base::limits::{JS_ARRAY_MAX, JS_SEARCH_STEPS_MAX};
use pando_bson::decimal128::Rounding;
use pando_bson::extjson::{base64, unbase64};
use pando_bson::{Decimal128, DocBuf, DocBuilder, Elem, ElementType, ObjectId, Value};
use rquickjs::{Array, Class, Ctx, Exception, Function, Object, Result, Value as Js};
use std::sync::Arc;
use std::time::Duration;

/// The object that `prelude.js` is given.
pub(crate) fn object<'js>(
    ctx: &Ctx<'js>,
    guard: &Arc<Guard>,
    random: &Arc<dyn pando_query::ctx::Random>,
) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let set = |name: &str, f: Result<Function<'js>>| native.set(name, f?);
    let r = random.clone();
    set(
        "make",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, kind: String, text: String| {
            make(&ctx, &kind, &text, &*r)
        }),
    )?;
    set("text", Function::new(ctx.clone(), |ctx: Ctx<'js>, v: Js<'js>| text(&ctx, &v)))?;
    set("binary", Function::new(ctx.clone(), |ctx: Ctx<'js>, v: Js<'js>| binary(&ctx, &v)))?;
    set("isHeld", Function::new(ctx.clone(), |v: Js<'js>| held(&v).is_some()))?;
    set(
        "compare",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, a: Js<'js>, b: Js<'js>| compare(&ctx, &a, &b)),
    )?;
    set("size", Function::new(ctx.clone(), |ctx: Ctx<'js>, v: Js<'js>| size(&ctx, &v)))?;
    set("md5", Function::new(ctx.clone(), |s: String| hex(&Md5::digest(s.as_bytes()))))?;
    let g = guard.clone();
    let stop = |ctx: &Ctx<'js>, stopped: bool| match stopped {
        true => Err(Exception::throw_internal(ctx, "interrupted")),
        false => Ok(()),
    };
    set("tick", Function::new(ctx.clone(), move |ctx: Ctx<'js>| stop(&ctx, g.check())))?;
    let g = guard.clone();
    set(
        "sleep",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, ms: f64| {
            stop(&ctx, g.sleep(Duration::from_millis(ms.clamp(0.0, 1e12) as u64)))
        }),
    )?;
    native.set("arrayMax", JS_ARRAY_MAX as f64)?;
    native.set("searchMax", JS_SEARCH_STEPS_MAX as f64)?;
    native.set("version", "7.0.0")?;
    Ok(native)
}

fn held<'js>(v: &Js<'js>) -> Option<Class<'js, Held>> {
    Class::from_object(v.as_object()?).filter(|c: &Class<'js, Held>| c.borrow().ty != ElementType::Document)
}

fn with_value<'js, T>(ctx: &Ctx<'js>, v: &Js<'js>, f: impl FnOnce(Value<'_>) -> Option<T>) -> Result<T> {
    let wrong = || Exception::throw_type(ctx, "not a value of this type");
    let class = held(v).ok_or_else(wrong)?;
    let held = class.borrow();
    f(Elem::new(held.ty, "", &held.data).value()).ok_or_else(wrong)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn text<'js>(ctx: &Ctx<'js>, v: &Js<'js>) -> Result<String> {
    with_value(ctx, v, |v| {
        Some(match v {
            Value::Int32(n) => n.to_string(),
            Value::Int64(n) => n.to_string(),
            Value::Decimal128(d) => d.to_string(),
            Value::ObjectId(id) => id.to_hex(),
            Value::DbPointer { id, .. } => id.to_hex(),
            Value::Timestamp(t) => format!("{}:{}", t.secs(), t.inc()),
            _ => return None,
        })
    })
}

/// Subtype, base 64 and hexadecimal digits.
fn binary<'js>(ctx: &Ctx<'js>, v: &Js<'js>) -> Result<Array<'js>> {
    let (subtype, base64, hex) = with_value(ctx, v, |v| match v {
        Value::Binary { subtype, bytes } => Some((subtype, base64(bytes), hex(bytes))),
        _ => None,
    })?;
    let parts = Array::new(ctx.clone())?;
    parts.set(0, subtype)?;
    parts.set(1, base64)?;
    parts.set(2, hex)?;
    Ok(parts)
}

fn compare<'js>(ctx: &Ctx<'js>, a: &Js<'js>, b: &Js<'js>) -> Result<i32> {
    let (a, b) = (document(ctx, a)?, document(ctx, b)?);
    Ok(pando_bson::compare::cmp_docs(&a, &b) as i32)
}

fn size<'js>(ctx: &Ctx<'js>, v: &Js<'js>) -> Result<f64> {
    let holder = document(ctx, v)?;
    Ok(holder.first().map_or(0, |e| e.data().len()) as f64)
}

/// `{"": v}`.
fn document<'js>(ctx: &Ctx<'js>, v: &Js<'js>) -> Result<DocBuf> {
    let prelude = Prelude::of(ctx)?;
    let mut b = DocBuilder::new();
    match (ToBson { prelude: &prelude }).put(&mut b, "", v, None, 0) {
        Ok(()) => Ok(b.finish()),
        Err(Fail::Js(e)) => Err(e),
        Err(Fail::Db(e)) => Err(Exception::throw_message(ctx, &e.message)),
    }
}

fn make<'js>(
    ctx: &Ctx<'js>,
    kind: &str,
    text: &str,
    random: &dyn pando_query::ctx::Random,
) -> Result<Js<'js>> {
    let mut b = DocBuilder::new();
    if !write(&mut b, kind, text, random) {
        return Err(Exception::throw_type(ctx, &format!("invalid {kind}: {text}")));
    }
    let doc = b.finish();
    let proto = if kind == "HexData" { "BinData" } else { kind };
    let prelude = Prelude::of(ctx)?;
    match doc.first() {
        Some(e) => prelude.hold(proto, e.ty, e.data()),
        None => Ok(Js::new_null(ctx.clone())),
    }
}

/// False when the text says nothing of the kind.
fn write(b: &mut DocBuilder, kind: &str, text: &str, random: &dyn pando_query::ctx::Random) -> bool {
    let whole = || text.parse::<i64>().ok().or_else(|| text.parse::<f64>().ok().map(|d| d as i64));
    let parts = text.split_once(':');
    match (kind, parts) {
        ("NumberLong", _) => whole().map(|n| b.i64("", n)),
        ("NumberInt", _) => whole().map(|n| b.i32("", n as i32)),
        ("NumberDecimal", _) => Decimal128::parse(text, Rounding::HalfEven).map(|(d, _)| b.decimal("", d)),
        ("ObjectId", _) if text.is_empty() => Some(b.object_id("", ObjectId(bytes(random)))),
        ("ObjectId", _) => ObjectId::from_hex(text).map(|id| b.object_id("", id)),
        ("Timestamp", Some((t, i))) => match (t.parse::<f64>(), i.parse::<f64>()) {
            (Ok(t), Ok(i)) => Some(b.timestamp("", pando_base::Timestamp::new(t as u32, i as u32))),
            _ => None,
        },
        ("BinData", Some((subtype, data))) => match (subtype.parse::<u8>(), unbase64(data)) {
            (Ok(subtype), Some(data)) => Some(b.binary("", subtype, &data)),
            _ => None,
        },
        ("HexData", None) => {
            let mut id: [u8; 16] = bytes(random);
            id[6] = id[6] & 0x0f | 0x40;
            id[8] = id[8] & 0x3f | 0x80;
            Some(b.uuid("", &id))
        }
        ("HexData", Some((subtype, digits))) => match (subtype.parse::<u8>(), unhex(digits)) {
            (Ok(subtype), Some(data)) => Some(b.binary("", subtype, &data)),
            _ => None,
        },
        _ => None,
    }
    .is_some()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || digits.len() % 2 == 1 {
        return None;
    }
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).ok()).collect()
}

fn bytes<const N: usize>(random: &dyn pando_query::ctx::Random) -> [u8; N] {
    let mut out = [0; N];
    for chunk in out.chunks_mut(8) {
        chunk.copy_from_slice(&random.next_u64().to_le_bytes()[..chunk.len()]);
    }
    out
}
