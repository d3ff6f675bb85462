//! Changes of users and roles by their commands.

use crate::Event;
use crate::who::append_roles;
use pando_auth::roles::RoleName;
use pando_auth::{Privileges, UserName};
use pando_bson::{DocBuilder, RawDoc, Value};
use std::collections::BTreeSet;

/// The roles that a command names.
type Named = BTreeSet<RoleName>;

impl Event {
    pub fn create_user(name: &UserName, custom_data: Option<&RawDoc>, roles: &Named) -> Event {
        Event::done("createUser", |p| {
            user(p, name);
            if let Some(custom_data) = custom_data {
                p.raw_doc("customData", custom_data);
            }
            append_roles(p, "roles", roles);
        })
    }
    /// What was not changed is `None`.
    pub fn update_user(
        name: &UserName,
        password_changed: bool,
        custom_data: Option<&RawDoc>,
        roles: Option<&Named>,
    ) -> Event {
        Event::done("updateUser", |p| {
            user(p, name);
            p.bool("passwordChanged", password_changed);
            if let Some(custom_data) = custom_data {
                p.raw_doc("customData", custom_data);
            }
            roles.into_iter().for_each(|r| append_roles(p, "roles", r));
        })
    }
    pub fn drop_user(name: &UserName) -> Event {
        Event::done("dropUser", |p| user(p, name))
    }
    pub fn drop_all_users(db: &str) -> Event {
        Event::done("dropAllUsersFromDatabase", |p| {
            p.str("db", db);
        })
    }
    pub fn grant_roles_to_user(name: &UserName, roles: &Named) -> Event {
        Event::done("grantRolesToUser", |p| {
            user(p, name);
            append_roles(p, "roles", roles);
        })
    }
    pub fn revoke_roles_from_user(name: &UserName, roles: &Named) -> Event {
        Event::done("revokeRolesFromUser", |p| {
            user(p, name);
            append_roles(p, "roles", roles);
        })
    }
    pub fn create_role(name: &RoleName, roles: &Named, privileges: &Privileges) -> Event {
        Event::done("createRole", |p| {
            role(p, name);
            append_roles(p, "roles", roles);
            append_privileges(p, privileges);
        })
    }
    /// What was not changed is `None`.
    pub fn update_role(name: &RoleName, roles: Option<&Named>, privileges: Option<&Privileges>) -> Event {
        Event::done("updateRole", |p| {
            role(p, name);
            roles.into_iter().for_each(|r| append_roles(p, "roles", r));
            privileges.into_iter().for_each(|each| append_privileges(p, each));
        })
    }
    pub fn drop_role(name: &RoleName) -> Event {
        Event::done("dropRole", |p| role(p, name))
    }
    pub fn drop_all_roles(db: &str) -> Event {
        Event::done("dropAllRolesFromDatabase", |p| {
            p.str("db", db);
        })
    }
    pub fn grant_roles_to_role(name: &RoleName, roles: &Named) -> Event {
        Event::done("grantRolesToRole", |p| {
            role(p, name);
            append_roles(p, "roles", roles);
        })
    }
    pub fn revoke_roles_from_role(name: &RoleName, roles: &Named) -> Event {
        Event::done("revokeRolesFromRole", |p| {
            role(p, name);
            append_roles(p, "roles", roles);
        })
    }
    pub fn grant_privileges_to_role(name: &RoleName, privileges: &Privileges) -> Event {
        Event::done("grantPrivilegesToRole", |p| {
            role(p, name);
            append_privileges(p, privileges);
        })
    }
    pub fn revoke_privileges_from_role(name: &RoleName, privileges: &Privileges) -> Event {
        Event::done("revokePrivilegesFromRole", |p| {
            role(p, name);
            append_privileges(p, privileges);
        })
    }
}

fn user(p: &mut DocBuilder, name: &UserName) {
    p.str("user", &name.user).str("db", &name.db);
}

fn role(p: &mut DocBuilder, name: &RoleName) {
    p.str("role", &name.role).str("db", &name.db);
}

fn append_privileges(p: &mut DocBuilder, privileges: &Privileges) {
    p.array("privileges", |a| {
        for each in privileges.documents() {
            a.value(Value::Document(&each.to_raw()));
        }
    });
}
