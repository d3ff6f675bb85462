//! How a record is written.

use pando_bson::extjson::{Mode, base64, write_json_string, write_value};
use pando_bson::{RawDoc, Value};

/// `--auditFormat`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Format {
    /// One object a line.
    #[default]
    Json,
    /// Documents one after the other, as `bsondump` reads them.
    Bson,
}

impl Format {
    pub(crate) fn bytes_of(self, record: &RawDoc) -> Vec<u8> {
        match self {
            Format::Json => json_line(record).into_bytes(),
            Format::Bson => record.as_bytes().to_vec(),
        }
    }
}

/// Relaxed extended JSON, but for the moment and the connection, which have MongoDB's documented forms.
fn json_line(record: &RawDoc) -> String {
    let mut out = String::with_capacity(2 * record.byte_len());
    for e in record {
        out.push(if out.is_empty() { '{' } else { ',' });
        write_json_string(&mut out, e.name());
        out.push(':');
        match e.value() {
            Value::DateTime(ms) => {
                out.push_str("{\"$date\":\"");
                out.push_str(&pando_base::calendar::iso(ms));
                out.push_str("+00:00\"}");
            }
            Value::Binary { subtype, bytes } => {
                out.push_str("{\"$binary\":\"");
                out.push_str(&base64(bytes));
                out.push_str(&format!("\",\"$type\":\"{subtype:02x}\"}}"));
            }
            other => write_value(&mut out, other, Mode::Relaxed),
        }
    }
    out.push_str("}\n");
    out
}
