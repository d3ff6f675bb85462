//! Writes with every kind of write concern, and what each reply has promised: `{w: 1, j: true}` that the entry is on this
//! member's disk, `{w: n}` that so many members have it, a mode that members in two places have it.

use super::caller::{Caller, Place, is_done, op_time};
use crate::executor::lock;
use crate::set::shape::TWO_PLACES;
use pando_base::OpTime;
use pando_bson::{Document, doc};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Where an acknowledged entry must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Where {
    /// With the member that was asked, and so many in all.
    Members(usize),
    /// With members at even and at odd places.
    TwoPlaces,
}

/// What a reply has promised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    pub(crate) at: OpTime,
    pub(crate) asked: usize,
    pub(crate) held: Where,
    /// On their disks.
    pub(crate) on_disk: bool,
    /// When the command was sent.
    pub(crate) sent: Duration,
}

/// Promises since they were last looked at.
pub(crate) type Promises = Vec<Promise>;

pub(crate) async fn run(place: Place, data_bearing: usize, promises: Arc<Mutex<Promises>>) {
    let user = place.user;
    let mut c = Caller::new(place);
    let mut n = 0;
    while !c.stopped() {
        n += 1;
        let (concern, held, on_disk) = choose(&c, data_bearing);
        let mut body = doc! { "insert": "concerns", "documents": [{ "_id": user << 32 | n }] };
        body.push("writeConcern", concern);
        body.push("$db", "d");
        let sent = c.now();
        if let Some((asked, reply)) = c.ask_primary_at(&body.to_raw()).await
            && is_done(&reply)
            && let Some(at) = op_time(&reply)
        {
            lock(&promises).push(Promise { at, asked, held, on_disk, sent });
        }
        c.pause().await;
    }
}

fn choose(c: &Caller, data_bearing: usize) -> (Document, Where, bool) {
    let (all, limit) = (data_bearing as i32, 4000);
    match c.below(8) {
        0..=3 => (doc! { "w": 1, "j": true }, Where::Members(1), true),
        4 => (doc! { "w": 2, "wtimeout": limit }, Where::Members(2), false),
        5 => (doc! { "w": 2, "j": true, "wtimeout": limit }, Where::Members(2), true),
        6 => (doc! { "w": all, "j": true, "wtimeout": limit }, Where::Members(data_bearing), true),
        _ => (doc! { "w": TWO_PLACES, "wtimeout": limit }, Where::TwoPlaces, false),
    }
}
