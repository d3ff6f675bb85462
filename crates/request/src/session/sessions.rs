//! What `endSessions`, `refreshSessions`, `killSessions`, `killAllSessions` and `killAllSessionsByPattern` name: a list that is
//! the command's own element.

use crate::declare::arguments;
use pando_base::Result;
use pando_bson::shape::{Field, Shape, check_fields};
use pando_bson::{RawDoc, Value};
use pando_command::Request;
use pando_command::request::wrong_type;

arguments! {
    /// `endSessions` has no arguments beside its list.
    pub struct EndSessionsArgs of "endSessions" as "endSessions", refusing {}
}
arguments! {
    /// `refreshSessions` has no arguments beside its list.
    pub struct RefreshSessionsArgs of "refreshSessions" as "refreshSessions", refusing {}
}
arguments! {
    /// `killSessions` looks at no arguments beside its list.
    pub struct KillSessionsArgs of "killSessions" as "KillSessionsCmd", keeping {}
}
arguments! {
    /// `killAllSessions` looks at no arguments beside its list.
    pub struct KillAllSessionsArgs of "killAllSessions" as "KillAllSessionsCmd", keeping {}
}
arguments! {
    /// `killAllSessionsByPattern` looks at no arguments beside its list.
    pub struct KillAllSessionsByPatternArgs of "killAllSessionsByPattern" as "KillAllSessionsByPatternCmd", keeping {}
}

const SESSION: &[Field] = &[Field::required("id", Shape::Uuid), Field::optional("uid", Shape::Digest)];
const USER: &[Field] = &[Field::required("user", Shape::String), Field::required("db", Shape::String)];
const ROLE: &[Field] = &[Field::required("role", Shape::String), Field::required("db", Shape::String)];
const PATTERN: &[Field] = &[
    Field::optional("lsid", Shape::Fields(SESSION)),
    Field::optional("uid", Shape::Digest),
    Field::optional("users", Shape::List(&Shape::Fields(USER))),
    Field::optional("roles", Shape::List(&Shape::Fields(ROLE))),
];

/// The list of a command: what its elements are and how messages call one.
pub struct Listed {
    command: &'static str,
    owner: &'static str,
    element: &'static str,
    pub fields: &'static [Field],
}

pub const END: Listed = Listed {
    command: "endSessions",
    owner: "endSessions",
    element: "endSessions.endSessionsFromClient",
    fields: SESSION,
};
pub const REFRESH: Listed = Listed {
    command: "refreshSessions",
    owner: "refreshSessions",
    element: "refreshSessions.refreshSessionsFromClient",
    fields: SESSION,
};
pub const KILL: Listed = Listed {
    command: "killSessions",
    owner: "KillSessionsCmd",
    element: "KillSessionsCmd.killSessions",
    fields: SESSION,
};
pub const KILL_ALL: Listed = Listed {
    command: "killAllSessions",
    owner: "KillAllSessionsCmd",
    element: "KillAllSessionsCmd.killAllSessions",
    fields: USER,
};
pub const KILL_BY_PATTERN: Listed = Listed {
    command: "killAllSessionsByPattern",
    owner: "KillAllSessionsByPatternCmd",
    element: "KillAllSessionsByPatternCmd.killAllSessionsByPattern",
    fields: PATTERN,
};

impl Listed {
    /// Every list, for those who draw commands.
    pub const ALL: &[&Listed] = &[&END, &REFRESH, &KILL, &KILL_ALL, &KILL_BY_PATTERN];

    pub fn command(&self) -> &'static str {
        self.command
    }
    /// The elements; a null among them is passed over.
    pub fn read<'a>(&self, req: &Request<'a>) -> Result<Vec<&'a RawDoc>> {
        let v = req.first().value();
        Shape::List(&Shape::Any).check(&format!("{}.{}", self.owner, self.command), &v)?;
        let Value::Array(list) = v else {
            return Err(wrong_type(self.owner, self.command, &v, &["array"]));
        };
        let mut out = Vec::new();
        for e in list {
            match e.value() {
                Value::Null | Value::Undefined => {}
                Value::Document(d) => {
                    check_fields(self.fields, self.element, d)?;
                    out.push(d);
                }
                v => return Err(wrong_type(self.element, e.name(), &v, &["object"])),
            }
        }
        Ok(out)
    }
}
