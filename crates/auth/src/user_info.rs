//! A user as `usersInfo` tells of it, with what its roles come to: how a router learns who somebody is.

use crate::certificate::EXTERNAL;
use crate::roles::{Resolved, RoleName};
use crate::{Proof, Restrictions, User};
use pando_bson::{Bson, Document};

/// Of an answer with credentials, privileges and restrictions. `None` where it has no name, or restrictions that cannot be read: nobody
/// comes in by it. Privileges that cannot be read allow nothing.
pub fn read(d: &Document) -> Option<(User, Resolved)> {
    let mut user = User::of_document(d)?;
    if user.name.db == EXTERNAL {
        user.proof = Proof::External;
    }
    let list = |name: &str| d.get(name).and_then(Bson::as_array).into_iter().flatten();
    let mut resolved = Resolved::default();
    for privilege in list("inheritedPrivileges").filter_map(Bson::as_doc) {
        let _ = resolved.privileges.parse_into(privilege);
    }
    resolved.roles = list("inheritedRoles").filter_map(RoleName::of_document).collect();
    for each in list("inheritedAuthenticationRestrictions") {
        resolved.restrictions.push(Restrictions::of_array(each.as_array()?)?);
    }
    Some((user, resolved))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, ActionSet, Target};
    use pando_bson::doc;

    fn told() -> Document {
        let text = |s: &str| Bson::from(s);
        let roles = || Bson::Array(vec![Bson::from(doc! { "role": "r", "db": "app" })]);
        let privilege = doc! { "resource": doc! { "db": "app", "collection": "c" }, "actions": Bson::Array(vec![text("find")]) };
        let restriction = || Bson::from(doc! { "clientSource": Bson::Array(vec![text("10.0.0.0/8")]) });
        doc! {
            "_id": "app.ann", "user": "ann", "db": "app", "roles": roles(), "inheritedRoles": roles(),
            "inheritedPrivileges": Bson::Array(vec![Bson::from(privilege)]),
            "authenticationRestrictions": Bson::Array(vec![restriction()]),
            "inheritedAuthenticationRestrictions": Bson::Array(vec![Bson::Array(vec![restriction()])]),
        }
    }

    #[test]
    fn what_is_told_is_what_the_user_may_and_from_where() {
        let (user, resolved) = read(&told()).unwrap();
        assert_eq!(user.name.to_string(), "ann@app");
        let find = ActionSet::of(&[Action::Find]);
        assert!(resolved.privileges.allows(Target::Collection("app", "c"), find));
        assert!(!resolved.privileges.allows(Target::Collection("app", "d"), find));
        assert_eq!((resolved.roles.len(), resolved.restrictions.len()), (1, 1));
        assert!(!user.restrictions.is_empty());
    }

    #[test]
    fn restrictions_that_cannot_be_read_let_nobody_in() {
        let mut unreadable = told();
        unreadable.set("inheritedAuthenticationRestrictions", Bson::Array(vec![Bson::from(1)]));
        assert!(read(&unreadable).is_none());
    }
}
