//! Carries a command of several writes out: rounds of groups, each with what the caches know by then.

use super::batch::{Batch, Group, Outcome};
use super::targeting::Goes;
use super::without_key;
use crate::remote::Shards;
use crate::remote::envelope::{self, Kind};
use crate::remote::stale::Tries;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_command::{OpCtx, Request};
use pando_env::together;
use pando_fleet::Answer;
use pando_metadata_cache::Route;
use pando_monitor::ReadPreference;
use pando_request::WriteArgs;
use pando_rpc::{CallResult, Retry};
use std::borrow::Cow;

/// Statements of one collection.
pub(crate) struct Writes<'a> {
    pub(crate) ns: Namespace,
    /// `insert`, `update`, `delete`
    pub(crate) command: &'static str,
    /// Under which name they go beside the command.
    pub(crate) field: &'static str,
    pub(crate) args: &'a WriteArgs<'a>,
    pub(crate) docs: Vec<Cow<'a, RawDoc>>,
    /// Of a retryable write: the number of each.
    pub(crate) numbers: Vec<i32>,
}

/// Numbers of a command's statements: listed, or counted from the first one.
pub(crate) fn numbers(body: &RawDoc, n: usize) -> Vec<i32> {
    if let Some(Value::Array(list)) = body.get("stmtIds") {
        return list.iter().filter_map(|e| e.value().as_i64()).map(|n| n as i32).collect();
    }
    let first = body.get("stmtId").and_then(|v| v.as_i64()).unwrap_or(0) as i32;
    (0..n).map(|i| first.saturating_add(i as i32)).collect()
}

impl Writes<'_> {
    fn body(&self, ctx: &OpCtx, req: &Request<'_>, group: &Group) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str(self.command, self.ns.coll());
        self.args.spell(&mut b);
        if ctx.txn_number.is_some() {
            b.array("stmtIds", |a| {
                for i in &group.statements {
                    a.value(Value::Int32(self.numbers.get(*i).copied().unwrap_or(*i as i32)));
                }
            });
        }
        envelope::append(&mut b, ctx, req, Kind::Write, &group.target);
        b.finish()
    }
    /// What may be sent again when nobody knows what came of it.
    fn retry(&self, ctx: &OpCtx, group: &Group) -> Retry {
        match ctx.txn_number {
            _ if ctx.in_txn() => Retry::Never,
            Some(_) => Retry::Idempotent,
            None if group.statements.len() == 1 => Retry::NotIdempotent,
            None => Retry::Never,
        }
    }
    /// One statement, whose document nobody knows the place of.
    async fn look_for(
        &self,
        shards: &Shards,
        ctx: &OpCtx,
        req: &Request<'_>,
        route: &Route,
        batch: &mut Batch,
        i: usize,
    ) -> Result<()> {
        batch.sent_alone(i);
        let group = |target| Group { target, statements: vec![i] };
        match without_key::run(shards, ctx, req, route, self, i).await {
            Ok((target, reply)) => batch.heard(&group(target), &reply, self.ns.as_str()),
            Err(e) => self.failed(ctx, batch, &group(route.primary()), e, false)?,
        }
        Ok(())
    }
    async fn send(
        &self,
        shards: &Shards,
        ctx: &OpCtx,
        req: &Request<'_>,
        group: &Group,
    ) -> CallResult<Answer> {
        let body = self.body(ctx, req, group);
        let docs: Vec<&RawDoc> = group.statements.iter().map(|i| &*self.docs[*i]).collect();
        let (primary, retry) = (ReadPreference::default(), self.retry(ctx, group));
        shards.call(ctx, &group.target.shard, &primary, &body, &[(self.field, &docs)], retry).await
    }

    /// Runs them all. `goes` says where each goes, by what is known at the time.
    pub(crate) async fn run(
        &self,
        shards: &Shards,
        ctx: &OpCtx,
        req: &Request<'_>,
        goes: impl Fn(&Route, usize) -> Result<Goes>,
    ) -> Result<Batch> {
        let sizes = self.docs.iter().map(|doc| doc.byte_len()).collect();
        let mut batch = Batch::of_sizes(sizes, self.args.ordered);
        let (mut tries, mut rounds) = (Tries::default(), 0);
        while !batch.is_over() {
            ctx.check_interrupt()?;
            rounds += 1;
            let settled = batch.settled();
            let route = shards.route_for_write(ctx, &self.ns).await?;
            let untouched = batch.has_done_nothing();
            let (groups, alone) = batch.round(|i| goes(&route, i));
            if let Some(i) = alone {
                self.look_for(shards, ctx, req, &route, &mut batch, i).await?;
            }
            let calls = groups.iter().map(|group| self.send(shards, ctx, req, group));
            let replies = together(calls.collect()).await;
            let alone = groups.len() == 1 && untouched;
            for (group, reply) in groups.iter().zip(replies) {
                match reply {
                    Ok(answer) => batch.heard(group, &answer.reply, self.ns.as_str()),
                    Err(f) => self.failed(ctx, &mut batch, group, f.error, alone)?,
                }
            }
            if let Some((stale, e)) = batch.take_stale() {
                if batch.settled() > settled {
                    tries = Tries::default();
                }
                if !tries.once_more(shards, ctx, &route, stale).await {
                    if ctx.in_txn() {
                        return Err(e);
                    }
                    // Whose time is up, or who is killed, is told that.
                    ctx.check_interrupt()?;
                    let done = batch.settled();
                    batch.give_up(&self.no_progress(tries.count(), done, rounds));
                }
            }
        }
        if envelope::is_unacknowledged(ctx) {
            batch.outcome = Outcome::default();
        }
        Ok(batch)
    }

    /// Shards knew better again and again: clients are not told how.
    fn no_progress(&self, tries: u32, done: usize, rounds: u32) -> Error {
        let text = format!(
            "no progress was made executing batch write op in {} after {tries} rounds ({done} ops completed in {rounds} rounds total)",
            self.ns
        );
        Error::new(ErrorCode::NoProgressMade, text)
    }

    /// In a transaction one failure is that of the statement as a whole, and so it is where nothing else was tried.
    fn failed(&self, ctx: &OpCtx, batch: &mut Batch, group: &Group, e: Error, alone: bool) -> Result<()> {
        let stale = crate::remote::stale::of_error(&e, self.ns.as_str()).is_some();
        if !stale && (ctx.in_txn() || alone) {
            return Err(e);
        }
        batch.failed(group, &e, self.ns.as_str());
        Ok(())
    }
}

impl Shards {
    /// Where a collection is that somebody writes to; its database comes into being with that.
    pub(crate) async fn route_for_write(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Route> {
        match self.catalog.route(ns).await {
            Err(e) if e.code == ErrorCode::NamespaceNotFound => {
                self.create_database(ctx, ns.db(), None).await?;
                self.catalog.route(ns).await
            }
            done => done,
        }
    }
    /// Makes the config servers choose a primary shard for a database; one that is there already stays as it is.
    pub(crate) async fn create_database(
        &self,
        ctx: &OpCtx,
        name: &str,
        primary: Option<&str>,
    ) -> Result<DocBuf> {
        let mut b = DocBuilder::new();
        b.str("_configsvrCreateDatabase", name);
        if let Some(primary) = primary {
            b.str("primaryShardId", primary);
        }
        envelope::append_majority(&mut b);
        b.str("$db", "admin");
        let answer = self.call_config(ctx, &b.finish(), Retry::Idempotent).await?;
        self.catalog.forget_database(name);
        Ok(answer.reply)
    }
}
