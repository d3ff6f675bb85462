//! A role as it is kept in `admin.system.roles`.
//!
//! ```text
//! {_id: "<db>.<role>", role, db, privileges: [{resource, actions}, ...], roles: [{role, db}, ...], authenticationRestrictions: [...]}
//! ```

use super::{Role, RoleName};
use crate::restrictions::Restrictions;
use pando_bson::{Bson, Document, doc};

impl Role {
    /// Reads a document of `admin.system.roles`; `None` where it has no name, or restrictions that cannot be read: whoever has it
    /// gets nothing by it. Privileges that cannot be read allow nothing.
    pub fn of_document(d: &Document) -> Option<(RoleName, Role)> {
        let text = |name: &str| d.get(name).and_then(Bson::as_str);
        let name = RoleName::new(text("role").filter(|r| !r.is_empty())?, text("db")?);
        let restrictions = match d.get("authenticationRestrictions") {
            None => Restrictions::default(),
            Some(Bson::Array(list)) => Restrictions::of_array(list)?,
            Some(_) => return None,
        };
        let mut role = Role { restrictions, ..Role::default() };
        let list = |name: &str| d.get(name).and_then(Bson::as_array).into_iter().flatten();
        for privilege in list("privileges").filter_map(Bson::as_doc) {
            let _ = role.privileges.parse_into(privilege);
        }
        role.roles = list("roles").filter_map(RoleName::of_document).collect();
        Some((name, role))
    }

    /// The reverse of [`Role::of_document`], in the order in which MongoDB writes the fields.
    pub fn document(&self, name: &RoleName) -> Document {
        let privileges = self.privileges.documents().into_iter().map(Bson::from).collect();
        let mut d = doc! {
            "_id": name.id(),
            "role": name.role.as_str(),
            "db": name.db.as_str(),
            "privileges": Bson::Array(privileges),
            "roles": Bson::Array(self.roles.iter().map(RoleName::document).map(Bson::from).collect()),
        };
        if !self.restrictions.is_empty() {
            let list = self.restrictions.documents().into_iter().map(Bson::from).collect();
            d.push("authenticationRestrictions", Bson::Array(list));
        }
        d
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_and_written_the_same() {
        let text = |s: &str| Bson::from(s);
        let written = doc! {
            "_id": "app.r2", "role": "r2", "db": "app",
            "privileges": Bson::Array(vec![Bson::from(doc! {
                "resource": doc! { "db": "app", "collection": "c" }, "actions": Bson::Array(vec![text("find")]),
            })]),
            "roles": Bson::Array(vec![Bson::from(doc! { "role": "read", "db": "app" })]),
            "authenticationRestrictions": Bson::Array(vec![Bson::from(doc! { "clientSource": Bson::Array(vec![text("10.0.0.0/8")]) })]),
        };
        let (name, role) = Role::of_document(&written).unwrap();
        assert_eq!(name.to_string(), "r2@app");
        assert_eq!(role.document(&name), written);
        let mut unreadable = written;
        unreadable.set("authenticationRestrictions", 1);
        assert!(Role::of_document(&unreadable).is_none());
    }
}
