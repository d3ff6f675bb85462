//! From a decoded message to the bytes of its reply: everything that is the same for all commands.
//!
//! ```text
//! look up → envelope → test-only, admin-only, API, privileges, transaction checks → failCommand → write gate → concerns
//!         → handler → write concern → times, labels → counters, slow-query line
//! ```
//! Any step may end in an `Err(Error)`; only this module turns errors into documents.

use crate::audit;
use crate::authorization;
use crate::client::Client;
use crate::concern::{ReadLevel, WriteConcern, WriteConcernError};
use crate::fail_command;
use crate::generic_args::{ApiParams, GenericArgs};
use crate::node::Node;
use crate::on_behalf_of::OnBehalfOf;
use crate::params::Param;
use crate::privilege::{Action, Privileges};
use crate::reply::{
    Encoded, Next, append_times, append_topology, error_body, labels_of, labels_of_late, tells_topology,
};
use crate::request::Sequence;
use crate::spec::{Command, CommandRow, Flags, Handler, Registry};
use crate::transaction_rules::ends_transaction;
use crate::{OpCtx, Reply, Request, Roles, slow, stable_api, transaction_rules};
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Result, patience};
use pando_bson::{DocBuilder, RawDoc, Value};
use std::sync::Arc;
use std::time::Duration;

/// A decoded request message.
#[derive(Clone, Copy)]
pub struct Incoming<'a> {
    pub body: &'a RawDoc,
    pub sequences: &'a [Sequence<'a>],
    pub exhaust_allowed: bool,
    /// `Some(db)` for OP_QUERY on `db.$cmd`; OP_MSG names its database in `$db`.
    pub legacy_db: Option<&'a str>,
}

/// What to send back and what to do next.
pub struct Answer {
    pub reply: Encoded,
    pub next: Option<Next>,
    /// Close the connection without replying.
    pub close: bool,
    /// Close the connection after the reply (errors of that class).
    pub close_after: bool,
}

/// Why a command did not produce its reply.
enum Stop {
    Failed(Error),
    /// `failCommand` with `closeConnection`.
    Close,
}
impl From<Error> for Stop {
    fn from(e: Error) -> Stop {
        Stop::Failed(e)
    }
}

// tour: insert 2/9
// tour: find 2/9
/// Runs one request to the end. Never fails: errors become replies.
pub async fn run<S: Node>(
    registry: &Registry<S>,
    node: &S,
    client: &Arc<Client>,
    msg: Incoming<'_>,
) -> Answer {
    let started = client.env.clock.mono();
    let invoked_as = msg.body.first().map_or("", |e| e.name());
    if msg.legacy_db.is_some() && !matches!(invoked_as, "hello" | "isMaster" | "ismaster") {
        return refuse(client, pando_wire::OpQuery::unsupported(invoked_as));
    }
    let Some(spec) = registry.find(invoked_as) else {
        registry.unknown.inc();
        let text = format!("no such command: '{invoked_as}'");
        return refuse(client, Error::new(ErrorCode::CommandNotFound, text));
    };
    let counts = &spec.counts;
    counts.total.inc();
    if !spec.flags.has(Flags::OWN_OPCOUNTER) {
        client.instance.metrics.op_counters.command.inc();
    }
    let mut parsed = parse(spec, client, &msg);
    if client.instance.asks_for_logins() {
        who_asks(spec, node, client, &mut parsed).await;
    }
    let (db, mut args) = match parsed {
        Ok(x) => x,
        Err(e) => {
            counts.failed.inc();
            if e.code == ErrorCode::Unauthorized {
                let db = database(&msg).unwrap_or_default();
                audit::refused(client, spec.flags, &request(spec, invoked_as, db, msg));
            }
            return refuse(client, e);
        }
    };
    find_late_mistakes(spec, node.roles(), msg.body, &mut args);
    let _acts_for = ActsFor::of(client, args.on_behalf_of.take());
    if takes_default_read_concern(spec, client, &args) {
        args.read_concern.or_default(|| node.default_read_level());
    }
    let ctx = OpCtx::new(client.clone(), (spec.name, spec.flags), db, args, msg.body, started);
    let req = request(spec, invoked_as, db, msg);
    let running = std::pin::pin!(execute(spec, node, &ctx, req));
    let running = std::pin::pin!(patience::within(ctx.watch(), running));
    let (mut body, next, error) = match ctx.run(running).await {
        Ok((body, next)) => (body, next, None),
        Err(Stop::Close) => {
            counts.failed.inc();
            let reply = Encoded { buf: Vec::new() };
            return Answer { reply, next: None, close: true, close_after: false };
        }
        Err(Stop::Failed(e)) => {
            counts.failed.inc();
            if e.code == ErrorCode::Unauthorized {
                audit::refused(client, spec.flags, &req);
            }
            (failure(node, &ctx, &e).await, None, Some(e))
        }
    };
    append_times(&mut body, node.reply_times(&ctx));
    node.append_metadata(&ctx, &mut body);
    let reply = Encoded { buf: body.into_buffer() };
    finish(node, &ctx, spec.flags, &req, &reply, error.as_ref());
    let close_after = error.is_some_and(|e| e.code.is(class::CLOSES));
    Answer { reply, next, close: false, close_after }
}

