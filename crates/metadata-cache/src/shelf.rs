//! The shell around [`pando_routing::cache::Cache`]: who waits for a table waits here, and refreshes run in tasks of their own.

use crate::lock;
use pando_base::{Error, Result};
use pando_env::sync::Notify;
use pando_env::{BoxFuture, Env};
use pando_routing::cache::{Action, Cache, Cached, Event, Failure, Ticket, Token};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Reads one table from the config servers: what changed since another one, or all of it.
pub(crate) type Fetch<T> =
    Arc<dyn Fn(String, Option<T>) -> BoxFuture<'static, Result<T, Failure>> + Send + Sync>;

struct State<T: Cached> {
    cache: Cache<String, T>,
    tokens: Token,
    /// Whatever was asked for: names of the cache, and some that it has let go.
    names: BTreeSet<String>,
    answers: BTreeMap<Token, (Notify, Option<Result<(Ticket, T)>>)>,
}

struct Inner<T: Cached> {
    env: Env,
    fetch: Fetch<T>,
    state: Mutex<State<T>>,
}

/// Tables by name. Cheap to clone.
pub(crate) struct Shelf<T: Cached>(Arc<Inner<T>>);

impl<T: Cached> Clone for Shelf<T> {
    fn clone(&self) -> Self {
        Shelf(self.0.clone())
    }
}

/// Whoever stops waiting takes its question back.
struct Waiting<'a, T: Cached + Send + Sync + 'static>
where
    T::Version: Send,
{
    shelf: &'a Shelf<T>,
    token: Token,
    name: &'a str,
}

impl<T: Cached + Send + Sync + 'static> Drop for Waiting<'_, T>
where
    T::Version: Send,
{
    fn drop(&mut self) {
        if lock(&self.shelf.0.state).answers.remove(&self.token).is_some() {
            self.shelf.feed(Event::Cancel { token: self.token, name: self.name.to_owned() });
        }
    }
}

impl<T: Cached + Send + Sync + 'static> Shelf<T>
where
    T::Version: Send,
{
    pub(crate) fn new(env: Env, fetch: Fetch<T>) -> Shelf<T> {
        let state =
            State { cache: Cache::default(), tokens: 0, names: BTreeSet::new(), answers: BTreeMap::new() };
        Shelf(Arc::new(Inner { env, fetch, state: Mutex::new(state) }))
    }

    /// The table of a name, where nobody has to be waited for.
    pub(crate) fn fresh(&self, name: &str) -> Option<(Ticket, T)> {
        lock(&self.0.state).cache.fresh(name)
    }
    /// The table of a name, as fresh as anybody has asked for.
    pub(crate) async fn get(&self, name: &str) -> Result<(Ticket, T)> {
        if let Some(fresh) = self.fresh(name) {
            return Ok(fresh);
        }
        let turn = Notify::new();
        let token = {
            let mut state = lock(&self.0.state);
            state.tokens += 1;
            let token = state.tokens;
            state.answers.insert(token, (turn.clone(), None));
            if state.names.len() > state.cache.len() * 2 + 64 {
                let State { names, cache, .. } = &mut *state;
                names.retain(|name| cache.peek(name).is_some());
            }
            if !state.names.contains(name) {
                state.names.insert(name.to_owned());
            }
            token
        };
        let _waiting = Waiting { shelf: self, token, name };
        self.feed(Event::Get { token, name: name.to_owned() });
        loop {
            let seen = turn.version();
            {
                let mut state = lock(&self.0.state);
                if let Some((_, answer @ Some(_))) = state.answers.get_mut(&token) {
                    let answer = answer.take();
                    state.answers.remove(&token);
                    return answer.unwrap_or_else(|| Err(Error::internal("an answer was lost")));
                }
            }
            turn.changed(seen).await;
        }
    }
    /// A shard has sent somebody away who used the table with this ticket.
    pub(crate) fn stale(&self, name: &str, ticket: Ticket, wanted: Option<T::Version>) {
        self.feed(Event::Stale { name: name.to_owned(), ticket, wanted });
    }
    /// Whoever asks from now on is told how it is now.
    pub(crate) fn renew(&self, name: &str) {
        self.feed(Event::Renew { name: name.to_owned() });
    }
    pub(crate) fn forget(&self, name: &str) {
        self.feed(Event::Forget { name: name.to_owned() });
    }
    /// How many names are known.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0.state).cache.len()
    }
    /// Forgets those that somebody has asked for.
    pub(crate) fn forget_where(&self, which: impl Fn(&str) -> bool) {
        let names: Vec<String> = lock(&self.0.state).names.iter().filter(|n| which(n)).cloned().collect();
        names.into_iter().for_each(|name| self.feed(Event::Forget { name }));
    }

    fn feed(&self, event: Event<String, T>) {
        let mut actions = Vec::new();
        let mut turns = Vec::new();
        let mut fetches = Vec::new();
        {
            let mut state = lock(&self.0.state);
            let state = &mut *state;
            state.cache.step(event, &mut actions);
            for action in actions {
                let (token, answer) = match action {
                    Action::Give { token, ticket, table } => (token, Ok((ticket, table))),
                    Action::Fail { token, code, message } => (token, Err(Error::new(code, message))),
                    Action::Fetch { name, attempt, since } => {
                        fetches.push((name, attempt, since));
                        continue;
                    }
                };
                if let Some((turn, slot)) = state.answers.get_mut(&token) {
                    *slot = Some(answer);
                    turns.push(turn.clone());
                }
            }
        }
        turns.iter().for_each(Notify::bump);
        for (name, attempt, since) in fetches {
            let shelf = self.clone();
            self.0.env.spawn("routing table refresh", async move {
                let result = (shelf.0.fetch)(name.clone(), since).await;
                shelf.feed(Event::Fetched { name, attempt, result });
            });
        }
    }
}
