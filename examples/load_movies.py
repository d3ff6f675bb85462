#!/usr/bin/env python3
"""Loads two real data sets, 3,201 movies and 3,376 airports, and asks them questions.

    npm pack vega-datasets@3.2.1 && tar xzf vega-datasets-3.2.1.tgz      # the data: package/data/*.json, *.csv
    pip install pymongo
    python3 examples/load_movies.py package/data [mongodb://127.0.0.1:27017]

Prints each question with its answer, and checks the answers against plain Python over the same files.
"""
import collections
import csv
import datetime
import json
import pathlib
import sys
import time

import pymongo

if len(sys.argv) < 2:
    sys.exit(__doc__)
folder = pathlib.Path(sys.argv[1])
client = pymongo.MongoClient(sys.argv[2] if len(sys.argv) > 2 else "mongodb://127.0.0.1:27017", serverSelectionTimeoutMS=5000)
db = client.movies_example
client.drop_database(db.name)
wrong = 0


def ask(question, got, want):
    global wrong
    same = got == want
    wrong += not same
    text = str(got)
    print(f"\n{question}\n  {text if len(text) < 600 else text[:600] + ' ...'}" + ("" if same else f"\n  WRONG, plain Python says {str(want)[:600]}"))


# ---- load

movies = []
for m in json.loads((folder / "movies.json").read_text(encoding="utf-8")):
    d = {k.replace(" ", "_"): v for k, v in m.items() if v is not None}
    try:
        d["Released"] = datetime.datetime.strptime(d["Release_Date"], "%b %d %Y")
    except (ValueError, KeyError):
        pass
    if isinstance(d.get("Title"), (int, float)):
        d["Title"] = str(d["Title"])
    movies.append(d)
airports = []
with open(folder / "airports.csv", encoding="utf-8", newline="") as f:
    for r in csv.DictReader(f):
        airports.append({"_id": r["iata"], "name": r["name"], "city": r["city"], "state": r["state"], "country": r["country"],
                         "at": {"lat": float(r["latitude"]), "lon": float(r["longitude"])}})
t = time.perf_counter()
db.movies.insert_many([dict(m) for m in movies])
db.airports.insert_many(airports)
print(f"loaded {len(movies)} movies and {len(airports)} airports in {time.perf_counter() - t:.2f} s")

# ---- indexes

db.movies.create_index([("Director", 1), ("IMDB_Rating", -1)])
db.movies.create_index("Released")
db.movies.create_index("Title")
db.airports.create_index([("state", 1), ("city", 1)])
db.airports.create_index("at.lat")
print("indexes:", sorted(db.movies.index_information()), sorted(db.airports.index_information()))

# ---- questions

ask("How many movies, how many airports?", (db.movies.count_documents({}), db.airports.count_documents({})), (len(movies), len(airports)))
ask("Ridley Scott's movies, best first (compound index, covered sort)",
    [(m["Title"], m.get("IMDB_Rating")) for m in db.movies.find({"Director": "Ridley Scott", "IMDB_Rating": {"$exists": True}}).sort([("IMDB_Rating", -1), ("Title", 1)]).limit(5)],
    sorted([(m["Title"], m["IMDB_Rating"]) for m in movies if m.get("Director") == "Ridley Scott" and "IMDB_Rating" in m], key=lambda x: (-x[1], x[0]))[:5])
plan = db.movies.find({"Director": "Ridley Scott"}).sort("IMDB_Rating", -1).explain()["queryPlanner"]["winningPlan"]
ask("... and does the plan use the index, without sorting?", ("IXSCAN" in str(plan), "SORT" in str(plan)), (True, False))
ask("Released in the summer of 1999",
    db.movies.count_documents({"Released": {"$gte": datetime.datetime(1999, 6, 1), "$lt": datetime.datetime(1999, 9, 1)}}),
    sum(1 for m in movies if "Released" in m and datetime.datetime(1999, 6, 1) <= m["Released"] < datetime.datetime(1999, 9, 1)))
ask("Titles that begin with 'The Lord' (prefix of an index)", sorted(m["Title"] for m in db.movies.find({"Title": {"$regex": "^The Lord"}})), sorted(m["Title"] for m in movies if str(m.get("Title", "")).startswith("The Lord")))

