//! Checker: no term has two primaries (ElectionSafety), as clients see it in `electionId`.

use super::hello;
use crate::executor::lock;
use pando_bson::{ObjectId, Value};
use pando_env::Env;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Who was primary by which election.
#[derive(Default)]
pub(super) struct Primaries {
    seen: BTreeMap<ObjectId, Vec<usize>>,
    last: Option<usize>,
}

impl Primaries {
    pub(super) fn last(&self) -> Option<usize> {
        self.last
    }
    pub(super) fn terms(&self) -> usize {
        self.seen.len()
    }
    pub(super) fn problems(&self) -> Vec<String> {
        let twice = self.seen.iter().filter(|(_, who)| who.len() > 1);
        twice.map(|(id, who)| format!("members {who:?} were primary by election {}", id.to_hex())).collect()
    }
    fn note(&mut self, election: ObjectId, who: usize) {
        let seen = self.seen.entry(election).or_default();
        if !seen.contains(&who) {
            seen.push(who);
        }
        self.last = Some(who);
    }
}

/// Asks everybody, over and over.
pub(super) async fn watch(env: Env, addrs: Vec<String>, primaries: Arc<Mutex<Primaries>>) {
    loop {
        for (i, addr) in addrs.iter().enumerate() {
            let Some(hello) = hello(&env, addr).await else { continue };
            let writable = hello.get("isWritablePrimary").is_some_and(|v| v.is_truthy());
            if let (true, Some(Value::ObjectId(id))) = (writable, hello.get("electionId")) {
                lock(&primaries).note(id, i);
            }
        }
        env.clock.sleep(Duration::from_millis(100)).await;
    }
}
