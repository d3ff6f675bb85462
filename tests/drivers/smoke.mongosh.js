// mongosh against a server. usage: mongosh --quiet URI --file smoke.mongosh.js
// Through a router the helpers of `sh` are looked at in place of those of `rs`.
const d = db.getSiblingDB("smoke_sh");
let passed = 0, failed = 0;
function check(name, fn) {
  try {
    if (fn() === false) throw new Error("not so");
    passed++; print("ok     " + name);
  } catch (e) {
    failed++; print("FAILED " + name + ": " + String(e.message).slice(0, 300));
  }
}
d.dropDatabase();
check("insert, find", () => { d.t.insertMany([{ _id: 1, a: 1 }, { _id: 2, a: [1, 2] }, { _id: 3, a: "x" }]); return d.t.find({ a: 1 }).toArray().length === 2; });
check("cursor", () => { d.n.insertMany(Array.from({ length: 500 }, (_, i) => ({ i }))); return d.n.find().sort({ i: -1 }).batchSize(50).toArray().length === 500; });
check("update", () => d.t.updateOne({ _id: 1 }, { $set: { b: 5 } }).modifiedCount === 1 && d.t.findOne({ _id: 1 }).b === 5);
check("index", () => { d.n.createIndex({ i: 1 }); return d.n.getIndexes().length === 2 && JSON.stringify(d.n.find({ i: 4 }).explain()).includes("IXSCAN"); });
check("explain with statistics", () => d.n.find({ i: { $lt: 10 } }).explain("executionStats").executionStats.nReturned === 10);
check("aggregate", () => d.n.aggregate([{ $match: { i: { $lt: 10 } } }, { $group: { _id: null, s: { $sum: "$i" } } }]).toArray()[0].s === 45);
check("count, distinct", () => d.n.countDocuments() === 500 && d.t.distinct("a").length === 3);
check("findAndModify", () => d.t.findOneAndUpdate({ _id: 3 }, { $set: { a: "y" } }, { returnDocument: "after" }).a === "y");
check("bulkWrite", () => d.t.bulkWrite([{ insertOne: { document: { _id: 9 } } }, { deleteOne: { filter: { _id: 9 } } }]).deletedCount === 1);
check("errors", () => { try { d.t.insertOne({ _id: 1 }); } catch (e) { return e.code === 11000; } return false; });
const routed = db.hello().msg === "isdbgrid";
if (!routed) check("rs.status, rs.conf", () => rs.status().members.some(m => m.stateStr === "PRIMARY") && rs.conf().members.length === rs.status().members.length);
check("transaction", () => { const s = db.getMongo().startSession(); const t = s.getDatabase("smoke_sh").t; s.startTransaction(); t.insertOne({ _id: "txn" }); s.commitTransaction(); s.startTransaction(); t.deleteOne({ _id: "txn" }); s.abortTransaction(); return d.t.countDocuments({ _id: "txn" }) === 1; });
check("change stream", () => { const w = d.t.watch(); d.t.deleteOne({ _id: "txn" }); let e = null; for (let i = 0; i < 50 && !e; i++) e = w.tryNext(); w.close(); return e.operationType === "delete"; });
check("stats", () => d.n.stats().count === 500 && d.stats().collections >= 2);
check("serverStatus, currentOp, hostInfo", () => db.serverStatus().ok === 1 && db.currentOp().ok === 1 && db.hostInfo().ok === 1);
check("show dbs, collections", () => db.getMongo().getDBNames().includes("smoke_sh") && d.getCollectionNames().includes("n"));
check("validate", () => d.n.validate({ full: true }).valid);
function routes() {
  const ns = "smoke_sh.spread", c = d.spread;
  const value = r => r.value ?? r;
  const shards = () => db.getSiblingDB("admin").runCommand({ listShards: 1 }).shards.map(s => s._id);
  check("sh.enableSharding, sh.shardCollection", () => sh.enableSharding("smoke_sh").ok === 1 && sh.shardCollection(ns, { k: 1 }).ok === 1);
  check("sh.splitAt, sh.splitFind", () => { c.insertMany(Array.from({ length: 300 }, (_, k) => ({ k }))); return sh.splitAt(ns, { k: 100 }).ok === 1 && sh.splitAt(ns, { k: 200 }).ok === 1 && sh.splitFind(ns, { k: 250 }).ok === 1; });
  check("getShardDistribution", () => { const t = value(c.getShardDistribution()).Totals; return t.docs === 300 && t.chunks === 4; });
  check("sh.status", () => {
    const s = value(sh.status());
    const spread = s.databases.find(x => x.database._id === "smoke_sh").collections[ns];
    const active = s["active mongoses"];
    return s.shards.length === shards().length && active[0][db.version()] >= 1 && s.shardingVersion.clusterId !== undefined && s.balancer["Currently enabled"] === "yes"
      && spread.shardKey.k === 1 && spread.chunks.length === 4 && s.shardedDataDistribution.some(x => x.ns === ns);
  });
  check("sh.status(true)", () => value(sh.status(true))["active mongoses"][0].ping instanceof Date);
  check("db.printShardingStatus", () => value(db.printShardingStatus()).shards.length === shards().length);
  check("sh.getBalancerState, sh.isBalancerRunning", () => sh.getBalancerState() === true && sh.isBalancerRunning().mode === "full" && sh.isBalancerRunning().inBalancerRound === false);
  check("sh.stopBalancer, sh.startBalancer", () => sh.stopBalancer().ok === 1 && sh.getBalancerState() === false && sh.isBalancerRunning().mode === "off" && sh.startBalancer().ok === 1 && sh.getBalancerState() === true);
  check("sh.disableBalancing, sh.enableBalancing", () => { sh.disableBalancing(ns); const off = db.getSiblingDB("config").collections.findOne({ _id: ns }).noBalance; sh.enableBalancing(ns); return off === true; });
  check("zones", () => {
    const one = shards()[0];
    const made = sh.addShardToZone(one, "z").ok === 1 && sh.updateZoneKeyRange(ns, { k: 0 }, { k: 100 }, "z").ok === 1;
    const told = value(sh.status()).databases.find(x => x.database._id === "smoke_sh").collections[ns].tags;
    return made && told[0].tag === "z" && sh.removeRangeFromZone(ns, { k: 0 }, { k: 100 }).ok === 1 && sh.removeShardFromZone(one, "z").ok === 1;
  });
  check("sh.balancerCollectionStatus", () => sh.balancerCollectionStatus(ns).ok === 1);
  check("sh.getShardedDataDistribution", () => sh.getShardedDataDistribution().toArray().find(x => x.ns === ns).shards.reduce((n, s) => n + Number(s.numOwnedDocuments), 0) === 300);
  check("stats of shards", () => { const s = c.stats(); return s.sharded === true && s.count === 300 && Object.keys(s.shards).length >= 1; });
  check("explain", () => ["SHARD_MERGE", "SINGLE_SHARD"].includes(c.find({ x: 1 }).explain("executionStats").queryPlanner.winningPlan.stage) && c.find({ k: 7 }).explain().queryPlanner.winningPlan.stage === "SINGLE_SHARD");
  check("an added shard is there already", () => { const s = db.getSiblingDB("config").shards.findOne(); return sh.addShard(s.host).shardAdded === s._id; });
  check("db.currentOp, db.killOp", () => db.currentOp({ $all: true }).inprog.every(x => x.shard !== undefined) && db.killOp(`${shards()[0]}:1`).ok === 1);
  check("rs.status is refused", () => { try { rs.status(); } catch (e) { return /not supported through mongos/.test(e.message); } return false; });
  check("getLog, getCmdLineOpts, connPoolStats, listCommands", () => db.adminCommand({ getLog: "global" }).log.length > 0 && db.adminCommand({ getCmdLineOpts: 1 }).parsed.sharding.configDB.length > 0 && db.adminCommand({ connPoolStats: 1 }).totalCreated > 0 && db.adminCommand({ listCommands: 1 }).commands.shardCollection !== undefined);
}
if (routed) routes();
check("drop", () => d.dropDatabase().ok === 1);
print(`${passed} passed, ${failed} failed`);
quit(failed ? 1 : 0);
