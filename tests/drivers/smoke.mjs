// The Node driver against a server: CRUD, bulk, cursors, indexes, aggregation, errors.
// Through a router also with a collection that is sharded. usage: npm i mongodb && node smoke.mjs [URI]
import { createRequire } from "node:module";
const require = createRequire(process.env.NODE_MODULES ? process.env.NODE_MODULES + "/x.js" : import.meta.url);
const { MongoClient, Long, Decimal128, ObjectId } = require("mongodb");

const client = new MongoClient(process.argv[2] ?? "mongodb://127.0.0.1:27017", { serverSelectionTimeoutMS: 5000 });
const db = client.db("smoke_node");
let passed = 0, failed = 0;
async function check(name, fn) {
  try {
    const r = await fn();
    if (r === false) throw new Error("not so");
    passed++; console.log("ok    ", name);
  } catch (e) {
    failed++; console.log("FAILED", name, e.message?.slice(0, 300));
  }
}
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
async function refused(fn, code) {
  try { await fn(); } catch (e) { return e.code === code; }
  return false;
}

await db.dropDatabase();
const c = db.collection("things");
const doc = { _id: 1, s: "text", i: 5, l: Long.fromString("1099511627776"), d: 2.5, dec: Decimal128.fromString("1.50"), t: new Date(0), o: new ObjectId(), n: null, a: [1, [2, { x: 3 }]] };
await check("hello", async () => (await db.admin().command({ hello: 1 })).isWritablePrimary);
await check("insertOne, findOne", async () => { await c.insertOne(doc); const d = await c.findOne({ _id: 1 }); return d.s === "text" && d.dec.toString() === "1.50" && same(d.a, doc.a); });
await check("insertMany 3,000", async () => (await c.insertMany(Array.from({ length: 3000 }, (_, k) => ({ k, g: k % 7 })))).insertedCount === 3000);
await check("cursor over batches", async () => { let n = 0; for await (const d of c.find({ k: { $exists: true } }).sort({ k: 1 }).batchSize(99)) if (d.k !== n++) return false; return n === 3000; });
await check("updateOne, updateMany, upsert", async () => (await c.updateOne({ _id: 1 }, { $set: { "e.f": 1 }, $inc: { i: 1 } })).modifiedCount === 1 && (await c.updateMany({ g: 2 }, { $set: { hit: 1 } })).modifiedCount === 429 && (await c.updateOne({ _id: "u" }, { $set: { z: 1 } }, { upsert: true })).upsertedId === "u");
await check("findOneAndUpdate", async () => (await c.findOneAndUpdate({ _id: "u" }, { $inc: { z: 4 } }, { returnDocument: "after" })).z === 5);
await check("bulkWrite", async () => { const r = await db.collection("bw").bulkWrite([{ insertOne: { document: { _id: 1 } } }, { updateOne: { filter: { _id: 1 }, update: { $set: { a: 1 } } } }, { deleteOne: { filter: { _id: 1 } } }]); return r.insertedCount === 1 && r.modifiedCount === 1 && r.deletedCount === 1; });
await check("duplicate key", () => refused(() => c.insertOne({ _id: 1 }), 11000));
await check("createIndex, unique", async () => { await c.createIndex({ g: 1, k: -1 }); await c.createIndex({ k: 1 }, { unique: true, sparse: true }); return refused(() => c.insertOne({ k: 5 }), 11000); });
await check("explain uses the index", async () => JSON.stringify(await c.find({ g: 3, k: { $gt: 5 } }).explain()).includes("IXSCAN"));
await check("distinct, countDocuments", async () => same((await c.distinct("g")).filter(x => x !== null).sort(), [0, 1, 2, 3, 4, 5, 6]) && (await c.countDocuments({ k: { $lt: 10 } })) === 10);
await check("aggregate", async () => same(await c.aggregate([{ $match: { k: { $lt: 70 } } }, { $group: { _id: "$g", n: { $sum: 1 } } }, { $sort: { _id: 1 } }, { $limit: 1 }]).toArray(), [{ _id: 0, n: 10 }]));
await check("listCollections, listIndexes", async () => (await db.listCollections().toArray()).some(x => x.name === "things") && (await c.indexes()).length === 3);
await check("session", () => client.withSession(async s => (await c.findOne({ _id: 1 }, { session: s }))._id === 1));
await check("transaction", async () => { await db.createCollection("acc"); await client.withSession(s => s.withTransaction(async () => { await db.collection("acc").insertOne({ _id: 1, n: 5 }, { session: s }); await db.collection("acc").updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session: s }); })); return (await db.collection("acc").findOne({ _id: 1 })).n === 6; });
await check("change stream", async () => { const w = c.watch(); const next = w.next(); await new Promise(r => setTimeout(r, 200)); await c.insertOne({ _id: "cs" }); const e = await next; await w.close(); await c.deleteOne({ _id: "cs" }); return e.operationType === "insert" && e.documentKey._id === "cs"; });
await check("20 operations at once", async () => (await Promise.all(Array.from({ length: 20 }, (_, i) => c.findOne({ k: i })))).every((d, i) => d.k === i));
async function sharded() {
  const admin = db.admin(), h = db.collection("hashed");
  await check("sharded: shardCollection", async () => (await admin.command({ shardCollection: "smoke_node.hashed", key: { _id: "hashed" } })).ok === 1);
  await check("sharded: insertMany, counts", async () => (await h.insertMany(Array.from({ length: 2000 }, (_, k) => ({ _id: k, g: k % 4 })))).insertedCount === 2000 && (await h.countDocuments({ g: 1 })) === 500 && (await h.estimatedDocumentCount()) === 2000);
  await check("sharded: cursor over batches", async () => { let n = 0; for await (const d of h.find().sort({ g: 1, _id: 1 }).batchSize(77)) { if (d.g !== Math.floor(n / 500)) return false; n++; } return n === 2000; });
  await check("sharded: updateMany, findOneAndUpdate, deleteMany", async () => (await h.updateMany({ g: 2 }, { $set: { x: 1 } })).modifiedCount === 500 && (await h.findOneAndUpdate({ _id: 8 }, { $inc: { z: 4 } }, { returnDocument: "after" })).z === 4 && (await h.deleteMany({ g: 3 })).deletedCount === 500);
  await check("sharded: bulkWrite", async () => { const r = await h.bulkWrite([{ insertOne: { document: { _id: 9001 } } }, { updateOne: { filter: { _id: 9001 }, update: { $set: { a: 1 } } } }, { deleteOne: { filter: { _id: 9001 } } }, { updateMany: { filter: { g: 0 }, update: { $set: { y: 1 } } } }]); return r.insertedCount === 1 && r.modifiedCount === 501 && r.deletedCount === 1; });
  await check("sharded: aggregate", async () => same(await h.aggregate([{ $group: { _id: "$g", n: { $sum: 1 } } }, { $sort: { _id: 1 } }]).toArray(), [0, 1, 2].map(_id => ({ _id, n: 500 }))));
  await check("sharded: transaction on one shard", async () => { await client.withSession(s => s.withTransaction(async () => { await h.updateOne({ _id: 4 }, { $set: { t: 1 } }, { session: s }); await h.updateOne({ _id: 4 }, { $inc: { t: 1 } }, { session: s }); })); return (await h.findOne({ _id: 4 })).t === 2; });
  await check("sharded: change stream", async () => { const w = h.watch(); const next = w.next(); await new Promise(r => setTimeout(r, 200)); await h.insertOne({ _id: "cs" }); const e = await next; await w.close(); return e.operationType === "insert" && e.documentKey._id === "cs"; });
  await check("sharded: explain", async () => (await h.find({ g: 1 }).explain()).queryPlanner.winningPlan.stage.startsWith("SHARD_MERGE"));
}
if ((await db.admin().command({ hello: 1 })).msg === "isdbgrid") await sharded();
await check("deleteMany, drop", async () => (await c.deleteMany({ g: 1 })).deletedCount === 429 && await db.dropDatabase());
await client.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
