// mongosh against a server. usage: mongosh --quiet URI --file smoke.mongosh.js
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
check("rs.status, rs.conf", () => rs.status().members.some(m => m.stateStr === "PRIMARY") && rs.conf().members.length === rs.status().members.length);
check("transaction", () => { const s = db.getMongo().startSession(); const t = s.getDatabase("smoke_sh").t; s.startTransaction(); t.insertOne({ _id: "txn" }); s.commitTransaction(); s.startTransaction(); t.deleteOne({ _id: "txn" }); s.abortTransaction(); return d.t.countDocuments({ _id: "txn" }) === 1; });
check("change stream", () => { const w = d.t.watch(); d.t.deleteOne({ _id: "txn" }); let e = null; for (let i = 0; i < 50 && !e; i++) e = w.tryNext(); w.close(); return e.operationType === "delete"; });
check("stats", () => d.n.stats().count === 500 && d.stats().collections >= 2);
check("serverStatus, currentOp, hostInfo", () => db.serverStatus().ok === 1 && db.currentOp().ok === 1 && db.hostInfo().ok === 1);
check("show dbs, collections", () => db.getMongo().getDBNames().includes("smoke_sh") && d.getCollectionNames().includes("n"));
check("validate", () => d.n.validate({ full: true }).valid);
check("drop", () => d.dropDatabase().ok === 1);
print(`${passed} passed, ${failed} failed`);
quit(failed ? 1 : 0);
