//! What a script threw, as MongoDB's error.

use crate::guard::Guard;
use crate::interp::PRELUDE_NAME;
use pando_base::{Error, ErrorCode};
use rquickjs::{Coerced, Ctx, Value as Js};

/// The error behind a pending exception.
pub(crate) fn pending(ctx: &Ctx<'_>, guard: &Guard) -> Error {
    let thrown = ctx.catch();
    // There may have been no room left for an error.
    if guard.ran_out_of_memory() && thrown.is_null() {
        return failure("Out of memory".to_owned());
    }
    let Some(object) = thrown.as_object() else { return uncaught(&thrown) };
    let text = |name: &str| match object.get::<_, Option<Coerced<String>>>(name) {
        Ok(v) => v.map(|v| v.0).unwrap_or_default(),
        Err(_) => {
            ctx.catch();
            String::new()
        }
    };
    if !object.is_error() {
        return failure("[object Object] :\nundefined".to_owned());
    }
    let (name, message, stack) = (text("name"), text("message"), text("stack"));
    if name == "InternalError" && message == "out of memory" {
        return failure("Out of memory".to_owned());
    }
    if message.contains("call stack") {
        return failure(format!("InternalError: too much recursion :\n{}", frames(&stack)));
    }
    failure(format!("{name}: {message} :\n{}", frames(&stack)))
}

fn failure(message: String) -> Error {
    Error::new(ErrorCode::JSInterpreterFailure, message)
}

fn uncaught(thrown: &Js<'_>) -> Error {
    let text = match thrown.get::<Coerced<String>>() {
        Ok(text) => text.0,
        Err(_) => thrown.type_name().to_owned(),
    };
    Error::new(ErrorCode::UnknownError, format!("uncaught exception: {text}"))
}

/// `    at f (eval_script:1:2)` as `f@:1:2`.
fn frames(stack: &str) -> String {
    let mut out = String::new();
    for line in stack.lines() {
        let line = line.trim().trim_start_matches("at ");
        let (name, place) = line.split_once(" (").unwrap_or(("", line));
        if place.starts_with("native") || place.starts_with(PRELUDE_NAME) {
            continue;
        }
        let place = place.trim_end_matches(')').trim_start_matches("eval_script");
        let name = if name == "<anonymous>" || name == "<eval>" { "" } else { name };
        out.push_str(&format!("{name}@{place}\n"));
    }
    out
}