fn parse<'m>(spec: &CommandRow, client: &Client, msg: &Incoming<'m>) -> Result<(&'m str, GenericArgs)> {
    let db = database(msg)?;
    let args = GenericArgs::parse(msg.body, envelope_waits(spec), client.is_internal())?;
    check_sequences(msg)?;
    Ok((db, args))
}

/// While a command runs that another server has sent on behalf of a client of its own.
struct ActsFor<'c>(&'c Client);

impl<'c> ActsFor<'c> {
    fn of(client: &'c Client, whom: Option<Box<OnBehalfOf>>) -> Option<ActsFor<'c>> {
        client.act_for(Some(*whom?));
        Some(ActsFor(client))
    }
}

impl Drop for ActsFor<'_> {
    fn drop(&mut self) {
        self.0.act_for(None);
    }
}

fn request<'a>(spec: &CommandRow, invoked_as: &'a str, db: &'a str, msg: Incoming<'a>) -> Request<'a> {
    Request {
        name: spec.name,
        invoked_as,
        db,
        body: msg.body,
        sequences: msg.sequences,
        exhaust_allowed: msg.exhaust_allowed,
        legacy: msg.legacy_db.is_some(),
    }
}

/// Where clients log in: before it is asked what this one may do, everything is known that it takes to answer that.
async fn who_asks<S: Node>(
    spec: &CommandRow,
    node: &S,
    client: &Client,
    parsed: &mut Result<(&str, GenericArgs)>,
) {
    let Ok((_, args)) = parsed else { return };
    if spec.privileges != Privileges::Open
        && let Some(looking) = node.look_up(client, args)
    {
        looking.await;
    }
    let done = own_session(node, client, args);
    if let Err(e) = done {
        *parsed = Err(e);
    }
}

/// Where clients log in, a session is its user's: two users may have sessions of the same number.
fn own_session<S: Node>(node: &S, client: &Client, args: &mut GenericArgs) -> Result<()> {
    if let Some(lsid) = args.lsid.as_mut() {
        let who = node.authority(client)?;
        let own = who.owner();
        if lsid.uid == pando_base::session_id::NO_USER_DIGEST {
            lsid.uid = own;
        } else if lsid.uid != own && !who.may_on_cluster(Action::Impersonate) {
            let text = "Unauthorized to set user digest in LogicalSessionId";
            return Err(Error::new(ErrorCode::Unauthorized, text));
        }
    }
    Ok(())
}

/// What is wrong with the envelope is told after what is wrong with the command's own arguments. Commands that look at their first element
/// before all else have their arguments read after the envelope.
fn envelope_waits(spec: &CommandRow) -> bool {
    const AFTER: &[&str] = &["dataSize", "filemd5", "getClusterParameter", "renameCollection", "splitVector"];
    spec.flags.has(Flags::ARGS_FIRST) && !AFTER.contains(&spec.name)
}

