//! A cluster comes to be: sets are initiated, shards added, and the collections that users begin with are there.

use super::Run;
use crate::client::Client;
use crate::executor::lock;
use crate::set::Failure;
use crate::set::asking::{connected, primary_of};
use crate::set::users::caller::operation_time;
use pando_base::Timestamp;
use pando_bson::{DocBuf, Document, doc};
use pando_env::Env;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(600);
/// Before it is tried again.
const PAUSE: Duration = Duration::from_millis(200);
const TRIES_MAX: u32 = 50;

impl Run {
    pub(super) fn initiate(&mut self) -> Result<(), Box<Failure>> {
        let process = self.world.sim.start_process();
        let env = self.env(process);
        let sets: Vec<_> = self.sets.iter().map(|s| (s.addrs(), s.config())).collect();
        let shards: Vec<_> = self.sets[1..].iter().map(|s| (s.name.clone(), s.connection_string())).collect();
        let router = self.routers[0].addr();
        let own = self.shape.beginning();
        let stream = self.users.stream.clone();
        let asking = async move {
            env.clock.sleep(Duration::from_millis(200)).await;
            for (addrs, config) in sets {
                let mut c = connected(&env, &addrs[0]).await;
                let mut body = Document::new();
                body.push("replSetInitiate", config);
                body.push("$db", "admin");
                ok(&mut c, &body.to_raw()).await?;
                primary_of(&env, &addrs).await;
            }
            let mut c = connected(&env, &router).await;
            for (name, host) in &shards {
                let add = doc! { "addShard": host.as_str(), "name": name.as_str(), "$db": "admin" };
                until_ok(&env, &mut c, &add.to_raw()).await?;
            }
            for mut command in own {
                command.push("$db", "admin");
                let reply = until_ok(&env, &mut c, &command.to_raw()).await?;
                // Another shard may be a little behind in the same second.
                let at = operation_time(&reply).unwrap_or(Timestamp::ZERO);
                lock(&stream).from = Timestamp::new(at.secs().saturating_sub(1), 1);
            }
            Ok::<(), String>(())
        };
        let done = self.world.sim.block_on(process, PATIENCE, asking);
        self.world.sim.kill(process);
        match done {
            Ok(Ok(())) => Ok(()),
            other => Err(self.fail(vec![format!("the cluster does not come to be: {other:?}")])),
        }
    }
}

async fn ok(c: &mut Client, body: &DocBuf) -> Result<DocBuf, String> {
    let reply = c.command(body).await.map_err(|e| format!("{body}: {e}"))?;
    if reply.get("ok").is_some_and(|v| v.is_truthy()) { Ok(reply) } else { Err(format!("{body}: {reply}")) }
}

async fn until_ok(env: &Env, c: &mut Client, body: &DocBuf) -> Result<DocBuf, String> {
    let mut last = Ok(DocBuf::new());
    for _ in 0..TRIES_MAX {
        last = ok(c, body).await;
        if last.is_ok() {
            break;
        }
        env.clock.sleep(PAUSE).await;
    }
    last
}
