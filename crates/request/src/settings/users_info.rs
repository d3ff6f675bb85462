//! The arguments of `usersInfo`.

use super::principals::{Principal, Words, means_all, named};
use crate::declare::arguments;
use crate::declare::kinds::{Filter, SafeBool};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::Value;
use pando_command::Request;

arguments! {
    /// What `usersInfo` asks for. Its first element says whom ([`Users`]).
    pub struct UsersInfoArgs of "usersInfo" as "usersInfo", refusing {
        "showPrivileges" privileges: optional SafeBool,
        "showCredentials" credentials: optional SafeBool,
        "showCustomData" custom_data: optional SafeBool,
        "showAuthenticationRestrictions" restrictions: optional SafeBool,
        "filter" filter: optional Filter,
    }
}

/// Whom `usersInfo` is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Users<'a> {
    OfDatabase,
    Everywhere,
    Named(Vec<Principal<'a>>),
}

const USER: Words = Words { what: "UserName", field: "user", strict: true };

impl<'a> Users<'a> {
    pub fn parse(req: &Request<'a>) -> Result<Users<'a>> {
        match req.first().value() {
            v if means_all(&v) => Ok(Users::OfDatabase),
            Value::Document(d) if d.get("forAllDBs").is_some_and(|v| v.is_truthy()) => Ok(Users::Everywhere),
            v => named(&USER, req.db, v).map(Users::Named),
        }
    }
}

impl UsersInfoArgs<'_> {
    /// Whether more is asked for than who there is.
    pub fn details(&self) -> bool {
        self.privileges == Some(true) || self.restrictions == Some(true)
    }
    /// What the arguments mean together: details are told of users that are named one by one.
    pub fn check(&self, users: &Users<'_>) -> Result<()> {
        let one_by_one = matches!(users, Users::Named(_)) && self.filter.is_none();
        if self.details() && !one_by_one {
            let text = "Privilege or restriction details require exact-match usersInfo queries";
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        Ok(())
    }
}