/// The name of a collection is looked at by the command itself, behind its other arguments.
fn names_after_arguments(spec: &CommandRow) -> bool {
    spec.flags.has(Flags::ARGS_FIRST)
        && !spec.flags.has(Flags::TYPED)
        && !matches!(spec.name, "aggregate" | "splitVector")
}

/// What is told once the command has looked at its own arguments, so far as it is not known yet.
#[inline]
fn find_late_mistakes(spec: &CommandRow, roles: Roles, body: &RawDoc, args: &mut GenericArgs) {
    let versioned = args.shard_version.is_some() || args.database_version.is_some();
    if versioned && !roles.any(Roles::S | Roles::C) {
        let text = "Cannot accept sharding commands if not started with --shardsvr";
        args.late.get_or_insert_with(|| Error::new(ErrorCode::NoShardingEnabled, text));
    }
    if let Some(wrong) = args.wrong_write_concern.take() {
        let told =
            if takes_write_concern(spec.flags) && !is_inline(body) { wrong } else { no_write_concern() };
        args.late.get_or_insert(told);
    }
    if spec.flags.has(Flags::ARGS_FIRST) && !args.in_txn() && args.late.is_none() {
        args.late = check_concerns(spec.name, spec.flags, args).err();
    }
}

/// An error before any command is known to run.
fn refuse(client: &Client, e: Error) -> Answer {
    client.instance.metrics.asserts.user.inc();
    let close_after = e.code.is(class::CLOSES);
    Answer { reply: crate::reply::error_reply(&e), next: None, close: false, close_after }
}

/// `$db` of OP_MSG, or the database part of OP_QUERY's namespace; checked.
fn database<'a>(msg: &Incoming<'a>) -> Result<&'a str> {
    let db = match (msg.legacy_db, msg.body.get("$db")) {
        (Some(db), _) => db,
        (None, Some(Value::String(db))) => db,
        (None, Some(Value::NotUtf8(_))) => {
            return Err(Error::new(ErrorCode::InvalidNamespace, "a database name has to be UTF-8"));
        }
        (None, Some(v)) => {
            let text = format!("wrong type for field ($db) {} != string", v.type_name());
            return Err(Error::location(13111, text));
        }
        (None, None) => return Err(Error::location(40571, "OP_MSG requests require a $db argument")),
    };
    if db.is_empty() || db.len() > pando_base::limits::DB_NAME_BYTES_MAX {
        return Err(invalid_db(db));
    }
    if db.contains('.') {
        let text = format!("'.' is an invalid character in the database name: {db}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    if db.bytes().any(|b| matches!(b, b'/' | b'\\' | b' ' | b'"' | 0)) {
        return Err(invalid_db(db));
    }
    Ok(db)
}

fn invalid_db(db: &str) -> Error {
    Error::new(ErrorCode::InvalidNamespace, format!("Invalid database name: '{db}'"))
}

fn check_sequences(msg: &Incoming<'_>) -> Result<()> {
    for (i, seq) in msg.sequences.iter().enumerate() {
        if msg.sequences[..i].iter().any(|s| s.name == seq.name) {
            return Err(Error::location(40431, format!("Duplicate document sequence: {}", seq.name)));
        }
        if msg.body.elem(seq.name).is_some() {
            let text = format!("Duplicate field between body and document sequence {}", seq.name);
            return Err(Error::location(40433, text));
        }
    }
    Ok(())
}

