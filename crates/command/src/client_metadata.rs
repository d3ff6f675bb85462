//! What a client tells about itself: `client` of its first `hello`, `$client` where a server passes it on.

use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{RawDoc, Value};

/// MongoDB's checks, codes 183, 184, 185 and 14: the size, then the fields as they stand, last what is missing. Returns the
/// application's name.
pub(crate) fn check(v: Value<'_>) -> Result<(&RawDoc, Option<String>)> {
    let Some(doc) = object(v) else {
        return Err(Error::type_mismatch("The client metadata document must be a document"));
    };
    if doc.byte_len() > limits::CLIENT_METADATA_BYTES_MAX {
        return Err(Error::new(
            ErrorCode::ClientMetadataDocumentTooLarge,
            format!(
                "The client metadata document must be less then or equal to {}bytes",
                limits::CLIENT_METADATA_BYTES_MAX
            ),
        ));
    }
    let mut app_name = None;
    let (mut driver, mut os) = (false, false);
    for e in doc {
        match e.name() {
            "application" => app_name = application(e.value())?,
            "driver" => {
                strings("driver", e.value(), &["name", "version"])?;
                driver = true;
            }
            "os" => {
                strings("os", e.value(), &["type"])?;
                os = true;
            }
            _ => {}
        }
    }
    match (driver, os) {
        (true, true) => Ok((doc, app_name)),
        (false, _) => Err(missing("sub-document 'driver'")),
        (true, false) => Err(missing("sub-document 'os'")),
    }
}

/// An array is as good as a document.
fn object(v: Value<'_>) -> Option<&RawDoc> {
    match v {
        Value::Document(d) | Value::Array(d) => Some(d),
        _ => None,
    }
}

fn part<'a>(name: &str, v: Value<'a>) -> Result<&'a RawDoc> {
    object(v).ok_or_else(|| {
        let text =
            format!("The '{name}' field is required to be a BSON document in the client metadata document");
        Error::type_mismatch(text)
    })
}

fn missing(what: &str) -> Error {
    let text = format!("Missing required {what} in the client metadata document");
    Error::new(ErrorCode::ClientMetadataMissingField, text)
}

fn not_a_string(field: &str) -> Error {
    Error::type_mismatch(format!("The '{field}' field must be a string in the client metadata document"))
}

fn application(v: Value<'_>) -> Result<Option<String>> {
    match part("application", v)?.get("name") {
        Some(Value::String(name)) if name.len() > limits::CLIENT_APP_NAME_BYTES_MAX => Err(Error::new(
            ErrorCode::ClientMetadataAppNameTooLarge,
            format!(
                "The 'application.name' field must be less then or equal to {} bytes in the client metadata document",
                limits::CLIENT_APP_NAME_BYTES_MAX
            ),
        )),
        Some(Value::String(name)) => Ok(Some(name.to_owned())),
        Some(_) => Err(not_a_string("application.name")),
        None => Ok(None),
    }
}

/// All of `fields` must be there, as strings.
fn strings(name: &str, v: Value<'_>, fields: &[&str]) -> Result<()> {
    let doc = part(name, v)?;
    for e in doc.iter().filter(|e| fields.contains(&e.name())) {
        if !matches!(e.value(), Value::String(_)) {
            return Err(not_a_string(&format!("{name}.{}", e.name())));
        }
    }
    match fields.iter().find(|f| doc.get(f).is_none()) {
        Some(f) => Err(missing(&format!("field '{name}.{f}'"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Bson, Document, doc};

    fn code(d: Document) -> i32 {
        check(Value::Document(&d.to_raw())).map_or_else(|e| e.code.0, |_| 0)
    }

    #[test]
    fn the_size_comes_first_then_the_fields_as_they_stand_then_what_is_missing() {
        let (driver, os) = (doc! { "name": "d", "version": "1" }, doc! { "type": "t" });
        let large = "x".repeat(1100);
        assert_eq!(code(doc! { "driver": driver.clone(), "os": os.clone(), "more": "x".repeat(700) }), 0);
        assert_eq!(code(doc! { "more": large.clone() }), 185);
        assert_eq!(code(doc! { "driver": 1, "more": large }), 185);
        let long = doc! { "name": "x".repeat(129) };
        assert_eq!(code(doc! { "application": long.clone() }), 184);
        assert_eq!(code(doc! { "driver": 1, "application": long.clone() }), 14);
        assert_eq!(code(doc! { "driver": {}, "application": long }), 183);
        assert_eq!(code(doc! { "os": 1 }), 14);
        assert_eq!(code(doc! { "os": os.clone() }), 183);
        assert_eq!(code(doc! { "driver": driver, }), 183);
        assert_eq!(code(doc! { "driver": Bson::Array(Vec::new()), "os": os }), 183);
        assert_eq!(check(Value::Int32(1)).err().map(|e| e.code.0), Some(14));
    }
}
