//! `replSetUpdatePosition`: how far members are, told up the chain towards the primary (R-UPOS-1, R-UPOS-2).

use crate::data::metadata::{append_op_time, date_of, op_time_of};
use crate::data::progress::Position;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::request::{missing, wrong_type};

/// One member's positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberPosition {
    pub member_id: i64,
    pub config_version: i64,
    pub applied: Position,
    pub durable: Position,
    /// Absent from members of older versions.
    pub written: Option<Position>,
}

/// The command's body, without `$db`.
pub fn command(members: &[MemberPosition]) -> DocBuf {
    let mut b = DocBuilder::with_capacity(64 + members.len() * 240);
    b.i32("replSetUpdatePosition", 1);
    b.array("optimes", |a| {
        for m in members {
            a.doc(|d| {
                append(d, "durable", m.durable);
                append(d, "applied", m.applied);
                if let Some(written) = m.written {
                    append(d, "written", written);
                }
                d.i64("memberId", m.member_id);
                d.i64("cfgver", m.config_version);
            });
        }
    });
    b.str("$db", "admin");
    b.finish()
}

fn append(d: &mut DocBuilder, which: &str, at: Position) {
    append_op_time(d, &format!("{which}OpTime"), at.op_time);
    d.date(&format!("{which}WallTime"), at.wall);
}

/// The positions in a command's body.
pub fn parse(body: &RawDoc) -> Result<Vec<MemberPosition>> {
    const OWNER: &str = "replSetUpdatePosition";
    let list = body.elem("optimes").ok_or_else(|| missing(OWNER, "optimes"))?;
    let Some(array) = list.value().as_array() else {
        return Err(wrong_type(OWNER, "optimes", &list.value(), &["array"]));
    };
    array
        .iter()
        .map(|e| {
            let d = e.value().as_doc().ok_or_else(|| Error::bad_value("optimes must hold documents"))?;
            let number = |name| d.get(name).and_then(|v| v.as_i64()).ok_or_else(|| missing(OWNER, name));
            let at = |which: &str| Position {
                op_time: op_time_of(d.get(&format!("{which}OpTime"))),
                wall: date_of(d.get(&format!("{which}WallTime"))),
            };
            Ok(MemberPosition {
                member_id: number("memberId")?,
                config_version: number("cfgver")?,
                applied: at("applied"),
                durable: at("durable"),
                written: d.get("writtenOpTime").is_some().then(|| at("written")),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::{OpTime, Timestamp};
    use pando_bson::doc;

    #[test]
    fn positions_survive_the_command_and_members_must_be_named() {
        let at = |n: u32| Position { op_time: OpTime::new(Timestamp::new(n, 1), 1), wall: i64::from(n) };
        let one = MemberPosition {
            member_id: 2,
            config_version: 5,
            applied: at(3),
            durable: at(2),
            written: Some(at(4)),
        };
        let two = MemberPosition { member_id: 1, written: None, ..one };
        assert_eq!(parse(&command(&[one, two])).unwrap(), [one, two]);
        let e = parse(&doc! { "optimes": [{ "cfgver": 1 }] }.to_raw()).unwrap_err();
        assert_eq!(e.code.0, 40414);
    }
}