/// All checks, the handler, and the wait for the write concern. Returns the reply body with `ok: 1`.
async fn execute<S: Node>(
    spec: &Command<S>,
    node: &S,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<(DocBuilder, Option<Next>), Stop> {
    check_allowed(spec, node, ctx, &req)?;
    // What a command names first is taken for a collection's name, whatever most commands make of it.
    if !spec.flags.has(Flags::NAMES_NOTHING)
        && !names_after_arguments(spec)
        && matches!(req.first().value(), Value::String(s) if s.contains('\0'))
    {
        let text = "namespaces cannot have embedded null characters";
        return Err(Error::new(ErrorCode::InvalidNamespace, text).into());
    }
    let instance = &ctx.client.instance;
    let mut late_failure = None;
    if instance.fail_points.fail_command.is_active() && spec.name != "configureFailPoint" {
        let names = || std::iter::once(spec.name).chain(spec.aliases.iter().copied());
        match fail_command::before(ctx, &req, names).await? {
            fail_command::Verdict::Proceed => {}
            fail_command::Verdict::Close => return Err(Stop::Close),
        }
        if wants_write_concern(spec.flags) {
            late_failure = fail_command::write_concern_error(ctx, &req, names);
        }
    }
    let served = spec.handler.filter(|_| spec.roles.any(node.roles()));
    let Some(handler) = served else { return Err(spec.refusal(node.roles()).into()) };
    if wants_help(spec, &req) {
        let mut body = crate::Reply::new().body;
        body.str("help", &format!("help for: {} {}", spec.name, spec.help));
        body.f64("ok", 1.0);
        return Ok((body, None));
    }
    if let Some((seen, signature)) = &ctx.args.cluster_time {
        node.advance_cluster_time(&ctx.client, *seen, signature)?;
    }
    node.admit(ctx, spec.flags)?;
    let in_txn = ctx.args.in_txn();
    if in_txn {
        ctx.check_interrupt()?;
        node.check_out(ctx, &req).await?;
    } else if ctx.args.read_concern.may_wait() && ctx.args.late.is_none() {
        node.await_read_concern(ctx).await?;
    }
    let mut result = handle(handler, node, ctx, spec.flags, req).await;
    if in_txn {
        if let Ok(reply) = &mut result {
            node.append_of_transaction(ctx, &mut reply.body);
        }
        node.check_in(ctx, result.as_ref().err());
    }
    if ctx.must_close() {
        return Err(Stop::Close);
    }
    let reply = result?;
    // Whoever writes has asked already; this is for those that only read.
    ctx.arguments_read()?;
    let mut body = reply.body;
    if let Some(doc) = late_failure {
        body.raw_doc("writeConcernError", &doc.error);
        body.f64("ok", 1.0);
        append_labels(&mut body, &doc.labels);
        return Ok((body, reply.next));
    }
    end_with_write_concern(spec.flags, node, ctx, &mut body).await;
    Ok((body, reply.next))
}

/// Runs the handler until the node has nothing to wait for and try again.
async fn handle<S: Node>(
    handler: Handler<S>,
    node: &S,
    ctx: &OpCtx,
    flags: Flags,
    req: Request<'_>,
) -> Result<Reply> {
    ctx.check_interrupt()?;
    if let Some(access) = node.await_access(ctx, flags, &req) {
        access.await?;
    }
    loop {
        let attempt = node.attempt(ctx);
        let result = handler(node, ctx, req).await;
        if ctx.was_refused() {
            node.learn(ctx).await;
        }
        let again = result.as_ref().err().and_then(|e| node.try_again(ctx, attempt, e));
        match again {
            None => return node.check_afterwards(ctx, &req).and(result),
            Some(ready) => ready.await?,
        }
    }
}

/// Waits for the write concern; what became of it ends the reply.
async fn end_with_write_concern<S: Node>(flags: Flags, node: &S, ctx: &OpCtx, body: &mut DocBuilder) {
    let Some(e) = wait_for_write(flags, node, ctx).await else {
        body.f64("ok", 1.0);
        return;
    };
    append_write_concern_error(body, &e);
    // Without it a driver takes a late reply of a former office for news, and waits for a primary it has.
    if let Some(tv) = node.topology_version().filter(|_| tells_topology(e.code)) {
        append_topology(body, tv);
    }
    body.f64("ok", 1.0);
    append_labels(body, &labels_of_late(e.code, ctx.command, &ctx.args));
}

fn no_write_concern() -> Error {
    Error::new(ErrorCode::InvalidOptions, "Command does not support writeConcern")
}

/// A mapReduce whose results are in its reply: it writes nothing.
fn is_inline(body: &RawDoc) -> bool {
    let is_map_reduce = body.first().is_some_and(|e| matches!(e.name(), "mapReduce" | "mapreduce"));
    is_map_reduce && body.get("out").and_then(|v| v.as_doc()).is_some_and(|out| out.elem("inline").is_some())
}

fn wants_write_concern(flags: Flags) -> bool {
    flags.any(Flags::WRITE.or(Flags::WRITE_CONCERN))
}

/// Whether a request may say how long it waits for members.
fn takes_write_concern(flags: Flags) -> bool {
    wants_write_concern(flags) && !flags.has(Flags::OWN_WRITE_CONCERN)
}

fn append_labels(body: &mut DocBuilder, labels: &[String]) {
    if !labels.is_empty() {
        body.array("errorLabels", |a| {
            for label in labels {
                a.str(label);
            }
        });
    }
}

fn append_write_concern_error(body: &mut DocBuilder, e: &WriteConcernError) {
    body.doc("writeConcernError", |b| {
        b.i32("code", e.code.0);
        b.str("codeName", &e.code.name());
        b.str("errmsg", &e.message);
        if let Some(info) = &e.info {
            b.raw_doc("errInfo", info);
        }
    });
}

/// Reads of clients; between nodes whoever asks says how. A cursor and a transaction go on as they began.
fn takes_default_read_concern(spec: &CommandRow, client: &Client, args: &GenericArgs) -> bool {
    spec.flags.has(Flags::READ | Flags::READ_CONCERN)
        && !spec.flags.has(Flags::NOW)
        && spec.name != "getMore"
        && (!args.in_txn() || args.start_transaction)
        && !client.is_internal()
}

/// After a write (successful or not): wait until enough members have it.
async fn wait_for_write<S: Node>(flags: Flags, node: &S, ctx: &OpCtx) -> Option<WriteConcernError> {
    if !wants_write_concern(flags) || !ctx.writes() || (ctx.args.in_txn() && !flags.has(Flags::WRITE_CONCERN))
    {
        return None;
    }
    let wc = effective_write_concern(node, ctx);
    if wc.is_unacknowledged() {
        return None;
    }
    node.await_write_concern(ctx, &wc).await
}

/// The client's write concern with the default's `w` filled in.
fn effective_write_concern<S: Node>(node: &S, ctx: &OpCtx) -> WriteConcern {
    match &ctx.args.write_concern {
        Some(wc) if wc.w_given => wc.clone(),
        Some(wc) => {
            let default = node.default_write_concern();
            WriteConcern { j: wc.j, wtimeout_ms: wc.wtimeout_ms, ..default }
        }
        None => node.default_write_concern(),
    }
}

/// Whether it asks what the command is. Commands with arguments of their own form know no such field.
fn wants_help(spec: &CommandRow, req: &Request<'_>) -> bool {
    let typed = spec.api_v1 || spec.flags.has(Flags::TYPED);
    !typed && req.body.get("help").is_some_and(|v| v.is_truthy())
}

/// Checks that need only the row, the envelope and who asks.
fn check_allowed<S: Node>(spec: &Command<S>, node: &S, ctx: &OpCtx, req: &Request<'_>) -> Result<()> {
    let instance = node.instance();
    let flags = spec.flags;
    if flags.has(Flags::TEST_ONLY) && !instance.test_commands() {
        return Err(Error::new(ErrorCode::CommandNotFound, format!("no such command: '{}'", req.invoked_as)));
    }
    if flags.has(Flags::ADMIN_ONLY) && req.db != "admin" {
        let text = format!("{} may only be run against the admin database.", spec.name);
        return Err(Error::new(ErrorCode::Unauthorized, text));
    }
    if instance.is_shutting_down() {
        return Err(Error::new(
            ErrorCode::ShutdownInProgress,
            "The server is in quiesce mode and will shut down",
        ));
    }
    // Members and routers speak to each other without a version.
    let required = instance.params.bool(Param::requireApiVersion) && !ctx.client.is_internal();
    check_api(spec, &ctx.args.api, required, req.body)?;
    ctx.client.asked_for_api(ctx.args.api.v1, ctx.started);
    if !wants_help(spec, req) {
        authorization::check(spec, node, ctx, req)?;
    }
    if spec.handler.is_none() {
        return Ok(());
    }
    check_transaction_fields(spec, node.roles(), ctx, req)?;
    // What is wrong with a statement as a whole begins no transaction.
    if flags.has(Flags::ARGS_FIRST) && !ctx.args.in_txn() {
        return Ok(());
    }
    ctx.arguments_read()?;
    check_concerns(spec.name, flags, &ctx.args)
}

fn check_api(spec: &CommandRow, api: &ApiParams, required: bool, body: &RawDoc) -> Result<()> {
    let name = spec.name;
    if !api.v1 {
        if required && !matches!(name, "hello" | "getMore" | "commitTransaction" | "abortTransaction") {
            return Err(Error::new(
                ErrorCode(498_870),
                "The apiVersion parameter is required, please configure your MongoClient's API version",
            ));
        }
        return Ok(());
    }
    if api.strict && !spec.api_v1 {
        return Err(Error::new(
            ErrorCode::APIStrictError,
            format!(
                "Provided apiStrict:true, but the command {name} is not in API Version 1. Information on supported \
                 commands and migrations in API Version 1 can be found at \
                 https://dochub.mongodb.org/core/manual-versioned-api"
            ),
        ));
    }
    if api.strict {
        stable_api::check_fields(spec.name, body)?;
    }
    if api.deprecation_errors && spec.flags.has(Flags::DEPRECATED_IN_V1) {
        let text = format!(
            "Provided apiDeprecationErrors:true, but the command {name} is deprecated in API Version 1"
        );
        return Err(Error::new(ErrorCode::APIDeprecationError, text));
    }
    Ok(())
}

fn check_transaction_fields(spec: &CommandRow, roles: Roles, ctx: &OpCtx, req: &Request<'_>) -> Result<()> {
    let CommandRow { name, flags, .. } = *spec;
    let args = &ctx.args;
    if args.in_txn() {
        return transaction_rules::check(name, flags, args, roles, req);
    }
    // Those that have arguments look at them first.
    let own_check = matches!(name, "commitTransaction" | "abortTransaction");
    if ends_transaction(name) && !own_check {
        transaction_rules::check_is_within(name, args)?;
    }
    if args.txn_number.is_some() && !flags.any(Flags::RETRYABLE) {
        if spec.privileges != Privileges::Open {
            return Err(Error::new(
                ErrorCode::NotARetryableWriteCommand,
                format!(
                    "txnNumber may only be provided for multi-document transactions and retryable write commands. \
                     autocommit:false was not provided, and {name} is not a retryable write command."
                ),
            ));
        }
        return Err(Error::location(50889, "It is illegal to provide a txnNumber for this command"));
    }
    Ok(())
}

fn check_concerns(name: &str, flags: Flags, args: &GenericArgs) -> Result<()> {
    let ends_txn = ends_transaction(name);
    if args.write_concern.is_some() {
        if !takes_write_concern(flags) {
            return Err(no_write_concern());
        }
        if args.in_txn() && !ends_txn {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "writeConcern is not allowed within a multi-statement transaction",
            ));
        }
    }
    let rc = &args.read_concern;
    if !rc.given {
        return Ok(());
    }
    if args.in_txn() && !args.start_transaction {
        return Err(Error::new(
            ErrorCode::InvalidOptions,
            "Only the first command in a transaction may specify a readConcern",
        ));
    }
    if args.in_txn() && matches!(rc.level(), ReadLevel::Linearizable | ReadLevel::Available) {
        return Err(Error::new(
            ErrorCode::InvalidOptions,
            "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a \
             transaction",
        ));
    }
    if rc.after_cluster_time.is_some() && flags.has(Flags::NOW) {
        let text = "afterClusterTime is not allowed for this command";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let beyond_local = rc.level() != ReadLevel::Local;
    // The first statement of a transaction sets the transaction's read concern, whatever the command.
    if beyond_local && !flags.has(Flags::READ_CONCERN) && !args.start_transaction {
        return Err(Error::new(
            ErrorCode::InvalidOptions,
            format!(
                "Command {name} does not support {} :: caused by :: read concern not supported",
                rc.shell_text()
            ),
        ));
    }
    if rc.level() == ReadLevel::Snapshot && flags.has(Flags::NO_SNAPSHOT) {
        return Err(Error::new(
            ErrorCode::InvalidOptions,
            format!(
                "Command {name} does not support {} :: caused by :: read concern snapshot not supported",
                rc.shell_text()
            ),
        ));
    }
    Ok(())
}

