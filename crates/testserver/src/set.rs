//! A replica set of several members in this process.

// Its members run in real time.
#![allow(clippy::disallowed_methods)]

use crate::{Client, Running, World, pause};
use pando_bson::{Bson, Document, doc};
use pando_server::Config;
use std::time::{Duration, Instant};

/// A loaded machine is slow; nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// One member's folder, and its server while it runs.
pub struct Member {
    world: World,
    port: u16,
    change: fn(&mut Config),
    running: Option<Running>,
}

impl Member {
    async fn start(&mut self) {
        let (port, change) = (self.port, self.change);
        let running = self
            .world
            .start_at(port, |c| {
                c.repl_set = Some("rs".to_owned());
                c.params.set_at_startup("enableTestCommands", "1").expect("a known parameter");
                change(c);
            })
            .await;
        self.port = running.port;
        let server = running.server.clone();
        crate::spawn(async move {
            server.lifecycle.wait_shutdown_requested().await;
            server.take_leave().await;
        });
        self.running = Some(running);
    }
}

/// Members of the set `rs`, in the order of its configuration.
pub struct Set {
    pub members: Vec<Member>,
}

impl Set {
    /// `n` equal members; returns when one is primary and the others are secondaries.
    pub async fn of(n: usize) -> Set {
        Set::with(&vec![Document::new(); n]).await
    }
    /// One member per document, which is added to its entry in the configuration.
    pub async fn with(members: &[Document]) -> Set {
        Set::started(members.len()).await.initiated(members).await
    }
    /// The same for servers that are started with `change` made to what they are told.
    pub async fn configured(n: usize, change: fn(&mut Config)) -> Set {
        Set::configured_as(&vec![Document::new(); n], change).await
    }
    /// The same with one member per document.
    pub async fn configured_as(members: &[Document], change: fn(&mut Config)) -> Set {
        Set::started_with(members.len(), change).await.initiated(members).await
    }
    async fn initiated(self, members: &[Document]) -> Set {
        let set = self;
        let config = set.config(members);
        let reply = set.connect(0).await.admin(doc! { "replSetInitiate": config }).await;
        assert_eq!(reply.get("ok"), Some(&Bson::Double(1.0)));
        set.settled().await;
        set
    }
    /// Servers that wait for a configuration.
    pub async fn started(n: usize) -> Set {
        Set::started_with(n, |_| {}).await
    }
    /// The same, started with `change` made to what they are told.
    pub async fn started_with(n: usize, change: fn(&mut Config)) -> Set {
        let mut set = Set { members: Vec::new() };
        for _ in 0..n {
            let mut member = Member { world: World::new(), port: 0, change, running: None };
            member.start().await;
            set.members.push(member);
        }
        set
    }
    /// The configuration of the first members.
    pub fn config(&self, members: &[Document]) -> Document {
        let entry = |(i, extra): (usize, &Document)| {
            let mut m = doc! { "_id": i as i32, "host": self.host(i) };
            for (name, value) in extra.iter() {
                m.push(name, value.clone());
            }
            Bson::Document(m)
        };
        let members: Vec<Bson> = members.iter().enumerate().map(entry).collect();
        let mut config = doc! { "_id": "rs" };
        config.push("members", members);
        // Quick to notice things, slow to hold elections on a loaded machine.
        config.push("settings", doc! { "heartbeatIntervalMillis": 250 });
        config
    }
    pub fn host(&self, i: usize) -> String {
        format!("127.0.0.1:{}", self.members[i].port)
    }
    pub fn server(&self, i: usize) -> &std::sync::Arc<pando_server::Server> {
        &self.members[i].running.as_ref().expect("the member runs").server
    }
    /// A connection that reads wherever it is.
    pub async fn connect(&self, i: usize) -> Client {
        Client::connect(self.members[i].port).await
    }
    pub async fn hello(&self, i: usize) -> Document {
        self.connect(i).await.run(doc! { "hello": 1, "$db": "admin" }).await
    }
    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.members.len()).filter(|i| self.members[*i].running.is_some())
    }
    pub fn runs(&self, i: usize) -> bool {
        self.members[i].running.is_some()
    }
    /// Waits for a writable primary.
    pub async fn primary(&self) -> usize {
        let begun = Instant::now();
        loop {
            for i in self.running() {
                if is(&self.hello(i).await, "isWritablePrimary") {
                    return i;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "no primary");
            pause(5).await;
        }
    }
    /// Members that run and are not primary.
    pub async fn secondaries(&self) -> Vec<usize> {
        let primary = self.primary().await;
        self.running().filter(|i| *i != primary).collect()
    }
    /// Waits until there is a primary and everybody else is a secondary or an arbiter.
    pub async fn settled(&self) {
        self.until("a primary and its followers", async |set| {
            let mut primaries = 0;
            for i in set.running() {
                let hello = set.hello(i).await;
                match (is(&hello, "isWritablePrimary"), is(&hello, "secondary"), is(&hello, "arbiterOnly")) {
                    (true, ..) => primaries += 1,
                    (_, false, false) => return false,
                    _ => {}
                }
            }
            primaries == 1
        })
        .await;
    }
    /// Waits until something holds.
    pub async fn until(&self, what: &str, holds: impl AsyncFn(&Set) -> bool) {
        let begun = Instant::now();
        while !holds(self).await {
            assert!(begun.elapsed() < PATIENCE, "it does not come: {what}");
            pause(5).await;
        }
    }
    /// Ends a member cleanly, as SIGTERM does.
    pub async fn stop(&mut self, i: usize) {
        let running = self.members[i].running.take().expect("the member runs");
        running.shut_down().await;
    }
    /// Ends a member without a word to clients and other members; what it has written stays on its disk.
    pub async fn kill(&mut self, i: usize) {
        let running = self.members[i].running.take().expect("the member runs");
        running.end().await;
    }
    /// A member stops where it is, as `kill -9` has it or a fatal error: nothing more is flushed.
    pub async fn abandon(&mut self, i: usize) {
        self.members[i].running.take().expect("the member runs").abandon();
        let begun = Instant::now();
        while std::net::TcpListener::bind(("127.0.0.1", self.members[i].port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "its port stays in use");
            pause(5).await;
        }
    }
    /// Starts it again on its folder and port.
    pub async fn restart(&mut self, i: usize) {
        self.members[i].start().await;
    }
    /// Ends everybody at once.
    pub async fn shut_down(mut self) {
        for member in &mut self.members {
            if let Some(running) = member.running.take() {
                running.end().await;
            }
        }
    }
    /// Switches a fail point on a member.
    pub async fn fail_point(&self, i: usize, name: &str, on: bool) {
        let mode = if on { "alwaysOn" } else { "off" };
        self.connect(i).await.admin(doc! { "configureFailPoint": name, "mode": mode }).await;
    }
    pub async fn reconfig(&self, config: Document, force: bool) -> Document {
        let at = self.primary().await;
        let mut c = self.connect(at).await;
        c.run(doc! { "replSetReconfig": config, "force": force, "$db": "admin" }).await
    }
    /// The configuration in force at a member.
    pub async fn current(&self, i: usize) -> Document {
        let mut reply = self.connect(i).await.admin(doc! { "replSetGetConfig": 1 }).await;
        match reply.remove("config") {
            Some(Bson::Document(config)) => config,
            other => panic!("no configuration: {other:?}"),
        }
    }
}

/// Is this field of a reply true?
pub fn is(reply: &Document, field: &str) -> bool {
    reply.get(field).is_some_and(Bson::is_truthy)
}
