//! Whose client another server asks for (`$audit`): what it causes here is that client's in the audit log. What may be done is not judged
//! by it: the other server has done that.

use pando_auth::UserName;
use pando_auth::roles::RoleName;
use pando_bson::{DocBuf, DocBuilder, RawDoc};

const USERS: &str = "$impersonatedUsers";
const ROLES: &str = "$impersonatedRoles";

/// A user, and its roles with all that they include.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnBehalfOf {
    pub user: UserName,
    pub roles: Vec<RoleName>,
}

impl OnBehalfOf {
    /// `None` where it names nobody.
    pub fn parse(doc: &RawDoc) -> Option<OnBehalfOf> {
        let text = |d: &RawDoc, name: &str| Some(d.get(name)?.as_str()?.to_owned());
        let list = |name: &str| doc.get(name).and_then(|v| v.as_array()).into_iter().flatten();
        let user = |d: &RawDoc| Some(UserName { user: text(d, "user")?, db: text(d, "db")? });
        let role = |d: &RawDoc| Some(RoleName { role: text(d, "role")?, db: text(d, "db")? });
        // Release 7.0 names one user by itself.
        let one = doc.get("$impersonatedUser");
        let first = one
            .as_ref()
            .and_then(|v| v.as_doc())
            .or_else(|| doc.get(USERS).and_then(|v| v.as_array()?.iter().next()?.value().as_doc()))?;
        let roles = list(ROLES).filter_map(|e| role(e.value().as_doc()?)).collect();
        Some(OnBehalfOf { user: user(first)?, roles })
    }
    pub fn append_to(&self, b: &mut DocBuilder) {
        b.doc("$audit", |d| self.append_fields(d));
    }
    pub fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        self.append_fields(&mut b);
        b.finish()
    }
    fn append_fields(&self, d: &mut DocBuilder) {
        d.array(USERS, |a| {
            a.doc(|u| _ = u.str("user", &self.user.user).str("db", &self.user.db));
        });
        d.array(ROLES, |a| {
            for role in &self.roles {
                a.doc(|r| _ = r.str("role", &role.role).str("db", &role.db));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_on_is_what_arrives() {
        let of = OnBehalfOf {
            user: UserName::new("u", "admin"),
            roles: vec![
                RoleName { role: "read".into(), db: "d".into() },
                RoleName { role: "root".into(), db: "admin".into() },
            ],
        };
        let mut b = DocBuilder::new();
        of.append_to(&mut b);
        let doc = b.finish();
        let inner = doc.get("$audit").and_then(|v| v.as_doc().map(OnBehalfOf::parse));
        assert_eq!(inner, Some(Some(of)));
    }
}