/// The error reply. A failed write may still have to be waited for: part of it may have happened.
async fn failure<S: Node>(node: &S, ctx: &OpCtx, e: &Error) -> DocBuilder {
    ctx.client.instance.metrics.asserts.user.inc();
    let mut labels = match fail_command::label_override(e) {
        Some(labels) => labels,
        None => {
            let mut all = labels_of(e.code, ctx.command, &ctx.args, ctx.is_change_stream());
            for label in &e.labels {
                if !all.contains(label) {
                    all.push(label.clone());
                }
            }
            all
        }
    };
    labels.dedup();
    // Who hears that there is no such transaction must be able to rely on it: it might have been committed by a
    // primary that is none any more.
    let gone = e.code == ErrorCode::NoSuchTransaction && ends_transaction(ctx.command);
    let wce = match ctx.last_op() {
        _ if gone && ctx.args.write_concern.is_some() => {
            wait_for_write(Flags::WRITE_CONCERN, node, ctx).await
        }
        Some(_) if !ctx.args.in_txn() => wait_for_write(Flags::WRITE, node, ctx).await,
        _ => None,
    };
    if wce.is_some() && gone && ctx.command == "commitTransaction" {
        labels.retain(|l| l != "TransientTransactionError");
    }
    let mut body = error_body(e, &labels, node.topology_version());
    if let Some(wce) = wce {
        append_write_concern_error(&mut body, &wce);
    }
    body
}

