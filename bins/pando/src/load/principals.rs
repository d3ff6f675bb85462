//! Users and roles of a dump: they are loaded beside those that there are, and the server takes them over by `_mergeAuthzCollections`.

use crate::client::Client;
use crate::form::{Meta, Place};
use pando_bson::doc;

/// Where they lie meanwhile; the names of `mongorestore`.
const BESIDE: [(&str, &str); 2] = [("system.users", "tempusers"), ("system.roles", "temproles")];

/// Whether the server keeps what a dump has of this by itself (in which form users are stored).
pub(super) fn is_left_out(place: &Place) -> bool {
    place.db == "admin" && place.coll == "system.version"
}

/// Where documents of `place` are inserted.
pub(super) fn beside(place: &Place) -> Option<Place> {
    let found = BESIDE.iter().find(|(own, _)| place.db == "admin" && place.coll == *own);
    found.map(|(_, temporary)| Place { db: "admin".to_owned(), coll: (*temporary).to_owned() })
}

/// Has the server take over what was loaded. With `drop` other users and roles go.
pub(super) async fn merge(client: &mut Client, metas: &[Meta], drop: bool) -> Result<(), String> {
    let of = |own: &str| metas.iter().filter(|m| m.place.coll == own).find_map(|m| beside(&m.place));
    let (users, roles) = (of("system.users"), of("system.roles"));
    if users.is_none() && roles.is_none() {
        return Ok(());
    }
    let mut merge = doc! { "_mergeAuthzCollections": 1, "db": "", "drop": drop };
    let named = |p: &Option<Place>| p.as_ref().map(Place::to_string).unwrap_or_default();
    merge.push("tempUsersCollection", named(&users));
    merge.push("tempRolesCollection", named(&roles));
    let merged = client.run("admin", merge).await;
    for place in [users, roles].into_iter().flatten() {
        client.run("admin", doc! { "drop": place.coll.as_str() }).await?;
    }
    merged.map(std::mem::drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_of_admin_lie_beside() {
        let of = |db: &str, coll: &str| beside(&Place::new(db, coll)).map(|p| p.to_string());
        assert_eq!(of("admin", "system.users").as_deref(), Some("admin.tempusers"));
        assert_eq!(of("admin", "system.roles").as_deref(), Some("admin.temproles"));
        assert_eq!((of("shop", "system.users"), of("admin", "users")), (None, None));
    }
}
