// First steps in the shell.   mongosh --quiet mongodb://127.0.0.1:27017 --file examples/first_steps.mongosh.js
db = db.getSiblingDB("first_steps");
db.dropDatabase();

db.notes.insertMany([
  { _id: 1, text: "buy milk", tags: ["home"], done: false },
  { _id: 2, text: "write tests", tags: ["work", "today"], done: true },
  { _id: 3, text: "call Ada", tags: ["today"], done: false },
]);
print("open, with tag 'today':");
printjson(db.notes.find({ tags: "today", done: false }).toArray());

db.notes.createIndex({ tags: 1, done: 1 });
db.notes.updateOne({ _id: 1 }, { $set: { done: true }, $push: { tags: "today" } });
print("\nnotes per tag:");
printjson(db.notes.aggregate([
  { $unwind: "$tags" },
  { $group: { _id: "$tags", notes: { $sum: 1 }, done: { $sum: { $cond: ["$done", 1, 0] } } } },
  { $sort: { _id: 1 } },
]).toArray());
print("\nindexes:");
printjson(db.notes.getIndexes());
