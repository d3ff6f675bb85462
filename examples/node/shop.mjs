// A small shop with the Node driver: stock, orders, a report.   npm i mongodb && node shop.mjs [URI]
import { MongoClient } from "mongodb";

const client = new MongoClient(process.argv[2] ?? "mongodb://127.0.0.1:27017");
const db = client.db("shop_example");
await db.dropDatabase();
const stock = db.collection("stock"), orders = db.collection("orders");
await stock.createIndex({ sku: 1 }, { unique: true });
await orders.createIndex({ customer: 1, at: -1 });

await stock.insertMany([
  { sku: "tea", price: 4.5, left: 20 }, { sku: "cup", price: 9, left: 3 }, { sku: "pot", price: 30, left: 1 },
]);

// take from stock only what is there: the filter and the change are one atomic step
async function order(customer, sku, n) {
  const item = await stock.findOneAndUpdate({ sku, left: { $gte: n } }, { $inc: { left: -n } });
  if (!item) return console.log(`${customer}: not enough ${sku}`);
  await orders.insertOne({ customer, sku, n, paid: item.price * n, at: new Date() });
  console.log(`${customer}: ${n} ${sku} for ${item.price * n}`);
}
await order("ann", "tea", 2);
await order("bob", "pot", 1);
await order("cyd", "pot", 1);
await order("ann", "cup", 3);

console.log("\nper customer:");
for await (const r of orders.aggregate([
  { $group: { _id: "$customer", orders: { $sum: 1 }, paid: { $sum: "$paid" } } },
  { $sort: { paid: -1 } },
])) console.log(`  ${r._id}: ${r.orders} orders, ${r.paid}`);

console.log("\nleft:", await stock.find({}, { projection: { _id: 0, sku: 1, left: 1 } }).sort({ sku: 1 }).toArray());
await client.close();
