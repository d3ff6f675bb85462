//! Roles that include each other.

use super::{RoleName, builtin};
use crate::privilege::Privileges;
use crate::restrictions::Restrictions;
use pando_base::{Error, ErrorCode, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A role that somebody defined.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Role {
    /// What it allows by itself.
    pub privileges: Privileges,
    /// What it includes.
    pub roles: BTreeSet<RoleName>,
    /// From where who has it may log in.
    pub restrictions: Restrictions,
}

/// All roles that were defined, at one moment.
#[derive(Clone, Default, Debug)]
pub struct Roles {
    defined: BTreeMap<RoleName, Role>,
}

/// What several roles come to.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Resolved {
    pub privileges: Privileges,
    /// They, and all that they include.
    pub roles: BTreeSet<RoleName>,
    /// Of each role that has some. All of them have to be met.
    pub restrictions: Vec<Restrictions>,
}

impl Roles {
    pub fn define(&mut self, name: RoleName, role: Role) {
        self.defined.insert(name, role);
    }
    pub fn forget(&mut self, name: &RoleName) -> Option<Role> {
        self.defined.remove(name)
    }
    pub fn iter(&self) -> impl Iterator<Item = (&RoleName, &Role)> {
        self.defined.iter()
    }
    pub fn get(&self, name: &RoleName) -> Option<&Role> {
        self.defined.get(name)
    }
    pub fn exists(&self, name: &RoleName) -> bool {
        self.defined.contains_key(name) || name.is_builtin()
    }

    /// What roles allow together, with all that they include. A role that is not there any more allows nothing.
    pub fn resolve<'a>(&'a self, roles: impl IntoIterator<Item = &'a RoleName>) -> Resolved {
        let mut out = Resolved::default();
        let mut open: Vec<&RoleName> = roles.into_iter().collect();
        while let Some(name) = open.pop() {
            if out.roles.contains(name) {
                continue;
            }
            if let Some(role) = self.defined.get(name) {
                out.privileges.allow_all(&role.privileges);
                out.restrictions.extend((!role.restrictions.is_empty()).then(|| role.restrictions.clone()));
                open.extend(&role.roles);
            } else if let Some(privileges) = builtin::privileges(name) {
                out.privileges.allow_all(&privileges);
            } else {
                continue;
            }
            out.roles.insert(name.clone());
        }
        out
    }

    /// Whether a role may include others: they have to be there, it must not come back to itself by them, and a role of another database
    /// than `admin` includes only roles of its own.
    pub fn check_inclusion(&self, of: &RoleName, included: &BTreeSet<RoleName>) -> Result<()> {
        for name in included {
            if name == of {
                let what = format!("Cannot grant role {of} to itself.");
                return Err(Error::new(ErrorCode::InvalidRoleModification, what));
            }
            if !self.exists(name) {
                let what = format!("Cannot grant roles to '{of}': Could not find role: {name}");
                return Err(Error::new(ErrorCode::RoleNotFound, what));
            }
            if of.db != "admin" && of.db != name.db {
                let what =
                    format!("Roles on the '{}' database cannot be granted roles from other databases", of.db);
                return Err(Error::new(ErrorCode::InvalidRoleModification, what));
            }
            if self.resolve([name]).roles.contains(of) {
                let what = format!("Granting roles to {of} would introduce a cycle in the role graph");
                return Err(Error::new(ErrorCode::InvalidRoleModification, what));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, ActionSet, Resource, Target};

    fn name(role: &str) -> RoleName {
        RoleName::new(role, "admin")
    }
    fn including(roles: &[&str]) -> Role {
        Role { roles: roles.iter().map(|r| name(r)).collect(), ..Role::default() }
    }
    fn allowing(db: &str) -> Role {
        let mut privileges = Privileges::new();
        privileges.allow(Resource::collection(db, ""), ActionSet::of(&[Action::Find]));
        Role { privileges, ..Role::default() }
    }

    #[test]
    fn a_role_allows_what_the_roles_that_it_includes_allow() {
        let mut roles = Roles::default();
        roles.define(name("a"), including(&["b", "read", "gone"]));
        roles.define(name("b"), allowing("test"));
        let top = name("a");
        let all = roles.resolve([&top]);
        let find = ActionSet::of(&[Action::Find]);
        for db in ["test", "admin"] {
            assert!(all.privileges.allows(Target::Collection(db, "x"), find));
        }
        assert!(!all.privileges.allows(Target::Collection("other", "x"), find));
        assert_eq!(all.roles.len(), 3);
    }

    #[test]
    fn roles_that_include_each_other_end() {
        let mut roles = Roles::default();
        roles.define(name("a"), including(&["b"]));
        roles.define(name("b"), including(&["a"]));
        assert_eq!(roles.resolve([&name("a")]).roles.len(), 2);
    }

    #[test]
    fn inclusion_is_refused_where_it_would_come_back_or_reach_out() {
        let mut roles = Roles::default();
        roles.define(name("a"), including(&["b"]));
        roles.define(name("b"), allowing("test"));
        let code = |of: &RoleName, what: RoleName| {
            roles.check_inclusion(of, &BTreeSet::from([what])).unwrap_err().code
        };
        assert_eq!(code(&name("b"), name("a")), ErrorCode::InvalidRoleModification);
        assert_eq!(code(&name("a"), name("a")), ErrorCode::InvalidRoleModification);
        assert_eq!(code(&name("a"), name("gone")), ErrorCode::RoleNotFound);
        let other = RoleName::new("r", "test");
        assert_eq!(code(&other, name("read")), ErrorCode::InvalidRoleModification);
        roles.check_inclusion(&other, &BTreeSet::from([RoleName::new("read", "test")])).unwrap();
        roles.check_inclusion(&name("a"), &BTreeSet::from([RoleName::new("read", "test")])).unwrap();
    }
}
