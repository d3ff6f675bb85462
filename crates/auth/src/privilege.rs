//! Actions on resources: what a role allows, and what a user may do with all of them together.

use crate::action::{Action, ActionSet};
use crate::resource::{Resource, Target, shown};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{Bson, Document, doc};
use std::collections::BTreeMap;

/// Actions that are allowed, by the resource that they are allowed on.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Privileges(BTreeMap<Resource, ActionSet>);

impl Privileges {
    pub fn new() -> Privileges {
        Privileges::default()
    }
    pub fn allow(&mut self, on: Resource, actions: ActionSet) {
        let known = self.0.entry(on).or_default();
        *known = known.or(actions);
    }
    pub fn allow_all(&mut self, other: &Privileges) {
        other.0.iter().for_each(|(on, actions)| self.allow(on.clone(), *actions));
    }
    /// Takes actions away; a resource on which nothing is left is forgotten.
    pub fn withdraw(&mut self, on: &Resource, actions: ActionSet) {
        if let Some(known) = self.0.get_mut(on) {
            *known = known.without(actions);
            if known.is_empty() {
                self.0.remove(on);
            }
        }
    }
    /// Whether everything is allowed there.
    pub fn allows(&self, target: Target<'_>, actions: ActionSet) -> bool {
        // Only those that bring some of the actions are worth a look at their resource, and no more of them than it takes.
        let mut all = ActionSet::NONE;
        actions.is_empty()
            || self.0.iter().filter(|(on, allowed)| allowed.has_any(actions) && on.covers(target)).any(
                |(_, allowed)| {
                    all = all.or(*allowed);
                    all.contains_all(actions)
                },
            )
    }
    /// Whether everything is allowed on all normal resources together.
    pub fn allows_on_all_normal(&self, actions: ActionSet) -> bool {
        self.on_all_normal().contains_all(actions)
    }
    /// What is allowed on each of them.
    pub(crate) fn on_all_normal(&self) -> ActionSet {
        let covering = [Resource::Any, Resource::any_normal()];
        let allowed = covering.iter().filter_map(|on| self.0.get(on));
        allowed.fold(ActionSet::NONE, |all, more| all.or(*more))
    }
    /// Whether every action is allowed on every resource.
    pub fn allows_everything(&self) -> bool {
        self.0.get(&Resource::Any).is_some_and(|all| all.contains_all(ActionSet::ANY))
    }
    /// Whether an action is allowed on anything at all of a database.
    pub fn allows_somewhere(&self, db: &str, action: Action) -> bool {
        self.within(db).any(|actions| actions.contains(action))
    }
    /// Whether anything is allowed on anything of a database.
    pub fn allows_anything_in(&self, db: &str) -> bool {
        self.within(db).any(|actions| !actions.is_empty())
    }
    fn within(&self, db: &str) -> impl Iterator<Item = ActionSet> {
        let reaches = move |on: &Resource| match on {
            Resource::Any => true,
            Resource::Cluster => false,
            Resource::Collection { db: d, .. } | Resource::Buckets { db: d, .. } => d.is_empty() || d == db,
        };
        self.0.iter().filter(move |(on, _)| reaches(on)).map(|(_, actions)| *actions)
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn iter(&self) -> impl Iterator<Item = (&Resource, ActionSet)> {
        self.0.iter().map(|(on, actions)| (on, *actions))
    }
    /// `[{resource, actions: [name, ...]}, ...]`
    pub fn documents(&self) -> Vec<Document> {
        let each = self.0.iter().map(|(on, actions)| {
            let names = actions.names().into_iter().map(Bson::from).collect();
            doc! { "resource": on.document(), "actions": Bson::Array(names) }
        });
        each.collect()
    }

    /// Reads one `{resource, actions}` and allows it.
    pub fn parse_into(&mut self, d: &Document) -> Result<Resource> {
        let unreadable = |why: String| {
            let shown = d.to_raw();
            Error::bad_value(format!("Unable to parse privilege document: {shown}, error: {why}"))
        };
        let actions = match d.get("actions") {
            None => None,
            Some(Bson::Array(a)) => Some(a),
            Some(other) => {
                let shown = shown("actions", other);
                let why = format!("wrong type for 'actions' field, expected vector array, found {shown}");
                return Err(unreadable(why));
            }
        };
        let mut names = Vec::new();
        for (i, a) in actions.into_iter().flatten().enumerate() {
            let Bson::String(name) = a else {
                let shown = shown(&i.to_string(), a);
                return Err(unreadable(format!(
                    "error parsing element {i} of field actions :: caused by :: wrong type for '{i}' field, expected \
                     string, found {shown}"
                )));
            };
            names.push(name.as_str());
        }
        let resource = match d.get("resource") {
            None => None,
            Some(Bson::Document(r)) => Some(r.clone()),
            Some(Bson::Array(a)) if a.is_empty() => Some(Document::new()),
            Some(other) => {
                let shown = shown("resource", other);
                let why = format!("wrong type for 'resource' field, expected Object/Array, found {shown}");
                return Err(unreadable(why));
            }
        };
        if names.is_empty() {
            return Err(Error::new(ErrorCode::FailedToParse, "missing actions field"));
        }
        let Some(resource) = resource else {
            return Err(Error::new(ErrorCode::FailedToParse, "missing resource field"));
        };
        let on = Resource::parse(&resource).map_err(|e| match e.code {
            ErrorCode::BadValue => unreadable(e.message.to_string()),
            _ => e,
        })?;
        self.allow(on.clone(), parse_actions(&names)?);
        Ok(on)
    }
}

fn parse_actions(names: &[&str]) -> Result<ActionSet> {
    let mut set = ActionSet::NONE;
    for name in names {
        set = match (*name, Action::of_name(name)) {
            ("anyAction", _) => ActionSet::ANY,
            (_, Some(a)) => set.or(ActionSet::of(&[a])),
            _ => return Err(Error::bad_value(format!("Unrecognized action: {name}"))),
        };
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_resources_together_allow_what_none_of_them_does() {
        let mut p = Privileges::new();
        p.allow(Resource::collection("test", ""), ActionSet::of(&[Action::Find]));
        p.allow(Resource::collection("", "a"), ActionSet::of(&[Action::Insert]));
        let both = ActionSet::of(&[Action::Find, Action::Insert]);
        assert!(p.allows(Target::Collection("test", "a"), both));
        assert!(!p.allows(Target::Collection("test", "b"), both));
        assert!(!p.allows(Target::Collection("other", "a"), both));
        assert!(p.allows(Target::Cluster, ActionSet::NONE));
        p.withdraw(&Resource::collection("", "a"), both);
        assert!(!p.allows(Target::Collection("test", "a"), both));
        assert!(p.allows_somewhere("test", Action::Find) && !p.allows_somewhere("other", Action::Find));
    }

    #[test]
    fn privileges_are_read_as_by_a_real_server() {
        let a = doc! { "db": "a", "collection": "" };
        let why = |d: Document| Privileges::new().parse_into(&d).unwrap_err().message.to_string();
        let list = |names: &[&str]| Bson::Array(names.iter().map(|n| Bson::from(*n)).collect());
        assert_eq!(why(doc! {}), "missing actions field");
        assert_eq!(why(doc! { "resource": a.clone(), "actions": list(&[]) }), "missing actions field");
        assert_eq!(why(doc! { "actions": list(&["find"]) }), "missing resource field");
        assert_eq!(
            why(doc! { "resource": a.clone(), "actions": list(&["find", "x"]) }),
            "Unrecognized action: x"
        );
        assert_eq!(
            why(doc! { "resource": doc! { "cluster": 1 }, "actions": list(&["find"]) }),
            "Unable to parse privilege document: { resource: { cluster: 1 }, actions: [ \"find\" ] }, error: wrong type \
             for 'cluster' field, expected boolean, found cluster: 1"
        );
        let mut p = Privileges::new();
        p.parse_into(&doc! { "resource": a.clone(), "actions": list(&["find", "find"]), "x": 1 }).unwrap();
        assert_eq!(p.documents(), [doc! { "resource": a.clone(), "actions": list(&["find"]) }]);
        p.parse_into(&doc! { "resource": a.clone(), "actions": list(&["find", "anyAction"]) }).unwrap();
        assert_eq!(p.documents(), [doc! { "resource": a, "actions": list(&["anyAction"]) }]);
    }
}
