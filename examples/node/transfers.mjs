// Money between accounts with Mongoose and transactions.   npm i mongoose && node transfers.mjs [URI]
import mongoose from "mongoose";

await mongoose.connect(process.argv[2] ?? "mongodb://127.0.0.1:27017/?directConnection=true", { dbName: "transfers_example" });
const Account = mongoose.model("Account", { _id: String, balance: { type: Number, min: [0, "{PATH} would be {VALUE}"] } });
const Transfer = mongoose.model("Transfer", new mongoose.Schema({ from: String, to: String, amount: Number }, { timestamps: true }));
await mongoose.connection.dropDatabase();
await Account.create(["ann", "bob", "cyd"].map((_id) => ({ _id, balance: 100 })));
await Transfer.createCollection();

// all of it or nothing: whatever throws inside takes everything back
async function transfer(from, to, amount) {
  await mongoose.connection.transaction(async (session) => {
    const giver = await Account.findById(from).session(session);
    giver.balance -= amount;
    await Account.updateOne({ _id: to }, { $inc: { balance: amount } }, { session });
    await Transfer.create([{ from, to, amount }], { session });
    await giver.save({ session });
  });
}

await transfer("ann", "bob", 30);
await transfer("bob", "cyd", 200).catch((e) => console.log("bob to cyd:", e.message));

// many at once: those that meet on an account are tried again by the driver
const names = ["ann", "bob", "cyd"];
const some = Array.from({ length: 60 }, (_, n) => [names[n % 3], names[(n + 1 + (n % 2)) % 3], (n * 7) % 20]);
const done = await Promise.allSettled(some.map(([from, to, amount]) => transfer(from, to, amount)));
console.log(`${done.filter((d) => d.status === "fulfilled").length} of ${done.length} transfers at once took place`);

const accounts = await Account.find().sort({ _id: 1 }).lean();
const sums = { ann: 100, bob: 100, cyd: 100 };
for (const t of await Transfer.find().lean()) {
  sums[t.from] -= t.amount;
  sums[t.to] += t.amount;
}
console.log(accounts.map((a) => `${a._id} ${a.balance}`).join(", "));
const right = accounts.every((a) => a.balance === sums[a._id]);
console.log(right ? "every account is what its transfers say" : `by their transfers: ${JSON.stringify(sums)}`);
await mongoose.disconnect();
process.exit(right ? 0 : 1);
