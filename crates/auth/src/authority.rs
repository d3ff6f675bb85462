//! What the client of a connection may do: the sum of its user's roles at one moment.
//!
//! It is made when somebody has logged in, and again when a user or a role has changed. A check asks it and nothing else.

use crate::action::{Action, ActionSet};
use crate::privilege::Privileges;
use crate::resource::{Resource, Target};
use crate::roles::{Resolved, RoleName, builtin};
use crate::user::UserName;
use pando_base::session_id::NO_USER_DIGEST;
use std::collections::BTreeSet;

/// Why somebody may do what it may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// Nobody has logged in.
    Nobody,
    /// Nobody has, and nobody could: there are no users yet, and the client is on this machine (the localhost exception).
    FirstUser,
    /// Somebody has logged in.
    User,
}

/// What a client may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Authority {
    standing: Standing,
    user: Option<UserName>,
    /// Whose its sessions are.
    owner: [u8; 32],
    roles: BTreeSet<RoleName>,
    privileges: Privileges,
    /// What is allowed on every collection of every database that is no system's: asked first, as most checks are of those.
    on_all_normal: ActionSet,
    bypasses_write_blocking: bool,
}

/// Members of a set log in as this user, with a key of their keyfile.
pub const SYSTEM_USER: (&str, &str) = ("__system", "local");

impl Authority {
    fn new(standing: Standing) -> Authority {
        Authority {
            standing,
            user: None,
            owner: NO_USER_DIGEST,
            roles: BTreeSet::new(),
            privileges: Privileges::new(),
            on_all_normal: ActionSet::NONE,
            bypasses_write_blocking: false,
        }
    }
    pub fn nobody() -> Authority {
        Authority::new(Standing::Nobody)
    }
    /// What may be done on this machine until there is a user: initiate a set, and create the first user. Asked of 6.0.5.
    pub fn first_user() -> Authority {
        let mut may = Authority::new(Standing::FirstUser);
        let p = &mut may.privileges;
        p.allow(Resource::collection("admin", ""), ActionSet::of(&[Action::CreateUser, Action::GrantRole]));
        p.allow(Resource::collection("$external", ""), ActionSet::of(&[Action::CreateUser]));
        let cluster = [Action::AddShard, Action::ReplSetConfigure, Action::ReplSetGetStatus];
        p.allow(Resource::Cluster, ActionSet::of(&cluster));
        may
    }
    pub fn of_user(user: UserName, resolved: Resolved) -> Authority {
        let bypass = ActionSet::of(&[Action::BypassWriteBlockingMode]);
        Authority {
            bypasses_write_blocking: resolved.privileges.allows(Target::Cluster, bypass),
            on_all_normal: resolved.privileges.on_all_normal(),
            standing: Standing::User,
            owner: user.digest(),
            user: Some(user),
            roles: resolved.roles,
            privileges: resolved.privileges,
        }
    }
    /// Of another member.
    pub fn system() -> Authority {
        let role = RoleName::new("__system", "admin");
        let resolved = Resolved {
            privileges: builtin::privileges(&role).unwrap_or_default(),
            roles: BTreeSet::from([role]),
            restrictions: Vec::new(),
        };
        Authority::of_user(UserName::new(SYSTEM_USER.0, SYSTEM_USER.1), resolved)
    }

    /// Whether commands that ask for a login alone answer.
    pub fn is_logged_in(&self) -> bool {
        self.standing != Standing::Nobody
    }
    /// The digest of the user (`uid` of its sessions).
    pub fn owner(&self) -> [u8; 32] {
        self.owner
    }
    pub fn user(&self) -> Option<&UserName> {
        self.user.as_ref()
    }
    /// The user's roles, with all that they include.
    pub fn roles(&self) -> &BTreeSet<RoleName> {
        &self.roles
    }
    pub fn privileges(&self) -> &Privileges {
        &self.privileges
    }

    /// Whether it writes while the writes of users are blocked.
    pub fn bypasses_write_blocking(&self) -> bool {
        self.bypasses_write_blocking
    }
    /// Whether all of these actions are allowed there.
    pub fn may(&self, target: Target<'_>, actions: &[Action]) -> bool {
        let actions = ActionSet::of(actions);
        (self.on_all_normal.contains_all(actions) && target.is_normal())
            || self.privileges.allows(target, actions)
    }
    pub fn may_on_cluster(&self, action: Action) -> bool {
        self.may(Target::Cluster, &[action])
    }
    /// Whether actions are allowed on every collection of every database that is no system's.
    pub fn may_on_all_normal(&self, actions: &[Action]) -> bool {
        self.privileges.allows_on_all_normal(ActionSet::of(actions))
    }
    /// Whether nothing is forbidden.
    pub fn may_everything(&self) -> bool {
        self.privileges.allows_everything()
    }
    /// Whether anything is allowed in a database.
    pub fn has_anything_in(&self, db: &str) -> bool {
        self.privileges.allows_anything_in(db)
    }
    /// Whether anything is allowed there.
    pub fn has_anything_on(&self, target: Target<'_>) -> bool {
        self.privileges.iter().any(|(on, actions)| on.covers(target) && !actions.is_empty())
    }
    /// Whether it has an action on anything at all of a database.
    pub fn may_somewhere(&self, db: &str, action: Action) -> bool {
        self.privileges.allows_somewhere(db, action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_logged_in_may_nothing() {
        let nobody = Authority::nobody();
        assert!(!nobody.is_logged_in() && !nobody.may_on_cluster(Action::ServerStatus));
        assert!(!nobody.may(Target::Collection("test", "a"), &[Action::Find]));
    }

    #[test]
    fn the_first_user_can_be_created_and_no_more() {
        let first = Authority::first_user();
        assert!(first.is_logged_in() && first.may(Target::Database("admin"), &[Action::CreateUser]));
        assert!(!first.may(Target::Database("test"), &[Action::CreateUser]));
        assert!(!first.may(Target::Database("admin"), &[Action::CreateRole]));
        assert!(first.may_on_cluster(Action::ReplSetConfigure) && !first.may_on_cluster(Action::Shutdown));
    }

    #[test]
    fn members_may_everything() {
        let system = Authority::system();
        assert!(system.may_on_cluster(Action::Internal));
        assert!(system.may(Target::Collection("local", "oplog.rs"), Action::ALL));
    }
}