by = collections.defaultdict(list)
for m in movies:
    if m.get("Major_Genre") and "IMDB_Rating" in m:
        by[m["Major_Genre"]].append(m["IMDB_Rating"])
ask("Genres by mean IMDB rating, among those with 50 rated movies",
    [(r["_id"], r["n"], round(r["mean"], 6)) for r in db.movies.aggregate([
        {"$match": {"Major_Genre": {"$ne": None}, "IMDB_Rating": {"$type": "number"}}},
        {"$group": {"_id": "$Major_Genre", "n": {"$sum": 1}, "mean": {"$avg": "$IMDB_Rating"}}},
        {"$match": {"n": {"$gte": 50}}}, {"$sort": {"mean": -1}}, {"$limit": 4}])],
    sorted([(g, len(v), round(sum(v) / len(v), 6)) for g, v in by.items() if len(v) >= 50], key=lambda x: -x[2])[:4])
gross = collections.Counter()
for m in movies:
    if m.get("Director") and isinstance(m.get("Worldwide_Gross"), (int, float)):
        gross[m["Director"]] += m["Worldwide_Gross"]
ask("Directors by worldwide gross",
    [(r["_id"], r["total"]) for r in db.movies.aggregate([{"$match": {"Director": {"$type": "string"}}}, {"$group": {"_id": "$Director", "total": {"$sum": "$Worldwide_Gross"}}}, {"$sort": {"total": -1, "_id": 1}}, {"$limit": 5}])],
    sorted(gross.items(), key=lambda x: (-x[1], x[0]))[:5])
ask("States with most airports",
    [(r["_id"], r["n"]) for r in db.airports.aggregate([{"$match": {"country": "USA"}}, {"$group": {"_id": "$state", "n": {"$sum": 1}}}, {"$sort": {"n": -1, "_id": 1}}, {"$limit": 5}])],
    sorted(collections.Counter(a["state"] for a in airports if a["country"] == "USA").items(), key=lambda x: (-x[1], x[0]))[:5])
ask("The northernmost airports", [a["_id"] for a in db.airports.find({"at.lat": {"$gt": 70}}, {"_id": 1}).sort([("at.lat", -1), ("_id", 1)])], [a["_id"] for a in sorted(airports, key=lambda a: (-a["at"]["lat"], a["_id"])) if a["at"]["lat"] > 70])
ask("Distributors, distinct", len(db.movies.distinct("Distributor")), len({m["Distributor"] for m in movies if "Distributor" in m}))

# ---- change it

r = db.movies.update_many({"US_Gross": {"$type": "number"}, "Production_Budget": {"$gt": 0}}, [{"$set": {"ratio": {"$divide": ["$US_Gross", "$Production_Budget"]}}}])
ask("Gross to budget worked out by a pipeline update", r.modified_count, sum(1 for m in movies if isinstance(m.get("US_Gross"), (int, float)) and (m.get("Production_Budget") or 0) > 0))
best = max((m for m in movies if isinstance(m.get("US_Gross"), (int, float)) and (m.get("Production_Budget") or 0) > 0), key=lambda m: m["US_Gross"] / m["Production_Budget"])
ask("... the best of them", db.movies.find_one({"ratio": {"$exists": True}}, sort=[("ratio", -1)])["Title"], best["Title"])
r = db.airports.find_one_and_update({"_id": "SFO"}, {"$push": {"notes": {"$each": ["fog", "bridge"], "$sort": 1}}, "$currentDate": {"seen": True}}, return_document=pymongo.ReturnDocument.AFTER)
ask("Notes on SFO", r["notes"], ["bridge", "fog"])
ask("Movies without a title, removed", db.movies.delete_many({"Title": {"$exists": False}}).deleted_count, sum(1 for m in movies if "Title" not in m))
ask("Both collections valid?", [db.validate_collection(n, full=True)["valid"] for n in ("movies", "airports")], [True, True])
print(f"\n{'all answers agree with plain Python' if not wrong else f'{wrong} WRONG'}")
sys.exit(1 if wrong else 0)