/// `slowOpSampleRate`: whether this slow operation is among the reported ones.
fn sampled(ctx: &OpCtx) -> bool {
    let rate = ctx.client.instance.params.double(Param::slowOpSampleRate);
    rate >= 1.0 || ((ctx.env().rng.next_u64() >> 11) as f64) < rate * (1u64 << 53) as f64
}

/// Counters, latencies, and the slow-query line.
fn finish<S: Node>(
    node: &S,
    ctx: &OpCtx,
    flags: Flags,
    req: &Request<'_>,
    reply: &Encoded,
    error: Option<&Error>,
) {
    let mut took = ctx.elapsed();
    if req.name == "getMore" {
        ctx.debug(|d| took = took.saturating_sub(d.awaited));
    }
    let metrics = &ctx.client.instance.metrics;
    let class = if flags.has(Flags::WRITE) {
        &metrics.latencies.writes
    } else if flags.has(Flags::READ) {
        &metrics.latencies.reads
    } else {
        &metrics.latencies.commands
    };
    class.took(took);
    if flags.has(Flags::READ) && flags.has(Flags::READ_CONCERN) && req.name != "getMore" {
        let counts =
            if ctx.args.in_txn() { &metrics.read_concerns_in_transactions } else { &metrics.read_concerns };
        counts.count(&ctx.args.read_concern);
    }
    if flags.has(Flags::QUIET) {
        return;
    }
    let threshold = ctx.client.instance.params.int(Param::slowOpThresholdMs);
    let level = node.profiling_level(&ctx.db);
    let filtered = node.has_profile_filter(&ctx.db);
    let is_slow = threshold >= 0 && took >= Duration::from_millis(threshold.max(0) as u64) && sampled(ctx);
    if is_slow || level >= 2 || filtered {
        let to = slow::Where { log: is_slow, level, filtered };
        slow::report(node, ctx, flags, req, reply.doc(), error, took, to);
    }
}
